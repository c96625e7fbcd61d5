package controlapi

import (
	"context"
	"net"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"
)

// DialProtocol is the Upgrade header's value for PathDial.
const DialProtocol = "kubistro-dial"

// NetworkStreet dials, in place of tcp, as a guest who isn't in the cluster: nodes, load
// balancers and the hosts of Ingresses only.
const NetworkStreet = "street"

// NetworkFrom and an address after it dial as the Pod or node that has the address does.
const NetworkFrom = "from:"

// The kinds of DialError.
const (
	DialRefused     = "refused"
	DialTimeout     = "timeout"
	DialUnreachable = "unreachable"
	DialName        = "name"
)

func (e *DialError) Error() string { return e.Message }

// Timeout reports whether the far end kept silent; for net.Error.
func (e *DialError) Timeout() bool { return e.Kind == DialTimeout }

// Temporary is for net.Error.
func (e *DialError) Temporary() bool { return false }

// DialAPI opens a raw connection to the API server's TLS port.
func (a Access) DialAPI(ctx context.Context) (net.Conn, error) { return DialSocket(ctx, a.Socket) }

// RESTConfig is a configuration for client-go that reaches the API server.
// Every client made of it has connections of its own.
func (a Access) RESTConfig() *rest.Config {
	return &rest.Config{
		Host:            "https://" + a.ServerName + ":6443",
		BearerToken:     a.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: a.CAPEM, ServerName: a.ServerName},
		Dial:            func(ctx context.Context, _, _ string) (net.Conn, error) { return a.DialAPI(ctx) },
		Proxy:           func(*http.Request) (*url.URL, error) { return nil, nil },
		QPS:             -1,
	}
}

// RESTConfig asks for Access and makes a configuration for client-go of it.
func (c *Client) RESTConfig(ctx context.Context) (*rest.Config, error) {
	a, err := c.Access(ctx)
	if err != nil {
		return nil, err
	}
	return a.RESTConfig(), nil
}
