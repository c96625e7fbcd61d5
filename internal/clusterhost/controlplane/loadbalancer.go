package controlplane

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"kubistro/internal/clusterhost/balancer"
)

// startBalancers gives Services of type LoadBalancer their addresses until the result is closed.
// What the virtual network does with the addresses is in package vnet.
func startBalancers(ctx context.Context, token string, transport http.RoundTripper, shared informers.SharedInformerFactory) (*balancer.Controller, error) {
	client, err := kubernetes.NewForConfig(restConfig(transport, token, "cloud-controller-manager"))
	if err != nil {
		return nil, fmt.Errorf("load balancers: %w", err)
	}
	return balancer.Start(ctx, client, shared)
}
