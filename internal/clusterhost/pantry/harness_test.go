package pantry

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/pantry/memfs"
	"kubistro/internal/clusterhost/vnet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// buffer is a writer whose content can be waited for.
type buffer struct {
	mu      sync.Mutex
	data    bytes.Buffer
	changed chan struct{}
}

func newBuffer() *buffer { return &buffer{changed: make(chan struct{})} }

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.changed)
	b.changed = make(chan struct{})
	return b.data.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// wait returns when the text has been written.
func (b *buffer) wait(t *testing.T, text string) {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		b.mu.Lock()
		changed, found := b.changed, strings.Contains(b.data.String(), text)
		b.mu.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("never printed %q, but\n%s", text, b.String())
		}
	}
}

// container runs programs of an image as a node does.
type container struct {
	t       *testing.T
	image   *Image
	proc    Process
	out     *buffer
	signals chan syscall.Signal
	kill    context.CancelFunc
	code    chan int
}

// pod makes a container of an image on an own interface.
func pod(t *testing.T, n *vnet.Network, ref, ip string) *container {
	t.Helper()
	img, err := Default().Pull(ref)
	if err != nil {
		t.Fatal(err)
	}
	i, err := n.Attach(ip, netip.MustParseAddr(ip))
	if err != nil {
		t.Fatal(err)
	}
	c := &container{t: t, image: img, out: newBuffer(), signals: make(chan syscall.Signal, 4), code: make(chan int, 1)}
	root, err := NewRoot(img, RootOptions{Hostname: "cook-1", Stdout: c.out, Stderr: c.out}, memfs.NewBudget(1<<20, 2000))
	if err != nil {
		t.Fatal(err)
	}
	c.proc = Process{
		Env: append([]string(nil), img.Env...), Dir: img.WorkDir, Stdin: strings.NewReader(""), Stdout: c.out, Stderr: c.out,
		Signals: c.signals, Net: i, FS: root, Hostname: "cook-1", Clock: clock.RealClock{}, Programs: img.Programs,
		Store: new(Store), Usage: new(Usage),
	}
	t.Cleanup(func() {
		if c.kill != nil {
			c.kill()
		}
		i.Close()
	})
	return c
}

// start runs the main process: the image's entrypoint with args in place of Cmd.
func (c *container) start(args ...string) {
	if len(args) == 0 {
		args = c.image.Cmd
	}
	argv := append(append([]string(nil), c.image.Entrypoint...), args...)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c.kill = func() { cancel(); <-done }
	proc := c.proc
	go func() {
		defer close(done)
		c.code <- proc.run(ctx, argv)
	}()
}

// ended returns the main process's exit code.
func (c *container) ended() int {
	c.t.Helper()
	select {
	case code := <-c.code:
		return code
	case <-time.After(20 * time.Second):
		c.t.Fatalf("the main process doesn't end; it printed\n%s", c.out)
		return -1
	}
}

// exec runs a command in the container, with its input.
func (c *container) exec(stdin string, argv ...string) (out string, code int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	b := newBuffer()
	proc := c.proc
	proc.Stdin, proc.Stdout, proc.Stderr, proc.Signals = strings.NewReader(stdin), b, b, nil
	code = proc.run(ctx, argv)
	return b.String(), code
}

// network is the container's interface.
func (c *container) network() *vnet.Interface { return c.proc.Net.(*vnet.Interface) }

// get asks an HTTP server of the network.
func get(t *testing.T, from Network, method, url string, header ...string) (int, string) {
	t.Helper()
	tr := &http.Transport{DialContext: from.DialContext, DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	res, err := (&http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return res.StatusCode, err.Error()
	}
	return res.StatusCode, string(body)
}

func network(t *testing.T) (*vnet.Network, *vnet.Interface) {
	t.Helper()
	n := vnet.New()
	guest, err := n.Attach("guest", netip.MustParseAddr("10.244.9.9"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n, guest
}

// answer asks a server until it listens, and returns what it says.
func answer(t *testing.T, from *vnet.Interface, url string) (body string) {
	t.Helper()
	eventually(t, url+" answers", func() bool {
		var status int
		status, body = get(t, from, http.MethodGet, url)
		return status != 0
	})
	return body
}

// hosts is a hosts file with one name.
func hosts(name, ip string) map[string][]netip.Addr {
	return map[string][]netip.Addr{name: {netip.MustParseAddr(ip)}}
}
