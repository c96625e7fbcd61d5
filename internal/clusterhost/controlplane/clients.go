package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"kubistro/internal/clusterhost/controlapi"
)

// serverName is the name in the serving certificate that clients verify.
const serverName = "kubernetes"

// apiDialer opens connections to the API server's socket, whatever address is asked for.
func apiDialer(sockets *controlapi.SocketDir) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return sockets.Dial(ctx, controlapi.FileAPI)
	}
}

// newTransport is the one set of connections to the API server that the parts of the
// control plane share.
func newTransport(dial func(context.Context, string, string) (net.Conn, error), caPEM []byte, name string) (*http.Transport, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(caPEM) {
		return nil, fmt.Errorf("the CA certificate can't be read")
	}
	return &http.Transport{
		DialContext:         dial,
		TLSClientConfig:     &tls.Config{RootCAs: roots, ServerName: name, MinVersion: tls.VersionTLS13},
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: 25,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
	}, nil
}

// restConfig is a client configuration over a shared transport; an empty token is anonymous.
func restConfig(t http.RoundTripper, token string) *rest.Config {
	return &rest.Config{
		Host:        "https://" + net.JoinHostPort(officeIP.String(), fmt.Sprint(apiPort)),
		Transport:   t,
		BearerToken: token,
		QPS:         -1,
		ContentConfig: rest.ContentConfig{
			ContentType:        "application/vnd.kubernetes.protobuf",
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
		},
	}
}
