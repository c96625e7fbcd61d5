package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// sysctlRoot is where the kernel's parameters are.
const sysctlRoot = "/proc/sys"

// sysctl shows parameters of the kernel as /proc/sys has them, and writes there.
func sysctl(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "aAnweqN", nil)
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	if f["a"] || f["A"] {
		return env.allSysctls(ctx, args, sysctlRoot, f["n"])
	}
	if len(names) == 0 {
		return env.wrongUse(args, errors.New("missing name of a parameter"))
	}
	code := 0
	for _, n := range names {
		key, v, write := strings.Cut(n, "=")
		if c := env.oneSysctl(args, strings.TrimSpace(key), strings.TrimSpace(v), write, f["n"]); c != 0 && !f["e"] {
			code = c
		}
	}
	return code
}

func (e Env) oneSysctl(args []string, key, v string, write, bare bool) int {
	file := path.Join(sysctlRoot, sysctlPath(key))
	if info, err := e.FS.Stat(file); err != nil || info.IsDir() || !strings.HasPrefix(file, sysctlRoot+"/") {
		return e.fail(args, "error: '%s' is an unknown key", key)
	}
	if write {
		out, err := e.FS.OpenFile(file, os.O_WRONLY|os.O_TRUNC, 0)
		if err == nil {
			_, err = io.WriteString(out, v+"\n")
			out.Close()
		}
		if err != nil {
			return e.fail(args, "error setting key '%s': %s", key, errText(err))
		}
	} else if err := e.readSysctl(file, &v); err != nil {
		return e.fail(args, "error reading key '%s': %s", key, errText(err))
	}
	if bare {
		fmt.Fprintln(e.Out, v)
	} else {
		fmt.Fprintf(e.Out, "%s = %s\n", strings.ReplaceAll(key, "/", "."), v)
	}
	return 0
}

func (e Env) readSysctl(file string, v *string) error {
	in, err := e.FS.OpenFile(file, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	raw, err := io.ReadAll(io.LimitReader(in, 4<<10))
	*v = strings.TrimRight(string(raw), "\n")
	return err
}

// sysctlPath makes a path of a name. The first separator says which of . and / divides:
// the other one is then a part of a name.
func sysctlPath(key string) string {
	if at := strings.IndexAny(key, "./"); at >= 0 && key[at] == '/' {
		return key
	}
	return strings.NewReplacer(".", "/", "/", ".").Replace(key)
}

func (e Env) allSysctls(ctx context.Context, args []string, dir string, bare bool) int {
	entries, err := e.FS.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return e.fail(args, "%s: %s", dir, errText(err))
	}
	for _, x := range entries {
		if ctx.Err() != nil {
			return 130
		}
		name := path.Join(dir, x.Name())
		if x.IsDir() {
			e.allSysctls(ctx, args, name, bare)
			continue
		}
		e.oneSysctl(args, strings.TrimPrefix(name, sysctlRoot+"/"), "", false, bare)
	}
	return 0
}
