package host

import (
	"context"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

const (
	gatewayGroup   = gatewayv1.Group("gateway.networking.k8s.io")
	supportedRoute = gatewayv1.Kind("HTTPRoute")
)

// features are what GatewayClasses tell of: names of gateway-api's pkg/features, in order.
var features = []gatewayv1.FeatureName{
	"Gateway", "HTTPRoute", "HTTPRouteBackendProtocolWebSocket", "HTTPRouteBackendRequestHeaderModification", "HTTPRouteBackendTimeout",
	"HTTPRouteHostRewrite", "HTTPRouteMethodMatching", "HTTPRouteParentRefPort", "HTTPRoutePathRedirect", "HTTPRoutePathRewrite",
	"HTTPRoutePortRedirect", "HTTPRouteQueryParamMatching", "HTTPRouteRequestTimeout", "HTTPRouteResponseHeaderModification",
	"HTTPRouteSchemeRedirect", "ReferenceGrant",
}

// listener is a Gateway's listener as far as it can be served.
type listener struct {
	gateway  *gatewayv1.Gateway
	spec     gatewayv1.Listener
	entry    string
	secure   bool
	accepted bool // routes may attach
	usable   bool // it has what it needs besides, and serves them
	status   gatewayv1.ListenerStatus
}

// addGateways makes rules of the HTTPRoutes at Gateways of this controller's classes.
func (b *builder) addGateways() {
	mine := map[string]bool{}
	for _, class := range all[*gatewayv1.GatewayClass](&b.w.classes) {
		if string(class.Spec.ControllerName) == b.c.gatewayController {
			mine[class.Name] = true
			b.classStatus(class)
		}
	}
	listeners := map[string][]*listener{} // by namespace/name of the Gateway
	var gateways []*gatewayv1.Gateway
	for _, gw := range all[*gatewayv1.Gateway](&b.w.gateways) {
		if mine[string(gw.Spec.GatewayClassName)] {
			gateways = append(gateways, gw)
			listeners[gw.Namespace+"/"+gw.Name] = b.listeners(gw)
		}
	}
	for _, route := range all[*gatewayv1.HTTPRoute](&b.w.routes) {
		b.addRoute(route, listeners)
	}
	for _, gw := range gateways {
		b.gatewayStatus(gw, listeners[gw.Namespace+"/"+gw.Name])
	}
}

// listeners looks at each listener of a Gateway: conditions as GatewayStatus documents them.
func (b *builder) listeners(gw *gatewayv1.Gateway) []*listener {
	out := make([]*listener, 0, len(gw.Spec.Listeners))
	type at struct {
		port gatewayv1.PortNumber
		host gatewayv1.Hostname
	}
	protocols, hosts := map[gatewayv1.PortNumber]gatewayv1.ProtocolType{}, map[at]bool{}
	for _, spec := range gw.Spec.Listeners {
		l := &listener{gateway: gw, spec: spec, secure: spec.Protocol == gatewayv1.HTTPSProtocolType}
		l.status = gatewayv1.ListenerStatus{Name: spec.Name}
		var old []metav1.Condition
		for _, s := range gw.Status.Listeners {
			if s.Name == spec.Name {
				old = s.Conditions
			}
		}
		cs := newConditions(b.c.env.Clock.Now(), gw.Generation, old)
		accepted := func(reason gatewayv1.ListenerConditionReason, text string) {
			l.accepted = l.usable
			cs.set(string(gatewayv1.ListenerConditionAccepted), reason == gatewayv1.ListenerReasonAccepted, string(reason), text)
		}
		conflict := gatewayv1.ListenerReasonNoConflicts
		spot := at{spec.Port, hostname(spec.Hostname)}
		if p, taken := protocols[spec.Port]; taken && p != spec.Protocol {
			conflict = gatewayv1.ListenerReasonProtocolConflict
		} else if hosts[spot] {
			conflict = gatewayv1.ListenerReasonHostnameConflict
		} else {
			protocols[spec.Port], hosts[spot] = spec.Protocol, true
		}
		l.usable = conflict == gatewayv1.ListenerReasonNoConflicts
		l.entry = b.entryAt(int(spec.Port))
		switch {
		case spec.Protocol != gatewayv1.HTTPProtocolType && spec.Protocol != gatewayv1.HTTPSProtocolType:
			l.usable = false
			accepted(gatewayv1.ListenerReasonUnsupportedProtocol, fmt.Sprintf("Protocol %q is not supported", spec.Protocol))
		case l.entry == "":
			l.usable = false
			accepted(gatewayv1.ListenerReasonPortUnavailable, fmt.Sprintf("Cannot find entryPoint for Gateway: no matching entryPoint for port %d and protocol %q", spec.Port, spec.Protocol))
		default:
			accepted(gatewayv1.ListenerReasonAccepted, "No error found")
		}
		reason, text := b.listenerRefs(l)
		cs.set(string(gatewayv1.ListenerConditionConflicted), conflict != gatewayv1.ListenerReasonNoConflicts, string(conflict), "")
		cs.set(string(gatewayv1.ListenerConditionResolvedRefs), reason == gatewayv1.ListenerReasonResolvedRefs, string(reason), text)
		if reason != gatewayv1.ListenerReasonResolvedRefs && reason != gatewayv1.ListenerReasonInvalidRouteKinds {
			l.usable = false
		}
		if len(l.status.SupportedKinds) == 0 {
			l.usable = false
		}
		if l.usable {
			cs.set(string(gatewayv1.ListenerConditionProgrammed), true, string(gatewayv1.ListenerReasonProgrammed), "No error found")
		} else {
			cs.set(string(gatewayv1.ListenerConditionProgrammed), false, string(gatewayv1.ListenerReasonInvalid), "The listener has errors")
		}
		l.status.Conditions = cs.list()
		out = append(out, l)
	}
	return out
}

// listenerRefs resolves the kinds and certificates that a listener names.
func (b *builder) listenerRefs(l *listener) (reason gatewayv1.ListenerConditionReason, text string) {
	reason, text = gatewayv1.ListenerReasonResolvedRefs, "No error found"
	group := gatewayGroup
	ours := gatewayv1.RouteGroupKind{Group: &group, Kind: supportedRoute}
	l.status.SupportedKinds = []gatewayv1.RouteGroupKind{ours}
	if a := l.spec.AllowedRoutes; a != nil && len(a.Kinds) > 0 {
		l.status.SupportedKinds = []gatewayv1.RouteGroupKind{}
		for _, k := range a.Kinds {
			if (k.Group == nil || *k.Group == gatewayGroup) && k.Kind == supportedRoute {
				l.status.SupportedKinds = []gatewayv1.RouteGroupKind{ours}
			} else {
				reason, text = gatewayv1.ListenerReasonInvalidRouteKinds, fmt.Sprintf("Route kind %q is not supported", k.Kind)
			}
		}
	}
	if !l.secure {
		return reason, text
	}
	invalid := gatewayv1.ListenerReasonInvalidCertificateRef
	if l.spec.TLS == nil || len(l.spec.TLS.CertificateRefs) == 0 {
		return invalid, "A certificate is required for protocol HTTPS"
	}
	if m := l.spec.TLS.Mode; m != nil && *m != gatewayv1.TLSModeTerminate {
		return invalid, fmt.Sprintf("TLS mode %q is not supported for protocol HTTPS", *m)
	}
	for _, ref := range l.spec.TLS.CertificateRefs {
		if ref.Group != nil && *ref.Group != "" || ref.Kind != nil && *ref.Kind != "Secret" {
			return invalid, "Certificates must be of kind Secret"
		}
		namespace := l.gateway.Namespace
		if ref.Namespace != nil {
			namespace = string(*ref.Namespace)
		}
		if !b.granted(reference{gatewayGroup, "Gateway", l.gateway.Namespace}, reference{"", "Secret", namespace}, string(ref.Name)) {
			return gatewayv1.ListenerReasonRefNotPermitted, fmt.Sprintf("Cannot load CertificateRef %s/%s: no ReferenceGrant allows it", namespace, ref.Name)
		}
		cert, err := b.certificate(namespace, string(ref.Name))
		if err != nil {
			return invalid, err.Error()
		}
		b.cfg.certs.add(cert)
	}
	return reason, text
}

// entryAt finds the entry point that serves a Gateway's port: the one that listens on it,
// or the one that the Gateway's own Service leads to from that port.
func (b *builder) entryAt(port int) string {
	byPort := map[int]string{}
	for name, e := range b.c.opts.entryPoints {
		_, at, err := net.SplitHostPort(e.address)
		if n, err2 := strconv.Atoi(at); err == nil && err2 == nil && name != internalEntry {
			byPort[n] = name
		}
	}
	if name, ok := byPort[port]; ok {
		return name
	}
	namespace, name := split(b.c.opts.gatewayService)
	svc, ok := get[*corev1.Service](&b.w.services, namespace, name)
	if !ok {
		return ""
	}
	for _, p := range svc.Spec.Ports {
		if int(p.Port) != port {
			continue
		}
		if b.c.opts.entryPoints[p.TargetPort.StrVal] != nil {
			return p.TargetPort.StrVal
		}
		return byPort[p.TargetPort.IntValue()]
	}
	return ""
}

// reference is one side of a reference between namespaces.
type reference struct {
	group     gatewayv1.Group
	kind      gatewayv1.Kind
	namespace string
}

// granted reports whether an object may refer to another one: in its own namespace
// always, elsewhere if a ReferenceGrant there says so.
func (b *builder) granted(from, to reference, name string) bool {
	if from.namespace == to.namespace {
		return true
	}
	for _, g := range all[*gatewayv1.ReferenceGrant](&b.w.grants) {
		if g.Namespace != to.namespace {
			continue
		}
		var source, target bool
		for _, f := range g.Spec.From {
			source = source || f.Group == from.group && f.Kind == from.kind && string(f.Namespace) == from.namespace
		}
		for _, t := range g.Spec.To {
			target = target || t.Group == to.group && t.Kind == to.kind && (t.Name == nil || *t.Name == "" || string(*t.Name) == name)
		}
		if source && target {
			return true
		}
	}
	return false
}

// allows reports whether a listener takes routes of a namespace.
func (b *builder) allows(l *listener, namespace string) bool {
	if len(l.status.SupportedKinds) == 0 {
		return false
	}
	from := gatewayv1.NamespacesFromSame
	var selector *metav1.LabelSelector
	if a := l.spec.AllowedRoutes; a != nil && a.Namespaces != nil && a.Namespaces.From != nil {
		from, selector = *a.Namespaces.From, a.Namespaces.Selector
	}
	switch from {
	case gatewayv1.NamespacesFromAll:
		return true
	case gatewayv1.NamespacesFromSame:
		return namespace == l.gateway.Namespace
	case gatewayv1.NamespacesFromSelector:
		s, err := metav1.LabelSelectorAsSelector(selector)
		ns, ok := get[*corev1.Namespace](&b.w.namespaces, "", namespace)
		return err == nil && ok && s.Matches(labels.Set(ns.Labels))
	}
	return false
}

func (b *builder) classStatus(class *gatewayv1.GatewayClass) {
	cs := newConditions(b.c.env.Clock.Now(), class.Generation, class.Status.Conditions)
	cs.set(string(gatewayv1.GatewayClassConditionStatusAccepted), true, string(gatewayv1.GatewayClassReasonAccepted), "Handled by the controller "+b.c.gatewayController)
	next := class.DeepCopy()
	next.Status = gatewayv1.GatewayClassStatus{Conditions: cs.list()}
	for _, f := range features {
		next.Status.SupportedFeatures = append(next.Status.SupportedFeatures, gatewayv1.SupportedFeature{Name: f})
	}
	if !equality.Semantic.DeepEqual(class.Status, next.Status) {
		b.status = append(b.status, func(ctx context.Context) error {
			return b.w.clients.gateway.Put().Resource("gatewayclasses").Name(next.Name).SubResource("status").Body(next).Do(ctx).Error()
		})
	}
}

// gatewayStatus says how a Gateway and its listeners are, once routes have attached.
func (b *builder) gatewayStatus(gw *gatewayv1.Gateway, ls []*listener) {
	next := gw.DeepCopy()
	next.Status.Listeners = nil
	good := 0
	for _, l := range ls {
		if l.usable {
			good++
		}
		next.Status.Listeners = append(next.Status.Listeners, l.status)
	}
	next.Status.Addresses = b.gatewayAddresses()
	cs := newConditions(b.c.env.Clock.Now(), gw.Generation, gw.Status.Conditions)
	const accepted, programmed = string(gatewayv1.GatewayConditionAccepted), string(gatewayv1.GatewayConditionProgrammed)
	switch {
	case len(gw.Spec.Addresses) > 0:
		cs.set(accepted, false, string(gatewayv1.GatewayReasonUnsupportedAddress), "Addresses can't be asked for: the Gateway has those of the controller's Service")
		cs.set(programmed, false, string(gatewayv1.GatewayReasonAddressNotUsable), "Addresses can't be asked for")
	case good == 0:
		cs.set(accepted, false, string(gatewayv1.GatewayReasonListenersNotValid), "All listeners have errors")
		cs.set(programmed, false, string(gatewayv1.GatewayReasonInvalid), "All listeners have errors")
	case good < len(ls):
		cs.set(accepted, true, string(gatewayv1.GatewayReasonListenersNotValid), "Some listeners have errors")
		cs.set(programmed, true, string(gatewayv1.GatewayReasonProgrammed), "Gateway successfully scheduled")
	default:
		cs.set(accepted, true, string(gatewayv1.GatewayReasonAccepted), "Gateway successfully scheduled")
		cs.set(programmed, true, string(gatewayv1.GatewayReasonProgrammed), "Gateway successfully scheduled")
	}
	if good > 0 && len(gw.Spec.Addresses) == 0 && b.c.opts.gatewayService != "" && len(next.Status.Addresses) == 0 {
		cs.set(programmed, false, string(gatewayv1.GatewayReasonAddressNotAssigned), "The Service "+b.c.opts.gatewayService+" has no address yet")
	}
	next.Status.Conditions = cs.list()
	if !equality.Semantic.DeepEqual(gw.Status, next.Status) {
		b.status = append(b.status, func(ctx context.Context) error {
			return b.w.clients.gateway.Put().Namespace(next.Namespace).Resource("gateways").Name(next.Name).SubResource("status").Body(next).Do(ctx).Error()
		})
	}
}

// gatewayAddresses are the addresses at which every Gateway is reached.
func (b *builder) gatewayAddresses() (out []gatewayv1.GatewayStatusAddress) {
	found := []address{{ip: b.c.opts.gatewayIP}, {hostname: b.c.opts.gatewayHostname}}
	if b.c.opts.gatewayService != "" {
		var err error
		if found, err = b.addresses(b.c.opts.gatewayService); err != nil {
			b.c.log.complain("Unable to get Gateway status address", "error", err)
		}
	}
	for _, a := range found {
		ip, name := gatewayv1.IPAddressType, gatewayv1.HostnameAddressType
		if a.ip != "" {
			out = append(out, gatewayv1.GatewayStatusAddress{Type: &ip, Value: a.ip})
		} else if a.hostname != "" {
			out = append(out, gatewayv1.GatewayStatusAddress{Type: &name, Value: a.hostname})
		}
	}
	return out[:min(len(out), maxAddresses)]
}

// maxAddresses is what a Gateway's status takes.
const maxAddresses = 16
