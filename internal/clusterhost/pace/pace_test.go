package pace

import (
	"testing"
	"time"

	"kubistro/internal/lab"
)

func TestPeriods(t *testing.T) {
	c, err := New(0)
	if err != nil {
		t.Fatal(err)
	}
	for p := range periods {
		if got := c.Of(p); got != Real(p) || (*Clock)(nil).Of(p) != got {
			t.Errorf("%s is %v at the real speed, want %v", table[p].name, got, Real(p))
		}
	}
	changed := c.Changed()
	if err := c.Set(10); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	default:
		t.Error("nobody was told of the change")
	}
	if got := c.Of(NotReadyToleration); got != 30*time.Second {
		t.Errorf("tolerations are %v at ten times the speed", got)
	}
	for speed := 1; speed <= lab.MaxSpeed; speed++ {
		for p := range periods {
			if got := at(p, speed); got > Real(p) || got < table[p].floor || got%time.Second != 0 {
				t.Errorf("%s is %v at speed %d", table[p].name, got, speed)
			}
		}
		if grace, lease := at(NodeMonitorGrace, speed), at(LeaseRenewal, speed); grace < 3*lease {
			t.Errorf("at speed %d a node is lost after %v, and renews its lease every %v", speed, grace, lease)
		}
	}
	for _, bad := range []int{-1, 0, lab.MaxSpeed + 1} {
		if c.Set(bad) == nil || c.Speed() != 10 {
			t.Errorf("speed %d was taken", bad)
		}
	}
	if r := c.Report(); r.Speed != 10 || len(r.Figures) != int(periods) || r.Figures[NodeMonitorGrace].RealMillis != 50_000 || r.Figures[NodeMonitorGrace].NowMillis != 8_000 {
		t.Errorf("report: %+v", r)
	}
}
