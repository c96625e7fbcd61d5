package host

import (
	"fmt"
	"net/http"
	"time"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// filtersOf translates a rule's filters; nil when there are none.
func filtersOf(specs []gatewayv1.HTTPRouteFilter) (*filters, verdict) {
	if len(specs) == 0 {
		return nil, verdict{}
	}
	f := &filters{}
	for _, s := range specs {
		switch {
		case s.Type == gatewayv1.HTTPRouteFilterRequestHeaderModifier && s.RequestHeaderModifier != nil:
			f.request = append(f.request, changesOf(s.RequestHeaderModifier)...)
		case s.Type == gatewayv1.HTTPRouteFilterResponseHeaderModifier && s.ResponseHeaderModifier != nil:
			f.response = append(f.response, changesOf(s.ResponseHeaderModifier)...)
		case s.Type == gatewayv1.HTTPRouteFilterRequestRedirect && s.RequestRedirect != nil:
			f.redirect = redirectOf(s.RequestRedirect)
		case s.Type == gatewayv1.HTTPRouteFilterURLRewrite && s.URLRewrite != nil:
			f.rewrite = &rewrite{path: pathOf(s.URLRewrite.Path)}
			if h := s.URLRewrite.Hostname; h != nil {
				f.rewrite.host = string(*h)
			}
		default:
			return nil, verdict{gatewayv1.RouteReasonUnsupportedValue, fmt.Sprintf("Filter type %q is not supported", s.Type)}
		}
	}
	return f, verdict{}
}

func changesOf(m *gatewayv1.HTTPHeaderFilter) (out []headerChange) {
	for _, h := range m.Set {
		out = append(out, headerChange{headerSet, string(h.Name), h.Value})
	}
	for _, h := range m.Add {
		out = append(out, headerChange{headerAdd, string(h.Name), h.Value})
	}
	for _, name := range m.Remove {
		out = append(out, headerChange{op: headerRemove, name: name})
	}
	return out
}

func redirectOf(s *gatewayv1.HTTPRequestRedirectFilter) *redirect {
	d := &redirect{status: http.StatusFound, path: pathOf(s.Path)}
	if s.Scheme != nil {
		d.scheme = *s.Scheme
	}
	if s.Hostname != nil {
		d.host = string(*s.Hostname)
	}
	if s.Port != nil {
		d.port = int(*s.Port)
	}
	if s.StatusCode != nil {
		d.status = *s.StatusCode
	}
	return d
}

func pathOf(m *gatewayv1.HTTPPathModifier) *pathChange {
	switch {
	case m == nil:
		return nil
	case m.Type == gatewayv1.FullPathHTTPPathModifier && m.ReplaceFullPath != nil:
		return &pathChange{full: true, replacement: *m.ReplaceFullPath}
	case m.ReplacePrefixMatch != nil:
		return &pathChange{replacement: *m.ReplacePrefixMatch}
	}
	return nil
}

// durationOf reads a timeout; 0s and none mean no limit.
func durationOf(d *gatewayv1.Duration) (time.Duration, verdict) {
	if d == nil {
		return 0, verdict{}
	}
	v, err := time.ParseDuration(string(*d))
	if err != nil {
		return 0, verdict{gatewayv1.RouteReasonUnsupportedValue, err.Error()}
	}
	return v, verdict{}
}
