// Command node-image builds the image that kind runs nodes from, out of Go modules
// and Debian packages, for machines that reach no container registry. It needs root,
// no container engine, and takes what it built before from a cache.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "node-image:", err)
		os.Exit(1)
	}
}

// builder makes the image. Not for concurrent use.
type builder struct {
	source string // folder of this program's sources
	cache  *cache
	log    io.Writer
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("node-image", flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("cache", "", "folder for what was built (default: kubistro/node-image in the user's cache folder)")
	only := flags.Bool("cached", false, "build nothing: fail if the image isn't in the cache")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		*dir = filepath.Join(base, "kubistro", "node-image")
	}
	module, err := command(ctx, "", nil, "go", "env", "GOMOD")
	if err != nil {
		return err
	}
	hack := filepath.Join(filepath.Dir(strings.TrimSpace(module)), "hack")
	b := &builder{source: filepath.Join(hack, "node-image"), log: stderr}
	hash, err := sources(b.source, filepath.Join(hack, "image"))
	if err != nil {
		return err
	}
	k := key(hash)
	tag, entry := "docker.io/kubistro/node:"+kubernetesVersion+"-"+k, "node-"+k+".tar"
	if *only {
		c := &cache{*dir}
		file, ok := c.find(entry)
		if !ok {
			return fmt.Errorf("the node image isn't in %s", *dir)
		}
		_, err := fmt.Fprintln(stdout, tag, file)
		return err
	}
	if b.cache, err = openCache(*dir); err != nil {
		return err
	}
	file, err := b.cache.entry(entry, func(file string) error {
		if err := b.requireTools(ctx); err != nil {
			return err
		}
		return b.node(ctx, file, tag)
	})
	if err != nil {
		return err
	}
	if err := b.cache.prune(); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, tag, file)
	return err
}

// step says what is done and, when the returned function is called, how long it took.
func (b *builder) step(what string) func() {
	fmt.Fprintf(b.log, "==> %s\n", what)
	start := time.Now()
	return func() { fmt.Fprintf(b.log, "    %s: %s\n", what, time.Since(start).Round(100*time.Millisecond)) }
}
