package main

import (
	"errors"
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
)

// driverOptions are the flags about clusters, of serve and verify.
type driverOptions struct {
	driver      string
	clusterhost string
	max         int
	logLevel    string
}

func (o *driverOptions) flags(f *pflag.FlagSet) {
	f.StringVar(&o.driver, "driver", "embedded", "how clusters run: embedded")
	f.StringVar(&o.clusterhost, "clusterhost", "", "path of the clusterhost program (default: beside labserver, or in PATH)")
	f.IntVar(&o.max, "max", 0, "how many clusters may run at once (0: as many as fit into memory)")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
}

type closingDriver interface {
	cluster.Driver
	Close() error
}

func (o *driverOptions) open(dir string, log *slog.Logger) (closingDriver, error) {
	if o.driver != "embedded" {
		return nil, fmt.Errorf("--driver %s: there is only embedded", o.driver)
	}
	path, err := findClusterhost(o.clusterhost)
	if err != nil {
		return nil, err
	}
	return embedded.New(embedded.Options{Dir: dir, Program: path, Log: log})
}

// findClusterhost looks where the flag says, beside this program, and in PATH.
func findClusterhost(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "clusterhost")
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	if path, err := exec.LookPath("clusterhost"); err == nil {
		return path, nil
	}
	return "", errors.New("clusterhost isn't there: not beside labserver and not in PATH; build it with `make clusterhost` or name it with --clusterhost")
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
