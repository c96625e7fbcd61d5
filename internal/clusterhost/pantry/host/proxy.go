package host

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// statusClientClosed is nginx's and Traefik's code for a client that went away.
const statusClientClosed = 499

// copyBytes is the size of a copy buffer.
const copyBytes = 16 << 10

// noServer is the body of a 503.
const noServer = "no available server"

// proxy answers requests by the current configuration.
type proxy struct {
	c         *controller
	transport *http.Transport
	reverse   *httputil.ReverseProxy
	buffers   sync.Pool
	number    atomic.Int64 // of requests, for the access log
}

// exchange is one request on its way through the proxy.
type exchange struct {
	rule    *rule
	backend *backend
	entry   *entryPoint
	secure  bool
	server  server // that was tried last
	tries   int
}

type exchangeKey struct{}

func newProxy(c *controller) *proxy {
	p := &proxy{c: c}
	p.buffers.New = func() any { b := make([]byte, copyBytes); return &b }
	roots := x509.NewCertPool()
	if pem, err := c.env.ReadFile("/etc/ssl/certs/ca-certificates.crt"); err == nil {
		roots.AppendCertsFromPEM(pem)
	}
	p.transport = &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, c.opts.dialTimeout)
			defer cancel()
			return c.env.Dial(ctx, network, address)
		},
		TLSClientConfig:     &tls.Config{RootCAs: roots, InsecureSkipVerify: c.opts.insecureSkipVerify},
		TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true, DisableCompression: true,
		MaxIdleConnsPerHost: c.opts.maxIdleConnsPerHost, MaxIdleConns: 512, IdleConnTimeout: 90 * time.Second,
		ResponseHeaderTimeout: c.opts.responseTimeout, ExpectContinueTimeout: time.Second,
		ReadBufferSize: 4 << 10, WriteBufferSize: 4 << 10, MaxResponseHeaderBytes: 64 << 10,
	}
	p.reverse = &httputil.ReverseProxy{
		Rewrite: p.rewrite, Transport: roundTrip(p.send), ErrorHandler: p.failed,
		BufferPool: p, FlushInterval: 100 * time.Millisecond, ErrorLog: log.New(io.Discard, "", 0),
	}
	return p
}

func (p *proxy) close() { p.transport.CloseIdleConnections() }

// Get and Put make the proxy a httputil.BufferPool.
func (p *proxy) Get() []byte  { return *p.buffers.Get().(*[]byte) }
func (p *proxy) Put(b []byte) { p.buffers.Put(&b) }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// serve answers one request of an entry point.
func (p *proxy) serve(e *entryPoint, secure bool, rw http.ResponseWriter, r *http.Request) {
	start := p.c.env.Clock.Now()
	w := &recorder{ResponseWriter: rw}
	x := &exchange{entry: e, secure: secure}
	n := p.number.Add(1)
	if p.c.opts.accessLog {
		defer func() { p.access(n, start, x, w, r) }()
	}
	p.c.used()
	if p.c.opts.ping && e.name == p.c.opts.pingEntryPoint && r.URL.Path == "/ping" {
		p.ping(w, r)
		return
	}
	clean(r)
	if e.redirectTo != "" && !secure {
		p.redirectEntry(e, w, r)
		return
	}
	if t := p.c.current.Load().entries[e.name]; t != nil {
		x.rule = t.find(r, secure)
	}
	if x.rule == nil {
		http.NotFound(w, r)
		return
	}
	p.do(x, w, r)
}

// do carries out a rule's action.
func (p *proxy) do(x *exchange, w *recorder, r *http.Request) {
	a := x.rule.action
	if f := a.filters; f != nil {
		w.changes = f.response
		if f.redirect != nil {
			w.Header().Set("Location", f.redirect.location(r, x.secure, x.rule.match.path))
			w.WriteHeader(f.redirect.status)
			return
		}
	}
	if a.fail == 0 {
		if x.backend = a.choose(); x.backend == nil || x.backend.balancer == nil {
			a = &action{fail: http.StatusInternalServerError}
		}
	}
	if a.fail != 0 {
		w.WriteHeader(a.fail)
		return
	}
	if f := x.backend.filters; f != nil {
		w.changes = append(w.changes[:len(w.changes):len(w.changes)], f.response...)
	}
	if len(x.backend.balancer.servers) == 0 {
		http.Error(w, noServer, http.StatusServiceUnavailable)
		return
	}
	ctx := context.WithValue(r.Context(), exchangeKey{}, x)
	if a.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.timeout)
		defer cancel()
	}
	p.reverse.ServeHTTP(w, r.WithContext(ctx))
}

// rewrite makes the request that goes out.
func (p *proxy) rewrite(pr *httputil.ProxyRequest) {
	x := pr.In.Context().Value(exchangeKey{}).(*exchange)
	out := pr.Out
	out.URL.RawQuery = pr.In.URL.RawQuery
	if out.Header.Get("User-Agent") == "" {
		out.Header.Set("User-Agent", "") // none, instead of Go's own
	}
	p.forwarded(x, pr.In, out)
	if !x.backend.balancer.passHostHeader {
		out.Host = "" // the server's own
	}
	for _, f := range []*filters{x.rule.action.filters, x.backend.filters} {
		if f != nil {
			applyHeaders(out.Header, f.request)
			f.rewrite.apply(out, x.rule.match.path)
		}
	}
}

// forwarded tells the server behind who asked: middlewares/forwardedheaders of
// Traefik. What the client says of itself counts only where the entry point trusts it.
func (p *proxy) forwarded(x *exchange, in, out *http.Request) {
	client, _, err := net.SplitHostPort(in.RemoteAddr)
	if err != nil {
		client = in.RemoteAddr
	}
	set := func(name, value string) {
		if x.entry.trustHeader {
			if old := in.Header.Get(name); old != "" {
				value = old
			}
		}
		out.Header.Set(name, value)
	}
	scheme, port := "http", "80"
	if x.secure {
		scheme, port = "https", "443"
	}
	if strings.EqualFold(in.Header.Get("Upgrade"), "websocket") {
		scheme = map[string]string{"http": "ws", "https": "wss"}[scheme]
	}
	if _, at, err := net.SplitHostPort(in.Host); err == nil {
		port = at
	}
	set("X-Forwarded-Host", in.Host)
	set("X-Forwarded-Port", port)
	set("X-Forwarded-Proto", scheme)
	out.Header.Set("X-Forwarded-Server", p.c.env.Hostname)
	set("X-Real-Ip", client)
	chain := client
	if old := in.Header.Values("X-Forwarded-For"); x.entry.trustHeader && len(old) > 0 {
		chain = strings.Join(old, ", ") + ", " + client
	}
	out.Header.Set("X-Forwarded-For", chain)
}

// send tries servers in turn: another one only if the request hasn't reached the first
// (middlewares/retry of Traefik), as often as the rule allows.
func (p *proxy) send(r *http.Request) (*http.Response, error) {
	x := r.Context().Value(exchangeKey{}).(*exchange)
	a := x.rule.action
	pause := a.interval
	for {
		server, ok := x.backend.balancer.pick()
		if !ok {
			return nil, errNoServer
		}
		x.server = server
		x.tries++
		var written atomic.Bool
		ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteHeaders: func() { written.Store(true) }})
		stop := func() {}
		if a.perTry > 0 {
			var cancel context.CancelCauseFunc
			ctx, cancel = context.WithCancelCause(ctx)
			timer := time.AfterFunc(a.perTry, func() { cancel(errTooLate) })
			stop = func() { timer.Stop() }
		}
		out := r.WithContext(ctx)
		u := *r.URL
		u.Scheme, u.Host = server.scheme, server.address
		out.URL = &u
		res, err := p.transport.RoundTrip(out)
		stop()
		if err != nil && context.Cause(ctx) == errTooLate {
			err = errTooLate
		}
		if err == nil || written.Load() || x.tries >= a.retries || r.Context().Err() != nil {
			return res, err
		}
		p.c.log.debug("New attempt for request", "attempt", x.tries+1, "error", err)
		if pause > 0 {
			timer := p.c.env.Clock.NewTimer(pause)
			select {
			case <-timer.C():
			case <-r.Context().Done():
				timer.Stop()
				return nil, r.Context().Err()
			}
			pause *= 2
		}
	}
}

var (
	errNoServer = errors.New(noServer)
	errTooLate  = timeoutError{}
)

type timeoutError struct{}

func (timeoutError) Error() string   { return "no answer in time" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// failed answers for a server that didn't: ComputeStatusCode of Traefik's pkg/proxy/httputil.
func (p *proxy) failed(w http.ResponseWriter, r *http.Request, err error) {
	code := http.StatusInternalServerError
	var netErr net.Error
	switch {
	case errors.Is(err, io.EOF):
		code = http.StatusBadGateway
	case errors.Is(err, context.Canceled):
		code = statusClientClosed
	case errors.As(err, &netErr) && netErr.Timeout(), errors.Is(err, context.DeadlineExceeded):
		code = http.StatusGatewayTimeout
	case errors.As(err, &netErr):
		code = http.StatusBadGateway
	}
	text := http.StatusText(code)
	if code == statusClientClosed {
		text = "Client Closed Request"
	}
	p.c.log.debug(text, "code", code, "error", err)
	w.WriteHeader(code)
	io.WriteString(w, text) // a client that left can't be told
}

// clean resolves dots in a path, so that it can't leave the prefix that a rule allows.
func clean(r *http.Request) {
	if r.URL.Path == "" || r.URL.Path[0] != '/' {
		r.URL.Path = "/" + r.URL.Path
	}
	if !strings.Contains(r.URL.Path, "/.") && !strings.Contains(r.URL.Path, "//") {
		return
	}
	cleaned := path.Clean(r.URL.Path)
	if strings.HasSuffix(r.URL.Path, "/") && cleaned != "/" {
		cleaned += "/"
	}
	r.URL.Path, r.URL.RawPath = cleaned, ""
}
