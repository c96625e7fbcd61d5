package session

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kubistro/internal/lab"
	"kubistro/internal/terminal"
)

// echoLimit is how long a typed line has for appearing as it was typed.
const echoLimit = 10 * time.Second

// Type types a script into a terminal tab line by line, as a learner would, and returns what was
// printed and the exit code of the last command. With stop above zero a line that hasn't ended after
// that time is ended by Ctrl-C. It is for verification.
func (s *Service) Type(ctx context.Context, learner lab.LearnerID, id, tab, script string, stop time.Duration) (output string, code int, err error) {
	term, err := s.Terminal(ctx, learner, id, tab)
	if err != nil {
		return "", 0, err
	}
	term.Resize(1000, 60) // no line is broken
	seen, err := freshPrompt(ctx, term)
	if err != nil {
		return "", 0, err
	}
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimRight(script, "\n"), "\n") {
		var printed string
		printed, seen, err = typeLine(ctx, term, seen, line, stop)
		out.WriteString(printed)
		if err != nil {
			return out.String(), 0, err
		}
	}
	printed, _, err := typeLine(ctx, term, seen, "echo $?", 0)
	if err != nil {
		return out.String(), 0, err
	}
	if code, err = strconv.Atoi(strings.TrimSpace(printed)); err != nil {
		return out.String(), 0, fmt.Errorf("session: the exit code can't be read: %q", printed)
	}
	return out.String(), code, nil
}

// typeLine types one line after block n and returns what was printed until the prompt is back.
func typeLine(ctx context.Context, term *terminal.Terminal, n uint64, line string, stop time.Duration) (printed string, last uint64, err error) {
	if err := term.Input(line + "\r"); err != nil {
		return "", n, noAnswer(err)
	}
	if stop > 0 {
		limited, cancel := context.WithTimeout(ctx, stop)
		_, last, err = untilEnd(limited, term, n, line)
		cancel()
		if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			if err := term.Input("\x03"); err != nil {
				return "", n, noAnswer(err)
			}
			_, last, err = untilEnd(ctx, term, n, line)
		}
		printed, _ = between(since(term, n), line)
		return printed, last, err
	}
	return untilEnd(ctx, term, n, line)
}

// untilEnd waits for the prompt after a typed line. One that came before the line's echo, because an
// earlier Ctrl-C took its time, doesn't count; a line that is never echoed as typed does after a while.
func untilEnd(ctx context.Context, term *terminal.Terminal, n uint64, line string) (printed string, last uint64, err error) {
	begun := time.Now()
	for {
		last, err := untilPrompt(ctx, term, n)
		printed, echoed := between(since(term, n), line)
		if err != nil || echoed || time.Since(begun) > echoLimit {
			return printed, last, err
		}
		select {
		case <-time.After(quiet):
		case <-ctx.Done():
			return printed, last, noAnswer(ctx.Err())
		}
	}
}

// since is the raw output after block n.
func since(term *terminal.Terminal, n uint64) string {
	blocks, _, _ := term.Output(n)
	var b strings.Builder
	for _, block := range blocks {
		b.WriteString(block.Out)
	}
	return b.String()
}

// escapes are the sequences that move and colour, and set modes and titles.
var escapes = regexp.MustCompile(`\x1b(?:\[[0-9;?>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[=>78cDEM])`)

// between is what a terminal shows between the line that was typed and the next prompt; echoed
// tells whether the typed line is there.
func between(raw, typed string) (printed string, echoed bool) {
	text := escapes.ReplaceAllString(strings.ReplaceAll(raw, "\r\n", "\n"), "")
	before, after, echoed := strings.Cut(text, strings.TrimSpace(typed))
	if !echoed {
		after = before
	}
	_, after, _ = strings.Cut(after, "\n")
	end := strings.LastIndexByte(after, '\n') + 1
	var b strings.Builder
	for line := range strings.SplitAfterSeq(after[:end], "\n") {
		if at := strings.LastIndexByte(strings.TrimRight(line, "\r\n"), '\r'); at >= 0 {
			line = line[at+1:] // what was written over
		}
		b.WriteString(line)
	}
	return b.String(), echoed
}

// LastEvent is the number of the newest frame of a session's record.
func (s *Service) LastEvent(ctx context.Context, learner lab.LearnerID, id string) (uint64, error) {
	l, err := s.find(ctx, learner, id)
	if err != nil {
		return 0, err
	}
	return l.record.Last(), nil
}
