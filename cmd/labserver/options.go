package main

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"kubistro/internal/cluster"
	"kubistro/internal/cluster/embedded"
	"kubistro/internal/cluster/kind"
)

// driverOptions are the flags about clusters, of serve and verify.
type driverOptions struct {
	driver       string
	clusterhost  string
	kindImage    string
	kindRuntime  string
	kindAgent    string
	kindInternal bool
	kindArchives []string
	trust        bool
	max          int
	logLevel     string
}

func (o *driverOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.driver, "driver", "embedded", "how clusters run: embedded (simulated nodes) or kind (containers of Docker, Podman or nerdctl)")
	f.StringVar(&o.clusterhost, "clusterhost", "", "path of the clusterhost program (default: beside labserver, or in PATH)")
	f.StringVar(&o.kindImage, "kind-image", "", "node image of kind clusters (default: the one of the kind release in use)")
	f.StringVar(&o.kindRuntime, "kind-runtime", "", "docker, nerdctl or podman (default: the first that is there)")
	f.StringVar(&o.kindAgent, "kind-agent", "", "path of the kind-agent program (default: beside labserver, or in PATH)")
	f.BoolVar(&o.kindInternal, "kind-internal", false, "labserver itself runs in a container on the network \"kind\"")
	f.StringSliceVar(&o.kindArchives, "kind-archive", nil, "image archive that every kind node gets (default: pantry.tar beside labserver, if it is there)")
	f.BoolVar(&o.trust, "trust-learners", false, "kind: learners are cluster-admins, and so root on this machine; allows addresses beyond loopback")
	f.IntVar(&o.max, "max", 0, "how many clusters may run at once (0: as many as fit into memory)")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
}

type closingDriver interface {
	cluster.Driver
	Close() error
}

func (o *driverOptions) open(dir string, log *slog.Logger) (closingDriver, error) {
	switch o.driver {
	case "embedded":
		path, err := findProgram(o.clusterhost, "clusterhost")
		if err != nil {
			return nil, err
		}
		return embedded.New(embedded.Options{Dir: dir, Program: path, Log: log})
	case "kind":
		path, err := findProgram(o.kindAgent, "kind-agent")
		if err != nil {
			return nil, err
		}
		return kind.New(kind.Options{
			Dir: dir, Agent: path, Image: o.kindImage, Runtime: o.kindRuntime, Internal: o.kindInternal,
			Archives: o.archives(), Trusted: o.trust, Log: log,
		})
	}
	return nil, fmt.Errorf("--driver %s: there are embedded and kind", o.driver)
}

// archives are the image archives for kind nodes.
func (o *driverOptions) archives() []string {
	if len(o.kindArchives) > 0 {
		return o.kindArchives
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "pantry.tar")
		if _, err := os.Stat(beside); err == nil {
			return []string{beside}
		}
	}
	return nil
}

// findProgram looks where the flag says, beside this program, and in PATH.
func findProgram(flag, name string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), name)
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%s isn't there: not beside labserver and not in PATH; build it with `make %s` or name it with --%s", name, name, name)
}

// loopback reports whether only this machine can reach an address.
func loopback(addr string) (bool, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false, fmt.Errorf("--addr %s: want HOST:PORT", addr)
	}
	if host == "localhost" {
		return true, nil
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback(), nil
}

const (
	warnBefore = 2 * time.Minute
	closeLimit = 60 * time.Second
)
