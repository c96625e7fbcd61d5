package controlserver

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"

	"kubistro/internal/clusterhost/controlapi"
)

// dial connects the requester with an address of the cluster's network.
func (s *Server) dial(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	network, address := q.Get("network"), q.Get("address")
	if r.Header.Get("Upgrade") != controlapi.DialProtocol || address == "" {
		http.Error(w, "wants Upgrade: "+controlapi.DialProtocol+" and an address", http.StatusBadRequest)
		return
	}
	if network == "" {
		network = "tcp"
	}
	// The server reads ahead on the connection while a handler runs, so that its
	// context ends when the requester has gone.
	far, err := s.streams.Dial(r.Context(), network, address)
	if err != nil {
		answer(w, http.StatusBadGateway, dialError(err))
		return
	}
	near, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		far.Close()
		http.Error(w, "can't upgrade", http.StatusInternalServerError)
		return
	}
	if _, err := io.WriteString(near, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+controlapi.DialProtocol+"\r\n\r\n"); err != nil {
		near.Close()
		far.Close()
		return
	}
	join(s.done, near, buf, far)
}

// join copies both ways until both directions have ended or ctx is done, and
// closes both connections. fromNear holds what was read of near already.
func join(ctx context.Context, near net.Conn, fromNear io.Reader, far net.Conn) {
	stop := context.AfterFunc(ctx, func() { near.Close(); far.Close() })
	defer stop()
	defer near.Close()
	defer far.Close()
	up := make(chan struct{})
	go func() {
		defer close(up)
		io.Copy(far, fromNear)
		endWriting(far)
	}()
	io.Copy(near, far)
	endWriting(near)
	<-up
}

// endWriting passes the end of one direction on; a connection that can't be half
// closed is closed.
func endWriting(c net.Conn) {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		h.CloseWrite()
		return
	}
	c.Close()
}

// dialError says in the words of the learner's tools why a dial failed.
func dialError(err error) controlapi.DialError {
	d := controlapi.DialError{Kind: controlapi.DialUnreachable, Message: err.Error()}
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		d.Kind = controlapi.DialName
	case errors.Is(err, syscall.ECONNREFUSED):
		d.Kind = controlapi.DialRefused
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		d.Kind = controlapi.DialTimeout
	case errors.As(err, &timeout) && timeout.Timeout():
		d.Kind = controlapi.DialTimeout
	}
	return d
}
