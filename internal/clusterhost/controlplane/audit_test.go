package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/utils/ptr"

	"kubistro/internal/lab"
)

// auditReader reads the shared cluster's trail from now on.
type auditReader struct {
	t    *testing.T
	seen []lab.AuditEntry
	last uint64
}

func readAudit(t *testing.T) *auditReader {
	shared.trail.mu.Lock()
	defer shared.trail.mu.Unlock()
	return &auditReader{t: t, last: shared.trail.last}
}

// find returns the first entry for which is holds, waiting for it.
func (r *auditReader) find(what string, is func(lab.AuditEntry) bool) lab.AuditEntry {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	looked := 0
	for {
		for ; looked < len(r.seen); looked++ {
			if is(r.seen[looked]) {
				return r.seen[looked]
			}
		}
		entries, more := shared.Audit(r.last, 100)
		for _, e := range entries {
			if e.N != r.last+1 {
				r.t.Errorf("entry %d after %d", e.N, r.last)
			}
			r.last = e.N
		}
		r.seen = append(r.seen, entries...)
		if len(entries) > 0 {
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			r.t.Fatalf("%s: not in the trail, which has %v", what, r.seen)
		}
	}
}

func by(user, verb, resource, sub, name string) func(lab.AuditEntry) bool {
	return func(e lab.AuditEntry) bool {
		return e.User == user && e.Verb == verb && e.Resource == resource && e.Subresource == sub && (name == "" || e.Object.Name == name)
	}
}

// TestAuditTellsWhoDidIt follows a Deployment down to its Pods and the node.
func TestAuditTellsWhoDidIt(t *testing.T) {
	r := readAudit(t)
	labels := map[string]string{"app": "soup"}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "soup"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "registry.k8s.io/pause:3.10"}}}},
	}}
	deployments := shared.client.AppsV1().Deployments("default")
	if _, err := deployments.Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		deployments.Delete(context.Background(), "soup", metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
	})
	const sa = "system:serviceaccount:kube-system:"
	created := r.find("the Deployment", by("learner", "create", "deployments", "", "soup"))
	if created.Object.Kind != "Deployment" || created.Object.UID == "" || created.APIGroup != "apps" || created.Code != 201 {
		t.Errorf("Deployment: %+v", created)
	}
	rs := r.find("the ReplicaSet", by(sa+"deployment-controller", "create", "replicasets", "", ""))
	if rs.Owner == nil || rs.Owner.Name != "soup" || rs.Owner.UID != created.Object.UID {
		t.Errorf("owner of the ReplicaSet: %+v", rs.Owner)
	}
	pod := r.find("the Pod", by(sa+"replicaset-controller", "create", "pods", "", ""))
	if pod.Object.Name == "" || pod.Owner == nil || pod.Owner.Kind != "ReplicaSet" || pod.Owner.Name != rs.Object.Name {
		t.Errorf("Pod: %+v owner %+v", pod, pod.Owner)
	}
	r.find("the binding", by("system:kube-scheduler", "create", "pods", "binding", pod.Object.Name))
	status := r.find("the status", func(e lab.AuditEntry) bool {
		return e.Resource == "pods" && e.Subresource == "status" && e.Object.Name == pod.Object.Name && e.User != "learner"
	})
	if len(status.User) < len("system:node:") || status.User[:12] != "system:node:" {
		t.Errorf("the Pod's status was written by %s", status.User)
	}
}

// TestAuditLeavesOut what changes nothing.
func TestAuditLeavesOut(t *testing.T) {
	r := readAudit(t)
	maps := shared.client.CoreV1().ConfigMaps("default")
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "audit-dry"}}
	if _, err := maps.Create(t.Context(), cm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), "audit-nothing", metav1.DeleteOptions{}); err == nil {
		t.Fatal("deleted what isn't there")
	}
	if _, err := maps.Patch(t.Context(), "audit-nothing", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}); err == nil {
		t.Fatal("patched what isn't there")
	}
	cm.Name = "audit-last"
	if _, err := maps.Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { maps.Delete(context.Background(), "audit-last", metav1.DeleteOptions{}) })
	last := r.find("the last one", by("learner", "create", "configmaps", "", "audit-last"))
	if last.Object.Kind != "ConfigMap" {
		t.Errorf("kind of a ConfigMap: %q", last.Object.Kind)
	}
	for _, e := range r.seen {
		if e.Object.Name == "audit-dry" || e.Object.Name == "audit-nothing" || e.Resource == "leases" || e.Resource == "events" {
			t.Errorf("in the trail: %+v", e)
		}
	}
}

func event(n int) *auditinternal.Event {
	return &auditinternal.Event{
		Verb: "update", ObjectRef: &auditinternal.ObjectReference{Resource: "pods", Name: fmt.Sprint(n)},
		ResponseStatus: &metav1.Status{Code: 200},
	}
}

// TestAuditRing: a reader that keeps up loses nothing; one that doesn't sees a gap.
func TestAuditRing(t *testing.T) {
	trail := newAuditTrail(newKindIndex())
	none, more := trail.since(0, 10)
	if len(none) != 0 {
		t.Fatalf("an empty trail has %v", none)
	}
	trail.ProcessEvents(event(1))
	select {
	case <-more:
	default:
		t.Error("the reader isn't told of a new entry")
	}
	for i := 2; i <= auditKept+10; i++ {
		trail.ProcessEvents(event(i))
	}
	numbers := func(after uint64, max int) (out []uint64) {
		entries, _ := trail.since(after, max)
		for _, e := range entries {
			if fmt.Sprint(e.N) != e.Object.Name {
				t.Errorf("entry %d holds event %s", e.N, e.Object.Name)
			}
			out = append(out, e.N)
		}
		return out
	}
	for _, c := range []struct {
		name  string
		after uint64
		want  []uint64
	}{
		{"from the oldest that is kept", 0, []uint64{11, 12}},
		{"goes on", 12, []uint64{13, 14}},
		{"the last one", auditKept + 9, []uint64{auditKept + 10}},
		{"nothing new", auditKept + 10, nil},
		{"of the future", auditKept + 99, nil},
	} {
		if d := cmp.Diff(c.want, numbers(c.after, 2)); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// TestAuditLearnsKinds of custom resources from their definition.
func TestAuditLearnsKinds(t *testing.T) {
	trail := newAuditTrail(newKindIndex(schemes()...))
	crd, err := json.Marshal(object{"kind": "CustomResourceDefinition", "metadata": object{"name": "dishes.example.com"},
		"spec": object{"group": "example.com", "names": object{"plural": "dishes", "kind": "Dish"}}})
	if err != nil {
		t.Fatal(err)
	}
	trail.ProcessEvents(
		&auditinternal.Event{Verb: "create", ObjectRef: &auditinternal.ObjectReference{Resource: "customresourcedefinitions", APIGroup: "apiextensions.k8s.io"},
			ResponseStatus: &metav1.Status{Code: 201}, ResponseObject: &runtime.Unknown{Raw: crd}},
		&auditinternal.Event{Verb: "patch", ObjectRef: &auditinternal.ObjectReference{Resource: "dishes", APIGroup: "example.com", Name: "soup"},
			ResponseStatus: &metav1.Status{Code: 200}},
		&auditinternal.Event{Verb: "patch", ObjectRef: &auditinternal.ObjectReference{Resource: "ingresses", APIGroup: "networking.k8s.io"},
			ResponseStatus: &metav1.Status{Code: 200}},
	)
	var kinds []string
	entries, _ := trail.since(0, 10)
	for _, e := range entries {
		kinds = append(kinds, e.Object.Kind)
	}
	if d := cmp.Diff([]string{"CustomResourceDefinition", "Dish", "Ingress"}, kinds); d != "" {
		t.Error(d)
	}
}
