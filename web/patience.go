package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// patient bounds how long a client may take to send a body and to take an
// answer, so that connections that stall hold nothing. Streams and the proxy
// for kubectl, whose answers have no end, have bounds of their own.
func (s *Server) patient(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			c := http.NewResponseController(w)
			// Not every server can set a deadline; where it can't, its own limit holds.
			_ = c.SetReadDeadline(time.Now().Add(s.Limits.BodyTime))
			r.Body = &timedBody{r.Body, c}
		}
		if !strings.HasPrefix(r.URL.Path, proxyPrefix) {
			w = &timedWriter{ResponseWriter: w, limit: s.Limits.AnswerTime}
		}
		next.ServeHTTP(w, r)
	})
}

// timedBody takes the deadline away when the body is there: net/http goes on
// reading, to notice that a client has gone, and would take its passing for that.
type timedBody struct {
	io.ReadCloser
	c *http.ResponseController
}

func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.c.SetReadDeadline(time.Time{})
	}
	return n, err
}

// timedWriter gives the client a while for each piece of the answer.
type timedWriter struct {
	http.ResponseWriter
	limit time.Duration
}

func (w *timedWriter) Write(p []byte) (int, error) {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(w.limit))
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find what the server can do.
func (w *timedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// pacedUpgrade hands a WebSocket a connection that is read no faster than a
// person's browser ever sends: what a message costs is bounded elsewhere, but pings and
// empty fragments are answered before anybody sees them.
type pacedUpgrade struct {
	http.ResponseWriter
	pace *rate.Limiter
}

func (u *pacedUpgrade) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	p := &pacedConn{Conn: conn, pace: u.pace}
	p.open, p.close = context.WithCancel(context.Background())
	return p, rw, nil
}

type pacedConn struct {
	net.Conn
	pace  *rate.Limiter
	open  context.Context // ends with Close, as the waiting does
	close context.CancelFunc
}

func (c *pacedConn) Close() error {
	c.close()
	return c.Conn.Close()
}

func (c *pacedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p[:min(len(p), c.pace.Burst())])
	if n > 0 {
		if waited := c.pace.WaitN(c.open, n); waited != nil {
			return n, errors.Join(err, waited)
		}
	}
	return n, err
}
