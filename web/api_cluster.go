package web

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"kubistro/internal/lab"
)

func (s *Server) listKitchens(w http.ResponseWriter, r *http.Request) error {
	list, err := s.Lab.Kitchens(r.Context(), learnerOf(r), sessionID(r))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"kitchens": list})
	return nil
}

func (s *Server) addKitchen(w http.ResponseWriter, r *http.Request) error {
	var in lab.Kitchen
	if err := s.readJSON(r, &in); err != nil {
		return err
	}
	if err := s.Lab.AddKitchen(r.Context(), learnerOf(r), sessionID(r), in); err != nil {
		return err
	}
	return s.listKitchens(w, r)
}

func (s *Server) setKitchen(w http.ResponseWriter, r *http.Request) error {
	var in lab.KitchenChange
	if err := s.readJSON(r, &in); err != nil {
		return err
	}
	if err := s.Lab.SetKitchen(r.Context(), learnerOf(r), sessionID(r), chi.URLParam(r, "kitchen"), in); err != nil {
		return err
	}
	return s.listKitchens(w, r)
}

func (s *Server) removeKitchen(w http.ResponseWriter, r *http.Request) error {
	if err := s.Lab.RemoveKitchen(r.Context(), learnerOf(r), sessionID(r), chi.URLParam(r, "kitchen")); err != nil {
		return err
	}
	return s.listKitchens(w, r)
}

func (s *Server) listLoops(w http.ResponseWriter, r *http.Request) error {
	list, err := s.Lab.Loops(r.Context(), learnerOf(r), sessionID(r))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"loops": list})
	return nil
}

func (s *Server) setLoop(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Name string `json:"name"`
		Home bool   `json:"home"`
	}
	if err := s.readJSON(r, &in); err != nil {
		return err
	}
	if err := s.Lab.SetLoop(r.Context(), learnerOf(r), sessionID(r), in.Name, in.Home); err != nil {
		return err
	}
	return s.listLoops(w, r)
}

func (s *Server) getClock(w http.ResponseWriter, r *http.Request) error {
	c, err := s.Lab.ClusterClock(r.Context(), learnerOf(r), sessionID(r))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, c)
	return nil
}

func (s *Server) setClock(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		Speed int `json:"speed"`
	}
	if err := s.readJSON(r, &in); err != nil {
		return err
	}
	if err := s.Lab.SetClusterClock(r.Context(), learnerOf(r), sessionID(r), in.Speed); err != nil {
		return err
	}
	return s.getClock(w, r)
}

// listEtcd gives a page of etcd's keys: ?prefix=, ?after=, ?limit=.
func (s *Server) listEtcd(w http.ResponseWriter, r *http.Request) error {
	limit, err := number(r, "limit", 0)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	keys, err := s.Lab.EtcdKeys(r.Context(), learnerOf(r), sessionID(r), q.Get("prefix"), q.Get("after"), int(min(limit, lab.EtcdKeysMax)))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, keys)
	return nil
}

// etcdValue gives what etcd holds at ?key=.
func (s *Server) etcdValue(w http.ResponseWriter, r *http.Request) error {
	v, err := s.Lab.EtcdValue(r.Context(), learnerOf(r), sessionID(r), r.URL.Query().Get("key"))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, v)
	return nil
}

func (s *Server) getEncryption(w http.ResponseWriter, r *http.Request) error {
	e, err := s.Lab.Encryption(r.Context(), learnerOf(r), sessionID(r))
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, e)
	return nil
}

func (s *Server) setEncryption(w http.ResponseWriter, r *http.Request) error {
	var in lab.EncryptionChange
	if err := s.readJSON(r, &in); err != nil {
		return err
	}
	if err := s.Lab.SetEncryption(r.Context(), learnerOf(r), sessionID(r), in); err != nil {
		return err
	}
	return s.getEncryption(w, r)
}
