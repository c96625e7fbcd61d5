// Command kubistro-host is the Ingress and Gateway controller of the image
// kubistro/host as an ordinary program, for real containers. Simulated nodes run
// the same code in their own process.
package main

import (
	"context"
	"net"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/pantry/host"
)

func main() { os.Exit(run()) }

func run() int {
	name, err := os.Hostname()
	if err != nil {
		name = "localhost"
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	stop := make(chan struct{})
	go func() {
		<-signals
		close(stop)
	}()
	return host.Run(context.Background(), host.Env{
		Args: os.Args, Getenv: os.Getenv, ReadFile: os.ReadFile, Dial: new(net.Dialer).DialContext, Stdout: os.Stdout, Hostname: name,
		Listen: func(address string) (net.Listener, error) { return net.Listen("tcp", address) },
		Clock:  clock.RealClock{}, Stop: stop,
	})
}
