package agent

import (
	"context"
	"io"
	"net"
	"sync"
)

// stream is a connection through the agent. Deadlines are those of a pipe in
// memory whose far end is copied into the request and from the answer.
type stream struct {
	net.Conn // the near end
	remote   net.Addr
	cancel   context.CancelFunc
	send     *io.PipeWriter // the request's body

	mu     sync.Mutex
	change sync.Cond // of what follows
	wrote  int64     // bytes that Write took
	left   int64     // bytes that were sent on
	ended  bool      // nothing is sent on any more
}

// newStream takes over the request's body and its answer; cancel ends the request.
func newStream(network string, remote net.Addr, send *io.PipeWriter, answer io.ReadCloser, cancel context.CancelFunc) net.Conn {
	near, far := net.Pipe()
	s := &stream{Conn: near, remote: remote, cancel: cancel, send: send}
	s.change.L = &s.mu
	go func() {
		if network == "udp" {
			_ = frame(send, far) // its end is the connection's
		} else {
			s.sendOn(far)
		}
		_ = send.Close() // never fails
	}()
	go func() {
		if network == "udp" {
			_ = unframe(far, answer) // an end is an end
		} else {
			_, _ = io.Copy(far, answer)
		}
		_ = far.Close()    // never fails
		_ = answer.Close() // it has ended
		cancel()
	}()
	if network == "udp" {
		return datagrams{s}
	}
	return s
}

func (s *stream) sendOn(far net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := far.Read(buf)
		if err == nil {
			_, err = s.send.Write(buf[:n])
		}
		s.mu.Lock()
		s.left += int64(n)
		s.ended = err != nil
		s.change.Broadcast()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *stream) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrote += int64(n)
	return n, err
}

// CloseWrite ends the sending direction after all that was written.
func (s *stream) CloseWrite() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.left < s.wrote && !s.ended {
		s.change.Wait()
	}
	return s.send.Close()
}

// Close ends both directions.
func (s *stream) Close() error {
	err := s.Conn.Close()
	s.cancel()
	return err
}

// RemoteAddr is the address that was asked for.
func (s *stream) RemoteAddr() net.Addr { return s.remote }

// datagrams has no CloseWrite.
type datagrams struct{ *stream }

// CloseWrite does nothing: datagrams have no end.
func (datagrams) CloseWrite() error { return nil }
