package shell

import (
	"fmt"
	"strconv"
	"strings"
)

// option is one parsed flag.
type option struct {
	name  string // one letter, or the long name where there is no letter
	value string
}

// getopt parses flags the GNU way: letters may be joined, options may come after
// operands, "--" ends them. short lists letters, each followed by ":" when it
// takes a value; long maps a long name to its letter (or to itself), with ":" after
// the long name when it takes a value.
func getopt(args []string, short string, long map[string]string) (opts []option, rest []string, err error) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return opts, append(rest, args[i+1:]...), nil
		case strings.HasPrefix(a, "--"):
			name, value, has := strings.Cut(a[2:], "=")
			letter, ok := long[name]
			if ok {
				opts = append(opts, option{letter, value})
				continue
			}
			if letter, ok = long[name+":"]; !ok {
				return nil, nil, fmt.Errorf("unrecognized option '--%s'", name)
			}
			if !has {
				if i++; i >= len(args) {
					return nil, nil, fmt.Errorf("option '--%s' requires an argument", name)
				}
				value = args[i]
			}
			opts = append(opts, option{letter, value})
		case len(a) > 1 && a[0] == '-':
			for j := 1; j < len(a); j++ {
				k := strings.IndexByte(short, a[j])
				if k < 0 || a[j] == ':' {
					return nil, nil, fmt.Errorf("invalid option -- '%c'", a[j])
				}
				if k+1 >= len(short) || short[k+1] != ':' {
					opts = append(opts, option{a[j : j+1], ""})
					continue
				}
				value := a[j+1:]
				if value == "" {
					if i++; i >= len(args) {
						return nil, nil, fmt.Errorf("option requires an argument -- '%c'", a[j])
					}
					value = args[i]
				}
				opts = append(opts, option{a[j : j+1], value})
				break
			}
		default:
			rest = append(rest, a)
		}
	}
	return opts, rest, nil
}

// getoptFirst is getopt for commands whose options end at the first operand.
func getoptFirst(args []string, short string, long map[string]string) ([]option, []string, error) {
	end := 0
	for end < len(args) && len(args[end]) > 1 && args[end][0] == '-' {
		a := args[end]
		end++
		if a == "--" {
			break
		}
		takes := false
		if strings.HasPrefix(a, "--") {
			_, takes = long[a[2:]+":"]
		} else {
			for j := 1; j < len(a); j++ {
				if k := strings.IndexByte(short, a[j]); k >= 0 && k+1 < len(short) && short[k+1] == ':' {
					takes = j == len(a)-1
					break
				}
			}
		}
		if takes && end < len(args) {
			end++
		}
	}
	opts, rest, err := getopt(args[:end], short, long)
	return opts, append(rest, args[end:]...), err
}

// flags is the set of letters that were given.
func flags(opts []option) map[string]bool {
	m := map[string]bool{}
	for _, o := range opts {
		m[o.name] = true
	}
	return m
}

// value is the last value of an option, or def.
func value(opts []option, name, def string) string {
	for _, o := range opts {
		if o.name == name {
			def = o.value
		}
	}
	return def
}

// count parses a number with an optional k, M or G suffix.
func count(s string) (int64, error) {
	mult := int64(1)
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			mult = 1 << 10
		case 'm', 'M':
			mult = 1 << 20
		case 'g', 'G':
			mult = 1 << 30
		}
		if mult > 1 {
			s = s[:len(s)-1]
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("invalid number '%s'", s)
	}
	return n * mult, nil
}
