package shell

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

func systemTools() map[string]tool {
	return map[string]tool{
		"echo":     {echo, ""},
		"printf":   {printf, "FORMAT [ARGUMENT]...\nWrite formatted text."},
		"true":     {func(context.Context, Env, []string) int { return 0 }, ""},
		"expr":     {expr, "EXPRESSION\nPrint the value of an expression."},
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
		"id":       {id, "[-ugGn]\nPrint user and groups."},
		"hostname": {hostname, "\nPrint the host name."},
		"uname":    {uname, "[-asnrm]\nPrint the system's name."},
		"clear":    {clearScreen, "\nClear the screen."},
		"nproc":    {func(_ context.Context, e Env, _ []string) int { fmt.Fprintln(e.Out, 1); return 0 }, "\nPrint the number of processors."},
		"vi":       {editor, "FILE"}, "vim": {editor, "FILE"}, "nano": {editor, "FILE"}, "emacs": {editor, "FILE"},
		"ps":     {ps, "\nList processes."},
		"sysctl": {sysctl, "[-n] [-a] NAME[=VALUE]...\nShow parameters of the kernel."},
	}
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
