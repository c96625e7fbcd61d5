package session

import (
	"context"
	"errors"
	"strings"
	"time"

	"kubistro/internal/lab"
	"kubistro/internal/store"
	"kubistro/internal/terminal"
)

const (
	interruptLimit = 3 * time.Second // for Ctrl-C to bring the prompt back

	lineLimit = 90 * time.Second       // for one command of a solution
	quiet     = 150 * time.Millisecond // after output, before it is taken for a prompt
)

func markSolved(x *store.Exercise) error {
	x.Solved = true
	return nil
}

// typeScript types a script line by line, each after the prompt is back.
func typeScript(ctx context.Context, term *terminal.Terminal, script string) error {
	seen, err := freshPrompt(ctx, term)
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(strings.TrimRight(script, "\n"), "\n") {
		if err := term.Input(line + "\r"); err != nil {
			return noAnswer(err)
		}
		if seen, err = untilPrompt(ctx, term, seen); err != nil {
			return err
		}
	}
	return nil
}

// freshPrompt ends what runs in a terminal, drops a half-typed line and returns the number of the
// newest block.
func freshPrompt(ctx context.Context, term *terminal.Terminal) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, lineLimit)
	defer cancel()
	for {
		seen, _, _ := newest(term, 0)
		if err := term.Input("\x03"); err != nil {
			return seen, noAnswer(err)
		}
		short, stop := context.WithTimeout(ctx, interruptLimit)
		last, err := untilPrompt(short, term, seen)
		stop()
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return last, err
		}
		// A shell that has just begun may swallow it: then its prompt is there already.
		if now, line, _ := newest(term, 0); isPrompt(line) {
			return now, nil
		}
	}
}

func noAnswer(err error) error {
	return lab.Fail(lab.CodeUnavailable, "終端機沒有回應，請再試一次。", "The terminal doesn't answer. Try again.").Because(err)
}

// newest returns the number of the newest block, the last line on the screen
// that the blocks after n leave, and a channel that is closed when there are more.
func newest(term *terminal.Terminal, n uint64) (last uint64, line string, more <-chan struct{}) {
	blocks, _, more := term.Output(n)
	var b strings.Builder
	for _, block := range blocks {
		n = block.N
		b.WriteString(block.Out)
	}
	out := b.String()
	return n, out[strings.LastIndexByte(out, '\n')+1:], more
}

// untilPrompt waits until the output after block n ends with a prompt and
// stays so for a moment.
func untilPrompt(ctx context.Context, term *terminal.Terminal, n uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, lineLimit)
	defer cancel()
	for {
		last, line, more := newest(term, n)
		if last > n && isPrompt(line) {
			select {
			case <-more:
				continue
			case <-time.After(quiet):
				return last, nil
			}
		}
		select {
		case <-more:
		case <-term.Done():
			return last, lab.Fail(lab.CodeUnavailable, "終端機被關掉了。", "The terminal was closed.")
		case <-ctx.Done():
			return last, lab.Fail(lab.CodeUnavailable, "示範的指令一直沒有結束；可在終端機按 Ctrl-C。", "A command of the solution doesn't end. Press Ctrl-C in the terminal.").Because(ctx.Err())
		}
	}
}

// isPrompt recognises the shell's prompt, and that of a continued line, with or without colours.
func isPrompt(line string) bool {
	var b strings.Builder
	escaped := false
	for _, r := range line {
		switch {
		case r == '\x1b':
			escaped = true
		case escaped:
			escaped = r == '[' || r == ']' || r == '?' || r == ';' || r >= '0' && r <= '9'
		case r == '\r':
			b.Reset()
		default:
			b.WriteRune(r)
		}
	}
	text := b.String()
	return strings.HasSuffix(text, "$ ") || text == "> "
}
