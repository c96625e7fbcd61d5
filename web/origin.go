package web

import (
	"net/http"
	"net/url"
	"strings"

	"kubistro/internal/lab"
)

var errOrigin = lab.Fail(lab.CodeForbidden,
	"這個請求來自另一個網站，因此被拒絕。請直接在本站的頁面操作。",
	"This request came from another site and was refused. Use the pages of this site.")

var errHost = lab.Fail(lab.CodeForbidden,
	"這個伺服器不接受用這個名稱連線。請改用 http://localhost 或 http://127.0.0.1；如果是經由其他網址轉接，請在啟動時加上 --public-url。",
	"This server doesn't answer to that name. Use http://localhost or http://127.0.0.1; behind another address, start it with --public-url.")

// knownHost refuses requests that name the server otherwise than AllowedHosts do.
func (s *Server) knownHost(next http.Handler) http.Handler {
	if s.AllowedHosts == nil {
		return next
	}
	refuse := s.api(func(http.ResponseWriter, *http.Request) error { return errHost })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := (&url.URL{Host: r.Host}).Hostname()
		for _, h := range s.AllowedHosts {
			if strings.EqualFold(strings.TrimSuffix(name, "."), h) {
				next.ServeHTTP(w, r)
				return
			}
		}
		refuse.ServeHTTP(w, r)
	})
}

// sameOrigin refuses requests that another site's page makes in the learner's
// name: unsafe methods and WebSockets. Programs send neither header and pass.
func sameOrigin(r *http.Request) error {
	upgrade := strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		if !upgrade {
			return nil
		}
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return errOrigin
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return nil
	}
	u, err := url.Parse(origins[0])
	if err != nil || len(origins) > 1 || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
		return errOrigin
	}
	return nil
}
