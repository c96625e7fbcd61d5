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
)

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
	compares := 0
	last := func(a, b []byte) int {
		if compares++; compares%(paceEvery*paceCompares) == 0 {
			_ = charge(ctx, paceEvery) // when it is done, the rest goes by without waiting
		}
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
