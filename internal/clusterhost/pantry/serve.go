package pantry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

// server runs HTTP on the process's interface.
type server struct {
	http *http.Server
	done chan struct{} // closed when Serve has returned
}

// listenHTTP starts a server; the error is that of Listen.
func (p *Process) listenHTTP(address string, h http.Handler) (*server, error) {
	l, err := p.Net.Listen(address)
	if err != nil {
		return nil, err
	}
	return serveHTTP(l, h), nil
}

// serveHTTP serves what a listener accepts.
func serveHTTP(l net.Listener, h http.Handler) *server {
	s := &server{
		http: &http.Server{
			Handler: h, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 75 * time.Second, MaxHeaderBytes: 32 << 10,
			ErrorLog: log.New(io.Discard, "", 0),
		},
		done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		s.http.Serve(l) // returns http.ErrServerClosed, or the end of the interface
	}()
	return s
}

// stop ends the server at once: connections are cut.
func (s *server) stop() {
	s.http.Close()
	<-s.done
}

// finish stops listening and waits for requests in flight until ctx ends.
func (s *server) finish(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		s.http.Close()
	}
	<-s.done
	return err
}

// terminated waits for SIGTERM, SIGINT or SIGQUIT; ok is false for SIGKILL.
func (p *Process) terminated(ctx context.Context) (s syscall.Signal, ok bool) {
	for {
		select {
		case <-ctx.Done():
			return 0, false
		case s := <-p.Signals:
			switch s {
			case syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT:
				return s, true
			}
		}
	}
}

// listenError is the reason in the words of a kernel: bind() to 0.0.0.0:80 failed (98: Address already in use).
func listenError(err error) string {
	if errors.Is(err, syscall.EADDRINUSE) {
		return "address already in use"
	}
	var oe *net.OpError
	if errors.As(err, &oe) {
		return oe.Err.Error()
	}
	return err.Error()
}

// lineWriter makes each write one whole: log lines of concurrent requests don't mix.
type lineWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lineWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

func (l *lineWriter) printf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if !strings.HasSuffix(line, "\n") {
		line += "\n"
	}
	io.WriteString(l, line)
}

// statusWriter remembers what a handler answered.
type statusWriter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (w *statusWriter) WriteHeader(code int) {
	if w.status == 0 {
		w.status = code
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
