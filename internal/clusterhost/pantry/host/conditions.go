package host

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// conditions makes a list of conditions in which those that say the same as
// before keep their time.
type conditions struct {
	now        metav1.Time
	generation int64
	old, next  []metav1.Condition
}

func newConditions(now time.Time, generation int64, old []metav1.Condition) *conditions {
	return &conditions{now: metav1.NewTime(now.UTC().Truncate(time.Second)), generation: generation, old: old}
}

// set sets a condition; a later call for the same type wins.
func (c *conditions) set(kind string, ok bool, reason, message string) {
	one := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: c.generation, LastTransitionTime: c.now}
	if ok {
		one.Status = metav1.ConditionTrue
	}
	for _, o := range c.old {
		if o.Type == kind && o.Status == one.Status {
			one.LastTransitionTime = o.LastTransitionTime
		}
	}
	for k := range c.next {
		if c.next[k].Type == kind {
			c.next[k] = one
			return
		}
	}
	c.next = append(c.next, one)
}

func (c *conditions) list() []metav1.Condition { return c.next }

// hostname is a host name in lower case, "" for none.
func hostname(h *gatewayv1.Hostname) gatewayv1.Hostname {
	if h == nil {
		return ""
	}
	return gatewayv1.Hostname(strings.ToLower(string(*h)))
}

// split takes namespace/name apart.
func split(s string) (namespace, name string) {
	namespace, name, _ = strings.Cut(s, "/")
	return namespace, name
}

// intersect is the host name that a listener and a route have in common; ok is false
// when there is none. Empty names stand for all.
func intersect(listener, route string) (host string, ok bool) {
	switch {
	case route == "" || route == listener:
		return listener, true
	case listener == "":
		return route, true
	case strings.HasPrefix(listener, "*") && strings.HasSuffix(route, listener[1:]) && len(route) > len(listener)-1:
		return route, true
	case strings.HasPrefix(route, "*") && strings.HasSuffix(listener, route[1:]) && len(listener) > len(route)-1:
		return listener, true
	}
	return "", false
}
