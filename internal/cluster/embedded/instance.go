package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"

	"kubistro/internal/cluster"
	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// noEntry is a number that no audit entry reaches.
const noEntry = 1 << 62

// beatsMissed is how many questions in a row a host may leave unanswered.
const beatsMissed = 6

// logEvery is how often the size of a cluster's log is looked at.
const logEvery = 30 * time.Second

var errEnded = errors.New("the cluster has ended")

// instance is a running cluster.
type instance struct {
	id     string
	dir    string
	host   *host
	client *controlapi.Client
	access controlapi.Access
	lost   chan struct{}

	ctx context.Context // done when the cluster was stopped, lost or forgotten
	end context.CancelFunc
}

var _ cluster.Instance = (*instance)(nil)

// instance makes the instance of a host that is ready and begins to watch it.
func (d *Driver) instance(ctx context.Context, id string, h *host, client *controlapi.Client) (*instance, error) {
	access, err := client.Access(ctx)
	if err != nil {
		return nil, err
	}
	dir := d.dir(id)
	if err := markMade(dir); err != nil {
		return nil, err
	}
	in := &instance{id: id, dir: dir, host: h, client: client, access: access, lost: make(chan struct{})}
	in.ctx, in.end = context.WithCancel(context.Background())
	d.mu.Lock()
	d.instances[id] = in
	d.mu.Unlock()
	d.work.Go(in.watch)
	d.work.Go(func() { in.boundLog(d) })
	d.work.Go(func() { in.beat(d) })
	return in, nil
}

// markMade notes that the cluster was ready, once.
func markMade(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, fileMade), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("mark cluster as made: %w", err)
	}
	return f.Close()
}

// watch closes lost when the host ends by itself. It holds a request open all the
// time: its end is noticed at once, whoever's child the host is, and as long as
// it is open the host knows that it has a server.
func (in *instance) watch() {
	defer in.client.Close()
	defer in.end()
	for in.ctx.Err() == nil {
		tether, err := in.client.Audit(in.ctx, noEntry)
		if err == nil {
			in.hold(tether)
		}
		if in.ctx.Err() != nil {
			return
		}
		if !in.host.alive() {
			close(in.lost)
			return
		}
		select { // a busy or dying host: look again soon
		case <-time.After(10 * time.Millisecond):
		case <-in.host.exited:
		case <-in.ctx.Done():
		}
	}
}

// beat kills a host that lives and doesn't answer any more.
func (in *instance) beat(d *Driver) {
	t := time.NewTicker(d.opt.Beat)
	defer t.Stop()
	for missed := 0; missed < beatsMissed; {
		select {
		case <-t.C:
		case <-in.ctx.Done():
			return
		}
		ctx, cancel := context.WithTimeout(in.ctx, d.opt.Beat)
		_, err := in.client.Status(ctx)
		cancel()
		if missed++; err == nil {
			missed = 0
		}
	}
	if in.ctx.Err() != nil {
		return
	}
	d.log.Warn("cluster host doesn't answer and is killed", "cluster", in.id)
	if err := killHosts(in.dir); err != nil {
		d.log.Error("cluster host doesn't end", "cluster", in.id, "err", err)
	}
}

func (in *instance) hold(tether <-chan lab.AuditEntry) {
	for {
		select {
		case _, ok := <-tether:
			if !ok {
				return
			}
		case <-in.host.exited:
			return
		}
	}
}

func (in *instance) boundLog(d *Driver) {
	t := time.NewTicker(logEvery)
	defer t.Stop()
	for {
		if err := trimLog(in.dir, logBytes); err != nil {
			d.log.Warn("cluster's log can't be shortened", "cluster", in.id, "err", err)
		}
		select {
		case <-t.C:
		case <-in.ctx.Done():
			return
		}
	}
}

// ID is the name that Create was called with.
func (in *instance) ID() string { return in.id }

// Lost is closed when the cluster has ended by itself.
func (in *instance) Lost() <-chan struct{} { return in.lost }

// REST returns a configuration that reaches the API server as "learner".
func (in *instance) REST() *rest.Config {
	c := in.access.RESTConfig()
	c.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return in.DialAPI(ctx) }
	return c
}

// DialAPI opens a raw connection to the API server's TLS port.
func (in *instance) DialAPI(ctx context.Context) (net.Conn, error) {
	// The socket's path outlives this instance, and what comes later isn't it.
	if in.ctx.Err() != nil {
		return nil, errEnded
	}
	return in.access.DialAPI(ctx)
}

// Dial opens a connection inside the cluster's network. Its errors are those of
// a real network: ECONNREFUSED, EHOSTUNREACH, a timeout, *net.DNSError.
func (in *instance) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if in.ctx.Err() != nil {
		return nil, errEnded
	}
	conn, err := in.client.Dial(ctx, network, address)
	if err != nil {
		return nil, dialError(network, address, err)
	}
	return conn, nil
}

func dialError(network, address string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) { // silence, as seen from here
		err = os.ErrDeadlineExceeded
	}
	var de *controlapi.DialError
	if errors.As(err, &de) {
		switch de.Kind {
		case controlapi.DialRefused:
			err = os.NewSyscallError("connect", syscall.ECONNREFUSED)
		case controlapi.DialUnreachable:
			err = os.NewSyscallError("connect", syscall.EHOSTUNREACH)
		case controlapi.DialTimeout:
			err = os.ErrDeadlineExceeded
		case controlapi.DialName:
			host, _, splitErr := net.SplitHostPort(address)
			if splitErr != nil {
				host = address
			}
			err = &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
	}
	return &net.OpError{Op: "dial", Net: network, Addr: endpoint{network, address}, Err: err}
}

// endpoint is an address as it was asked for.
type endpoint struct{ network, address string }

func (e endpoint) Network() string { return e.network }
func (e endpoint) String() string  { return e.address }

// Audit streams the writes that the API server accepted.
func (in *instance) Audit(ctx context.Context, after uint64) (<-chan lab.AuditEntry, error) {
	if in.ctx.Err() != nil {
		return nil, errEnded
	}
	return in.client.Audit(ctx, after)
}

// Usage is what the cluster costs the machine now.
func (in *instance) Usage(ctx context.Context) (cluster.Usage, error) {
	if in.ctx.Err() != nil {
		return cluster.Usage{}, errEnded
	}
	u, err := in.client.Usage(ctx)
	if err != nil {
		return cluster.Usage{}, fmt.Errorf("usage of cluster %s: %w", in.id, err)
	}
	return cluster.Usage{PSSBytes: u.PSSBytes, CPU: time.Duration(u.CPUNanos), Goroutines: u.Goroutines, DiskBytes: diskUsage(in.dir)}, nil
}

// diskUsage adds up what the files of a folder occupy. Files that vanish
// meanwhile aren't counted.
func diskUsage(dir string) int64 {
	var total int64
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		if fi, err := e.Info(); err == nil {
			total += allocated(fi)
		}
		return nil
	})
	return total
}
