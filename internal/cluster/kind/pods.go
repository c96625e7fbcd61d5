package kind

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubistro/internal/cluster/kind/agent"
)

const (
	// networkFrom and an address after it are the network of the Pod that has the address.
	networkFrom = "from:"
	// podAgents is how many Pods may have an agent at once; podAgentRests is when one ends that nobody needs.
	podAgents     = 8
	podAgentRests = time.Minute
)

// netnsScript finds a Pod's network by its address and starts the agent in it, and in nothing else of the Pod.
// Without an address it starts in the node's own network. Its own errors begin with a word that no agent says.
const netnsScript = `set -e; ip=$1; shift
[ -z "$ip" ] && exec "$@"
for f in /run/netns/*; do
  if ip -n "${f##*/}" -4 -o addr show 2>/dev/null | grep -qF " $ip/"; then exec nsenter --net="$f" -- "$@"; fi
done
exit 1`

// inside are the agents in Pods' networks, by the Pods' addresses.
type inside struct {
	mu     sync.Mutex
	agents map[netip.Addr]*podAgent
}

type podAgent struct {
	*agent.Client
	rests *time.Timer
}

// dialFrom connects as the Pod of an address does: with its NetworkPolicies, from its address.
func (in *instance) dialFrom(ctx context.Context, from, address string) (net.Conn, error) {
	fail := func(err error) error { return &net.OpError{Op: "dial", Net: networkFrom + from, Err: err} }
	ip, err := netip.ParseAddr(from)
	if err != nil {
		return nil, fail(err)
	}
	for again := false; ; again = true {
		a, fresh, err := in.podAgent(ctx, ip)
		if err != nil {
			return nil, fail(err)
		}
		c, err := a.Dial(ctx, "tcp", address)
		// One that has served before may be in the network of a Pod that is gone; its address may be another's now.
		if err == nil || fresh || again || ctx.Err() != nil || !errors.Is(err, syscall.EHOSTUNREACH) && !ended(a.Client) {
			return c, err
		}
		in.dismiss(ip, a)
	}
}

func ended(c *agent.Client) bool {
	select {
	case <-c.Ended():
		return true
	default:
		return false
	}
}

// podAgent is the agent in a Pod's network, and whether it has just been started.
func (in *instance) podAgent(ctx context.Context, ip netip.Addr) (a *podAgent, fresh bool, err error) {
	in.inside.mu.Lock()
	defer in.inside.mu.Unlock()
	if a := in.inside.agents[ip]; a != nil {
		a.rests.Reset(podAgentRests)
		return a, false, nil
	}
	if len(in.inside.agents) >= podAgents {
		for old, a := range in.inside.agents { // any of them
			in.dismissLocked(old, a)
			break
		}
	}
	container, hostNetwork, err := in.placeOf(ctx, ip)
	if err != nil {
		return nil, false, err
	}
	netns := ip.String()
	if hostNetwork {
		netns = ""
	}
	r := in.known()
	c, err := in.d.startAgentIn(ctx, in.ctx, &r, container, "sh", "-c", netnsScript, "sh", netns)
	if err != nil {
		return nil, false, err
	}
	a = &podAgent{Client: c}
	a.rests = time.AfterFunc(podAgentRests, func() { in.dismiss(ip, a) })
	if in.inside.agents == nil {
		in.inside.agents = map[netip.Addr]*podAgent{}
	}
	in.inside.agents[ip] = a
	return a, true, nil
}

// dismiss ends an agent, if it is still that of the address.
func (in *instance) dismiss(ip netip.Addr, a *podAgent) {
	in.inside.mu.Lock()
	defer in.inside.mu.Unlock()
	in.dismissLocked(ip, a)
}

func (in *instance) dismissLocked(ip netip.Addr, a *podAgent) {
	a.rests.Stop()
	if in.inside.agents[ip] == a {
		delete(in.inside.agents, ip)
	}
	_ = a.Close() // it ends with its input
}

// dismissAll ends all of them, when the cluster does.
func (in *instance) dismissAll() {
	in.inside.mu.Lock()
	defer in.inside.mu.Unlock()
	for ip, a := range in.inside.agents {
		in.dismissLocked(ip, a)
	}
}

// placeOf finds the node's container of the Pod that has an address.
func (in *instance) placeOf(ctx context.Context, ip netip.Addr) (container string, hostNetwork bool, err error) {
	api, err := in.admin()
	if err != nil {
		return "", false, err
	}
	pods, err := api.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "status.podIP=" + ip.String()})
	if err != nil {
		return "", false, err
	}
	r := in.known()
	for _, p := range pods.Items {
		if c, ok := r.Nodes[p.Spec.NodeName]; ok && p.DeletionTimestamp == nil {
			return c, p.Spec.HostNetwork, nil
		}
	}
	return "", false, fmt.Errorf("%s: %w", ip, os.NewSyscallError("bind", syscall.EADDRNOTAVAIL))
}

// startAgentIn puts the agent into a node's container and starts it there by a command before it.
func (d *Driver) startAgentIn(ctx, life context.Context, r *record, container string, before ...string) (*agent.Client, error) {
	f, err := os.Open(d.opt.Agent)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := writeFile(ctx, d.engine, container, agentPath, "755", f); err != nil {
		return nil, err
	}
	allowed, err := d.networks(ctx, r)
	if err != nil {
		return nil, err
	}
	run, stop := context.WithCancel(life)
	args := append([]string{"exec", "-i", container}, before...)
	args = append(args, agentPath, "--dns", dnsAddress, "--allow", strings.Join(allowed, ","))
	if container == r.office() {
		args = append(args, "--audit", auditLog)
	}
	out, stdin, wait, err := d.engine.start(run, args...)
	if err != nil {
		stop()
		return nil, err
	}
	client := agent.NewClient(out, stdin, stdin.Close)
	d.work.Go(func() {
		defer stop()
		if err := wait(); err != nil && run.Err() == nil {
			d.log.Debug("agent of a cluster has ended", "container", container, "err", err)
		}
	})
	if err := client.Ready(ctx); err != nil {
		stop()
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}

// networks are those that agents may open connections to: the cluster's own.
func (d *Driver) networks(ctx context.Context, r *record) ([]string, error) {
	allowed := clusterNetworks()
	for _, container := range r.Nodes {
		ip, err := address(ctx, d.engine, container)
		if err != nil {
			d.log.Debug("node without an address", "container", container, "err", err) // it has no power
			continue
		}
		allowed = append(allowed, ip+"/32")
	}
	return allowed, ctx.Err()
}
