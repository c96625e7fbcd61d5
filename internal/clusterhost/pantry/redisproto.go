package pantry

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// readCommand reads an array of bulk strings, or a line as somebody types it.
func readCommand(in *bufio.Reader) ([]string, error) {
	line, err := readLine(in)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(line, "*") {
		return splitQuoted(line), nil
	}
	n, err := strconv.Atoi(line[1:])
	if err != nil || n < 0 || n > redisArgs {
		return nil, errors.New("invalid multibulk length")
	}
	args := make([]string, 0, n)
	for total := 0; len(args) < n; {
		line, err := readLine(in)
		if err != nil {
			return nil, err
		}
		size, err := strconv.Atoi(strings.TrimPrefix(line, "$"))
		if total += size; err != nil || !strings.HasPrefix(line, "$") || size < 0 || total > redisBulk {
			return nil, errors.New("invalid bulk length")
		}
		bulk := make([]byte, size+2)
		if _, err := io.ReadFull(in, bulk); err != nil {
			return nil, err
		}
		args = append(args, string(bulk[:size]))
	}
	return args, nil
}

func readLine(in *bufio.Reader) (string, error) {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", errors.New("too big inline request")
	}
	return strings.TrimRight(string(line), "\r\n"), err
}

func writeCommand(w *bufio.Writer, args []string) {
	fmt.Fprintf(w, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(w, "$%d\r\n%s\r\n", len(a), a)
	}
}

// The kinds of answers besides int64, string, nil and []any.
type (
	redisStatus string
	redisError  string
)

func writeAnswer(w *bufio.Writer, a any) {
	switch a := a.(type) {
	case nil:
		io.WriteString(w, "$-1\r\n")
	case redisStatus:
		fmt.Fprintf(w, "+%s\r\n", a)
	case redisError:
		fmt.Fprintf(w, "-%s\r\n", a)
	case int64:
		fmt.Fprintf(w, ":%d\r\n", a)
	case string:
		fmt.Fprintf(w, "$%d\r\n%s\r\n", len(a), a)
	case []any:
		fmt.Fprintf(w, "*%d\r\n", len(a))
		for _, x := range a {
			writeAnswer(w, x)
		}
	}
}

// Bounds of an answer besides its bytes: any server may have sent it.
const (
	redisDepth = 8
	redisItems = 1 << 20
)

var errAnswerTooLarge = errors.New("the answer is too large")

func readAnswer(in *bufio.Reader) (any, error) {
	items, bytes := redisItems, redisBytes
	return readItem(in, redisDepth, &items, &bytes)
}

// readItem reads one value of an answer within what is left of its bounds.
func readItem(in *bufio.Reader, depth int, items, bytes *int) (any, error) {
	if *items--; *items < 0 || depth < 0 {
		return nil, errAnswerTooLarge
	}
	line, err := readLine(in)
	if err != nil || line == "" {
		return nil, errors.Join(err, io.ErrUnexpectedEOF)
	}
	rest := line[1:]
	switch line[0] {
	case '+':
		return redisStatus(rest), nil
	case '-':
		return redisError(rest), nil
	}
	n, err := strconv.ParseInt(rest, 10, 64)
	switch {
	case err != nil:
		return nil, err
	case line[0] == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case n > int64(*bytes):
		return nil, errAnswerTooLarge
	case line[0] == '$':
		*bytes -= int(n)
		bulk := make([]byte, n+2)
		_, err := io.ReadFull(in, bulk)
		return string(bulk[:n]), err
	case line[0] == '*':
		list := []any{}
		for range n {
			x, err := readItem(in, depth-1, items, bytes)
			if err != nil {
				return nil, err
			}
			list = append(list, x)
		}
		return list, nil
	}
	return nil, io.ErrUnexpectedEOF
}

// splitQuoted reads words as redis-cli does: "a b" is one.
func splitQuoted(line string) []string {
	var out []string
	var word strings.Builder
	quote, within := byte(0), false
	for k := range len(line) {
		switch ch := line[k]; {
		case quote != 0 && ch == quote:
			quote = 0
		case quote == 0 && (ch == '"' || ch == '\''):
			quote, within = ch, true
		case quote == 0 && (ch == ' ' || ch == '\t'):
			if within {
				out = append(out, word.String())
				word.Reset()
			}
			within = false
		default:
			word.WriteByte(ch)
			within = true
		}
	}
	if within {
		out = append(out, word.String())
	}
	return out
}
