package pantry

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path"
	"sync"
	"time"

	"github.com/spf13/pflag"
)

// agnhost is a process of registry.k8s.io/e2e-test-images/agnhost, the image that
// Kubernetes' own tests and many of its examples run: one program with a
// subcommand for each purpose (test/images/agnhost/README.md).
type agnhost struct {
	*Process
	log  *lineWriter
	exit chan int // the first code sent ends the process
}

// agnhostCommands are the subcommands by name. Each gets its own arguments and returns its exit code.
func agnhostCommands() map[string]func(context.Context, *agnhost, []string) int {
	return map[string]func(context.Context, *agnhost, []string) int{
		"connect":                agnhostConnect,
		"crd-conversion-webhook": agnhostConversion,
		"dns-server-list":        agnhostResolver("nameserver"),
		"dns-suffix":             agnhostResolver("search"),
		"entrypoint-tester":      agnhostEntrypoint,
		"etc-hosts":              agnhostHosts,
		"grpc-health-checking":   agnhostGRPC,
		"guestbook":              agnhostGuestbook,
		"inclusterclient":        agnhostInCluster,
		"liveness":               agnhostLiveness,
		"logs-generator":         agnhostLogs,
		"mounttest":              agnhostMounttest,
		"netexec":                agnhostNetexec,
		"nettest":                agnhostNettest,
		"pause":                  agnhostPause,
		"porter":                 agnhostPorter,
		"mtlsclient":             agnhostMTLSClient,
		"mtlsserver":             agnhostMTLSServer,
		"serve-hostname":         agnhostServeHostname,
		"test-webserver":         agnhostWebserver,
		"webhook":                agnhostWebhook,

		"test-service-account-issuer-discovery": agnhostIssuer,
	}
}

func agnhostProgram(ctx context.Context, p *Process) int {
	a := &agnhost{Process: p, log: &lineWriter{w: p.Stderr}, exit: make(chan int, 1)}
	if len(p.Args) < 2 {
		fmt.Fprintln(p.Stdout, "Usage:\n  app [command]")
		return 0
	}
	command := agnhostCommands()[p.Args[1]]
	if command == nil {
		fmt.Fprintf(p.Stderr, "Error: unknown command %q for \"app\"\n", p.Args[1])
		return 1
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return command(ctx, a, p.Args[2:])
}

// printf logs a line as Go's log package does.
func (a *agnhost) printf(format string, args ...any) {
	a.log.printf("%s %s", a.Clock.Now().UTC().Format("2006/01/02 15:04:05"), fmt.Sprintf(format, args...))
}

// fatal logs why the process ends.
func (a *agnhost) fatal(format string, args ...any) int {
	a.printf(format, args...)
	return 1
}

// end makes run return code.
func (a *agnhost) end(code int) {
	select {
	case a.exit <- code:
	default: // it ends already
	}
}

// flags is a set of a subcommand's flags with those of Kubernetes' log library,
// which many manifests pass and which change nothing here.
func (a *agnhost) flags(name string) *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringP("v", "v", "0", "")
	f.String("vmodule", "", "")
	f.String("stderrthreshold", "", "")
	f.Bool("alsologtostderr", false, "")
	f.Bool("logtostderr", false, "")
	return f
}

// parse reads arguments; without ok the process ends with code.
func (a *agnhost) parse(f *pflag.FlagSet, args []string) (code int, ok bool) {
	if err := f.Parse(args); err != nil {
		fmt.Fprintf(a.Stderr, "Error: %v\n", err)
		return 1, false
	}
	return 0, true
}

// run waits for the end: SIGKILL, a request that ends the process, or a signal,
// after delay. A Go program that handles no signal exits with 2 at SIGTERM.
func (a *agnhost) run(ctx context.Context, delay time.Duration, code int) int {
	signal := make(chan bool, 1)
	go func() {
		_, ok := a.terminated(ctx)
		signal <- ok
	}()
	select {
	case code := <-a.exit:
		return code
	case ok := <-signal:
		if !ok {
			return exitSigkill
		}
	}
	if delay > 0 {
		a.printf("Sleeping %d seconds before terminating...", int(delay.Seconds()))
		if !a.sleep(ctx, delay) {
			return exitSigkill
		}
	}
	return code
}

// sleep waits; false says that ctx is done.
func (a *agnhost) sleep(ctx context.Context, d time.Duration) bool {
	t := a.Clock.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C():
		return true
	case <-ctx.Done():
		return false
	}
}

// readFile reads a file of the container, at most 1 MiB of it.
func (a *agnhost) readFile(name string) ([]byte, error) {
	f, err := a.FS.OpenFile(path.Join(a.workDir(), name), os.O_RDONLY, 0)
	if path.IsAbs(name) {
		f, err = a.FS.OpenFile(name, os.O_RDONLY, 0)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, mib))
}

// client speaks HTTP through the container's network.
func (a *agnhost) client() *http.Client {
	return &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{DialContext: a.Net.DialContext, DisableKeepAlives: true},
	}
}

// get returns what a URL answers, at most 1 MiB of it.
func (a *agnhost) get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := a.client().Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, mib))
	return string(b), err
}

// listenTLS serves HTTPS with a certificate of the container.
func (a *agnhost) listenTLS(address, certFile, keyFile string, h http.Handler) (*server, error) {
	cert, err := a.certificate(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	l, err := a.Net.Listen(address)
	if err != nil {
		return nil, err
	}
	return serveHTTP(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}}), h), nil
}

func (a *agnhost) certificate(certFile, keyFile string) (tls.Certificate, error) {
	return keyPair(a.readFile, certFile, keyFile)
}

// keyPair is tls.LoadX509KeyPair for the files of a container.
func keyPair(read func(name string) ([]byte, error), certFile, keyFile string) (tls.Certificate, error) {
	cert, err := read(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := read(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// The certificate that TLS servers use when none is given, and its key.
const (
	localhostCert = "/localhost.crt"
	localhostKey  = "/localhost.key"
)

// localhostFiles makes them: for localhost, valid until 2084 as the real image's.
func localhostFiles() (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Organization: []string{"Acme Co"}},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2084, 1, 29, 16, 0, 0, 0, time.UTC), DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, BasicConstraintsValid: true, IsCA: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		localhostCert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		localhostKey:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}, nil
}

func agnhostPause(ctx context.Context, a *agnhost, _ []string) int {
	fmt.Fprintln(a.Stdout, "Paused\nSignals registered")
	s, ok := a.terminated(ctx)
	if !ok {
		return exitSigkill
	}
	line := fmt.Sprintf("exiting because of signal %q\n", s)
	name := a.Getenv("TERMINATION_MESSAGE_PATH")
	if name == "" {
		name = "/dev/termination-log"
	}
	if f, err := a.FS.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644); err == nil {
		io.WriteString(f, line)
		f.Close()
	}
	io.WriteString(a.Stdout, line)
	return int(s)&1 + 1 // SIGINT 1, SIGTERM 2
}

func agnhostEntrypoint(_ context.Context, a *agnhost, _ []string) int {
	fmt.Fprintf(a.Stdout, "%v\n", a.Args)
	return 0
}

// agnhostLogs writes so many lines, evenly over a time.
func agnhostLogs(ctx context.Context, a *agnhost, args []string) int {
	f := a.flags("logs-generator")
	lines := f.IntP("log-lines-total", "t", 0, "")
	over := f.DurationP("run-duration", "d", 0, "")
	if code, ok := a.parse(f, args); !ok {
		return code
	}
	if *lines <= 0 || *over <= 0 {
		return a.fatal("Invalid total number of lines or duration: %d, %v", *lines, *over)
	}
	for n := range *lines {
		a.log.printf("I%s       1 logs_generator.go:76] %d GET /api/v1/namespaces/kube-system/pods/p%d 200",
			a.Clock.Now().UTC().Format("0102 15:04:05.000000"), n, n%7)
		if !a.sleep(ctx, *over/time.Duration(*lines)) {
			return exitSigkill
		}
	}
	return 0
}

// servers are what a process serves; stop ends all of them.
type servers struct {
	mu   sync.Mutex
	list []*server
}

func (s *servers) add(one *server, err error) error {
	if err == nil {
		s.mu.Lock()
		s.list = append(s.list, one)
		s.mu.Unlock()
	}
	return err
}

func (s *servers) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.list {
		one.stop()
	}
}
