package stream

import (
	"encoding/json"
	"testing"

	"kubistro/internal/lab"
)

var atKitchen1 = set("kitchen-1", "spec", "nodeName")

// A cook who has left stays away: his last report, which waits for its entry,
// is told before he is gone, though the entry of his removal came first.
func TestNobodyComesBackAsAGhost(t *testing.T) {
	r := newRig(t, &memoryStore{}, nil)
	r.sync("c1", object("Namespace", "default", "ns"), pod("grill-1-a", "p", atKitchen1, set("Running", "status", "phase")))
	f := r.feed
	f.Audit(wrote(learner, "delete", "pods", "grill-1-a"))
	f.Change(pod("grill-1-a", "p", atKitchen1, set("Running", "status", "phase"), deleting))
	f.Audit(wrote(kitchen1, "delete", "pods", "grill-1-a"))
	f.Change(pod("grill-1-a", "p", atKitchen1, set("Succeeded", "status", "phase"), deleting))
	gone := pod("grill-1-a", "p", atKitchen1, set("Succeeded", "status", "phase"), deleting)
	gone.Removed = true
	f.Change(gone)
	r.pass()
	r.expect(
		line{lab.EventAudit, "learner", "delete", "Pod/grill-1-a", 0},           // 1
		line{lab.EventObject, "learner", "update", "Pod/grill-1-a", 1},          // 2
		line{lab.EventObject, "", "update", "Pod/grill-1-a", 0},                 // 3
		line{lab.EventAudit, "kubelet/kitchen-1", "delete", "Pod/grill-1-a", 2}, // 4: because the learner sent him away
		line{lab.EventObject, "kubelet/kitchen-1", "remove", "Pod/grill-1-a", 4},
	)
	var there []lab.ObjectState
	if err := json.Unmarshal(f.snapshot(), &there); err != nil {
		t.Fatal(err)
	}
	for _, o := range there {
		if o.Ref.Kind == "Pod" {
			t.Errorf("%s is still there: %s", o.Ref.Name, o.Status)
		}
	}
}

// On a busy machine a change may come long after its write was told: who sent
// the cook to his kitchen is known all the same.
func TestLateChangeKeepsItsActor(t *testing.T) {
	r := newRig(t, &memoryStore{}, nil)
	r.sync("c1", object("Namespace", "default", "ns"), pod("grill-1-a", "p"))
	f := r.feed
	f.Audit(wrote(scheduler, "create", "pods", "grill-1-a", "binding"))
	r.pass()
	r.expect(line{lab.EventAudit, "kube-scheduler", "bind", "Pod/grill-1-a", 0}) // 1
	// Something else about the Pod isn't the scheduler's doing.
	f.Change(pod("grill-1-a", "p", set("Unknown", "status", "phase")))
	r.pass()
	r.expect(line{lab.EventObject, "", "update", "Pod/grill-1-a", 0})
	f.Change(pod("grill-1-a", "p", set("Unknown", "status", "phase"), atKitchen1))
	r.pass()
	r.expect(line{lab.EventObject, "kube-scheduler", "update", "Pod/grill-1-a", 1})
}
