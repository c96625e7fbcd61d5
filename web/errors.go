package web

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"kubistro/internal/lab"
)

// handler answers a request or says why it can't; the adapters page and api turn
// the error into what the client understands.
type handler func(w http.ResponseWriter, r *http.Request) error

func status(c lab.Code) int {
	switch c {
	case lab.CodeInvalid:
		return http.StatusBadRequest
	case lab.CodeForbidden:
		return http.StatusForbidden
	case lab.CodeNotFound:
		return http.StatusNotFound
	case lab.CodeConflict:
		return http.StatusConflict
	case lab.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case lab.CodeBusy:
		return http.StatusTooManyRequests
	case lab.CodeUnsupported:
		return http.StatusUnprocessableEntity
	case lab.CodeUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// asError also understands the errors of net/http.
func asError(err error) *lab.Error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return lab.Fail(lab.CodeTooLarge,
			"送出的內容太大了，請縮小後再試。",
			"What you sent is too large. Make it smaller and try again.").Because(err)
	}
	return lab.AsError(err)
}

// guard runs h and also catches a panic. It logs what is our fault; a client that went away is nobody's.
func (s *Server) guard(h handler, w http.ResponseWriter, r *http.Request) (e *lab.Error) {
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler {
				panic(v)
			}
			s.Log.Error("handler panicked", "method", r.Method, "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
			e = lab.AsError(errors.New("panic"))
		}
	}()
	err := h(w, r)
	if err == nil {
		return nil
	}
	e = asError(err)
	level := slog.LevelDebug
	if e.Code == lab.CodeInternal && !errors.Is(err, context.Canceled) {
		level = slog.LevelError
	}
	s.Log.Log(r.Context(), level, "request failed", "method", r.Method, "path", r.URL.Path, "code", e.Code, "error", err)
	return e
}

// api adapts a handler of the JSON API.
func (s *Server) api(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if e := s.guard(h, w, r); e != nil {
			writeError(w, r, e)
		}
	}
}

func writeError(w http.ResponseWriter, r *http.Request, e *lab.Error) {
	if e.Code == lab.CodeBusy {
		w.Header().Set("Retry-After", "2")
	}
	writeJSON(w, status(e.Code), errorBody(e, langOf(r)))
}

type errorJSON struct {
	Error struct {
		Code    lab.Code `json:"code"`
		Message string   `json:"message"`
	} `json:"error"`
}

func errorBody(e *lab.Error, l lab.Lang) errorJSON {
	var b errorJSON
	b.Error.Code, b.Error.Message = e.Code, e.Text.In(l)
	return b
}

// writeJSON sends v; what can't be encoded is a bug and becomes an empty 500.
func writeJSON(w http.ResponseWriter, code int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	w.Write(append(body, '\n'))
}

// isAPI reports whether a request wants JSON for an answer, whatever goes wrong.
func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }
