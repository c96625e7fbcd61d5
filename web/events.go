package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"kubistro/internal/lab"
)

// How long streams wait for a browser.
const (
	pingEvery    = 20 * time.Second
	writeTimeout = 10 * time.Second
)

// sink is where a stream's messages go: a WebSocket or server-sent events.
type sink interface {
	// send delivers one message; n is its event number, 0 for what isn't numbered.
	send(ctx context.Context, n uint64, body []byte) error
	// ping makes sure that the browser is still there.
	ping(ctx context.Context) error
}

// sessionFrame goes between the numbered frames whenever the session's state has changed.
type sessionFrame struct {
	Type    string      `json:"type"` // "session"
	Now     time.Time   `json:"now"`  // the server's clock
	Session sessionJSON `json:"session"`
}

// events streams a session's frames: over a WebSocket, or as server-sent events
// where a network blocks those.
func (s *Server) events(w http.ResponseWriter, r *http.Request) error {
	after, err := number(r, "after", 0)
	if err != nil {
		return err
	}
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		if _, err := fmt.Sscanf(id, "%d", &after); err != nil {
			return lab.Fail(lab.CodeInvalid, "Last-Event-ID 必須是數字。", "Last-Event-ID must be a number.")
		}
	}
	if _, err := s.Lab.Get(r.Context(), learnerOf(r), sessionID(r)); err != nil {
		return err
	}
	if !isUpgrade(r) {
		ctx, stop := s.untilClosed(r.Context())
		defer stop()
		out, err := newEventSource(w)
		if err != nil {
			return err
		}
		s.logStream(r, s.feed(ctx, r, after, out))
		return nil
	}
	conn, err := s.accept(w, r)
	if err != nil {
		return nil // Accept has answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(1 << 10)
	// Reading goes on until the browser has got the reason for the end.
	ctx, stop := s.untilClosed(conn.CloseRead(r.Context()))
	defer stop()
	err = s.feed(ctx, r, after, socketSink{conn})
	s.logStream(r, err)
	conn.Close(closeStatus(err), "")
	return nil
}

// accept takes an upgrade; when it fails, the client has been answered.
func (s *Server) accept(w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	pace := s.limiter.bucket("socket", string(learnerOf(r)), s.Limits.SocketBytes, s.Limits.SocketBurst)
	return websocket.Accept(&pacedUpgrade{w, pace.Limiter}, r, nil)
}

// untilClosed ends a context when the server closes its streams.
func (s *Server) untilClosed(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(s.closing, cancel)
	return ctx, func() {
		stop()
		cancel()
	}
}

func isUpgrade(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// closeStatus tells a browser whether coming back makes sense.
func closeStatus(err error) websocket.StatusCode {
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return websocket.StatusNormalClosure
	case errors.Is(err, context.Canceled):
		return websocket.StatusGoingAway
	}
	return websocket.StatusInternalError
}

func (s *Server) logStream(r *http.Request, err error) {
	if err != nil && !errors.Is(err, io.EOF) {
		s.Log.Debug("stream ended", "path", r.URL.Path, "error", err)
	}
}

// feed sends frames and changes of the session until the client or the session ends.
func (s *Server) feed(ctx context.Context, r *http.Request, after uint64, out sink) error {
	learner, id := learnerOf(r), sessionID(r)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changed, err := s.sendSession(ctx, learner, id, out)
	if err != nil {
		return err
	}
	sub, err := s.Lab.Events(ctx, learner, id, after)
	if err != nil {
		return s.sendError(ctx, r, out, err)
	}
	defer sub.Close()
	frames, failed := make(chan lab.Event), make(chan error, 1)
	go func() {
		for {
			e, err := sub.Next(ctx)
			if err != nil {
				failed <- err
				return
			}
			select {
			case frames <- e:
			case <-ctx.Done():
				failed <- ctx.Err()
				return
			}
		}
	}()
	ended := false
	defer func() {
		cancel()
		if !ended {
			<-failed
		}
	}()
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		select {
		case e := <-frames:
			body, err := json.Marshal(e)
			if err != nil {
				return err
			}
			if err := out.send(ctx, e.N, body); err != nil {
				return err
			}
		case <-changed:
			if changed, err = s.sendSession(ctx, learner, id, out); err != nil {
				return err
			}
		case err := <-failed:
			ended = true
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return err
			}
			return s.sendError(ctx, r, out, err)
		case <-ping.C:
			if err := out.ping(ctx); err != nil {
				return err
			}
		}
	}
}

func (s *Server) sendSession(ctx context.Context, learner lab.LearnerID, id string, out sink) (<-chan struct{}, error) {
	changed, err := s.Lab.Changes(ctx, learner, id)
	if err != nil {
		return nil, err
	}
	v, err := s.Lab.Get(ctx, learner, id)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(sessionFrame{Type: "session", Now: s.Now(), Session: showSession(v)})
	if err != nil {
		return nil, err
	}
	return changed, out.send(ctx, 0, body)
}

// sendError tells the page what happened before the stream ends.
func (s *Server) sendError(ctx context.Context, r *http.Request, out sink, err error) error {
	body, marshalErr := json.Marshal(errorBody(asError(err), langOf(r)))
	if marshalErr != nil {
		return marshalErr
	}
	return errors.Join(err, out.send(ctx, 0, body))
}

// socketSink sends text messages; a browser that doesn't take them is dropped.
type socketSink struct{ conn *websocket.Conn }

func (s socketSink) send(ctx context.Context, _ uint64, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, body)
}

func (s socketSink) ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return s.conn.Ping(ctx)
}

// eventSource writes server-sent events.
type eventSource struct {
	w http.ResponseWriter
	c *http.ResponseController
}

func newEventSource(w http.ResponseWriter) (*eventSource, error) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	e := &eventSource{w: w, c: http.NewResponseController(w)}
	return e, e.c.Flush()
}

func (e *eventSource) send(_ context.Context, n uint64, body []byte) error {
	if n == 0 {
		return e.write("data: %s\n\n", body)
	}
	return e.write("id: %d\ndata: %s\n\n", n, body)
}

func (e *eventSource) ping(context.Context) error { return e.write(": ping\n\n") }

func (e *eventSource) write(format string, args ...any) error {
	// Not every server can set a deadline; where it can't, its own limit holds.
	_ = e.c.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := fmt.Fprintf(e.w, format, args...); err != nil {
		return err
	}
	return e.c.Flush()
}
