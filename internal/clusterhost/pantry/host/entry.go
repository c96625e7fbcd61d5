package host

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log"
	"maps"
	"math/big"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Bounds of a client's connection.
const (
	helloTimeout  = 30 * time.Second // until its first byte
	headerTimeout = 60 * time.Second
	idleTimeout   = 180 * time.Second
	headerBytes   = 64 << 10
)

// entryServer serves an entry point: HTTP, or TLS where the first byte says so.
type entryServer struct {
	listener   net.Listener
	plain, tls *http.Server
	plainConns *pipe
	tlsConns   *pipe
	active     gate // requests, upgraded ones too
	cut        context.CancelFunc
	loops      sync.WaitGroup
	accepting  sync.WaitGroup

	mu     sync.Mutex
	fresh  map[net.Conn]struct{} // connections that haven't said anything
	closed bool
}

// listen opens all entry points.
func (c *controller) listen() ([]*entryServer, error) {
	var out []*entryServer
	certs := &defaultCertificate{now: c.env.Clock.Now}
	for _, name := range slices.Sorted(maps.Keys(c.opts.entryPoints)) {
		e := c.opts.entryPoints[name]
		l, err := c.env.Listen(e.address)
		if err != nil {
			for _, s := range out {
				s.close()
				s.wait()
			}
			return nil, fmt.Errorf("building entryPoint %s: error preparing server: error opening listener: %w", name, err)
		}
		c.log.debug("Start TCP Server", "entryPointName", name)
		out = append(out, c.serve(e, l, certs))
	}
	return out, nil
}

func (c *controller) serve(e *entryPoint, l net.Listener, def *defaultCertificate) *entryServer {
	base, cut := context.WithCancel(context.Background())
	s := &entryServer{listener: l, cut: cut, fresh: map[net.Conn]struct{}{}, plainConns: newPipe(l.Addr()), tlsConns: newPipe(l.Addr())}
	server := func(secure bool) *http.Server {
		return &http.Server{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if !s.active.enter() {
					panic(http.ErrAbortHandler)
				}
				defer s.active.leave()
				c.proxy.serve(e, secure, w, r)
			}),
			BaseContext:       func(net.Listener) context.Context { return base },
			ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes, ErrorLog: log.New(io.Discard, "", 0),
		}
	}
	s.plain, s.tls = server(false), server(true)
	settings := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if cert := c.current.Load().certs.find(h.ServerName); cert != nil {
				return cert, nil
			}
			return def.get()
		},
	}
	s.loops.Go(func() { s.plain.Serve(s.plainConns) })
	s.loops.Go(func() { s.tls.Serve(s.tlsConns) })
	s.loops.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.accepting.Go(func() { s.sort(conn, settings) })
		}
	})
	return s
}

// sort hands a connection to the server that its first byte asks for.
func (s *entryServer) sort(conn net.Conn, settings *tls.Config) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		conn.Close()
		return
	}
	s.fresh[conn] = struct{}{}
	s.mu.Unlock()
	first := make([]byte, 1)
	conn.SetReadDeadline(time.Now().Add(helloTimeout))
	_, err := io.ReadFull(conn, first)
	s.mu.Lock()
	delete(s.fresh, conn)
	s.mu.Unlock()
	if err != nil || conn.SetReadDeadline(time.Time{}) != nil {
		conn.Close()
		return
	}
	var c net.Conn = &peeked{Conn: conn, first: first}
	const handshake = 0x16 // TLS record type
	if first[0] == handshake {
		s.tlsConns.put(tls.Server(c, settings))
		return
	}
	s.plainConns.put(c)
}

// finish stops accepting, waits for requests until ctx ends, and cuts what is left.
func (s *entryServer) finish(ctx context.Context) {
	s.stopAccepting()
	var both sync.WaitGroup
	for _, h := range []*http.Server{s.plain, s.tls} {
		both.Go(func() {
			if h.Shutdown(ctx) != nil {
				h.Close()
			}
		})
	}
	both.Wait()
	s.cut()
}

// close cuts everything at once.
func (s *entryServer) close() {
	s.stopAccepting()
	s.plain.Close()
	s.tls.Close()
	s.cut()
}

func (s *entryServer) stopAccepting() {
	s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for conn := range s.fresh {
		conn.Close()
	}
	s.mu.Unlock()
	s.plainConns.Close()
	s.tlsConns.Close()
}

// wait returns when nothing of the server runs any more.
func (s *entryServer) wait() {
	s.loops.Wait()
	s.accepting.Wait()
	s.active.wait()
}

// gate counts who is inside; once somebody waits for them to leave nobody enters any more.
type gate struct {
	mu     sync.Mutex
	inside int
	empty  chan struct{} // not nil: closing
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.empty != nil {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside--; g.inside == 0 && g.empty != nil {
		close(g.empty)
	}
}

func (g *gate) wait() {
	g.mu.Lock()
	if g.empty == nil {
		if g.empty = make(chan struct{}); g.inside == 0 {
			close(g.empty)
		}
	}
	empty := g.empty
	g.mu.Unlock()
	<-empty
}

// peeked is a connection whose first byte has been read.
type peeked struct {
	net.Conn
	first []byte
}

func (p *peeked) Read(b []byte) (int, error) {
	if len(p.first) > 0 && len(b) > 0 {
		n := copy(b, p.first)
		p.first = p.first[n:]
		return n, nil
	}
	return p.Conn.Read(b)
}

// pipe is a listener that is fed with connections.
type pipe struct {
	addr  net.Addr
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipe(addr net.Addr) *pipe {
	return &pipe{addr: addr, conns: make(chan net.Conn), done: make(chan struct{})}
}

func (p *pipe) put(c net.Conn) {
	select {
	case p.conns <- c:
	case <-p.done:
		c.Close()
	}
}

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipe) Addr() net.Addr { return p.addr }

// defaultCertificate is what clients get for names without a certificate: made when
// it is first needed, as Traefik's (pkg/tls/generate).
type defaultCertificate struct {
	now  func() time.Time
	once sync.Once
	cert *tls.Certificate
	err  error
}

func (d *defaultCertificate) get() (*tls.Certificate, error) {
	d.once.Do(func() { d.cert, d.err = selfSigned("TRAEFIK DEFAULT CERT", d.now()) })
	return d.cert, d.err
}

func selfSigned(name string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}
