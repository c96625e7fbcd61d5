// Package host is the program of the image kubistro/host: a controller for
// Ingress and Gateway API that learners install with ordinary manifests. It
// watches the API through its Pod's service account and answers as Traefik does,
// whose flags it takes.
//
// It knows nothing of simulated nodes: all that it needs from the system it gets in an Env, so
// the same code runs in a simulated container and as a real program.
package host

import (
	"context"
	"io"
	"net"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Env is the system as the controller sees it. All fields but Used are needed.
type Env struct {
	Args     []string // Args[0] is the name it was called by; "traefik" makes it serve Traefik's classes
	Getenv   func(name string) string
	ReadFile func(name string) ([]byte, error)
	Listen   func(address string) (net.Listener, error)
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
	Stdout   io.Writer
	Hostname string
	Clock    clock.Clock
	Stop     <-chan struct{} // closed on SIGTERM: requests in flight are finished
	Used     func(cpu time.Duration)
}

// Version is what the program says of itself.
const Version = "1.0"

// Costs of a request, for what a simulated container's use is.
const requestCPU = 300 * time.Microsecond

// controller is one run of the program.
type controller struct {
	env  Env
	opts options
	log  *logger

	ingressController string // of IngressClasses
	gatewayController string // of GatewayClasses

	current atomic.Pointer[config] // what requests are answered by
	proxy   *proxy
	dirty   chan struct{} // a token: something that was watched has changed
	ready   atomic.Bool   // the first configuration is there
	ending  atomic.Bool
}

// Run runs the controller until Stop is closed or ctx ends, and returns the exit
// code. When it returns none of its goroutines is left.
func Run(ctx context.Context, env Env) int {
	opts, code, done := parse(env.Args[1:], env.Stdout)
	if done {
		return code
	}
	c := &controller{env: env, opts: opts, dirty: make(chan struct{}, 1)}
	c.log = newLogger(env.Stdout, env.Clock, opts.logLevel)
	c.ingressController, c.gatewayController = "kubistro.io/ingress-controller", "kubistro.io/gateway-controller"
	if path.Base(env.Args[0]) == "traefik" {
		c.ingressController, c.gatewayController = "traefik.io/ingress-controller", "traefik.io/gateway-controller"
	}
	for _, f := range opts.unknown {
		c.log.warn("This flag has no effect here", "flag", f)
	}
	c.log.info("kubistro/host version " + Version)
	c.proxy = newProxy(c)
	defer c.proxy.close()
	c.current.Store(&config{})

	servers, err := c.listen()
	if err != nil {
		c.log.fatal("command " + path.Base(env.Args[0]) + " error: " + err.Error())
		return 1
	}
	inner, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { c.watch(inner) })
	select {
	case <-ctx.Done():
	case <-env.Stop:
		c.log.info("I have to go...")
		c.ending.Store(true)
		c.log.info("Stopping server gracefully")
		grace, stop := context.WithTimeout(ctx, opts.graceTimeout)
		for _, s := range servers {
			wg.Go(func() { s.finish(grace) })
		}
		defer stop()
	}
	if ctx.Err() != nil {
		for _, s := range servers {
			s.close()
		}
	}
	for _, s := range servers {
		s.wait()
	}
	cancel()
	wg.Wait()
	if ctx.Err() != nil {
		return 137
	}
	c.log.info("Server stopped")
	c.log.info("Shutting down")
	return 0
}

// changed says that the configuration is to be made anew.
func (c *controller) changed() {
	select {
	case c.dirty <- struct{}{}:
	default:
	}
}

// used counts CPU time of one request.
func (c *controller) used() {
	if c.env.Used != nil {
		c.env.Used(requestCPU)
	}
}
