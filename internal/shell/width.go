package shell

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// runeWidth is how many cells a terminal uses for r: 0, 1 or 2.
func runeWidth(r rune) int {
	switch {
	case r < 32 || r == 0x7f:
		return 0
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0x303e, r >= 0x3041 && r <= 0x33ff,
		r >= 0x3400 && r <= 0x4dbf, r >= 0x4e00 && r <= 0x9fff, r >= 0xa000 && r <= 0xa4cf,
		r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f,
		r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f680 && r <= 0x1f6ff, r >= 0x1f900 && r <= 0x1f9ff,
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// stringWidth is the width of s in cells; escape sequences count nothing.
func stringWidth(s string) int {
	w := 0
	for s != "" {
		if s[0] == 0x1b {
			s = s[escapeLen(s):]
			continue
		}
		r, n := utf8.DecodeRuneInString(s)
		w += runeWidth(r)
		s = s[n:]
	}
	return w
}

// escapeLen is the length of the escape sequence that s starts with.
func escapeLen(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s); i++ {
			if s[i] >= 0x40 && s[i] <= 0x7e {
				return i + 1
			}
		}
		return len(s)
	case ']':
		if i := strings.IndexAny(s, "\a"); i >= 0 {
			return i + 1
		}
		return len(s)
	}
	return 2
}
