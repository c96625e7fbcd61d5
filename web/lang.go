package web

import (
	"net/http"
	"strconv"
	"strings"

	"kubistro/internal/lab"
)

// langOf finds the language of a request: ?lang=, the cookie, Accept-Language,
// and Traditional Chinese when nothing says otherwise.
func langOf(r *http.Request) lab.Lang {
	if l, ok := lab.ParseLang(r.URL.Query().Get("lang")); ok {
		return l
	}
	if c, err := r.Cookie(langCookie); err == nil {
		if l, ok := lab.ParseLang(c.Value); ok {
			return l
		}
	}
	return acceptedLang(r.Header.Get("Accept-Language"))
}

// acceptedLang picks the language with the highest weight that Kubistro speaks.
func acceptedLang(header string) lab.Lang {
	best, bestQ := lab.ZhTW, 0.0
	for part := range strings.SplitSeq(header, ",") {
		tag, params, _ := strings.Cut(part, ";")
		q := 1.0
		if _, v, ok := strings.Cut(strings.TrimSpace(params), "q="); ok {
			q, _ = strconv.ParseFloat(v, 64)
		}
		if l, ok := lab.ParseLang(tag); ok && q > bestQ {
			best, bestQ = l, q
		}
	}
	return best
}

// keepLang remembers a language that the reader has chosen by ?lang=.
func (s *Server) keepLang(w http.ResponseWriter, r *http.Request) error {
	l, ok := lab.ParseLang(r.URL.Query().Get("lang"))
	if !ok {
		return nil
	}
	s.setCookie(w, r, langCookie, string(l))
	return s.Store.SetLang(r.Context(), learnerOf(r), l)
}
