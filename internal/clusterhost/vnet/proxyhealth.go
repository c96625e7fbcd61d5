package vnet

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// proxyHealthPort is kube-proxy's own health check on every node.
const proxyHealthPort = 10256

// proxyHealth answers on the nodes' health check ports: a Service's
// healthCheckNodePort (pkg/proxy/healthcheck/service_health.go) and kube-proxy's
// own (proxy_health.go). It starts with the first request.
type proxyHealth struct {
	net      *Network
	listener *listener
	http     *http.Server
	wg       sync.WaitGroup
}

type nodeContext struct{}

// healthListenerLocked is where connections to health check ports are accepted.
func (n *Network) healthListenerLocked() *listener {
	if n.health == nil {
		h := &proxyHealth{net: n}
		h.listener = &listener{
			stack: newStack(n, "kube-proxy", nil), addr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.IPv4Unspecified(), proxyHealthPort)),
			queue: make(chan *conn, backlog), room: make(chan struct{}, 1), done: make(chan struct{}),
		}
		h.http = &http.Server{
			Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second, MaxHeaderBytes: 8 << 10,
			ConnContext: func(ctx context.Context, c net.Conn) context.Context {
				if own, ok := c.(*conn); ok {
					ctx = context.WithValue(ctx, nodeContext{}, own)
				}
				return ctx
			},
		}
		h.wg.Go(func() { h.http.Serve(h.listener) })
		n.health = h
	}
	return n.health.listener
}

func (h *proxyHealth) close() {
	h.http.Close()
	h.wg.Wait()
}

func (h *proxyHealth) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c, ok := r.Context().Value(nodeContext{}).(*conn)
	if !ok {
		http.Error(w, "no such node", http.StatusInternalServerError)
		return
	}
	port, node := uint16(c.local.Port), c.stack.nodeName
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if port == proxyHealthPort {
		if r.URL.Path != "/healthz" && r.URL.Path != "/livez" {
			http.NotFound(w, r)
			return
		}
		now := time.Now().UTC().Format(time.RFC3339Nano)
		h.answer(w, http.StatusOK, map[string]any{"lastUpdated": now, "currentTime": now, "nodeEligible": true})
		return
	}
	namespace, name, count, ok := h.net.localEndpoints(port, node)
	if !ok {
		http.Error(w, "", http.StatusServiceUnavailable)
		return
	}
	code := http.StatusOK
	if count == 0 {
		code = http.StatusServiceUnavailable
	}
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", jsonNumber(count))
	h.answer(w, code, map[string]any{
		"service": map[string]string{"namespace": namespace, "name": name}, "localEndpoints": count, "serviceProxyHealthy": true,
	})
}

func (*proxyHealth) answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(v)
}

func jsonNumber(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// localEndpoints is what a node says of the Service with a health check port.
func (n *Network) localEndpoints(port uint16, node string) (namespace, name string, count int, ok bool) {
	n.mu.Lock()
	t := n.services
	n.mu.Unlock()
	if t == nil {
		return "", "", 0, false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.health[port]
	if s == nil {
		return "", "", 0, false
	}
	return s.key.namespace, s.key.name, s.localEndpoints(node), true
}

// checksHealth reports whether a node's port is one of the health checks.
func (t *ServiceTable) checksHealth(port uint16) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return port == proxyHealthPort || t.health[port] != nil
}
