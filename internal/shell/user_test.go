package shell_test

import (
	"bytes"
	"testing"

	"kubistro/internal/shell"
)

// TestIdentity is who a container's processes run as, by number and by name.
func TestIdentity(t *testing.T) {
	fs := newRootFS(t)
	if err := fs.Root.Mkdir("etc", 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := fs.Root.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("etc/passwd", "root:x:0:0:root:/root:/bin/sh\ncook:x:1000:1000::/:/bin/sh\n")
	write("etc/group", "root:x:0:\ncook:x:1000:\nkitchen:x:2000:\n")
	for _, c := range []struct {
		user   *shell.User
		script string
		want   string
	}{
		{&shell.User{UID: 1000, GID: 1000, Groups: []int64{2000, 1000, 3000}}, "id; id -u; id -G; id -un; whoami", "uid=1000(cook) gid=1000(cook) groups=1000(cook),2000(kitchen),3000\n1000\n1000 2000 3000\ncook\ncook\n"},
		{&shell.User{UID: 1001, GID: 2002}, "id; whoami || echo none", "uid=1001 gid=2002 groups=2002\nwhoami: unknown uid 1001\nnone\n"},
		{&shell.User{}, "id -u; whoami", "0\nroot\n"},
	} {
		sh, err := shell.New(shell.Options{FS: fs, Commands: shell.Commands(), User: c.user})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		sh.Run(t.Context(), c.script, shell.Streams{Out: &out, Err: &out})
		if out.String() != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.script, &out, c.want)
		}
	}
}

// TestForeignVariables are passed on though the shell can't name them.
func TestForeignVariables(t *testing.T) {
	sh, err := shell.New(shell.Options{FS: newRootFS(t), Commands: shell.Commands(), Env: []string{"1-data.x=y", "PLAIN=z"}})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := sh.Run(t.Context(), `env | grep -e data -e PLAIN | sort`, shell.Streams{Out: &out, Err: &out}); code != 0 || out.String() != "1-data.x=y\nPLAIN=z\n" {
		t.Errorf("%d %q", code, &out)
	}
}

// TestAshMessages are busybox's own words for redirections.
func TestAshMessages(t *testing.T) {
	sh, err := shell.New(shell.Options{FS: newRootFS(t), Commands: shell.Commands(), Name: "/bin/sh", Ash: true})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	sh.Run(t.Context(), `sh -c 'cat < /none; echo x > /no/where'`, shell.Streams{Out: &out, Err: &out})
	if want := "/bin/sh: can't open /none: no such file\n/bin/sh: can't create /no/where: nonexistent directory\n"; out.String() != want {
		t.Errorf("%q, want %q", &out, want)
	}
}

func TestExpr(t *testing.T) {
	for _, c := range []struct {
		script, want string
		code         int
	}{
		{"expr 3 % 2", "1\n", 0},
		{"expr 4 % 2", "0\n", 1},
		{"expr 1 + 2 '*' 3", "7\n", 0},
		{"expr '(' 1 + 2 ')' '*' 3", "9\n", 0},
		{"expr 10 '>' 9", "1\n", 0},
		{"expr a '<' b", "1\n", 0},
		{"expr '' '|' other", "other\n", 0},
		{"expr kitchen-12 : '.*-\\([0-9]*\\)'", "12\n", 0},
		{"expr abc : 'ab'", "2\n", 0},
		{"expr length kitchen", "7\n", 0},
		{"expr 1 / 0", "expr: division by zero\n", 2},
		{"expr 1 +", "expr: syntax error\n", 2},
		{"expr a + 1", "expr: non-integer argument\n", 2},
	} {
		sh, err := shell.New(shell.Options{FS: newRootFS(t), Commands: shell.Commands()})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if code := sh.Run(t.Context(), c.script, shell.Streams{Out: &out, Err: &out}); code != c.code || out.String() != c.want {
			t.Errorf("%s: %d %q, want %d %q", c.script, code, &out, c.code, c.want)
		}
	}
}
