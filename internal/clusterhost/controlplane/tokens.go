package controlplane

import (
	"context"
	"os"

	"k8s.io/client-go/util/keyutil"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	serviceaccountcontroller "k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/serviceaccount"
)

// tokenController fills Secrets of type kubernetes.io/service-account-token. Its
// own constructor is private to kube-controller-manager.
type tokenController struct {
	*serviceaccountcontroller.TokensController
	workers int
}

func newTokenController(ctx context.Context, cc app.ControllerContext, root clientbuilder.ControllerClientBuilder) (*tokenController, error) {
	sa := cc.ComponentConfig.SAController
	key, err := keyutil.PrivateKeyFromFile(sa.ServiceAccountKeyFile)
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(sa.RootCAFile)
	if err != nil {
		return nil, err
	}
	client, err := root.Client("tokens-controller")
	if err != nil {
		return nil, err
	}
	generator, err := serviceaccount.JWTTokenGenerator(serviceaccount.LegacyIssuer, key)
	if err != nil {
		return nil, err
	}
	core := cc.InformerFactory.Core().V1()
	c, err := serviceaccountcontroller.NewTokensController(klog.FromContext(ctx), core.ServiceAccounts(), core.Secrets(), client,
		serviceaccountcontroller.TokensControllerOptions{TokenGenerator: generator, RootCA: ca})
	if err != nil {
		return nil, err
	}
	return &tokenController{c, int(sa.ConcurrentSATokenSyncs)}, nil
}

// Name is the controller's name in kube-controller-manager.
func (*tokenController) Name() string { return names.ServiceAccountTokenController }

// Run works until ctx is done.
func (c *tokenController) Run(ctx context.Context) { c.TokensController.Run(ctx, c.workers) }
