package pantry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"kubistro/internal/shell"
)

// serve listens with HTTP and ends as a Go program without a signal handler does.
func (a *agnhost) serve(ctx context.Context, address string, h http.Handler) int {
	srv, err := a.listenHTTP(address, h)
	if err != nil {
		return a.fatal("listen tcp %s: bind: %s", address, listenError(err))
	}
	defer srv.stop()
	return a.run(ctx, 0, 2)
}

// agnhostServeHostname answers everything with the Pod's name. After SIGTERM it
// serves on for a minute, as the real one does, so that clients can be led away.
func agnhostServeHostname(ctx context.Context, a *agnhost, args []string) int {
	f := a.flags("serve-hostname")
	tcp, udp, overHTTP := f.Bool("tcp", false, ""), f.Bool("udp", false, ""), f.Bool("http", true, "")
	closes := f.Bool("close", false, "")
	port := f.Int("port", 9376, "")
	if code, ok := a.parse(f, args); !ok {
		return code
	}
	if *overHTTP && (*tcp || *udp) {
		return a.fatal("Can't server TCP/UDP mode and HTTP mode at the same time")
	}
	address := ":" + strconv.Itoa(*port)
	if *udp {
		var d datagrams
		defer d.stop()
		if err := d.serve(a, address, 16, func(from, _ string) (string, bool) {
			a.printf("UDP request from %s", from)
			return a.Hostname, true
		}); err != nil {
			return a.fatal("Error from ListenUDP(): %s", listenError(err))
		}
	}
	var l net.Listener
	var err error
	if *tcp || *overHTTP {
		if l, err = a.Net.Listen(address); err != nil {
			return a.fatal("listen tcp %s: bind: %s", address, listenError(err))
		}
	}
	if *overHTTP {
		srv := serveHTTP(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a.printf("HTTP request from %s", r.RemoteAddr)
			if *closes {
				w.Header().Set("Connection", "close")
			}
			io.WriteString(w, a.Hostname)
		}))
		defer srv.stop()
	} else if *tcp {
		var served sync.WaitGroup
		served.Go(func() { a.greet(l) })
		defer served.Wait()
		defer l.Close()
	}
	a.printf("Serving on port %d.", *port)
	s, ok := a.terminated(ctx)
	if !ok {
		return exitSigkill
	}
	a.printf("Shutting down after receiving signal: %s.", s)
	a.printf("Awaiting pod deletion.")
	if !a.sleep(ctx, time.Minute) {
		return exitSigkill
	}
	return 0
}

// greet sends the host name to who connects.
func (a *agnhost) greet(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		a.printf("TCP request from %s", c.RemoteAddr())
		io.WriteString(c, a.Hostname)
		c.Close()
	}
}

// agnhostLiveness is healthy for ten seconds.
func agnhostLiveness(ctx context.Context, a *agnhost, args []string) int {
	if code, ok := a.parse(a.flags("liveness"), args); !ok {
		return code
	}
	started := a.Clock.Now()
	mux := http.NewServeMux()
	mux.HandleFunc("/started", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, a.Clock.Since(started).String())
	})
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if age := a.Clock.Since(started); age > 10*time.Second {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, "error: %v", age.Seconds())
			return
		}
		io.WriteString(w, "ok")
	})
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		to, err := url.QueryUnescape(r.URL.Query().Get("loc"))
		if err != nil {
			http.Error(w, fmt.Sprintf("invalid redirect: %q", r.URL.Query().Get("loc")), http.StatusBadRequest)
			return
		}
		http.Redirect(w, r, to, http.StatusFound)
	})
	return a.serve(ctx, ":8080", mux)
}

// agnhostWebserver serves the container's files.
func agnhostWebserver(ctx context.Context, a *agnhost, args []string) int {
	f := a.flags("test-webserver")
	port := f.Int("port", 80, "")
	if code, ok := a.parse(f, args); !ok {
		return code
	}
	files := http.FileServer(http.FS(openFS{a.FS}))
	return a.serve(ctx, ":"+strconv.Itoa(*port), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "private")
		w.Header().Set("Access-Control-Allow-Origin", "*")
		w.Header().Set("Access-Control-Allow-Credentials", "true")
		r.Header.Del("If-Modified-Since")
		files.ServeHTTP(w, r)
	}))
}

// openFS reads a container's file system as an fs.FS.
type openFS struct{ fs shell.FS }

func (o openFS) Open(name string) (fs.File, error) {
	return o.fs.OpenFile(path.Clean("/"+name), os.O_RDONLY, 0)
}

// agnhostPorter serves a text on each port that the environment names:
// SERVE_PORT_80=text, SERVE_TLS_PORT_443=text.
func agnhostPorter(ctx context.Context, a *agnhost, args []string) int {
	f := a.flags("porter")
	asJSON := f.Bool("json-response", false, "")
	if code, ok := a.parse(f, args); !ok {
		return code
	}
	var all servers
	defer all.stop()
	for _, kv := range a.Env {
		name, text, _ := strings.Cut(kv, "=")
		kind, port, ok := strings.Cut(name, "PORT_")
		if !ok {
			continue
		}
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if *asJSON {
				w.Header().Set("Content-Type", "application/json")
				answerJSON(w, struct{ Method, Body string }{r.Method, text})
				return
			}
			io.WriteString(w, text)
		})
		var err error
		switch kind {
		case "SERVE_", "SERVE_TCP_":
			err = all.add(a.listenHTTP("0.0.0.0:"+port, h))
		case "SERVE_TLS_":
			err = all.add(a.listenTLS("0.0.0.0:"+port, cmp.Or(a.Getenv("CERT_FILE"), localhostCert), cmp.Or(a.Getenv("KEY_FILE"), localhostKey), h))
		}
		if err != nil {
			a.printf("server on port %q failed: %v", port, listenError(err))
		}
	}
	return a.run(ctx, 0, 2)
}

// guestbook is a small store of texts that copies itself to its replicas.
type guestbook struct {
	*agnhost
	backend string

	mu       sync.Mutex
	store    map[string]string
	replicas []string
}

// Bounds of a guestbook.
const (
	guestbookKeys     = 1000
	guestbookReplicas = 100
)

func agnhostGuestbook(ctx context.Context, a *agnhost, args []string) int {
	f := a.flags("guestbook")
	g := &guestbook{agnhost: a, store: map[string]string{}}
	port := f.String("http-port", "80", "")
	f.StringVar(&g.backend, "backend-port", "6379", "")
	primary := f.String("replicaof", "", "")
	if code, ok := a.parse(f, args); !ok {
		return code
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/register", g.register)
	mux.HandleFunc("/get", g.get)
	mux.HandleFunc("/set", g.set)
	mux.HandleFunc("/guestbook", g.forward)
	if *primary != "" {
		var joined sync.WaitGroup
		joinCtx, cancel := context.WithCancel(ctx)
		joined.Go(func() {
			if !g.join(joinCtx, net.JoinHostPort(*primary, g.backend)) {
				g.end(1)
			}
		})
		defer joined.Wait()
		defer cancel()
	}
	return a.serve(ctx, ":"+*port, mux)
}

// join makes this one a replica, within 15 seconds.
func (g *guestbook) join(ctx context.Context, primary string) bool {
	start := g.Clock.Now()
	for g.Clock.Since(start) < 15*time.Second {
		text, err := g.agnhost.get(ctx, "http://"+primary+"/register?host="+g.Net.IPs()[0].String())
		var answer struct{ Data map[string]string }
		if err == nil {
			err = json.Unmarshal([]byte(text), &answer)
		}
		if err == nil {
			g.mu.Lock()
			for k, v := range answer.Data {
				g.store[k] = v
			}
			g.mu.Unlock()
			g.printf("Registered to node: %s", primary)
			return true
		}
		g.printf("encountered error while registering to primary: %v. Retrying in 1s.", err)
		if !g.sleep(ctx, time.Second) {
			return true
		}
	}
	g.printf("Timed out while registering to primary.")
	return false
}

func (g *guestbook) register(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.replicas) >= guestbookReplicas {
		http.Error(w, "too many replicas", http.StatusServiceUnavailable)
		return
	}
	g.replicas = append(g.replicas, r.URL.Query().Get("host"))
	g.printf("Node '%s' registered.", r.URL.Query().Get("host"))
	answerJSON(w, map[string]any{"data": g.store})
}

func (g *guestbook) get(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.printf("GET %s", r.URL.RequestURI())
	if key := r.URL.Query().Get("key"); key != "" {
		answerJSON(w, map[string]string{"data": g.store[key]})
		return
	}
	answerJSON(w, map[string]any{"data": g.store})
}

func (g *guestbook) set(w http.ResponseWriter, r *http.Request) {
	key, value := r.URL.Query().Get("key"), r.URL.Query().Get("value")
	g.printf("GET %s", r.URL.RequestURI())
	if key == "" {
		http.Error(w, "cannot set with empty key.", http.StatusBadRequest)
		return
	}
	g.mu.Lock()
	if _, known := g.store[key]; !known && len(g.store) >= guestbookKeys {
		g.mu.Unlock()
		http.Error(w, "the book is full", http.StatusInsufficientStorage)
		return
	}
	g.store[key] = value
	replicas := append([]string(nil), g.replicas...)
	g.mu.Unlock()
	for _, replica := range replicas {
		q := url.Values{"key": {key}, "value": {value}}
		if _, err := g.agnhost.get(r.Context(), "http://"+net.JoinHostPort(replica, g.backend)+"/set?"+q.Encode()); err != nil {
			http.Error(w, fmt.Sprintf("encountered error while propagating to replica '%s': %v", replica, err), http.StatusExpectationFailed)
			return
		}
	}
	answerJSON(w, map[string]string{"message": "Updated"})
}

// forward asks the primary to set and a replica to get.
func (g *guestbook) forward(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	command, host := strings.ToLower(q.Get("cmd")), "agnhost-primary"
	switch {
	case command == "get":
		host = "agnhost-replica"
	case command != "set":
		http.Error(w, fmt.Sprintf("unsupported cmd: '%s'", command), http.StatusBadRequest)
		return
	case q.Get("key") == "":
		http.Error(w, "cannot set with empty key.", http.StatusBadRequest)
		return
	}
	ask := url.Values{"key": {q.Get("key")}, "value": {q.Get("value")}}
	text, err := g.agnhost.get(r.Context(), "http://"+net.JoinHostPort(host, g.backend)+"/"+command+"?"+ask.Encode())
	if err != nil {
		http.Error(w, fmt.Sprintf("encountered error: %v", err), http.StatusExpectationFailed)
		return
	}
	io.WriteString(w, text)
}
