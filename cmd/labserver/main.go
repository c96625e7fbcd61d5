// Command labserver is the teaching restaurant's web server: it serves the pages, runs the learners'
// sessions and verifies lessons. Learners' clusters run in processes of their own (clusterhost).
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv)
	stop()
	os.Exit(code)
}
