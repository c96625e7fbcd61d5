package kubelet

import (
	"context"
	"fmt"
	"net"
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

// expand replaces $(NAME) by its value; $$ is a dollar; an unknown name stays as
// it is: third_party/forked/golang/expansion.
func expand(s string, lookup func(string) (string, bool)) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '$' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		switch s[i+1] {
		case '$':
			b.WriteByte('$')
			i++
		case '(':
			end := strings.IndexByte(s[i:], ')')
			if end < 0 {
				b.WriteByte('$')
				continue
			}
			name := s[i+2 : i+end]
			if v, ok := lookup(name); ok {
				b.WriteString(v)
			} else {
				b.WriteString(s[i : i+end+1])
			}
			i += end
		default:
			b.WriteByte('$')
		}
	}
	return b.String()
}

// serviceEnv makes the variables that name the Services of a namespace, and
// KUBERNETES_*, for a container: envvars/envvars.go.
func serviceEnv(services []*corev1.Service, namespace string, links bool) map[string]string {
	out := map[string]string{}
	for _, s := range services {
		ip := s.Spec.ClusterIP
		if ip == "" || ip == corev1.ClusterIPNone || len(s.Spec.Ports) == 0 {
			continue
		}
		master := s.Namespace == metav1.NamespaceDefault && s.Name == "kubernetes"
		if !master && (!links || s.Namespace != namespace) {
			continue
		}
		name := envName(s.Name)
		out[name+"_SERVICE_HOST"] = ip
		out[name+"_SERVICE_PORT"] = strconv.Itoa(int(s.Spec.Ports[0].Port))
		for i, p := range s.Spec.Ports {
			port := strconv.Itoa(int(p.Port))
			if p.Name != "" {
				out[name+"_SERVICE_PORT_"+envName(p.Name)] = port
			}
			proto := strings.ToLower(string(p.Protocol))
			if proto == "" {
				proto = "tcp"
			}
			url := proto + "://" + net.JoinHostPort(ip, port)
			if i == 0 {
				out[name+"_PORT"] = url
			}
			prefix := name + "_PORT_" + port + "_" + strings.ToUpper(proto)
			out[prefix], out[prefix+"_PROTO"], out[prefix+"_PORT"], out[prefix+"_ADDR"] = url, proto, port, ip
		}
	}
	return out
}

func envName(s string) string { return strings.ToUpper(strings.ReplaceAll(s, "-", "_")) }

// envMaker makes the environment of one container: kubelet_pods.go, makeEnvironmentVariables.
type envMaker struct {
	objects  *objectCache
	services map[string]string
	facts    podFacts
}

// variables returns NAME=value, sorted by name. Its errors are what the learner
// reads in the Pod's events.
func (m envMaker) variables(ctx context.Context, c *corev1.Container) (map[string]string, error) {
	env := map[string]string{}
	ns := m.facts.pod.Namespace
	for _, from := range c.EnvFrom {
		switch {
		case from.ConfigMapRef != nil:
			cm, err := m.objects.configMap(ctx, ns, from.ConfigMapRef.Name, freshAge)
			if err != nil {
				if apierrors.IsNotFound(err) && ptr.Deref(from.ConfigMapRef.Optional, false) {
					continue
				}
				return nil, err
			}
			for k, v := range cm.Data {
				env[from.Prefix+k] = v
			}
		case from.SecretRef != nil:
			s, err := m.objects.secret(ctx, ns, from.SecretRef.Name, freshAge)
			if err != nil {
				if apierrors.IsNotFound(err) && ptr.Deref(from.SecretRef.Optional, false) {
					continue
				}
				return nil, err
			}
			for k, v := range s.Data {
				env[from.Prefix+k] = string(v)
			}
		}
	}
	lookup := func(name string) (string, bool) {
		if v, ok := env[name]; ok {
			return v, true
		}
		v, ok := m.services[name]
		return v, ok
	}
	for _, e := range c.Env {
		value := expand(e.Value, lookup)
		if e.Value == "" && e.ValueFrom != nil {
			v, ok, err := m.valueFrom(ctx, e.ValueFrom, c)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			value = v
		}
		env[e.Name] = value
	}
	for k, v := range m.services {
		if _, ok := env[k]; !ok {
			env[k] = v
		}
	}
	return env, nil
}

func (m envMaker) valueFrom(ctx context.Context, s *corev1.EnvVarSource, c *corev1.Container) (value string, ok bool, err error) {
	ns := m.facts.pod.Namespace
	switch {
	case s.FieldRef != nil:
		value, err = m.facts.field(s.FieldRef.FieldPath)
		return value, err == nil, err
	case s.ResourceFieldRef != nil:
		value, err = m.facts.resource(s.ResourceFieldRef, c)
		return value, err == nil, err
	case s.ConfigMapKeyRef != nil:
		ref, optional := s.ConfigMapKeyRef, ptr.Deref(s.ConfigMapKeyRef.Optional, false)
		cm, err := m.objects.configMap(ctx, ns, ref.Name, freshAge)
		if err != nil {
			return "", false, unlessOptional(err, optional)
		}
		v, ok := cm.Data[ref.Key]
		if !ok && !optional {
			return "", false, fmt.Errorf("couldn't find key %v in ConfigMap %v/%v", ref.Key, ns, ref.Name)
		}
		return v, ok, nil
	case s.SecretKeyRef != nil:
		ref, optional := s.SecretKeyRef, ptr.Deref(s.SecretKeyRef.Optional, false)
		sec, err := m.objects.secret(ctx, ns, ref.Name, freshAge)
		if err != nil {
			return "", false, unlessOptional(err, optional)
		}
		v, ok := sec.Data[ref.Key]
		if !ok && !optional {
			return "", false, fmt.Errorf("couldn't find key %v in Secret %v/%v", ref.Key, ns, ref.Name)
		}
		return string(v), ok, nil
	}
	return "", true, nil
}

func unlessOptional(err error, optional bool) error {
	if apierrors.IsNotFound(err) && optional {
		return nil
	}
	return err
}

// environ merges image and container variables into NAME=value, sorted.
func environ(image []string, hostname string, env map[string]string) []string {
	all := map[string]string{"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME": hostname}
	for _, kv := range image {
		k, v, _ := strings.Cut(kv, "=")
		all[k] = v
	}
	for k, v := range env {
		all[k] = v
	}
	out := make([]string, 0, len(all))
	for k, v := range all {
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	return out
}

// services lists what serviceEnv needs; a node that can't see Services yet waits
// with the container, as the real one does.
func (b *boot) services(pod *corev1.Pod) (map[string]string, error) {
	if pod.Spec.EnableServiceLinks == nil && !isStatic(pod) {
		return nil, fmt.Errorf("nil pod.spec.enableServiceLinks encountered, cannot construct envvars")
	}
	if isStatic(pod) {
		return map[string]string{}, nil
	}
	if !b.servicesSynced() {
		return nil, fmt.Errorf("services have not yet been read at least once, cannot construct envvars")
	}
	list, err := b.serviceLister.List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("failed to list services when setting up env vars")
	}
	return serviceEnv(list, pod.Namespace, *pod.Spec.EnableServiceLinks), nil
}
