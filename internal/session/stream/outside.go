package stream

import (
	"strings"

	"kubistro/internal/lab"
)

// Verbs of lab events about what was done to a cluster from outside of it.
const (
	VerbPower      = "power"      // of a Node: off, on
	VerbCable      = "cable"      // of a Node: out, in
	VerbKitchen    = "kitchen"    // a Node: added, removed
	VerbLoop       = "loop"       // a ControlLoop: home, back
	VerbClock      = "clock"      // reason: the speed
	VerbEncryption = "encryption" // off, on
)

// Kinds of objects of such events that aren't Kubernetes'.
const (
	KindLoop  = "ControlLoop"
	KindClock = "Clock"
	KindEtcd  = "Etcd"
)

// Reasons of VerbLoop.
const (
	ReasonHome = "home"
	ReasonBack = "back"
)

// Outside adds a frame about something that was done to the cluster from outside of it, and
// returns its number. What follows from it in the cluster gets it as its cause.
func (f *Feed) Outside(e lab.Event) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.tell(e)
	f.history.outside(n, e)
	return n
}

// manager is the loop that all controllers go home with.
const manager = "kube-controller-manager"

// absence is when a control loop was home: the frames of its leaving and return.
type absence struct{ home, back uint64 }

// writers are the names that controllers write under where those aren't their loop's.
var writers = map[string]string{
	"daemonset-controller": "daemon-set-controller", "node-lifecycle-controller": "node-controller", "garbage-collector-controller": "generic-garbage-collector",
	"horizontal-pod-autoscaler-controller": "horizontal-pod-autoscaler", "pod-garbage-collector-controller": "pod-garbage-collector",
}

// outside notes what a frame of Outside tells.
func (h *history) outside(n uint64, e lab.Event) {
	node := e.Object.Name
	switch e.Object.Kind {
	case "Node":
	case KindLoop:
		actor := e.Object.Name
		if w := writers[actor]; w != "" {
			actor = w
		}
		a := h.absent[actor]
		if e.Reason == ReasonHome {
			a = absence{home: n}
		} else {
			a.back = n
		}
		h.absent[actor] = a
		var kubelet bool
		if node, kubelet = strings.CutPrefix(actor, "kubelet/"); !kubelet {
			return
		}
	default:
		return
	}
	h.add(key{kind: "Node", name: node}, mark{n: n, actor: e.Actor, what: outside})
}

// backlog is the cause of what an actor does about something that happened while it
// was home: that it came back.
func (h *history) backlog(actor string, because uint64) uint64 {
	who := []string{actor}
	switch {
	case actor == "", actor == ActorLearner, actor == ActorLab, actor == "kube-scheduler", strings.Contains(actor, "/"):
	default:
		who = append(who, manager)
	}
	for _, name := range who {
		if a := h.absent[name]; a.home > 0 && a.home < because && because < a.back {
			return a.back
		}
	}
	return because
}
