package controlplane

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"kubistro/internal/clusterhost/cloud"
	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/clusterhost/noderules"
	"kubistro/internal/clusterhost/vnet"
	"kubistro/internal/lab"
)

// cloudServer is the cloud's API in the virtual network.
type cloudServer struct {
	iface *vnet.Interface
	http  *http.Server
	done  chan struct{}
}

// startCloud serves the cloud's API until close. Before the cluster is ready it
// refuses what would change something.
func (h *Host) startCloud() (*cloudServer, error) {
	iface, err := h.net.Attach("cloud", netip.MustParseAddr(cloud.Address))
	if err != nil {
		return nil, fmt.Errorf("cloud: %w", err)
	}
	l, err := iface.Listen(":80")
	if err != nil {
		iface.Close()
		return nil, fmt.Errorf("cloud: %w", err)
	}
	c := &cloudServer{iface: iface, done: make(chan struct{}), http: &http.Server{
		Handler: cloud.Handler(cloudMachines{h}), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 2 * time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: log.New(io.Discard, "", 0),
	}}
	go func() {
		defer close(c.done)
		c.http.Serve(l)
	}()
	return c, nil
}

// close ends running requests with the connections.
func (c *cloudServer) close() {
	c.http.Close()
	<-c.done
	c.iface.Close()
}

// cloudMachines are the kitchens that were ordered from the cloud.
type cloudMachines struct{ host *Host }

var _ cloud.Machines = cloudMachines{}

// Instances are the machines that there are.
func (m cloudMachines) Instances() []cloud.Instance {
	out := []cloud.Instance{}
	n, err := m.host.ready()
	if err != nil {
		return out
	}
	for _, name := range n.names() {
		if k := n.get(name); k != nil && k.kitchen.Instance != nil {
			out = append(out, *k.kitchen.Instance)
		}
	}
	slices.SortFunc(out, func(a, b cloud.Instance) int {
		return cmp.Or(a.Launched.Compare(b.Launched), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Launch opens a kitchen and returns before its node has joined.
func (m cloudMachines) Launch(ctx context.Context, r cloud.LaunchRequest) (out cloud.Instance, err error) {
	h := m.host
	err = h.changing(ctx, func(context.Context) error {
		n, err := h.ready()
		if err != nil {
			return err
		}
		there := m.Instances()
		if at := slices.IndexFunc(there, func(i cloud.Instance) bool { return r.Token != "" && i.Token == r.Token }); at >= 0 {
			out = there[at]
			return nil
		}
		if len(there) >= cloud.MaxInstances || len(n.names()) > maxKitchens {
			return cloud.Errorf(cloud.CodeLimit, "you have requested more instances than your quota of %d allows", cloud.MaxInstances)
		}
		k, err := h.ordered(n, r)
		if err != nil {
			return err
		}
		c, err := kitchenConfig(k)
		if err != nil {
			return cloud.Errorf(cloud.CodeInvalid, "%v", err)
		}
		if err := n.add(c, k); err != nil {
			return err
		}
		h.changes.Added = append(h.changes.Added, k)
		out = *k.Instance
		return nil
	})
	return out, cloudError(err)
}

// ordered describes the kitchen of an order.
func (h *Host) ordered(n *nodes, r cloud.LaunchRequest) (kitchen, error) {
	t, _ := cloud.Find(r.Type)
	var id [9]byte
	name := ""
	for name == "" || n.get(name) != nil {
		if _, err := rand.Read(id[:]); err != nil {
			return kitchen{}, fmt.Errorf("instance id: %w", err)
		}
		name = "kitchen-" + hex.EncodeToString(id[:])[1:7]
	}
	k := kitchen{
		Kitchen: lab.Kitchen{
			Name: name, CPU: strconv.Itoa(t.CPU), Memory: fmt.Sprintf("%dMi", t.AllocatableMiB()), Taints: r.Taints, Labels: map[string]string{},
		},
		Address: h.changes.freeAddress(h.cfg.Spec),
	}
	maps.Copy(k.Labels, r.Labels)
	k.Labels[corev1.LabelInstanceTypeStable], k.Labels[corev1.LabelTopologyZone], k.Labels[corev1.LabelTopologyRegion] = t.Name, r.Zone, cloud.Region
	if t.GPUs > 0 {
		k.Resources = map[string]string{"nvidia.com/gpu": strconv.Itoa(t.GPUs)}
	}
	k.Instance = &cloud.Instance{
		ID: "i-" + hex.EncodeToString(id[:])[1:], Node: name, Type: r.Type, Zone: r.Zone, CapacityType: r.CapacityType,
		Address: k.Address.String(), Token: r.Token, Tags: r.Tags, Launched: h.cfg.Clock.Now().UTC(),
	}
	if err := noderules.Validate(k.Kitchen); err != nil {
		return kitchen{}, cloud.Errorf(cloud.CodeInvalid, "%v", err)
	}
	return k, nil
}

// Terminate takes the machine away, with its Node.
func (m cloudMachines) Terminate(ctx context.Context, id string) error {
	return cloudError(m.host.changing(ctx, func(ctx context.Context) error {
		for _, i := range m.Instances() {
			if i.ID == id {
				return m.host.removeKitchen(ctx, i.Node)
			}
		}
		return cloud.Errorf(cloud.CodeNotFound, "there is no instance %s", id)
	}))
}

func cloudError(err error) error {
	if errors.Is(err, controlapi.ErrNotReady) {
		return cloud.Errorf(cloud.CodeUnavailable, "the cloud isn't ready")
	}
	return err
}
