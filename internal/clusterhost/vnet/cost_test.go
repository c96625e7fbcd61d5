package vnet

import (
	"fmt"
	"net/netip"
	"runtime"
	"testing"
)

// What 300 Pods with a server each cost while nothing happens: no goroutine and a few kilobytes of memory each.
func TestIdlePodsCostLittle(t *testing.T) {
	const pods = 300
	n := newNetwork(t)
	table, policies := newServiceTable(), newPolicyTable()
	n.SetServices(table)
	n.SetPolicies(policies)
	node := attach(t, n, "kitchen-1", "172.18.0.3")
	node.ServeNodePorts(true)
	held := func() (bytes uint64, goroutines int) {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	before, routines := held()
	for k := range pods {
		name, ip := fmt.Sprintf("web-%d", k), netip.AddrFrom4([4]byte{10, 244, byte(k >> 8), byte(k + 2)})
		i := attach(t, n, name, ip.String())
		i.SetNode(node)
		i.SetPod("default", name)
		i.SetDNS(DNSConfig{Nameserver: netip.MustParseAddr("10.96.0.10"), Search: []string{"default.svc.cluster.local"}, Ndots: 5})
		if _, err := i.Process().Listen(":80"); err != nil {
			t.Fatal(err)
		}
		policies.setPod(podObject("default", name, ip.String(), nil))
	}
	after, more := held()
	each := (int64(after) - int64(before)) / pods
	t.Logf("%d bytes for each Pod", each)
	if each > 16<<10 {
		t.Errorf("each Pod's network takes %d bytes", each)
	}
	if more != routines {
		t.Errorf("%d goroutines for idle Pods", more-routines)
	}
}

// A rollout changes slices many times: the work for one change must not grow with the whole cluster.
func BenchmarkSliceChange(b *testing.B) {
	t := newServiceTable()
	var endpoints []string
	for k := range 100 {
		endpoints = append(endpoints, fmt.Sprintf("10.244.0.%d", k+2))
	}
	for n := range 300 {
		name := fmt.Sprintf("s%d", n)
		t.setService(clusterIPService("default", name, netip.AddrFrom4([4]byte{10, 96, byte(n >> 8), byte(n)}).String()))
		t.setSlice(sliceOf("default", name, name, endpoints...))
	}
	changed := sliceOf("default", "s7", "s7", endpoints...)
	b.ReportAllocs()
	for b.Loop() {
		t.setSlice(changed)
	}
}
