package shell

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// span is a range of a cut list, from 1; to may be huge.
type span struct{ from, to int }

func parseSpans(s string) ([]span, error) {
	var out []span
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		a, b, ranged := strings.Cut(part, "-")
		sp := span{1, 1 << 30}
		var err error
		if a != "" {
			if sp.from, err = strconv.Atoi(a); err != nil || sp.from < 1 {
				return nil, fmt.Errorf("invalid field value '%s'", part)
			}
		}
		if !ranged {
			sp.to = sp.from
		} else if b != "" {
			if sp.to, err = strconv.Atoi(b); err != nil || sp.to < sp.from {
				return nil, fmt.Errorf("invalid decreasing range")
			}
		}
		out = append(out, sp)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("you must specify a list of bytes, characters, or fields")
	}
	return out, nil
}

func cut(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "f:d:c:b:s", map[string]string{"fields:": "f", "delimiter:": "d", "characters:": "c", "output-delimiter:": "o", "complement": "x"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	spans, err := parseSpans(value(opts, "f", value(opts, "c", value(opts, "b", ""))))
	if err != nil {
		return env.fail(args, "%v", err)
	}
	delim := value(opts, "d", "\t")
	if utf8.RuneCountInString(delim) != 1 {
		return env.fail(args, "the delimiter must be a single character")
	}
	in := func(i int) bool {
		for _, s := range spans {
			if i >= s.from && i <= s.to {
				return !f["x"]
			}
		}
		return f["x"]
	}
	out := env.output()
	defer out.Flush()
	return env.inputs(ctx, args, names, func(_ string, r io.Reader) error {
		return newLines(ctx, r).each(func(line []byte) error {
			if !f["f"] {
				i := 0
				for _, c := range string(line) {
					if i++; in(i) {
						out.WriteRune(c)
					}
				}
				return out.WriteByte('\n')
			}
			if !bytes.Contains(line, []byte(delim)) {
				if !f["s"] {
					out.Write(line)
					return out.WriteByte('\n')
				}
				return nil
			}
			first := true
			for i, c := range strings.Split(string(line), delim) {
				if in(i + 1) {
					if !first {
						out.WriteString(value(opts, "o", delim))
					}
					first = false
					out.WriteString(c)
				}
			}
			return out.WriteByte('\n')
		})
	})
}

// unescape expands \n, \t, \\, \NNN and the like.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch c := s[i]; c {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'a':
			b.WriteByte(7)
		case 'b':
			b.WriteByte(8)
		case 'f':
			b.WriteByte(12)
		case 'v':
			b.WriteByte(11)
		case 'e':
			b.WriteByte(27)
		case '0', '1', '2', '3', '4', '5', '6', '7':
			v, n := 0, 0
			for n < 3+btoi(c == '0') && i < len(s) && s[i] >= '0' && s[i] <= '7' {
				v = v*8 + int(s[i]-'0')
				i++
				n++
			}
			i--
			b.WriteByte(byte(v))
		case 'x':
			v, n := 0, 0
			for n < 2 && i+1 < len(s) && strings.IndexByte("0123456789abcdefABCDEF", s[i+1]) >= 0 {
				d, _ := strconv.ParseInt(s[i+1:i+2], 16, 0)
				v = v*16 + int(d)
				i++
				n++
			}
			b.WriteByte(byte(v))
		case '\\', '"', '\'':
			b.WriteByte(c)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
	return b.String()
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func runeClass(name string) func(rune) bool {
	switch name {
	case "alpha":
		return unicode.IsLetter
	case "digit":
		return func(r rune) bool { return r >= '0' && r <= '9' }
	case "alnum":
		return func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	case "upper":
		return unicode.IsUpper
	case "lower":
		return unicode.IsLower
	case "space":
		return unicode.IsSpace
	case "blank":
		return func(r rune) bool { return r == ' ' || r == '\t' }
	case "punct":
		return func(r rune) bool { return r < 128 && (unicode.IsPunct(r) || unicode.IsSymbol(r)) }
	case "cntrl":
		return unicode.IsControl
	case "print":
		return unicode.IsPrint
	case "graph":
		return unicode.IsGraphic
	case "xdigit":
		return func(r rune) bool { return strings.ContainsRune("0123456789abcdefABCDEF", r) }
	}
	return nil
}

// trSet expands a set of tr in order.
func trSet(s string) ([]rune, error) {
	s = unescape(s)
	var out []rune
	rs := []rune(s)
	for i := 0; i < len(rs); i++ {
		if rs[i] == '[' && i+1 < len(rs) && rs[i+1] == ':' {
			if end := strings.Index(string(rs[i+2:]), ":]"); end >= 0 {
				name := string(rs[i+2:])[:end]
				class := runeClass(name)
				if class == nil {
					return nil, fmt.Errorf("invalid character class '%s'", name)
				}
				for r := rune(0); r < 0x180; r++ {
					if class(r) {
						out = append(out, r)
					}
				}
				i += 3 + utf8.RuneCountInString(name)
				continue
			}
		}
		if i+2 < len(rs) && rs[i+1] == '-' {
			if rs[i] > rs[i+2] {
				return nil, fmt.Errorf("range-endpoints of '%c-%c' are in reverse collating sequence order", rs[i], rs[i+2])
			}
			for r := rs[i]; r <= rs[i+2] && len(out) < 1<<17; r++ {
				out = append(out, r)
			}
			i += 2
			continue
		}
		out = append(out, rs[i])
	}
	return out, nil
}

func tr(ctx context.Context, env Env, args []string) int {
	opts, sets, err := getoptFirst(args[1:], "dscC", map[string]string{"delete": "d", "squeeze-repeats": "s", "complement": "c"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	comp := f["c"] || f["C"]
	if len(sets) == 0 || len(sets) > 2 || len(sets) == 1 && !f["d"] && !f["s"] {
		return env.fail(args, "missing operand")
	}
	set1, err := trSet(sets[0])
	if err != nil {
		return env.fail(args, "%v", err)
	}
	var set2 []rune
	if len(sets) == 2 {
		if set2, err = trSet(sets[1]); err != nil {
			return env.fail(args, "%v", err)
		}
		if len(set2) == 0 && !f["d"] {
			return env.fail(args, "when not truncating set1, string2 must be non-empty")
		}
	}
	index := make(map[rune]int, len(set1))
	for i, r := range set1 {
		if _, ok := index[r]; !ok || !f["d"] {
			index[r] = i
		}
	}
	squeeze := map[rune]bool{}
	switch {
	case f["s"] && len(sets) == 2:
		for _, r := range set2 {
			squeeze[r] = true
		}
	case f["s"] && !comp:
		for _, r := range set1 {
			squeeze[r] = true
		}
	}
	in, out := bufio.NewReader(env.In), env.output()
	defer out.Flush()
	last := rune(-1)
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return 130
		}
		if in.Buffered() == 0 {
			out.Flush()
		}
		r, size, err := in.ReadRune()
		if err != nil {
			return 0
		}
		if r == utf8.RuneError && size == 1 {
			in.UnreadRune()
			b, _ := in.ReadByte()
			out.WriteByte(b)
			continue
		}
		i, member := index[r]
		if comp {
			member = !member
			i = len(set2) - 1
		}
		if member {
			if f["d"] {
				continue
			}
			if len(set2) > 0 {
				r = set2[min(i, len(set2)-1)]
			}
		}
		if (squeeze[r] || f["s"] && comp && len(sets) == 1 && member) && r == last {
			continue
		}
		last = r
		if _, err := out.WriteRune(r); err != nil {
			return 1
		}
	}
}

type sortKey struct {
	from, to int // fields from 1; to 0: end of the line
	mode     string
}

func sortCommand(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "nrut:k:hVfbsco:gM", map[string]string{"numeric-sort": "n", "reverse": "r", "unique": "u", "human-numeric-sort": "h", "version-sort": "V", "ignore-case": "f", "key:": "k", "field-separator:": "t", "output:": "o", "stable": "s"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	mode := ""
	for _, o := range opts {
		if strings.Contains("nhVfbrg", o.name) {
			mode += o.name
		}
	}
	var keys []sortKey
	for _, o := range opts {
		if o.name != "k" {
			continue
		}
		k, err := parseSortKey(o.value, mode)
		if err != nil {
			return env.fail(args, "%v", err)
		}
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		keys = []sortKey{{0, 0, mode}}
	}
	var h held
	if code := env.inputs(ctx, args, names, func(_ string, r io.Reader) error { return newLines(ctx, r).each(h.add) }); code != 0 {
		return code
	}
	sep := value(opts, "t", "")
	compare := func(a, b []byte) int {
		for _, k := range keys {
			if c := k.compare(sortField(a, k, sep), sortField(b, k, sep)); c != 0 {
				return c
			}
		}
		return 0
	}
	last := func(a, b []byte) int {
		if c := compare(a, b); c != 0 || f["s"] || f["u"] {
			return c
		}
		c := bytes.Compare(a, b)
		if strings.Contains(mode, "r") {
			c = -c
		}
		return c
	}
	if f["c"] {
		for i := 1; i < len(h.lines); i++ {
			if last(h.lines[i-1], h.lines[i]) > 0 {
				return env.fail(args, "-:%d: disorder: %s", i+1, h.lines[i])
			}
		}
		return 0
	}
	slices.SortStableFunc(h.lines, last)
	var w io.Writer = env.Out
	if name := value(opts, "o", ""); name != "" {
		file, err := env.FS.OpenFile(abs(env.Dir, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
		if err != nil {
			return env.fail(args, "%s: %s", name, errText(err))
		}
		defer file.Close()
		w = file
	}
	out := bufio.NewWriter(w)
	defer out.Flush()
	for i, l := range h.lines {
		if f["u"] && i > 0 && compare(h.lines[i-1], l) == 0 {
			continue
		}
		out.Write(l)
		out.WriteByte('\n')
	}
	return 0
}

func parseSortKey(s, mode string) (sortKey, error) {
	from, to, ranged := strings.Cut(s, ",")
	k := sortKey{mode: mode}
	field := func(s string) (int, error) {
		digits := strings.TrimRight(s, "nhVfbrgM")
		if m := s[len(digits):]; m != "" {
			k.mode = m
		}
		digits, _, _ = strings.Cut(digits, ".")
		n, err := strconv.Atoi(digits)
		if err != nil || n < 1 {
			return 0, fmt.Errorf("invalid field specification '%s'", s)
		}
		return n, nil
	}
	var err error
	if k.from, err = field(from); err == nil && ranged {
		k.to, err = field(to)
	}
	return k, err
}

func sortField(line []byte, k sortKey, sep string) string {
	if k.from == 0 {
		return string(line)
	}
	var fields []string
	if sep != "" {
		fields = strings.Split(string(line), sep)
	} else {
		fields = strings.Fields(string(line))
		sep = " "
	}
	if k.from > len(fields) {
		return ""
	}
	to := len(fields)
	if k.to > 0 {
		to = min(max(k.to, k.from), to)
	}
	return strings.Join(fields[k.from-1:to], sep)
}

func (k sortKey) compare(a, b string) int {
	c := 0
	switch {
	case strings.Contains(k.mode, "h"):
		c = compareFloat(humanNumber(a), humanNumber(b))
	case strings.ContainsAny(k.mode, "ng"):
		c = compareFloat(leadingNumber(a), leadingNumber(b))
	case strings.Contains(k.mode, "V"):
		c = compareVersion(a, b)
	case strings.Contains(k.mode, "f"):
		c = strings.Compare(strings.ToUpper(a), strings.ToUpper(b))
	default:
		c = strings.Compare(a, b)
	}
	if strings.Contains(k.mode, "r") {
		c = -c
	}
	return c
}

func compareFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// leadingNumber is the number that a string starts with, as awk and sort -n see it.
func leadingNumber(s string) float64 {
	s = strings.TrimLeft(s, " \t\n")
	end, dot, digits := 0, false, false
	for end < len(s) {
		c := s[end]
		switch {
		case c >= '0' && c <= '9':
			digits = true
		case (c == '-' || c == '+') && end == 0:
		case c == '.' && !dot:
			dot = true
		default:
			goto done
		}
		end++
	}
done:
	if digits && end < len(s) && (s[end] == 'e' || s[end] == 'E') {
		e := end + 1
		if e < len(s) && (s[e] == '-' || s[e] == '+') {
			e++
		}
		if e < len(s) && s[e] >= '0' && s[e] <= '9' {
			for e < len(s) && s[e] >= '0' && s[e] <= '9' {
				e++
			}
			end = e
		}
	}
	f, _ := strconv.ParseFloat(s[:end], 64)
	return f
}

func humanNumber(s string) float64 {
	s = strings.TrimSpace(s)
	f := leadingNumber(s)
	i := strings.IndexFunc(s, func(r rune) bool { return unicode.IsLetter(r) })
	if i < 0 {
		return f
	}
	exp := strings.IndexByte("KMGTPE", byte(unicode.ToUpper(rune(s[i])))) + 1
	for ; exp > 0; exp-- {
		f *= 1024
	}
	return f
}

func compareVersion(a, b string) int {
	for a != "" && b != "" {
		da, db := digitPrefix(a), digitPrefix(b)
		if da != "" && db != "" {
			if c := compareFloat(leadingNumber(da), leadingNumber(db)); c != 0 {
				return c
			}
			a, b = a[len(da):], b[len(db):]
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func digitPrefix(s string) string {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i]
}

func uniq(ctx context.Context, env Env, args []string) int {
	opts, names, err := getopt(args[1:], "cduif:s:w:", map[string]string{"count": "c", "repeated": "d", "unique": "u", "ignore-case": "i"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	skip, _ := strconv.Atoi(value(opts, "f", "0"))
	key := func(b []byte) string {
		s := string(b)
		if skip > 0 {
			fields := strings.Fields(s)
			s = strings.Join(fields[min(skip, len(fields)):], " ")
		}
		if f["i"] {
			s = strings.ToLower(s)
		}
		return s
	}
	out := env.output()
	defer out.Flush()
	return env.inputs(ctx, args, names[:min(1, len(names))], func(_ string, r io.Reader) error {
		var last []byte
		lastKey, n := "", 0
		show := func() {
			if n == 0 || f["d"] && n < 2 || f["u"] && n > 1 {
				return
			}
			if f["c"] {
				fmt.Fprintf(out, "%7d ", n)
			}
			out.Write(last)
			out.WriteByte('\n')
		}
		err := newLines(ctx, r).each(func(line []byte) error {
			k := key(line)
			if n > 0 && k == lastKey {
				n++
				return nil
			}
			show()
			last, lastKey, n = bytes.Clone(line), k, 1
			return nil
		})
		show()
		return err
	})
}

// sortedKeys lists a map's keys in order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
