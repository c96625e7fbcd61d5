package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
)

// Config is what an agent may do.
type Config struct {
	// Allowed are the networks that it opens connections to.
	Allowed []netip.Prefix
	// DNS is the address of the cluster's name server, with its port; empty: names aren't known.
	DNS string
	// Audit is the path of the API server's audit log.
	Audit string
}

// Serve answers one client on its input and output until the input ends.
func Serve(in io.Reader, out io.Writer, c Config) error {
	ended := make(chan struct{})
	end := sync.OnceFunc(func() { close(ended) })
	conn := &stdio{Reader: endingReader{in, end}, Writer: out, close: func() error { end(); return nil }}
	s := &server{Config: c, names: newNames(c.DNS)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pathDial, s.dial)
	mux.HandleFunc("GET "+pathAudit, s.audit)
	mux.HandleFunc("GET "+pathReady, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	h := &http.Server{Handler: mux, Protocols: &protocols, HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams}}
	served := make(chan error, 1)
	l := &onlyConn{conn: conn, done: make(chan struct{})}
	go func() { served <- h.Serve(l) }()
	<-ended
	err := h.Close() // ends the requests, and so what they have opened
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return err
}

// endingReader calls end when the input does.
type endingReader struct {
	io.Reader
	end func()
}

func (r endingReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil {
		r.end()
	}
	return n, err
}

type server struct {
	Config
	names *names
}

// dial opens a connection and carries bytes until both directions have ended.
func (s *server) dial(w http.ResponseWriter, r *http.Request) {
	network, address := r.URL.Query().Get("network"), r.URL.Query().Get("address")
	conn, err := s.open(r.Context(), network, address)
	if err != nil {
		refuse(w, err)
		return
	}
	defer conn.Close()
	flush := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	if flush.Flush() != nil {
		return
	}
	stop := context.AfterFunc(r.Context(), func() { conn.Close() }) // the client has gone
	defer stop()
	var sent sync.WaitGroup
	defer sent.Wait()
	sent.Go(func() {
		if network == "udp" {
			_ = unframe(conn, r.Body) // its end is the connection's
			return
		}
		if _, err := io.Copy(conn, r.Body); err == nil {
			_ = conn.(*net.TCPConn).CloseWrite() // who doesn't read any more is noticed below
		}
	})
	if network == "udp" {
		_ = frame(flushing{w, flush}, conn)
	} else {
		_, _ = io.Copy(flushing{w, flush}, conn) // an end is an end
	}
	conn.Close()
}

// open connects to an address of the cluster.
func (s *server) open(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "tcp" && network != "udp" {
		return nil, fmt.Errorf("network %q: want tcp or udp", network)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return nil, fmt.Errorf("port %q: want a number", port)
	}
	ips, err := s.names.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	err = &net.OpError{Op: "dial", Net: network, Err: syscall.EHOSTUNREACH}
	for _, ip := range ips {
		if !s.allows(ip) {
			continue
		}
		var d net.Dialer
		conn, dialErr := d.DialContext(ctx, network, net.JoinHostPort(ip.String(), port))
		if dialErr == nil {
			return conn, nil
		}
		err = dialErr
	}
	return nil, err
}

func (s *server) allows(ip netip.Addr) bool {
	ip = ip.Unmap()
	for _, p := range s.Allowed {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// refuse tells why there is no connection.
func refuse(w http.ResponseWriter, err error) {
	f := failure{Kind: kindOther, Message: err.Error()}
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		f.Kind = kindName
	case errors.Is(err, syscall.ECONNREFUSED):
		f.Kind = kindRefused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		f.Kind = kindUnreachable
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		f.Kind = kindTimeout
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadGateway)
	_ = json.NewEncoder(w).Encode(f) // who has gone doesn't want it
}

// flushing sends each piece at once.
type flushing struct {
	w     io.Writer
	flush *http.ResponseController
}

func (f flushing) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	if err == nil {
		err = f.flush.Flush()
	}
	return n, err
}
