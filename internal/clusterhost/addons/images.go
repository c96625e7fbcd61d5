package addons

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"kubistro/internal/clusterhost/addons/localpath"
	"kubistro/internal/clusterhost/pantry"
	"kubistro/internal/clusterhost/vnet"
)

// What the programs of the cluster's own Pods hold, so that kubectl top shows
// something for them: the host's memory is shared and can't be told apart.
const (
	standInMemory  = 2 << 20
	exitTerminated = 0
)

// Images are what the cluster's own Pods run, but for those that run images of the
// pantry. nodes is what the metrics server reads; it may change while the cluster runs. store is
// what etcdctl reads.
func Images(nodes Nodes, store Etcd) []*pantry.Image {
	var out []*pantry.Image
	add := func(name, program string, size int64, run pantry.Program) {
		out = append(out, &pantry.Image{
			Name: name, SizeBytes: size, Entrypoint: []string{program}, Simulated: true,
			Programs: map[string]pantry.Program{program: run},
		})
	}
	for _, p := range parts() {
		add(p.image, p.name, 1<<20, standIn(p.name))
		if p.name == "etcd" {
			out[len(out)-1].Programs["etcdctl"] = etcdctlProgram(store)
		}
	}
	add("registry.k8s.io/kube-proxy:"+version, "kube-proxy", 1<<20, proxy)
	add("docker.io/kindest/kindnetd:v20260715", "kindnetd", 1<<20, standIn("kindnetd"))
	add("registry.k8s.io/coredns/coredns:v1.14.6", "coredns", 1<<20, dns)
	add("registry.k8s.io/metrics-server/metrics-server:v0.9.0", "metrics-server", 1<<20, (&Metrics{Nodes: nodes}).Program)
	add("docker.io/kindest/local-path-provisioner:v20260131", "local-path-provisioner", 1<<20, localpath.Program)
	return out
}

// HelperImage is the image of the provisioner's helper Pods: busybox of the pantry
// under another name. The error is for a pantry without it.
func HelperImage(r *pantry.Registry) (*pantry.Image, error) {
	busybox, err := r.Pull("busybox:1.37")
	if err != nil {
		return nil, err
	}
	helper := *busybox
	helper.Name, helper.ID = localpath.HelperImage, ""
	return &helper, nil
}

// standIn is a program that says what it stands for and waits for its end.
func standIn(name string) pantry.Program {
	return func(ctx context.Context, p *pantry.Process) int {
		p.Usage.SetMemory(standInMemory)
		fmt.Fprintf(p.Stdout, "%s\n", note(name))
		return waitEnd(ctx, p)
	}
}

// proxy is kube-proxy: while it runs, the Service rules of its node follow the
// EndpointSlices; when it has ended they stay as they were.
func proxy(ctx context.Context, p *pantry.Process) int {
	if node, ok := p.Net.(*vnet.Interface); ok {
		node.SetProxy(true)
		defer node.SetProxy(false)
	}
	return standIn("kube-proxy")(ctx, p)
}

// waitEnd returns when the program is told to end.
func waitEnd(ctx context.Context, p *pantry.Process) int {
	for {
		select {
		case <-ctx.Done():
			return 137
		case s := <-p.Signals:
			if s == syscall.SIGTERM || s == syscall.SIGINT {
				return exitTerminated
			}
		}
	}
}

// dns is coredns: its health and ready endpoints are real.
func dns(ctx context.Context, p *pantry.Process) int {
	p.Usage.SetMemory(standInMemory)
	fmt.Fprintf(p.Stdout, ".:53\n%s\nCoreDNS-1.14.6\n", note("coredns"))
	ok := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, text) })
	}
	health, ready, metrics := http.NewServeMux(), http.NewServeMux(), http.NewServeMux()
	health.Handle("/health", ok("OK"))
	ready.Handle("/ready", ok("OK"))
	metrics.Handle("/metrics", ok("# TYPE coredns_build_info gauge\ncoredns_build_info{version=\"1.14.6\"} 1\n"))
	for addr, h := range map[string]http.Handler{":8080": health, ":8181": ready, ":9153": metrics} {
		stop, err := serve(p, addr, h)
		if err != nil {
			fmt.Fprintf(p.Stderr, "%v\n", err)
			return 1
		}
		defer stop()
	}
	return waitEnd(ctx, p)
}

// serve answers on an address of the Pod until stop is called.
func serve(p *pantry.Process, addr string, h http.Handler) (stop func(), err error) {
	l, err := p.Net.Listen(addr)
	if err != nil {
		return nil, err
	}
	return serveOn(l, h), nil
}

func serveOn(l net.Listener, h http.Handler) (stop func()) {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(l)
	}()
	return func() {
		srv.Close()
		<-done
	}
}
