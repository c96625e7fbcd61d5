package kubelet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// Timeouts of the streaming server: the kubelet's defaults.
const (
	streamIdle     = 4 * time.Hour
	streamCreation = 30 * time.Second
)

// selfSigned makes a serving certificate as a kubelet does by itself when it is given none.
func selfSigned(name string, ip netip.Addr, now time.Time) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: name + "@" + strconv.FormatInt(now.Unix(), 10)},
		NotBefore:    now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		DNSNames: []string{name}, IPAddresses: []net.IP{ip.AsSlice()},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// serve answers the kubelet's HTTP API on the node's address until the boot ends. HTTP/1.1 only: the streams need it.
func (b *boot) serve() {
	for b.k.work.wait(b.ctx) {
		_, stopped := b.k.work.state()
		b.serveUntil(stopped)
	}
}

// serveUntil serves until the kubelet is stopped or the boot ends: connections are refused then.
func (b *boot) serveUntil(stopped <-chan struct{}) {
	l, err := b.iface.Listen(netip.AddrPortFrom(b.k.cfg.IP, kubeletPort).String())
	if err != nil {
		b.log.Error("kubelet API can't listen", "err", err)
		select {
		case <-stopped:
		case <-b.ctx.Done():
		}
		return
	}
	ended := make(chan struct{})
	defer close(ended)
	srv := &http.Server{
		Handler:           b.peers(b.routes()),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return b.ctx },
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	b.wg.Go(func() {
		select {
		case <-b.ctx.Done():
		case <-stopped:
		case <-ended:
		}
		srv.Close()
	})
	err = srv.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{*b.k.cfg.Certificate}, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}))
	if b.ctx.Err() == nil && b.k.work.isOpen() && !errors.Is(err, http.ErrServerClosed) {
		b.log.Error("kubelet API ended", "err", err)
	}
}

// peers turns away those that Config.AllowPeer doesn't know.
func (b *boot) peers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if allow := b.k.cfg.AllowPeer; allow != nil {
			ap, err := netip.ParseAddrPort(r.RemoteAddr)
			if err != nil || !allow(ap.Addr()) {
				http.Error(w, "Unauthorized", http.StatusUnauthorized)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (b *boot) routes() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })
	m.HandleFunc("GET /pods", b.servePods)
	m.HandleFunc("GET /pods/", b.servePods)
	m.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", b.serveLogs)
	m.HandleFunc("GET /stats/summary", b.serveSummary)
	m.HandleFunc("GET /metrics/resource", b.serveResourceMetrics)
	m.HandleFunc("GET /metrics", b.serveMetrics)
	m.HandleFunc("/exec/{namespace}/{pod}/{container}", b.serveExec)
	m.HandleFunc("/exec/{namespace}/{pod}/{uid}/{container}", b.serveExec)
	m.HandleFunc("/attach/{namespace}/{pod}/{container}", b.serveAttach)
	m.HandleFunc("/attach/{namespace}/{pod}/{uid}/{container}", b.serveAttach)
	m.HandleFunc("POST /run/{namespace}/{pod}/{container}", b.serveRun)
	m.HandleFunc("/portForward/{namespace}/{pod}", b.servePortForward)
	m.HandleFunc("/portForward/{namespace}/{pod}/{uid}", b.servePortForward)
	return m
}

// worker finds the request's Pod or answers 404.
func (b *boot) worker(w http.ResponseWriter, r *http.Request) *worker {
	found := b.find(r.PathValue("namespace"), r.PathValue("pod"), types.UID(r.PathValue("uid")))
	if found == nil {
		http.Error(w, "pod does not exist", http.StatusNotFound)
	}
	return found
}

func (b *boot) serveExec(w http.ResponseWriter, r *http.Request) {
	o, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p := b.worker(w, r)
	if p == nil {
		return
	}
	if _, err := (streams{p}).container(r.PathValue("container")); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	remotecommand.ServeExec(w, r, streams{p}, r.PathValue("pod"), r.PathValue("uid"), r.PathValue("container"),
		r.URL.Query()[corev1.ExecCommandParam], o, streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
}

func (b *boot) serveAttach(w http.ResponseWriter, r *http.Request) {
	o, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	p := b.worker(w, r)
	if p == nil {
		return
	}
	if _, err := (streams{p}).container(r.PathValue("container")); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	remotecommand.ServeAttach(w, r, streams{p}, r.PathValue("pod"), r.PathValue("uid"), r.PathValue("container"),
		o, streamIdle, streamCreation, remotecommand.SupportedStreamingProtocols)
}

func (b *boot) servePortForward(w http.ResponseWriter, r *http.Request) {
	o, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if p := b.worker(w, r); p != nil {
		portforward.ServePortForward(w, r, streams{p}, r.PathValue("pod"), r.PathValue("uid"), o, streamIdle, streamCreation, portforward.SupportedProtocols)
	}
}

// serveRun runs a command and answers with its output.
func (b *boot) serveRun(w http.ResponseWriter, r *http.Request) {
	p := b.worker(w, r)
	if p == nil {
		return
	}
	inst, err := (streams{p}).container(r.PathValue("container"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	var out cappedBuffer
	if _, err := p.exec(r.Context(), inst, r.URL.Query()["cmd"], execStreams{out: &out, err: &out}); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	io.WriteString(w, out.String())
}

func (b *boot) servePods(w http.ResponseWriter, r *http.Request) {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: []corev1.Pod{}}
	for _, p := range b.all() {
		p.mu.Lock()
		pod := *p.incoming
		pod.Status = p.status
		p.mu.Unlock()
		list.Items = append(list.Items, pod)
	}
	writeJSON(w, list)
}

func writeJSON(w http.ResponseWriter, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		http.Error(w, fmt.Sprintf("marshal: %v", err), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(raw)
}
