package host

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// verdict is a condition's reason when something is wrong.
type verdict struct {
	reason  gatewayv1.RouteConditionReason
	message string
}

// addRoute attaches a route to the listeners of its parents and writes its status.
func (b *builder) addRoute(route *gatewayv1.HTTPRoute, gateways map[string][]*listener) {
	var ours []gatewayv1.RouteParentStatus
	rules, unsupported, unresolved := b.rulesOf(route)
	for _, ref := range route.Spec.ParentRefs {
		if ref.Group != nil && *ref.Group != gatewayGroup || ref.Kind != nil && *ref.Kind != "Gateway" {
			continue
		}
		namespace := route.Namespace
		if ref.Namespace != nil {
			namespace = string(*ref.Namespace)
		}
		listeners, mine := gateways[namespace+"/"+string(ref.Name)]
		if !mine {
			continue
		}
		accepted := unsupported
		if accepted.reason == "" {
			accepted = b.attach(route, ref, listeners, rules)
		}
		cs := newConditions(b.c.env.Clock.Now(), route.Generation, b.oldParent(route, ref))
		if accepted.reason == "" {
			cs.set(string(gatewayv1.RouteConditionAccepted), true, string(gatewayv1.RouteReasonAccepted), "")
		} else {
			cs.set(string(gatewayv1.RouteConditionAccepted), false, string(accepted.reason), accepted.message)
		}
		if unresolved.reason == "" {
			cs.set(string(gatewayv1.RouteConditionResolvedRefs), true, string(gatewayv1.RouteReasonResolvedRefs), "")
		} else {
			cs.set(string(gatewayv1.RouteConditionResolvedRefs), false, string(unresolved.reason), unresolved.message)
		}
		ours = append(ours, gatewayv1.RouteParentStatus{ParentRef: ref, ControllerName: gatewayv1.GatewayController(b.c.gatewayController), Conditions: cs.list()})
	}
	b.routeStatus(route, ours)
}

// attach finds the listeners of one parent that take the route and adds its rules to them.
func (b *builder) attach(route *gatewayv1.HTTPRoute, ref gatewayv1.ParentReference, listeners []*listener, rules []*rule) verdict {
	why := verdict{gatewayv1.RouteReasonNoMatchingParent, "No accepted listener of the Gateway has that name and port"}
	attached := false
	for _, l := range listeners {
		if !l.accepted || ref.SectionName != nil && *ref.SectionName != l.spec.Name || ref.Port != nil && *ref.Port != l.spec.Port {
			continue
		}
		if !b.allows(l, route.Namespace) {
			if why.reason == gatewayv1.RouteReasonNoMatchingParent {
				why = verdict{gatewayv1.RouteReasonNotAllowedByListeners, "No listener of the Gateway allows routes of this kind and namespace"}
			}
			continue
		}
		hosts := effectiveHosts(string(hostname(l.spec.Hostname)), route.Spec.Hostnames)
		if len(hosts) == 0 {
			why = verdict{gatewayv1.RouteReasonNoMatchingListenerHostname, "No listener has a host name in common with the route"}
			continue
		}
		attached = true
		l.status.AttachedRoutes++
		if l.usable {
			b.place(l, hosts, rules)
		}
	}
	if attached {
		return verdict{}
	}
	return why
}

// place enters rules at a listener, one for each host name.
func (b *builder) place(l *listener, hosts []string, rules []*rule) {
	t := b.cfg.entries[l.entry]
	for _, r := range rules {
		for _, host := range hosts {
			one := *r
			one.match.host, one.match.listener = host, string(hostname(l.spec.Hostname))
			one.name = fmt.Sprintf("%s-gw-%s-%s-ep-%s@kubernetesgateway", r.name, l.gateway.Namespace, l.gateway.Name, l.entry)
			if l.secure {
				t.secure = append(t.secure, &one)
			} else {
				t.plain = append(t.plain, &one)
			}
		}
	}
}

func effectiveHosts(listener string, route []gatewayv1.Hostname) []string {
	if len(route) == 0 {
		return []string{listener}
	}
	var out []string
	for _, h := range route {
		if host, ok := intersect(listener, strings.ToLower(string(h))); ok && !slices.Contains(out, host) {
			out = append(out, host)
		}
	}
	return out
}

// rulesOf makes the rules of a route, without their hosts.
func (b *builder) rulesOf(route *gatewayv1.HTTPRoute) (out []*rule, unsupported, unresolved verdict) {
	for k := range route.Spec.Rules {
		spec := &route.Spec.Rules[k]
		a, bad, missing := b.actionOf(route, spec)
		if bad.reason != "" {
			return nil, bad, missing
		}
		if unresolved.reason == "" {
			unresolved = missing
		}
		matches := spec.Matches
		if len(matches) == 0 {
			matches = []gatewayv1.HTTPRouteMatch{{}}
		}
		for _, m := range matches {
			compiled, err := matchOf(m)
			if err != nil {
				return nil, verdict{gatewayv1.RouteReasonUnsupportedValue, err.Error()}, unresolved
			}
			out = append(out, &rule{
				name:  fmt.Sprintf("httproute-%s-%s-%d", route.Namespace, route.Name, k),
				match: compiled, action: a, gateway: true, created: route.CreationTimestamp.Time, object: route.Namespace + "/" + route.Name, index: len(out),
			})
		}
	}
	return out, verdict{}, unresolved
}

// matchOf compiles a match; regular expressions are RE2, which bounds their time.
func matchOf(m gatewayv1.HTTPRouteMatch) (out match, err error) {
	compile := func(expr string) (*regexp.Regexp, error) { return regexp.Compile("^(?:" + expr + ")$") }
	out.kind, out.path = pathPrefix, "/"
	if m.Path != nil {
		if m.Path.Value != nil {
			out.path = *m.Path.Value
		}
		if m.Path.Type != nil {
			switch *m.Path.Type {
			case gatewayv1.PathMatchExact:
				out.kind = pathExact
			case gatewayv1.PathMatchRegularExpression:
				out.kind = pathRegexp
				if out.pattern, err = compile(out.path); err != nil {
					return out, err
				}
			}
		}
	}
	if m.Method != nil {
		out.method = string(*m.Method)
	}
	value := func(name, value string, isPattern bool) (v valueMatch, err error) {
		v = valueMatch{name: name, value: value}
		if isPattern {
			v.pattern, err = compile(value)
		}
		return v, err
	}
	for _, h := range m.Headers {
		v, err := value(string(h.Name), h.Value, h.Type != nil && *h.Type == gatewayv1.HeaderMatchRegularExpression)
		if err != nil {
			return out, err
		}
		if !slices.ContainsFunc(out.headers, func(o valueMatch) bool { return strings.EqualFold(o.name, v.name) }) { // the first of a name counts
			out.headers = append(out.headers, v)
		}
	}
	for _, q := range m.QueryParams {
		v, err := value(string(q.Name), q.Value, q.Type != nil && *q.Type == gatewayv1.QueryParamMatchRegularExpression)
		if err != nil {
			return out, err
		}
		if !slices.ContainsFunc(out.queries, func(o valueMatch) bool { return o.name == v.name }) {
			out.queries = append(out.queries, v)
		}
	}
	return out, nil
}

// actionOf makes what a rule does: its filters and its weighted backends.
func (b *builder) actionOf(route *gatewayv1.HTTPRoute, spec *gatewayv1.HTTPRouteRule) (a *action, unsupported, unresolved verdict) {
	a = &action{}
	if a.filters, unsupported = filtersOf(spec.Filters); unsupported.reason != "" {
		return nil, unsupported, verdict{}
	}
	if t := spec.Timeouts; t != nil {
		var bad verdict
		if a.timeout, bad = durationOf(t.Request); bad.reason == "" {
			a.perTry, bad = durationOf(t.BackendRequest)
		}
		if bad.reason != "" {
			return nil, bad, verdict{}
		}
	}
	for _, ref := range spec.BackendRefs {
		one := &backend{weight: 1}
		if ref.Weight != nil {
			one.weight = int(*ref.Weight)
		}
		var bad verdict
		if one.filters, bad = filtersOf(ref.Filters); bad.reason == "" && one.filters != nil && one.filters.redirect != nil {
			bad = verdict{gatewayv1.RouteReasonUnsupportedValue, "RequestRedirect is not supported on a backend"}
		}
		if bad.reason != "" {
			return nil, bad, verdict{}
		}
		one.balancer, bad = b.backendOf(route, ref.BackendObjectReference)
		if bad.reason != "" && unresolved.reason == "" {
			unresolved = bad
		}
		a.backends = append(a.backends, one)
	}
	return a, verdict{}, unresolved
}

// backendOf finds the Service behind a reference; a nil balancer answers 500.
func (b *builder) backendOf(route *gatewayv1.HTTPRoute, ref gatewayv1.BackendObjectReference) (*balancer, verdict) {
	if ref.Group != nil && *ref.Group != "" && *ref.Group != "core" || ref.Kind != nil && *ref.Kind != "Service" {
		return nil, verdict{gatewayv1.RouteReasonInvalidKind, "Only references to Services are supported"}
	}
	namespace := route.Namespace
	if ref.Namespace != nil {
		namespace = string(*ref.Namespace)
	}
	name := string(ref.Name)
	if !b.granted(reference{gatewayGroup, supportedRoute, route.Namespace}, reference{"", "Service", namespace}, name) {
		return nil, verdict{gatewayv1.RouteReasonRefNotPermitted, fmt.Sprintf("Cannot load HTTPBackendRef %s/%s: no ReferenceGrant allows it", namespace, name)}
	}
	if ref.Port == nil {
		return nil, verdict{gatewayv1.RouteReasonBackendNotFound, fmt.Sprintf("Cannot load HTTPBackendRef %s/%s: port is required for a Service", namespace, name)}
	}
	lb, err := b.service(namespace, name, networkingv1.ServiceBackendPort{Number: int32(*ref.Port)})
	if err != nil {
		return nil, verdict{gatewayv1.RouteReasonBackendNotFound, fmt.Sprintf("Cannot load HTTPBackendRef %s/%s: %v", namespace, name, err)}
	}
	return lb, verdict{}
}

// oldParent is what this controller last said of a route at one parent.
func (b *builder) oldParent(route *gatewayv1.HTTPRoute, ref gatewayv1.ParentReference) []metav1.Condition {
	for _, p := range route.Status.Parents {
		if string(p.ControllerName) == b.c.gatewayController && equality.Semantic.DeepEqual(p.ParentRef, ref) {
			return p.Conditions
		}
	}
	return nil
}

// routeStatus writes this controller's part of a route's status and leaves others' alone.
func (b *builder) routeStatus(route *gatewayv1.HTTPRoute, ours []gatewayv1.RouteParentStatus) {
	parents := []gatewayv1.RouteParentStatus{}
	for _, p := range route.Status.Parents {
		if string(p.ControllerName) != b.c.gatewayController {
			parents = append(parents, p)
		}
	}
	parents = append(parents, ours...)
	if equality.Semantic.DeepEqual(route.Status.Parents, parents) || len(parents) == 0 && len(route.Status.Parents) == 0 {
		return
	}
	next := route.DeepCopy()
	next.Status.Parents = parents
	b.status = append(b.status, func(ctx context.Context) error {
		return b.w.clients.gateway.Put().Namespace(next.Namespace).Resource("httproutes").Name(next.Name).SubResource("status").Body(next).Do(ctx).Error()
	})
}
