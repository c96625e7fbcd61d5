package cloud

import (
	"encoding/json"
	"errors"
	"net/http"
)

// Paths of the API.
const (
	pathTypes     = "/v1/instance-types" // GET
	pathInstances = "/v1/instances"      // GET, POST LaunchRequest; DELETE, GET /v1/instances/ID
)

// Bounds of requests: how long one may be, and how many are worked on at a time.
const (
	maxBody     = 64 << 10
	maxInFlight = 16
)

var statuses = map[string]int{
	CodeInvalid: http.StatusBadRequest, CodeNotFound: http.StatusNotFound, CodeLimit: http.StatusConflict, CodeUnavailable: http.StatusServiceUnavailable,
}

// Handler serves the API.
func Handler(m Machines) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathTypes, func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, Catalogue()) })
	mux.HandleFunc("GET "+pathInstances, func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, m.Instances()) })
	mux.HandleFunc("GET "+pathInstances+"/{id}", func(w http.ResponseWriter, r *http.Request) {
		for _, i := range m.Instances() {
			if i.ID == r.PathValue("id") {
				write(w, http.StatusOK, i)
				return
			}
		}
		fail(w, Errorf(CodeNotFound, "there is no instance %s", r.PathValue("id")))
	})
	mux.HandleFunc("POST "+pathInstances, func(w http.ResponseWriter, r *http.Request) {
		var order LaunchRequest
		dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&order); err != nil {
			fail(w, Errorf(CodeInvalid, "%v", err))
			return
		}
		if err := order.Validate(); err != nil {
			fail(w, err)
			return
		}
		i, err := m.Launch(r.Context(), order)
		if err != nil {
			fail(w, err)
			return
		}
		write(w, http.StatusCreated, i)
	})
	mux.HandleFunc("DELETE "+pathInstances+"/{id}", func(w http.ResponseWriter, r *http.Request) {
		if err := m.Terminate(r.Context(), r.PathValue("id")); err != nil {
			fail(w, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	slots := make(chan struct{}, maxInFlight)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			mux.ServeHTTP(w, r)
		default:
			fail(w, Errorf(CodeUnavailable, "too many requests at a time"))
		}
	})
}

func write(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(raw, '\n'))
}

func fail(w http.ResponseWriter, err error) {
	e, status := &Error{}, http.StatusInternalServerError
	if errors.As(err, &e) {
		status = statuses[e.Code]
	} else {
		e = Errorf("InternalError", "%v", err)
	}
	write(w, status, e)
}
