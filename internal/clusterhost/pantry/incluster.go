package pantry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/pantry/podctl"
	"kubistro/internal/shell"
)

// ServiceAccountDir is where the admission plugin ServiceAccount mounts a Pod's token.
const ServiceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// Bounds of what is read of the mounted files, and how long a token is used
// before its file is read again: client-go's own period for token files.
const (
	maxCredential = 64 << 10
	tokenPeriod   = time.Minute
)

// InClusterConfig is rest.InClusterConfig for a program of the pantry: the API
// server by KUBERNETES_SERVICE_HOST and PORT of the environment, token and CA
// from the files mounted in the container, connections through the Pod's network
// only. The error is rest.ErrNotInCluster without the variables, or that of
// reading the files.
//
// The configuration's clients share one set of connections, which close with the
// process's sockets. It must not be changed to use token, certificate or
// kubeconfig files, which client-go would look for on the host; and client-go's
// streams (exec, port-forward) dial by themselves and can't be used with it.
func (p *Process) InClusterConfig() (*rest.Config, error) {
	host, port := p.Getenv("KUBERNETES_SERVICE_HOST"), p.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, rest.ErrNotInCluster
	}
	token := &mountedToken{fs: p.FS, clock: p.Clock}
	if _, err := token.get(); err != nil {
		return nil, err
	}
	ca, err := readMounted(p.FS, "ca.crt")
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(ca)) // none: the server's certificate will be refused, as client-go does
	return &rest.Config{
		Host: "https://" + net.JoinHostPort(host, port),
		Transport: &http.Transport{
			DialContext:         p.Net.DialContext,
			TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: 10 * time.Second,
			ForceAttemptHTTP2:   true,
			HTTP2:               &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
			MaxIdleConnsPerHost: 25,
			IdleConnTimeout:     90 * time.Second,
			DisableCompression:  true,
		},
		WrapTransport: func(next http.RoundTripper) http.RoundTripper { return &bearer{next, token} },
		UserAgent:     path.Base(p.Args[0]) + "/v1.37.2 (linux/amd64) kubernetes/kubistro",
	}, nil
}

// Namespace is the Pod's namespace as its mounted files say it, "" without them.
func (p *Process) Namespace() string {
	ns, err := readMounted(p.FS, "namespace")
	if err != nil {
		return ""
	}
	return ns
}

func readMounted(files shell.FS, name string) (string, error) {
	f, err := files.OpenFile(path.Join(ServiceAccountDir, name), os.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCredential))
	if err != nil {
		return "", &fs.PathError{Op: "read", Path: path.Join(ServiceAccountDir, name), Err: err}
	}
	return strings.TrimSpace(string(b)), nil
}

// mountedToken follows the token file, which the node replaces in time.
type mountedToken struct {
	fs    shell.FS
	clock clock.PassiveClock

	mu    sync.Mutex
	token string
	until time.Time
}

// get returns the token; the last one goes on when the file can't be read any more.
func (t *mountedToken) get() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	if t.token != "" && now.Before(t.until) {
		return t.token, nil
	}
	fresh, err := readMounted(t.fs, "token")
	switch {
	case err == nil && fresh != "":
		t.token, t.until = fresh, now.Add(tokenPeriod)
	case t.token != "":
	case err == nil:
		err = &fs.PathError{Op: "read", Path: path.Join(ServiceAccountDir, "token"), Err: io.ErrUnexpectedEOF}
		return "", err
	default:
		return "", err
	}
	return t.token, nil
}

// forget has the next request read the file again.
func (t *mountedToken) forget() {
	t.mu.Lock()
	t.until = time.Time{}
	t.mu.Unlock()
}

// bearer authenticates requests by the mounted token.
type bearer struct {
	http.RoundTripper
	token *mountedToken
}

func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") != "" {
		return b.RoundTripper.RoundTrip(r)
	}
	token, err := b.token.get()
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := b.RoundTripper.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusUnauthorized {
		b.token.forget()
	}
	return res, err
}

// WrappedRoundTripper is for client-go, which looks for the transport below.
func (b *bearer) WrappedRoundTripper() http.RoundTripper { return b.RoundTripper }

// kubectlProgram is the kubectl of containers.
func kubectlProgram(ctx context.Context, p *Process) int {
	return interruptible(ctx, p, func(ctx context.Context) int {
		return podctl.Run(ctx, podctl.Options{
			Config: p.InClusterConfig, Namespace: p.Namespace(), Args: p.Args[1:],
			Dir: p.workDir(), FS: p.FS, In: p.Stdin, Out: p.Stdout, Err: p.Stderr,
		})
	})
}
