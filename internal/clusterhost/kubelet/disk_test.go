package kubelet

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/pantry/memfs"
)

func testDisk(t *testing.T, dir string) *nodeDisk {
	t.Helper()
	d, err := openDisk(dir, "kitchen-1", memfs.NewBudget(hostDiskBytes, hostDiskFiles), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDiskIsKept(t *testing.T) {
	dir := t.TempDir()
	d := testDisk(t, dir)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	keep := func(d *nodeDisk) {
		wg.Go(func() { d.keep(ctx, func(err error) { t.Error(err) }) })
	}
	keep(d)
	noon := time.Date(2026, 1, 2, 12, 0, 0, 123456789, time.UTC)
	name := "/srv/a folder/" + strings.Repeat("n", 200)
	if err := d.fs.WriteFile(name, []byte("soup\x00"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := d.fs.Chtimes(name, noon, noon); err != nil {
		t.Fatal(err)
	}
	stop()
	wg.Wait()

	again := testDisk(t, dir)
	got, err := again.fs.ReadFile(name)
	info, err2 := again.fs.Stat(name)
	if err != nil || err2 != nil || string(got) != "soup\x00" || info.Mode() != 0o640 || !info.ModTime().Equal(noon) {
		t.Errorf("read back %q %v %v (%v, %v)", got, info.Mode(), info.ModTime(), err, err2)
	}
	ctx, stop = context.WithCancel(context.Background())
	keep(again)
	before, _ := os.Stat(filepath.Join(dir, diskFile))
	stop()
	wg.Wait()
	if after, _ := os.Stat(filepath.Join(dir, diskFile)); !after.ModTime().Equal(before.ModTime()) {
		t.Error("a disk that hasn't changed was written again")
	}
}

// TestDiskIsWrittenBeforeTheEnd: a crash loses the last moment only.
func TestDiskIsWrittenBeforeTheEnd(t *testing.T) {
	dir := t.TempDir()
	d := testDisk(t, dir)
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { d.keep(ctx, func(err error) { t.Error(err) }) })
	defer wg.Wait()
	defer stop()
	if err := d.fs.WriteFile("/srv/f", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); ; {
		select {
		case <-end:
			t.Fatal("the disk was not written")
		case <-tick.C:
		}
		if got, err := testDisk(t, dir).fs.ReadFile("/srv/f"); err == nil && string(got) == "x" {
			return
		}
	}
}

func TestDamagedDisk(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, diskFile), []byte(strings.Repeat("no archive ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := openDisk(dir, "kitchen-1", memfs.NewBudget(hostDiskBytes, hostDiskFiles), clock.RealClock{})
	if err == nil {
		t.Error("the damage isn't told")
	}
	if got, err := d.fs.ReadFile("/etc/hostname"); err != nil || string(got) != "kitchen-1\n" {
		t.Errorf("the node works on with an empty disk: %q %v", got, err)
	}
}

// TestDiskIsBounded: what Pods write to their node ends at its room.
func TestDiskIsBounded(t *testing.T) {
	d, err := openDisk(t.TempDir(), "kitchen-1", memfs.NewBudget(1<<20, 200), clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.fs.WriteFile("/srv/big", make([]byte, 2<<20), 0o644); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("writing more than there is: %v", err)
	}
}
