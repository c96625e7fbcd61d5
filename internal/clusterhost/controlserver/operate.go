package controlserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// Kitchens is what the control API asks of the nodes. Errors are those of package
// controlapi; methods may be called at any time, concurrently.
type Kitchens interface {
	Kitchens() ([]lab.KitchenState, error)
	AddKitchen(ctx context.Context, k lab.Kitchen) error
	RemoveKitchen(ctx context.Context, name string) error
	Cable(controlapi.CableRequest) error
}

// Loops is what the control API asks of control loops and their clock, as Kitchens.
type Loops interface {
	Loops() ([]lab.ControlLoop, error)
	SetLoop(ctx context.Context, r controlapi.LoopRequest) error
	Clock() lab.Clock
	SetClock(ctx context.Context, speed int) error
}

// Operate adds the routes that change the cluster's nodes and control loops. It is called before Serve.
func (s *Server) Operate(k Kitchens, l Loops) {
	s.mux.HandleFunc("GET "+controlapi.PathKitchens, func(w http.ResponseWriter, _ *http.Request) {
		list, err := k.Kitchens()
		s.result(w, list, err)
	})
	s.mux.HandleFunc("POST "+controlapi.PathKitchens, func(w http.ResponseWriter, r *http.Request) {
		var in lab.Kitchen
		if s.read(w, r, &in) {
			s.result(w, nil, k.AddKitchen(r.Context(), in))
		}
	})
	s.mux.HandleFunc("DELETE "+controlapi.PathKitchens+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		s.result(w, nil, k.RemoveKitchen(r.Context(), r.PathValue("name")))
	})
	s.mux.HandleFunc("POST "+controlapi.PathCable, func(w http.ResponseWriter, r *http.Request) {
		var in controlapi.CableRequest
		if s.read(w, r, &in) {
			s.result(w, nil, k.Cable(in))
		}
	})
	s.mux.HandleFunc("GET "+controlapi.PathLoops, func(w http.ResponseWriter, _ *http.Request) {
		list, err := l.Loops()
		s.result(w, list, err)
	})
	s.mux.HandleFunc("POST "+controlapi.PathLoops, func(w http.ResponseWriter, r *http.Request) {
		var in controlapi.LoopRequest
		if s.read(w, r, &in) {
			s.result(w, nil, l.SetLoop(r.Context(), in))
		}
	})
	s.mux.HandleFunc("GET "+controlapi.PathClock, func(w http.ResponseWriter, _ *http.Request) {
		s.result(w, l.Clock(), nil)
	})
	s.mux.HandleFunc("PUT "+controlapi.PathClock, func(w http.ResponseWriter, r *http.Request) {
		var in controlapi.ClockRequest
		if s.read(w, r, &in) {
			s.result(w, nil, l.SetClock(r.Context(), in.Speed))
		}
	})
}

// read reads a small body; false: it has answered already.
func (s *Server) read(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		http.Error(w, fmt.Sprintf("not a good request: %v", err), http.StatusBadRequest)
		return false
	}
	return true
}

// result answers with v, or that there is nothing to say, or with the error.
func (s *Server) result(w http.ResponseWriter, v any, err error) {
	switch {
	case err != nil:
		code := controlapi.StatusOf(err)
		if code == http.StatusInternalServerError {
			s.log.Warn("request to the control API failed", "err", err)
		}
		http.Error(w, err.Error(), code)
	case v == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		answer(w, http.StatusOK, v)
	}
}
