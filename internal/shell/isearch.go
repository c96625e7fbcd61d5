package shell

import (
	"context"
	"strings"
)

// search is Ctrl-R. done: the line found is to be run.
func (e *lineEditor) search(ctx context.Context) (line string, done bool, err error) {
	saved, savedPrompt := string(e.buf), e.prompt
	var query []rune
	at := len(e.history)
	find := func(from int) {
		for i := from; i >= 0; i-- {
			if i < len(e.history) && strings.Contains(e.history[i], string(query)) {
				at = i
				e.buf = []rune(e.history[i])
				e.pos = len(e.buf)
				return
			}
		}
	}
	defer func() {
		e.prompt = savedPrompt
		e.refresh()
	}()
	for {
		e.prompt = "(reverse-i-search)`" + string(query) + "': "
		e.refresh()
		r, seq, resized, err := e.t.key(ctx)
		switch {
		case err != nil:
			return "", false, err
		case resized:
			continue
		case seq != "":
			return "", false, nil
		case r == 18:
			find(at - 1)
		case r == 3 || r == 7:
			e.buf = []rune(saved)
			e.pos = len(e.buf)
			return "", false, nil
		case r == '\r' || r == '\n':
			return string(e.buf), true, nil
		case r == 8 || r == 0x7f:
			query = query[:max(len(query)-1, 0)]
			find(len(e.history) - 1)
		case r >= ' ':
			query = append(query, r)
			find(min(at, len(e.history)-1))
		default:
			return "", false, nil
		}
	}
}
