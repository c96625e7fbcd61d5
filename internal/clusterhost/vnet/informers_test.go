package vnet

import (
	"context"
	"net/netip"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func TestTableFollowsInformers(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	client := fake.NewSimpleClientset(namespace("default"), clusterIPService("default", "web", "10.96.0.20"), sliceOf("default", "web", "web-a", "10.244.1.2"))
	factory := informers.NewSharedInformerFactory(client, 0)
	table := NewServiceTable(factory)
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	until := func(what string, ok func() bool) {
		t.Helper()
		for !ok() {
			select {
			case <-tick.C:
			case <-ctx.Done():
				t.Fatalf("never: %s", what)
			}
		}
	}
	to := netip.MustParseAddrPort("10.96.0.20:80")
	at := func() netip.AddrPort {
		a, _, _ := table.translate(origin{protocol: "TCP", client: netip.MustParseAddr("10.244.1.9")}, to)
		return a
	}
	until("synced", table.HasSynced)
	until("first endpoint", func() bool { return at().String() == "10.244.1.2:8080" })
	if _, err := client.DiscoveryV1().EndpointSlices("default").Update(ctx, sliceOf("default", "web", "web-a", "10.244.2.2"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	until("second endpoint", func() bool { return at().String() == "10.244.2.2:8080" && table.Ready("default", "web") })
	if err := client.DiscoveryV1().EndpointSlices("default").Delete(ctx, "web-a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until("no endpoint", func() bool { return !at().IsValid() && !table.Ready("default", "web") })
	if a := table.answer("web.default.svc.cluster.local", "A"); a.Code != noError || len(a.Records) != 1 {
		t.Errorf("DNS: %+v", a)
	}
}
