package host

import (
	"cmp"
	"crypto/tls"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strings"
	"time"
)

// config is what requests are answered by. It is replaced, never changed.
type config struct {
	entries map[string]*table // by entry point
	certs   certificates
}

// table is the rules of an entry point, best first: plain for HTTP, secure for TLS.
type table struct{ plain, secure []*rule }

// rule is one match and what is done with the requests that it is the best one for.
type rule struct {
	name   string // of the router, in the access log
	match  match
	action *action
	// Ingress: Traefik's priority, the higher wins. Gateway: the order of what HTTPRoute's
	// precedence leaves equal.
	priority int
	gateway  bool
	created  time.Time
	object   string // namespace/name
	index    int
}

// pathKind is how a path is compared.
type pathKind int

const (
	pathAny pathKind = iota
	pathRegexp
	pathPrefix // by elements: /a matches /a and /a/b, not /ab
	pathExact
)

// match is a conjunction; zero fields match everything.
type match struct {
	host     string // lower case; *.example.com is a wildcard
	oneLabel bool   // the wildcard stands for exactly one label, as in Ingress
	listener string // Gateway: the listener's host name, which orders before all else
	kind     pathKind
	path     string
	pattern  *regexp.Regexp
	method   string
	headers  []valueMatch
	queries  []valueMatch
}

// valueMatch compares a header or a query parameter.
type valueMatch struct {
	name    string
	value   string
	pattern *regexp.Regexp // instead of value
}

func (m valueMatch) ok(got string) bool {
	if m.pattern != nil {
		return m.pattern.MatchString(got)
	}
	return got == m.value
}

// matches compares a request; host is its lower-case host name without the port.
func (m *match) matches(r *http.Request, host string) bool {
	if !hostMatches(m.host, host, m.oneLabel) {
		return false
	}
	switch path := r.URL.Path; m.kind {
	case pathExact:
		if path != m.path {
			return false
		}
	case pathPrefix:
		if !prefixMatches(m.path, path) {
			return false
		}
	case pathRegexp:
		if !m.pattern.MatchString(path) {
			return false
		}
	}
	if m.method != "" && m.method != r.Method {
		return false
	}
	for _, h := range m.headers {
		values := r.Header[textproto.CanonicalMIMEHeaderKey(h.name)]
		if len(values) == 0 || !h.ok(strings.Join(values, ",")) {
			return false
		}
	}
	if len(m.queries) > 0 {
		q := r.URL.Query()
		for _, want := range m.queries {
			if !q.Has(want.name) || !want.ok(q.Get(want.name)) {
				return false
			}
		}
	}
	return true
}

// hostMatches compares a request's host with a pattern.
func hostMatches(pattern, host string, oneLabel bool) bool {
	suffix, wild := strings.CutPrefix(pattern, "*")
	if !wild {
		return pattern == "" || pattern == host
	}
	label, ok := strings.CutSuffix(host, suffix)
	return ok && label != "" && (!oneLabel || !strings.Contains(label, "."))
}

// prefixMatches compares element by element, as Ingress and HTTPRoute define Prefix.
func prefixMatches(prefix, path string) bool {
	prefix = strings.TrimSuffix(prefix, "/")
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/')
}

// hostRank orders host patterns: exact names, then wildcards, longer ones first.
func hostRank(pattern string) int {
	switch {
	case pattern == "":
		return 0
	case strings.HasPrefix(pattern, "*"):
		return len(pattern)
	}
	return 1000 + len(pattern)
}

// order puts the best rules first.
func (c *config) order() {
	for _, t := range c.entries {
		slices.SortStableFunc(t.plain, compareRules)
		slices.SortStableFunc(t.secure, compareRules)
	}
}

// compareRules is negative when a goes before b. Rules of Gateways come before those of
// Ingresses; among them the precedence of HTTPRoute's documentation holds. Rules of Ingresses go
// by priority, which is the length of Traefik's rule unless an annotation sets it.
func compareRules(a, b *rule) int {
	if a.gateway != b.gateway {
		if a.gateway {
			return -1
		}
		return 1
	}
	m, n := &a.match, &b.match
	if !a.gateway {
		return cmp.Or(
			cmp.Compare(b.priority, a.priority),
			cmp.Compare(hostRank(n.host), hostRank(m.host)),
			cmp.Compare(n.kind, m.kind),
			cmp.Compare(a.object, b.object),
			cmp.Compare(a.index, b.index))
	}
	present := func(s string) int { return min(len(s), 1) }
	exact := func(m *match) int { return max(int(m.kind), int(pathPrefix)) }
	return cmp.Or(
		cmp.Compare(hostRank(n.listener), hostRank(m.listener)),
		cmp.Compare(hostRank(n.host), hostRank(m.host)),
		cmp.Compare(exact(n), exact(m)),
		cmp.Compare(len(n.path), len(m.path)),
		cmp.Compare(present(n.method), present(m.method)),
		cmp.Compare(len(n.headers), len(m.headers)),
		cmp.Compare(len(n.queries), len(m.queries)),
		a.created.Compare(b.created),
		cmp.Compare(a.object, b.object),
		cmp.Compare(a.index, b.index))
}

// find returns the first rule that matches, or nil.
func (t *table) find(r *http.Request, secure bool) *rule {
	rules := t.plain
	if secure {
		rules = t.secure
	}
	host := hostOnly(r.Host)
	for _, rule := range rules {
		if rule.match.matches(r, host) {
			return rule
		}
	}
	return nil
}

// hostOnly is a Host header in lower case without its port.
func hostOnly(host string) string {
	host = strings.ToLower(host)
	if k := strings.LastIndexByte(host, ':'); k >= 0 && !strings.HasSuffix(host, "]") {
		host = host[:k]
	}
	return strings.TrimSuffix(host, ".")
}

// certificates are by host name; wildcards as *.example.com.
type certificates map[string]*tls.Certificate

// add makes a certificate known for its names; the first one of a name stays.
func (c *certificates) add(cert *tls.Certificate) {
	if *c == nil {
		*c = certificates{}
	}
	names := cert.Leaf.DNSNames
	for _, ip := range cert.Leaf.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 && cert.Leaf.Subject.CommonName != "" {
		names = []string{cert.Leaf.Subject.CommonName}
	}
	for _, n := range names {
		if n = strings.ToLower(n); (*c)[n] == nil {
			(*c)[n] = cert
		}
	}
}

// find is the certificate for a server name, or nil.
func (c certificates) find(name string) *tls.Certificate {
	name = hostOnly(name)
	if cert := c[name]; cert != nil {
		return cert
	}
	if _, parent, ok := strings.Cut(name, "."); ok {
		return c["*."+parent]
	}
	return nil
}
