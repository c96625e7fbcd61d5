package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/spf13/pflag"
	apiextensionsapiserver "k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"

	"kubistro/internal/clusterhost/pace"
)

// apiServer is kube-apiserver with its CRD and aggregation layers.
type apiServer struct {
	loopback  *rest.Config // the API server's own client, group system:masters
	informers informers.SharedInformerFactory
	done      chan struct{}
	err       error
}

// apiServerParts are what the API server is put together from.
type apiServerParts struct {
	pki        *pki
	etcd       *etcdMember
	encryption *encryption
	listener   net.Listener
	dialSelf   func(context.Context, string, string) (net.Conn, error) // to listener
	egress     utilnet.DialFunc
	audit      *auditTrail
	clock      *pace.Clock
}

// apiServerGates are features that are off, for the whole process. One measures all
// objects again and again; one compares all caches with etcd, which is in this process,
// every five minutes; the client without a connection has no streams of ranges;
// the others have a controller that hasn't seen its own last write yet fail and back
// off, ever longer on a busy machine, where it would have gone on before 1.36.
const apiServerGates = "SizeBasedListCostEstimate=false,DetectCacheInconsistency=false,EtcdRangeStream=false," +
	"StaleControllerConsistencyDaemonSet=false,StaleControllerConsistencyHPA=false,StaleControllerConsistencyJob=false," +
	"StaleControllerConsistencyReplicaSet=false,StaleControllerConsistencyStatefulSet=false"

// apiServerFlags are the flags of the API server, as kubeadm would write them.
func apiServerFlags(p *pki, etcdURL string) []string {
	return []string{
		"--etcd-servers=" + etcdURL,
		"--advertise-address=" + officeIP.String(),
		"--tls-cert-file=" + p.path(fileServing), "--tls-private-key-file=" + p.path(fileServingKey),
		"--client-ca-file=" + p.path(fileCA),
		"--requestheader-client-ca-file=" + p.path(fileFrontCA), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + p.path(fileFront), "--proxy-client-key-file=" + p.path(fileFrontKey),
		"--service-account-key-file=" + p.path(fileSAPublic), "--service-account-signing-key-file=" + p.path(fileSAKey),
		"--service-account-issuer=https://kubernetes.default.svc." + clusterZone,
		"--token-auth-file=" + p.path(fileTokens),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--kubelet-preferred-address-types=InternalIP",
		"--service-cluster-ip-range=" + serviceCIDR,
		"--allow-privileged=true",
		"--profiling=false", // its pages would show the host's paths
		"--feature-gates=" + apiServerGates,
		"--max-requests-inflight=200", "--max-mutating-requests-inflight=100",
	}
}

// startAPIServer builds the API server and starts to serve. It returns before
// /readyz is good. prepare is called when the API server's informers can be
// asked for and don't run yet.
func startAPIServer(ctx context.Context, parts apiServerParts, prepare func(*apiServer)) (*apiServer, error) {
	config, loopback, err := apiServerConfig(ctx, parts)
	if err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	s := &apiServer{loopback: loopback, informers: config.KubeAPIs.ControlPlane.VersionedInformers, done: make(chan struct{})}
	prepare(s)
	completed, err := config.Complete()
	if err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	chain, err := app.CreateServerChain(completed)
	if err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	builtIn, ok := chain.GenericAPIServer.NextDelegate().(*genericapiserver.GenericAPIServer)
	if !ok {
		return nil, fmt.Errorf("API server: the aggregation layer delegates to a %T", chain.GenericAPIServer.NextDelegate())
	}
	generic := completed.KubeAPIs.ControlPlane.Generic
	installOpenAPI(builtIn, generic.OpenAPIConfig, generic.OpenAPIV3Config)
	prepared, err := chain.PrepareRun()
	if err != nil {
		return nil, fmt.Errorf("API server: %w", err)
	}
	// All types that the server knows have been made from them; a document that is asked for makes them again.
	generic.OpenAPIV3Config.Definitions = nil
	go func() {
		defer close(s.done)
		s.err = prepared.Run(ctx)
	}()
	return s, nil
}

// ready waits until /readyz is good.
func (s *apiServer) ready(ctx context.Context) error {
	client, err := rest.UnversionedRESTClientFor(dynamic.ConfigFor(s.loopback))
	if err != nil {
		return fmt.Errorf("API server: %w", err)
	}
	t := time.NewTicker(20 * time.Millisecond)
	defer t.Stop()
	for {
		last := client.Get().AbsPath("/readyz").Do(ctx).Error()
		if last == nil {
			return nil
		}
		select {
		case <-t.C:
		case <-s.done:
			return fmt.Errorf("API server ended: %w", s.err)
		case <-ctx.Done():
			return fmt.Errorf("API server: %w (last answer: %w)", context.Cause(ctx), last)
		}
	}
}

// waitStopped waits for the end of a server whose context is done. What still
// runs (watches, logs that are followed) loses its connection.
func (s *apiServer) waitStopped(l *apiListener, log *slog.Logger) {
	t := time.NewTimer(stopTimeout / 4)
	defer t.Stop()
	select {
	case <-s.done:
		return
	case <-t.C:
	}
	l.reset()
	t.Reset(stopTimeout / 2)
	select {
	case <-s.done:
	case <-t.C:
		log.Warn("the API server is still running")
	}
}

// apiServerConfig does what app.NewConfig does, with our egress, audit and listener.
func apiServerConfig(ctx context.Context, parts apiServerParts) (*app.Config, *rest.Config, error) {
	o := options.NewServerRunOptions()
	fs := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	named := o.Flags()
	for _, f := range named.FlagSets {
		fs.AddFlagSet(f)
	}
	if err := fs.Parse(apiServerFlags(parts.pki, parts.etcd.url)); err != nil {
		return nil, nil, err
	}
	o.SecureServing.Listener = parts.listener
	o.SecureServing.BindAddress = officeIP.AsSlice()
	compressDefaults(o, parts.clock)
	if err := o.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, nil, err
	}
	opts, err := o.Complete(ctx)
	if err != nil {
		return nil, nil, err
	}
	if errs := opts.Validate(); len(errs) > 0 {
		return nil, nil, errors.Join(errs...)
	}
	if opts.InformerName, err = cache.NewInformerName("kube-apiserver"); err != nil {
		return nil, nil, err
	}
	g, err := buildGeneric(ctx, opts, parts)
	if err != nil {
		return nil, nil, err
	}
	kube, resolver, plugins, err := app.CreateKubeAPIServerConfig(opts, g.config, g.informers, g.storage)
	if err != nil {
		return nil, nil, err
	}
	cp := &kube.ControlPlane
	hooks := webhook.NewDefaultAuthenticationInfoResolverWrapper(cp.ProxyTransport, cp.Generic.EgressSelector, cp.Generic.LoopbackClientConfig, cp.Generic.TracerProvider)
	crds, err := controlplaneapiserver.CreateAPIExtensionsConfig(*cp.Generic, cp.VersionedInformers, plugins, opts.CompletedOptions, opts.MasterCount, resolver, hooks)
	if err != nil {
		return nil, nil, err
	}
	agg, err := controlplaneapiserver.CreateAggregatorConfig(*cp.Generic, opts.CompletedOptions, cp.VersionedInformers, resolver, cp.ProxyTransport, cp.Extra.PeerProxy, plugins)
	if err != nil {
		return nil, nil, err
	}
	// The other layers have copies of this configuration by now, and keep their own documents.
	cp.Generic.SkipOpenAPIInstallation = true
	return &app.Config{Options: opts, Aggregator: agg, KubeAPIs: kube, ApiExtensions: crds}, g.config.LoopbackClientConfig, nil
}

// schemes are those of all API objects that the server serves by itself.
func schemes() []*runtime.Scheme {
	return []*runtime.Scheme{legacyscheme.Scheme, apiextensionsapiserver.Scheme, aggregatorscheme.Scheme}
}
