package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"kubistro/internal/lab"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen soon.
const patience = 30 * time.Second

// start runs an agent and its client, joined as by docker exec.
func start(t *testing.T, c Config) *Client {
	t.Helper()
	if c.Allowed == nil {
		c.Allowed = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := Serve(inR, outW, c)
		outW.Close()
		served <- err
	}()
	client := NewClient(outR, inW, func() error { return inW.Close() })
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := client.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	return client
}

// listen serves each connection of a listener with handle.
func listen(t *testing.T, handle func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				handle(conn)
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, c *Client, network, address string) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := c.Dial(ctx, network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestBothDirectionsEndByThemselves(t *testing.T) {
	// It answers when it has seen the end: a half-closed connection has to pass.
	address := listen(t, func(c net.Conn) {
		b, err := io.ReadAll(c)
		fmt.Fprintf(c, "%d bytes, %v", len(b), err)
	})
	c := start(t, Config{})
	conn := dial(t, c, "tcp", address)
	big := bytes.Repeat([]byte("soup"), 1<<18)
	if _, err := conn.Write(big); err != nil {
		t.Fatal(err)
	}
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if want := fmt.Sprintf("%d bytes, <nil>", len(big)); string(got) != want || err != nil {
		t.Errorf("answer %q, %v, want %q", got, err, want)
	}
	if conn.RemoteAddr().String() != address {
		t.Errorf("remote address = %v", conn.RemoteAddr())
	}
}

func TestManyConnectionsAtOnce(t *testing.T) {
	address := listen(t, func(c net.Conn) { _, _ = io.Copy(c, c) })
	c := start(t, Config{})
	var conns []net.Conn
	for range 300 { // more than HTTP/2's usual 250
		conns = append(conns, dial(t, c, "tcp", address))
	}
	for i, conn := range conns {
		want := fmt.Sprintf("dish %d", i)
		if _, err := io.WriteString(conn, want); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

func TestClosingEndsTheFarEnd(t *testing.T) {
	ended := make(chan error, 1)
	address := listen(t, func(c net.Conn) {
		_, err := io.Copy(io.Discard, c)
		ended <- err
	})
	c := start(t, Config{})
	conn := dial(t, c, "tcp", address)
	conn.Close()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the far end doesn't see that the connection was closed")
	}
}

func TestDatagramsKeepTheirBounds(t *testing.T) {
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		buf := make([]byte, 1<<16)
		for {
			n, from, err := l.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = l.WriteTo(append([]byte("got "), buf[:n]...), from)
		}
	}()
	conn := dial(t, start(t, Config{}), "udp", l.LocalAddr().String())
	for _, q := range []string{"one", "", strings.Repeat("x", 9000)} {
		if q == "" {
			continue // net.Pipe has no empty writes
		}
		if _, err := io.WriteString(conn, q); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 1<<16)
		n, err := conn.Read(buf)
		if err != nil || string(buf[:n]) != "got "+q {
			t.Errorf("answer of %d bytes, %v", n, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	c := start(t, Config{Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	try := func(network, address string) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		conn, err := c.Dial(ctx, network, address)
		if err == nil {
			conn.Close()
		}
		return err
	}
	if err := try("tcp", nobody); !errors.Is(err, syscall.ECONNREFUSED) || err.Error() != "dial tcp "+nobody+": connect: connection refused" {
		t.Errorf("nobody listens: %v", err)
	}
	for _, address := range []string{"127.0.0.2:80", "8.8.8.8:53", "[::1]:80", "[::ffff:10.0.0.1]:80", "0.0.0.0:80"} {
		if err := try("tcp", address); !errors.Is(err, syscall.EHOSTUNREACH) {
			t.Errorf("%s isn't allowed: %v", address, err)
		}
	}
	var dns *net.DNSError
	if err := try("tcp", "grill:80"); !errors.As(err, &dns) || dns.Name != "grill" || !dns.IsNotFound {
		t.Errorf("a name without a name server: %v", err)
	}
	for _, bad := range [][2]string{{"unix", "/run/x"}, {"tcp", "nonsense"}, {"tcp", "127.0.0.1:http"}} {
		if err := try(bad[0], bad[1]); err == nil {
			t.Errorf("dialled %v", bad)
		}
	}
}

// nameServer answers that no name is known, from the moment on when released.
func nameServer(t *testing.T, released <-chan struct{}) string {
	t.Helper()
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan struct{})
	t.Cleanup(func() {
		l.Close()
		<-answered
	})
	go func() {
		defer close(answered)
		buf := make([]byte, 1<<12)
		for {
			n, from, err := l.ReadFrom(buf)
			if err != nil {
				return
			}
			<-released
			buf[2], buf[3] = buf[2]|0x80, 0x83 // a response, recursion available: NXDOMAIN
			_, _ = l.WriteTo(buf[:n], from)    // who has gone doesn't want it
		}
	}()
	return l.LocalAddr().String()
}

func TestNoSuchName(t *testing.T) {
	now := make(chan struct{})
	close(now)
	c := start(t, Config{DNS: nameServer(t, now)})
	_, err := c.Dial(t.Context(), "tcp", "grill:80")
	var dns *net.DNSError
	if !errors.As(err, &dns) || dns.Name != "grill" || !dns.IsNotFound {
		t.Errorf("err = %v, want no such host", err)
	}
}

func TestSilenceIsATimeout(t *testing.T) {
	later := make(chan struct{})
	c := start(t, Config{DNS: nameServer(t, later)})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Dial(ctx, "tcp", "grill:80")
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("err = %v, want a timeout", err)
	}
	close(later)
	if _, err := c.Dial(t.Context(), "tcp", "grill:80"); err == nil {
		t.Error("dialled a name that isn't there")
	}
}

func TestNamesAreThoseOfAPodInDefault(t *testing.T) {
	for host, want := range map[string][]string{
		"grill":       {"grill.default.svc.cluster.local.", "grill.svc.cluster.local.", "grill.cluster.local."},
		"example.org": {"example.org.default.svc.cluster.local.", "example.org.svc.cluster.local.", "example.org.cluster.local.", "example.org."},
		"a.b.c.d.e.f": {"a.b.c.d.e.f.", "a.b.c.d.e.f.default.svc.cluster.local.", "a.b.c.d.e.f.svc.cluster.local.", "a.b.c.d.e.f.cluster.local."},
		"whole.":      {"whole."},
	} {
		if diff := cmp.Diff(want, candidates(host)); diff != "" {
			t.Errorf("%s: %s", host, diff)
		}
	}
}

func TestTheEndOfTheAgentEndsItsConnections(t *testing.T) {
	address := listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	c := start(t, Config{})
	conn := dial(t, c, "tcp", address)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	<-c.Ended()
	if _, err := io.ReadAll(conn); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("read: %v", err)
	}
	if _, err := c.Dial(t.Context(), "tcp", address); err == nil {
		t.Error("dialled through an agent that has ended")
	}
}

// logLine is a line of an audit log about a ConfigMap.
func logLine(name string) string {
	return `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"x","stage":"ResponseComplete","requestURI":"/api/v1/namespaces/default/configmaps","verb":"create","user":{"username":"learner"},"objectRef":{"resource":"configmaps","namespace":"default","name":"` +
		name + `","apiVersion":"v1"},"responseStatus":{"metadata":{},"code":201},"requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z","stageTimestamp":"2026-01-01T00:00:00.000000Z"}` + "\n"
}

// take reads the names of n entries.
func take(t *testing.T, entries <-chan lab.AuditEntry, n int) (names []string, last uint64) {
	t.Helper()
	timeout := time.After(patience)
	for range n {
		select {
		case e, ok := <-entries:
			if !ok {
				t.Fatalf("the stream ended after %v", names)
			}
			if e.N <= last {
				t.Errorf("entry %s has number %d after %d", e.Object.Name, e.N, last)
			}
			last = e.N
			names = append(names, e.Object.Name)
		case <-timeout:
			t.Fatalf("only %v", names)
		}
	}
	return names, last
}

func write(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

func TestAuditOverRotations(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the agent runs on Linux only")
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	c := start(t, Config{Audit: path})
	open := func(after uint64) (<-chan lab.AuditEntry, context.CancelFunc) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		entries, err := c.Audit(ctx, after)
		if err != nil {
			t.Fatal(err)
		}
		return entries, func() {
			cancel()
			for range entries {
			}
		}
	}
	rotate := func(time string) {
		t.Helper()
		if err := os.Rename(path, strings.TrimSuffix(path, ".log")+"-"+time+".log"); err != nil {
			t.Fatal(err)
		}
	}
	entries, stop := open(0)
	write(t, path, logLine("a")) // the file isn't there before
	half := logLine("b")
	write(t, path, half[:40])
	names, _ := take(t, entries, 1)
	write(t, path, half[40:])
	more, second := take(t, entries, 1)
	rotate("2026-01-01T00-00-00.000")
	write(t, path, logLine("c"))
	again, third := take(t, entries, 1)
	if got := slices.Concat(names, more, again); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("entries = %v", got)
	}
	stop()

	entries, stop = open(second - 1)
	names, n := take(t, entries, 2)
	if !slices.Equal(names, []string{"b", "c"}) || n != third {
		t.Errorf("after %d: %v up to %d, want b and c up to %d", second-1, names, n, third)
	}
	stop()

	rotate("2026-01-02T00-00-00.000") // nobody reads
	if err := os.Remove(strings.TrimSuffix(path, ".log") + "-2026-01-01T00-00-00.000.log"); err != nil {
		t.Fatal(err)
	}
	write(t, path, "nonsense\n"+logLine("d"))
	entries, stop = open(second)
	defer stop()
	if names, n = take(t, entries, 2); !slices.Equal(names, []string{"c", "d"}) || n <= third {
		t.Errorf("after the oldest file was removed: %v, %d", names, n)
	}
}

func TestReduce(t *testing.T) {
	for name, tc := range map[string]struct {
		line string
		want *lab.AuditEntry
	}{
		"a created Pod has its generated name, uid and owner": {
			`{"stage":"ResponseComplete","verb":"create","user":{"username":"system:serviceaccount:kube-system:replicaset-controller"},"objectRef":{"resource":"pods","namespace":"default"},"responseStatus":{"code":201},` +
				`"responseObject":{"kind":"Pod","metadata":{"name":"grill-abc","namespace":"default","uid":"u1","ownerReferences":[{"kind":"ReplicaSet","name":"grill","uid":"u2","controller":true}]}}}`,
			&lab.AuditEntry{User: "system:serviceaccount:kube-system:replicaset-controller", Verb: "create", Resource: "pods", Code: 201,
				Object: lab.ObjectRef{Kind: "Pod", Namespace: "default", Name: "grill-abc", UID: "u1"},
				Owner:  &lab.ObjectRef{Kind: "ReplicaSet", Namespace: "default", Name: "grill", UID: "u2"}},
		},
		"impersonation is named": {
			`{"verb":"delete","user":{"username":"kubistro"},"impersonatedUser":{"username":"waiter"},"objectRef":{"resource":"pods","name":"a"},"responseStatus":{"code":200}}`,
			&lab.AuditEntry{User: "waiter", Verb: "delete", Resource: "pods", Code: 200, Object: lab.ObjectRef{Name: "a"}},
		},
		"a session in a container": {
			`{"auditID":"7","stage":"ResponseStarted","verb":"get","requestURI":"/api/v1/namespaces/default/pods/a/exec?command=rm&command=-rf&stdout=true","user":{"username":"learner"},"objectRef":{"resource":"pods","subresource":"exec","name":"a"},"responseStatus":{"code":101}}`,
			&lab.AuditEntry{User: "learner", Verb: "get", Resource: "pods", Subresource: "exec", Code: 101, Object: lab.ObjectRef{Name: "a"}, Session: "7", Command: "rm -rf"},
		},
		"refused":     {`{"verb":"create","objectRef":{"resource":"pods"},"responseStatus":{"code":403}}`, nil},
		"dry run":     {`{"verb":"create","requestURI":"/api/v1/namespaces/default/pods?dryRun=All","objectRef":{"resource":"pods"},"responseStatus":{"code":201}}`, nil},
		"no object":   {`{"verb":"create","responseStatus":{"code":201}}`, nil},
		"no response": {`{"verb":"create","objectRef":{"resource":"pods"}}`, nil},
		"half a line": {`{"verb":"create","objectRef"`, nil},
	} {
		got, ok := reduce([]byte(tc.line))
		if ok != (tc.want != nil) {
			t.Errorf("%s: kept is %v", name, ok)
		} else if ok {
			if diff := cmp.Diff(*tc.want, got); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
	}
}
