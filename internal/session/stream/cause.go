package stream

import (
	"strings"

	"kubistro/internal/lab"
)

// act is a write or change whose cause is asked for.
type act struct {
	actor string
	verb  string // audit verb, or object verb without an audit entry
	key   key
	owner key // zero when unknown
}

// present gives the states that rules look at.
type present interface {
	state(k key) (lab.ObjectState, bool)
	each(kind, namespace string, f func(key, lab.ObjectState))
}

// cause finds the frame that led to an act: the latest earlier change, by
// somebody else, of an object that this actor is known to read. 0 means unknown;
// it is never guessed, so actors without a rule here get none.
func (h *history) cause(a act, p present) uint64 {
	return h.backlog(a.actor, h.reason(a, p))
}

// reason is the cause of an act by somebody who was at work all the time.
func (h *history) reason(a act, p present) uint64 {
	owner := a.owner
	if owner == (key{}) {
		if t := h.objects[a.key]; t != nil {
			owner = t.owner
		}
	}
	if node, ok := strings.CutPrefix(a.actor, "kubelet/"); ok {
		return h.kubelet(a, node)
	}
	switch a.actor {
	case "deployment-controller":
		return h.deployment(a, owner)
	case "replicaset-controller":
		return h.counter(a, owner, "ReplicaSet", deleted|ended)
	case "statefulset-controller":
		return h.counter(a, owner, "StatefulSet", deleted|ended|ready)
	case "job-controller":
		return h.counter(a, owner, "Job", deleted|ended)
	case "cronjob-controller":
		return h.cronJob(a, owner)
	case "horizontal-pod-autoscaler":
		return h.autoscaler(a, p)
	case "pod-garbage-collector":
		return h.lost(a, p)
	case "daemonset-controller", "daemon-set-controller":
		return h.daemonSet(a, owner, p)
	case "kube-scheduler":
		return h.scheduler(a, p)
	case "endpointslice-controller":
		return h.slices(a, owner, p)
	case "generic-garbage-collector":
		return h.latest(owner, a.actor, deleted).n
	case "node-controller":
		return h.node(a, p)
	case "kube-apiserver": // which deletes the Node of a machine that is taken away
		return h.latest(a.key, nobody, outside).n
	case "namespace-controller":
		if a.key.kind == "Namespace" {
			return h.latest(a.key, a.actor, deleted).n
		}
		return h.latest(key{kind: "Namespace", name: a.key.namespace}, a.actor, deleted).n
	case "ttl-after-finished-controller":
		return h.latest(a.key, a.actor, ended|status).n
	}
	return 0
}

// deployment reads the Deployment and how far its ReplicaSets are.
func (h *history) deployment(a act, owner key) uint64 {
	d := owner
	if a.key.kind == "Deployment" {
		d = a.key
	}
	if d.kind != "Deployment" {
		return 0
	}
	return newer(h.latest(d, a.actor, added|spec|deleted), h.latestChild(d, "ReplicaSet", a.actor, status)).n
}

// counter is a controller that makes and removes Pods for its own line.
func (h *history) counter(a act, owner key, kind string, pods aspect) uint64 {
	line := owner
	if a.key.kind == kind {
		line, pods = a.key, pods|ready|added|running
	}
	if line.kind != kind {
		return 0
	}
	return newer(h.latest(line, a.actor, added|spec|deleted), h.latestChild(line, "Pod", a.actor, pods)).n
}

// cronJob makes a Job because the CronJob says so, whenever the clock is there; it
// removes Jobs that have ended or that the next one replaces.
func (h *history) cronJob(a act, owner key) uint64 {
	line := owner
	if a.key.kind == "CronJob" {
		line = a.key
	}
	if line.kind != "CronJob" {
		return 0
	}
	wanted := h.latest(line, a.actor, added|spec|deleted)
	if a.key.kind == "Job" && a.verb != "delete" {
		return wanted.n
	}
	return newer(wanted, h.latestChild(line, "Job", nobody, added|ended|status|deleted)).n
}

// autoscaler scales what its object names; the measurements that it reads aren't in the record.
func (h *history) autoscaler(a act, p present) uint64 {
	if a.key.kind == "HorizontalPodAutoscaler" {
		return h.latest(a.key, a.actor, added|spec).n
	}
	var best mark
	p.each("HorizontalPodAutoscaler", a.key.namespace, func(k key, s lab.ObjectState) {
		if s.Service == a.key.kind+"/"+a.key.name {
			best = newer(best, h.latest(k, a.actor, added|spec))
		}
	})
	return best.n
}

// lost removes Pods whose node is gone.
func (h *history) lost(a act, p present) uint64 {
	pod, ok := p.state(a.key)
	if !ok || pod.Node == "" {
		return 0
	}
	return h.latest(key{kind: "Node", name: pod.Node}, nobody, deleted).n
}

// preemption deletes a Pod for one that found no room. With several that wait it
// isn't known for which.
func (h *history) preemption(a act, p present) uint64 {
	var waiting []key
	for k, t := range h.objects {
		if s, ok := p.state(k); ok && k.kind == "Pod" && !t.gone && s.Node == "" && !s.Deleting {
			waiting = append(waiting, k)
		}
	}
	if len(waiting) != 1 {
		return 0
	}
	return h.latest(waiting[0], a.actor, added|spec).n
}

func (h *history) daemonSet(a act, owner key, p present) uint64 {
	n := h.counter(a, owner, "DaemonSet", deleted|ended)
	if n == 0 || a.key.kind != "Pod" {
		return n
	}
	best := mark{n: n}
	p.each("Node", "", func(k key, _ lab.ObjectState) {
		best = newer(best, h.latest(k, a.actor, added|spec|deleted))
	})
	return best.n
}

// scheduler reads the Pod; once it found no room, it waits for nodes and for
// Pods that leave.
func (h *history) scheduler(a act, p present) uint64 {
	if a.key.kind != "Pod" {
		return 0
	}
	if a.verb == "delete" {
		return h.preemption(a, p)
	}
	pod := h.latest(a.key, a.actor, added|spec)
	tried := h.latestBy(a.key, a.actor)
	if tried.n < pod.n {
		return pod.n
	}
	best := pod
	p.each("Node", "", func(k key, _ lab.ObjectState) { best = newer(best, h.latest(k, a.actor, added|spec|ready)) })
	for k, t := range h.objects {
		if k.kind == "Pod" && t.gone {
			best = newer(best, h.latest(k, a.actor, deleted))
		}
	}
	if best.n <= tried.n {
		return pod.n
	}
	return best.n
}

// kubelet follows what others write about its Pods, and what they do inside them. What
// it reports when nobody did either since the Pod ran (a crash, a probe) comes from the containers: unknown here.
func (h *history) kubelet(a act, _ string) uint64 {
	if a.key.kind == "Node" { // what it reports of itself at first, after it was without power, cable or kubelet
		if m := h.latest(a.key, nobody, outside); m.n > h.latestBy(a.key, a.actor).n {
			return m.n
		}
	}
	if a.key.kind != "Pod" {
		return 0
	}
	if a.verb == "delete" { // the last word about a Pod that somebody sent away
		return h.latest(a.key, a.actor, deleted).n
	}
	foreign := newer(h.latest(a.key, a.actor, added|spec|deleted|ready), h.session(a.key))
	t := h.objects[a.key]
	if t == nil {
		return 0
	}
	for _, m := range t.marks {
		if m.n > foreign.n && m.actor == a.actor && m.what&(running|ended) != 0 {
			return 0
		}
	}
	return foreign.n
}

// slices read the Service and the Pods that its selector picks.
func (h *history) slices(a act, owner key, p present) uint64 {
	if owner.kind != "Service" {
		return 0
	}
	best := h.latest(owner, a.actor, added|spec|deleted)
	service, ok := p.state(owner)
	if !ok || len(service.Selector) == 0 {
		return best.n
	}
	p.each("Pod", owner.namespace, func(k key, s lab.ObjectState) {
		if matches(service.Selector, s.Labels) {
			best = newer(best, h.latest(k, a.actor, ready|deleted|ended|spec))
		}
	})
	for k, t := range h.objects {
		if k.kind == "Pod" && k.namespace == owner.namespace && t.gone {
			if s, ok := p.state(k); ok && matches(service.Selector, s.Labels) {
				best = newer(best, h.latest(k, a.actor, deleted))
			}
		}
	}
	return best.n
}

// node is the life of nodes: taints follow conditions, evictions follow taints.
func (h *history) node(a act, p present) uint64 {
	if a.key.kind == "Node" {
		return h.latest(a.key, a.actor, added|spec|ready|outside).n
	}
	pod, ok := p.state(a.key)
	if !ok || pod.Node == "" {
		return 0
	}
	node := key{kind: "Node", name: pod.Node}
	if a.verb == "delete" {
		return h.latest(node, nobody, spec|deleted).n // its own taint is what it reads
	}
	return h.latest(node, a.actor, spec|ready|outside).n
}

// ofEvent finds the frame that a Kubernetes Event tells about: the reporter's
// own latest write on the object or what belongs to it, or that write's would-be cause.
func (h *history) ofEvent(actor string, regarding key, message string, p present) uint64 {
	actor = writesAs(actor)
	best := h.latestBy(regarding, actor)
	for c := range h.children[regarding] {
		if strings.Contains(message, c.name) {
			if m := h.latestBy(c, actor); m.n > 0 {
				return m.n
			}
		}
	}
	if best.n > 0 && !strings.HasPrefix(actor, "kubelet/") {
		return best.n
	}
	return h.cause(act{actor: actor, key: regarding}, p)
}

// nobody is excluded from a search: the actor's own changes count.
const nobody = "-"

func matches(selector, labels map[string]string) bool {
	for k, v := range selector {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	return true
}
