package host

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// builder makes one configuration, and notes the status that has to be written for it.
type builder struct {
	c   *controller
	w   *world
	cfg *config

	balancers map[string]*balancer
	status    []func(context.Context) error
}

// writeStatus does the requests that a configuration asks for; a conflict is settled by
// the next configuration, which the other's change brings about.
func (b *builder) writeStatus(ctx context.Context) {
	for _, f := range b.status {
		if ctx.Err() != nil {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, clientPatience)
		err := f(ctx)
		cancel()
		if err != nil && !isConflict(err) {
			b.c.log.error("Error while updating status", "error", err)
		}
	}
}

// annotations of Services and Ingresses that have an effect.
const (
	annotationPassHost      = "traefik.ingress.kubernetes.io/service.passhostheader"
	annotationServersScheme = "traefik.ingress.kubernetes.io/service.serversscheme"
	annotationEntryPoints   = "traefik.ingress.kubernetes.io/router.entrypoints"
	annotationPriority      = "traefik.ingress.kubernetes.io/router.priority"
	annotationTLS           = "traefik.ingress.kubernetes.io/router.tls"
	annotationMiddlewares   = "traefik.ingress.kubernetes.io/router.middlewares"
	annotationRetries       = "kubistro.io/retry-attempts"
	annotationRetryInterval = "kubistro.io/retry-initial-interval"
)

var errNoService, errNoPort = errors.New("service not found"), errors.New("service port not found")

// service returns the balancer of a Service's port, which servers of ready endpoints
// only: Pod addresses, not the Service's. Errors are errNoService, errNoPort, or say what isn't allowed.
func (b *builder) service(namespace, name string, port networkingv1.ServiceBackendPort) (*balancer, error) {
	key := fmt.Sprintf("%s/%s:%s:%d", namespace, name, port.Name, port.Number)
	if known := b.balancers[key]; known != nil {
		return known, nil
	}
	svc, ok := get[*corev1.Service](&b.w.services, namespace, name)
	if !ok {
		return nil, errNoService
	}
	k := slices.IndexFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool {
		return port.Name != "" && p.Name == port.Name || port.Name == "" && p.Port == port.Number
	})
	if k < 0 {
		return nil, errNoPort
	}
	at := svc.Spec.Ports[k]
	scheme := "http"
	if at.Port == 443 || strings.HasPrefix(at.Name, "https") {
		scheme = "https"
	}
	scheme = cmp.Or(svc.Annotations[annotationServersScheme], scheme)
	if scheme != "http" && scheme != "https" {
		return nil, fmt.Errorf("servers scheme %q is not supported", scheme)
	}
	lb := &balancer{passHostHeader: svc.Annotations[annotationPassHost] != "false"}
	if svc.Spec.Type == corev1.ServiceTypeExternalName {
		if !b.c.opts.allowExternalNames {
			return nil, fmt.Errorf("externalName services not allowed: %s/%s", namespace, name)
		}
		lb.servers = []server{{scheme, net.JoinHostPort(svc.Spec.ExternalName, strconv.Itoa(int(at.Port)))}}
	} else {
		lb.servers = b.servers(namespace, name, at.Name, scheme)
	}
	if b.balancers == nil {
		b.balancers = map[string]*balancer{}
	}
	b.balancers[key] = lb
	return lb, nil
}

// servers are the ready endpoints of a Service, in the order of their addresses.
func (b *builder) servers(namespace, name, port, scheme string) []server {
	seen := map[server]bool{}
	var out []server
	for _, store := range b.w.endpoints.stores {
		slicesOf, err := store.ByIndex(sliceIndex, namespace+"/"+name)
		if err != nil {
			continue // the index is there: it is made with the store
		}
		for _, o := range slicesOf {
			s := o.(*discoveryv1.EndpointSlice)
			k := slices.IndexFunc(s.Ports, func(p discoveryv1.EndpointPort) bool {
				return p.Port != nil && (p.Name == nil && port == "" || p.Name != nil && *p.Name == port)
			})
			if k < 0 || s.AddressType == discoveryv1.AddressTypeFQDN {
				continue
			}
			for _, e := range s.Endpoints {
				if e.Conditions.Ready != nil && !*e.Conditions.Ready {
					continue
				}
				for _, ip := range e.Addresses {
					if one := (server{scheme, net.JoinHostPort(ip, strconv.Itoa(int(*s.Ports[k].Port)))}); !seen[one] {
						seen[one] = true
						out = append(out, one)
					}
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b server) int { return strings.Compare(a.address, b.address) })
	return out
}

// certificate reads a Secret of type kubernetes.io/tls.
func (b *builder) certificate(namespace, name string) (*tls.Certificate, error) {
	secret, ok := get[*corev1.Secret](&b.w.secrets, namespace, name)
	if !ok {
		return nil, fmt.Errorf("secret %s/%s does not exist", namespace, name)
	}
	var missing []string
	for _, k := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(secret.Data[k]) == 0 {
			missing = append(missing, k)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("secret %s/%s is missing the following TLS data entries: %s", namespace, name, strings.Join(missing, ", "))
	}
	cert, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s: %w", namespace, name, err)
	}
	return &cert, nil
}

// addresses are where a Service is reached: its load balancer's, its nodes', or its own.
func (b *builder) addresses(service string) (out []address, err error) {
	namespace, name, ok := strings.Cut(service, "/")
	if !ok {
		return nil, fmt.Errorf("invalid publishedService format (expected 'namespace/service' format): %s", service)
	}
	svc, found := get[*corev1.Service](&b.w.services, namespace, name)
	if !found {
		return nil, fmt.Errorf("missing service: %s", service)
	}
	switch svc.Spec.Type {
	case corev1.ServiceTypeLoadBalancer:
		for _, in := range svc.Status.LoadBalancer.Ingress {
			out = append(out, address{ip: in.IP, hostname: in.Hostname})
		}
	case corev1.ServiceTypeNodePort:
		for _, n := range all[*corev1.Node](&b.w.nodes) {
			byType := map[corev1.NodeAddressType]string{}
			for _, a := range n.Status.Addresses {
				byType[a.Type] = cmp.Or(byType[a.Type], a.Address)
			}
			if ip := cmp.Or(byType[corev1.NodeExternalIP], byType[corev1.NodeInternalIP]); ip != "" {
				out = append(out, address{ip: ip})
			}
		}
	default:
		if svc.Spec.ClusterIP != "" && svc.Spec.ClusterIP != corev1.ClusterIPNone {
			out = append(out, address{ip: svc.Spec.ClusterIP})
		}
	}
	return out, nil
}

// address is one that learners can call.
type address struct{ ip, hostname string }
