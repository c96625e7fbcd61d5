package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"

	"kubistro/internal/cluster"
	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/internal/session"
	"kubistro/internal/store"
	"kubistro/web"
	"kubistro/web/binding"
)

type serveOptions struct {
	driverOptions
	courseOptions
	addr           string
	data           string
	warm           int
	idle           time.Duration
	publicURL      string
	frameAncestors []string
	trustProxy     bool
	preview        bool   // for an author: pages follow the courses
	authority      []byte // PEM of the serving certificate
}

func (p *program) serve() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve learners until interrupted", Args: cobra.NoArgs,
		Long: `Serve learners until interrupted (SIGINT or SIGTERM; running clusters are then put to sleep with
their state). The address is logged and written to the file "address" in the data folder.

Learners' terminals are confined with Landlock. Where the kernel has none, the server
listens on loopback addresses only, for its owner.`,
		Example: `  labserver serve
  labserver serve --addr 0.0.0.0:8080 --data /var/lib/kubistro --warm 4
  labserver serve --addr 127.0.0.1:0        # any free port`,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.runServe(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", "127.0.0.1:8080", "address to listen on; port 0 picks one")
	f.StringVar(&o.data, "data", p.dataFolder(), "data folder")
	f.IntVar(&o.warm, "warm", 1, "how many unused clusters are kept ready")
	f.DurationVar(&o.idle, "idle", 30*time.Minute, "put a cluster to sleep after so long without activity (0: never)")
	f.StringVar(&o.publicURL, "public-url", "", "address that learners use, for instance https://kubistro.example.org (default: that of each request)")
	f.StringSliceVar(&o.frameAncestors, "frame-ancestors", nil, "origins that may show the pages in an iframe")
	f.BoolVar(&o.trustProxy, "trust-proxy", false, "take the client's address from X-Forwarded-For; only behind a proxy that sets it")
	o.driverOptions.flags(f)
	o.courseOptions.flags(f)
	return cmd
}

// mayListen refuses to serve strangers without confinement.
func mayListen(addr string, abi int, o driverOptions) error {
	local, err := loopback(addr)
	if err != nil {
		return err
	}
	if !local && o.driver == "kind" && !o.trust {
		return fmt.Errorf("the nodes of kind clusters are privileged containers, so whoever breaks out of one is root on this machine: listen on a loopback address (--addr 127.0.0.1:8080) instead of %s, or say that you trust your learners with --trust-learners", addr)
	}
	if !local && abi == 0 {
		return fmt.Errorf("this kernel has no Landlock, so terminals of strangers can't be confined: listen on a loopback address (--addr 127.0.0.1:8080) instead of %s", addr)
	}
	return nil
}

func (p *program) runServe(ctx context.Context, o serveOptions) (err error) {
	log, err := p.logger(o.logLevel)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGPIPE) // who reads the log may go; the clusters are to end in good order all the same
	klog.SetLogger(logr.Discard()) // client-go's own; what matters comes back as errors
	if err := mayListen(o.addr, landlockVersion(), o.driverOptions); err != nil {
		return err
	}
	if err := os.MkdirAll(o.data, 0o700); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	unlock, err := lockFolder(o.data)
	if err != nil {
		return err
	}
	defer unlock()
	cert, authority, err := servingCertificate(o.data, time.Now())
	if err != nil {
		return err
	}
	o.authority = authority
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s, err := p.open(ctx, o, reg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var preview *web.Preview
	reloaded := func(course.Faults) {}
	if o.preview {
		preview = web.NewPreview(s.faults)
		reloaded = preview.Reloaded
	}
	server, err := web.New(web.Config{Preview: preview,
		Lab: binding.Lab(s.sessions), Store: binding.Store(s.store), Library: s.courses,
		Capabilities: s.capabilities(), FrameAncestors: o.frameAncestors, PublicURL: strings.TrimSuffix(o.publicURL, "/"),
		AllowedHosts: allowedHosts(o), Ready: s.store.Ping, Registry: reg, Log: log, Version: version,
	})
	if err != nil {
		return err
	}
	if len(o.courseOptions.folders) == 0 {
		return listen(ctx, o, cert, server, log)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return watchCourses(ctx, s.folders, s.courses, log, reloaded) })
	g.Go(func() error { return listen(ctx, o, cert, server, log) })
	return g.Wait()
}

// allowedHosts are the names of a server that only listens on loopback; nil for
// one that others reach, whose names we can't know.
func allowedHosts(o serveOptions) []string {
	host, _, err := net.SplitHostPort(o.addr)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) || o.trustProxy {
		return nil
	}
	hosts := []string{host, "localhost", "127.0.0.1", "::1"}
	if u, err := url.Parse(o.publicURL); err == nil && u.Hostname() != "" {
		hosts = append(hosts, u.Hostname())
	}
	return hosts
}

// listen serves until ctx ends.
func listen(ctx context.Context, o serveOptions, cert tls.Certificate, server *web.Server, log *slog.Logger) error {
	l, err := net.Listen("tcp", o.addr)
	if err != nil {
		return fmt.Errorf("can't listen on %s: %w", o.addr, err)
	}
	address := "http://" + l.Addr().String()
	file := filepath.Join(o.data, "address")
	if err := os.WriteFile(file, []byte(address+"\n"), 0o600); err != nil {
		return errors.Join(fmt.Errorf("write the address: %w", err), l.Close())
	}
	defer os.Remove(file)
	var handler http.Handler = server
	if o.trustProxy {
		handler = behindProxy(handler)
	}
	open := newConnections(connectionsMost, connectionsPerAddress)
	if o.trustProxy {
		open.perAddress = connectionsMost
	}
	h := httpServer(handler, log)
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(listenBoth(l, cert, open)) }()
	log.Info("serving", "address", address, "data", o.data)
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	log.Info("shutting down")
	server.CloseStreams()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := h.Shutdown(end); err != nil {
		log.Warn("requests cut off", "error", err)
		return errors.Join(h.Close())
	}
	return nil
}

// httpServer answers on connections of listenBoth.
func httpServer(handler http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: busy(handler), ConnContext: withConnection,
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// behindProxy takes the client's address that the nearest proxy has seen.
func behindProxy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hops := strings.Split(r.Header.Get("X-Forwarded-For"), ",")
		if ip := net.ParseIP(strings.TrimSpace(hops[len(hops)-1])); ip != nil {
			r.RemoteAddr = net.JoinHostPort(ip.String(), "0")
		}
		next.ServeHTTP(w, r)
	})
}

// services is everything behind the pages.
type services struct {
	courses  *course.Library
	folders  *course.Folders
	faults   course.Faults // of the folders' courses
	store    *store.Store
	driver   closingDriver
	manager  *cluster.Manager
	sessions *session.Service
	log      *slog.Logger
}

func (p *program) open(ctx context.Context, o serveOptions, reg prometheus.Registerer, log *slog.Logger) (_ *services, err error) {
	s := &services{log: log}
	if s.folders, s.courses, s.faults, err = o.courseOptions.open(); err != nil {
		return nil, err
	}
	logFaults(log, s.faults)
	if s.driver, err = o.driverOptions.open(o.data, log); err != nil {
		return nil, err
	}
	if s.store, err = store.Open(ctx, filepath.Join(o.data, "kubistro.db")); err != nil {
		return nil, errors.Join(err, s.driver.Close())
	}
	s.manager = cluster.NewManager(cluster.Config{
		Driver: s.driver, Dir: o.data, Spec: poolSpec(s.courses), Warm: o.warm, Max: o.max,
		Idle: o.idle, WarnBefore: min(warnBefore, o.idle/2), Log: log, Metrics: reg,
	})
	self, err := os.Executable()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("own program: %w", err), s.store.Close(), s.driver.Close())
	}
	s.sessions, err = session.New(session.Config{
		Manager: s.manager, Store: s.store, Library: s.courses, Dir: o.data,
		ServingCA: o.authority, Program: self, Args: []string{childCommand}, Log: log, Metrics: reg,
	})
	if err != nil {
		return nil, errors.Join(err, s.store.Close(), s.driver.Close())
	}
	if err := s.sessions.Start(ctx); err != nil {
		return nil, errors.Join(err, s.close()) // clusters may be running already
	}
	return s, nil
}

// poolSpec is the shape that most learners will ask for: the first course's.
func poolSpec(l *course.Library) lab.ClusterSpec {
	for _, c := range l.All() {
		return c.Spec
	}
	return lab.DefaultClusterSpec()
}

func (s *services) capabilities() []string {
	var out []string
	for _, c := range s.driver.Capabilities() {
		out = append(out, string(c))
	}
	return out
}

// close ends everything in order and keeps what a later server needs.
func (s *services) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	return errors.Join(s.sessions.Close(ctx), s.manager.Close(ctx), s.driver.Close(), s.store.Close())
}
