package shell

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// finder is one test or action of find; false ends the line for this file.
type finder func(shown, p string, info fs.FileInfo) bool

func find(ctx context.Context, env Env, args []string) int {
	rest := args[1:]
	var roots []string
	for len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && rest[0] != "!" && rest[0] != "(" {
		roots, rest = append(roots, rest[0]), rest[1:]
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	out := env.output()
	defer out.Flush()
	code, minDepth, maxDepth, acts := 0, 0, 1<<30, false
	groups := [][]finder{nil} // joined by -o
	not := false
	for i := 0; i < len(rest); i++ {
		arg := func() string {
			if i+1 < len(rest) {
				i++
				return rest[i]
			}
			return ""
		}
		var f finder
		switch name := rest[i]; name {
		case "-name", "-iname", "-path", "-wholename":
			pattern := arg()
			f = func(shown, p string, _ fs.FileInfo) bool {
				subject, pat := path.Base(p), pattern
				if name == "-path" || name == "-wholename" {
					return globMatch(pat, shown)
				}
				if name == "-iname" {
					subject, pat = strings.ToLower(subject), strings.ToLower(pat)
				}
				return globMatch(pat, subject)
			}
		case "-type":
			kind := arg()
			if kind != "f" && kind != "d" && kind != "l" {
				return env.fail(args, "unknown argument to -type: %s", kind)
			}
			f = func(_, _ string, info fs.FileInfo) bool {
				switch kind {
				case "d":
					return info.IsDir()
				case "l":
					return info.Mode()&fs.ModeSymlink != 0
				}
				return info.Mode().IsRegular()
			}
		case "-empty":
			f = func(_, p string, info fs.FileInfo) bool {
				if info.IsDir() {
					list, err := env.FS.ReadDir(p)
					return err == nil && len(list) == 0
				}
				return info.Size() == 0
			}
		case "-size":
			s := arg()
			n, err := count(strings.TrimSuffix(strings.TrimLeft(s, "+-"), "c"))
			if err != nil {
				return env.fail(args, "invalid -size argument %s", s)
			}
			f = func(_, _ string, info fs.FileInfo) bool {
				switch s[0] {
				case '+':
					return info.Size() > n
				case '-':
					return info.Size() < n
				}
				return info.Size() == n
			}
		case "-maxdepth", "-mindepth":
			n, err := strconv.Atoi(arg())
			if err != nil {
				return env.fail(args, "%s needs a number", name)
			}
			if name == "-maxdepth" {
				maxDepth = n
			} else {
				minDepth = n
			}
			continue
		case "-print", "-print0":
			acts = true
			end := map[string]string{"-print": "\n", "-print0": "\x00"}[name]
			f = func(shown, _ string, _ fs.FileInfo) bool { out.WriteString(shown + end); return true }
		case "-delete":
			acts = true
			f = func(shown, p string, info fs.FileInfo) bool {
				if err := removeAll(ctx, env.FS, p, info); err != nil {
					code = env.fail(args, "%s: %s", shown, errText(err))
					return false
				}
				return true
			}
		case "-exec", "-ok":
			acts = true
			var argv []string
			for i++; i < len(rest) && rest[i] != ";" && rest[i] != "+"; i++ {
				argv = append(argv, rest[i])
			}
			if i >= len(rest) || len(argv) == 0 {
				return env.fail(args, "missing argument to '-exec' (end it with \\;)")
			}
			f = func(shown, _ string, _ fs.FileInfo) bool {
				out.Flush()
				call := make([]string, len(argv))
				for j, a := range argv {
					call[j] = strings.ReplaceAll(a, "{}", shown)
				}
				return env.Run(ctx, env, call) == 0
			}
		case "!", "-not":
			not = !not
			continue
		case "-o", "-or":
			groups = append(groups, nil)
			continue
		case "-a", "-and":
			continue
		default:
			return env.fail(args, "unknown predicate '%s'", name)
		}
		if not {
			inner := f
			f = func(shown, p string, info fs.FileInfo) bool { return !inner(shown, p, info) }
			not = false
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], f)
	}
	for _, root := range roots {
		base := abs(env.Dir, root)
		err := walk(ctx, env.FS, base, 0, func(p string, info fs.FileInfo, depth int) error {
			if depth > maxDepth {
				return fs.SkipDir
			}
			if depth < minDepth {
				return nil
			}
			shown := root
			if p != base {
				shown = strings.TrimSuffix(root, "/") + strings.TrimPrefix(p, strings.TrimSuffix(base, "/"))
			}
			for _, g := range groups {
				ok := true
				for _, f := range g {
					if ok = f(shown, p, info); !ok {
						break
					}
				}
				if ok {
					if !acts {
						out.WriteString(shown + "\n")
					}
					break
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			code = env.fail(args, "%s: %s", root, errText(err))
		}
	}
	return code
}

// globMatch matches the way fnmatch does without special treatment of slashes.
func globMatch(pattern, s string) bool {
	ok, err := path.Match(strings.ReplaceAll(pattern, "/", "\x00"), strings.ReplaceAll(s, "/", "\x00"))
	return err == nil && ok
}
