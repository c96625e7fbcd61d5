package shell_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"kubistro/internal/shell"
)

// fullFS has no room: files can be made, but nothing can be written.
type fullFS struct{ shell.FS }

func (f fullFS) OpenFile(name string, flag int, perm fs.FileMode) (shell.File, error) {
	file, err := f.FS.OpenFile(name, flag, perm)
	if err != nil || flag&(os.O_WRONLY|os.O_RDWR) == 0 {
		return file, err
	}
	return fullFile{file}, nil
}

type fullFile struct{ shell.File }

func (fullFile) Write([]byte) (int, error) { return 0, syscall.EDQUOT }

func TestFullDiskIsTold(t *testing.T) {
	fsys := fullFS{newRootFS(t)}
	for _, tt := range []struct{ script, want string }{
		{"cat > f; echo $?", "cat: write error: disk quota exceeded\n1\n"},
		{"{ cat; } > f; echo $?", "cat: write error: disk quota exceeded\n1\n"},
		{"cat | cat > f; echo $?", "cat: write error: disk quota exceeded\n1\n"},
		{"yes > f; echo $?", "yes: write error: disk quota exceeded\n1\n"},
		{"echo x > f; echo $?", "echo: write error: disk quota exceeded\n1\n"},
		{"yes | head -1; echo $?", "y\n0\n"},
	} {
		if out, _ := run(t, fsys, tt.script, "some text\n"); !strings.EqualFold(out, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.script, out, tt.want)
		}
	}
}

// TestLoopsArePaced: an endless loop costs next to nothing and can be ended.
func TestLoopsArePaced(t *testing.T) {
	for name, script := range map[string]string{
		"commands": "while :; do :; done", "arithmetic": "while ((1)); do ((x++)); done", "C loop": "for ((;;)); do x=1; done",
		"until": "until [[ a == b ]]; do x=1; done", "output": "yes", "background": "while :; do :; done & wait",
		"awk": "awk 'BEGIN { while (1) x++ }'", "awk without a block": "awk 'BEGIN { for (;;) ; }'", "awk functions": "awk 'function f(n) { return n ? f(n-1) : 0 } BEGIN { while (f(100) == 0) y = y \"\" }'",
		"jq": "jq -n 'last(range(1e15))'", "jq recursion": "jq -n 'def f: f; f'", "jq generator": "jq -n '[limit(1; repeat(1) | select(. == 2))]'",
		"sort":    "i=0; while ((i<2000)); do echo $i$i$i; ((i++)); done > f; while :; do sort -rn f f f f; done > /dev/null",
		"reading": "while ((i<2000)); do echo $i$i$i; ((i++)); done > f; while :; do sha256sum f f f f f f f f; done > /dev/null",
	} {
		t.Run(name, func(t *testing.T) {
			l := rate.NewLimiter(1000, 1000)
			sh, err := shell.New(shell.Options{FS: newRootFS(t), Commands: shell.Commands(), Dir: "/", Limits: shell.Limits{Rate: l}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			before := cpuTime(t)
			var out bytes.Buffer
			sh.Run(ctx, script, shell.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
			if ctx.Err() == nil {
				t.Fatalf("the loop ended by itself: %.200s", out.String())
			}
			if spent := cpuTime(t) - before; spent > time.Second {
				t.Errorf("2 s of the loop took %s of CPU", spent)
			}
		})
	}
}

func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestPaceDoesNotChangeScripts(t *testing.T) {
	for script, want := range map[string]string{
		"i=0; while ((i<3)); do ((i++)); done; echo $i":            "3\n",
		"for ((i=0;i<3;i++)); do x=$x$i; done; echo $x":            "012\n",
		"for i in a b; do y=$y$i; done; echo $y":                   "ab\n",
		"x=; while [[ $x != aaa ]]; do x=a$x; done; echo $x $?":    "aaa 0\n",
		"false; while [[ 1 == 2 ]]; do x=1; done; echo $?":         "0\n",
		"echo x; history | wc -l; echo $?":                         "x\n0\n0\n",
		"for i in 1 2 3; do [[ $i == 2 ]] && break; done; echo $i": "2\n",
	} {
		if out, _ := run(t, nil, script, ""); out != want {
			t.Errorf("%s: got %q, want %q", script, out, want)
		}
	}
}

func TestCurlWriteOutOfAFailure(t *testing.T) {
	refused := shell.Net{Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: errors.Join(syscall.ECONNREFUSED)}
	}}
	sh, err := shell.New(shell.Options{FS: newRootFS(t), Commands: shell.Commands(), Dir: "/", Net: refused})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	code := sh.Run(t.Context(), `curl -s -o /dev/null -w '%{http_code} %{exitcode}\n' http://10.0.0.1/`, shell.Streams{In: strings.NewReader(""), Out: &out, Err: &out})
	if out.String() != "000 7\n" || code != 7 {
		t.Errorf("%q, code %d", out.String(), code)
	}
}
