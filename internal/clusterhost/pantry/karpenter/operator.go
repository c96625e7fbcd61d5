package karpenter

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/awslabs/operatorpkg/controller"
	"github.com/awslabs/operatorpkg/serrors"
	"github.com/awslabs/operatorpkg/status"
	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeoverlay"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"kubistro/internal/clusterhost/cloud"
)

// userAgent is what Karpenter calls itself, in the version that is compiled in.
const userAgent = "karpenter/1.14.1"

// graceful bounds how long the controllers may take to end.
const graceful = 5 * time.Second

// operate runs Karpenter's controllers until ctx ends: pkg/operator of
// sigs.k8s.io/karpenter does the same with the host's files, sockets and flags.
func operate(ctx context.Context, env Env, o *options.Options, cfg *rest.Config, machines *cloud.Client) error {
	logger := newLogger(env, o)
	ctx = log.IntoContext(ctx, logger)
	quiet()
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst, cfg.UserAgent = float32(o.KubeClientQPS), o.KubeClientBurst, userAgent
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Logger:                        logging.IgnoreDebugEvents(logger),
		LeaderElection:                !o.DisableLeaderElection,
		LeaderElectionID:              o.LeaderElectionName,
		LeaderElectionNamespace:       o.LeaderElectionNamespace,
		LeaderElectionResourceLock:    resourcelock.LeasesResourceLock,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: "0"}, // see serve: it would listen on the host
		HealthProbeBindAddress:        "0",
		GracefulShutdownTimeout:       ptr.To(graceful),
		BaseContext: func() context.Context {
			return options.ToContext(log.IntoContext(context.Background(), logger), o)
		},
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&coordinationv1.Lease{}: {Field: fields.SelectorFromSet(fields.Set{"metadata.namespace": corev1.NamespaceNodeLease})},
			},
		},
		Controller: ctrlconfig.Controller{
			SkipNameValidation: ptr.To(true),  // names are kept per process, and containers are restarted in it
			UsePriorityQueue:   ptr.To(false), // has a ticker for each queue
		},
	})
	if err != nil {
		return err
	}
	if err := index(ctx, mgr); err != nil {
		return err
	}
	classes, err := servedClasses(mgr)
	if err != nil {
		return err
	}
	clk := pacedClock{env.Clock, env.Validation}
	types := nodeoverlay.NewInstanceTypeStore()
	undecorated := &provider{machines: machines, kube: mgr.GetClient(), classes: classes}
	decorated := overlay.Decorate(undecorated, mgr.GetClient(), types)
	//lint:ignore SA1019 what Karpenter's recorder takes
	recorder := events.NewRecorder(mgr.GetEventRecorderFor("karpenter"))
	registry, all := withRegistry(func() []controller.Controller {
		return controllers.NewControllers(ctx, mgr, clk, mgr.GetClient(), recorder, decorated, undecorated,
			state.NewCluster(clk, mgr.GetClient(), decorated), types)
	})
	for _, c := range all {
		if err := c.Register(ctx, fewWorkers{mgr}); err != nil {
			return err
		}
	}
	stop, err := serve(ctx, env, o, mgr, registry)
	if err != nil {
		return err
	}
	defer stop()
	return mgr.Start(ctx)
}

// maxWorkers is how many objects a controller works on at a time.
const maxWorkers = 10

// fewWorkers is a manager whose controllers have as many workers as a small cluster
// needs: Karpenter asks for up to a thousand each, all of which wait with their stacks.
type fewWorkers struct{ manager.Manager }

// Add takes a controller in. Its type is internal to controller-runtime, the field isn't.
func (m fewWorkers) Add(r manager.Runnable) error {
	if v := reflect.Indirect(reflect.ValueOf(r)); v.Kind() == reflect.Struct {
		if f := v.FieldByName("MaxConcurrentReconciles"); f.IsValid() && f.CanSet() && f.CanInt() {
			f.SetInt(min(f.Int(), maxWorkers))
		}
	}
	return m.Manager.Add(r)
}

// newLogger writes lines of JSON as Karpenter does: pkg/operator/logging/logging.go.
func newLogger(env Env, o *options.Options) logr.Logger {
	zc := logging.DefaultZapConfig(options.ToContext(context.Background(), o), "controller")
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zc.EncoderConfig), zapcore.AddSync(env.Stdout), zc.Level)
	core = zapcore.NewSamplerWithOptions(core, time.Second, zc.Sampling.Initial, zc.Sampling.Thereafter)
	return serrors.NewLogger(zapr.NewLogger(zap.New(core).Named("controller")))
}

// quiet keeps controller-runtime from complaining on the host's stderr that nobody
// gave it a logger: each run has one of its own, by context.
var quiet = sync.OnceFunc(func() { log.SetLogger(logging.NopLogger) })

// index adds the indexes that Karpenter's controllers ask by.
func index(ctx context.Context, mgr manager.Manager) error {
	var first error
	add := func(obj client.Object, field string, value func(client.Object) string) {
		err := mgr.GetFieldIndexer().IndexField(ctx, obj, field, func(o client.Object) []string { return []string{value(o)} })
		if err != nil && first == nil {
			first = fmt.Errorf("index %s of %T: %w", field, obj, err)
		}
	}
	add(&corev1.Pod{}, "spec.nodeName", func(o client.Object) string { return o.(*corev1.Pod).Spec.NodeName })
	add(&corev1.Node{}, "spec.providerID", func(o client.Object) string { return o.(*corev1.Node).Spec.ProviderID })
	add(&storagev1.VolumeAttachment{}, "spec.nodeName", func(o client.Object) string { return o.(*storagev1.VolumeAttachment).Spec.NodeName })
	add(&v1.NodeClaim{}, "status.providerID", func(o client.Object) string { return o.(*v1.NodeClaim).Status.ProviderID })
	for part, of := range map[string]func(*v1.NodeClassReference) string{
		"group": func(r *v1.NodeClassReference) string { return r.Group },
		"kind":  func(r *v1.NodeClassReference) string { return r.Kind },
		"name":  func(r *v1.NodeClassReference) string { return r.Name },
	} {
		add(&v1.NodeClaim{}, "spec.nodeClassRef."+part, func(o client.Object) string { return of(o.(*v1.NodeClaim).Spec.NodeClassRef) })
		add(&v1.NodePool{}, "spec.template.spec.nodeClassRef."+part, func(o client.Object) string {
			return of(o.(*v1.NodePool).Spec.Template.Spec.NodeClassRef)
		})
	}
	return first
}

// servedClasses are the kinds of node classes whose definitions are installed.
func servedClasses(mgr manager.Manager) ([]status.Object, error) {
	var out []status.Object
	for _, c := range []status.Object{&KitchenNodeClass{}, &EC2NodeClass{}} {
		gvk, err := apiutil.GVKForObject(c, scheme.Scheme)
		if err != nil {
			return nil, err
		}
		_, err = mgr.GetRESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		switch {
		case err == nil:
			out = append(out, c)
		case !meta.IsNoMatchError(err):
			return nil, err
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("no node class is defined: apply the CustomResourceDefinition of KitchenNodeClass (%s) first", kitchenGroup.Group)
	}
	return out, nil
}

var registering sync.Mutex

// withRegistry makes controllers with a registry of metrics of their own: they
// register theirs in a variable of controller-runtime, which refuses a second time.
func withRegistry(build func() []controller.Controller) (*prometheus.Registry, []controller.Controller) {
	registering.Lock()
	defer registering.Unlock()
	usual, own := crmetrics.Registry, prometheus.NewRegistry()
	crmetrics.Registry = own
	defer func() { crmetrics.Registry = usual }()
	return own, build()
}

// serve answers probes and metrics on the Pod's own network until stop is called.
func serve(ctx context.Context, env Env, o *options.Options, mgr manager.Manager, own *prometheus.Registry) (stop func(), err error) {
	health := http.NewServeMux()
	health.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	health.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		wait, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if !mgr.GetCache().WaitForCacheSync(wait) {
			http.Error(w, "failed to sync caches", http.StatusInternalServerError)
			return
		}
		io.WriteString(w, "ok")
	})
	metrics := http.NewServeMux()
	metrics.Handle("/metrics", promhttp.HandlerFor(prometheus.Gatherers{crmetrics.Registry, own}, promhttp.HandlerOpts{}))
	var servers []*http.Server
	var wg sync.WaitGroup
	stop = func() {
		for _, s := range servers {
			s.Close()
		}
		wg.Wait()
	}
	for port, h := range map[int]http.Handler{o.HealthProbePort: health, o.MetricsPort: metrics} {
		l, err := env.Listen(fmt.Sprintf(":%d", port))
		if err != nil {
			stop()
			return nil, fmt.Errorf("error listening on :%d: %w", port, err)
		}
		s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
		servers = append(servers, s)
		wg.Go(func() { s.Serve(l) })
	}
	return stop, nil
}

// pacedClock is the container's clock; the one wait that Karpenter does by After is
// that between the decision for a consolidation and its validation
// (pkg/controllers/disruption/validation.go).
type pacedClock struct {
	clock.Clock
	validation func() time.Duration
}

func (c pacedClock) After(d time.Duration) <-chan time.Time {
	return c.Clock.After(min(d, c.validation()))
}
