package shell

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

type entry struct {
	name string
	info fs.FileInfo
}

func ls(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "la1hRdtrSFAinC", map[string]string{"all": "a", "almost-all": "A", "human-readable": "h", "recursive": "R", "directory": "d", "reverse": "r", "color": "-", "color:": "-"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	if len(names) == 0 {
		names = []string{"."}
	}
	code := 0
	var files []entry
	var dirs []string
	for _, n := range names {
		info, err := env.FS.Stat(abs(env.Dir, n))
		if err != nil {
			info, err = env.FS.Lstat(abs(env.Dir, n))
		}
		switch {
		case err != nil:
			code = env.fail(args, "%s: %s", n, errText(err))
		case info.IsDir() && !f["d"]:
			dirs = append(dirs, n)
		default:
			files = append(files, entry{n, info})
		}
	}
	listEntries(env, f, files)
	shown := len(files) > 0
	for i := 0; i < len(dirs) && i < 10000; i++ {
		if ctx.Err() != nil {
			return 130
		}
		d := dirs[i]
		list, err := env.FS.ReadDir(abs(env.Dir, d))
		if err != nil {
			code = env.fail(args, "%s: %s", d, errText(err))
			continue
		}
		if shown {
			fmt.Fprintln(env.Out)
		}
		shown = true
		if len(names) > 1 || f["R"] {
			fmt.Fprintf(env.Out, "%s:\n", d)
		}
		var entries []entry
		if f["a"] {
			for _, n := range []string{".", ".."} {
				if info, err := env.FS.Stat(abs(env.Dir, path.Join(abs(env.Dir, d), n))); err == nil {
					entries = append(entries, entry{n, info})
				}
			}
		}
		var below []string
		for _, e := range list {
			if strings.HasPrefix(e.Name(), ".") && !f["a"] && !f["A"] {
				continue
			}
			info, err := env.FS.Lstat(path.Join(abs(env.Dir, d), e.Name()))
			if err != nil {
				continue
			}
			entries = append(entries, entry{e.Name(), info})
			if info.IsDir() && f["R"] {
				below = append(below, strings.TrimSuffix(d, "/")+"/"+e.Name())
			}
		}
		if f["l"] {
			fmt.Fprintf(env.Out, "total %d\n", (sum(entries)+1023)/1024)
		}
		listEntries(env, f, entries)
		dirs = slices.Insert(dirs, i+1, below...)
	}
	return code
}

func sum(entries []entry) (n int64) {
	for _, e := range entries {
		if e.info.Mode().IsRegular() {
			n += e.info.Size()
		}
	}
	return n
}

func listEntries(env Env, f map[string]bool, entries []entry) {
	slices.SortStableFunc(entries, func(a, b entry) int {
		c := 0
		switch {
		case f["t"]:
			c = b.info.ModTime().Compare(a.info.ModTime())
		case f["S"]:
			c = int(max(min(b.info.Size()-a.info.Size(), 1), -1))
		}
		if c == 0 {
			c = strings.Compare(a.name, b.name)
		}
		if f["r"] {
			c = -c
		}
		return c
	})
	out := env.output()
	defer out.Flush()
	if f["l"] {
		sizes, width := make([]string, len(entries)), 1
		for i, e := range entries {
			sizes[i] = fmt.Sprint(e.info.Size())
			if f["h"] {
				sizes[i] = humanSize(e.info.Size())
			}
			width = max(width, len(sizes[i]))
		}
		for i, e := range entries {
			fmt.Fprintf(out, "%s 1 %s %s %*s %s %s\n", modeText(e.info.Mode()), env.user(), env.user(), width, sizes[i], lsTime(e.info.ModTime()), env.colored(e, f))
		}
		return
	}
	if f["1"] || !env.TTY {
		for _, e := range entries {
			fmt.Fprintln(out, env.colored(e, f))
		}
		return
	}
	cells := make([]string, len(entries))
	for i, e := range entries {
		cells[i] = env.colored(e, f)
	}
	cols := 80
	if env.Size != nil {
		cols, _ = env.Size()
	}
	for _, row := range layout(cells, cols) {
		fmt.Fprintln(out, row)
	}
}

// layout arranges cells in columns, downwards first, as ls does.
func layout(cells []string, cols int) []string {
	if len(cells) == 0 {
		return nil
	}
	for rows := 1; ; rows++ {
		n := (len(cells) + rows - 1) / rows
		widths := make([]int, n)
		total := 0
		for c := range n {
			for r := c * rows; r < min((c+1)*rows, len(cells)); r++ {
				widths[c] = max(widths[c], stringWidth(cells[r]))
			}
			total += widths[c] + 2
		}
		if total-2 > cols && n > 1 {
			continue
		}
		out := make([]string, rows)
		for r := range rows {
			var b strings.Builder
			for c := range n {
				i := c*rows + r
				if i >= len(cells) {
					break
				}
				b.WriteString(cells[i])
				if i+rows < len(cells) {
					b.WriteString(strings.Repeat(" ", widths[c]-stringWidth(cells[i])+2))
				}
			}
			out[r] = b.String()
		}
		return out
	}
}

func (e Env) user() string {
	if e.User != nil {
		if name, ok := e.nameOf("passwd", e.User.UID); ok {
			return name
		}
		return strconv.FormatInt(e.User.UID, 10)
	}
	if u := e.Getenv("USER"); u != "" {
		return u
	}
	return "root"
}

func (e Env) colored(x entry, f map[string]bool) string {
	suffix := ""
	if f["F"] && x.info.IsDir() {
		suffix = "/"
	}
	if !e.TTY {
		return x.name + suffix
	}
	color := ""
	switch m := x.info.Mode(); {
	case m.IsDir():
		color = "\x1b[1;34m"
	case m&fs.ModeSymlink != 0:
		color = "\x1b[1;36m"
	case m.IsRegular() && m&0o111 != 0:
		color = "\x1b[1;32m"
	default:
		return x.name + suffix
	}
	return color + x.name + "\x1b[0m" + suffix
}

func modeText(m fs.FileMode) string {
	kind := "-"
	switch {
	case m.IsDir():
		kind = "d"
	case m&fs.ModeSymlink != 0:
		kind = "l"
	case m&fs.ModeCharDevice != 0:
		kind = "c"
	}
	return kind + m.Perm().String()[1:]
}

func lsTime(t time.Time) string {
	if time.Since(t) > 180*24*time.Hour {
		return t.Format("Jan _2  2006")
	}
	return t.Format("Jan _2 15:04")
}

func humanSize(n int64) string {
	if n < 1024 {
		return fmt.Sprint(n)
	}
	f, units := float64(n)/1024, "KMGTPE"
	for f >= 1024 {
		f, units = f/1024, units[1:]
	}
	if f < 10 {
		return fmt.Sprintf("%.1f%c", f, units[0])
	}
	return fmt.Sprintf("%.0f%c", f, units[0])
}
