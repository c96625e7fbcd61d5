package pantry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// netexec answers over HTTP with what a network test wants to know, and carries
// out what it wants to have done from inside a Pod.
type netexec struct {
	*agnhost
	port     int
	ready    atomic.Bool
	stopping atomic.Bool
}

func agnhostNetexec(ctx context.Context, a *agnhost, args []string) int {
	f := a.flags("netexec")
	n := &netexec{agnhost: a}
	f.IntVar(&n.port, "http-port", 8080, "")
	cert := f.String("tls-cert-file", "", "")
	key := f.String("tls-private-key-file", "", "")
	udp := f.Int("udp-port", 8081, "")
	f.Int("sctp-port", -1, "")
	override := f.String("http-override", "", "")
	udpAddresses := f.String("udp-listen-addresses", "", "")
	delay := f.Int("delay-shutdown", 0, "")
	if code, ok := a.parse(f, args); !ok {
		return code
	}
	var h http.Handler = n.routes(ctx)
	if *override != "" {
		h = overridden(h, *override)
	}
	var all servers
	defer all.stop()
	address := ":" + strconv.Itoa(n.port)
	listen := func() (*server, error) { return a.listenHTTP(address, h) }
	if *cert != "" {
		listen = func() (*server, error) { return a.listenTLS(address, *cert, *key, h) }
	}
	if err := all.add(listen()); err != nil {
		return a.fatal("listen tcp %s: bind: %s", address, listenError(err))
	}
	a.printf("Started HTTP server on port %d", n.port)
	var udpServers datagrams
	defer udpServers.stop()
	if *udp != -1 {
		if err := n.listenUDP(&udpServers, *udpAddresses, *udp); err != nil {
			return a.fatal("%v", err)
		}
	}
	signalled := make(chan struct{})
	go func() {
		defer close(signalled)
		if _, ok := a.terminated(ctx); ok {
			n.stopping.Store(true)
			if *delay > 0 {
				a.printf("Sleeping %d seconds before terminating...", *delay)
				a.sleep(ctx, time.Duration(*delay)*time.Second)
			}
		}
	}()
	select {
	case code := <-a.exit:
		return code
	case <-signalled:
	}
	if ctx.Err() != nil {
		return exitSigkill
	}
	return 0
}

// overridden answers every request as if it asked for path.
func overridden(h http.Handler, path string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, path, nil)
		if err != nil {
			http.Error(w, "override request failed: "+err.Error(), http.StatusInternalServerError)
			return
		}
		h.ServeHTTP(w, req)
	})
}

func (n *netexec) routes(ctx context.Context) http.Handler {
	mux := http.NewServeMux()
	for path, h := range map[string]http.HandlerFunc{
		"/":           func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "NOW: %v", n.Clock.Now()) },
		"/clientip":   func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.RemoteAddr) },
		"/serverport": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, n.port) },
		"/hostname":   n.hostname, "/hostName": n.hostname,
		"/header": n.header, "/dial": n.dial, "/echo": n.echo, "/envvar": n.envvar, "/redirect": n.redirect,
		"/shell": n.shell, "/upload": n.upload,
		"/healthz": func(w http.ResponseWriter, _ *http.Request) {
			if !n.ready.Load() {
				w.WriteHeader(http.StatusPreconditionFailed)
			}
		},
		"/readyz":   n.readyz,
		"/exit":     func(w http.ResponseWriter, r *http.Request) { n.exitAsked(ctx, w, r) },
		"/shutdown": func(http.ResponseWriter, *http.Request) { n.end(0) },
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			n.printf("GET %s", r.URL.RequestURI())
			h(w, r)
		})
	}
	return mux
}

func (n *netexec) hostname(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, n.Hostname) }

func (n *netexec) header(w http.ResponseWriter, r *http.Request) {
	if key := r.FormValue("key"); key != "" {
		io.WriteString(w, r.Header.Get(key))
		return
	}
	json.NewEncoder(w).Encode(r.Header)
}

func (n *netexec) echo(w http.ResponseWriter, r *http.Request) {
	if text := r.FormValue("code"); text != "" {
		code, err := strconv.Atoi(text)
		if err != nil || code < 100 || code > 999 {
			fmt.Fprintf(w, "argument 'code' must be an integer or empty, got %q\n", text)
			return
		}
		w.WriteHeader(code)
	}
	io.WriteString(w, r.FormValue("msg"))
}

func (n *netexec) envvar(w http.ResponseWriter, r *http.Request) {
	name := r.FormValue("var")
	if name == "" {
		http.Error(w, "'var' query parameter is required", http.StatusBadRequest)
		return
	}
	for _, kv := range n.Env {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			io.WriteString(w, v)
			return
		}
	}
	http.Error(w, fmt.Sprintf("env var %q is not set", name), http.StatusInternalServerError)
}

func (n *netexec) redirect(w http.ResponseWriter, r *http.Request) {
	code := http.StatusFound
	if text := r.FormValue("code"); text != "" {
		var err error
		if code, err = strconv.Atoi(text); err != nil || code < 100 || code > 999 {
			fmt.Fprintf(w, "argument 'code' must be an integer or empty, got %q\n", text)
			return
		}
	}
	http.Redirect(w, r, r.FormValue("location"), code)
}

func (n *netexec) readyz(w http.ResponseWriter, _ *http.Request) {
	switch {
	case n.stopping.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, "shutting down")
	case n.ready.Load():
		io.WriteString(w, "ok")
	default:
		w.WriteHeader(http.StatusPreconditionFailed)
	}
}

// exitAsked ends the process with a code, after a wait.
func (n *netexec) exitAsked(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	wait, err := time.ParseDuration(r.FormValue("wait"))
	if err != nil && r.FormValue("wait") != "" {
		fmt.Fprintf(w, "argument 'wait' must be a valid golang duration or empty, got %q\n", r.FormValue("wait"))
		return
	}
	code, err := strconv.Atoi(r.FormValue("code"))
	if err != nil && r.FormValue("code") != "" || code < 0 || code > 127 {
		fmt.Fprintf(w, "argument 'code' must be an integer [0-127] or empty, got %q\n", r.FormValue("code"))
		return
	}
	n.printf("Will begin shutdown in %s, then will exit with %d", wait, code)
	if n.sleep(ctx, wait) {
		n.end(code)
	}
}

// maxTries bounds what one request may make the Pod do; it also ends after a MiB of answers.
const maxTries = 1000

// dial asks another address so many times and reports the answers.
func (n *netexec) dial(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	tries := 1
	if text := q.Get("tries"); text != "" {
		var err error
		if tries, err = strconv.Atoi(text); err != nil || tries > maxTries {
			http.Error(w, fmt.Sprintf("tries parameter is invalid. %v", err), http.StatusBadRequest)
			return
		}
	}
	request := q.Get("request")
	if request == "" {
		http.Error(w, "request parameter not specified.", http.StatusBadRequest)
		return
	}
	ask, err := n.dialer(r.Context(), strings.ToLower(q.Get("protocol")), net.JoinHostPort(q.Get("host"), q.Get("port")), request)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out, last := map[string][]string{}, ""
	responses := []string{}
	for size := 0; tries > 0 && size < mib; tries-- {
		last, err = ask()
		size += len(last)
		if err != nil {
			out["errors"] = append(out["errors"], err.Error())
		} else {
			responses = append(responses, last)
		}
	}
	if last != "" {
		out["responses"] = responses
	}
	answerJSON(w, out)
}

// dialer is one try by a protocol.
func (n *netexec) dialer(ctx context.Context, protocol, address, request string) (func() (string, error), error) {
	if _, err := n.resolve(ctx, address); err != nil {
		return nil, fmt.Errorf("host and/or port param are invalid. %w", err)
	}
	switch protocol {
	case "", "http":
		return func() (string, error) { return n.get(ctx, "http://"+address+"/"+request) }, nil
	case "udp":
		return func() (string, error) { return n.askUDP(ctx, address, request) }, nil
	}
	return nil, fmt.Errorf("unsupported protocol. %s", protocol)
}

// resolve makes sure that a host has an address.
func (a *agnhost) resolve(ctx context.Context, address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if net.ParseIP(host) != nil {
		return address, nil
	}
	ips, err := a.Net.LookupHost(ctx, host)
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(ips[0].String(), port), nil
}

// askUDP sends a datagram and waits for one.
func (a *agnhost) askUDP(ctx context.Context, address, request string) (string, error) {
	c, err := a.Net.DialContext(ctx, "udp", address)
	if err != nil {
		return "", fmt.Errorf("udp dial failed. err:%w", err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(c, request); err != nil {
		return "", fmt.Errorf("udp connection write failed. err:%w", err)
	}
	b := make([]byte, 2048)
	count, err := c.Read(b)
	if err != nil || count == 0 {
		return "", fmt.Errorf("reading from udp connection failed. err:'%w'", err)
	}
	return string(b[:count]), nil
}

// shell runs a command line in the Pod.
func (n *netexec) shell(w http.ResponseWriter, r *http.Request) {
	line := r.FormValue("shellCommand")
	if line == "" {
		line = r.FormValue("cmd")
	}
	var text limitedBuffer
	child := *n.Process
	child.Stdin, child.Stdout, child.Stderr, child.TTY, child.Signals = strings.NewReader(""), &text, &text, false, nil
	code := child.run(r.Context(), []string{"/bin/sh", "-c", line})
	out := map[string]string{}
	if s := text.String(); s != "" {
		out["output"] = s
	}
	if code != 0 {
		out["error"] = fmt.Sprintf("exit status %d", code)
	}
	n.printf("Output: %s", out)
	answerJSON(w, out)
}

// upload keeps a file in /uploads.
func (n *netexec) upload(w http.ResponseWriter, r *http.Request) {
	file, _, err := r.FormFile("file")
	if err != nil {
		answerJSON(w, map[string]string{"error": "Unable to upload file."})
		return
	}
	defer file.Close()
	name := fmt.Sprintf("/uploads/upload%d", n.Clock.Now().UnixNano())
	f, err := n.FS.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		answerJSON(w, map[string]string{"error": "Unable to open file for write"})
		return
	}
	defer f.Close()
	if _, err := io.Copy(f, file); err != nil {
		answerJSON(w, map[string]string{"error": "Unable to write file."})
		return
	}
	w.WriteHeader(http.StatusCreated)
	answerJSON(w, map[string]string{"output": name})
}

func answerJSON(w io.Writer, v any) {
	b, err := json.Marshal(v)
	if err == nil {
		w.Write(b)
	}
}

// limitedBuffer keeps the first MiB of what is written.
type limitedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Write(p[:min(len(p), mib-l.b.Len())])
	return len(p), nil
}

func (l *limitedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
