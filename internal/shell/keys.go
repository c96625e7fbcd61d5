package shell

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"unicode/utf8"
)

// pasting collects a paste and hands it on when it is complete.
func (t *tty) pasting(p []byte) (rest []byte) {
	t.paste = append(t.paste, p...)
	i := bytes.Index(t.paste, []byte(pasteEnd))
	if i < 0 {
		if len(t.paste) > maxPaste {
			t.refused = true
		}
		if t.refused { // keep only what may be the beginning of the end mark
			cut := max(len(t.paste)-len(pasteEnd), 0)
			t.pasted += cut
			t.paste = append([]byte{}, t.paste[cut:]...)
		}
		return nil
	}
	rest = bytes.Clone(t.paste[i+len(pasteEnd):])
	text := t.paste[:i]
	t.paste = nil
	t.pasted += i
	switch {
	case t.refused || t.pasted > maxPaste || len(t.keys)+i > maxTypedIn:
		t.keys = utf8.AppendRune(t.keys, keyRefused)
	case t.mode == modeCooked:
		return append(bytes.ReplaceAll(text, []byte("\r"), []byte("\n")), rest...)
	default:
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
		for len(text) > 0 {
			r, n := utf8.DecodeRune(text)
			switch {
			case r == '\n' || r == '\r':
				t.keys = utf8.AppendRune(t.keys, keyPasteNL)
			case r == '\t':
				t.keys = utf8.AppendRune(t.keys, keyPasteTab)
			case r >= ' ' && r != 0x7f && r != utf8.RuneError:
				t.keys = append(t.keys, text[:n]...)
			}
			text = text[n:]
		}
	}
	return rest
}

// key waits for a key press: a rune, or an escape sequence in seq. It gives
// io.EOF when the input has ended, and resized=true after a change of size.
func (t *tty) key(ctx context.Context) (r rune, seq string, resized bool, err error) {
	size := t.size
	for {
		t.mu.Lock()
		r, n := nextKey(t.keys)
		if n > 0 {
			seq := ""
			if t.keys[0] == 0x1b {
				seq = string(t.keys[:n])
			}
			t.keys = t.keys[n:]
			t.mu.Unlock()
			return r, seq, false, nil
		}
		closed, changed, now := t.closed, t.changed, t.size
		t.mu.Unlock()
		if closed {
			return 0, "", false, io.EOF
		}
		if now != size {
			return 0, "", true, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, "", false, ctx.Err()
		}
	}
}

// nextKey decodes one key; n is 0 when more bytes are needed.
func nextKey(p []byte) (r rune, n int) {
	if len(p) == 0 {
		return 0, 0
	}
	if p[0] == 0x1b {
		if len(p) == 1 {
			return 0, 0
		}
		switch p[1] {
		case '[':
			for i := 2; i < len(p); i++ {
				if p[i] >= 0x40 && p[i] <= 0x7e {
					return 0x1b, i + 1
				}
				if i > 24 {
					return 0x1b, i
				}
			}
			return 0, 0
		case 'O':
			if len(p) < 3 {
				return 0, 0
			}
			return 0x1b, 3
		}
		return 0x1b, 2
	}
	if !utf8.FullRune(p) {
		return 0, 0
	}
	return utf8.DecodeRune(p)
}

func isPasteMark(r rune) bool { return r == keyRefused || r == keyPasteNL || r == keyPasteTab }

func pasteMessage(lang string) string {
	if lang == "zh" {
		return fmt.Sprintf("貼上的內容太長（上限 %d KB），已略過。長內容請用「檔案」分頁儲存成檔案。", maxPaste>>10)
	}
	return fmt.Sprintf("The pasted text is too long (at most %d KB) and was ignored. Save long text as a file in the Files tab.", maxPaste>>10)
}
