package stream

import (
	"testing"

	"kubistro/internal/lab"
)

func (r *rig) outside(verb, kind, name, reason string) {
	r.feed.Outside(lab.Event{Actor: ActorLearner, Verb: verb, Object: lab.ObjectRef{Kind: kind, Name: name}, Reason: reason})
}

func nodeWith(ready string, more ...option) Change {
	return object("Node", "kitchen-1", "n", append([]option{set([]any{map[string]any{"type": "Ready", "status": ready}}, "status", "conditions")}, more...)...)
}

// aboutNode is a write to the node.
func aboutNode(user, verb string, more ...string) lab.AuditEntry {
	e := wrote(user, verb, "nodes", "kitchen-1", more...)
	e.Object.Namespace = ""
	return e
}

// TestPowerIsTheCause of what the cluster notices about a node, until the node speaks again.
func TestPowerIsTheCause(t *testing.T) {
	inspector := account + "node-controller"
	for name, c := range map[string]struct{ verb, kind, object, off, on string }{
		"power":   {VerbPower, "Node", "kitchen-1", "off", "on"},
		"cable":   {VerbCable, "Node", "kitchen-1", "out", "in"},
		"kubelet": {VerbLoop, KindLoop, "kubelet/kitchen-1", ReasonHome, ReasonBack},
	} {
		t.Run(name, func(t *testing.T) {
			store := &memoryStore{}
			r := newRig(t, store, nil)
			r.sync("c1", object("Namespace", "default", "ns"), nodeWith("True"), atWork("soup", "s"))
			r.outside(c.verb, c.kind, c.object, c.off)
			r.feed.Audit(aboutNode(inspector, "patch", "status"))
			r.feed.Change(nodeWith("Unknown"))
			r.feed.Audit(wrote(inspector, "patch", "pods", "soup", "status"))
			r.feed.Change(atWork("soup", "s", set("False", "metadata", "labels", "ready")))
			r.expect(
				line{lab.EventLab, "learner", c.verb, c.kind + "/" + c.object, 0}, // 1
				line{lab.EventObject, "node-controller", "update", "Node/kitchen-1", 1},
				line{lab.EventObject, "node-controller", "update", "Pod/soup", 1},
			)
			r.outside(c.verb, c.kind, c.object, c.on)
			r.feed.Audit(aboutNode(kitchen1, "patch", "status"))
			r.feed.Change(nodeWith("True"))
			r.feed.Audit(aboutNode(kitchen1, "patch", "status"))
			r.feed.Change(nodeWith("False"))
			r.expect(
				line{lab.EventLab, "learner", c.verb, c.kind + "/" + c.object, 0}, // 4
				line{lab.EventObject, "kubelet/kitchen-1", "update", "Node/kitchen-1", 4},
				line{lab.EventObject, "kubelet/kitchen-1", "update", "Node/kitchen-1", 0},
			)
		})
	}
}

// TestPowerIsRemembered over a restart of the server.
func TestPowerIsRemembered(t *testing.T) {
	store := &memoryStore{}
	r := newRig(t, store, nil)
	r.sync("c1", object("Namespace", "default", "ns"), nodeWith("True"))
	r.outside(VerbPower, "Node", "kitchen-1", "off")
	r.wait()
	r.close()
	r = newRig(t, store, r.saved)
	r.sync("c1", object("Namespace", "default", "ns"), nodeWith("True"))
	r.feed.Audit(aboutNode(account+"node-controller", "patch", "status"))
	r.feed.Change(nodeWith("Unknown"))
	for e := r.next(); ; e = r.next() {
		if e.Type == lab.EventObject {
			if got := lineOf(e); got != (line{lab.EventObject, "node-controller", "update", "Node/kitchen-1", 1}) {
				t.Errorf("frame: %+v", got)
			}
			return
		}
	}
}

// TestBacklogComesOfTheReturn: what a loop does about things that happened while it was
// home has its return as the cause; what it does about later things has not.
func TestBacklogComesOfTheReturn(t *testing.T) {
	for loop, c := range map[string]struct{ user, actor string }{
		"kube-scheduler":          {scheduler, "kube-scheduler"},
		"daemonset-controller":    {account + "daemon-set-controller", "daemon-set-controller"},
		"kube-controller-manager": {account + "daemon-set-controller", "daemon-set-controller"},
	} {
		t.Run(loop, func(t *testing.T) {
			r := newRig(t, &memoryStore{}, nil)
			r.sync("c1", object("Namespace", "default", "ns"), nodeWith("True"))
			work := func(name string) {
				if c.actor == "kube-scheduler" {
					r.feed.Audit(wrote(scheduler, "create", "pods", name, "binding"))
					r.feed.Change(object("Pod", name, name, set("kitchen-1", "spec", "nodeName")))
					return
				}
				r.feed.Audit(wrote(c.user, "create", "pods", name+"-x"))
				r.feed.Change(object("Pod", name+"-x", name+"-x", ownedBy("DaemonSet", name, name)))
			}
			ask := func(name string) {
				if c.actor == "kube-scheduler" {
					r.feed.Audit(wrote(learner, "create", "pods", name))
					r.feed.Change(object("Pod", name, name))
					return
				}
				r.feed.Audit(wrote(learner, "create", "daemonsets", name))
				r.feed.Change(object("DaemonSet", name, name))
			}
			cause := func() uint64 {
				for {
					if e := r.next(); e.Type == lab.EventAudit && e.Actor == c.actor {
						return lineOf(e).Cause
					}
				}
			}
			r.outside(VerbLoop, KindLoop, loop, ReasonHome) // 1
			ask("early")                                    // 2, 3
			for r.next().N < 3 {
			}
			r.outside(VerbLoop, KindLoop, loop, ReasonBack) // 4
			work("early")
			if n := cause(); n != 4 {
				t.Errorf("cause of the backlog: %d, want the return, 4", n)
			}
			ask("late")
			work("late")
			if n := cause(); n <= 5 {
				t.Errorf("cause of later work: %d, want what was asked for", n)
			}
		})
	}
}
