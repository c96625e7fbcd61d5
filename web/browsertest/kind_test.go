package browsertest

import (
	"os"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
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
	b.run(chromedp.Navigate(s.url))
	b.do(`document.querySelector('.hero .button').click()`)
	b.wait("the lab", "window.kubistro?.state() !== undefined")
	b.waitFor(15*time.Minute, "the cluster", "window.kubistro.state() === 'ready'")
	b.waitLong("the kitchens on the floor", "document.querySelectorAll('.room:not(.office):not(.door)[data-state=good]').length === 3")

	const card = "document.querySelector('#exercise-write-it-down')"
	b.do(card + `.scrollIntoView()`)
	b.wait("the exercise", "!"+card+".querySelector('.js-start').disabled")
	b.do(card + `.querySelector('.js-start').click()`)
	b.waitLong("its start state", card+".querySelector('.js-start').hidden")
	b.waitLong("the prompt", "window.kubistro.terminalText().includes('$')")
	b.do(`document.querySelector('.xterm-helper-textarea').focus()`)
	b.typeText("kubectl create deployment grill --image=grill-cook:1.4 --replicas=3\r")
	b.waitLong("three cooks", "document.querySelectorAll('.cook[data-mood=ready]').length === 3")
	b.waitLong("the whiteboard's tick", card+".querySelector('[data-check=line]').dataset.status === 'met'")
	b.waitLong("the cooks' tick", card+".querySelector('[data-check=three-ready]').dataset.status === 'met'")
	b.typeText("kubectl delete $(kubectl get pods -o name | grep grill- | head -n 1)\r")
	b.waitLong("the replacement's tick", card+".querySelector('[data-check=replaced]').dataset.status === 'met'")
	b.do(card + `.querySelector('input[value=replicaset-controller]').click()`)
	b.do(card + `.querySelector('.js-answer button').click()`)
	b.waitLong("the exercise done", card+".dataset.done === 'true'")
	b.shot("kind-done")

	b.do(`document.querySelector('[data-tool=record]').click()`)
	for _, actor := range []string{"learner", "deployment-controller", "replicaset-controller", "kube-scheduler", "kubelet"} {
		b.waitLong(actor+" in the record", "[...document.querySelectorAll('select option')].some(o => o.value === '"+actor+"')")
	}
	b.waitLong("the record's rows", "document.querySelectorAll('.row').length > 10")
	b.shot("kind-record")
}
