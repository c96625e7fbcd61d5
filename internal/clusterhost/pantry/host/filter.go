package host

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// filters change requests and answers on their way. The zero value changes nothing.
type filters struct {
	request  []headerChange
	response []headerChange
	redirect *redirect
	rewrite  *rewrite
}

// headerChange is one step of a header modifier.
type headerChange struct {
	op    headerOp
	name  string
	value string
}

type headerOp int

const (
	headerSet headerOp = iota
	headerAdd
	headerRemove
)

func applyHeaders(h http.Header, changes []headerChange) {
	for _, c := range changes {
		switch c.op {
		case headerSet:
			h.Set(c.name, c.value)
		case headerAdd:
			h.Add(c.name, c.value)
		case headerRemove:
			h.Del(c.name)
		}
	}
}

// pathChange replaces a path: the whole of it, or the prefix that the rule matched.
type pathChange struct {
	full        bool
	replacement string
}

// apply returns the new path; prefix is what the rule matched.
func (c *pathChange) apply(path, prefix string) string {
	if c == nil {
		return path
	}
	if c.full {
		return c.replacement
	}
	rest := strings.TrimPrefix(path, strings.TrimSuffix(prefix, "/"))
	out := strings.TrimSuffix(c.replacement, "/") + rest
	return cmp.Or(out, "/")
}

// redirect answers with another location.
type redirect struct {
	scheme, host string
	port         int
	path         *pathChange
	status       int
}

// location is where a request is sent; the port is left out where the scheme implies it.
func (d *redirect) location(r *http.Request, secure bool, prefix string) string {
	scheme := "http"
	if secure {
		scheme = "https"
	}
	host, port := r.Host, ""
	if h, p, err := net.SplitHostPort(r.Host); err == nil {
		host, port = h, p
	}
	if d.scheme != "" && d.scheme != scheme { // another scheme has another port
		scheme, port = d.scheme, ""
	}
	host = cmp.Or(d.host, host)
	if d.port != 0 {
		port = strconv.Itoa(d.port)
	}
	if port != "" && !(scheme == "http" && port == "80") && !(scheme == "https" && port == "443") {
		host = net.JoinHostPort(strings.Trim(host, "[]"), port)
	}
	u := url.URL{Scheme: scheme, Host: host, Path: d.path.apply(r.URL.Path, prefix), RawQuery: r.URL.RawQuery}
	return u.String()
}

// rewrite changes what the server behind gets.
type rewrite struct {
	host string
	path *pathChange
}

func (w *rewrite) apply(r *http.Request, prefix string) {
	if w == nil {
		return
	}
	if w.host != "" {
		r.Host = w.host
	}
	if w.path != nil {
		r.URL.Path, r.URL.RawPath = w.path.apply(r.URL.Path, prefix), ""
	}
}
