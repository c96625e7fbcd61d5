package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/kubernetes/pkg/controller/volume/attachdetach"

	"kubistro/internal/clusterhost/balancer"
	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/clusterhost/loops"
	"kubistro/internal/clusterhost/pace"
	"kubistro/internal/clusterhost/vnet"
)

// startTimeout is how long a start may take, on a machine that is busy with many.
const startTimeout = 3 * time.Minute

// Host is one learner's cluster. Its methods may be called concurrently and at
// any time after New.
type Host struct {
	cfg     Config
	log     *slog.Logger
	started time.Time
	stages  stageLog
	sockets *controlapi.SocketDir
	trail   *auditTrail

	net      *vnet.Network
	office   *vnet.Interface
	street   *vnet.Interface
	listener *apiListener

	done  context.Context // ends with Shutdown
	stop  context.CancelFunc
	up    chan struct{} // closed when the cluster is ready
	ended chan struct{} // closed when Run returns

	// What start makes; end takes it down in reverse order.
	pki        *pki
	etcd       *etcdMember
	api        *apiServer
	stopAPI    context.CancelFunc
	transport  *http.Transport // of the parts below
	running    context.Context // ends before they are taken down
	manager    *controllerManager
	scheduler  *schedulerProcess
	balancers  *balancer.Controller // nil when the cluster has none
	cloud      *cloudServer
	encryption *encryption

	clock    *pace.Clock
	change   sync.Mutex // held while kitchens, control loops or the clock are changed
	changes  changes    // guarded by change
	kitchens []kitchen  // at the start
	// controllers are the names of all controllers that there can be.
	controllers []string

	roles     sync.Mutex
	rolesMade bool

	mu     sync.Mutex
	access *controlapi.Access
	nodes  *nodes
}

// New prepares a cluster in the folder of cfg; nothing runs yet.
func New(cfg Config) (*Host, error) {
	stillQueues()
	attachdetach.DefaultTimerConfig.ReconcilerLoopPeriod = attachPeriod
	sockets, err := controlapi.OpenSocketDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	h := &Host{
		cfg: cfg, log: cfg.Log, started: time.Now(), sockets: sockets,
		trail: newAuditTrail(newKindIndex(schemes()...)), net: vnet.New(), listener: newAPIListener(),
		up: make(chan struct{}), ended: make(chan struct{}),
	}
	if h.changes, err = readChanges(cfg.Dir); err != nil {
		return nil, err
	}
	h.kitchens, h.controllers = h.changes.kitchens(cfg.Spec), knownControllers()
	if h.clock, err = pace.New(h.changes.speed(cfg.Spec)); err != nil {
		return nil, err
	}
	h.done, h.stop = context.WithCancel(context.Background())
	if h.office, err = h.net.Attach(officeName, officeIP); err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	if h.street, err = h.net.Attach("street", streetIP); err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	h.street.SetDNS(podDNS("default"))
	h.net.SetUpstream(streetIP)
	return h, nil
}

// Run starts the cluster and works until ctx is done or Shutdown is called, then
// stops it gracefully. An error means that the start failed or that a part
// of the control plane ended by itself; the folder is good for another try.
func (h *Host) Run(ctx context.Context) error {
	defer close(h.ended)
	defer h.stop()
	defer context.AfterFunc(ctx, h.stop)()
	err := h.start(h.done)
	if err != nil && h.done.Err() == nil {
		h.stages.fail(err)
		h.log.Error("the cluster can't start", "err", err)
	} else if err == nil {
		err = h.wait()
	} else {
		err = nil // stopped while it started
	}
	h.end()
	return err
}

// wait returns when the cluster is to stop, with an error when the API server ended before.
func (h *Host) wait() error {
	select {
	case <-h.done.Done():
		return nil
	case <-h.api.done:
		return fmt.Errorf("the API server ended by itself: %w", h.api.err)
	}
}

// WaitReady returns when the cluster is ready, or an error when Run has ended or ctx is done.
func (h *Host) WaitReady(ctx context.Context) error {
	select {
	case <-h.up:
		return nil
	case <-h.ended:
		return errors.New("the cluster has ended")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Shutdown begins the graceful stop and returns at once.
func (h *Host) Shutdown() { h.stop() }

// Stopping reports whether the cluster stops or has stopped.
func (h *Host) Stopping() bool { return h.done.Err() != nil }

// start brings the cluster up, stage by stage, and returns when it is ready.
func (h *Host) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, errors.New("the start took too long"))
	defer cancel()
	_, err := os.Stat(filepath.Join(h.cfg.Dir, fileInstalled))
	first := err != nil
	if err := h.startEtcd(); err != nil {
		return err
	}
	elected := make(chan error, 1)
	go func() { // the API server is put together meanwhile
		err := h.etcd.ready(ctx)
		if err == nil {
			h.stages.end(controlapi.StageEtcd)
		}
		elected <- err
	}()
	transport, err := h.startAPIServer(ctx)
	if err = errors.Join(err, <-elected); err != nil {
		return err
	}
	if first { // later the roles are there; see startParts
		if err := h.defaultRoles(ctx); err != nil {
			return err
		}
	}
	if err := h.startParts(ctx, transport); err != nil {
		return err
	}
	h.stages.begin(controlapi.StageReady)
	if err := h.systemPods(ctx, first); err != nil {
		return err
	}
	h.stages.end(controlapi.StageReady)
	close(h.up)
	h.log.Info("cluster is ready", "after", time.Since(h.started).Round(time.Millisecond))
	return nil
}

func (h *Host) startEtcd() (err error) {
	h.stages.begin(controlapi.StageEtcd)
	if h.pki, err = openPKI(filepath.Join(h.cfg.Dir, "pki")); err != nil {
		return err
	}
	if err = h.pki.writeTokens(); err != nil {
		return err
	}
	if h.etcd, err = startEtcd(h.cfg.Dir, h.sockets.Path(fileEtcd), h.cfg.EtcdQuota, h.log); err != nil {
		return err
	}
	return nil
}

func (h *Host) startAPIServer(ctx context.Context) (*http.Transport, error) {
	h.stages.begin(controlapi.StageAPIServer)
	socket, err := h.sockets.Listen(controlapi.FileAPI)
	if err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	h.listener.add(socket)
	inside, err := h.office.Listen(fmt.Sprintf(":%d", apiPort))
	if err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	h.listener.add(inside)
	dial := apiDialer(h.sockets)
	transport, err := newTransport(dial, h.pki.caPEM, serverName)
	if err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	// The API server outlives the parts that need it to end well.
	running, stop := context.WithCancel(context.Background())
	h.stopAPI = stop
	if h.encryption, err = openEncryption(running, h.cfg.Dir); err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	var street gatewayDoors
	h.api, err = startAPIServer(running, apiServerParts{
		pki: h.pki, etcd: h.etcd, encryption: h.encryption, listener: h.listener, dialSelf: dial,
		egress: byAddressOnly(h.office.DialContext), audit: h.trail, clock: h.clock,
	}, func(a *apiServer) {
		h.net.SetServices(vnet.NewServiceTable(a.informers))
		h.net.SetStreet(vnet.NewStreetTable(a.informers, street.list))
		h.net.SetPolicies(vnet.NewPolicyTable(a.informers))
	})
	if err != nil {
		return nil, err
	}
	if err := street.ask(h.api.loopback); err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	if err := h.api.ready(ctx); err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(filepath.Join(h.cfg.Dir, controlapi.FileAPI))
	if err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	h.mu.Lock()
	h.access = &controlapi.Access{Socket: abs, ServerName: serverName, CAPEM: h.pki.caPEM, Token: h.pki.token(userLearner)}
	h.mu.Unlock()
	h.stages.end(controlapi.StageAPIServer)
	return transport, nil
}

// defaultRoles makes the roles that all parts need to work. It does nothing more when
// it is called again.
func (h *Host) defaultRoles(ctx context.Context) error {
	h.roles.Lock()
	defer h.roles.Unlock()
	if h.rolesMade {
		return nil
	}
	err := retry(ctx, func() error { return ensureRBAC(ctx, h.api.loopback) })
	h.rolesMade = err == nil
	return err
}

// startParts starts the controllers, the scheduler and the nodes side by side. When
// one of them fails or ctx ends, the others are stopped as well.
func (h *Host) startParts(ctx context.Context, transport *http.Transport) error {
	running, fail := context.WithCancel(h.done)
	h.running, h.transport = running, transport
	keep := context.AfterFunc(ctx, fail)
	parts := []struct {
		stage string
		start func() error
	}{
		{controlapi.StageControllers, func() (err error) {
			if h.changes.home(loops.Manager) {
				return nil
			}
			h.manager, err = startControllers(running, h.controllerConfig(), h.changes.Home)
			return err
		}},
		{controlapi.StageScheduler, func() (err error) {
			if h.changes.home(loops.Scheduler) {
				return nil
			}
			h.scheduler, err = startScheduler(running, h.pki.token(userScheduler), transport)
			return err
		}},
		{controlapi.StageKitchens, func() error {
			n, err := h.startNodes(running)
			if err != nil {
				return err
			}
			h.mu.Lock()
			h.nodes = n
			h.mu.Unlock()
			if err := n.ready(running); err != nil {
				return err
			}
			return labelOffice(running, h.api.loopback)
		}},
		{"", func() (err error) {
			if !h.cfg.Spec.WithoutLoadBalancers {
				h.balancers, err = startBalancers(running, h.pki.token(balancer.User), transport, h.api.informers)
			}
			return err
		}},
		{"", func() (err error) {
			h.cloud, err = h.startCloud()
			return err
		}},
		{"", func() error { return h.installAddons(running) }},
		{"", func() error { return h.defaultRoles(running) }},
	}
	errs := make(chan error, len(parts))
	for _, p := range parts {
		if p.stage != "" {
			h.stages.begin(p.stage)
		}
		go func() {
			err := p.start()
			if err == nil && p.stage != "" {
				h.stages.end(p.stage)
			}
			errs <- err
		}()
	}
	var all error
	for range parts {
		if err := <-errs; err != nil {
			all = errors.Join(all, err)
			fail()
		}
	}
	if !keep() && all == nil {
		all = context.Cause(ctx)
	}
	return all
}

// end takes down what start made, in reverse order.
func (h *Host) end() {
	begin := time.Now()
	h.change.Lock() // a change that goes on ends soon: its context is done
	defer h.change.Unlock()
	h.mu.Lock()
	h.access = nil
	n := h.nodes
	h.mu.Unlock()
	if n != nil {
		n.close()
	}
	if h.cloud != nil {
		h.cloud.close()
	}
	if h.balancers != nil {
		h.balancers.Close()
	}
	if h.scheduler != nil {
		h.scheduler.close()
	}
	if h.manager != nil {
		h.manager.close(h.log)
	}
	if h.stopAPI != nil {
		h.stopAPI()
	}
	if h.api != nil {
		h.api.waitStopped(h.listener, h.log)
	}
	h.listener.Close()
	if h.etcd != nil {
		h.etcd.close()
	}
	h.net.Close()
	os.Remove(h.sockets.Path(controlapi.FileAPI))
	h.sockets.Close()
	h.log.Info("cluster is stopped", "took", time.Since(begin).Round(time.Millisecond))
}

// podDNS is the resolver configuration of Pods in a namespace.
func podDNS(namespace string) vnet.DNSConfig {
	return vnet.DNSConfig{
		Nameserver: dnsIP,
		Search:     []string{namespace + ".svc." + clusterZone, "svc." + clusterZone, clusterZone},
		Ndots:      5,
	}
}
