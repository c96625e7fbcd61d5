package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"
)

// controllerManager is kube-controller-manager's controllers, each run by itself.
type controllerManager struct {
	config *config.CompletedConfig
	cancel context.CancelFunc
	wg     sync.WaitGroup
	stop   func()
}

// controllersUnused are those that nothing in a simulated cluster needs: there is
// no cloud, no bootstrap token and no device.
var controllersUnused = []string{
	names.BootstrapSignerController, names.TokenCleanerController,
	names.PodCertificateRequestCleanerController, names.LegacyServiceAccountTokenCleanerController,
}

// attachPeriod is how often volumes are looked at that are to be attached or detached.
// It is ten times a second by default, which nobody sees where no volume needs it.
const attachPeriod = time.Second

// controllerFlags are the flags of kube-controller-manager, as kubeadm would write them.
func controllerFlags(p *pki) []string {
	return []string{
		"--controllers=*" + without(controllersUnused),
		"--leader-elect=false", "--secure-port=0",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + p.path(fileSAKey), "--root-ca-file=" + p.path(fileCA),
		"--cluster-signing-cert-file=" + p.path(fileCA), "--cluster-signing-key-file=" + p.path(fileCAKey),
		"--allocate-node-cidrs=true", "--cluster-cidr=" + podCIDR, "--service-cluster-ip-range=" + serviceCIDR,
		"--kube-api-qps=-1",
	}
}

func without(controllers []string) string {
	s := ""
	for _, c := range controllers {
		s += ",-" + c
	}
	return s
}

// newControllerManager reads the options; it doesn't speak to the API server yet.
func newControllerManager(ctx context.Context, p *pki, transport http.RoundTripper) (*controllerManager, error) {
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	fs := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	named := o.Flags(app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	for _, f := range named.FlagSets {
		fs.AddFlagSet(f)
	}
	if err := fs.Parse(controllerFlags(p)); err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	o.Master = "https://" + officeIP.String() // a kubeconfig in the place of the host's must not be read
	c, err := o.Config(ctx, app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	c.Kubeconfig = restConfig(transport, p.token(userController), "kube-controller-manager")
	if c.Client, err = kubernetes.NewForConfig(c.Kubeconfig); err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	return &controllerManager{config: c.Complete()}, nil
}

// start builds all controllers and runs each in a goroutine of its own.
func (m *controllerManager) start(ctx context.Context, transport http.RoundTripper, log *slog.Logger) error {
	ctx, m.cancel = context.WithCancel(ctx)
	root := clientbuilder.SimpleControllerClientBuilder{ClientConfig: m.config.Kubeconfig}
	each := clientbuilder.NewDynamicClientBuilder(restConfig(transport, "", "kube-controller-manager"), m.config.Client.CoreV1(), metav1.NamespaceSystem)
	cc, err := app.CreateControllerContext(ctx, m.config, root, each)
	if err != nil {
		return fmt.Errorf("controllers: %w", err)
	}
	cc.InformerFactory.InformerName().Release()
	if err := leaveOutContents(cc.InformerFactory); err != nil {
		return fmt.Errorf("controllers: %w", err)
	}
	m.config.EventBroadcaster.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: m.config.Client.CoreV1().Events("")})
	m.stop = m.config.EventBroadcaster.Shutdown
	controllers, err := buildControllers(ctx, cc, root)
	if err != nil {
		return err
	}
	cc.InformerFactory.Start(ctx.Done())
	cc.ObjectOrMetadataInformerFactory.Start(ctx.Done())
	close(cc.InformersStarted)
	for _, c := range controllers {
		m.wg.Go(func() {
			defer utilruntime.HandleCrashWithContext(ctx)
			c.Run(ctx)
			if ctx.Err() == nil {
				log.Warn("controller ended by itself", "controller", c.Name())
			}
		})
	}
	log.Debug("controllers run", "count", len(controllers))
	return nil
}

// leaveOutContents keeps what is in ConfigMaps and Secrets out of the controllers' caches:
// a learner may fill the whole database with it. They look at the CA that every
// namespace gets and at tokens of service accounts only.
func leaveOutContents(f informers.SharedInformerFactory) error {
	return errors.Join(
		f.Core().V1().ConfigMaps().Informer().SetTransform(func(o any) (any, error) {
			if c, ok := o.(*corev1.ConfigMap); ok && c.Name != rootcacertpublisher.RootCACertConfigMapName {
				c.Data, c.BinaryData = nil, nil
			}
			return withoutManagedFields(o)
		}),
		f.Core().V1().Secrets().Informer().SetTransform(func(o any) (any, error) {
			if c, ok := o.(*corev1.Secret); ok && c.Type != corev1.SecretTypeServiceAccountToken {
				c.Data = nil
			}
			return withoutManagedFields(o)
		}))
}

// buildControllers builds those that are enabled, the one for tokens first.
func buildControllers(ctx context.Context, cc app.ControllerContext, root clientbuilder.ControllerClientBuilder) ([]app.Controller, error) {
	tokens, err := newTokenController(ctx, cc, root)
	if err != nil {
		return nil, fmt.Errorf("controllers: %s: %w", names.ServiceAccountTokenController, err)
	}
	out := []app.Controller{tokens}
	for _, d := range app.NewControllerDescriptors() {
		if d.RequiresSpecialHandling() || !cc.IsControllerEnabled(d) {
			continue
		}
		c, err := d.BuildController(ctx, cc)
		if err != nil {
			return nil, fmt.Errorf("controllers: %s: %w", d.Name(), err)
		}
		if c != nil { // nil: a feature gate is off
			out = append(out, c)
		}
	}
	return out, nil
}

// close ends all controllers and waits for them, at most stopTimeout.
func (m *controllerManager) close(log *slog.Logger) {
	if m.cancel == nil {
		return
	}
	m.cancel()
	if m.stop != nil {
		m.stop()
	}
	done := make(chan struct{})
	go func() { defer close(done); m.wg.Wait() }()
	select {
	case <-done:
	case <-time.After(stopTimeout):
		log.Warn("some controllers are still running")
	}
}
