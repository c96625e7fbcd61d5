package pantry

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"kubistro/internal/shell"
)

// site is a server block.
type site struct {
	port   int
	root   string
	index  string
	status int    // of a return directive; 0: files
	text   string // its text, or where it sends to
	kind   string // Content-Type of text
}

// readNginxConfig reads the server blocks of conf.d/*.conf. A directive that isn't
// understood is left out, a fault in the syntax is an error with file and line.
func readNginxConfig(fsys shell.FS) ([]site, error) {
	entries, err := fsys.ReadDir(nginxConf)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var sites []site
	for _, e := range entries {
		if e.IsDir() || path.Ext(e.Name()) != ".conf" {
			continue
		}
		name := path.Join(nginxConf, e.Name())
		file, err := fsys.OpenFile(name, readOnly, 0)
		if err != nil {
			return nil, fmt.Errorf("open() %q failed (2: No such file or directory)", name)
		}
		text, err := io.ReadAll(io.LimitReader(file, 256<<10))
		file.Close()
		if err != nil {
			return nil, err
		}
		found, err := parseSites(string(text))
		if err != nil {
			var fault *syntaxFault
			if errors.As(err, &fault) {
				return nil, fmt.Errorf("%s in %s:%d", fault.text, name, fault.line)
			}
			return nil, err
		}
		sites = append(sites, found...)
	}
	return sites, nil
}

// syntaxFault is what is wrong with a configuration, and where.
type syntaxFault struct {
	text string
	line int
}

func (f *syntaxFault) Error() string { return f.text }

// parseSites reads one file; its errors are *syntaxFault.
func parseSites(text string) ([]site, error) {
	var sites []site
	var words []string
	var blocks []string // names of the open blocks
	for line, rest := 1, text; ; {
		word, quoted, after, lines, err := nextWord(rest)
		line += lines
		if err != nil {
			return nil, &syntaxFault{err.Error(), line}
		}
		rest = after
		switch {
		case quoted:
			words = append(words, word)
		case word == "":
			if len(blocks) > 0 {
				return nil, &syntaxFault{`unexpected end of file, expecting "}"`, line}
			}
			if len(words) > 0 {
				return nil, &syntaxFault{`unexpected end of file, expecting ";"`, line}
			}
			return sites, nil
		case word == "{":
			if len(words) == 0 {
				return nil, &syntaxFault{`unexpected "{"`, line}
			}
			if words[0] == "server" && len(blocks) == 0 {
				sites = append(sites, site{port: 80, root: nginxRoot, index: "index.html", kind: "text/plain"})
			}
			blocks = append(blocks, strings.Join(words, " "))
			words = nil
		case word == "}":
			if len(blocks) == 0 || len(words) > 0 {
				return nil, &syntaxFault{`unexpected "}"`, line}
			}
			blocks = blocks[:len(blocks)-1]
		case word == ";":
			if len(words) == 0 {
				return nil, &syntaxFault{`unexpected ";"`, line}
			}
			if len(blocks) > 0 && blocks[0] == "server" && (len(blocks) == 1 || blocks[1] == "location /") {
				if err := sites[len(sites)-1].set(words); err != nil {
					return nil, &syntaxFault{err.Error(), line}
				}
			}
			words = nil
		default:
			words = append(words, word)
		}
	}
}

// set applies a directive.
func (s *site) set(words []string) error {
	arg := ""
	if len(words) > 1 {
		arg = words[1]
	}
	switch words[0] {
	case "listen":
		port := arg[strings.LastIndexByte(arg, ':')+1:]
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return fmt.Errorf("invalid port in %q of the \"listen\" directive", arg)
		}
		s.port = n
	case "root":
		s.root = path.Clean("/" + arg)
	case "index":
		s.index = path.Base("/" + arg)
	case "default_type":
		s.kind = arg
	case "return":
		n, err := strconv.Atoi(arg)
		if err != nil || n < 100 || n > 599 {
			return fmt.Errorf("invalid return code %q", arg)
		}
		s.status = n
		if len(words) > 2 {
			s.text = strings.ReplaceAll(words[2], `\n`, "\n")
		}
	}
	return nil
}

// nextWord reads a word, a quoted string or one of ; { } and counts the lines before its end.
func nextWord(s string) (word string, quoted bool, rest string, lines int, err error) {
	for {
		trimmed := strings.TrimLeft(s, " \t\r\n")
		lines += strings.Count(s[:len(s)-len(trimmed)], "\n")
		s = trimmed
		if !strings.HasPrefix(s, "#") {
			break
		}
		_, s, _ = strings.Cut(s, "\n")
		lines++
	}
	if s == "" {
		return "", false, "", lines, nil
	}
	switch c := s[0]; c {
	case ';', '{', '}':
		return s[:1], false, s[1:], lines, nil
	case '"', '\'':
		end := strings.IndexByte(s[1:], c)
		if end < 0 {
			return "", false, "", lines, errors.New(`unexpected end of file, expecting ";" or "}"`)
		}
		word = s[1 : 1+end]
		return word, true, s[2+end:], lines + strings.Count(word, "\n"), nil
	}
	end := strings.IndexAny(s, " \t\r\n;{}")
	if end < 0 {
		end = len(s)
	}
	return s[:end], false, s[end:], lines, nil
}
