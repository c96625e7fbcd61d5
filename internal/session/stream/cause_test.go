package stream

import (
	"testing"
	"time"

	"kubistro/internal/lab"
)

const (
	account = "system:serviceaccount:kube-system:"
	garbage = account + "generic-garbage-collector"
)

func atWork(name, uid string, more ...option) Change {
	return object("Pod", name, uid, append([]option{set("kitchen-1", "spec", "nodeName"), set("Running", "status", "phase")}, more...)...)
}

func session(sub, id, command string, ended bool) lab.AuditEntry {
	e := wrote(learner, "get", "pods", "bare", sub)
	e.Session, e.Command, e.Ended, e.Code = id, command, ended, 101
	return e
}

// TestCrashNamesTheSession: what a learner does inside a container, and for a
// moment after, is why it ends; later it isn't.
func TestCrashNamesTheSession(t *testing.T) {
	r := newRig(t, &memoryStore{}, nil)
	r.sync("c1", object("Namespace", "default", "ns"), atWork("bare", "p"))
	restart := func(n int64) {
		e := wrote(kitchen1, "patch", "pods", "bare", "status")
		e.Time = r.clock.Now()
		r.feed.Audit(e)
		r.feed.Change(atWork("bare", "p", set(n, "status", "restarts"), set([]any{map[string]any{"restartCount": n}}, "status", "containerStatuses")))
	}
	r.feed.Audit(session("exec", "one", "burn-dish", false))
	restart(1)
	r.feed.Audit(session("exec", "one", "burn-dish", true))
	r.expect(
		line{lab.EventAudit, "learner", "exec", "Pod/bare", 0},
		line{lab.EventObject, "kubelet/kitchen-1", "update", "Pod/bare", 1},
	)
	r.wait()
	r.clock.Step(sessionEcho + time.Second)
	restart(2)
	r.expect(line{lab.EventObject, "kubelet/kitchen-1", "update", "Pod/bare", 0})

	mine := session("exec", "two", "cat /menu", false)
	mine.UserAgent = LabUserAgent + "/check"
	r.feed.Audit(mine)
	restart(3)
	r.expect(line{lab.EventObject, "kubelet/kitchen-1", "update", "Pod/bare", 0})
}

// TestWhoMadeThePod of each kind of controller, and because of what.
func TestWhoMadeThePod(t *testing.T) {
	for _, c := range []struct{ kind, resource, actor string }{
		{"StatefulSet", "statefulsets", "statefulset-controller"},
		{"DaemonSet", "daemonsets", "daemon-set-controller"},
		{"Job", "jobs", "job-controller"},
	} {
		t.Run(c.kind, func(t *testing.T) {
			r := newRig(t, &memoryStore{}, nil)
			r.sync("c1", object("Namespace", "default", "ns"))
			r.feed.Audit(wrote(learner, "create", c.resource, "line"))
			r.feed.Change(object(c.kind, "line", "l"))
			r.feed.Audit(wrote(account+c.actor, "create", "pods", "line-0"))
			r.feed.Change(object("Pod", "line-0", "p", ownedBy(c.kind, "line", "l")))
			r.expect(
				line{lab.EventAudit, "learner", "create", c.kind + "/line", 0},
				line{lab.EventObject, "learner", "add", c.kind + "/line", 1},
				line{lab.EventAudit, c.actor, "create", "Pod/line-0", 2},
				line{lab.EventObject, c.actor, "add", "Pod/line-0", 3},
			)
		})
	}
}

func TestCronJobMakesJobs(t *testing.T) {
	r := newRig(t, &memoryStore{}, nil)
	r.sync("c1", object("Namespace", "default", "ns"))
	r.feed.Audit(wrote(learner, "create", "cronjobs", "clean"))
	r.feed.Change(object("CronJob", "clean", "c"))
	r.feed.Audit(wrote(account+"cronjob-controller", "create", "jobs", "clean-1"))
	r.feed.Change(object("Job", "clean-1", "j", ownedBy("CronJob", "clean", "c")))
	r.feed.Audit(wrote(account+"job-controller", "create", "pods", "clean-1-x"))
	r.feed.Change(object("Pod", "clean-1-x", "p", ownedBy("Job", "clean-1", "j")))
	r.expect(
		line{lab.EventAudit, "learner", "create", "CronJob/clean", 0},
		line{lab.EventObject, "learner", "add", "CronJob/clean", 1},
		line{lab.EventAudit, "cronjob-controller", "create", "Job/clean-1", 2},
		line{lab.EventObject, "cronjob-controller", "add", "Job/clean-1", 3},
		line{lab.EventAudit, "job-controller", "create", "Pod/clean-1-x", 4},
		line{lab.EventObject, "job-controller", "add", "Pod/clean-1-x", 5},
	)
}

// TestAutoscalerScales: the autoscaler, the Deployment, the ReplicaSet, the Pod.
func TestAutoscalerScales(t *testing.T) {
	r := newRig(t, &memoryStore{}, nil)
	r.sync("c1", object("Namespace", "default", "ns"), object("Deployment", "grill", "d", set(int64(1), "spec", "replicas")),
		object("ReplicaSet", "grill-1", "rs", ownedBy("Deployment", "grill", "d"), set(int64(1), "spec", "replicas")))
	r.feed.Audit(wrote(learner, "create", "horizontalpodautoscalers", "busy"))
	target := func(name string) option {
		return set(map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, "spec", "scaleTargetRef")
	}
	r.feed.Change(object("HorizontalPodAutoscaler", "busy", "h", target("grill")))
	r.feed.Change(object("HorizontalPodAutoscaler", "other", "h2", target("soup")))
	r.feed.Audit(wrote(learner, "create", "horizontalpodautoscalers", "other"))
	r.feed.Audit(wrote(account+"horizontal-pod-autoscaler", "update", "deployments", "grill", "scale"))
	r.feed.Change(object("Deployment", "grill", "d", set(int64(2), "spec", "replicas")))
	r.feed.Audit(wrote(deployments, "update", "replicasets", "grill-1"))
	r.feed.Change(object("ReplicaSet", "grill-1", "rs", ownedBy("Deployment", "grill", "d"), set(int64(2), "spec", "replicas")))
	r.feed.Audit(wrote(replicaSets, "create", "pods", "grill-1-a"))
	r.feed.Change(pod("grill-1-a", "p"))
	r.expect(
		line{lab.EventAudit, "learner", "create", "HorizontalPodAutoscaler/busy", 0},
		line{lab.EventObject, "learner", "add", "HorizontalPodAutoscaler/busy", 1},
		line{lab.EventAudit, "learner", "create", "HorizontalPodAutoscaler/other", 0},
		line{lab.EventObject, "learner", "add", "HorizontalPodAutoscaler/other", 3},
		line{lab.EventAudit, "horizontal-pod-autoscaler", "update", "Deployment/grill", 2},
		line{lab.EventObject, "horizontal-pod-autoscaler", "update", "Deployment/grill", 5},
		line{lab.EventAudit, "deployment-controller", "update", "ReplicaSet/grill-1", 6},
		line{lab.EventObject, "deployment-controller", "update", "ReplicaSet/grill-1", 7},
		line{lab.EventAudit, "replicaset-controller", "create", "Pod/grill-1-a", 8},
		line{lab.EventObject, "replicaset-controller", "add", "Pod/grill-1-a", 9},
	)
}

// TestPreemption: the scheduler sends one Pod away for another, if it is clear for which.
func TestPreemption(t *testing.T) {
	r := newRig(t, &memoryStore{}, nil)
	r.sync("c1", object("Namespace", "default", "ns"), atWork("victim", "v"), atWork("second", "v2"))
	f := r.feed
	f.Audit(wrote(learner, "create", "pods", "vip"))
	f.Change(object("Pod", "vip", "p", set("Pending", "status", "phase")))
	f.Audit(wrote(scheduler, "delete", "pods", "victim"))
	f.Change(atWork("victim", "v", deleting))
	r.expect(
		line{lab.EventAudit, "learner", "create", "Pod/vip", 0},
		line{lab.EventObject, "learner", "add", "Pod/vip", 1},
		line{lab.EventAudit, "kube-scheduler", "delete", "Pod/victim", 2},
		line{lab.EventObject, "kube-scheduler", "update", "Pod/victim", 3},
	)
	f.Audit(wrote(learner, "create", "pods", "vip2"))
	f.Change(object("Pod", "vip2", "p2", set("Pending", "status", "phase")))
	f.Audit(wrote(scheduler, "delete", "pods", "second"))
	f.Change(atWork("second", "v2", deleting))
	r.expect(
		line{lab.EventAudit, "learner", "create", "Pod/vip2", 0},
		line{lab.EventObject, "learner", "add", "Pod/vip2", 5},
		line{lab.EventAudit, "kube-scheduler", "delete", "Pod/second", 0},
		line{lab.EventObject, "kube-scheduler", "update", "Pod/second", 7},
	)
}

// TestWhoRemovedThePod: an eviction, a cascade, a node that is lost and one that is removed.
func TestWhoRemovedThePod(t *testing.T) {
	r := newRig(t, &memoryStore{}, nil)
	node := func(more ...option) Change { return object("Node", "kitchen-1", "n", more...) }
	r.sync("c1", object("Namespace", "default", "ns"), node(), atWork("evicted", "e"), atWork("late", "l"), atWork("orphan", "o"),
		object("ReplicaSet", "line", "rs"), atWork("child", "c", ownedBy("ReplicaSet", "line", "rs")))
	f := r.feed
	f.Audit(wrote(learner, "create", "pods", "evicted", "eviction"))
	f.Change(atWork("evicted", "e", deleting))
	r.expect(
		line{lab.EventAudit, "learner", "delete", "Pod/evicted", 0}, // 1
		line{lab.EventObject, "learner", "update", "Pod/evicted", 1},
	)
	f.Audit(wrote(learner, "delete", "replicasets", "line"))
	gone := object("ReplicaSet", "line", "rs")
	gone.Removed = true
	f.Change(gone)
	f.Audit(wrote(garbage, "delete", "pods", "child"))
	f.Change(atWork("child", "c", ownedBy("ReplicaSet", "line", "rs"), deleting))
	r.expect(
		line{lab.EventAudit, "learner", "delete", "ReplicaSet/line", 0}, // 3
		line{lab.EventObject, "learner", "remove", "ReplicaSet/line", 3},
		line{lab.EventAudit, "generic-garbage-collector", "delete", "Pod/child", 4}, // 5
		line{lab.EventObject, "generic-garbage-collector", "update", "Pod/child", 5},
	)
	taint := []any{map[string]any{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}}
	tainted := wrote(account+"node-controller", "patch", "nodes", "kitchen-1")
	tainted.Object.Namespace = ""
	f.Audit(tainted)
	f.Change(node(set(taint, "spec", "taints")))
	f.Audit(wrote(account+"node-controller", "delete", "pods", "late"))
	f.Change(atWork("late", "l", deleting))
	r.expect(
		line{lab.EventAudit, "node-controller", "patch", "Node/kitchen-1", 0}, // 7
		line{lab.EventObject, "node-controller", "update", "Node/kitchen-1", 7},
		line{lab.EventAudit, "node-controller", "delete", "Pod/late", 8}, // 9
		line{lab.EventObject, "node-controller", "update", "Pod/late", 9},
	)
	removed := wrote(learner, "delete", "nodes", "kitchen-1")
	removed.Object.Namespace = ""
	f.Audit(removed)
	away := node(set(taint, "spec", "taints"))
	away.Removed = true
	f.Change(away)
	f.Audit(wrote(account+"pod-garbage-collector", "delete", "pods", "orphan"))
	left := atWork("orphan", "o")
	left.Removed = true
	f.Change(left)
	r.expect(
		line{lab.EventAudit, "learner", "delete", "Node/kitchen-1", 0}, // 11
		line{lab.EventObject, "learner", "remove", "Node/kitchen-1", 11},
		line{lab.EventAudit, "pod-garbage-collector", "delete", "Pod/orphan", 12}, // 13
		line{lab.EventObject, "pod-garbage-collector", "remove", "Pod/orphan", 13},
	)
}
