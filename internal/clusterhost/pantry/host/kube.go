package host

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Where a Pod finds its service account.
const (
	tokenFile = "/var/run/secrets/kubernetes.io/serviceaccount/token"
	caFile    = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
)

// tokenLife is how long a token that was read is used: client-go's
// transport/token_source.go reads its file anew as often.
const tokenLife = time.Minute

// api is the connection to the API server, as the Pod's service account. Everything
// it reads and dials goes through the Env: client-go's own in-cluster
// configuration would use the files and the network of the process.
type api struct {
	transport *http.Transport
	token     *tokenSource
	host      string
}

// clientPatience bounds a request that changes something; watches have no limit.
const clientPatience = 30 * time.Second

func newAPI(env Env, o options) (*api, error) {
	host := o.endpoint
	if host == "" {
		address, port := env.Getenv("KUBERNETES_SERVICE_HOST"), env.Getenv("KUBERNETES_SERVICE_PORT")
		if address == "" || port == "" {
			return nil, errors.New("unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined")
		}
		host = "https://" + net.JoinHostPort(address, port)
	}
	file := caFile
	if o.caFile != "" {
		file = o.caFile
	}
	pem, err := env.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	a := &api{
		host:  host,
		token: &tokenSource{read: env.ReadFile, clock: env.Clock, fixed: o.token},
		transport: &http.Transport{
			DialContext: env.Dial, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: 90 * time.Second,
			MaxIdleConnsPerHost: 4, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		},
	}
	if _, err := a.token.get(); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *api) close() { a.transport.CloseIdleConnections() }

// RoundTrip sends a request with the service account's token.
func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := a.token.get()
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := a.transport.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusUnauthorized {
		a.token.forget()
	}
	return res, err
}

// client is for one group; types that protobuf can carry are asked for in it.
func (a *api) client(gv schema.GroupVersion, protobuf bool, add ...func(*runtime.Scheme) error) (rest.Interface, error) {
	s := runtime.NewScheme()
	for _, f := range add {
		if err := f(s); err != nil {
			return nil, err
		}
	}
	path := "/apis"
	if gv.Group == "" {
		path = "/api"
	}
	c := &rest.Config{
		Host: a.host, APIPath: path, Transport: a, QPS: -1, UserAgent: "kubistro-host/" + Version, WarningHandler: rest.NoWarnings{},
		ContentConfig: rest.ContentConfig{GroupVersion: &gv, NegotiatedSerializer: serializer.NewCodecFactory(s).WithoutConversion()},
	}
	if protobuf {
		c.ContentType, c.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	}
	return rest.RESTClientFor(c)
}

// clients are the groups that the controller reads and writes.
type clients struct{ core, networking, discovery, gateway rest.Interface }

func (a *api) clients() (c clients, err error) {
	if c.core, err = a.client(corev1.SchemeGroupVersion, true, corev1.AddToScheme); err != nil {
		return c, err
	}
	if c.networking, err = a.client(networkingv1.SchemeGroupVersion, true, networkingv1.AddToScheme); err != nil {
		return c, err
	}
	if c.discovery, err = a.client(discoveryv1.SchemeGroupVersion, true, discoveryv1.AddToScheme); err != nil {
		return c, err
	}
	c.gateway, err = a.client(schema.GroupVersion(gatewayv1.GroupVersion), false, gatewayv1.Install)
	return c, err
}

// tokenSource is a token that lies in a file and is replaced there now and then.
type tokenSource struct {
	read  func(string) ([]byte, error)
	clock clock.PassiveClock
	fixed string

	mu    sync.Mutex
	token string
	until time.Time
}

func (t *tokenSource) get() (string, error) {
	if t.fixed != "" {
		return t.fixed, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	if t.token != "" && now.Before(t.until) {
		return t.token, nil
	}
	raw, err := t.read(tokenFile)
	if err != nil {
		if t.token != "" {
			return t.token, nil // the old one may still do
		}
		return "", err
	}
	if t.token = strings.TrimSpace(string(raw)); t.token == "" {
		return "", fmt.Errorf("%s is empty", tokenFile)
	}
	t.until = now.Add(tokenLife)
	return t.token, nil
}

func (t *tokenSource) forget() {
	t.mu.Lock()
	t.until = time.Time{}
	t.mu.Unlock()
}
