package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/coder/websocket"
	"github.com/go-chi/chi/v5"
	"golang.org/x/time/rate"

	"kubistro/internal/lab"
)

var tabPattern = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

var errBadTab = lab.Fail(lab.CodeInvalid,
	"終端機分頁的名稱只能用小寫英文字母、數字與「-」，最多 32 個字元。",
	"The name of a terminal tab has 1 to 32 lower-case letters, digits and \"-\".")

// keysJSON is one message from the browser; exactly one field is set.
type keysJSON struct {
	In     *string `json:"in"`
	Resize *[2]int `json:"resize"`
	Ack    *uint64 `json:"ack"`
}

// terminal connects the browser with one tab.
func (s *Server) terminal(w http.ResponseWriter, r *http.Request) error {
	tab := r.URL.Query().Get("tab")
	if tab == "" {
		tab = "main"
	}
	if !tabPattern.MatchString(tab) {
		return errBadTab
	}
	after, err := number(r, "after", 0)
	if err != nil {
		return err
	}
	if _, err := s.Lab.Get(r.Context(), learnerOf(r), sessionID(r)); err != nil {
		return err
	}
	if !isUpgrade(r) {
		w.Header().Set("Upgrade", "websocket")
		return lab.Fail(lab.CodeInvalid,
			"終端機需要 WebSocket 連線。若瀏覽器或公司網路擋下了 WebSocket，請改用其他網路。",
			"The terminal needs a WebSocket. If your network blocks them, use another one.")
	}
	conn, err := s.accept(w, r)
	if err != nil {
		return nil // Accept has answered
	}
	defer conn.CloseNow()
	conn.SetReadLimit(s.Limits.SocketMessage)
	ctx, stop := s.untilClosed(r.Context())
	defer stop()
	ready := make(chan Terminal, 1)
	reading := make(chan error, 1)
	go func() {
		defer stop()
		reading <- s.readKeys(ctx, r, conn, ready)
	}()
	err = s.showTerminal(ctx, r, conn, tab, after, ready)
	s.logStream(r, err)
	conn.Close(closeStatus(err), "")
	stop()
	<-reading
	return nil
}

// showTerminal waits for the terminal, gives it to the reader and sends its output.
func (s *Server) showTerminal(ctx context.Context, r *http.Request, conn *websocket.Conn, tab string, after uint64, ready chan<- Terminal) error {
	out := socketSink{conn}
	t, err := s.Lab.Terminal(lab.WithLang(ctx, langOf(r)), learnerOf(r), sessionID(r), tab)
	if err != nil {
		return s.sendError(ctx, r, out, err)
	}
	if err := out.send(ctx, 0, []byte(`{"ready":true}`)); err != nil {
		return err
	}
	ready <- t
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()
	for {
		blocks, reset, more := t.Output(after)
		if reset {
			if err := out.send(ctx, 0, []byte(`{"reset":true}`)); err != nil {
				return err
			}
		}
		for _, b := range blocks {
			body, err := json.Marshal(b)
			if err != nil {
				return err
			}
			if err := out.send(ctx, b.N, body); err != nil {
				return err
			}
			after = b.N
		}
		if err := waitMore(ctx, t, more, ping.C, out); err != nil {
			return err
		}
	}
}

var errTerminalClosed = lab.Fail(lab.CodeNotFound, "這個終端機分頁已經關閉。", "This terminal tab has been closed.")

// waitMore returns nil when there may be more output.
func waitMore(ctx context.Context, t Terminal, more <-chan struct{}, ping <-chan time.Time, out sink) error {
	for {
		select {
		case <-more:
			return nil
		case <-ping:
			if err := out.ping(ctx); err != nil {
				return err
			}
		case <-t.Done():
			return errors.Join(errTerminalClosed, out.send(ctx, 0, []byte(`{"closed":true}`)))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// readKeys types what the browser sends. Too fast a browser is read more slowly,
// so that nothing is lost; one that sends nonsense is disconnected.
func (s *Server) readKeys(ctx context.Context, r *http.Request, conn *websocket.Conn, ready <-chan Terminal) error {
	pace := rate.NewLimiter(s.Limits.Messages, s.Limits.MessageBurst)
	var t Terminal
	for {
		// Not ctx: its end would cut the connection before the reason was sent.
		_, body, err := conn.Read(r.Context())
		if err != nil {
			return err
		}
		if err := pace.Wait(ctx); err != nil {
			return err
		}
		if t == nil {
			select {
			case t = <-ready:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		var m keysJSON
		if err := json.Unmarshal(body, &m); err != nil {
			conn.Close(websocket.StatusUnsupportedData, "not understood")
			return err
		}
		switch {
		case m.In != nil:
			if err := t.Input(*m.In); err != nil {
				s.sendError(ctx, r, socketSink{conn}, err)
			}
		case m.Resize != nil:
			t.Resize(min(max(m.Resize[0], 2), 500), min(max(m.Resize[1], 1), 200))
		case m.Ack != nil:
			t.Ack(*m.Ack)
		}
	}
}

func (s *Server) listTerminals(w http.ResponseWriter, r *http.Request) error {
	tabs, err := s.Lab.Terminals(r.Context(), learnerOf(r), sessionID(r))
	if err != nil {
		return err
	}
	if tabs == nil {
		tabs = []string{}
	}
	writeJSON(w, http.StatusOK, map[string]any{"terminals": tabs})
	return nil
}

func (s *Server) closeTerminal(w http.ResponseWriter, r *http.Request) error {
	tab := chi.URLParam(r, "tab")
	if !tabPattern.MatchString(tab) {
		return errBadTab
	}
	if err := s.Lab.CloseTerminal(r.Context(), learnerOf(r), sessionID(r), tab); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
