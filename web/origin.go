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
