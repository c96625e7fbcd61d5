package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"kubistro/internal/shell"
)

const (
	contextName   = "kubistro"
	streamBridges = 6 // streaming commands (exec, attach, cp ...) at once
)

// kubectl runs kubectl's own commands in this process, around a fixed
// connection to the learner's API server.
type kubectl struct {
	c       *inside
	main    *bridge
	streams chan *bridge // free ones
	all     []*bridge
	config  *rest.Config
	pty     *ptyPair
	stderr  *stderrRelay

	disc   *sharedDiscovery
	mapper meta.ResettableRESTMapper

	stdin      sync.Mutex // os.Stdin is used by one command at a time
	completing sync.Mutex
	conf       *virtualConfig
}

// newKubectl opens all that kubectl needs from outside the home.
func newKubectl(c *inside) (*kubectl, error) {
	k := &kubectl{c: c, streams: make(chan *bridge, streamBridges), conf: newVirtualConfig(c)}
	var err error
	if k.main, err = newBridge(c.broker); err != nil {
		return nil, err
	}
	k.all = append(k.all, k.main)
	for range streamBridges {
		b, err := newBridge(c.broker)
		if err != nil {
			return nil, err
		}
		k.all = append(k.all, b)
		k.streams <- b
	}
	k.config = &rest.Config{
		Host: "https://" + k.main.addr().String(), BearerToken: c.Token,
		TLSClientConfig: rest.TLSClientConfig{ServerName: c.ServerName, CAData: c.CAPEM},
		QPS:             -1, UserAgent: "kubectl/v1.37.2", WarningHandler: rest.NoWarnings{},
		// No Proxy: a function keeps client-go from sharing one transport, and then every
		// command would leave a connection behind. Loopback addresses are never proxied.
	}
	dc, err := discovery.NewDiscoveryClientForConfig(k.config)
	if err != nil {
		return nil, err
	}
	k.disc = &sharedDiscovery{CachedDiscoveryInterface: memory.NewMemCacheClient(dc)}
	k.mapper = restmapper.NewDeferredDiscoveryRESTMapper(k.disc)
	k.pty = openPTY()
	if k.stderr, err = newStderrRelay(); err != nil {
		return nil, err
	}
	cmdutil.BehaviorOnFatal(func(msg string, code int) { panic(fatalError{msg, code}) })
	return k, nil
}

func (k *kubectl) ports() []uint16 {
	var out []uint16
	for _, b := range k.all {
		out = append(out, uint16(b.addr().Port))
	}
	return out
}

// warm fills the discovery cache, so that the first command is fast.
func (k *kubectl) warm() {
	k.mapper.ResourcesFor(podResource)
}

func (k *kubectl) namespace() string { return k.conf.namespace() }

// fatalError is how kubectl ends a command that failed.
type fatalError struct {
	msg  string
	code int
}

// run is the command kubectl.
func (k *kubectl) run(ctx context.Context, env shell.Env, args []string) int {
	args = append([]string{"kubectl"}, args[1:]...)
	if env.Getenv("KUBECONFIG") != "" {
		fmt.Fprintln(env.Err, k.c.say("提醒：KUBECONFIG 在這裡沒有作用；這個終端機固定連到你自己的叢集。", "note: KUBECONFIG has no effect here; this terminal always talks to your own cluster."))
	}
	k.conf.load(env.Err)
	k.disc.begin()
	plan, err := k.inspect(args)
	if err != nil {
		var r *refusal
		if errors.As(err, &r) {
			fmt.Fprintln(env.Err, "error: "+r.text.In(k.c.lang))
		} else {
			fmt.Fprintln(env.Err, "error: "+err.Error())
		}
		return 1
	}
	switch plan.verb {
	case "config":
		return k.conf.command(env, plan.args[1:])
	case "edit":
		return k.edit(ctx, env, plan)
	}
	return k.invoke(ctx, env, plan)
}

// invoke runs one of kubectl's own commands in a goroutine, so that one that
// doesn't listen to its context can't hold the prompt.
func (k *kubectl) invoke(ctx context.Context, env shell.Env, plan plan) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := &getter{k: k, ctx: ctx, config: k.config, dir: env.Dir, errOut: env.Err}
	if plan.streaming {
		select {
		case b := <-k.streams:
			config := rest.CopyConfig(k.config)
			config.Host = "https://" + b.addr().String()
			g.config = config
			defer func() { k.streams <- b }()
			defer b.reset()
		case <-ctx.Done():
			return 130
		}
	}
	out := &gate{w: env.Out}
	errOut := &gate{w: env.Err}
	streams := genericiooptions.IOStreams{In: env.In, Out: out, ErrOut: errOut}
	if plan.stdin && !plan.tty {
		k.stdin.Lock()
		defer k.stdin.Unlock()
		restore, err := k.feedStdin(ctx, env.In)
		if err != nil {
			fmt.Fprintln(env.Err, "error: cannot read standard input")
			return 1
		}
		defer restore()
	}
	if plan.tty && env.Term != nil && k.pty != nil {
		k.stdin.Lock()
		defer k.stdin.Unlock()
		in, stop := k.pty.attach(ctx, env)
		defer stop()
		streams = genericiooptions.IOStreams{In: in, Out: in, ErrOut: in}
	}
	defer k.stderr.to(errOut)()
	result := make(chan int, 1)
	go func() { result <- k.execute(ctx, g, streams, plan.args) }()
	select {
	case code := <-result:
		return code
	case <-ctx.Done():
	}
	// Give it a moment to end by itself: its requests have been cancelled.
	t := time.NewTimer(300 * time.Millisecond)
	defer t.Stop()
	select {
	case <-result:
	case <-t.C:
	}
	out.close()
	errOut.close()
	return 130
}

// execute builds the command tree and runs it; kubectl's fatal errors arrive as panics.
func (k *kubectl) execute(ctx context.Context, g *getter, streams genericiooptions.IOStreams, args []string) (code int) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case fatalError:
			code = p.code
			if msg := strings.TrimRight(p.msg, "\n"); msg != "" && ctx.Err() == nil {
				fmt.Fprintln(streams.ErrOut, k.c.hideHome(msg))
			}
		case *refusal:
			code = 1
			fmt.Fprintln(streams.ErrOut, "error: "+p.text.In(k.c.lang))
		default:
			code = 1
			fmt.Fprintf(streams.ErrOut, "error: kubectl failed unexpectedly: %v\n", p)
		}
	}()
	root := k.tree(g, streams)
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(streams.ErrOut, "error: "+k.c.hideHome(strings.TrimPrefix(err.Error(), "error: ")))
		return 1
	}
	return 0
}

// hideHome writes the learner's name of the home for the host's.
func (c *inside) hideHome(s string) string { return strings.ReplaceAll(s, c.Home, homePath) }

// gate passes writes on until it is closed: an abandoned command must not
// write into the next one's output.
type gate struct {
	mu     sync.Mutex
	w      io.Writer
	closed bool
}

func (g *gate) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0, io.ErrClosedPipe
	}
	return g.w.Write(p)
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// feedStdin makes in the process's standard input, which kubectl reads for -f -.
func (k *kubectl) feedStdin(ctx context.Context, in io.Reader) (restore func(), err error) {
	pr, pw, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	old := os.Stdin
	os.Stdin = pr
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { pw.SetWriteDeadline(time.Unix(1, 0)); pr.SetReadDeadline(time.Unix(1, 0)) })
	go func() {
		defer pw.Close()
		io.Copy(pw, io.LimitReader(in, 8<<20))
	}()
	return func() {
		os.Stdin = old
		stop()
		cancel()
		pr.Close()
	}, nil
}

// getter gives kubectl's commands the fixed connection. It ties every request to one command's context.
type getter struct {
	k      *kubectl
	ctx    context.Context
	config *rest.Config
	global globalFlags
	dir    string // the shell's working directory
	errOut io.Writer
}

func (g *getter) ToRESTConfig() (*rest.Config, error) {
	c := rest.CopyConfig(g.config)
	if d, err := time.ParseDuration(g.global.timeout); err == nil {
		c.Timeout = d
	} else if g.global.timeout != "" && g.global.timeout != "0" {
		if c.Timeout, err = time.ParseDuration(g.global.timeout + "s"); err != nil {
			return nil, fmt.Errorf("invalid --request-timeout %q", g.global.timeout)
		}
	}
	c.Impersonate = rest.ImpersonationConfig{UserName: g.global.as, Groups: g.global.asGroups, UID: g.global.asUID}
	if g.errOut != nil {
		c.WarningHandler = rest.NewWarningWriter(g.errOut, rest.WarningWriterOptions{Deduplicate: true})
	}
	c.Wrap(func(rt http.RoundTripper) http.RoundTripper { return boundTransport{g.ctx, rt} })
	return c, nil
}

func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return g.k.disc, nil
}

func (g *getter) ToRESTMapper() (meta.RESTMapper, error) {
	return restmapper.NewShortcutExpander(g.k.mapper, g.k.disc, nil), nil
}

func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	config := clientcmdapi.Config{
		CurrentContext: contextName,
		Contexts:       map[string]*clientcmdapi.Context{contextName: {Cluster: contextName, AuthInfo: "learner", Namespace: g.k.namespace()}},
		Clusters:       map[string]*clientcmdapi.Cluster{contextName: {Server: "https://kubernetes", CertificateAuthorityData: g.k.c.CAPEM}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"learner": {}},
	}
	return clientcmd.NewDefaultClientConfig(config, &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.global.namespace}})
}

// boundTransport ends requests when the command's context does.
type boundTransport struct {
	ctx context.Context
	rt  http.RoundTripper
}

func (b boundTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := context.AfterFunc(b.ctx, func() { cancel(b.ctx.Err()) })
	resp, err := b.rt.RoundTrip(req.WithContext(ctx))
	if err != nil {
		stop()
		cancel(nil)
		return nil, err
	}
	resp.Body = &boundBody{resp.Body, func() { stop(); cancel(nil) }}
	return resp, nil
}

func (b boundTransport) WrappedRoundTripper() http.RoundTripper { return b.rt }

type boundBody struct {
	io.ReadCloser
	end func()
}

func (b *boundBody) Close() error {
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// globalFlags are the flags that every command takes.
type globalFlags struct {
	namespace, context, timeout, as, asUID string
	asGroups                               []string
	warningsAsErrors                       bool
}

func (g *globalFlags) add(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVarP(&g.namespace, "namespace", "n", "", "If present, the namespace scope for this CLI request")
	f.StringVar(&g.context, "context", "", "The name of the kubeconfig context to use (here there is only "+contextName+")")
	f.StringVar(&g.timeout, "request-timeout", "0", "The length of time to wait before giving up on a single server request")
	f.StringVar(&g.as, "as", "", "Username to impersonate for the operation")
	f.StringVar(&g.asUID, "as-uid", "", "UID to impersonate for the operation")
	f.BoolVar(&g.warningsAsErrors, "warnings-as-errors", false, "Treat warnings received from the server as errors and exit with a non-zero exit code")
	f.StringArrayVar(&g.asGroups, "as-group", nil, "Group to impersonate for the operation; can be repeated")
}
