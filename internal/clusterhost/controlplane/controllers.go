package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/config"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher"

	"kubistro/internal/clusterhost/pace"
)

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
func controllerFlags(p *pki, clock *pace.Clock) []string {
	return append(clockFlags(clock),
		"--controllers=*"+without(controllersUnused),
		"--leader-elect=false", "--secure-port=0",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+p.path(fileSAKey), "--root-ca-file="+p.path(fileCA),
		"--cluster-signing-cert-file="+p.path(fileCA), "--cluster-signing-key-file="+p.path(fileCAKey),
		"--allocate-node-cidrs=true", "--cluster-cidr="+podCIDR, "--service-cluster-ip-range="+serviceCIDR,
		"--kube-api-qps=-1",
	)
}

func without(controllers []string) string {
	s := ""
	for _, c := range controllers {
		s += ",-" + c
	}
	return s
}

// controllerConfig is what kube-controller-manager is started with.
type controllerConfig struct {
	pki       *pki
	transport http.RoundTripper
	clock     *pace.Clock
	informers informers.SharedInformerFactory // the API server's own
	log       *slog.Logger
}

func (h *Host) controllerConfig() controllerConfig {
	return controllerConfig{h.pki, h.transport, h.clock, h.api.informers, h.log}
}

// complete reads the options; it doesn't speak to the API server yet.
func (cc controllerConfig) complete(ctx context.Context) (*config.CompletedConfig, error) {
	o, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	fs := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	named := o.Flags(app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	for _, f := range named.FlagSets {
		fs.AddFlagSet(f)
	}
	if err := fs.Parse(controllerFlags(cc.pki, cc.clock)); err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	o.Master = "https://" + officeIP.String() // a kubeconfig in the place of the host's must not be read
	c, err := o.Config(ctx, app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases())
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	c.Kubeconfig = restConfig(cc.transport, cc.pki.token(userController), "kube-controller-manager")
	if c.Client, err = kubernetes.NewForConfig(c.Kubeconfig); err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	return c.Complete(), nil
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
