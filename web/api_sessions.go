package web

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"kubistro/internal/lab"
)

// readJSON decodes a small JSON body strictly: no unknown fields, nothing after it.
func (s *Server) readJSON(r *http.Request, into any) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, s.Limits.Body+1))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return err
		}
		return errBadJSON.Because(err)
	}
	if int64(len(body)) > s.Limits.Body {
		return &http.MaxBytesError{Limit: s.Limits.Body}
	}
	d := json.NewDecoder(newBytesReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return errBadJSON.Because(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errBadJSON
	}
	return nil
}

var errBadJSON = lab.Fail(lab.CodeInvalid,
	"讀不懂送出的 JSON，請對照 API 文件檢查欄位名稱與格式。",
	"The JSON in the request can't be understood. Compare its fields with the API's documentation.")

// sessionJSON is a session as the API shows it: the status in flat form beside the full one.
type sessionJSON struct {
	lab.Session
	Stage string `json:"stage,omitempty"`
	Since string `json:"since,omitempty"`
}

func showSession(v lab.Session) sessionJSON {
	if v.Status.State == "" {
		v.Status.State = v.State
	}
	out := sessionJSON{Session: v, Stage: v.Status.Stage}
	if v.Capabilities == nil {
		out.Capabilities = []string{}
	}
	if !v.Status.Since.IsZero() {
		out.Since = v.Status.Since.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	}
	return out
}

func (s *Server) openSession(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Course string `json:"course"`
	}
	if err := s.readJSON(r, &in); err != nil {
		return err
	}
	if s.Library.Course(in.Course) == nil {
		return errNoCourse
	}
	v, created, err := s.Lab.Open(r.Context(), learnerOf(r), in.Course)
	if err != nil {
		return err
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
		w.Header().Set("Location", "/api/v1/sessions/"+v.ID)
	}
	writeJSON(w, code, showSession(v))
	return nil
}

func (s *Server) listSessions(w http.ResponseWriter, r *http.Request) error {
	list, err := s.Lab.List(r.Context(), learnerOf(r))
	if err != nil {
		return err
	}
	out := make([]sessionJSON, 0, len(list))
	for _, v := range list {
		out = append(out, showSession(v))
	}
	writeJSON(w, http.StatusOK, map[string]any{"sessions": out})
	return nil
}

func (s *Server) getSession(w http.ResponseWriter, r *http.Request) error {
	v, err := s.Lab.Get(r.Context(), learnerOf(r), sessionID(r))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, showSession(v))
	return nil
}

func (s *Server) endSession(w http.ResponseWriter, r *http.Request) error {
	if err := s.Lab.End(r.Context(), learnerOf(r), sessionID(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) resetSession(w http.ResponseWriter, r *http.Request) error {
	op, err := s.Lab.Reset(r.Context(), learnerOf(r), sessionID(r))
	if err != nil {
		return err
	}
	return accepted(w, r, op)
}

// accepted answers with an operation and where to ask how it goes.
func accepted(w http.ResponseWriter, r *http.Request, op lab.Operation) error {
	w.Header().Set("Location", "/api/v1/sessions/"+sessionID(r)+"/operations/"+op.ID)
	writeJSON(w, http.StatusAccepted, op)
	return nil
}

func (s *Server) getOperation(w http.ResponseWriter, r *http.Request) error {
	op, err := s.Lab.Operation(r.Context(), learnerOf(r), sessionID(r), chi.URLParam(r, "operation"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, op)
	return nil
}

func (s *Server) retrySession(w http.ResponseWriter, r *http.Request) error {
	if err := s.Lab.Retry(r.Context(), learnerOf(r), sessionID(r)); err != nil {
		return err
	}
	return s.getSession(w, r)
}

func (s *Server) wakeSession(w http.ResponseWriter, r *http.Request) error {
	if err := s.Lab.Wake(r.Context(), learnerOf(r), sessionID(r)); err != nil {
		return err
	}
	return s.getSession(w, r)
}

func (s *Server) touchSession(w http.ResponseWriter, r *http.Request) error {
	if err := s.Lab.Touch(r.Context(), learnerOf(r), sessionID(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) kubeconfig(w http.ResponseWriter, r *http.Request) error {
	base := s.PublicURL
	if base == "" {
		base = "http://" + r.Host // the session makes it https with the server's own certificate
	}
	body, err := s.Lab.Kubeconfig(r.Context(), learnerOf(r), sessionID(r), base)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/yaml; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="kubistro.kubeconfig"`)
	h.Set("Cache-Control", "no-store")
	_, err = w.Write(body)
	return ignoreGone(err)
}

func (s *Server) revokeKubeconfigs(w http.ResponseWriter, r *http.Request) error {
	if err := s.Lab.RevokeKubeconfigs(r.Context(), learnerOf(r), sessionID(r)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// recordMost is the most events that one request for older ones gets.
const recordMost = 1000

// record gives the events before a number, oldest first: for scrolling back.
func (s *Server) record(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.Lab.Get(r.Context(), learnerOf(r), sessionID(r)); err != nil {
		return err
	}
	before, err := number(r, "before", 0)
	if err != nil {
		return err
	}
	limit, err := number(r, "limit", 500)
	if err != nil {
		return err
	}
	limit = min(max(limit, 1), recordMost)
	var events []lab.Event
	if before > 1 {
		after := uint64(0)
		if before-1 > limit {
			after = before - 1 - limit
		}
		events, err = s.Store.Record(r.Context(), sessionID(r), after, int(before-1-after))
		if err != nil {
			return err
		}
	}
	if events == nil {
		events = []lab.Event{}
	}
	writeJSON(w, http.StatusOK, map[string]any{"events": events})
	return nil
}

// number reads a query parameter that counts.
func number(r *http.Request, name string, absent uint64) (uint64, error) {
	v := r.URL.Query().Get(name)
	if v == "" {
		return absent, nil
	}
	n, err := strconv.ParseUint(v, 10, 63)
	if err != nil {
		return 0, lab.Fail(lab.CodeInvalid,
			"參數 "+name+" 必須是不小於 0 的整數。",
			"The parameter "+name+" must be a whole number, 0 or more.")
	}
	return n, nil
}

func sessionID(r *http.Request) string { return chi.URLParam(r, "session") }
