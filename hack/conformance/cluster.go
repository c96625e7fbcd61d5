package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kubistro/hack/relay"
	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// cluster is a cluster host that runs, with a way in for programs that know TCP only.
type cluster struct {
	dir        string // throw-away: the cluster's folder, the kubeconfig, HOME of the tests
	kubeconfig string
	cmd        *exec.Cmd
	ended      chan struct{}
	client     *controlapi.Client
	relay      *relay.Relay
	stop       context.CancelFunc
	kept       sync.WaitGroup
}

// startCluster starts a cluster of two nodes, which tests take for granted, and waits until it is ready.
func startCluster(ctx context.Context, o options) (c *cluster, err error) {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return nil, err
	}
	host := filepath.Join(dir, "cluster")
	c = &cluster{dir: dir, ended: make(chan struct{}), client: controlapi.New(host)}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	spec := lab.ClusterSpec{Kitchens: []lab.Kitchen{
		{Name: "kitchen-1", CPU: "4", Memory: "8Gi"}, {Name: "kitchen-2", CPU: "4", Memory: "8Gi"},
	}}
	b, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(host, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(host, controlapi.FileSpec), b, 0o600); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(o.out, "clusterhost.log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	c.cmd = exec.Command(o.clusterhost, "run", "--dir", host, "--memory", "2Gi", "--etcd-quota", "512Mi")
	c.cmd.Stderr = log
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { c.cmd.Wait(); close(c.ended) }()
	if err := c.ready(ctx); err != nil {
		return nil, err
	}
	c.keep(ctx)
	return c, c.open(ctx)
}

// ready waits for the whole cluster.
func (c *cluster) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if s, err := c.client.Status(ctx); err == nil && s.Ready {
			return nil
		}
		select {
		case <-tick.C:
		case <-c.ended:
			return fmt.Errorf("the cluster host has ended: %v", c.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("the cluster isn't ready: %w", ctx.Err())
		}
	}
}

// keep asks for the status now and then: a cluster that nobody asks for ends.
func (c *cluster) keep(ctx context.Context) {
	ctx, c.stop = context.WithCancel(ctx)
	c.kept.Go(func() {
		tick := time.NewTicker(time.Minute)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.client.Status(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
}

// open starts the relay and writes the kubeconfig that leads through it.
func (c *cluster) open(ctx context.Context) error {
	access, err := c.client.Access(ctx)
	if err != nil {
		return err
	}
	if c.relay, err = relay.Listen(access.DialAPI); err != nil {
		return err
	}
	const name = "conformance"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server: "https://" + c.relay.Address(), TLSServerName: access.ServerName, CertificateAuthorityData: access.CAPEM,
	}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: access.Token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	c.kubeconfig = filepath.Join(c.dir, "kubeconfig")
	return clientcmd.WriteToFile(*config, c.kubeconfig)
}

// close ends the cluster host and removes everything.
func (c *cluster) close() {
	if c.stop != nil {
		c.stop()
		c.kept.Wait()
	}
	if c.relay != nil {
		c.relay.Close()
	}
	if c.cmd != nil && c.cmd.Process != nil {
		c.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-c.ended:
		case <-time.After(30 * time.Second):
			c.cmd.Process.Kill()
			<-c.ended
		}
	}
	c.client.Close()
	os.RemoveAll(c.dir)
}
