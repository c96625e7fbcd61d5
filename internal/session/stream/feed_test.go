package stream

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubistro/internal/lab"
)

// line is what a test compares of a frame.
type line struct {
	Type   lab.EventType
	Actor  string
	Verb   string
	Object string
	Cause  uint64
}

func lineOf(e lab.Event) line {
	l := line{Type: e.Type, Actor: e.Actor, Verb: e.Verb, Object: e.Object.Kind + "/" + e.Object.Name}
	if e.Cause != nil {
		l.Cause = *e.Cause
	}
	return l
}

func (r *rig) expect(want ...line) {
	r.t.Helper()
	var got []line
	for range want {
		got = append(got, lineOf(r.next()))
	}
	if d := cmp.Diff(want, got); d != "" {
		r.t.Fatalf("frames (-want +got):\n%s", d)
	}
}

func pod(name, uid string, more ...option) Change {
	return object("Pod", name, uid, append([]option{ownedBy("ReplicaSet", "grill-1", "rs")}, more...)...)
}

// The relay from the learner's line on the whiteboard to the cook at the
// station: who did each step, and because of what.
func TestDeploymentRelay(t *testing.T) {
	r := newRig(t, &memoryStore{}, nil)
	r.sync("c1", object("Namespace", "default", "ns"))
	f := r.feed

	f.Audit(wrote(learner, "create", "deployments", "grill"))
	f.Change(object("Deployment", "grill", "d", set(int64(1), "spec", "replicas")))
	// The change may come before the entry that tells who made it.
	f.Change(object("ReplicaSet", "grill-1", "rs", ownedBy("Deployment", "grill", "d"), set(int64(1), "spec", "replicas")))
	f.Audit(wrote(deployments, "create", "replicasets", "grill-1"))
	f.Change(pod("grill-1-a", "p"))
	f.Audit(wrote(replicaSets, "create", "pods", "grill-1-a"))
	f.Audit(wrote(scheduler, "create", "pods", "grill-1-a", "binding"))
	f.Change(pod("grill-1-a", "p", set("kitchen-1", "spec", "nodeName")))
	f.Audit(wrote(kitchen1, "patch", "pods", "grill-1-a", "status"))
	f.Change(pod("grill-1-a", "p", set("kitchen-1", "spec", "nodeName"), set("10.244.1.2", "status", "podIP"), set("Running", "status", "phase")))

	r.expect(
		line{lab.EventAudit, "learner", "create", "Deployment/grill", 0},                 // 1
		line{lab.EventObject, "learner", "add", "Deployment/grill", 1},                   // 2
		line{lab.EventAudit, "deployment-controller", "create", "ReplicaSet/grill-1", 2}, // 3
		line{lab.EventObject, "deployment-controller", "add", "ReplicaSet/grill-1", 3},   // 4
		line{lab.EventAudit, "replicaset-controller", "create", "Pod/grill-1-a", 4},      // 5
		line{lab.EventObject, "replicaset-controller", "add", "Pod/grill-1-a", 5},        // 6
		line{lab.EventAudit, "kube-scheduler", "bind", "Pod/grill-1-a", 6},               // 7
		line{lab.EventObject, "kube-scheduler", "update", "Pod/grill-1-a", 7},            // 8
		line{lab.EventObject, "kubelet/kitchen-1", "update", "Pod/grill-1-a", 8},         // 9: reporting is no write of its own
	)

	// The learner sends the cook home; the one who counts heads hires another.
	f.Audit(wrote(learner, "delete", "pods", "grill-1-a"))
	f.Change(pod("grill-1-a", "p", set("kitchen-1", "spec", "nodeName"), set("10.244.1.2", "status", "podIP"), set("Running", "status", "phase"), deleting))
	f.Change(pod("grill-1-b", "p2"))
	f.Audit(wrote(replicaSets, "create", "pods", "grill-1-b"))
	r.expect(
		line{lab.EventAudit, "learner", "delete", "Pod/grill-1-a", 0},                // 10
		line{lab.EventObject, "learner", "update", "Pod/grill-1-a", 10},              // 11
		line{lab.EventAudit, "replicaset-controller", "create", "Pod/grill-1-b", 11}, // 12
		line{lab.EventObject, "replicaset-controller", "add", "Pod/grill-1-b", 12},
	)
}

// Without an entry nobody is named, and nothing is guessed.
func TestUnknownActor(t *testing.T) {
	r := newRig(t, &memoryStore{}, nil)
	r.sync("c1", object("Namespace", "default", "ns"), object("Pod", "bare", "p"))
	r.feed.Change(object("Pod", "bare", "p", set("Running", "status", "phase")))
	r.pass()
	r.expect(line{lab.EventObject, "", "update", "Pod/bare", 0})
	// The entry that comes too late is told all the same.
	r.feed.Audit(wrote(learner, "patch", "pods", "bare"))
	r.pass()
	r.expect(line{lab.EventAudit, "learner", "patch", "Pod/bare", 0})
}

func TestLabsOwnWritesAreTold(t *testing.T) {
	r := newRig(t, &memoryStore{}, nil)
	r.sync("c1", object("Namespace", "default", "ns"))
	n := r.feed.Lab(lab.Event{Verb: "setup"})
	r.feed.Working(n)
	e := wrote(learner, "patch", "deployments", "grill")
	e.Verb, e.UserAgent = "create", LabUserAgent+"/setup"
	r.feed.Audit(e)
	r.feed.Change(object("Deployment", "grill", "d"))
	r.expect(
		line{lab.EventLab, "lab", "setup", "/", 0},
		line{lab.EventAudit, "lab", "create", "Deployment/grill", n},
		line{lab.EventObject, "lab", "add", "Deployment/grill", 2},
	)
}

func TestNoiseStaysOut(t *testing.T) {
	r := newRig(t, &memoryStore{}, nil)
	r.sync("c1", object("Namespace", "default", "ns"), object("Node", "kitchen-1", "n"))
	lease := wrote(kitchen1, "update", "leases", "kitchen-1")
	lease.APIGroup = "coordination.k8s.io"
	r.feed.Audit(lease)
	beat := wrote(kitchen1, "patch", "nodes", "kitchen-1", "status")
	beat.Object.Namespace = ""
	r.feed.Audit(beat)
	r.feed.Change(object("Node", "kitchen-1", "n", set("2026-12-01", "status", "heartbeat")))
	system := object("Pod", "coredns", "c")
	system.Object.SetNamespace("kube-system")
	r.feed.Change(system)
	r.pass()
	r.feed.Lab(lab.Event{Verb: "end"})
	r.expect(line{lab.EventLab, "lab", "end", "/", 0})
}

// Secrets and ConfigMaps show that they are there, never what is in them.
func TestContentsStayOut(t *testing.T) {
	r := newRig(t, &memoryStore{}, nil)
	r.sync("c1", object("Namespace", "default", "ns"))
	for _, kind := range []string{"Secret", "ConfigMap"} {
		r.feed.Change(object(kind, "safe", "s"+kind, set("aHVudGVyMg==", "data", "password")))
		r.pass()
		e := r.next()
		if e.Verb != "add" || len(e.State) == 0 {
			t.Errorf("%s: %+v, want an add with its state", kind, e)
		}
		if body, _ := json.Marshal(e); contains(body, "aHVudGVyMg") || contains(body, "password") {
			t.Errorf("%s: contents in the frame: %s", kind, body)
		}
	}
}

func contains(b []byte, s string) bool { return strings.Contains(string(b), s) }

// After a restart of the server the objects that were there are no news; what
// changed meanwhile is, and numbers go on.
func TestRestart(t *testing.T) {
	for _, c := range []struct {
		name  string
		saved bool // the feed's memory was written at the end; otherwise the one from the start is used
	}{{"graceful", true}, {"killed", false}} {
		t.Run(c.name, func(t *testing.T) {
			store := &memoryStore{}
			r := newRig(t, store, nil)
			r.sync("c1", object("Namespace", "default", "ns"), object("Pod", "old", "p0"), object("Pod", "stays", "p1"))
			r.feed.Change(object("Pod", "new", "p2"))
			r.pass()
			last := r.next()
			r.mu.Lock()
			saved := r.saved
			r.mu.Unlock()
			r.close()
			if c.saved {
				saved = r.saved
			}

			again := newRig(t, store, saved)
			again.sync("c1", object("Namespace", "default", "ns"), object("Pod", "stays", "p1"), object("Pod", "new", "p2", set("Running", "status", "phase")), object("Pod", "newer", "p3"))
			again.feed.Lab(lab.Event{Verb: "end"})
			got := map[string]string{}
			for {
				e := again.next()
				if e.N <= last.N {
					t.Fatalf("number %d was given twice", e.N)
				}
				if e.Verb == "end" {
					break
				}
				if e.Actor != "" {
					t.Errorf("%s %s: actor %q, want none", e.Verb, e.Object.Name, e.Actor)
				}
				got[e.Object.Name] = e.Verb
			}
			want := map[string]string{"old": "remove", "new": "update", "newer": "add"}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("news (-want +got):\n%s", d)
			}
		})
	}
}

// Another cluster (after a reset) starts from nothing: its objects are no news,
// and clients take a snapshot.
func TestOtherCluster(t *testing.T) {
	r := newRig(t, &memoryStore{}, nil)
	r.sync("c1", object("Namespace", "default", "ns"), object("Pod", "old", "p0"))
	r.feed.Lab(lab.Event{Verb: "mark"})
	r.expect(line{lab.EventLab, "lab", "mark", "/", 0})
	before := r.sub
	r.sync("c2", object("Namespace", "default", "ns2"), object("Pod", "fresh", "p1"))
	r.sub = before // the client that was there
	e := r.any()
	if e.Type != lab.EventSnapshot {
		t.Fatalf("a frame for what is simply there: %+v", lineOf(e))
	}
	var states []lab.ObjectState
	if err := json.Unmarshal(e.State, &states); err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, s := range states {
		names += s.Ref.Name + " "
	}
	if names != "default fresh " {
		t.Errorf("snapshot has %q", names)
	}
	r.feed.Lab(lab.Event{Verb: "end"})
	r.expect(line{lab.EventLab, "lab", "end", "/", 0})
}

// A learner who floods the record is held to its rate; what was left out is
// counted, and the present state comes right.
func TestFlood(t *testing.T) {
	r := newRig(t, &memoryStore{}, nil)
	r.sync("c1", object("Namespace", "default", "ns"))
	const flood = 4 * framesBurst
	for i := range flood {
		r.feed.Change(object("ConfigMap", fmt.Sprintf("junk-%d", i%50), fmt.Sprintf("u%d", i%50), set(int64(i), "metadata", "generation"), set(fmt.Sprint(i), "metadata", "labels", "v")))
	}
	r.wait()
	r.feed.mu.Lock()
	r.feed.flush(true)
	skipped := r.feed.skipped
	r.feed.mu.Unlock()
	if n := r.rec.Last(); n > framesBurst+framesPerSecond*10 {
		t.Errorf("%d frames of %d were recorded", n, flood)
	}
	if skipped == 0 {
		t.Error("nothing was counted as skipped")
	}
	raw := r.feed.snapshot()
	var states []lab.ObjectState
	if err := json.Unmarshal(raw, &states); err != nil {
		t.Fatal(err)
	}
	for _, s := range states {
		if s.Ref.Name == "junk-49" && s.Labels["v"] != fmt.Sprint(flood-1) {
			t.Errorf("junk-49 is at %s, want %d", s.Labels["v"], flood-1)
		}
	}
	if len(states) != 51 {
		t.Errorf("%d objects in the snapshot, want 51", len(states))
	}
}
