package kind

import (
	"sigs.k8s.io/kind/pkg/apis/config/defaults"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	kindcluster "sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/log"
)

const defaultImage = defaults.Image

// maker creates kind clusters. Create takes no context: it ends when the cluster
// is there, or with an error after it has deleted what it had made.
type maker interface {
	Create(name string, config *v1alpha4.Cluster, kubeconfig string, log log.Logger) error
}

// library is sigs.k8s.io/kind.
type library struct{ provider kindcluster.ProviderOption }

func newMaker(runtime string) maker {
	switch runtime {
	case "podman":
		return library{kindcluster.ProviderWithPodman()}
	case "nerdctl":
		return library{kindcluster.ProviderWithNerdctl("")}
	}
	return library{kindcluster.ProviderWithDocker()}
}

func (l library) Create(name string, config *v1alpha4.Cluster, kubeconfig string, logger log.Logger) error {
	return kindcluster.NewProvider(kindcluster.ProviderWithLogger(logger), l.provider).Create(name,
		kindcluster.CreateWithV1Alpha4Config(config), kindcluster.CreateWithKubeconfigPath(kubeconfig),
		kindcluster.CreateWithDisplayUsage(false), kindcluster.CreateWithDisplaySalutation(false))
}
