package embedded_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kubistro/internal/cluster/embedded"
	"kubistro/internal/lab"
)

// serverEnv makes the test binary the server that a test kills; it names the data folder.
const serverEnv = "KUBISTRO_EMBEDDED_TEST_SERVER"

// within is how long a start may take on a busy machine.
const within = 3 * time.Minute

// orphan is how long a cluster host outlives a test that was killed.
const orphan = time.Minute

// serve makes a cluster, says so, and then waits to be killed.
func serve(dir string) int {
	d, err := embedded.New(embedded.Options{Dir: dir, Program: os.Getenv(programEnv), Orphan: orphan})
	if err == nil {
		_, err = d.Create(context.Background(), "left", lab.DefaultClusterSpec(), nil)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	select {}
}

func TestClusterOutlivesAKilledServer(t *testing.T) {
	o := options(t)
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), serverEnv+"="+o.Dir)
	server.Stderr = t.Output()
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Errorf("server says %q, %v", lines.Text(), lines.Err())
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err == nil {
		t.Error("server ended by itself")
	}

	d := newDriver(t, o)
	defer func() {
		if err := d.Delete(context.WithoutCancel(t.Context()), "left"); err != nil {
			t.Error(err)
		}
	}()
	list, err := d.List(t.Context())
	if err != nil || len(list) != 1 || !list[0].Running {
		t.Fatalf("list = %+v, %v, want one that runs", list, err)
	}
	inst, err := d.Adopt(t.Context(), "left")
	if err != nil {
		t.Fatal(err)
	}
	api, err := kubernetes.NewForConfig(inst.REST())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.CoreV1().Nodes().Get(t.Context(), "kitchen-3", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	// It isn't our child; its end must be noticed all the same, and at once.
	pids := hosts(t, filepath.Join(o.Dir, "clusters", "left")+"\x00")
	if len(pids) != 1 {
		t.Fatalf("hosts = %v", pids)
	}
	if sid, err := syscall.Getpgid(pids[0]); err != nil || sid != pids[0] {
		t.Errorf("process group = %d, %v, want its own", sid, err)
	}
	begun := time.Now()
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-inst.Lost():
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("noticed after %v", took)
		}
	case <-time.After(within):
		t.Error("nobody noticed")
	}
}

func TestHungHostIsEnded(t *testing.T) {
	o := options(t)
	o.Beat = time.Second
	d := newDriver(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	inst, err := d.Create(ctx, "hung", lab.ClusterSpec{Kitchens: lab.DefaultClusterSpec().Kitchens[:1]}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range hosts(t, filepath.Join(o.Dir, "clusters", "hung")+"\x00") {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-inst.Lost():
	case <-ctx.Done():
		t.Fatal("nobody noticed")
	}
	if err := d.Delete(t.Context(), "hung"); err != nil {
		t.Error(err)
	}
}

func TestHostEndsWithoutAServer(t *testing.T) {
	o := options(t)
	o.Orphan = 2 * time.Second
	d := newDriver(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	inst, err := d.Create(ctx, "orphan", lab.ClusterSpec{Kitchens: lab.DefaultClusterSpec().Kitchens[:1]}, nil)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-inst.Lost():
		t.Fatal("it ended although its server is there")
	case <-time.After(2 * o.Orphan): // no one calls it, and it stays
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for len(hosts(t, filepath.Join(o.Dir, "clusters", "orphan")+"\x00")) > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it lives on without a server")
		}
	}
	d = newDriver(t, o)
	if list, err := d.List(t.Context()); err != nil || len(list) != 1 || list[0].Running {
		t.Errorf("list = %+v, %v, want one that sleeps", list, err)
	}
	if err := d.Delete(t.Context(), "orphan"); err != nil {
		t.Error(err)
	}
}
