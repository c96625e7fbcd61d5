package kind

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"kubistro/internal/cluster"
	"kubistro/internal/cluster/kind/agent"
	"kubistro/internal/clusterhost/balancer"
	"kubistro/internal/clusterhost/loops"
	"kubistro/internal/lab"
)

// serverName is a name that kubeadm's certificate of the API server has.
const serverName = "kubernetes"

// agentPath is where the agent lies in the control plane's container.
const agentPath = "/usr/local/bin/kubistro-agent"

// agentAgain is how long to wait before an agent that ended is started again.
const agentAgain = time.Second

var errEnded = errors.New("the cluster has ended")

// instance is a running cluster.
type instance struct {
	d    *Driver
	id   string
	lost chan struct{}

	ctx  context.Context // done when the cluster was stopped, lost or forgotten
	end  context.CancelFunc
	work sync.Mutex // held while the cluster is changed

	mu     sync.Mutex
	record record
	agent  *agent.Client

	outside outside      // what guests see
	turn    atomic.Int64 // of the nodes behind load balancers
	inside  inside       // agents in Pods' networks
}

var _ cluster.Instance = (*instance)(nil)

// begin waits until a cluster whose containers run is ready, and makes its instance.
func (d *Driver) begin(ctx context.Context, id string, r *record) (*instance, error) {
	in := &instance{d: d, id: id, lost: make(chan struct{}), record: *r}
	in.ctx, in.end = context.WithCancel(context.Background())
	if err := in.settle(ctx); err != nil {
		in.end()
		return nil, err
	}
	a, err := d.startAgent(ctx, in.ctx, r)
	if err != nil {
		in.end()
		return nil, err
	}
	in.agent = a
	r.Controllers = in.record.Controllers
	d.mu.Lock()
	d.instances[id] = in
	d.mu.Unlock()
	d.work.Go(in.watch)
	d.work.Go(func() { in.balance(in.ctx) })
	if !d.opt.Trusted {
		d.work.Go(func() { d.followDefinitions(in.ctx, in.rest(r.LabToken), id) })
	}
	return in, nil
}

// settle waits until the cluster is ready, and does what has to be done before learners come.
func (in *instance) settle(ctx context.Context) error {
	api, err := in.admin()
	if err != nil {
		return err
	}
	r := &in.record // nobody else has it yet
	var nodes []string
	for name := range r.Nodes {
		if !slices.Contains(r.Changes.Off, name) && !slices.Contains(r.Changes.Cut, name) && !slices.Contains(r.Changes.Home, loops.Kubelet+name) {
			nodes = append(nodes, name)
		}
	}
	if err := awaitReady(ctx, api, nodes); err != nil {
		return err
	}
	if err := in.d.filter(ctx, r); err != nil {
		return err
	}
	if !r.Made {
		dyn, err := dynamic.NewForConfig(in.rest(r.LabToken))
		if err != nil {
			return err
		}
		if err := preferLoaded(ctx, dyn, in.d.loaded); err != nil {
			return err
		}
	}
	if !r.Made && !in.d.opt.Trusted {
		if err := in.confine(ctx); err != nil {
			return err
		}
	}
	for _, name := range r.kitchens() {
		if err := setResources(ctx, api, *r.kitchen(name)); err != nil {
			return err
		}
	}
	if len(r.Controllers) == 0 {
		if r.Controllers, err = in.d.knownControllers(ctx, r); err != nil {
			in.d.log.Warn("controllers of a cluster aren't known", "cluster", in.id, "err", err)
		}
	}
	return nil
}

// clusterNetworks are those of Pods, Services and load balancers.
func clusterNetworks() []string { return []string{podNetwork, serviceNetwork, balancer.Network} }

// startAgent puts the agent into the control plane's container and starts it. ctx bounds
// the start; the agent ends with life.
func (d *Driver) startAgent(ctx, life context.Context, r *record) (*agent.Client, error) {
	return d.startAgentIn(ctx, life, r, r.office())
}

// watch closes lost when the control plane's container ends by itself: the agent
// in it ends with it, at once. An agent that ends alone is started again.
func (in *instance) watch() {
	defer in.dismissAll()
	defer in.end()
	for {
		a := in.currentAgent()
		select {
		case <-in.ctx.Done():
			_ = a.Close() // it ends with the cluster
			return
		case <-a.Ended():
		}
		up, err := running(in.ctx, in.d.engine, in.record.office())
		if in.ctx.Err() != nil {
			return
		}
		if err == nil && !up {
			close(in.lost)
			return
		}
		start, cancel := context.WithTimeout(in.ctx, 30*time.Second)
		in.mu.Lock()
		r := in.record
		in.mu.Unlock()
		fresh, err := in.d.startAgent(start, in.ctx, &r)
		cancel()
		if err == nil {
			in.mu.Lock()
			in.agent = fresh
			in.mu.Unlock()
			continue
		}
		select { // a dying container, or a runtime that restarts: look again soon
		case <-time.After(agentAgain):
		case <-in.ctx.Done():
		}
	}
}

func (in *instance) currentAgent() *agent.Client {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.agent
}

// ID is the name that Create was called with.
func (in *instance) ID() string { return in.id }

// Lost is closed when the cluster has ended by itself.
func (in *instance) Lost() <-chan struct{} { return in.lost }

// REST returns a configuration that reaches the API server as "learner".
func (in *instance) REST() *rest.Config { return in.rest(in.record.LearnerToken) }

func (in *instance) rest(token string) *rest.Config {
	return &rest.Config{
		Host: "https://" + in.record.Address, BearerToken: token,
		TLSClientConfig: rest.TLSClientConfig{CAData: slices.Clone(in.record.CA), ServerName: serverName},
		Dial:            func(ctx context.Context, _, _ string) (net.Conn, error) { return in.DialAPI(ctx) },
		Proxy:           func(*http.Request) (*url.URL, error) { return nil, nil },
		QPS:             -1,
	}
}

// admin is a client of the lab itself, who may do everything.
func (in *instance) admin() (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(in.rest(in.record.LabToken))
}

// DialAPI opens a raw connection to the API server's TLS port.
func (in *instance) DialAPI(ctx context.Context) (net.Conn, error) {
	if in.ctx.Err() != nil { // what has the port now isn't this cluster
		return nil, errEnded
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", in.record.Address)
}

// Dial opens a connection inside the cluster's network, from the control plane's node, from the street,
// or from a Pod.
func (in *instance) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if in.ctx.Err() != nil {
		return nil, errEnded
	}
	if network == networkStreet {
		return in.dialStreet(ctx, address)
	}
	if from, ok := strings.CutPrefix(network, networkFrom); ok {
		return in.dialFrom(ctx, from, address)
	}
	return in.currentAgent().Dial(ctx, network, address)
}

// Audit streams the writes that the API server accepted. Their numbers go on over a sleep.
func (in *instance) Audit(ctx context.Context, after uint64) (<-chan lab.AuditEntry, error) {
	if in.ctx.Err() != nil {
		return nil, errEnded
	}
	return in.currentAgent().Audit(ctx, after)
}

// Usage is what the cluster's containers cost the machine now.
func (in *instance) Usage(ctx context.Context) (cluster.Usage, error) {
	if in.ctx.Err() != nil {
		return cluster.Usage{}, errEnded
	}
	var total cluster.Usage
	for _, container := range in.record.Nodes {
		out, err := inNode(ctx, in.d.engine, container, "sh", "-c", usageScript)
		if err != nil {
			continue // it has no power
		}
		u, err := parseUsage(out)
		if err != nil {
			return cluster.Usage{}, fmt.Errorf("usage of container %s: %w", container, err)
		}
		total.PSSBytes += u.PSSBytes
		total.CPU += u.CPU
		total.DiskBytes += u.DiskBytes
	}
	if total.PSSBytes == 0 {
		return total, fmt.Errorf("no container of cluster %s answers", in.id)
	}
	return total, nil
}
