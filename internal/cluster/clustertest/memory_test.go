package clustertest_test

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"kubistro/internal/cluster"
	"kubistro/internal/cluster/clustertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemoryConforms(t *testing.T) {
	clustertest.Run(t, func(t *testing.T) clustertest.Setup {
		d := clustertest.NewMemory(nil)
		t.Cleanup(d.Close)
		return clustertest.Setup{
			Open: func(*testing.T) cluster.Driver { return d.Restart() },
			Crash: func(t *testing.T, id string) {
				if !d.Crash(id) {
					t.Errorf("cluster %s doesn't run", id)
				}
			},
			Remains: func(_ *testing.T, id string) []string {
				if slices.Contains(d.Kept(), id) {
					return []string{id}
				}
				return nil
			},
			Within: 10 * time.Second,
		}
	})
}
