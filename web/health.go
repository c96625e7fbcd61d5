package web

import (
	"context"
	"net/http"
	"time"

	"kubistro/internal/lab"
)

// healthz says that the process serves requests.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok", "version": s.Version})
}

// readyz says that learners can be served; it doesn't wait for the warm pool.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	if s.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := s.Ready(ctx); err != nil {
			s.Log.Warn("not ready", "error", err)
			writeError(w, r, lab.Fail(lab.CodeUnavailable,
				"伺服器還沒準備好，請稍候。", "The server isn't ready yet. Please wait a moment."))
			return
		}
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}
