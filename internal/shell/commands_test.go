package shell_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"kubistro/internal/shell"
)

const table = "NAME READY AGE\nweb-1 1/1 5m\nweb-2 0/1 3m\ndb-0 1/1 9m\n"

func TestTextCommands(t *testing.T) {
	for _, tt := range []struct{ script, stdin, want string }{
		{`grep web`, table, "web-1 1/1 5m\nweb-2 0/1 3m\n"},
		{`grep -v web | wc -l`, table, "2\n"},
		{`grep -c '1/1'`, table, "2\n"},
		{`grep -io 'WEB-[0-9]'`, table, "web-1\nweb-2\n"},
		{`grep -E '^(web|db)-[0-9]+ ' | head -1`, table, "web-1 1/1 5m\n"},
		{`grep -n -A1 web-1`, table, "2:web-1 1/1 5m\n3-web-2 0/1 3m\n"},
		{`grep -q nothing; echo $?`, table, "1\n"},
		{`grep '\(web\|db\)-0'`, table, "db-0 1/1 9m\n"},
		{`grep -w web`, table, "web-1 1/1 5m\nweb-2 0/1 3m\n"},
		{`grep '[' ; echo $?`, "x", "grep: unterminated [\n2\n"},
		{`sort -k2,2 -k1,1r`, "b 2\na 1\nc 2\n", "a 1\nc 2\nb 2\n"},
		{`sort -n -r`, "10\n9\n100\n", "100\n10\n9\n"},
		{`sort -h`, "1G\n2K\n3M\n", "2K\n3M\n1G\n"},
		{`sort -t: -k2 -n -u`, "a:2\nb:1\nc:2\n", "b:1\na:2\n"},
		{`sort -V`, "v1.10\nv1.9\n", "v1.9\nv1.10\n"},
		{`sort | uniq -c | sort -rn`, "b\na\nb\n", "      2 b\n      1 a\n"},
		{`uniq -d`, "a\na\nb\n", "a\n"},
		{`cut -d' ' -f1,3`, "a b c\n", "a c\n"},
		{`cut -c2-3`, "中文字典\n", "文字\n"},
		{`tr a-z A-Z`, "abc\n", "ABC\n"},
		{`tr -d '\n'`, "a\nb\n", "ab"},
		{`tr -s ' '`, "a   b\n", "a b\n"},
		{`tr -cd '[:digit:]'`, "a1b2\n", "12"},
		{`head -c 3`, "abcdef", "abc"},
		{`dd bs=2 count=2 2>e`, "abcdef", "abcd"},
		{`dd bs=4 2>&1 >f | head -2; cat f`, "abcdef", "1+1 records in\n1+1 records out\nabcdef"},
		{`dd bs=2 skip=1 count=1 of=f status=none; printf 123456 > g; dd if=f of=g bs=2 seek=1 conv=notrunc status=none; cat g`, "abcdef", "12cd56"},
		{`dd bs=1x; echo $?`, "", "dd: invalid number '1x'\n1\n"},
		{`mkdir -p /proc/sys/net/ipv4; echo 1 > /proc/sys/net/ipv4/x.y; sysctl net.ipv4.x/y; sysctl -n net/ipv4/x.y; sysctl -a; sysctl no.such; echo $?`, "", "net.ipv4.x.y = 1\n1\nnet.ipv4.x.y = 1\nsysctl: error: 'no.such' is an unknown key\n1\n"},
		{`tail -n 2`, "1\n2\n3\n", "2\n3\n"},
		{`tail -n +2`, "1\n2\n3\n", "2\n3\n"},
		{`head -n -1`, "1\n2\n3\n", "1\n2\n"},
		{`tac`, "1\n2\n", "2\n1\n"},
		{`rev`, "abc\n", "cba\n"},
		{`paste -sd,`, "1\n2\n3\n", "1,2,3\n"},
		{`nl`, "a\nb\n", "     1\ta\n     2\tb\n"},
		{`wc`, "a b\nc\n", "      2       3       6\n"},
		{`tee f | cat; cat f`, "x\n", "x\nx\n"},
		{`sed 's/a/b/'`, "aa\n", "ba\n"},
		{`sed 's/a/b/g;s/b/[&]/2'`, "aaa\n", "b[b]b\n"},
		{`sed -n '2,3p'`, "1\n2\n3\n4\n", "2\n3\n"},
		{`sed -n '/2/,/3/p'`, "1\n2\n3\n4\n", "2\n3\n"},
		{`sed '/^#/d'`, "#x\ny\n", "y\n"},
		{`sed '$d'`, "1\n2\n", "1\n"},
		{`sed -E 's/([a-z]+)=([0-9]+)/\2=\1/'`, "x=1\n", "1=x\n"},
		{`sed 's/\(a\)\(b\)/\2\1/'`, "ab\n", "ba\n"},
		{`sed 's|/usr|/opt|I'`, "/USR/bin\n", "/opt/bin\n"},
		{`sed -e '1i\top' -e '$a end'`, "x\n", "top\nx\nend\n"},
		{`sed '2q'`, "1\n2\n3\n", "1\n2\n"},
		{`sed 'y/abc/xyz/'`, "aabbcc\n", "xxyyzz\n"},
		{`sed '/a/{s/a/b/;p}' -n`, "a\nc\n", "b\n"},
		{`sed -n '$='`, "1\n2\n", "2\n"},
		{`sed ':a;N;$!ba;s/\n/,/g'`, "1\n2\n3\n", "1,2,3\n"},
		{`sed '2c\new'`, "1\n2\n", "1\nnew\n"},
		{`sed 's/.*/\U&/'`, "abc\n", "ABC\n"},
		{`echo replicas: 3 > f; sed -i 's/3/5/' f; cat f`, "", "replicas: 5\n"},
		{`sed 's/a/'; echo $?`, "", "sed: -e expression #1: unterminated `s' command\n1\n"},
		{`sed 1!d`, "1\n2\n", "1\n"},
		{`awk '{print $1}'`, table, "NAME\nweb-1\nweb-2\ndb-0\n"},
		{`awk 'NR>1 && $2=="1/1" {print $1, $3}'`, table, "web-1 5m\ndb-0 9m\n"},
		{`awk '/web/ {n++} END {print n}'`, table, "2\n"},
		{`awk -F: '{print $NF}'`, "a:b:c\n", "c\n"},
		{`awk '{$2="x"; print}'`, "a b c\n", "a x c\n"},
		{`awk '{c[$1]++} END {for (k in c) print k, c[k]}'`, "a\nb\na\n", "a 2\nb 1\n"},
		{`awk 'BEGIN {for (i=0;i<3;i++) printf "%d-%s ", i, "x"; print ""}'`, "", "0-x 1-x 2-x \n"},
		{`awk -v n=3 'BEGIN {while (n-- > 0) s = s n; print s, length(s)}'`, "", "210 3\n"},
		{`awk '{sum+=$1} END {printf "%.2f\n", sum/NR}'`, "1\n2\n", "1.50\n"},
		{`awk '{gsub(/a/, "<&>"); print toupper($0)}'`, "banana\n", "B<A>N<A>N<A>\n"},
		{`awk 'BEGIN {n=split("a,b,c", p, ","); print n, p[3], substr("hello", 2, 3), index("hello","l")}'`, "", "3 c ell 3\n"},
		{`awk 'match($0, /[0-9]+/) {print RSTART, RLENGTH, substr($0, RSTART, RLENGTH)}'`, "ab123c\n", "3 3 123\n"},
		{`awk 'function f(n) {return n<2 ? n : f(n-1)+f(n-2)} BEGIN {print f(15)}'`, "", "610\n"},
		{`awk 'NR==2, NR==3'`, "1\n2\n3\n4\n", "2\n3\n"},
		{`awk '!seen[$0]++'`, "a\nb\na\n", "a\nb\n"},
		{`awk '$1 ~ /^w/ {next} {print}'`, "web\nx\n", "x\n"},
		{`awk 'BEGIN{OFS="-"} {print $1,$2}'`, "a b\n", "a-b\n"},
		{`awk '{print $1 > "out"} END {close("out")}'; cat out`, "a\nb\n", "a\nb\n"},
		{`awk '{print | "sort"}'`, "b\na\n", "a\nb\n"},
		{`awk 'BEGIN {print 1/4, 10%3, 2^10, -3, 1e3, "a" "b"}'`, "", "0.25 1 1024 -3 1000 ab\n"},
		{`awk 'BEGIN {if (!("x" in a)) print "no"; a["x"]; if ("x" in a) print "yes"; delete a["x"]; print length(a)}'`, "", "no\nyes\n0\n"},
		{`awk 'BEGIN {exit 3}'; echo $?`, "", "3\n"},
		{`awk 'BEGIN {print length("中文")}'`, "", "2\n"},
		{`awk '{print $(NF-1)}'`, "a b c\n", "b\n"},
		{`awk '{print'`, "", "awk: line 1: syntax error near end of program\n"},
		{`awk 'BEGIN { do { i++; if (i==2) continue; if (i>3) break; print i } while (1) }'`, "", "1\n3\n"},
		{`jq .`, `{"a":[1,2]}`, "{\n  \"a\": [\n    1,\n    2\n  ]\n}\n"},
		{`jq -r '.items[] | .metadata.name'`, `{"items":[{"metadata":{"name":"x"}},{"metadata":{"name":"y"}}]}`, "x\ny\n"},
		{`jq -c --arg n 5 --argjson m 6 '{a:$n,b:$m}'`, "null", "{\"a\":\"5\",\"b\":6}\n"},
		{`jq -e .x; echo $?`, `{}`, "null\n1\n"},
		{`jq '.a |'; echo $?`, `{}`, "jq: error: unexpected EOF\njq: 1 compile error\n3\n"},
		{`jq -s length`, "1 2 3", "3\n"},
		{`jq -n '1+1'`, "", "2\n"},
		{`jq '.a.b'; echo $?`, `{"a":1}`, "jq: error: expected an object but got: number (1)\n5\n"},
		{`base64 | base64 -d`, "hello", "hello"},
		{`base64 -w0`, "cGFzc3dvcmQ", "Y0dGemMzZHZjbVE="},
		{`echo aGk= | base64 -d`, "", "hi"},
		{`md5sum`, "abc", "900150983cd24fb0d6963f7d28e17f72  -\n"},
		{`printf 'a\nb\nc\n' > x; printf 'a\nB\nc\n' > y; diff x y; echo $?`, "", "--- x\n+++ y\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n1\n"},
		{`seq 5 > x; seq 2 6 > y; diff -u x y`, "", "--- x\n+++ y\n@@ -1,5 +1,5 @@\n-1\n 2\n 3\n 4\n 5\n+6\n"},
		{`mkdir d; echo 1 > d/a; tar cf - d | tar tf -; tar czf t.tgz d; rm -r d; tar xzf t.tgz; cat d/a`, "", "d/\nd/a\n1\n"},
		{`mkdir -p a/b; touch a/x.yaml a/b/y.yaml a/z.txt; find a -name '*.yaml'; find a -type d; find . -name '*.txt' -exec echo found {} \;`, "", "a/b/y.yaml\na/x.yaml\na\na/b\nfound ./a/z.txt\n"},
		{`touch b a; mkdir c; ls; ls -1d c; ls -a | head -2`, "", "a\nb\nc\nc\n.\n..\n"},
		{`mkdir d; echo x > d/f; cp -r d e; cat e/f; mv e g; ls; rm -r d g; ls`, "", "x\nd\ng\n"},
		{`rm nosuch; echo $?; rm -f nosuch; echo $?; mkdir d; rm d`, "", "rm: can't remove 'nosuch': No such file or directory\n1\n0\nrm: 'd' is a directory\n"},
		{`touch f; chmod 640 f; ls -l f | cut -c1-10; chmod +x f; ls -l f | cut -c1-10`, "", "-rw-r-----\n-rwxr-x--x\n"},
		{`seq -w 8 10; seq 1 0.5 2; seq 3 1; seq 3 -1 1`, "", "08\n09\n10\n1.0\n1.5\n2.0\n3\n2\n1\n"},
		{`basename /a/b.c .c; dirname /a/b.c`, "", "b\n/a\n"},
		{`X=1 env | grep ^X; env -i A=b env; printenv USER`, "", "X=1\nA=b\nlearner\n"},
		{`date -u -d 2024-01-02 +%Y/%m/%d; date -d @0 +%s`, "", "2024/01/02\n0\n"},
		{`echo -e 'a\tb'; echo -n x; echo '\t'`, "", "a\tb\nx\\t\n"},
		{`whoami; hostname; id -u`, "", "learner\nkubistro\n1000\n"},
		{`ls --nosuch; echo $?`, "", "ls: unrecognized option '--nosuch'\nTry 'ls --help' for more information.\n2\n"},
		{`curl --help | head -1; awk --help | head -1`, "", "usage: curl [-sSiIvLkf] [-o FILE] [-w FORMAT] [-H HEADER] [-d DATA] [-X METHOD] [-m SECONDS] URL...\nusage: awk [-F SEP] [-v VAR=VALUE] 'PROGRAM' [FILE]...\n"},
		{`column -t`, "a bb\nccc d\n", "a    bb\nccc  d\n"},
		{`vi x 2>&1 | grep -c Files`, "", "1\n"},
		{`printf '%s\n' a b; printf '%03d|%x\n' 7 255`, "", "a\nb\n007|ff\n"},
		{`cmp f g 2>&1; echo 1 > f; echo 1 > g; cmp f g && echo same`, "", "cmp: f: No such file or directory\nsame\n"},
		{`awk 'BEGIN{printf "%5.1f|%-5s|%05d|%c\n", 3.14159, "ab", 42, "xyz"}'`, "", "  3.1|ab   |00042|x\n"},
		{`hexdump -C | head -1`, "abc", "00000000  61 62 63                                          |abc|\n"},
	} {
		t.Run(tt.script, func(t *testing.T) {
			if got, _ := run(t, nil, tt.script, tt.stdin); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// runNet runs a script in a shell whose network reaches one HTTP server as "web".
func runNet(t *testing.T, h http.Handler, script string) (string, int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { srv.Serve(l); close(done) }()
	defer func() { srv.Close(); <-done }()
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		switch host, port, _ := net.SplitHostPort(address); {
		case host == "silent":
			<-ctx.Done()
			return nil, ctx.Err()
		case host != "web" && host != "10.0.0.9":
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		case port != "80":
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		}
		var d net.Dialer
		return d.DialContext(ctx, "tcp", l.Addr().String())
	}
	sh, err := shell.New(shell.Options{FS: newRootFS(t), Commands: shell.Commands(), Hostname: "kubistro", Net: shell.Net{Dial: dial, Nameserver: "10.96.0.10",
		LookupHost: func(_ context.Context, name string) ([]string, error) {
			if name == "web" {
				return []string{"10.0.0.9"}, nil
			}
			return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
		}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var buf bytes.Buffer
	code := sh.Run(ctx, script, shell.Streams{Out: &buf, Err: &buf})
	return buf.String(), code
}

func TestNetworkCommands(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		r.ParseForm()
		w.Header().Set("X-Cook", "anna")
		w.Write([]byte(r.Method + " " + r.Host + r.URL.Path + " " + r.Form.Encode() + "\n"))
	})
	mux.HandleFunc("/missing", http.NotFound)
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/new", http.StatusFound) })
	mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	mux.HandleFunc("/empty", func(w http.ResponseWriter, r *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			c.Close()
		}
	})
	for _, tt := range []struct{ script, want string }{
		{`curl -s web/x`, "GET web/x \n"},
		{`curl -s -d a=b -d c=d http://web/`, "POST web/ a=b&c=d\n"},
		{`curl -s -G -d q=1 web`, "GET web/ q=1\n"},
		{`curl -s -H 'Host: menu.example' web`, "GET menu.example/ \n"},
		{`curl -s -o /dev/null -w '%{http_code}\n' web/missing`, "404\n"},
		{`curl -sf web/missing; echo $?`, "22\n"},
		{`curl -sSf web/missing; echo $?`, "curl: (22) The requested URL returned error: 404\n22\n"},
		{`curl -sL web/moved`, "GET web/new \n"},
		{`curl -s -X DELETE web/y`, "DELETE web/y \n"},
		{`curl -si web/ | grep -i '^x-cook'`, "X-Cook: anna\r\n"},
		{`curl -sI web/ | head -1`, "HTTP/1.1 200 OK\r\n"},
		{`curl -s nosuch; echo $?`, "6\n"},
		{`curl nosuch; echo $?`, "curl: (6) Could not resolve host: nosuch\n6\n"},
		{`curl -sS web:81 | cat; curl -s web:81; echo $?`, "7\n"},
		{`curl -s -m 0.2 web/slow; echo $?`, "28\n"},
		{`curl -s --connect-timeout 0.2 silent; echo $?`, "28\n"},
		{`curl -s web/empty; echo $?`, "52\n"},
		{`curl -s -o f web/x; cat f`, "GET web/x \n"},
		{`curl ftp://web; echo $?`, "curl: (1) Protocol \"ftp\" not supported or disabled in libcurl\n1\n"},
		{`curl -s file:///etc/passwd; echo $?`, "3\n"},
		{`wget -qO- web/x`, "GET web/x \n"},
		{`wget -q -O - web/missing; echo $?`, "wget: server returned error: HTTP/1.1 404 Not Found\n1\n"},
		{`wget -q nosuch; echo $?`, "wget: bad address 'nosuch'\n1\n"},
		{`nslookup web | tail -3`, "Name:\tweb.default.svc.cluster.local\nAddress: 10.0.0.9\n\n"},
		{`nslookup nosuch | grep -c NXDOMAIN`, "1\n"},
		{`dig +short web`, "10.0.0.9\n"},
		{`nc -zv web 80; echo $?; nc -zv web 81`, "web (80) open\n0\nnc: web (81): Connection refused\n"},
		{`for i in 1 2 3; do curl -s web/ | grep GET; done | sort | uniq -c`, "      3 GET web/ \n"},
	} {
		t.Run(tt.script, func(t *testing.T) {
			got, _ := runNet(t, mux, tt.script)
			if strings.Contains(tt.script, "curl -sS web:81") {
				if !strings.Contains(got, "curl: (7) Failed to connect to web port 81 after") {
					t.Errorf("got %q", got)
				}
				return
			}
			if got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestBoundedCommands(t *testing.T) {
	for _, script := range []string{
		`yes | tr -d '\n' | head -c 5000000 | grep x`, `awk 'BEGIN { while (1) a[i++] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" }'`, `awk 'BEGIN { s = "x"; while (1) s = s s }'`,
		`awk 'function f() { f() } BEGIN { f() }'`, `yes | sort`, `yes | tac`, `yes | xargs echo`, `yes | jq -R -s .`, `echo x | sed ':x;a foo
b x'`, `awk 'BEGIN{printf "%999999999d", 1}'`, `yes '{"a":1}' | jq -s length`,
	} {
		t.Run(script, func(t *testing.T) {
			start := time.Now()
			out, _ := run(t, nil, script, "")
			if len(out) > 4<<20 || time.Since(start) > 100*time.Second {
				t.Errorf("%d bytes after %v", len(out), time.Since(start))
			}
		})
	}
}

func FuzzAwk(f *testing.F) {
	for _, s := range []string{`{print $1}`, `BEGIN{for(i=0;i<3;i++)print i}`, `/a/{n++}END{print n}`, `function f(x){return x}`, `{gsub(/a/,"b")}`, `a[1]=2`, `{print > "x"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, prog string) { fuzzTool(t, "awk", prog) })
}

func FuzzSed(f *testing.F) {
	for _, s := range []string{`s/a/b/g`, `1,3d`, `/x/{p;d}`, `y/ab/cd/`, `:a;N;ba`, `$!N`, `2c\x`, `s/\(a\)/\1/2p`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, prog string) { fuzzTool(t, "sed", prog) })
}

// fuzzTool runs a program of a tool for a moment: it must neither panic nor hang.
func fuzzTool(t *testing.T, name, prog string) {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	var out bytes.Buffer
	env := shell.Env{FS: newRootFS(t), Dir: "/", Getenv: func(string) string { return "" }, Environ: func() []string { return nil },
		Run: func(context.Context, shell.Env, []string) int { return 0 }}
	env.In, env.Out, env.Err = strings.NewReader("a b\nab\n"), limitWriter{&out}, limitWriter{&out}
	done := make(chan struct{})
	go func() {
		defer close(done)
		shell.Commands()[name](ctx, env, []string{name, prog})
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s %q didn't end", name, prog)
	}
}

type limitWriter struct{ b *bytes.Buffer }

func (l limitWriter) Write(p []byte) (int, error) {
	if l.b.Len() > 1<<20 {
		return 0, os.ErrClosed
	}
	return l.b.Write(p)
}
