package host

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
)

// annotationClass is older than IngressClass and still read.
const annotationClass = "kubernetes.io/ingress.class"

// lowest is the priority of a default backend: any rule goes before it.
const lowest = -1 << 31

// addIngresses makes rules of the Ingresses that are this controller's.
func (b *builder) addIngresses() {
	taken := false // of the cluster's default backend
	for _, ing := range all[*networkingv1.Ingress](&b.w.ingresses) {
		if !b.mine(ing) {
			continue
		}
		r, err := b.routerOf(ing)
		if err != nil {
			b.c.log.complain("Failed to parse annotations", "ingress", ing.Name, "namespace", ing.Namespace, "error", err)
			continue
		}
		b.addCertificates(ing)
		if ing.Spec.DefaultBackend != nil {
			if taken && len(ing.Spec.Rules) == 0 {
				b.c.log.complain("The default backend already exists.", "ingress", ing.Name, "namespace", ing.Namespace)
			} else if b.add(ing, r, match{}, *ing.Spec.DefaultBackend, "default-router", lowest) {
				taken = true
			}
		}
		for _, rule := range ing.Spec.Rules {
			if rule.HTTP == nil {
				continue
			}
			for _, p := range rule.HTTP.Paths {
				m := match{host: strings.ToLower(rule.Host), oneLabel: true, path: p.Path}
				switch {
				case p.Path == "":
				case p.PathType != nil && *p.PathType == networkingv1.PathTypeExact:
					m.kind = pathExact
				default:
					m.kind = pathPrefix
				}
				name := ing.Namespace + "-" + ing.Name + "-" + rule.Host + p.Path
				b.add(ing, r, m, p.Backend, normalize(name), 0)
			}
		}
		b.publish(ing)
	}
}

// mine follows Traefik: classes of this controller; without a class the annotation,
// and with neither an Ingress is anybody's who asks for no class.
func (b *builder) mine(ing *networkingv1.Ingress) bool {
	want := b.c.opts.ingressClass
	if name := ing.Spec.IngressClassName; name != nil {
		class, ok := get[*networkingv1.IngressClass](&b.w.ingressClasses, "", *name)
		return ok && class.Spec.Controller == b.c.ingressController && (want == "" || want == *name)
	}
	annotated := ing.Annotations[annotationClass]
	return annotated == want || want == "" && annotated == "traefik"
}

// router is what an Ingress' annotations say for all of its rules.
type router struct {
	entryPoints []string
	priority    int
	tls         bool
	retries     int
	interval    time.Duration
}

func (b *builder) routerOf(ing *networkingv1.Ingress) (r router, err error) {
	get := func(name string) string { return ing.Annotations[name] }
	for name := range strings.SplitSeq(get(annotationEntryPoints), ",") {
		if name = strings.ToLower(strings.TrimSpace(name)); name != "" {
			r.entryPoints = append(r.entryPoints, name)
			if b.c.opts.entryPoints[name] == nil {
				b.c.log.complain("EntryPoint doesn't exist", "entryPointName", name, "ingress", ing.Name, "namespace", ing.Namespace)
			}
		}
	}
	if v := get(annotationPriority); v != "" {
		if r.priority, err = strconv.Atoi(v); err != nil {
			return r, err
		}
	}
	if v := get(annotationTLS); v != "" {
		if r.tls, err = strconv.ParseBool(v); err != nil {
			return r, err
		}
	}
	if v := get(annotationRetries); v != "" {
		if r.retries, err = strconv.Atoi(v); err != nil {
			return r, err
		}
		if r.retries < 1 || r.retries > maxRetries {
			return r, fmt.Errorf("%s must be between 1 and %d", annotationRetries, maxRetries)
		}
	}
	if v := get(annotationRetryInterval); v != "" {
		if r.interval, err = time.ParseDuration(v); err != nil {
			return r, err
		}
	}
	if v := get(annotationMiddlewares); v != "" { // of a provider that isn't here; a router without its middleware isn't served
		return r, fmt.Errorf("middleware %q does not exist", v)
	}
	return r, nil
}

// maxRetries bounds the attempts of one request.
const maxRetries = 10

// add makes the rule of one path; false when its Service can't be used.
func (b *builder) add(ing *networkingv1.Ingress, r router, m match, to networkingv1.IngressBackend, name string, priority int) bool {
	if to.Service == nil {
		b.c.log.complain("Resource is not supported in backends", "ingress", ing.Name, "namespace", ing.Namespace)
		return false
	}
	port := to.Service.Port.Name
	if port == "" {
		port = strconv.Itoa(int(to.Service.Port.Number))
	}
	pairs := []any{"ingress", ing.Name, "namespace", ing.Namespace, "serviceName", to.Service.Name, "servicePort", port}
	lb, err := b.service(ing.Namespace, to.Service.Name, to.Service.Port)
	if err != nil {
		b.c.log.complain("Cannot create service", append(pairs, "error", err)...)
		return false
	}
	if len(lb.servers) == 0 && !b.c.opts.allowEmptyServices {
		b.c.log.complain("Skipping service: no endpoints found", pairs...)
		return false
	}
	switch {
	case priority == 0 && r.priority != 0:
		priority = r.priority
	case priority == 0:
		priority = ruleLength(m)
	}
	for entry, t := range b.cfg.entries {
		e := b.c.opts.entryPoints[entry]
		if entry == internalEntry && len(r.entryPoints) == 0 || len(r.entryPoints) > 0 && !slices.Contains(r.entryPoints, entry) {
			continue
		}
		one := &rule{
			name: name + "@kubernetes", match: m, priority: priority, object: ing.Namespace + "/" + ing.Name,
			index:  len(t.plain) + len(t.secure),
			action: &action{backends: []*backend{{weight: 1, balancer: lb}}, retries: r.retries, interval: r.interval},
		}
		if e.tls || r.tls {
			one.name = entry + "-" + one.name
			t.secure = append(t.secure, one)
		} else {
			t.plain = append(t.plain, one)
		}
	}
	return true
}

// ruleLength is the length of the rule that Traefik would write; an exact path goes
// before the same path as a prefix.
func ruleLength(m match) int {
	n := 0
	if m.host != "" {
		n = len("Host(``) && ") + len(m.host)
	}
	if m.path != "" {
		n += len("PathPrefix(``)") + len(m.path)
	}
	if m.kind == pathExact {
		n++
	}
	return n
}

// normalize makes a router's name: everything but letters and digits becomes a dash.
func normalize(s string) string {
	words := strings.FieldsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	})
	return strings.Join(words, "-")
}

func (b *builder) addCertificates(ing *networkingv1.Ingress) {
	for _, t := range ing.Spec.TLS {
		if t.SecretName == "" {
			continue
		}
		cert, err := b.certificate(ing.Namespace, t.SecretName)
		if err != nil {
			b.c.log.complain("Error configuring TLS", "ingress", ing.Name, "namespace", ing.Namespace, "error", err)
			continue
		}
		b.cfg.certs.add(cert)
	}
}

// publish notes the addresses that an Ingress' status is to have.
func (b *builder) publish(ing *networkingv1.Ingress) {
	var found []address
	switch o := &b.c.opts; {
	case o.publishedService != "":
		var err error
		if found, err = b.addresses(o.publishedService); err != nil {
			b.c.log.complain("Error while updating ingress status", "ingress", ing.Name, "namespace", ing.Namespace, "error", err)
			return
		}
	case o.ingressIP != "" || o.ingressHostname != "":
		found = []address{{ip: o.ingressIP, hostname: o.ingressHostname}}
	}
	if len(found) == 0 { // nothing to say, as while a load balancer is pending
		return
	}
	var want []networkingv1.IngressLoadBalancerIngress
	for _, a := range found {
		if a.ip != "" && len(validation.IsValidIP(nil, a.ip)) > 0 {
			continue
		}
		want = append(want, networkingv1.IngressLoadBalancerIngress{IP: a.ip, Hostname: a.hostname})
	}
	if equality.Semantic.DeepEqual(ing.Status.LoadBalancer.Ingress, want) {
		return
	}
	next := ing.DeepCopy()
	next.Status.LoadBalancer.Ingress = want
	b.status = append(b.status, func(ctx context.Context) error {
		return b.w.networking.Put().Namespace(next.Namespace).Resource("ingresses").Name(next.Name).SubResource("status").Body(next).Do(ctx).Error()
	})
}
