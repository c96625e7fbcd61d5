package embedded_test

import (
	"context"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kubistro/internal/cluster"
	"kubistro/internal/cluster/embedded"
	"kubistro/internal/lab"
)

// newManager starts a Manager with a pool of one over a driver of its own. The
// result's close ends both as a server that stops does.
func newManager(t *testing.T, o embedded.Options, known ...string) (m *cluster.Manager, closeAll func()) {
	t.Helper()
	d, err := embedded.New(o)
	if err != nil {
		t.Fatal(err)
	}
	m = cluster.NewManager(cluster.Config{Driver: d, Dir: o.Dir, Spec: lab.DefaultClusterSpec(), Warm: 1, Max: 2, Idle: time.Hour, Log: o.Log})
	if err := m.Start(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	return m, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func api(t *testing.T, c *cluster.Cluster) kubernetes.Interface {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	inst, err := c.Instance(ctx)
	if err != nil {
		t.Fatal(err)
	}
	k, err := kubernetes.NewForConfig(inst.REST())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestManagerOverRealClusters walks one cluster through a server's life.
func TestManagerOverRealClusters(t *testing.T) {
	o := options(t)
	m, closeAll := newManager(t, o)
	c, err := m.Claim(t.Context(), lab.DefaultClusterSpec()) // the one that starts for the pool
	if err != nil {
		t.Fatal(err)
	}
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "note"}}
	if _, err := api(t, c).CoreV1().ConfigMaps("default").Create(t.Context(), note, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if s := c.Status(); len(s.Stages) < 6 || s.Why != "create" {
		t.Errorf("status = %+v, want the six stages", s)
	}

	pids := hosts(t, filepath.Join(o.Dir, "clusters", c.ID())+"\x00")
	if len(pids) != 1 {
		t.Fatalf("hosts = %v", pids)
	}
	changes := c.Changes()
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-changes
	if s := c.Status(); s.State != lab.StateProvisioning || s.Why != "restart" {
		t.Errorf("status after a crash = %+v", s)
	}
	if _, err := api(t, c).CoreV1().ConfigMaps("default").Get(t.Context(), "note", metav1.GetOptions{}); err != nil {
		t.Errorf("after the crash: %v", err)
	}

	closeAll() // the server stops
	if left := hosts(t, filepath.Join(o.Dir, "clusters")+"/"); len(left) != 0 {
		t.Errorf("processes %v after the server stopped", left)
	}
	m, closeAll = newManager(t, o, c.ID())
	defer closeAll()
	if c, err = m.Open(t.Context(), c.ID(), c.Spec()); err != nil {
		t.Fatal(err)
	}
	if s := c.Status(); s.State != lab.StateAsleep {
		t.Errorf("status after the server's restart = %+v", s)
	}
	if _, err := api(t, c).CoreV1().ConfigMaps("default").Get(t.Context(), "note", metav1.GetOptions{}); err != nil {
		t.Errorf("after the server's restart: %v", err)
	}
	if err := m.Delete(t.Context(), c.ID()); err != nil {
		t.Error(err)
	}
}
