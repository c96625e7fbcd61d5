// Package karpenter is the contractor in Karpenter's way: the core of
// sigs.k8s.io/karpenter with a provider for the machines of the simulated cloud
// (package cloud). What it does to Pods, NodePools, NodeClaims and Nodes is Karpenter's own
// code; this package gives it the catalogue and a surrounding without files, sockets and
// flags of the host.
//
// It knows nothing of simulated nodes: all that it needs from the system it gets in an Env.
package karpenter

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"path"
	"runtime/debug"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"kubistro/internal/clusterhost/cloud"
)

// Env is the system as the program sees it. All fields are needed.
type Env struct {
	Args   []string
	Getenv func(string) string
	// Config is how to reach the API server, and Namespace where the program runs.
	Config    func() (*rest.Config, error)
	Namespace string
	Listen    func(address string) (net.Listener, error)
	Dial      func(ctx context.Context, network, address string) (net.Conn, error)
	Stdout    io.Writer
	Stderr    io.Writer
	Clock     clock.Clock
	// Validation is how long a consolidation is left to stand before it is looked at again and done.
	Validation func() time.Duration
	// Stop is closed for a graceful end.
	Stop <-chan struct{}
}

// Run works until ctx or Stop ends it and returns the exit code.
func Run(ctx context.Context, env Env) (code int) {
	defer func() { // Karpenter's own code ends by panic when it can't be set up
		if p := recover(); p != nil {
			fmt.Fprintf(env.Stderr, "panic: %v\n\n%s", p, debug.Stack())
			code = 2
		}
	}()
	o, endpoint, err := parse(env)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(env.Stderr, "%v\n", err)
		return 2
	}
	cfg, err := env.Config()
	if err != nil {
		fmt.Fprintf(env.Stderr, "unable to load in-cluster config: %v\n", err)
		return 1
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-env.Stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	client := cloud.NewClient(endpoint, env.Dial)
	defer client.Close()
	if err := operate(options.ToContext(ctx, o), env, o, cfg, client); err != nil && ctx.Err() == nil {
		fmt.Fprintf(env.Stderr, "%v\n", err)
		return 1
	}
	return 0
}

// parse reads the flags that Karpenter has, with its environment variables as their
// defaults, and where the cloud is.
func parse(env Env) (*options.Options, string, error) {
	o := new(options.Options)
	fs := &options.FlagSet{FlagSet: flag.NewFlagSet(path.Base(env.Args[0]), flag.ContinueOnError)}
	fs.SetOutput(env.Stderr)
	o.AddFlags(fs)
	endpoint := fs.String("cloud-endpoint", cloud.Endpoint, "Base URL of the simulated cloud's API")
	var err error
	fs.VisitAll(func(f *flag.Flag) {
		v := env.Getenv(strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")))
		if v == "" || err != nil {
			return
		}
		if e := f.Value.Set(v); e != nil {
			err = fmt.Errorf("invalid value %q for %s: %w", v, f.Name, e)
		}
	})
	if err != nil {
		return nil, "", err
	}
	if err := fs.FlagSet.Parse(env.Args[1:]); err != nil {
		return nil, "", err
	}
	if err := o.Parse(fs, env.Args[1:]...); err != nil { // ends the process for --help, which was parsed above
		return nil, "", err
	}
	if o.LeaderElectionNamespace == "" {
		o.LeaderElectionNamespace = env.Namespace // controller-runtime would look for it in the host's files
	}
	return o, *endpoint, nil
}
