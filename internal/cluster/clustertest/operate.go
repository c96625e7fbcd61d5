package clustertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
)

// ability is an optional ability that the driver says to have.
func ability[T any](t *testing.T, inst cluster.Instance) T {
	t.Helper()
	a, ok := inst.(T)
	if !ok {
		t.Fatalf("the driver has the capability, and its instance is a %T without the methods", inst)
	}
	return a
}

// refused looks whether an error is a *lab.Error of a code.
func refused(t *testing.T, what string, err error, code lab.Code) {
	t.Helper()
	var e *lab.Error
	if !errors.As(err, &e) || e.Code != code || e.Text.ZhTW == "" || e.Text.En == "" {
		t.Errorf("%s: %v, want code %s with a text in every language", what, err, code)
	}
}

// awaitNode waits until a node's condition Ready has a status.
func awaitNode(t *testing.T, l *life, name string, status corev1.ConditionStatus) {
	t.Helper()
	c := client(t, l.inst)
	awaitThat(t, l.Within, func(ctx context.Context) (bool, string) {
		n, err := c.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, x := range n.Status.Conditions {
			if x.Type == corev1.NodeReady {
				return x.Status == status, fmt.Sprintf("node %s: Ready is %s, want %s", name, x.Status, status)
			}
		}
		return false, "node " + name + " has no condition Ready"
	})
}

// testClock sets the clock fast for the next test.
func testClock(t *testing.T, l *life) {
	clock := ability[cluster.ClockSetter](t, l.inst)
	refused(t, "a clock that stands still", clock.SetClock(t.Context(), -1), lab.CodeInvalid)
	for _, speed := range []int{1, 30} {
		if err := clock.SetClock(t.Context(), speed); err != nil {
			t.Fatal(err)
		}
		c, err := clock.Clock(t.Context())
		if err != nil || c.Speed != speed || len(c.Figures) == 0 {
			t.Fatalf("clock = %+v, %v", c, err)
		}
		for _, f := range c.Figures {
			if f.Name == "" || f.RealMillis <= 0 || f.NowMillis <= 0 || (speed == 1) != (f.NowMillis == f.RealMillis) {
				t.Errorf("at speed %d: %+v", speed, f)
			}
		}
	}
}

func testLostKitchen(t *testing.T, l *life) {
	op := ability[cluster.KitchenOperator](t, l.inst)
	refused(t, "power of no kitchen", op.SetPower(t.Context(), "kitchen-99", false), lab.CodeNotFound)
	refused(t, "cable of the office", op.SetCable(t.Context(), "office", false), lab.CodeNotFound)
	for name, set := range map[string]func(context.Context, string, bool) error{"power": op.SetPower, "cable": op.SetCable} {
		for _, on := range []bool{false, true} {
			if err := set(t.Context(), "kitchen-2", on); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			list, err := op.Kitchens(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(list, func(k lab.KitchenState) bool { return k.Name == "kitchen-2" })
			if at < 0 || name == "power" && list[at].Power != on || name == "cable" && list[at].Cable != on {
				t.Errorf("%s %v: %+v", name, on, list)
			}
			awaitNode(t, l, "kitchen-2", map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionUnknown}[on])
		}
	}
	if err := ability[cluster.ClockSetter](t, l.inst).SetClock(t.Context(), 1); err != nil { // the next tests want no false alarms
		t.Fatal(err)
	}
	awaitDeployment(t, l.inst, l.Within)
}

func testKitchens(t *testing.T, l *life) {
	op := ability[cluster.KitchenOperator](t, l.inst)
	refused(t, "a kitchen without a size", op.AddKitchen(t.Context(), lab.Kitchen{Name: "annex"}), lab.CodeInvalid)
	annex := lab.Kitchen{Name: "annex", CPU: "4", Memory: "4Gi"}
	if l.Annex.CPU != "" {
		annex.CPU, annex.Memory = l.Annex.CPU, l.Annex.Memory
	}
	annex.Labels, annex.Taints = map[string]string{"size": "big"}, []string{"event=wedding:NoSchedule"}
	if err := op.AddKitchen(t.Context(), annex); err != nil {
		t.Fatal(err)
	}
	refused(t, "the same kitchen again", op.AddKitchen(t.Context(), annex), lab.CodeConflict)
	n, err := client(t, l.inst).CoreV1().Nodes().Get(t.Context(), "annex", metav1.GetOptions{})
	if err != nil || n.Labels["size"] != "big" || n.Status.Allocatable.Cpu().Cmp(resource.MustParse(annex.CPU)) != 0 || n.Status.Allocatable.Memory().Cmp(resource.MustParse(annex.Memory)) != 0 ||
		!slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "event" && t.Value == "wedding" }) {
		t.Errorf("node = %v %v %v, %v", n.Labels, n.Status.Allocatable, n.Spec.Taints, err)
	}
	if err := op.RemoveKitchen(t.Context(), "annex"); err != nil {
		t.Fatal(err)
	}
	refused(t, "a kitchen that is gone", op.RemoveKitchen(t.Context(), "annex"), lab.CodeNotFound)
	testNodes(t, l)
}

func testLoops(t *testing.T, l *life) {
	op := ability[cluster.LoopOperator](t, l.inst)
	refused(t, "a loop that nobody knows", op.SetLoop(t.Context(), "cat-herder", true), lab.CodeNotFound)
	home := func() (out []string) {
		list, err := op.Loops(t.Context())
		if err != nil || len(list) < 10 {
			t.Fatalf("loops = %+v, %v", list, err)
		}
		for _, x := range list {
			if x.Home {
				out = append(out, x.Name)
			}
		}
		return out
	}
	if got := home(); len(got) > 0 {
		t.Errorf("home in a new cluster: %v", got)
	}
	if err := op.SetLoop(t.Context(), "replicaset-controller", true); err != nil {
		t.Fatal(err)
	}
	if got := home(); !slices.Equal(got, []string{"replicaset-controller"}) {
		t.Errorf("home: %v", got)
	}
	c := client(t, l.inst)
	pods := func(ctx context.Context) int {
		list, err := c.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=conformance"})
		if err != nil {
			t.Error(err)
		}
		return len(list.Items)
	}
	if err := c.CoreV1().Pods("default").DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{LabelSelector: "app=conformance"}); err != nil {
		t.Fatal(err)
	}
	awaitThat(t, l.Within, func(ctx context.Context) (bool, string) { return pods(ctx) == 0, "deleted Pods are replaced or stay" })
	if err := op.SetLoop(t.Context(), "replicaset-controller", false); err != nil {
		t.Fatal(err)
	}
	awaitThat(t, l.Within, func(ctx context.Context) (bool, string) { return pods(ctx) == 2, "nobody makes new Pods" })
	awaitDeployment(t, l.inst, l.Within)
}
