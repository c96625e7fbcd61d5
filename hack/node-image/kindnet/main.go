// Command kindnetd is the network plugin of the node image, in the place of kind's own
// of that name, whose sources can't be had as a Go module. On each node it writes the
// CNI configuration, keeps a route to every other node's Pods, hides Pods behind the
// node when they leave the cluster, and turns NetworkPolicies into packet rules. It
// works for IPv4. What it sets up goes on working while it doesn't run.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// settle is how long changes are gathered before they are acted on: a rollout changes
// many Pods at once.
const settle = 100 * time.Millisecond

// retry is when something that failed is tried again.
const retry = 2 * time.Second

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx); err != nil && ctx.Err() == nil {
		slog.Error("kindnetd ends", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	host, err := netip.ParseAddr(os.Getenv("HOST_IP"))
	if err != nil {
		return fmt.Errorf("HOST_IP: %w", err)
	}
	pods, err := netip.ParsePrefix(os.Getenv("POD_SUBNET"))
	if err != nil {
		return fmt.Errorf("POD_SUBNET: %w", err)
	}
	if !pods.Addr().Is4() || !host.Is4() {
		return fmt.Errorf("HOST_IP %s, POD_SUBNET %s: only IPv4 is supported", host, pods)
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	if endpoint := os.Getenv("CONTROL_PLANE_ENDPOINT"); endpoint != "" {
		config.Host = "https://" + endpoint // kind sets it; so the network doesn't wait for kube-proxy
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := nft(ctx, masquerade(pods.Masked())); err != nil {
		return err
	}

	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutManagedFields))
	changed := make(chan struct{}, 1)
	for _, informer := range []cache.SharedIndexInformer{
		factory.Core().V1().Nodes().Informer(), factory.Core().V1().Pods().Informer(),
		factory.Core().V1().Namespaces().Informer(), factory.Networking().V1().NetworkPolicies().Informer(),
	} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(any, bool) { signalOnce(changed) },
			UpdateFunc: func(any, any) { signalOnce(changed) },
			DeleteFunc: func(any) { signalOnce(changed) },
		}); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	for kind, ok := range factory.WaitForCacheSync(ctx.Done()) {
		if !ok {
			return fmt.Errorf("no list of %v", kind)
		}
	}
	d := &daemon{host: host, factory: factory}
	signalOnce(changed)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		wait := settle
		if err := d.sync(ctx); err != nil {
			slog.Error("will be tried again", "error", err)
			signalOnce(changed)
			wait = retry
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

func signalOnce(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

// withoutManagedFields keeps objects small in memory.
func withoutManagedFields(obj any) (any, error) {
	if o, err := meta.Accessor(obj); err == nil {
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// daemon remembers what it has set up, to do nothing when nothing has changed.
type daemon struct {
	host    netip.Addr
	factory informers.SharedInformerFactory
	routes  map[netip.Prefix]netip.Addr
	rules   string
}

// sync makes the node as the cluster's objects want it.
func (d *daemon) sync(ctx context.Context) error {
	w, err := look(d.factory)
	if err != nil {
		return err
	}
	errs := []error{d.network(ctx, w)}
	if rules := ruleset(w.isolations(d.host)); rules != d.rules {
		if err := nft(ctx, rules); err != nil {
			errs = append(errs, err)
		} else {
			d.rules = rules
		}
	}
	return errors.Join(errs...)
}
