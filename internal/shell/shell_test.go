package shell_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kubistro/internal/shell"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// run runs a script in a fresh shell over fsys (a new one when nil).
func run(t testing.TB, fsys shell.FS, script, stdin string) (out string, code int) {
	t.Helper()
	if fsys == nil {
		fsys = newRootFS(t)
	}
	sh, err := shell.New(shell.Options{FS: fsys, Commands: shell.Commands(), Dir: "/", Env: []string{"USER=learner", "HOME=/"}, Hostname: "kubistro"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var buf bytes.Buffer
	code = sh.Run(ctx, script, shell.Streams{In: strings.NewReader(stdin), Out: &buf, Err: &buf})
	if ctx.Err() != nil {
		t.Fatalf("%q did not end", script)
	}
	return buf.String(), code
}

func TestScripts(t *testing.T) {
	for _, tt := range []struct{ name, script, stdin, want string }{
		{"variables", `x=1; y="$x 2"; echo $y`, "", "1 2\n"},
		{"status", `false; echo $?; x=$?; echo $x; (exit 3); y=$?; echo $y`, "", "1\n0\n3\n"},
		{"pipeline", `for i in 3 1 2; do echo $i; done | sort | head -n 2`, "", "1\n2\n"},
		{"issue example", `for i in 1 2 3; do echo "Hostname: $((i%2))"; done | sort | uniq -c`, "", "      1 Hostname: 0\n      2 Hostname: 1\n"},
		{"redirection", `echo a > f; echo b >> f; cat < f; wc -l f`, "", "a\nb\n2 f\n"},
		{"here-document", "cat <<EOF\n$((1+1)) x\nEOF", "", "2 x\n"},
		{"substitution", `echo "[$(echo hi; echo there)]"`, "", "[hi\nthere]\n"},
		{"file substitution", `echo abc > f; echo "$(<f)"`, "", "abc\n"},
		{"functions", `f() { echo "$1-$2"; return 4; }; f a b; echo $?`, "", "a-b\n4\n"},
		{"while read", `printf 'a b\nc d\n' | while read x y; do echo "$y$x"; done`, "", "ba\ndc\n"},
		{"read from input", `read a; read b; echo "$b,$a"`, "one\ntwo\n", "two,one\n"},
		{"read at the end", `while read l; do echo "<$l>"; done`, "a\nb\nc", "<a>\n<b>\n"},
		{"read from file", `printf '1\n2\n' > f; while read l; do echo "<$l>"; done < f`, "", "<1>\n<2>\n"},
		{"cat stdin", `cat`, "hello", "hello"},
		{"not found", `nosuch; echo $?`, "", "sh: nosuch: not found\n127\n"},
		{"missing file", `cat nosuch; echo $?`, "", "cat: nosuch: No such file or directory\n1\n"},
		{"missing redirect", `cat < nosuch; echo $?`, "", "sh: nosuch: No such file or directory\n1\n"},
		{"cd", `mkdir -p a/b; cd a/b; pwd; cd ..; pwd; cd nosuch; echo $?`, "", "/a/b\n/a\nsh: cd: nosuch: No such file or directory\n1\n"},
		{"eval", `eval 'x=$(echo 5)'; eval "echo \$x"`, "", "5\n"},
		{"trap", `trap 'echo bye' EXIT; echo hi`, "", "hi\nbye\n"},
		{"source", `echo 'y=7' > s; . ./s; echo $y`, "", "7\n"},
		{"script", `printf 'echo "$0 $1"\n' > s.sh; sh s.sh q; chmod +x s.sh; ./s.sh r`, "", "s.sh q\n./s.sh r\n"},
		{"sh -c", `sh -c 'echo $0 $1' a b; X=1 sh -c 'echo $X'`, "", "a b\n1\n"},
		{"alias", `alias ll='ls -1'; touch z; ll`, "", "z\n"},
		{"and or", `true && echo y || echo n; false && echo y || echo n`, "", "y\nn\n"},
		{"case", `case abc in a*) echo A;; *) echo other;; esac`, "", "A\n"},
		{"glob", `touch a.yaml b.yaml c.txt; echo *.yaml`, "", "a.yaml b.yaml\n"},
		{"background", `(echo in) & wait; echo out`, "", "in\nout\n"},
		{"kill", `sleep 100 & kill $!; wait; echo done`, "", "done\n"},
		{"test", `[ -f x ] || echo no; touch x; [ -f x ] && [[ x == x* ]] && echo yes`, "", "no\nyes\n"},
		{"printf", `printf '%s=%d %5.2f|%-4s|\n' a 3 2.5 z`, "", "a=3  2.50|z   |\n"},
		{"pipe to early end", `yes | head -n 2; echo $?`, "", "y\ny\n0\n"},
		{"echo loop to early end", `while :; do echo x; done | head -n 1; echo after`, "", "x\nafter\n"},
		{"set -e", `set -e; x=1; y=$x$x; false; echo no`, "", ""},
		{"pids are made up", `echo $$ $PPID; eval 'echo $$'`, "", "42 42\n42\n"},
		{"tilde", `cd; echo ~; echo ~root; x=~daemon; echo $x`, "", "/\n~root\n~daemon\n"},
		{"devices", `echo x > /dev/null; cat /dev/null; head -c 3 /dev/zero | wc -c`, "", "3\n"},
		{"command -v", `command -v ls cd; command -v nosuch; echo $?`, "", "/usr/bin/ls\ncd\n1\n"},
		{"bin path", `/bin/echo hi`, "", "hi\n"},
		{"xargs", `seq 1 3 | xargs -n 1 echo n; echo a b | xargs -I{} echo '<{}>'`, "", "n 1\nn 2\nn 3\n<a b>\n"},
		{"arrays", `a=(1 2 3); a+=(4); echo ${#a[@]} ${a[3]}`, "", "4 4\n"},
		{"append", `x=a; x+=b; echo $x`, "", "ab\n"},
		{"stderr", `ls nosuch 2> e; cat e; ls nosuch 2>&1 | wc -l`, "", "ls: nosuch: No such file or directory\n1\n"},
		{"timeout", `timeout 0.1 sleep 5; echo $?`, "", "124\n"},
		{"nested pipes", `(echo a; echo b) | (read x; cat) | { cat; echo c; }`, "", "b\nc\n"},
		{"syntax error", `if true; then`, "", "sh: line 1: syntax error: `if` must be followed by a statement list\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := run(t, nil, tt.script, tt.stdin)
			if got != tt.want && tt.name != "syntax error" {
				t.Errorf("%s\ngot  %q\nwant %q", tt.script, got, tt.want)
			}
		})
	}
}

func TestHostileScripts(t *testing.T) {
	for _, tt := range []struct{ name, script, want string }{
		{"fork bomb", `:(){ :|:& };: ; while true; do true; done`, "too many jobs"},
		{"fork bomb with words", `bomb() { bomb | bomb & }; bomb; while true; do true; done`, "too many jobs"},
		{"background loop", `while true; do sleep 1000 & done`, "too many jobs"},
		{"fork bomb of shells", `f() { sh -c 'sleep 100' & f; }; f`, "too many jobs"},
		{"endless recursion", `f() { f; }; f`, "nested too deeply"},
		{"recursion through substitution", `f() { x=$(f); }; f`, "nested too deeply"},
		{"recursion through eval", `f() { eval f; }; f`, "nested too deeply"},
		{"recursion of shells", `export F='sh -c "$F"'; sh -c "$F"`, "nested too deeply"},
		{"doubling variable", `x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done`, "variable too long"},
		{"doubling by append", `x=aaaaaaaaaaaaaaaa; while :; do x+=$x; done`, "variable too long"},
		{"doubling array", `a=(aaaaaaaaaaaaaaaaaa); while :; do a=("${a[@]}" "${a[@]}"); done`, "variable too long"},
		{"doubling parameters", `set -- a a a a; while :; do set -- "$@" "$@"; done`, "argument list too long"},
		{"replacement", `x=aaaaaaaaaaaaaaaa; for i in 1 2 3 4 5 6; do x=${x//a/$x}; done`, "variable too long"},
		{"endless substitution", `x=$(yes)`, "output too long"},
		{"endless substitution of a loop", `x=$(while :; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done)`, "output too long"},
		{"endless file substitution", `x=$(</dev/zero)`, "output too long"},
		{"braces", `echo {1..100000000}`, "too many words"},
		{"nested braces", `echo {1..1000}{1..1000}{1..1000}`, "too many words"},
		{"wide printf", `printf '%1000000000d' 1`, "too large"},
		{"process substitution", `cat <(ls)`, "process substitution"},
		{"process substitution in eval", `eval 'cat <(ls)'`, "process substitution"},
		{"exec redirection", `while :; do exec < /dev/zero; break; done`, "isn't available"},
		{"mapfile", `yes | mapfile x`, "isn't available"},
		{"endless line", `cat /dev/zero | sort`, "too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, code := run(t, nil, tt.script, "")
			if !strings.Contains(got, tt.want) {
				t.Errorf("%s: code %d, got %.300q, want %q", tt.script, code, got, tt.want)
			}
			if strings.Count(got, "\n") > 20 {
				t.Errorf("%s: %d lines of messages", tt.script, strings.Count(got, "\n"))
			}
		})
	}
}

func TestCancelEndsEverything(t *testing.T) {
	for _, script := range []string{
		`while :; do :; done`, `yes > /dev/null`, `sleep 1000`, `cat`, `read x`, `sleep 1000 & wait`, `yes | cat | cat > /dev/null`,
		`yes | sed ':a;N;ba'`, `yes x | awk '{a=a $0}'`, `awk 'BEGIN { while (1) x++ }'`, `tail -f /f`, `watch -n 1 echo hi`, `seq 1 100000000000 | wc -l`, `for i in 1 2 3; do sleep 1000 & done; wait`, `timeout 1000 cat`, `xargs echo`, `sort`,
		`sh -c 'sh -c "sleep 1000"'`, `cat /dev/zero | wc -c`, `x=$(sleep 1000)`, `while read l; do :; done`, `cat <<EOF | sleep 1000
x
EOF`,
	} {
		t.Run(script, func(t *testing.T) {
			fsys := newRootFS(t)
			f, err := fsys.Root.Create("f")
			if err != nil {
				t.Fatal(err)
			}
			f.Close()
			sh, err := shell.New(shell.Options{FS: fsys, Commands: shell.Commands()})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			timer := time.AfterFunc(50*time.Millisecond, cancel)
			defer timer.Stop()
			in := newBlocking()
			defer in.Close()
			start := time.Now()
			code := sh.Run(ctx, script, shell.Streams{In: in})
			if d := time.Since(start); d > 2*time.Second {
				t.Errorf("ended after %v", d)
			}
			if code != 130 {
				t.Errorf("code %d, want 130", code)
			}
		})
	}
}

// blocking is a reader that never gives anything until it is closed.
type blocking chan struct{}

func newBlocking() blocking { return make(blocking) }
func (b blocking) Read([]byte) (int, error) {
	<-b
	return 0, context.Canceled
}
func (b blocking) Close() { close(b) }
