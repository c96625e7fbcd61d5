package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

const maxHistory = 500

func itoa(n int) string { return strconv.Itoa(n) }

// Interactive reads command lines from the terminal with line editing, history
// and completion until EOF or exit, and returns the exit code. in carries raw
// key presses, out gets what a terminal shows; this is the line discipline
// too: echo, Ctrl-C (cancels the running command's context), Ctrl-D, and cooked
// input for commands that read standard input. It returns only after In has
// ended or been given up; the reader's goroutine ends with In.
func (sh *Shell) Interactive(ctx context.Context, o InteractiveOptions) int {
	t := newTTY(o.Out, o.Size)
	if t.size.Cols < 1 || t.size.Rows < 1 {
		t.size = Size{80, 24}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go t.pump(o.In)
	resized := make(chan struct{})
	go func() {
		defer close(resized)
		for {
			select {
			case s, ok := <-o.Resize:
				if !ok {
					return
				}
				t.resize(s)
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() { cancel(); <-resized }()
	e := &lineEditor{t: t, o: &o, history: slices.Clone(o.History), complete: o.Complete}
	if e.complete == nil {
		e.complete = sh.Complete
	}
	sh.history = func() []string { return e.history }
	if o.Prompt == nil {
		o.Prompt = func() string { return sh.runner.Dir + " $ " }
	}
	s := &session{sh: sh, t: t, o: &o, e: e}
	defer s.close()
	code := 0
	for ctx.Err() == nil {
		src, err := s.readCommand(ctx)
		switch {
		case errors.Is(err, errInterrupted):
			code = 130
			continue
		case err != nil:
			if errors.Is(err, io.EOF) {
				t.write([]byte("exit\r\n"), true)
			}
			return code
		case strings.TrimSpace(src) == "":
			continue
		}
		var exited bool
		if code, exited = s.run(ctx, src, code); exited {
			return code
		}
	}
	return code
}

// session is one interactive use of a shell.
type session struct {
	sh   *Shell
	t    *tty
	o    *InteractiveOptions
	e    *lineEditor
	runs []*run // command lines with jobs in the background
}

// readCommand reads lines until they make a complete command.
func (s *session) readCommand(ctx context.Context) (string, error) {
	src, prompt := "", s.o.Prompt()
	for {
		line, err := s.e.readLine(ctx, prompt)
		if err != nil {
			if src != "" && errors.Is(err, io.EOF) {
				s.t.write([]byte("sh: syntax error: unexpected end of file\r\n"), true)
				return "", errInterrupted
			}
			return "", err
		}
		src += line
		if len(src) > maxSource || !incomplete(src) {
			break
		}
		src += "\n"
		prompt = "> "
	}
	if strings.TrimSpace(src) != "" {
		if h := s.e.history; len(h) == 0 || h[len(h)-1] != src {
			s.e.history = append(h, src)
			if len(s.e.history) > maxHistory {
				s.e.history = s.e.history[len(s.e.history)-maxHistory:]
			}
		}
		if s.o.OnLine != nil {
			s.o.OnLine(src)
		}
	}
	return src, nil
}

// incomplete reports whether a command goes on in the next line.
func incomplete(src string) bool {
	if n := len(src) - len(strings.TrimRight(src, `\`)); n%2 == 1 {
		return true
	}
	_, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(src+"\n"), "")
	return syntax.IsIncomplete(err)
}

// run runs one command line; exited means that it ended the shell.
func (s *session) run(ctx context.Context, src string, last int) (code int, exited bool) {
	f, err := parse(src, "sh")
	if err != nil {
		fmt.Fprintln(s.t, syntaxMessage("sh", err))
		return 2, false
	}
	r := s.sh.newRun(ctx, Streams{Out: s.t, Err: s.t, TTY: true, Size: s.t.dims, Term: s.t}, s.t)
	s.t.begin(func() {
		s.t.drop()
		r.cancel()
	}, func() {
		s.t.write([]byte("\r\n"+s.stopNotice()+"\r\n"), true)
	})
	code = s.sh.runFile(r, f, false)
	s.t.finish()
	exited = s.sh.runner.Exited() && !r.failed() && r.ctx.Err() == nil
	s.runs = append(s.runs, r)
	s.reap()
	return code, exited
}

func (s *session) stopNotice() string {
	if s.o.Lang == "zh" {
		return "Ctrl-Z 在這裡不能暫停指令；要結束請按 Ctrl-C，要在背景執行請在指令後面加上 &。"
	}
	return "Ctrl-Z can't suspend a command here: Ctrl-C ends it, and a & after it runs it in the background."
}

// reap forgets command lines whose background jobs have ended.
func (s *session) reap() {
	s.runs = slices.DeleteFunc(s.runs, func(r *run) bool {
		if r.ctx.Err() == nil && time.Since(r.started) < time.Second {
			return false // a job may be about to start
		}
		for _, j := range s.sh.slots.background() {
			if j.run == r && r.ctx.Err() == nil {
				return false
			}
		}
		r.cancel()
		return true
	})
}

func (s *session) close() {
	for _, r := range s.runs {
		r.cancel()
	}
	bound, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	s.sh.slots.wait(bound, func(*job) bool { return true })
}

// Complete proposes command names for the first word of a command and files otherwise.
func (sh *Shell) Complete(_ context.Context, line string, pos int) (start int, proposals []string) {
	start, first := WordStart(line[:pos])
	word := line[start:pos]
	if first && !strings.Contains(word, "/") {
		for _, n := range sh.Names() {
			if strings.HasPrefix(n, word) {
				proposals = append(proposals, n)
			}
		}
		return start, slices.Compact(proposals)
	}
	return start, sh.CompleteFile(word)
}

// WordStart finds where the last word of a command line begins, and whether it
// is the name of a command.
func WordStart(line string) (start int, first bool) {
	first = true
	inWord, wasFirst := false, true
	quote := byte(0)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote = c
			if !inWord {
				start, inWord, wasFirst = i, true, first
			}
		case c == '\\':
			if !inWord {
				start, inWord, wasFirst = i, true, first
			}
			i++
		case c == ' ' || c == '\t':
			if inWord {
				first = first && strings.Contains(line[start:i], "=") && !strings.HasPrefix(line[start:], "-")
			}
			inWord = false
		case strings.IndexByte("|&;(\n", c) >= 0:
			inWord, first = false, true
		case c == '<' || c == '>':
			inWord = false
			first = false
		default:
			if !inWord {
				start, inWord, wasFirst = i, true, first
			}
		}
	}
	if !inWord {
		return len(line), first
	}
	return start, wasFirst
}

// CompleteFile proposes files that begin with word, quoted for the shell.
func (sh *Shell) CompleteFile(word string) []string {
	plain := strings.NewReplacer(`\ `, " ", `"`, "", "'", "").Replace(word)
	if plain == "~" || strings.HasPrefix(plain, "~/") {
		plain = sh.Getenv("HOME") + plain[1:]
	}
	dir, base := path.Split(plain)
	list, err := sh.o.FS.ReadDir(abs(sh.runner.Dir, dir+"."))
	if err != nil {
		return nil
	}
	var out []string
	prefix := word[:len(word)-len(base)]
	if strings.ContainsAny(word, `\"' `) {
		prefix = strings.ReplaceAll(dir, " ", `\ `)
	}
	for _, e := range list {
		n := e.Name()
		if !strings.HasPrefix(n, base) || base == "" && strings.HasPrefix(n, ".") {
			continue
		}
		n = strings.NewReplacer(" ", `\ `, "'", `\'`, "(", `\(`, ")", `\)`, "&", `\&`, ";", `\;`, "$", `\$`).Replace(n)
		if e.IsDir() {
			n += "/"
		}
		out = append(out, prefix+n)
	}
	sort.Strings(out)
	return out
}
