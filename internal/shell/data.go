package shell

import (
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"
)

func dataTools() map[string]tool {
	return map[string]tool{
		"jq":        {jq, "[-rcnesSjM] [--arg NAME VALUE] [--argjson NAME JSON] FILTER [FILE]...\nSelect and change JSON."},
		"base64":    {base64Command, "[-d] [-w COLUMNS] [FILE]\nEncode or decode base64."},
		"md5sum":    {digest(md5.New), "[FILE]...\nPrint MD5 sums."},
		"sha1sum":   {digest(sha1.New), "[FILE]...\nPrint SHA-1 sums."},
		"sha256sum": {digest(sha256.New), "[FILE]...\nPrint SHA-256 sums."},
		"hexdump":   {hexdump, "[-C] [FILE]...\nPrint bytes in hexadecimal."},
		"xxd":       {hexdump, "[FILE]...\nPrint bytes in hexadecimal."},
		"od":        {hexdump, "[FILE]...\nPrint bytes in hexadecimal."},
		"strings":   {stringsCommand, "[FILE]...\nPrint printable text in binary data."},
		"diff":      {diffCommand, "[-u] [-r] [-N] [-q] A B\nCompare two files or folders."},
		"cmp":       {cmp, "[-s] A B\nCompare two files byte by byte."},
		"less":      {pager, "[FILE]...\nShow text page by page: space, b, q."},
		"more":      {pager, "[FILE]...\nShow text page by page: space, b, q."},
		"tar":       {tarCommand, "[-]c|x|t[z][v][m]f FILE|- [-C DIR] [PATH]...\nPack and unpack archives."},
	}
}

func jq(ctx context.Context, env Env, args []string) int {
	names, values := []string{}, []any{}
	named := map[string]any{}
	var rest []string
	for i := 1; i < len(args); i++ {
		a := args[i]
		if (a == "--arg" || a == "--argjson") && i+2 < len(args) {
			var v any = args[i+2]
			if a == "--argjson" {
				if err := json.Unmarshal([]byte(args[i+2]), &v); err != nil {
					env.fail(args, "Invalid JSON text passed to --argjson")
					return 2
				}
			}
			names, values = append(names, "$"+args[i+1]), append(values, v)
			named[args[i+1]] = v
			i += 2
			continue
		}
		rest = append(rest, a)
	}
	opts, rest, err := getopt(rest, "rcnesSjMCa", map[string]string{"raw-output": "r", "compact-output": "c", "null-input": "n", "exit-status": "e", "slurp": "s", "sort-keys": "S", "join-output": "j", "monochrome-output": "M", "color-output": "C", "raw-input": "R", "tab": "t", "indent:": "i"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	filter := "."
	if len(rest) > 0 {
		filter, rest = rest[0], rest[1:]
	}
	query, err := gojq.Parse(filter)
	if err == nil && len(filter) > 64<<10 {
		err = errors.New("filter too long")
	}
	var code *gojq.Code
	if err == nil {
		names, values = append(names, "$ENV", "$named"), append(values, environMap(env), named)
		code, err = gojq.Compile(query, gojq.WithVariables(names), gojq.WithEnvironLoader(func() []string { return env.Environ() }))
	}
	if err != nil {
		env.fail(args, "error: %s\njq: 1 compile error", strings.TrimPrefix(err.Error(), "gojq: "))
		return 3
	}
	p := &jqPrinter{env: env, f: f, out: env.output(), indent: 2}
	if n, err := strconv.Atoi(value(opts, "i", "2")); err == nil {
		p.indent = min(max(n, 0), 8)
	}
	defer p.out.Flush()
	status := 0
	feed := func(v any) {
		if c := p.run(ctx, code, v, values); c != 0 {
			status = c
		}
	}
	if f["n"] {
		feed(nil)
		return p.status(status)
	}
	var all []any
	inCode := env.inputs(ctx, args, rest, func(name string, r io.Reader) error {
		if f["R"] {
			return newLines(ctx, r).each(func(l []byte) error { feed(string(l)); return nil })
		}
		budget := &budgetReader{r: r, left: maxJSON}
		d := json.NewDecoder(budget)
		d.UseNumber()
		for ctx.Err() == nil {
			var v any
			err := d.Decode(&v)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				status = 2
				p.out.Flush()
				if budget.left <= 0 {
					err = errors.New("input too large (at most 4 MiB)")
				}
				fmt.Fprintf(env.Err, "jq: parse error: %s\n", strings.TrimPrefix(err.Error(), "json: "))
				return nil
			}
			if v = jqValue(v); f["s"] {
				all = append(all, v)
				continue
			}
			feed(v)
			budget.left = maxJSON
			p.out.Flush()
		}
		return ctx.Err()
	})
	if f["s"] && status == 0 {
		feed(append([]any{}, all...))
	}
	if inCode != 0 {
		return 2
	}
	return p.status(status)
}

// maxJSON bounds one JSON value in memory; decoded it takes many times as much.
const maxJSON = 4 << 20

// budgetReader fails when more than left bytes are read.
type budgetReader struct {
	r    io.Reader
	left int
}

func (b *budgetReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func environMap(env Env) map[string]any {
	m := map[string]any{}
	for _, kv := range env.Environ() {
		k, v, _ := strings.Cut(kv, "=")
		m[k] = v
	}
	return m
}

// jqValue turns decoded numbers into those of gojq.
func jqValue(v any) any {
	switch v := v.(type) {
	case json.Number:
		if i, err := strconv.Atoi(v.String()); err == nil {
			return i
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = jqValue(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = jqValue(v[k])
		}
	}
	return v
}

type jqPrinter struct {
	env    Env
	f      map[string]bool
	out    *bufio.Writer
	indent int
	last   any
	any    bool
}

func (p *jqPrinter) status(code int) int {
	if code != 0 || !p.f["e"] {
		return code
	}
	switch {
	case !p.any:
		return 4
	case p.last == nil || p.last == false:
		return 1
	}
	return 0
}

func (p *jqPrinter) run(ctx context.Context, code *gojq.Code, v any, values []any) int {
	it := code.RunWithContext(&chargedContext{Context: ctx}, v, values...)
	for {
		v, ok := it.Next()
		if !ok {
			return 0
		}
		if err, ok := v.(error); ok {
			if ctx.Err() != nil {
				return 130
			}
			var halt *gojq.HaltError
			if errors.As(err, &halt) && halt.Value() == nil {
				return halt.ExitCode()
			}
			p.out.Flush()
			fmt.Fprintf(p.env.Err, "jq: error: %s\n", strings.TrimPrefix(err.Error(), "gojq: "))
			return 5
		}
		p.last, p.any = v, true
		if s, ok := v.(string); ok && (p.f["r"] || p.f["j"]) {
			p.out.WriteString(s)
		} else {
			b, err := gojq.Marshal(v)
			if err != nil {
				return 5
			}
			if !p.f["c"] {
				var buf bytes.Buffer
				indent := strings.Repeat(" ", p.indent)
				if p.f["t"] {
					indent = "\t"
				}
				if json.Indent(&buf, b, "", indent) == nil {
					b = buf.Bytes()
				}
			}
			if p.f["C"] || p.env.TTY && !p.f["M"] {
				b = colorJSON(b)
			}
			p.out.Write(b)
		}
		if !p.f["j"] {
			p.out.WriteByte('\n')
		}
	}
}

// colorJSON paints keys, strings and the rest as jq does.
func colorJSON(b []byte) []byte {
	var out bytes.Buffer
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c == '"':
			end := i + 1
			for end < len(b) && b[end] != '"' {
				if b[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end+1, len(b))
			color := "\x1b[0;32m"
			if rest := bytes.TrimLeft(b[end:], " "); len(rest) > 0 && rest[0] == ':' {
				color = "\x1b[1;34m"
			}
			out.WriteString(color)
			out.Write(b[i:end])
			out.WriteString("\x1b[0m")
			i = end
		case bytes.HasPrefix(b[i:], []byte("null")):
			out.WriteString("\x1b[1;30mnull\x1b[0m")
			i += 4
		default:
			out.WriteByte(c)
			i++
		}
	}
	return out.Bytes()
}
