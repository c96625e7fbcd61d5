package controlplane

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	"kubistro/internal/clusterhost/street"
)

// TestGatewayDoors: the hosts of a Gateway's listeners and of the routes that name it lead to its addresses.
func TestGatewayDoors(t *testing.T) {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{street.Gateways: "GatewayList", street.HTTPRoutes: "HTTPRouteList"})
	for _, text := range []string{
		"kind: Gateway\nmetadata: {name: front, namespace: doors}\nspec: {listeners: [{name: web}, {name: shop, hostname: '*.Shop.example'}]}\nstatus: {addresses: [{type: IPAddress, value: 172.18.255.200}, {type: Hostname, value: nowhere}]}",
		"kind: Gateway\nmetadata: {name: waits, namespace: default}\nspec: {listeners: [{name: web, hostname: later.example}]}",
		"kind: HTTPRoute\nmetadata: {name: menu, namespace: doors}\nspec: {hostnames: [menu.example], parentRefs: [{name: front}]}",
		"kind: HTTPRoute\nmetadata: {name: far, namespace: default}\nspec: {hostnames: [far.example], parentRefs: [{name: front, namespace: doors, kind: Gateway}]}",
		"kind: HTTPRoute\nmetadata: {name: mesh, namespace: doors}\nspec: {hostnames: [mesh.example], parentRefs: [{name: front, kind: Service}]}",
		"kind: HTTPRoute\nmetadata: {name: lost, namespace: default}\nspec: {hostnames: [lost.example], parentRefs: [{name: front}]}",
	} {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte("apiVersion: gateway.networking.k8s.io/v1\n"+text), &o.Object); err != nil {
			t.Fatal(err)
		}
		kind := map[string]schema.GroupVersionResource{"Gateway": street.Gateways, "HTTPRoute": street.HTTPRoutes}[o.GetKind()]
		if _, err := client.Resource(kind).Namespace(o.GetNamespace()).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	g := gatewayDoors{client: client}
	want := []street.Door{
		{Hosts: []string{"later.example"}},
		{Hosts: []string{"*.shop.example", "far.example", "menu.example"}, IPs: []netip.Addr{netip.MustParseAddr("172.18.255.200")}},
	}
	less := cmpopts.SortSlices(func(a, b string) bool { return a < b })
	doors := cmpopts.SortSlices(func(a, b street.Door) bool { return len(a.Hosts) < len(b.Hosts) })
	if d := cmp.Diff(want, g.list(t.Context()), less, doors, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); d != "" {
		t.Errorf("doors (-want +got):\n%s", d)
	}
}

// TestNoGatewayAPI: a cluster without its CRDs has no such doors.
func TestNoGatewayAPI(t *testing.T) {
	var g gatewayDoors
	if got := g.list(t.Context()); got != nil {
		t.Errorf("before there is an API server: %v", got)
	}
	if err := g.ask(shared.api.loopback); err != nil {
		t.Fatal(err)
	}
	if got := g.list(t.Context()); got != nil {
		t.Errorf("doors: %v", got)
	}
}
