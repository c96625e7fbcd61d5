package pantry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// whoami is traefik/whoami: it answers with what it knows of itself and of the request.
type whoami struct {
	p    *Process
	name string
	log  *lineWriter

	mu     sync.Mutex
	health int // status code that /health answers
}

func whoamiProgram(ctx context.Context, p *Process) int {
	w := &whoami{p: p, name: p.Getenv("WHOAMI_NAME"), log: &lineWriter{w: p.Stdout}, health: http.StatusOK}
	port, verbose := p.Getenv("WHOAMI_PORT_NUMBER"), false
	args := p.Args[1:]
	for k := 0; k < len(args); k++ {
		flag, value, inline := strings.Cut(strings.TrimLeft(args[k], "-"), "=")
		if flag == "verbose" {
			verbose = value != "false"
			continue
		}
		if !inline && k+1 < len(args) {
			k++
			value = args[k]
		}
		switch flag {
		case "port":
			port = value
		case "name":
			w.name = value
		default:
			fmt.Fprintf(p.Stderr, "flag provided but not defined: -%s\nUsage of /whoami: -name string, -port string, -verbose\n", flag)
			return 2
		}
	}
	if port == "" {
		port = "80"
	}
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		w.print("listen tcp: address %s: invalid port", port)
		return 1
	}
	srv, err := p.listenHTTP(":"+port, w.handler(verbose))
	if err != nil {
		w.print("listen tcp :%s: bind: %s", port, listenError(err))
		return 1
	}
	defer srv.stop()
	w.print("Starting up on port %s", port)
	if _, ok := p.terminated(ctx); !ok {
		return exitSigkill
	}
	return 2 // what Go programs without a handler exit with as process 1
}

func (w *whoami) print(format string, args ...any) {
	w.log.printf("%s "+format, append([]any{w.p.Clock.Now().UTC().Format("2006/01/02 15:04:05")}, args...)...)
}

func (w *whoami) handler(verbose bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", w.text)
	mux.HandleFunc("/api", w.api)
	mux.HandleFunc("/bench", func(rw http.ResponseWriter, r *http.Request) { fmt.Fprint(rw, "1") })
	mux.HandleFunc("/data", w.data)
	mux.HandleFunc("/health", w.healthz)
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if w.p.Usage.Work(r.Context(), whoamiRequest) != nil {
			return // the client or the container is gone
		}
		mux.ServeHTTP(rw, r)
		if verbose {
			w.print(`%s - - [%s] "%s %s %s" - -`, r.RemoteAddr, w.p.Clock.Now().UTC().Format("02/Jan/2006:15:04:05 -0700"), r.Method, r.URL.Path, r.Proto)
		}
	})
}

// ips are the addresses of the container, loopback first.
func (w *whoami) ips() []string {
	out := []string{"127.0.0.1", "::1"}
	for _, ip := range w.p.Net.IPs() {
		out = append(out, ip.String())
	}
	return out
}

func (w *whoami) text(rw http.ResponseWriter, r *http.Request) {
	if wait := r.URL.Query().Get("wait"); wait != "" {
		d, err := time.ParseDuration(wait)
		if err == nil && d > 0 {
			timer := w.p.Clock.NewTimer(d)
			defer timer.Stop()
			select {
			case <-timer.C():
			case <-r.Context().Done():
				return
			}
		}
	}
	var b strings.Builder
	if w.name != "" {
		fmt.Fprintf(&b, "Name: %s\n", w.name)
	}
	fmt.Fprintf(&b, "Hostname: %s\n", w.p.Hostname)
	for _, ip := range w.ips() {
		fmt.Fprintf(&b, "IP: %s\n", ip)
	}
	fmt.Fprintf(&b, "RemoteAddr: %s\n", r.RemoteAddr)
	r.Body = http.MaxBytesReader(rw, r.Body, maxEcho)
	if err := r.Write(&b); err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	if r.URL.Query().Get("env") == "true" {
		for _, kv := range w.p.Env {
			fmt.Fprintln(&b, kv)
		}
	}
	io.WriteString(rw, b.String())
}

func (w *whoami) api(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	json.NewEncoder(rw).Encode(struct { // a client that left can't be told
		Hostname   string      `json:"hostname,omitempty"`
		IP         []string    `json:"ip,omitempty"`
		Headers    http.Header `json:"headers,omitempty"`
		URL        string      `json:"url,omitempty"`
		Host       string      `json:"host,omitempty"`
		Method     string      `json:"method,omitempty"`
		Name       string      `json:"name,omitempty"`
		RemoteAddr string      `json:"remoteAddr,omitempty"`
	}{w.p.Hostname, w.ips(), r.Header, r.URL.RequestURI(), r.Host, r.Method, w.name, r.RemoteAddr})
}

// data answers size bytes (?size=1&unit=KB).
func (w *whoami) data(rw http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	size, err := strconv.ParseInt(q.Get("size"), 10, 64)
	if err != nil {
		size = 1
	}
	switch strings.ToLower(q.Get("unit")) {
	case "kb":
		size <<= 10
	case "mb":
		size <<= 20
	case "gb", "tb":
		size = maxData + 1
	}
	if size < 0 || size > maxData {
		http.Error(rw, "at most 64 MB here", http.StatusBadRequest)
		return
	}
	rw.Header().Set("Content-Type", "application/octet-stream")
	rw.Header().Set("Content-Length", strconv.FormatInt(size, 10))
	if q.Get("attachment") == "true" {
		rw.Header().Set("Content-Disposition", "Attachment")
	}
	for sent, chunk := int64(0), []byte(strings.Repeat("A", 4<<10)); sent < size; {
		n, err := rw.Write(chunk[:min(size-sent, int64(len(chunk)))])
		if err != nil {
			return
		}
		sent += int64(n)
	}
}

// whoamiRequest is about what an answer costs.
const whoamiRequest = 150 * time.Microsecond

const (
	maxData = 64 << 20
	maxEcho = 1 << 20 // body that is sent back
)

// healthz answers the status that was last posted to it.
func (w *whoami) healthz(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.Method != http.MethodPost {
		rw.WriteHeader(w.health)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 16))
	code, err2 := strconv.Atoi(strings.TrimSpace(string(body)))
	if err != nil || err2 != nil || code < 100 || code > 999 {
		http.Error(rw, "invalid status code", http.StatusBadRequest)
		return
	}
	w.health = code
}

// pauseProgram holds a Pod's network; it only waits.
func pauseProgram(ctx context.Context, p *Process) int {
	s, ok := p.terminated(ctx)
	if !ok {
		return exitSigkill
	}
	fmt.Fprintf(p.Stderr, "Shutting down, got signal: %s\n", map[bool]string{true: "Terminated", false: "Interrupt"}[signalName(s) == "SIGTERM"])
	return 0
}

// readOnly opens files for reading.
const readOnly = os.O_RDONLY
