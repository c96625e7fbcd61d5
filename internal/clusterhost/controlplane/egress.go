package controlplane

import (
	"context"
	"errors"
	"net"
	"net/netip"
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

// byAddressOnly refuses names: what the API server has to reach comes with an
// address, and a node of a real cluster doesn't know the names of the cluster either.
func byAddressOnly(dial utilnet.DialFunc) utilnet.DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: err}
		}
		if _, err := netip.ParseAddr(host); err != nil {
			return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}}
		}
		return dial(ctx, network, address)
	}
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
