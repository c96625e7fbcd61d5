package session_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"kubistro/internal/lab"
	"kubistro/internal/session"
)

// typed runs a script as the learner would, and demands its exit code.
func (s *server) typed(t *testing.T, id string, code int, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	out, got, err := s.Exec(ctx, me, id, script)
	if err != nil || got != code {
		t.Fatalf("%s: %d %v, want %d\n%s", script, got, err, code, out)
	}
	return out
}

// TestOutside does to a cluster all that can be done from outside of it, by the command
// lab, sees it told with its consequences, and has a reset undo it in the same cluster.
func TestOutside(t *testing.T) {
	s := serve(t, t.TempDir())
	defer s.stop()
	v, _, err := s.Open(t.Context(), me, "restaurant")
	if err != nil {
		t.Fatal(err)
	}
	s.ready(t, v.ID)
	if _, err := s.StartExercise(t.Context(), me, v.ID, "hire"); err != nil {
		t.Fatal(err)
	}
	sub, err := s.Events(t.Context(), me, v.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if first, err := sub.Next(t.Context()); err != nil || first.Type != lab.EventSnapshot {
		t.Fatalf("first frame: %v %v", first.Type, err)
	}

	if out := s.typed(t, v.ID, 0, "lab clock 60; lab nodes; lab loops -a"); !strings.Contains(out, "kitchen-3") || !strings.Contains(out, "replicaset-controller") {
		t.Errorf("lists:\n%s", out)
	}
	s.typed(t, v.ID, 0, "lab node off kitchen-2 && kubectl wait --for=condition=Ready=Unknown node/kitchen-2 --timeout=2m")
	var off uint64
	seen := until(t, sub, func(e lab.Event) bool {
		if e.Verb == "power" && e.Reason == "off" && e.Object.Name == "kitchen-2" && e.Actor == "learner" {
			off = e.N
		}
		return off > 0 && e.Type == lab.EventObject && e.Actor == "node-controller" && e.Object.Name == "kitchen-2"
	})
	if last := seen[len(seen)-1]; last.Cause == nil || *last.Cause != off {
		t.Errorf("NotReady: %+v, want the cause %d", last, off)
	}

	s.typed(t, v.ID, 0, "lab loop off scheduler && kubectl run waits --image=registry.k8s.io/pause:3.10")
	s.typed(t, v.ID, 0, "lab loop on scheduler && kubectl wait --for=condition=Ready pod/waits --timeout=2m")
	var back uint64
	seen = until(t, sub, func(e lab.Event) bool {
		if e.Verb == "loop" && e.Reason == "back" {
			back = e.N
		}
		return e.Actor == "kube-scheduler" && e.Verb == "bind"
	})
	if last := seen[len(seen)-1]; last.Cause == nil || *last.Cause != back {
		t.Errorf("binding: %+v, want the cause %d", last, back)
	}

	s.typed(t, v.ID, 0, `kubectl create secret generic sauce --from-literal=recipe=grandmother
lab etcd get --raw /registry/secrets/default/sauce | grep grandmother || exit 1
lab encryption on
kubectl get secret sauce -o json | kubectl replace -f -
lab etcd get --raw /registry/secrets/default/sauce | grep k8s:enc:secretbox:v1:key1: || exit 1
lab etcd get --raw /registry/secrets/default/sauce | grep grandmother && exit 1
kubectl get secret sauce -o jsonpath={.data.recipe} | base64 -d | grep grandmother`)
	s.typed(t, v.ID, 0, "lab node open annex --cpu 4 --label floor=2 && kubectl get node annex -L floor && lab node close kitchen-3 && lab node cut kitchen-1")
	s.typed(t, v.ID, 0, "lab loop off controller-manager && lab loop off kubelet kitchen-1 && lab loop off deployment-controller && lab loop off dns")
	if out := s.typed(t, v.ID, 1, "lab node open annex"); !strings.Contains(out, "there is a node annex already") {
		t.Errorf("opened twice:\n%s", out)
	}

	if err := session.CleanInPlace(t.Context(), s.Service, v.ID); err != nil {
		t.Fatal(err)
	}
	kitchens, err := s.Kitchens(t.Context(), me, v.ID)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, k := range kitchens {
		names = append(names, k.Name)
		if !k.Power || !k.Cable {
			t.Errorf("after the reset: %+v", k)
		}
	}
	if slices.Sort(names); strings.Join(names, " ") != "kitchen-1 kitchen-2 kitchen-3" {
		t.Errorf("kitchens after the reset: %v", names)
	}
	loops, err := s.Loops(t.Context(), me, v.ID)
	if err != nil || slices.ContainsFunc(loops, func(l lab.ControlLoop) bool { return l.Home }) {
		t.Errorf("loops after the reset: %v %+v", err, loops)
	}
	if c, err := s.ClusterClock(t.Context(), me, v.ID); err != nil || c.Speed != 1 {
		t.Errorf("clock after the reset: %v %+v", err, c)
	}
	if e, err := s.Encryption(t.Context(), me, v.ID); err != nil || e.On || e.Config != "" {
		t.Errorf("encryption after the reset: %v %+v", err, e)
	}
	s.typed(t, v.ID, 0, "kubectl get secrets -A && kubectl wait --for=condition=Ready node --all --timeout=2m && kubectl create deployment grill --image=registry.k8s.io/pause:3.10 && kubectl rollout status deploy/grill --timeout=2m")

	if _, err := s.EtcdValue(t.Context(), me, v.ID, "/registry/nothing"); lab.AsError(err).Code != lab.CodeNotFound {
		t.Errorf("a key that isn't there: %v", err)
	}
	if err := s.SetEncryption(t.Context(), me, v.ID, lab.EncryptionChange{On: true, Config: "kind: Secret"}); lab.AsError(err).Code != lab.CodeInvalid {
		t.Errorf("no configuration: %v", err)
	}
	if _, err := s.Kitchens(t.Context(), somebody, v.ID); lab.AsError(err).Code != lab.CodeNotFound {
		t.Errorf("somebody else's kitchens: %v", err)
	}
}

// finish waits for an operation.
func (s *server) finish(t *testing.T, id string, op lab.Operation) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !op.Done {
		<-tick.C
		var err error
		if op, err = s.Operation(t.Context(), me, id, op.ID); err != nil {
			t.Fatal(err)
		}
	}
	if op.Problem != nil {
		t.Fatalf("operation: %+v", op.Problem)
	}
	t.Logf("%s took %d ms", op.Kind, op.Millis)
}
