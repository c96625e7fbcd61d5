package vnet

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubistro/internal/clusterhost/street"
)

func ingress(name, host, ip string) *networkingv1.Ingress {
	o := &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{Host: host}}},
	}
	if ip != "" {
		o.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: ip}}
	}
	return o
}

func TestStreet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTown(t)
		names := newStreetTable()
		w.net.SetStreet(names)
		ask := func(address string) string {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			c, err := w.guest.DialStreet(ctx, address)
			var de *net.DNSError
			switch {
			case errors.As(err, &de) && de.IsNotFound:
				return "no such host"
			case errors.Is(err, syscall.EHOSTUNREACH):
				return "no route"
			case errors.Is(err, syscall.ECONNREFUSED):
				return "refused"
			case err != nil:
				return err.Error()
			}
			defer c.Close()
			b, _ := io.ReadAll(c)
			return string(b[:min(len(b), len("10.244.1.2"))])
		}
		check := func(want map[string]string) {
			t.Helper()
			for address, result := range want {
				if got := ask(address); got != result {
					t.Errorf("%s: %s, want %s", address, got, result)
				}
			}
		}
		w.table.setService(clusterIPService("default", "inner", "10.96.0.21"))
		check(map[string]string{
			"10.96.0.21:80": "no route", "10.244.1.2:8080": "no route", "inner:80": "no such host", "inner.default.svc.cluster.local:80": "no such host",
			"shop.example:80": "no such host", "kitchen-1:30080": "refused", "172.18.255.200:80": "no route",
		})
		w.table.setService(balanced(false))
		w.table.setSlice(on(sliceOf("default", "web", "web-a", "10.244.1.2")))
		check(map[string]string{
			"kitchen-2:30080": "10.244.1.2", "172.18.0.3:30080": "10.244.1.2", "172.18.255.200:80": "10.244.1.2", "shop.example:80": "10.244.1.2",
		})
		second := clusterIPService("default", "second", "10.96.0.22")
		second.Spec.Type = corev1.ServiceTypeLoadBalancer
		second.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "172.18.255.201"}}
		w.table.setService(second)
		w.table.setSlice(on(sliceOf("default", "second", "second-a", "10.244.2.2")))
		names.setIngress(ingress("waits", "later.example", ""))
		check(map[string]string{"shop.example:80": "no such host", "later.example:80": "no such host"})
		names.setIngress(ingress("shop", "Shop.example", "172.18.255.201"))
		names.setIngress(ingress("wild", "*.wild.example", "172.18.255.200"))
		check(map[string]string{
			"shop.example:80": "10.244.2.2", "a.wild.example:80": "10.244.1.2",
		})
		names.gateways = func(context.Context) []street.Door {
			return []street.Door{{Hosts: []string{"gate.example", "*.gated.example"}, IPs: []netip.Addr{netip.MustParseAddr("172.18.255.200")}}}
		}
		check(map[string]string{
			"Gate.example:80": "10.244.1.2", "a.gated.example:80": "10.244.1.2", "shop.example:80": "10.244.2.2",
		})
		names.gateways = nil
		names.deleteIngress(ingress("wild", "", ""))
		check(map[string]string{"anything.example:80": "10.244.2.2", "inner.default.svc:80": "no such host"})
	})
}
