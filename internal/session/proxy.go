package session

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
)

// Limits of one session's outside clients.
const (
	proxyPerSecond = 100
	proxyBurst     = 300
	proxyAtOnce    = 100
	proxyIdle      = 8       // connections that wait for the next request
	proxyBody      = 8 << 20 // above what the API server takes itself (3 MiB), so that its own answer is seen
)

// proxyLimits counts what each session's outside clients do.
type proxyLimits struct {
	mu       sync.Mutex
	sessions map[string]*proxyLimit
}

type proxyLimit struct {
	rate *rate.Limiter
	open int
}

func newProxyLimits() *proxyLimits { return &proxyLimits{sessions: map[string]*proxyLimit{}} }

// enter admits a request; leave has to be called when it has ended.
func (p *proxyLimits) enter(id string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := p.sessions[id]
	if v == nil {
		v = &proxyLimit{rate: rate.NewLimiter(proxyPerSecond, proxyBurst)}
		p.sessions[id] = v
	}
	if v.open >= proxyAtOnce || !v.rate.Allow() {
		return nil, false
	}
	v.open++
	return func() {
		p.mu.Lock()
		v.open--
		p.mu.Unlock()
	}, true
}

// forget drops the count of a session that is gone or asleep.
func (p *proxyLimits) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v := p.sessions[id]; v != nil && v.open == 0 {
		delete(p.sessions, id)
	}
}

// KubernetesProxy is part of API.
func (s *Service) KubernetesProxy() http.Handler { return http.HandlerFunc(s.serveProxy) }

func (s *Service) serveProxy(w http.ResponseWriter, r *http.Request) {
	id, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/k8s/"), "/")
	secret, ok := bearer(r)
	if !ok {
		refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "Unauthorized")
		return
	}
	token, err := s.Store.Token(r.Context(), secret, s.Clock.Now())
	if err != nil && !isCode(err, lab.CodeNotFound) {
		s.Log.Error("token not looked up", "error", err)
		refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the server can't look the token up now")
		return
	}
	if err != nil || token.Session != id {
		refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized, "the token is unknown, revoked or expired; download a new kubeconfig from the lab page")
		return
	}
	l, err := s.find(r.Context(), token.Learner, id)
	if err != nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, lab.AsError(err).Text.En)
		return
	}
	leave, ok := s.proxy.enter(id)
	if !ok {
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests for one learner; slow down")
		return
	}
	defer leave()
	if r.URL.Query().Get("watch") == "" && r.URL.Query().Get("follow") == "" {
		l.touch()
	}
	inst, err := l.current().Instance(r.Context())
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, lab.AsError(err).Text.En)
		return
	}
	l.forward(inst, rest).ServeHTTP(w, r)
}

// bearer takes the secret from the Authorization header and from nowhere else.
func bearer(r *http.Request) (string, bool) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	secret = strings.TrimSpace(secret)
	return secret, strings.EqualFold(scheme, "Bearer") && secret != ""
}

// forward passes one request on with the learner's own credentials.
func (l *live) forward(inst cluster.Instance, path string) http.Handler {
	access := inst.REST()
	transport, done, err := l.outside(inst)
	if err != nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			l.log.Error("proxy", "error", err)
			refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "internal error")
		})
	}
	proxy := &httputil.ReverseProxy{
		Transport:     transport,
		FlushInterval: -1, // watches and logs come line by line
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", access.TLSClientConfig.ServerName, access.TLSClientConfig.ServerName
			raw := r.In.URL.EscapedPath()
			raw = strings.TrimPrefix(raw, "/k8s/"+l.id)
			r.Out.URL.Path, r.Out.URL.RawPath = "/"+path, raw
			for name := range r.Out.Header {
				if unwanted(name) {
					r.Out.Header.Del(name)
				}
			}
			r.Out.Header.Set("Authorization", "Bearer "+access.BearerToken)
		},
		ModifyResponse: func(r *http.Response) error {
			// What a Pod answers through the service proxy must never act as a page of the lab.
			r.Header.Del("Set-Cookie")
			r.Header.Set("Content-Security-Policy", "sandbox")
			r.Header.Set("X-Content-Type-Options", "nosniff")
			if backend, ok := r.Body.(io.ReadWriteCloser); ok && r.StatusCode == http.StatusSwitchingProtocols {
				r.Body = &upgraded{ReadWriteCloser: backend, ended: make(chan struct{})}
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			var large *http.MaxBytesError
			if errors.As(err, &large) {
				refuse(w, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, "the request is too large")
				return
			}
			l.log.Debug("proxy", "error", err)
			refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the cluster can't be reached right now")
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer done()
		if r.Header.Get("Upgrade") == "" {
			r.Body = http.MaxBytesReader(w, r.Body, proxyBody)
		}
		proxy.ServeHTTP(w, r)
	})
}

// upgraded is the API server's end of an upgraded connection. The API server
// closes it when a command has ended; a client that still sends must get the
// output first, and httputil.ReverseProxy gives up both directions at the first
// failed write. So a failure to write is told when everything has been read.
type upgraded struct {
	io.ReadWriteCloser
	once  sync.Once
	ended chan struct{} // closed when there is nothing more to read
}

func (u *upgraded) Read(p []byte) (int, error) {
	n, err := u.ReadWriteCloser.Read(p)
	if err != nil {
		u.once.Do(func() { close(u.ended) })
	}
	return n, err
}

func (u *upgraded) Write(p []byte) (int, error) {
	n, err := u.ReadWriteCloser.Write(p)
	if err != nil {
		<-u.ended
	}
	return n, err
}

// outside is the transport that a session's requests from outside share; before
// the watches are connected, one that is thrown away afterwards.
func (l *live) outside(inst cluster.Instance) (_ *http.Transport, done func(), _ error) {
	if r := l.ready(); r != nil && r.instance == inst {
		return r.outside, func() {}, nil
	}
	t, err := apiTransport(inst)
	if err != nil {
		return nil, nil, err
	}
	return t, t.CloseIdleConnections, nil
}

// unwanted headers would act as somebody else or carry the lab's own secrets.
func unwanted(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "impersonate-") || strings.HasPrefix(name, "x-remote-") || strings.HasPrefix(name, "x-forwarded-") ||
		name == "forwarded" || name == "cookie" || name == "authorization" || name == "origin" || name == "referer"
}

// apiTransport speaks HTTP/1.1, so that upgrades can pass.
func apiTransport(inst cluster.Instance) (*http.Transport, error) {
	access := inst.REST()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(access.TLSClientConfig.CAData) {
		return nil, errors.New("session: no CA for the API server")
	}
	config := &tls.Config{RootCAs: roots, ServerName: access.TLSClientConfig.ServerName, NextProtos: []string{"http/1.1"}}
	return &http.Transport{
		DisableCompression:  true,
		MaxIdleConnsPerHost: proxyIdle,
		IdleConnTimeout:     time.Minute,
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			raw, err := inst.DialAPI(ctx)
			if err != nil {
				return nil, err
			}
			conn := tls.Client(raw, config)
			if err := conn.HandshakeContext(ctx); err != nil {
				return nil, errors.Join(err, raw.Close())
			}
			return conn, nil
		},
	}, nil
}

// refuse answers as an API server does, so that kubectl shows the sentence.
func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// The client may be gone; there is nobody else to tell.
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Message: message, Reason: reason, Code: int32(code),
	})
}
