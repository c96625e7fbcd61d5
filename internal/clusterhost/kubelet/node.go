package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"kubistro/internal/clusterhost/pace"
)

// What the node says of itself, and how often: kubelet_node_status.go and the
// defaults of the kubelet's configuration.
const (
	kubeletVersion    = "v1.37.2"
	runtimeVersion    = "containerd://2.2.0"
	osImage           = "Kubistro (simulated node)"
	leaseDuration     = 40
	heartbeatPeriod   = 5 * time.Minute // how often it reports without any
	kubeletPort       = 10250
	networkNotReady   = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized"
	retryFirst        = 100 * time.Millisecond
	retryMax          = 2 * time.Second
	leaseNamespace    = corev1.NamespaceNodeLease
	annotationVolumes = "volumes.kubernetes.io/controller-managed-attach-detach"
)

// nodeState is the node's object as last seen.
type nodeState struct {
	mu   sync.Mutex
	node *corev1.Node
	cidr chan struct{} // closed when the address range is known
}

func (s *nodeState) init() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cidr == nil {
		s.cidr = make(chan struct{})
	}
}

func (s *nodeState) waitCIDR(ctx context.Context) bool {
	s.init()
	select {
	case <-s.cidr:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *nodeState) get() *corev1.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node
}

func (b *boot) nodeUID() types.UID {
	if n := b.node.get(); n != nil {
		return n.UID
	}
	return types.UID(b.k.cfg.Name) // as kubelets name themselves before they are registered
}

// retry calls f until it succeeds or ctx ends.
func (b *boot) retry(ctx context.Context, what string, f func(context.Context) error) bool {
	for wait := retryFirst; ; wait = min(2*wait, retryMax) {
		if !b.k.work.wait(ctx) {
			return false
		}
		err := f(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		b.log.Debug("will try again", "what", what, "err", err)
		if !sleepClock(ctx, b.k, wait) {
			return false
		}
	}
}

// keepNode registers the node and keeps its Lease and status fresh.
func (b *boot) keepNode() {
	b.node.init()
	if !b.startKubelet() {
		return
	}
	b.wg.Go(b.keepLease)
	changed := make(chan struct{}, 1)
	b.watchNode(changed)
	var lastSent time.Time
	unschedulable := b.node.get().Spec.Unschedulable
	for b.ctx.Err() == nil {
		n := b.node.get()
		if n.Spec.PodCIDR != "" && !b.addresses.known() {
			if cidr, err := netip.ParsePrefix(n.Spec.PodCIDR); err == nil {
				b.addresses.set(cidr)
				b.reserveFrozen()
				close(b.node.cidr)
			}
		}
		if n.Spec.Unschedulable != unschedulable {
			unschedulable = n.Spec.Unschedulable
			if unschedulable {
				b.nodeStatusEvent("NodeNotSchedulable")
			} else {
				b.nodeStatusEvent("NodeSchedulable")
			}
		}
		now := b.k.clock.Now()
		if sent, err := b.reportNode(n, now.Sub(lastSent) >= heartbeatPeriod); err != nil {
			b.log.Debug("node status can't be sent", "err", err)
		} else if sent {
			lastSent = now
		}
		if b.addresses.known() {
			b.k.once.Do(func() { close(b.k.ready) })
		}
		_, stopped := b.k.work.state()
		t := b.k.clock.NewTimer(b.k.cfg.Pace.Of(pace.NodeStatus))
		select {
		case <-t.C():
		case <-changed:
		case <-stopped:
		case <-b.ctx.Done():
		}
		t.Stop()
		if !b.k.work.isOpen() && !b.startKubelet() {
			return
		}
	}
}

// startKubelet does what a kubelet does first, once it is called to work.
func (b *boot) startKubelet() bool {
	if !b.k.work.wait(b.ctx) {
		return false
	}
	b.nodeEvent(corev1.EventTypeNormal, "Starting", "Starting kubelet.")
	return b.retry(b.ctx, "register node", b.register)
}

// register creates the Node, or takes over the one that is there: kubelet_node_status.go, tryRegisterWithAPIServer.
func (b *boot) register(ctx context.Context) error {
	nodes := b.k.cfg.Client.CoreV1().Nodes()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: b.k.cfg.Name, Labels: b.nodeLabels(), Annotations: map[string]string{annotationVolumes: "true"},
	}}
	n.Spec.Taints, n.Spec.ProviderID = b.k.cfg.Taints, b.k.cfg.ProviderID
	n.Status = b.nodeStatus(n, b.k.clock.Now(), nil)
	got, err := nodes.Create(ctx, n, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		if got, err = nodes.Get(ctx, b.k.cfg.Name, metav1.GetOptions{}); err == nil {
			got, err = b.reconcileLabels(ctx, got)
		}
	}
	if err != nil {
		return err
	}
	b.setNode(got)
	for _, reason := range []string{"NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"} {
		b.nodeStatusEvent(reason)
	}
	b.nodeEvent(corev1.EventTypeNormal, "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods")
	return nil
}

func (b *boot) nodeLabels() map[string]string {
	l := map[string]string{
		corev1.LabelHostname: b.k.cfg.Name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: runtime.GOARCH,
		"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": runtime.GOARCH,
	}
	for k, v := range b.k.cfg.Labels {
		l[k] = v
	}
	return l
}

// reconcileLabels restores the labels that a kubelet sets by itself at its start; others stay.
func (b *boot) reconcileLabels(ctx context.Context, n *corev1.Node) (*corev1.Node, error) {
	want := map[string]string{}
	for k, v := range b.nodeLabels() {
		if _, own := b.k.cfg.Labels[k]; !own && n.Labels[k] != v {
			want[k] = v
		}
	}
	if len(want) == 0 {
		return n, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": want}})
	if err != nil {
		return nil, fmt.Errorf("marshal labels: %w", err)
	}
	return b.k.cfg.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
}

func (b *boot) setNode(n *corev1.Node) {
	b.node.mu.Lock()
	defer b.node.mu.Unlock()
	if b.node.node == nil || !olderVersion(n.ResourceVersion, b.node.node.ResourceVersion) {
		b.node.node = n
	}
}

// watchNode follows the node's own object.
func (b *boot) watchNode(changed chan<- struct{}) {
	lw := cache.NewListWatchFromClient(b.k.cfg.Client.CoreV1().RESTClient(), "nodes", metav1.NamespaceAll,
		fields.OneTermEqualSelector("metadata.name", b.k.cfg.Name))
	inf := cache.NewSharedInformer(lw, &corev1.Node{}, 0)
	take := func(o any) {
		n := o.(*corev1.Node)
		old := b.node.get()
		b.setNode(n)
		if old.Spec.PodCIDR != n.Spec.PodCIDR || old.Spec.Unschedulable != n.Spec.Unschedulable {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}
	inf.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: take, UpdateFunc: func(_, o any) { take(o) }})
	b.wg.Go(func() { inf.Run(b.ctx.Done()) })
}

// reportNode patches the status if it has changed or must be repeated.
func (b *boot) reportNode(n *corev1.Node, due bool) (sent bool, err error) {
	now := b.k.clock.Now()
	events := &[]string{}
	status := b.nodeStatus(n, now, events)
	if !due && sameNodeStatus(n.Status, status) {
		return false, nil
	}
	before, err := json.Marshal(corev1.Node{Status: n.Status})
	if err != nil {
		return false, fmt.Errorf("marshal old status: %w", err)
	}
	after, err := json.Marshal(corev1.Node{Status: status})
	if err != nil {
		return false, fmt.Errorf("marshal new status: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Node{})
	if err != nil {
		return false, fmt.Errorf("make status patch: %w", err)
	}
	got, err := b.k.cfg.Client.CoreV1().Nodes().Patch(b.ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return false, fmt.Errorf("patch node status: %w", err)
	}
	b.setNode(got)
	for _, e := range *events {
		b.nodeStatusEvent(e)
	}
	return true, nil
}

// sameNodeStatus ignores heartbeat times: pkg/kubelet/kubelet_node_status.go, nodeStatusHasChanged.
func sameNodeStatus(a, b corev1.NodeStatus) bool {
	strip := func(s corev1.NodeStatus) corev1.NodeStatus {
		s.Conditions = append([]corev1.NodeCondition(nil), s.Conditions...)
		for i := range s.Conditions {
			s.Conditions[i].LastHeartbeatTime = metav1.Time{}
		}
		return s
	}
	return apiequality.Semantic.DeepEqual(strip(a), strip(b))
}

// sleepPeriod waits for a period, also when that changes meanwhile.
func (b *boot) sleepPeriod(p pace.Period) bool {
	begin := b.k.clock.Now()
	for b.ctx.Err() == nil {
		changed := b.k.cfg.Pace.Changed()
		left := b.k.cfg.Pace.Of(p) - b.k.clock.Since(begin)
		if left <= 0 {
			return true
		}
		t := b.k.clock.NewTimer(left)
		select {
		case <-t.C():
		case <-changed:
		case <-b.ctx.Done():
		}
		t.Stop()
	}
	return false
}

// followPace has all Pods looked at anew when periods change.
func (b *boot) followPace() {
	for b.ctx.Err() == nil {
		select {
		case <-b.k.cfg.Pace.Changed():
			for _, w := range b.all() {
				w.poke()
			}
		case <-b.ctx.Done():
		}
	}
}

// keepLease renews the node's Lease every 10 s: component-helpers/apimachinery/lease.
func (b *boot) keepLease() {
	leases := b.k.cfg.Client.CoordinationV1().Leases(leaseNamespace)
	var lease *coordv1.Lease
	for b.ctx.Err() == nil {
		ok := b.retry(b.ctx, "renew lease", func(ctx context.Context) (err error) {
			now := metav1.NewMicroTime(b.k.clock.Now())
			if lease == nil {
				lease, err = leases.Get(ctx, b.k.cfg.Name, metav1.GetOptions{})
				if apierrors.IsNotFound(err) {
					lease, err = leases.Create(ctx, &coordv1.Lease{
						ObjectMeta: metav1.ObjectMeta{Name: b.k.cfg.Name, OwnerReferences: []metav1.OwnerReference{{
							APIVersion: "v1", Kind: "Node", Name: b.k.cfg.Name, UID: b.nodeUID(),
						}}},
						Spec: coordv1.LeaseSpec{HolderIdentity: ptr.To(b.k.cfg.Name), LeaseDurationSeconds: ptr.To(int32(leaseDuration)), RenewTime: &now},
					}, metav1.CreateOptions{})
					if err != nil {
						lease = nil
					}
					return err
				}
				if err != nil {
					lease = nil
					return err
				}
			}
			next := lease.DeepCopy()
			next.Spec.HolderIdentity, next.Spec.RenewTime = ptr.To(b.k.cfg.Name), &now
			next.Spec.LeaseDurationSeconds = ptr.To(int32(leaseDuration))
			if lease, err = leases.Update(ctx, next, metav1.UpdateOptions{}); err != nil {
				lease = nil
			}
			return err
		})
		if !ok || !b.sleepPeriod(pace.LeaseRenewal) {
			return
		}
	}
}
