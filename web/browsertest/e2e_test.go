package browsertest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"kubistro/internal/testprocess"
)

// programs finds the built programs: KUBISTRO_LABSERVER and KUBISTRO_CLUSTERHOST, else bin.
func programs(t *testing.T) (labserver, clusterhost string) {
	t.Helper()
	find := func(env, name string) string {
		p := os.Getenv(env)
		if p == "" {
			p = filepath.Join("..", "..", "bin", name)
		}
		p, err := filepath.Abs(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(p); err != nil {
			t.Fatalf("%v: run make build first, or set %s", err, env)
		}
		return p
	}
	return find("KUBISTRO_LABSERVER", "labserver"), find("KUBISTRO_CLUSTERHOST", "clusterhost")
}

// realServer is a labserver process with a data folder of its own.
type realServer struct {
	t         *testing.T
	data, url string
	cmd       *exec.Cmd
	wait      func() error
	log       *syncBuffer
	args      []string // of serve, besides the usual ones
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// start runs the server; after the first time on the same address.
func (s *realServer) start() {
	s.t.Helper()
	labserver, clusterhost := programs(s.t)
	addr := "127.0.0.1:0"
	if s.url != "" {
		addr = strings.TrimPrefix(s.url, "http://")
	}
	file := filepath.Join(s.data, "address")
	os.Remove(file)
	s.cmd = exec.Command(labserver, append([]string{"serve", "--addr", addr, "--data", s.data, "--clusterhost", clusterhost, "--warm", "0"}, s.args...)...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	var err error
	if s.wait, err = testprocess.Start(s.cmd, syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	waitFor(s.t, "the server's address", func() bool {
		b, err := os.ReadFile(file)
		s.url = strings.TrimSpace(string(b))
		return err == nil && s.url != ""
	})
}

// kill ends the server the hard way.
func (s *realServer) kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	s.wait()
}

// stop ends the server and its clusters in good order.
func (s *realServer) stop() {
	if s.cmd.ProcessState != nil {
		return
	}
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		s.t.Log(err)
	}
	done := make(chan struct{})
	go func() {
		s.wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		s.t.Error("the server doesn't end")
		s.cmd.Process.Kill()
		<-done
	}
	if s.t.Failed() {
		s.t.Logf("the server's log:\n%s", s.log)
	}
}

// long is how long a cluster may take to start on a busy machine.
const long = 4 * time.Minute

// writeItDown is the card of the exercise that writeItDown does.
const writeItDown = "document.querySelector('#exercise-write-it-down')"

// writeItDown goes from the start page to a cluster, which may take so long, and does exercise (b) by typing.
func (b *tab) writeItDown(url string, start time.Duration) {
	b.t.Helper()
	const card = writeItDown
	b.run(chromedp.Navigate(url))
	b.do(`document.querySelector('.hero .button').click()`)
	b.wait("the lab", "window.kubistro?.state() !== undefined")
	b.shot("real-starting")
	b.waitFor(start, "the cluster", "window.kubistro.state() === 'ready'")
	b.waitLong("the kitchens on the floor", "document.querySelectorAll('.room:not(.office):not(.door)[data-state=good]').length === 3")

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
}

// TestNewLearner is the whole path: open, cluster ready, exercise (b) done by typing, checks tick
// without a click, quiz answered, reload, server killed and started again, all still there.
func TestNewLearner(t *testing.T) {
	s := &realServer{t: t, data: t.TempDir(), log: &syncBuffer{}}
	s.start()
	t.Cleanup(func() { s.stop() })
	b := open(t, 1280, 720, "en")
	b.forgive("WebSocket")
	b.forgive("ERR_CONNECTION")
	b.forgive("503")

	b.writeItDown(s.url, long)
	b.shot("real-done")

	b.do(`document.querySelector('[data-question=new-pod] input[value=delete]').click(); document.querySelector('[data-question=new-pod] .js-send').click()`)
	b.wait("the verdict", "document.querySelector('[data-question=new-pod]').dataset.correct === 'true'")
	percent := js[string](b, "document.querySelector('.js-level-percent').textContent")

	still := func(when string) {
		b.t.Helper()
		b.waitLong("the cluster "+when, "window.kubistro?.state() === 'ready'")
		b.waitLong("the exercise "+when, writeItDown+".dataset.done === 'true'")
		b.waitLong("the cooks "+when, "document.querySelectorAll('.cook[data-mood=ready]').length === 3")
		b.waitLong("the answer "+when, "document.querySelector('[data-question=new-pod]').dataset.correct === 'true'")
		b.waitLong("the record "+when, "window.kubistro.last() > 10")
	}
	b.do("localStorage.clear(); sessionStorage.clear()") // as in another browser of the same learner
	b.run(chromedp.Navigate(s.url + levelPath))
	still("after a reload")
	b.wait("the chosen answer", writeItDown+".querySelector('input[value=replicaset-controller]').checked")
	s.kill()
	b.waitLong("the notice that the connection is lost", "document.querySelector('.js-chip details').dataset.state === 'offline'")
	s.start()
	still("when the server is back, without a reload")
	b.run(chromedp.Navigate(s.url + levelPath))
	still("after the server's restart")
	if now := js[string](b, "document.querySelector('.js-level-percent').textContent"); now == "0%" || percent == "" {
		t.Errorf("per cent were %q, are %q", percent, now)
	}
	b.do(`document.querySelector('[data-tool=record]').click()`)
	b.waitLong("the whole record", "document.querySelectorAll('.row').length > 10")
	b.shot("real-record")
}
