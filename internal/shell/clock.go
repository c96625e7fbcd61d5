package shell

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// duration reads 1, 0.5, 10s, 5m, 1h, 2d.
func duration(s string) (time.Duration, error) {
	unit := time.Second
	if s != "" {
		switch s[len(s)-1] {
		case 's':
			s = s[:len(s)-1]
		case 'm':
			unit, s = time.Minute, s[:len(s)-1]
		case 'h':
			unit, s = time.Hour, s[:len(s)-1]
		case 'd':
			unit, s = 24*time.Hour, s[:len(s)-1]
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f < 0 || math.IsNaN(f) {
		return 0, fmt.Errorf("invalid time interval '%s'", s)
	}
	return time.Duration(min(f*float64(unit), float64(100*365*24*time.Hour))), nil
}

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func sleep(ctx context.Context, env Env, args []string) int {
	if len(args) < 2 {
		return env.fail(args, "missing operand")
	}
	total := time.Duration(0)
	for _, a := range args[1:] {
		d, err := duration(a)
		if err != nil {
			return env.fail(args, "%v", err)
		}
		total += d
	}
	if !wait(ctx, total) {
		return 130
	}
	return 0
}

func date(_ context.Context, env Env, args []string) int {
	opts, rest, err := getopt(args[1:], "ud:I", map[string]string{"utc": "u", "date:": "d", "iso-8601": "I"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	now := time.Now()
	if s := value(opts, "d", ""); s != "" && s != "now" {
		found := false
		if sec, err := strconv.ParseInt(strings.TrimPrefix(s, "@"), 10, 64); err == nil && s[0] == '@' {
			now, found = time.Unix(sec, 0), true
		}
		for _, l := range []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
			if t, err := time.Parse(l, s); err == nil {
				now, found = t, true
			}
		}
		if !found {
			return env.fail(args, "invalid date '%s'", s)
		}
	}
	now = now.UTC()
	switch {
	case len(rest) > 0 && strings.HasPrefix(rest[0], "+"):
		fmt.Fprintln(env.Out, strftime(rest[0][1:], now))
	case flags(opts)["I"]:
		fmt.Fprintln(env.Out, now.Format("2006-01-02"))
	default:
		fmt.Fprintln(env.Out, now.Format("Mon Jan _2 15:04:05 MST 2006"))
	}
	return 0
}

func strftime(f string, t time.Time) string {
	layouts := map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'F': "2006-01-02", 'T': "15:04:05",
		'b': "Jan", 'h': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday", 'Z': "MST", 'z': "-0700", 'e': "_2", 'R': "15:04", 'D': "01/02/06", 'I': "03", 'p': "PM", 'c': "Mon Jan _2 15:04:05 2006"}
	var b strings.Builder
	for i := 0; i < len(f); i++ {
		if f[i] != '%' || i+1 == len(f) {
			b.WriteByte(f[i])
			continue
		}
		i++
		switch c := f[i]; c {
		case 's':
			fmt.Fprint(&b, t.Unix())
		case 'N':
			fmt.Fprintf(&b, "%09d", t.Nanosecond())
		case 'j':
			fmt.Fprintf(&b, "%03d", t.YearDay())
		case 'n':
			b.WriteByte('\n')
		case '%':
			b.WriteByte('%')
		default:
			if l, ok := layouts[c]; ok {
				b.WriteString(t.Format(l))
			} else {
				b.WriteString(f[i-1 : i+1])
			}
		}
	}
	return b.String()
}

func timeCommand(ctx context.Context, env Env, args []string) int {
	start := time.Now()
	code := 0
	if len(args) > 1 {
		code = env.Run(ctx, env, args[1:])
	}
	d := time.Since(start)
	fmt.Fprintf(env.Err, "real\t%dm%.3fs\n", int(d.Minutes()), math.Mod(d.Seconds(), 60))
	return code
}

func timeout(ctx context.Context, env Env, args []string) int {
	opts, rest, err := getoptFirst(args[1:], "s:k:", map[string]string{"signal:": "s", "kill-after:": "k"})
	_ = opts
	if err != nil || len(rest) < 2 {
		return env.fail(args, "usage: timeout SECONDS COMMAND [ARGUMENT]...")
	}
	d, err := duration(rest[0])
	if err != nil {
		return env.fail(args, "%v", err)
	}
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	sub := env
	if b, ok := env.In.(boundReader); ok {
		sub.In = boundReader{limited, b.r}
	}
	code := env.Run(limited, sub, rest[1:])
	if ctx.Err() == nil && limited.Err() != nil {
		return 124
	}
	return code
}

func watch(ctx context.Context, env Env, args []string) int {
	opts, rest, err := getoptFirst(args[1:], "n:dtx", map[string]string{"interval:": "n", "differences": "d", "no-title": "t"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	d, err := duration(value(opts, "n", "2"))
	if err != nil || len(rest) == 0 {
		return env.fail(args, "usage: watch [-n SECONDS] COMMAND [ARGUMENT]...")
	}
	d = max(d, 100*time.Millisecond)
	title := strings.Join(rest, " ")
	for ctx.Err() == nil {
		var buf bytes.Buffer
		sub := env
		sub.In = strings.NewReader("")
		limit := &limitedBuffer{b: &buf, left: 256 << 10}
		sub.Out, sub.Err = limit, limit
		argv := rest
		if len(rest) == 1 {
			argv = []string{"sh", "-c", rest[0]}
		}
		env.Run(ctx, sub, argv)
		if ctx.Err() != nil {
			break
		}
		env.drawWatch(fmt.Sprintf("Every %.1fs: %s", d.Seconds(), title), buf.String(), flags(opts)["t"])
		wait(ctx, d)
	}
	return 130
}

// drawWatch paints one screen of watch: title, empty line, as much output as fits.
func (e Env) drawWatch(title, body string, bare bool) {
	if !e.TTY {
		io.WriteString(e.Out, body)
		return
	}
	cols, rows := 80, 24
	if e.Size != nil {
		cols, rows = e.Size()
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	lines := strings.Split(strings.TrimRight(body, "\n"), "\n")
	if !bare {
		lines = append([]string{title, ""}, lines...)
	}
	for i, l := range lines {
		if i >= rows-1 {
			break
		}
		b.WriteString(clip(strings.ReplaceAll(l, "\t", "    "), cols) + "\x1b[K\r\n")
	}
	b.WriteString("\x1b[J")
	io.WriteString(e.Out, b.String())
}

// clip cuts s to a width in cells.
func clip(s string, cols int) string {
	w := 0
	for i, r := range s {
		if w += runeWidth(r); w > cols {
			return s[:i]
		}
	}
	return s
}

// limitedBuffer keeps the beginning of what is written and drops the rest.
type limitedBuffer struct {
	b    *bytes.Buffer
	left int
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	n := min(l.left, len(p))
	l.b.Write(p[:n])
	l.left -= n
	return len(p), nil
}
