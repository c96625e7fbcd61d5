package session_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kubistro/internal/lab"
	"kubistro/internal/session"
)

// made is what the cluster's kitchens, clock and control loops are now, in short.
func (s *server) made(t *testing.T, id string) string {
	t.Helper()
	var out []string
	kitchens, err := s.Kitchens(t.Context(), me, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kitchens {
		out = append(out, fmt.Sprintf("%s/%s", k.Name, k.CPU))
	}
	slices.Sort(out)
	c, err := s.ClusterClock(t.Context(), me, id)
	if err != nil {
		t.Fatal(err)
	}
	out = append(out, fmt.Sprintf("%dx", c.Speed))
	loops, err := s.Loops(t.Context(), me, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range loops {
		if l.Home {
			out = append(out, "without "+l.Name)
		}
	}
	return strings.Join(out, " ")
}

// TestShape: a level whose cluster has another shape than the course's gets it, in the same cluster; what the
// learner changes stays until a reset.
func TestShape(t *testing.T) {
	const (
		first  = "kitchen-1/2 kitchen-2/2 kitchen-3/2 1x"
		second = "annex/4 kitchen-1/2 10x without kube-scheduler"
	)
	s := serve(t, t.TempDir())
	defer s.stop()
	v, _, err := s.Open(t.Context(), me, "restaurant")
	if err != nil {
		t.Fatal(err)
	}
	s.ready(t, v.ID)
	start := func(exercise, want string) {
		t.Helper()
		if _, err := s.StartExercise(t.Context(), me, v.ID, exercise); err != nil {
			t.Fatal(err)
		}
		if got := s.made(t, v.ID); got != want {
			t.Fatalf("after the start of %s: %s, want %s", exercise, got, want)
		}
	}
	start("hire", first)
	start("annex", second)
	s.typed(t, v.ID, 0, `kubectl get node annex -o jsonpath='{.status.allocatable.nvidia\.com/gpu} {.metadata.labels.floor}' | grep '2 2'`)
	s.typed(t, v.ID, 0, "lab node close kitchen-1 && lab loop on scheduler && lab clock real && kubectl label node annex mine=yes && kubectl taint node annex mine=yes:NoSchedule")

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := session.CleanInPlace(ctx, s.Service, v.ID); err != nil {
		t.Fatal(err)
	}
	if got := s.made(t, v.ID); got != "annex/4 kitchen-1/2 10x" {
		t.Errorf("after cleaning: %s", got)
	}
	s.typed(t, v.ID, 0, "kubectl get node annex -o yaml | grep mine && exit 1; kubectl get nodes --no-headers | wc -l | grep 3")

	var op lab.Operation
	if op, err = s.ResetExercise(t.Context(), me, v.ID, "annex"); err != nil {
		t.Fatal(err)
	}
	s.finish(t, v.ID, op)
	if got := s.made(t, v.ID); got != second {
		t.Errorf("after the reset of the second level's exercise: %s", got)
	}
	if op, err = s.ResetExercise(t.Context(), me, v.ID, "hire"); err != nil {
		t.Fatal(err)
	}
	s.finish(t, v.ID, op)
	if got := s.made(t, v.ID); got != first {
		t.Errorf("after the reset of the first level's exercise: %s", got)
	}

	// Without load balancers a Service waits for ever. Its endpoints show that the controllers have seen it.
	const service = "kubectl create deployment soup --image=kubistro/grill-cook:1.4 && kubectl expose deployment soup --port=80 --type=LoadBalancer && until kubectl get endpointslices -l kubernetes.io/service-name=soup -o jsonpath='{.items[0].endpoints[0].addresses}' | grep 10; do sleep 0.2; done"
	s.typed(t, v.ID, 0, service+" && kubectl wait --for=jsonpath='{.status.loadBalancer.ingress[0].ip}' service/soup --timeout=2m && kubectl delete deployment/soup service/soup")
	start("alone", first)
	if out := s.typed(t, v.ID, 0, service+" && kubectl get service soup && kubectl get events"); !strings.Contains(out, "<pending>") || strings.Contains(out, "EnsuringLoadBalancer") {
		t.Errorf("a Service without load balancers:\n%s", out)
	}
}
