package kind

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kubistro/internal/lab"
)

// wantNothing looks that neither containers nor files of a cluster are left.
func wantNothing(t *testing.T, d *Driver, e *fakeEngine) {
	t.Helper()
	if names := e.names(); len(names) > 0 {
		t.Errorf("containers left over: %v", names)
	}
	entries, err := os.ReadDir(d.root)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range entries {
		if x.Name() != fileOwner {
			t.Errorf("%s is left over", x.Name())
		}
	}
}

func TestCancelInEveryStage(t *testing.T) {
	for _, stage := range []string{stageNodes, stageConfig, stageControlPlane, stageNetwork, stageStorage, stageKitchens} {
		t.Run(stage, func(t *testing.T) {
			m := &fakeMaker{stop: stage}
			d, e := newTestDriver(t, m)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, err := d.Create(ctx, "c", lab.DefaultClusterSpec(), func(s lab.Stage) {
				if s.Name == stage {
					cancel()
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("err = %v, want it cancelled", err)
			}
			if m.ended != 1 {
				t.Error("kind still works")
			}
			wantNothing(t, d, e)
		})
	}
}

func TestCancelBeforeKind(t *testing.T) {
	m := &fakeMaker{}
	d, e := newTestDriver(t, m)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := d.Create(ctx, "c", lab.DefaultClusterSpec(), func(lab.Stage) { cancel() })
	if !errors.Is(err, context.Canceled) || m.ended != 0 {
		t.Errorf("err = %v, kind was called %d times", err, m.ended)
	}
	wantNothing(t, d, e)
}

func TestTooSlow(t *testing.T) {
	d, e := newTestDriver(t, &fakeMaker{stop: stageControlPlane})
	d.opt.StartTimeout = 50 * time.Millisecond
	_, err := d.Create(t.Context(), "c", lab.DefaultClusterSpec(), nil)
	var x *lab.Error
	if !errors.As(err, &x) || !strings.Contains(x.Text.En, "took too long to start (it got as far as the control plane)") {
		t.Errorf("err = %v", err)
	}
	wantNothing(t, d, e)
}

func TestFailedStartLeavesNothing(t *testing.T) {
	for _, retain := range []bool{false, true} {
		d, e := newTestDriver(t, &fakeMaker{fail: errors.New("no space left on device"), retain: retain})
		_, err := d.Create(t.Context(), "c", lab.DefaultClusterSpec(), nil)
		var x *lab.Error
		if !errors.As(err, &x) || !strings.Contains(x.Text.En, "disk is full") || !strings.Contains(err.Error(), "Joining worker nodes") {
			t.Errorf("err = %v, want a sentence, and kind's log in the cause", err)
		}
		wantNothing(t, d, e)
	}
}

func TestNodesGetTheirFilesBeforeKubeadmReadsThem(t *testing.T) {
	m := &fakeMaker{fail: errors.New("enough")}
	d, _ := newTestDriver(t, m)
	if _, err := d.Create(t.Context(), "c", lab.DefaultClusterSpec(), nil); err == nil {
		t.Fatal("created")
	}
	name := d.prefix + "c"
	office := m.files[name+"-control-plane"]
	if !strings.Contains(office[auditPolicy], "kind: Policy") {
		t.Errorf("audit policy = %q", office[auditPolicy])
	}
	if got := office[tokenFile]; !strings.Contains(got, `,learner,learner,"kubistro:learners"`) || !strings.Contains(got, `,kubistro,kubistro,"system:masters"`) {
		t.Errorf("tokens = %q", got)
	}
	for _, container := range []string{name + "-worker", name + "-worker2", name + "-worker3"} {
		// 8 CPUs and 16 GiB, of which a kitchen has 2 and 2 GiB, and 100 MiB above the eviction threshold.
		patch := m.files[container][patchesDir+"/kubeletconfiguration+merge.yaml"]
		if want := fmt.Sprintf(`"systemReserved":{"cpu":"6000m","memory":"%d"}`, int64(14<<30)-100<<20); !strings.Contains(patch, want) {
			t.Errorf("%s: %s, want %s", container, patch, want)
		}
		if m.files[container][tokenFile] != "" {
			t.Errorf("%s has the tokens", container)
		}
	}
}

func TestPrepareThatFailsEndsTheStart(t *testing.T) {
	m := &fakeMaker{stop: stageControlPlane}
	d, e := newTestDriver(t, m)
	e.fail = func(args []string) error {
		if args[0] == "exec" {
			return errors.New("no space left on device")
		}
		return nil
	}
	_, err := d.Create(t.Context(), "c", lab.DefaultClusterSpec(), nil)
	var x *lab.Error
	if !errors.As(err, &x) || !strings.Contains(x.Text.En, "disk is full") {
		t.Errorf("err = %v", err)
	}
	wantNothing(t, d, e)
}

func TestKitchenLargerThanTheMachine(t *testing.T) {
	m := &fakeMaker{}
	d, e := newTestDriver(t, m)
	for _, k := range []lab.Kitchen{{Name: "kitchen-1", CPU: "9", Memory: "1Gi"}, {Name: "kitchen-1", CPU: "1", Memory: "16Gi"}} {
		_, err := d.Create(t.Context(), "c", lab.ClusterSpec{Kitchens: []lab.Kitchen{k}}, nil)
		var x *lab.Error
		if !errors.As(err, &x) || x.Code != lab.CodeUnsupported || len(x.Text.Missing()) > 0 || m.ended != 0 {
			t.Errorf("%+v: %v", k, err)
		}
	}
	wantNothing(t, d, e)
}

func TestListKeepsOnlyWhatIsWholeAndOurs(t *testing.T) {
	d, e := newTestDriver(t, &fakeMaker{})
	keep := func(id string, made, up bool) {
		t.Helper()
		r := newRecord(d.prefix+id, lab.DefaultClusterSpec(), time.Now())
		r.Made = made
		if err := d.writeRecord(id, r); err != nil {
			t.Fatal(err)
		}
		e.add(r.office(), up)
		e.add(r.Nodes["kitchen-2"], up)
	}
	keep("awake", true, true)
	keep("asleep", true, false)
	keep("half", false, true)
	e.add(d.prefix+"stray-control-plane", true) // its record is gone
	others := []string{"kind-control-plane", "kubistro-abcdefgh-c-control-plane", "kubistro-control-plane"}
	for _, name := range others {
		e.add(name, true)
	}
	if err := os.Mkdir(d.dir("lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	before := e.names()
	inventory, err := d.Inventory(t.Context())
	if err != nil || len(inventory) != 4 || inventory[0].ID != "asleep" || inventory[2].ID != "half" || !inventory[2].Created.IsZero() || !slices.Equal(e.names(), before) {
		t.Errorf("inventory = %+v, %v", inventory, err)
	}
	list, err := d.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range list {
		got = append(got, fmt.Sprintf("%s %v %d", f.ID, f.Running, len(f.Spec.Kitchens)))
		if f.Created.IsZero() {
			t.Errorf("%s has no time", f.ID)
		}
	}
	if !slices.Equal(got, []string{"asleep false 3", "awake true 3"}) {
		t.Errorf("list = %v", got)
	}
	names := e.names()
	for _, name := range others {
		if !slices.Contains(names, name) {
			t.Errorf("%s, which isn't ours, was removed", name)
		}
	}
	if len(names) != 4+len(others) {
		t.Errorf("containers = %v", names)
	}
}

func TestTwoDataFoldersDontShareClusters(t *testing.T) {
	a, _ := newTestDriver(t, &fakeMaker{})
	b, _ := newTestDriver(t, &fakeMaker{})
	if a.prefix == b.prefix {
		t.Errorf("both call their clusters %s", a.prefix)
	}
	again, err := newDriver(a.opt, a.engine, a.maker)
	if err != nil || again.prefix != a.prefix {
		t.Errorf("after a restart: %v, %v, want %s", again, err, a.prefix)
	}
	if err := os.WriteFile(filepath.Join(a.root, fileOwner), []byte("../../x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := newDriver(a.opt, a.engine, a.maker); err == nil {
		t.Error("a spoiled owner was taken")
	}
}

func TestBadIDs(t *testing.T) {
	d, _ := newTestDriver(t, &fakeMaker{})
	for _, id := range []string{"", "..", "../x", "a/b", "A", "-a", "a-", "owner ", strings.Repeat("a", 33), "a\x00b"} {
		if err := d.Delete(t.Context(), id); err == nil {
			t.Errorf("delete of %q was tried", id)
		}
		if _, err := d.Create(t.Context(), id, lab.ClusterSpec{}, nil); err == nil {
			t.Errorf("create of %q was tried", id)
		}
	}
	// The longest name of a node still is a host name.
	if n := len(d.prefix + strings.Repeat("a", 32) + "-control-plane"); n > 64 {
		t.Errorf("host names of %d characters", n)
	}
}

func TestNewRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]Options{
		"no agent":         {Dir: t.TempDir(), Agent: filepath.Join(t.TempDir(), "nothing")},
		"no archive":       {Dir: t.TempDir(), Agent: file, Archives: []string{t.TempDir()}},
		"folder is a file": {Dir: file, Agent: file},
	} {
		_, err := newDriver(o, newFakeEngine(), &fakeMaker{})
		var e *lab.Error
		if !errors.As(err, &e) || len(e.Text.Missing()) > 0 {
			t.Errorf("%s: error = %v", name, err)
		}
	}
	if _, err := findRuntime("rkt"); err == nil {
		t.Error("an unknown runtime was taken")
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv("KIND_EXPERIMENTAL_PROVIDER", "")
	if _, err := findRuntime(""); err == nil {
		t.Error("a runtime was found in an empty folder")
	}
}

func TestSlowBootIsTriedAgain(t *testing.T) {
	slow := errors.New(`could not find a log line that matches "Reached target .*Multi-User System.*"`)
	for what, tc := range map[string]struct {
		maker *fakeMaker
		calls int
		text  string
	}{
		"once more is enough": {&fakeMaker{fail: slow, fails: 1}, 2, "kubeconfig"}, // which the fake doesn't write
		"never":               {&fakeMaker{fail: slow}, bootTries, "didn't boot in time"},
		"another failure":     {&fakeMaker{fail: errors.New("no space left on device")}, 1, "disk is full"},
	} {
		t.Run(what, func(t *testing.T) {
			m := tc.maker
			d, e := newTestDriver(t, m)
			_, err := d.Create(t.Context(), "c", lab.DefaultClusterSpec(), nil)
			if err == nil || m.ended != tc.calls || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("kind was called %d times, want %d; %v", m.ended, tc.calls, err)
			}
			wantNothing(t, d, e)
		})
	}
}
