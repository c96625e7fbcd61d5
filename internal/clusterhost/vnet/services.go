package vnet

import (
	"net/netip"

	"k8s.io/client-go/informers"
)

// ServiceTable is what kube-proxy and CoreDNS know.
type ServiceTable struct{}

// NewServiceTable fills a table from a shared informer factory; nothing happens before the factory is started.
func NewServiceTable(factory informers.SharedInformerFactory) *ServiceTable {
	return &ServiceTable{}
}

func (t *ServiceTable) nodePort(client netip.Addr, port uint16) (netip.AddrPort, bool) {
	return netip.AddrPort{}, false
}
func (t *ServiceTable) translate(client netip.Addr, to netip.AddrPort) (netip.AddrPort, bool) {
	return netip.AddrPort{}, false
}
