package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"
)

// silent is an address that dials never get an answer from.
const silent = "192.0.2.1:80"

// running is the controller without a cluster: its configuration is set by hand.
type running struct {
	*controller
	url     string
	servers []*entryServer
	out     *strings.Builder
}

func run(t *testing.T, args ...string) *running {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	r := &running{out: &strings.Builder{}}
	o, _, done := parse(append([]string{"--entryPoints.web.address=127.0.0.1:0", "--accesslog"}, args...), r.out)
	if done {
		t.Fatal(r.out)
	}
	env := Env{
		Getenv: func(string) string { return "" }, ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist }, Stdout: r.out, Hostname: "host-1", Clock: clock.RealClock{},
		Listen: func(a string) (net.Listener, error) { return net.Listen("tcp", a) },
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if address == silent {
				<-ctx.Done()
				return nil, &net.OpError{Op: "dial", Net: network, Err: timeoutError{}}
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}
	r.controller = &controller{env: env, opts: o, log: newLogger(r.out, env.Clock, levelDebug), dirty: make(chan struct{}, 1)}
	r.proxy = newProxy(r.controller)
	r.set(&action{})
	var err error
	if r.servers, err = r.listen(); err != nil {
		t.Fatal(err)
	}
	r.url = "http://" + r.servers[0].listener.Addr().String()
	t.Cleanup(func() {
		for _, s := range r.servers {
			s.close()
			s.wait()
		}
		r.proxy.close()
	})
	return r
}

// set makes everything go to one action.
func (r *running) set(a *action) {
	r.current.Store(&config{entries: map[string]*table{"web": {plain: []*rule{{name: "all", match: match{kind: pathPrefix, path: "/"}, action: a}}}}})
}

// to is an action with one Service of these servers.
func to(addresses ...string) *action {
	b := &balancer{passHostHeader: true}
	for _, a := range addresses {
		b.servers = append(b.servers, server{"http", strings.TrimPrefix(a, "http://")})
	}
	return &action{backends: []*backend{{weight: 1, balancer: b}}}
}

func (r *running) get(t *testing.T, path string) (int, string) {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true}
	res, err := (&http.Client{Transport: tr}).Get(r.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

// refusing is an address where nobody listens.
func refusing(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return l.Addr().String()
}

func TestProxyErrors(t *testing.T) {
	r := run(t, "--serversTransport.forwardingTimeouts.dialTimeout=100ms")
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer cut.Close()
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "my own", http.StatusBadGateway) }))
	defer own.Close()
	hung := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hung }))
	defer slow.Close()
	defer close(hung)
	late := to(slow.URL)
	late.perTry = 50 * time.Millisecond
	for _, c := range []struct {
		name   string
		action *action
		code   int
		body   string
	}{
		{"no server", to(), 503, "no available server\n"},
		{"refused", to(refusing(t)), 502, "Bad Gateway"},
		{"silent", to(silent), 504, "Gateway Timeout"},
		{"cut off", to(cut.URL), 502, "Bad Gateway"},
		{"late", late, 504, "Gateway Timeout"},
		{"the app's own", to(own.URL), 502, "my own\n"},
		{"no such backend", &action{backends: []*backend{{weight: 1}}}, 500, ""},
	} {
		r.set(c.action)
		if code, body := r.get(t, "/"); code != c.code || body != c.body {
			t.Errorf("%s: %d %q, want %d %q", c.name, code, body, c.code, c.body)
		}
	}
}

func TestProxyRetries(t *testing.T) {
	r := run(t)
	var mu sync.Mutex
	calls := 0
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		calls++
		mu.Unlock()
		panic(http.ErrAbortHandler)
	}))
	defer cut.Close()
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "good") }))
	defer good.Close()
	a := to(refusing(t), refusing(t), good.URL)
	a.retries, a.interval = 3, time.Millisecond
	r.set(a)
	if code, body := r.get(t, "/"); code != 200 || body != "good" {
		t.Errorf("the third attempt: %d %q", code, body)
	}
	a.retries = 2
	if code, _ := r.get(t, "/"); code != 502 {
		t.Errorf("two attempts at servers that refuse: %d", code)
	}
	b := to(cut.URL, good.URL)
	b.retries = 3
	r.set(b)
	res, err := http.Post(r.url, "text/plain", strings.NewReader("an order"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if res.StatusCode != 502 || calls != 1 {
		t.Errorf("an order that has reached a server is given to another: %d after %d calls", res.StatusCode, calls)
	}
}

func TestUpgradePassesAndEnds(t *testing.T) {
	r := run(t)
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("X-Forwarded-Proto") != "ws" {
			http.Error(w, "not a WebSocket", http.StatusBadRequest)
			return
		}
		conn, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		io.Copy(conn, buf)
	}))
	defer echo.Close()
	r.set(to(echo.URL))
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: a.io\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	in := bufio.NewReader(conn)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(res, err)
	}
	fmt.Fprint(conn, "hello\n")
	if line, err := in.ReadString('\n'); err != nil || line != "hello\n" {
		t.Fatalf("%q %v", line, err)
	}
	for _, s := range r.servers { // a graceful end waits for requests, not for upgraded connections
		s.finish(t.Context())
		s.wait()
	}
	if _, err := in.ReadByte(); err == nil {
		t.Error("the connection outlives the controller")
	}
}

func TestFinishLetsRequestsEnd(t *testing.T) {
	r := run(t)
	arrived, leave := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(arrived)
		<-leave
		fmt.Fprint(w, "at last")
	}))
	defer slow.Close()
	r.set(to(slow.URL))
	body := make(chan string)
	go func() {
		_, b := r.get(t, "/")
		body <- b
	}()
	<-arrived
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		r.servers[0].finish(t.Context())
	}()
	<-r.servers[0].plainConns.done // it doesn't accept any more
	close(leave)
	if b := <-body; b != "at last" {
		t.Errorf("a request in flight got %q", b)
	}
	<-finished
}

// Without an API server the program says so, answers 404, and ends when it is told to.
func TestRunWithoutCluster(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	stop := make(chan struct{})
	out := &safeBuilder{grown: make(chan struct{}, 1)}
	address := make(chan string, 1)
	code := make(chan int)
	go func() {
		code <- Run(t.Context(), Env{
			Args: []string{"kubistro-host", "--entryPoints.web.address=127.0.0.1:0", "--providers.kubernetesingress"}, Stdout: out, Hostname: "h", Clock: clock.RealClock{}, Stop: stop,
			Getenv: func(string) string { return "" }, ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist },
			Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no network") },
			Listen: func(a string) (net.Listener, error) {
				l, err := net.Listen("tcp", a)
				if err == nil {
					address <- l.Addr().String()
				}
				return l, err
			},
		})
	}()
	r := &running{url: "http://" + <-address}
	if code, body := r.get(t, "/"); code != 404 || body != "404 page not found\n" {
		t.Errorf("%d %q", code, body)
	}
	for !strings.Contains(out.String(), "unable to load in-cluster configuration") {
		select {
		case <-out.grown:
		case <-time.After(time.Minute):
			t.Fatal(out.String())
		}
	}
	close(stop)
	if c := <-code; c != 0 {
		t.Errorf("exit code %d\n%s", c, out)
	}
}

type safeBuilder struct {
	mu    sync.Mutex
	b     strings.Builder
	grown chan struct{}
}

func (s *safeBuilder) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.grown <- struct{}{}:
	default:
	}
	return s.b.Write(p)
}

func (s *safeBuilder) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
