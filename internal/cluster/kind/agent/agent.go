// Package agent is the driver's hand inside a kind node: a small program in the control
// plane's container that opens connections in the cluster's network and reads the
// audit log, and the client that speaks to it. Both ends of the protocol are here:
// HTTP/2 in clear text over the program's standard input and output, which the
// container runtime carries (docker exec -i). Nothing listens anywhere.
//
// The program runs as root in the node. It opens connections only to the
// networks that it was started with, never to the host or beyond.
package agent

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Paths of the protocol.
const (
	pathDial  = "/dial"  // POST ?network=&address=: bytes in both bodies
	pathAudit = "/audit" // GET ?after=: lines of lab.AuditEntry
	pathReady = "/ready" // GET: 204
)

// What a refusal of pathDial says in failure.Kind.
const (
	kindRefused     = "refused"
	kindUnreachable = "unreachable"
	kindTimeout     = "timeout"
	kindName        = "name"
	kindOther       = "other"
)

// failure is the body of a refusal.
type failure struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// maxStreams is how many connections may be open at once through one agent.
const maxStreams = 1024

// stdio makes one connection of a process' input and output. Deadlines aren't
// needed: both ends belong to us and end together.
type stdio struct {
	io.Reader
	io.Writer
	close func() error
	once  sync.Once
	err   error
}

func (s *stdio) Close() error {
	s.once.Do(func() { s.err = s.close() })
	return s.err
}

func (*stdio) LocalAddr() net.Addr              { return pipeAddr{} }
func (*stdio) RemoteAddr() net.Addr             { return pipeAddr{} }
func (*stdio) SetDeadline(time.Time) error      { return nil }
func (*stdio) SetReadDeadline(time.Time) error  { return nil }
func (*stdio) SetWriteDeadline(time.Time) error { return nil }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "agent" }

// onlyConn is a listener that accepts one connection and waits for its end.
type onlyConn struct {
	mu   sync.Mutex
	conn net.Conn
	done chan struct{}
}

func (l *onlyConn) Accept() (net.Conn, error) {
	l.mu.Lock()
	c := l.conn
	l.conn = nil
	l.mu.Unlock()
	if c != nil {
		return c, nil
	}
	<-l.done
	return nil, net.ErrClosed
}

func (l *onlyConn) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
		return errors.New("closed already")
	default:
		close(l.done)
		return nil
	}
}

func (l *onlyConn) Addr() net.Addr { return pipeAddr{} }
