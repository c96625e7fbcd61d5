package controlserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// Whiteboard is how the cluster is stored. Errors of its methods before the
// cluster answers are controlapi.ErrNotReady.
type Whiteboard interface {
	// EtcdKeys lists at most limit keys with a prefix that come after a key.
	EtcdKeys(ctx context.Context, prefix, after string, limit int) (lab.EtcdKeys, error)
	// EtcdValue reads a key; false: there is none.
	EtcdValue(ctx context.Context, key string) (lab.EtcdValue, bool, error)
	Encryption() (lab.Encryption, error)
	// SetEncryption changes nothing when it fails; a configuration that can't be is controlapi.ErrInvalid.
	SetEncryption(lab.Encryption) error
}

const (
	maxKey        = 4 << 10
	maxEncryption = 64 << 10
)

// ServeWhiteboard answers for the storage of w as well; call it before Serve.
func (s *Server) ServeWhiteboard(w Whiteboard) {
	s.mux.HandleFunc("GET "+controlapi.PathEtcdKeys, func(rw http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		limit, err := strconv.Atoi(q.Get("limit"))
		if q.Has("limit") && (err != nil || limit < 0) {
			http.Error(rw, "limit isn't a number", http.StatusBadRequest)
			return
		}
		if limit == 0 || limit > lab.EtcdKeysMax {
			limit = lab.EtcdKeysMax
		}
		keys, err := w.EtcdKeys(r.Context(), q.Get("prefix"), q.Get("after"), limit)
		reply(rw, keys, err)
	})
	s.mux.HandleFunc("GET "+controlapi.PathEtcdValue, func(rw http.ResponseWriter, r *http.Request) {
		key := r.URL.Query().Get("key")
		if key == "" || len(key) > maxKey {
			http.Error(rw, "a key must be named", http.StatusBadRequest)
			return
		}
		v, ok, err := w.EtcdValue(r.Context(), key)
		if err == nil && !ok {
			http.Error(rw, "there is no such key", http.StatusNotFound)
			return
		}
		reply(rw, v, err)
	})
	s.mux.HandleFunc("GET "+controlapi.PathEncryption, func(rw http.ResponseWriter, _ *http.Request) {
		e, err := w.Encryption()
		reply(rw, e, err)
	})
	s.mux.HandleFunc("PUT "+controlapi.PathEncryption, func(rw http.ResponseWriter, r *http.Request) {
		var e lab.Encryption
		if err := json.NewDecoder(http.MaxBytesReader(rw, r.Body, maxEncryption)).Decode(&e); err != nil {
			http.Error(rw, "not an encryption request: "+err.Error(), http.StatusBadRequest)
			return
		}
		s.result(rw, nil, w.SetEncryption(e))
	})
}

// reply answers with v, or says why it can't.
func reply(w http.ResponseWriter, v any, err error) {
	switch {
	case errors.Is(err, controlapi.ErrNotReady):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	default:
		answer(w, http.StatusOK, v)
	}
}
