package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
	"kubistro/internal/session/cleanup"
	"kubistro/internal/session/stream"
)

// running is the session's cluster while it is ready.
type running struct {
	cluster  *cluster.Cluster
	instance cluster.Instance
	watch    *stream.Watch
	dynamic  dynamic.Interface
	mapper   meta.ResettableRESTMapper
	config   *rest.Config    // the lab's own, told apart by its user agent
	outside  *http.Transport // for the learner's own kubectl
	// settled is closed when the first lists have come and the baseline is
	// kept: before that nobody may change the cluster.
	settled chan struct{}
	stop    context.CancelFunc
	done    chan struct{}
}

var errNoCluster = lab.Fail(lab.CodeUnavailable, "叢集現在連不上，請稍候再試。", "The cluster can't be reached right now. Try again in a moment.")

// ready is the running cluster, or nil.
func (l *live) ready() *running {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running
}

// settled waits for a cluster that is ready and whose baseline is kept. It
// wakes a sleeping one.
func (l *live) settled(ctx context.Context) (*running, error) {
	for {
		changed := l.changes()
		c := l.current()
		if r := l.ready(); r != nil && r.cluster == c {
			select {
			case <-r.settled:
				return r, nil
			case <-r.done:
			case <-ctx.Done():
				return nil, errNoCluster.Because(ctx.Err())
			}
			continue
		}
		if _, err := c.Instance(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, errNoCluster.Because(err)
			}
			if c != l.current() {
				continue
			}
			return nil, err
		}
		select {
		case <-changed:
		case <-l.ctx.Done():
			return nil, errNotFound
		case <-ctx.Done():
			return nil, errNoCluster.Because(ctx.Err())
		}
	}
}

// connect starts watches on a ready cluster, once.
func (l *live) connect(c *cluster.Cluster) {
	inst, ok := c.Running() // which wakes nothing: the cluster may just be falling asleep
	if !ok {
		l.disconnect()
		return
	}
	if r := l.ready(); r != nil {
		if r.cluster == c && r.instance == inst {
			return
		}
		l.disconnect()
	}
	r, err := l.attach(c, inst)
	if err != nil {
		l.log.Error("cluster not watched", "cluster", c.ID(), "error", err)
		return
	}
	l.mu.Lock()
	l.running = r
	l.signal()
	l.mu.Unlock()
	l.tabs.clusterIs(c.ID())
	l.progress.connected()
}

func (l *live) attach(c *cluster.Cluster, inst cluster.Instance) (*running, error) {
	cfg := inst.REST()
	cfg.UserAgent = stream.LabUserAgent
	cfg.QPS, cfg.Burst = -1, 0
	dyn, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	disco, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("discovery client: %w", err)
	}
	audited := slices.Contains(l.s.Manager.Capabilities(), cluster.CapAudit)
	w, err := stream.Start(c.ID(), inst, l.feed, audited, l.log)
	if err != nil {
		return nil, err
	}
	outside, err := apiTransport(inst)
	if err != nil {
		w.Stop()
		return nil, err
	}
	ctx, cancel := context.WithCancel(l.ctx)
	r := &running{
		cluster: c, instance: inst, watch: w, dynamic: dyn, config: cfg, outside: outside,
		mapper:  restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(disco)),
		settled: make(chan struct{}), stop: cancel, done: make(chan struct{}),
	}
	l.following.Go(func() {
		defer close(r.done)
		l.settle(ctx, r)
	})
	return r, nil
}

// settle waits for the first lists and keeps the baseline of a new cluster.
func (l *live) settle(ctx context.Context, r *running) {
	for first := true; ; first = false {
		err := cleanup.Keep(ctx, r.config, l.baseline(r.cluster.ID()))
		if err == nil {
			break
		}
		if first {
			l.log.Warn("baseline not kept; trying again", "error", err)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return
		}
	}
	select {
	case <-r.watch.Synced():
		close(r.settled)
		l.progress.connected()
	case <-ctx.Done():
		return
	}
	<-ctx.Done()
}

// disconnect stops the watches.
func (l *live) disconnect() {
	l.mu.Lock()
	r := l.running
	l.running = nil
	if r != nil {
		l.signal()
	}
	l.mu.Unlock()
	if r == nil {
		return
	}
	r.stop()
	<-r.done
	r.watch.Stop()
	r.outside.CloseIdleConnections()
	l.progress.connected()
}

// replace gives the session a fresh cluster of a shape and waits until it is ready.
func (l *live) replace(ctx context.Context, shape lab.ClusterSpec) (*running, error) {
	old := l.current()
	fresh, err := l.s.Manager.Replace(ctx, old.ID(), shape)
	if err != nil {
		return nil, fmt.Errorf("session: replace the cluster: %w", err)
	}
	if err := l.shaped(ctx, fresh, shape); err != nil {
		return nil, errors.Join(err, l.s.Manager.Delete(ctx, fresh.ID()))
	}
	l.mu.Lock()
	l.cluster = fresh
	l.signal()
	l.mu.Unlock()
	select {
	case l.nudge <- struct{}{}:
	default:
	}
	cleanup.Forget(l.baseline(old.ID()))
	return l.settled(ctx)
}

// dialAPI and dial reach whatever cluster the session has now; a sleeping one is woken.
func (l *live) dialAPI(ctx context.Context) (net.Conn, error) {
	inst, err := l.current().Instance(ctx)
	if err != nil {
		return nil, err
	}
	return inst.DialAPI(ctx)
}

func (l *live) dial(ctx context.Context, network, address string) (net.Conn, error) {
	inst, err := l.current().Instance(ctx)
	if err != nil {
		return nil, err
	}
	return inst.Dial(ctx, network, address)
}
