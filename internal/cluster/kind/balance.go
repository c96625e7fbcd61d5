package kind

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"kubistro/internal/clusterhost/balancer"
)

// balance gives Services of type LoadBalancer their addresses until ctx ends. Pods, nodes and the terminal reach
// them by kube-proxy, guests by dialStreet. A cluster of an older version has no token for it.
func (in *instance) balance(ctx context.Context) {
	r := in.known()
	if r.Spec.WithoutLoadBalancers || r.BalancerToken == "" {
		return
	}
	client, err := kubernetes.NewForConfig(in.rest(r.BalancerToken))
	if err != nil {
		in.d.log.Error("no load balancers", "cluster", in.id, "err", err)
		return
	}
	// Of both kinds little is needed: a node's images and a Service's history are the most of them.
	shared := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutBallast))
	c, err := balancer.Start(ctx, client, shared)
	if err != nil {
		in.d.log.Error("no load balancers", "cluster", in.id, "err", err)
		return
	}
	shared.Start(ctx.Done())
	<-ctx.Done()
	c.Close()
	shared.Shutdown()
}

func withoutBallast(o any) (any, error) {
	switch x := o.(type) {
	case *corev1.Node:
		x.ManagedFields, x.Status.Images = nil, nil
	case *corev1.Service:
		x.ManagedFields = nil
	}
	return o, nil
}
