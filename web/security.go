package web

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strings"
)

type nonceKey struct{}

// nonceOf is the nonce for the style elements that the editor and the terminal make.
func nonceOf(r *http.Request) string {
	n, _ := r.Context().Value(nonceKey{}).(string)
	return n
}

// security sets the headers that every answer carries.
func (s *Server) security(next http.Handler) http.Handler {
	ancestors := "'none'"
	if len(s.FrameAncestors) > 0 {
		ancestors = "'self' " + strings.Join(s.FrameAncestors, " ")
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b [16]byte
		rand.Read(b[:])
		nonce := base64.StdEncoding.EncodeToString(b[:])
		h := w.Header()
		h.Set("Content-Security-Policy", policy(nonce, ancestors))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
		if len(s.FrameAncestors) == 0 {
			h.Set("X-Frame-Options", "DENY")
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), nonceKey{}, nonce)))
	})
}

func policy(nonce, ancestors string) string {
	return strings.Join([]string{
		"default-src 'none'",
		"script-src 'self'",
		"style-src 'self' 'nonce-" + nonce + "'",
		"img-src 'self'",
		"font-src 'self'",
		"connect-src 'self'",
		"manifest-src 'self'",
		"form-action 'self'",
		"base-uri 'none'",
		"frame-ancestors " + ancestors,
	}, "; ")
}

// sandboxed is for answers that contain what a learner's Pods say.
func sandboxed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("Cookie")
		w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
		next.ServeHTTP(w, r)
	})
}
