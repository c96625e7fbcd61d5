package controlplane

import (
	"context"
	"errors"
	"net"
	"os"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/egressselector"
)

// egressOnly sends everything that the API server dials for a learner (webhooks,
// aggregated APIs, node, Pod and Service proxies, kubelets) through one dialer.
// etcd isn't in it: it is dialled directly, on its socket.
func egressOnly(dial utilnet.DialFunc) *egressselector.EgressSelector {
	return egressselector.NewEgressSelectorWithMap(map[egressselector.EgressType]utilnet.DialFunc{
		egressselector.Cluster:      dial,
		egressselector.ControlPlane: dial,
	})
}

// errNoResolver is what every look-up through the host's resolver gives.
var errNoResolver = errors.New("no names of the host here")

// CloseHostNetwork takes from the whole process what Kubernetes would use beside the
// egress: the host's name resolution (the node proxy looks names up by itself)
// and proxies from the environment. The process can't get them back.
func CloseHostNetwork() {
	net.DefaultResolver = &net.Resolver{
		PreferGo: true,
		Dial:     func(context.Context, string, string) (net.Conn, error) { return nil, errNoResolver },
	}
	for _, e := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"} {
		os.Unsetenv(e)
	}
}
