package web

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"kubistro/internal/lab"
)

const (
	learnerCookie = "kubistro_learner"
	langCookie    = "kubistro_lang"
	cookieLife    = 400 * 24 * time.Hour // the longest that browsers keep
)

var learnerPattern = regexp.MustCompile(`^[a-z2-7]{26}$`)

// newLearnerID draws 128 random bits.
func newLearnerID() lab.LearnerID {
	var b [16]byte
	rand.Read(b[:])
	return lab.LearnerID(strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:])))
}

type learnerKey struct{}

// learnerOf is the learner of a request that went through withLearner.
func learnerOf(r *http.Request) lab.LearnerID {
	id, _ := r.Context().Value(learnerKey{}).(lab.LearnerID)
	return id
}

// withLearner knows the learner by cookie, or makes a new one and sets it.
func (s *Server) withLearner(next handler) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		id, known := cookieLearner(r)
		if known && s.seen.due(id) {
			var err error
			if known, err = s.Store.Known(r.Context(), id); err != nil {
				return err
			}
		}
		if !known { // a cookie that somebody made up included
			if !s.limiter.allow("new", clientAddress(r), s.Limits.NewLearners, s.Limits.NewBurst) {
				return errTooFast
			}
			id = newLearnerID()
		}
		if s.seen.due(id) {
			if err := s.Store.See(r.Context(), id); err != nil {
				return err
			}
			s.seen.note(id)
			s.setCookie(w, r, learnerCookie, string(id))
		}
		return next(w, r.WithContext(context.WithValue(r.Context(), learnerKey{}, id)))
	}
}

func cookieLearner(r *http.Request) (lab.LearnerID, bool) {
	c, err := r.Cookie(learnerCookie)
	if err != nil || !learnerPattern.MatchString(c.Value) {
		return "", false
	}
	return lab.LearnerID(c.Value), true
}

// setCookie sets a cookie that scripts can't read.
func (s *Server) setCookie(w http.ResponseWriter, r *http.Request, name, value string) {
	c := &http.Cookie{
		Name: name, Value: value, Path: "/", MaxAge: int(cookieLife / time.Second),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: s.secure(r),
	}
	if len(s.FrameAncestors) > 0 {
		c.SameSite, c.Secure, c.Partitioned = http.SameSiteNoneMode, true, true
	}
	http.SetCookie(w, c)
}

// secure reports whether the browser speaks https, to us or to the proxy before us.
func (s *Server) secure(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(s.PublicURL, "https://")
}

func clientAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// seenLearners spares the store a write for each request.
type seenLearners struct {
	now func() time.Time
	mu  sync.Mutex
	at  map[lab.LearnerID]time.Time
}

const seenEvery = 5 * time.Minute

func newSeenLearners(now func() time.Time) *seenLearners {
	return &seenLearners{now: now, at: map[lab.LearnerID]time.Time{}}
}

// due reports whether the store has to hear of a visit again.
func (s *seenLearners) due(id lab.LearnerID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.at[id]
	return !ok || s.now().Sub(at) >= seenEvery
}

func (s *seenLearners) note(id lab.LearnerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.at) >= maxBuckets {
		clear(s.at)
	}
	s.at[id] = s.now()
}
