package browsertest

import (
	"os"
	"testing"
	"time"
)

// TestNewLearnerOnKind is the whole path on a real kind cluster: open, cluster ready, the first level's exercise done
// by typing, and a record that says who did what. Docker and the node image come from make test-kind.
func TestNewLearnerOnKind(t *testing.T) {
	image := os.Getenv("KUBISTRO_KIND_IMAGE")
	if image == "" {
		t.Skip("KUBISTRO_KIND_IMAGE isn't set: make test-kind runs this with a real kind cluster")
	}
	s := &realServer{t: t, data: t.TempDir(), log: &syncBuffer{}, args: []string{"--driver", "kind", "--kind-image", image}}
	s.start()
	t.Cleanup(func() { s.stop() })
	b := open(t, 1280, 720, "en")
	b.writeItDown(s.url, 15*time.Minute)
	b.shot("kind-done")

	b.do(`document.querySelector('[data-tool=record]').click()`)
	for _, actor := range []string{"learner", "deployment-controller", "replicaset-controller", "kube-scheduler", "kubelet"} {
		b.waitLong(actor+" in the record", "[...document.querySelectorAll('select option')].some(o => o.value === '"+actor+"')")
	}
	b.waitLong("the record's rows", "document.querySelectorAll('.row').length > 10")
	b.shot("kind-record")
}
