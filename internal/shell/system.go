package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

func systemTools() map[string]tool {
	return map[string]tool{
		"echo":     {echo, ""},
		"printf":   {printf, "FORMAT [ARGUMENT]...\nWrite formatted text."},
		"true":     {func(context.Context, Env, []string) int { return 0 }, ""},
		"false":    {func(context.Context, Env, []string) int { return 1 }, ""},
		"env":      {envCommand, "[-i] [NAME=VALUE]... [COMMAND]\nPrint the environment, or run a command in a changed one."},
		"printenv": {printenv, "[NAME]...\nPrint variables of the environment."},
		"sleep":    {sleep, "SECONDS[smh]...\nWait."},
		"date":     {date, "[-u] [-d TIME] [+FORMAT]\nPrint the time."},
		"seq":      {seq, "[-s SEP] [-w] [FIRST [STEP]] LAST\nPrint numbers."},
		"yes":      {yes, "[TEXT]\nPrint text until stopped."},
		"xargs":    {xargs, "[-n MAX] [-I REPL] [-r] [-0] [-P N] COMMAND [ARGUMENT]...\nRun a command with arguments from standard input."},
		"time":     {timeCommand, "COMMAND [ARGUMENT]...\nRun a command and print how long it took."},
		"timeout":  {timeout, "SECONDS COMMAND [ARGUMENT]...\nRun a command and stop it after a time (exit code 124)."},
		"watch":    {watch, "[-n SECONDS] COMMAND [ARGUMENT]...\nRun a command again and again; Ctrl-C ends it."},
		"whoami":   {whoami, "\nPrint the user name."},
		"id":       {id, "\nPrint user and group."},
		"hostname": {hostname, "\nPrint the host name."},
		"uname":    {uname, "[-asnrm]\nPrint the system's name."},
		"clear":    {clearScreen, "\nClear the screen."},
		"nproc":    {func(_ context.Context, e Env, _ []string) int { fmt.Fprintln(e.Out, 1); return 0 }, "\nPrint the number of processors."},
		"vi":       {editor, "FILE"}, "vim": {editor, "FILE"}, "nano": {editor, "FILE"}, "emacs": {editor, "FILE"},
		"ps": {ps, "\nList processes."},
	}
}

func echo(_ context.Context, env Env, args []string) int {
	newline, expand := true, false
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' && strings.Trim(args[0][1:], "neE") == "" {
		for _, c := range args[0][1:] {
			switch c {
			case 'n':
				newline = false
			case 'e':
				expand = true
			case 'E':
				expand = false
			}
		}
		args = args[1:]
	}
	s := strings.Join(args, " ")
	if expand {
		if i := strings.Index(s, `\c`); i >= 0 {
			s, newline = s[:i], false
		}
		s = unescape(s)
	}
	if newline {
		s += "\n"
	}
	if _, err := io.WriteString(env.Out, s); err != nil {
		return 1
	}
	return 0
}

func printf(_ context.Context, env Env, args []string) int {
	if len(args) > 1 && args[1] == "--" {
		args = append(args[:1:1], args[2:]...)
	}
	if len(args) < 2 {
		return env.fail(args, "usage: printf FORMAT [ARGUMENT]...")
	}
	if args[1] == "-v" {
		return env.fail(args, "-v isn't available here; use name=$(printf ...)")
	}
	format, rest := args[1], args[2:]
	for {
		used := 0
		s, err := formatShell(format, func() (string, bool) {
			if used < len(rest) {
				used++
				return rest[used-1], true
			}
			return "", false
		})
		io.WriteString(env.Out, s)
		if err != nil {
			return env.fail(args, "%v", err)
		}
		rest = rest[used:]
		if used == 0 || len(rest) == 0 {
			return 0
		}
	}
}

// maxWidth bounds widths and precisions of printf.
const maxWidth = 10000

// directive is one %... of a printf format.
type directive struct {
	flags     string
	width     int
	precision int // -1: none
	verb      byte
}

// parseDirective reads what follows a percent sign; next gives the value for "*".
func parseDirective(s string, next func() int) (d directive, n int, err error) {
	d.precision = -1
	for n < len(s) && strings.IndexByte("-+ #0", s[n]) >= 0 {
		d.flags += s[n : n+1]
		n++
	}
	number := func() int {
		if n < len(s) && s[n] == '*' {
			n++
			return next()
		}
		v := 0
		for n < len(s) && s[n] >= '0' && s[n] <= '9' {
			v = min(v*10+int(s[n]-'0'), maxWidth+1)
			n++
		}
		return v
	}
	if d.width = number(); d.width < 0 {
		d.flags, d.width = d.flags+"-", -d.width
	}
	if n < len(s) && s[n] == '.' {
		n++
		d.precision = number()
	}
	for n < len(s) && strings.IndexByte("hlLqjzt", s[n]) >= 0 {
		n++
	}
	if n >= len(s) {
		return d, n, errors.New("missing format character")
	}
	d.verb = s[n]
	if d.width > maxWidth || d.precision > maxWidth || d.width < 0 {
		return d, n + 1, errors.New("field width too large")
	}
	return d, n + 1, nil
}

func (d directive) format(v any) string {
	verb := d.verb
	switch verb {
	case 'i', 'u':
		verb = 'd'
	}
	f := "%" + d.flags
	if d.width > 0 {
		f += strconv.Itoa(d.width)
	}
	if d.precision >= 0 && verb != 'c' {
		f += "." + strconv.Itoa(d.precision)
	}
	if strings.ContainsRune(d.flags, '0') && verb == 's' {
		f = strings.Replace(f, "0", "", 1)
	}
	return fmt.Sprintf(f+string(verb), v)
}

func formatShell(format string, next func() (string, bool)) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); {
		switch c := format[i]; {
		case c == '\\':
			end := i + 2
			for end < len(format) && end < i+5 && strings.IndexByte("0123456789abcdefABCDEFx", format[end]) >= 0 {
				end++
			}
			b.WriteString(unescape(format[i:min(end, len(format))]))
			i = end
		case c == '%' && i+1 < len(format) && format[i+1] == '%':
			b.WriteByte('%')
			i += 2
		case c == '%':
			d, n, err := parseDirective(format[i+1:], func() int { s, _ := next(); v, _ := strconv.Atoi(s); return v })
			if err != nil {
				return b.String(), err
			}
			i += 1 + n
			arg, _ := next()
			switch d.verb {
			case 's':
				b.WriteString(d.format(arg))
			case 'b':
				d.verb = 's'
				b.WriteString(d.format(unescape(arg)))
			case 'q':
				d.verb = 's'
				b.WriteString(d.format("'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"))
			case 'c':
				for _, r := range arg {
					d.verb = 's'
					b.WriteString(d.format(string(r)))
					break
				}
			case 'd', 'i', 'u', 'x', 'X', 'o':
				v, err := shellInt(arg)
				b.WriteString(d.format(v))
				if err != nil {
					return b.String(), err
				}
			case 'f', 'e', 'g', 'E', 'G', 'F':
				v := 0.0
				if arg != "" {
					if v, err = strconv.ParseFloat(strings.TrimSpace(arg), 64); err != nil {
						return b.String(), fmt.Errorf("'%s': invalid number", arg)
					}
				}
				b.WriteString(d.format(v))
			default:
				return b.String(), fmt.Errorf("%%%c: invalid directive", d.verb)
			}
		default:
			b.WriteByte(c)
			i++
		}
		if b.Len() > maxHeld {
			return b.String(), errors.New("output too long")
		}
	}
	return b.String(), nil
}

func shellInt(s string) (int64, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 0, nil
	}
	if s[0] == '\'' || s[0] == '"' {
		for _, r := range s[1:] {
			return int64(r), nil
		}
	}
	v, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		return int64(leadingNumber(s)), fmt.Errorf("'%s': invalid number", s)
	}
	return v, nil
}

func envCommand(ctx context.Context, env Env, args []string) int {
	list := env.Environ()
	rest := args[1:]
	for len(rest) > 0 {
		a := rest[0]
		switch {
		case a == "-i" || a == "-":
			list = nil
		case a == "-u" && len(rest) > 1:
			list = setenv(list, rest[1], "", true)
			rest = rest[1:]
		case strings.Contains(a, "=") && !strings.HasPrefix(a, "="):
			name, v, _ := strings.Cut(a, "=")
			list = setenv(list, name, v, false)
		default:
			sub := env
			sub.Environ = func() []string { return list }
			sub.Getenv = func(n string) string { return getenv(list, n) }
			return env.Run(ctx, sub, rest)
		}
		rest = rest[1:]
	}
	for _, kv := range list {
		fmt.Fprintln(env.Out, kv)
	}
	return 0
}

func setenv(list []string, name, v string, remove bool) []string {
	var out []string
	for _, kv := range list {
		if !strings.HasPrefix(kv, name+"=") {
			out = append(out, kv)
		}
	}
	if remove {
		return out
	}
	return append(out, name+"="+v)
}

func getenv(list []string, name string) string {
	for _, kv := range list {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

func printenv(_ context.Context, env Env, args []string) int {
	if len(args) == 1 {
		for _, kv := range env.Environ() {
			fmt.Fprintln(env.Out, kv)
		}
		return 0
	}
	code := 0
	for _, n := range args[1:] {
		found := false
		for _, kv := range env.Environ() {
			if v, ok := strings.CutPrefix(kv, n+"="); ok {
				fmt.Fprintln(env.Out, v)
				found = true
			}
		}
		if !found {
			code = 1
		}
	}
	return code
}

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

func seq(ctx context.Context, env Env, args []string) int {
	opts, rest := []option{}, args[1:]
	sep, pad := "\n", false
	for len(rest) > 0 && len(rest[0]) > 1 && rest[0][0] == '-' && !(rest[0][1] >= '0' && rest[0][1] <= '9') && rest[0][1] != '.' {
		switch {
		case rest[0] == "-w":
			pad = true
		case rest[0] == "-s" && len(rest) > 1:
			sep, rest = unescape(rest[1]), rest[1:]
		default:
			return env.wrongUse(args, fmt.Errorf("unrecognized option '%s'", rest[0]))
		}
		rest = rest[1:]
	}
	_ = opts
	nums, decimals := []float64{1, 1, 1}, 0
	if len(rest) == 0 || len(rest) > 3 {
		return env.fail(args, "usage: seq [FIRST [STEP]] LAST")
	}
	var v []float64
	for _, s := range rest {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return env.fail(args, "invalid floating point argument: '%s'", s)
		}
		if _, d, ok := strings.Cut(s, "."); ok {
			decimals = max(decimals, min(len(d), 20))
		}
		v = append(v, f)
	}
	switch len(v) {
	case 1:
		nums[2] = v[0]
	case 2:
		nums[0], nums[2] = v[0], v[1]
	case 3:
		nums = v
	}
	if nums[1] == 0 {
		return env.fail(args, "invalid Zero increment value")
	}
	width := 0
	if pad {
		width = max(len(strconv.FormatFloat(nums[0], 'f', decimals, 64)), len(strconv.FormatFloat(nums[2], 'f', decimals, 64)))
	}
	out := env.output()
	for i := 0; ; i++ {
		x := nums[0] + float64(i)*nums[1]
		if nums[1] > 0 && x > nums[2]+1e-12 || nums[1] < 0 && x < nums[2]-1e-12 || ctx.Err() != nil {
			if i > 0 {
				out.WriteByte('\n')
			}
			break
		}
		if i > 0 {
			out.WriteString(sep)
		}
		if _, err := fmt.Fprintf(out, "%0*s", 0, padZero(strconv.FormatFloat(x, 'f', decimals, 64), width)); err != nil {
			return 1
		}
	}
	out.Flush()
	if ctx.Err() != nil {
		return 130
	}
	return 0
}

func padZero(s string, width int) string {
	if len(s) >= width {
		return s
	}
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s, width = "-", s[1:], width-1
	}
	return sign + strings.Repeat("0", max(width-len(s), 0)) + s
}

func yes(ctx context.Context, env Env, args []string) int {
	text := "y"
	if len(args) > 1 {
		text = strings.Join(args[1:], " ")
	}
	block := bytes.Repeat([]byte(text+"\n"), max(1, 4096/(len(text)+1)))
	for ctx.Err() == nil {
		if _, err := env.Out.Write(block); err != nil {
			return 141
		}
	}
	return 130
}

func xargs(ctx context.Context, env Env, args []string) int {
	opts, cmd, err := getoptFirst(args[1:], "n:I:r0P:tL:d:", map[string]string{"no-run-if-empty": "r", "null": "0", "max-args:": "n", "replace:": "I"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	if len(cmd) == 0 {
		cmd = []string{"echo"}
	}
	f := flags(opts)
	in, err := readAll(ctx, env.In)
	if err != nil {
		return env.fail(args, "%v", err)
	}
	var items []string
	repl := value(opts, "I", "")
	delim := value(opts, "d", "")
	switch {
	case f["0"]:
		items = splitNonEmpty(string(in), "\x00")
	case delim != "":
		items = splitNonEmpty(strings.TrimSuffix(string(in), "\n"), unescape(delim))
	case repl != "" || f["L"]:
		for _, l := range splitNonEmpty(string(in), "\n") {
			if l = strings.TrimSpace(l); l != "" {
				items = append(items, l)
			}
		}
	default:
		items = quotedFields(string(in))
	}
	if repl != "" {
		code := 0
		for _, it := range items {
			call := make([]string, len(cmd))
			for i, a := range cmd {
				call[i] = strings.ReplaceAll(a, repl, it)
			}
			if c := env.runChild(ctx, call); c != 0 {
				code = 123
			}
			if ctx.Err() != nil {
				return 130
			}
		}
		return code
	}
	n := 5000
	if s := value(opts, "n", value(opts, "L", "")); s != "" {
		if n, err = strconv.Atoi(s); err != nil || n < 1 {
			return env.fail(args, "invalid number '%s'", s)
		}
	}
	if len(items) == 0 {
		if f["r"] {
			return 0
		}
		return env.runChild(ctx, cmd)
	}
	code := 0
	for len(items) > 0 && ctx.Err() == nil {
		k := min(n, len(items))
		if c := env.runChild(ctx, append(cmd[:len(cmd):len(cmd)], items[:k]...)); c == 127 {
			return 127
		} else if c != 0 {
			code = 123
		}
		items = items[k:]
	}
	return code
}

// runChild runs a command whose input is empty.
func (e Env) runChild(ctx context.Context, argv []string) int {
	e.In = strings.NewReader("")
	return e.Run(ctx, e, argv)
}

func splitNonEmpty(s, sep string) []string {
	var out []string
	for _, p := range strings.Split(s, sep) {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}

// quotedFields splits at white space; quotes and backslashes keep it.
func quotedFields(s string) []string {
	var out []string
	var b strings.Builder
	quote, started := byte(0), false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				b.WriteByte(c)
			}
		case c == '\'' || c == '"':
			quote, started = c, true
		case c == '\\' && i+1 < len(s):
			i++
			b.WriteByte(s[i])
			started = true
		case c == ' ' || c == '\t' || c == '\n':
			if started {
				out = append(out, b.String())
				b.Reset()
				started = false
			}
		default:
			b.WriteByte(c)
			started = true
		}
	}
	if started {
		out = append(out, b.String())
	}
	return out
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

func whoami(_ context.Context, env Env, _ []string) int {
	fmt.Fprintln(env.Out, env.user())
	return 0
}

func id(_ context.Context, env Env, args []string) int {
	n := 1000
	if env.user() == "root" {
		n = 0
	}
	if len(args) > 1 && args[1] == "-u" {
		fmt.Fprintln(env.Out, n)
		return 0
	}
	fmt.Fprintf(env.Out, "uid=%d(%s) gid=%d(%s) groups=%d(%s)\n", n, env.user(), n, env.user(), n, env.user())
	return 0
}

func hostname(_ context.Context, env Env, _ []string) int {
	fmt.Fprintln(env.Out, env.Hostname)
	return 0
}

func uname(_ context.Context, env Env, args []string) int {
	opts, _, err := getopt(args[1:], "asnrmvo", map[string]string{"all": "a"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	var parts []string
	for _, p := range []struct{ flag, text string }{{"s", "Linux"}, {"n", env.Hostname}, {"r", "6.1.0-kubistro"}, {"v", "#1"}, {"m", "x86_64"}, {"o", "Kubistro"}} {
		if f["a"] || f[p.flag] || len(opts) == 0 && p.flag == "s" {
			parts = append(parts, p.text)
		}
	}
	fmt.Fprintln(env.Out, strings.Join(parts, " "))
	return 0
}

func clearScreen(_ context.Context, env Env, _ []string) int {
	io.WriteString(env.Out, "\x1b[H\x1b[2J\x1b[3J")
	return 0
}

func editor(_ context.Context, env Env, args []string) int {
	return env.fail(args, "there is no full-screen editor here. Open the file in the Files tab below, or write it with: cat > FILE <<'EOF'")
}

func ps(_ context.Context, env Env, _ []string) int {
	fmt.Fprint(env.Out, "  PID TTY          TIME CMD\n   42 pts/0    00:00:00 sh\n")
	return 0
}
