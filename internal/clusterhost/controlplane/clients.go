package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"strings"
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

// restConfig is the configuration of the component called name over a shared
// transport; an empty token is anonymous.
func restConfig(t http.RoundTripper, token, name string) *rest.Config {
	return &rest.Config{
		Host:          "https://" + net.JoinHostPort(officeIP.String(), fmt.Sprint(apiPort)),
		Transport:     t,
		WrapTransport: func(rt http.RoundTripper) http.RoundTripper { return &component{rt, name} },
		BearerToken:   token,
		QPS:           -1,
		ContentConfig: rest.ContentConfig{
			ContentType:        "application/vnd.kubernetes.protobuf",
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
		},
	}
}

// component names the component in the user agent, where client-go puts the name
// of the program: managedFields and audit then read as on a real cluster.
type component struct {
	http.RoundTripper
	name string
}

func (c *component) RoundTrip(r *http.Request) (*http.Response, error) {
	_, rest, ok := strings.Cut(r.UserAgent(), "/")
	if !ok {
		return c.RoundTripper.RoundTrip(r)
	}
	named := *r
	named.Header = r.Header.Clone()
	named.Header.Set("User-Agent", c.name+"/"+rest)
	return c.RoundTripper.RoundTrip(&named)
}

// WrappedRoundTripper is for client-go, which looks for the transport below.
func (c *component) WrappedRoundTripper() http.RoundTripper { return c.RoundTripper }
