package shell

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// nameOf finds the name that /etc/passwd or /etc/group has for a number.
func (e Env) nameOf(file string, number int64) (string, bool) {
	f, err := e.FS.OpenFile("/etc/"+file, os.O_RDONLY, 0)
	if err != nil {
		return "root", number == 0
	}
	defer f.Close()
	want := strconv.FormatInt(number, 10)
	scan := bufio.NewScanner(f)
	for n := 0; scan.Scan() && n < 1000; n++ {
		if fields := strings.Split(scan.Text(), ":"); len(fields) > 2 && fields[2] == want {
			return fields[0], true
		}
	}
	return "", false
}

func whoami(_ context.Context, env Env, args []string) int {
	if env.User != nil {
		if _, ok := env.nameOf("passwd", env.User.UID); !ok {
			return env.fail(args, fmt.Sprintf("unknown uid %d", env.User.UID))
		}
	}
	fmt.Fprintln(env.Out, env.user())
	return 0
}

// identity is who runs the command; in a learner's own shell that is always one user.
func (e Env) identity() User {
	if e.User != nil {
		return *e.User
	}
	if e.user() == "root" {
		return User{}
	}
	return User{UID: 1000, GID: 1000}
}

func id(_ context.Context, env Env, args []string) int {
	opts, _, err := getopt(args[1:], "ugGnr", map[string]string{"user": "u", "group": "g", "groups": "G", "name": "n"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	f, u := flags(opts), env.identity()
	groups := []int64{u.GID}
	for _, g := range u.Groups {
		if !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	show := func(file string, number int64) string {
		if f["n"] {
			if name, ok := env.numberName(file, number); ok {
				return name
			}
		}
		return strconv.FormatInt(number, 10)
	}
	switch {
	case f["u"]:
		fmt.Fprintln(env.Out, show("passwd", u.UID))
	case f["g"]:
		fmt.Fprintln(env.Out, show("group", u.GID))
	case f["G"]:
		fmt.Fprintln(env.Out, joinNumbers(groups, " ", func(g int64) string { return show("group", g) }))
	default:
		both := func(file string, number int64) string {
			if name, ok := env.numberName(file, number); ok {
				return fmt.Sprintf("%d(%s)", number, name)
			}
			return strconv.FormatInt(number, 10)
		}
		fmt.Fprintf(env.Out, "uid=%s gid=%s groups=%s\n", both("passwd", u.UID), both("group", u.GID),
			joinNumbers(groups, ",", func(g int64) string { return both("group", g) }))
	}
	return 0
}

// numberName is the name of a user or group.
func (e Env) numberName(file string, number int64) (string, bool) {
	if e.User == nil {
		return e.user(), true
	}
	return e.nameOf(file, number)
}

func joinNumbers(numbers []int64, sep string, show func(int64) string) string {
	out := make([]string, len(numbers))
	for k, n := range numbers {
		out[k] = show(n)
	}
	return strings.Join(out, sep)
}
