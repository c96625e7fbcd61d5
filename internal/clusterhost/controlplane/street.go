package controlplane

import (
	"context"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"kubistro/internal/clusterhost/street"
)

// streetNews is how long the street believes what it heard of Gateways; a guest who comes
// later asks again.
const streetNews = time.Second

// gatewayDoors lists where the hosts of Gateways and HTTPRoutes lead. It asks the API server while
// somebody looks names up, and not more often than once a second: the kinds come and go with
// their CRDs, and most clusters never have them.
type gatewayDoors struct {
	mu     sync.Mutex
	client dynamic.Interface // nil until there is an API server to ask
	asked  time.Time
	doors  []street.Door
}

// ask says whom list asks.
func (g *gatewayDoors) ask(c *rest.Config) (err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.client, err = dynamic.NewForConfig(c)
	return err
}

func (g *gatewayDoors) list(ctx context.Context) []street.Door {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.client == nil || time.Since(g.asked) < streetNews {
		return g.doors
	}
	ctx, cancel := context.WithTimeout(ctx, streetNews)
	defer cancel()
	gws, err := g.client.Resource(street.Gateways).List(ctx, metav1.ListOptions{})
	if err != nil {
		if ctx.Err() == nil {
			g.asked, g.doors = time.Now(), nil // mostly: there is no such kind
		}
		return g.doors
	}
	var routes []unstructured.Unstructured
	if list, err := g.client.Resource(street.HTTPRoutes).List(ctx, metav1.ListOptions{}); err == nil {
		routes = list.Items
	}
	g.asked, g.doors = time.Now(), street.OfGateways(gws.Items, routes)
	return g.doors
}
