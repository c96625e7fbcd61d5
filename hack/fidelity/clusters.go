package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"kubistro/hack/relay"
	"kubistro/internal/cluster"
	"kubistro/internal/cluster/embedded"
	"kubistro/internal/cluster/kind"
	"kubistro/internal/lab"
)

// kubernetesCluster is a running cluster with all ways into it.
type kubernetesCluster struct {
	name     string // of the driver, with a number if there are two
	instance cluster.Instance
	client   kubernetes.Interface
	dynamic  dynamic.Interface
	relay    *relay.Relay
	kubectl  string
	home     string // HOME of kubectl: its cache of what the API server serves
	end      func()
}

// spec is small enough for any machine and has what scenarios count on.
func spec() lab.ClusterSpec {
	var s lab.ClusterSpec
	for _, n := range []string{"1", "2"} {
		s.Kitchens = append(s.Kitchens, lab.Kitchen{Name: "kitchen-" + n, CPU: "1", Memory: "1Gi", Labels: map[string]string{"kitchen": n}})
	}
	return s
}

// startCluster starts a cluster of a driver, or takes the one that an earlier run kept.
func startCluster(ctx context.Context, o options, name string) (*kubernetesCluster, error) {
	dir := filepath.Join(o.out, name)
	driver, err := newDriver(o, strings.TrimRight(name, "0123456789"), dir)
	if err != nil {
		return nil, err
	}
	const id = "fidelity"
	instance, err := takeOver(ctx, driver, id)
	if err != nil {
		instance, err = driver.Create(ctx, id, spec(), func(st lab.Stage) {})
	}
	if err != nil {
		driver.(interface{ Close() error }).Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	k := &kubernetesCluster{name: name, instance: instance, kubectl: o.kubectl, home: filepath.Join(dir, "home")}
	k.end = func() {
		if k.relay != nil {
			k.relay.Close()
		}
		if !o.keep {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			driver.Delete(ctx, id)
		}
		driver.(interface{ Close() error }).Close()
	}
	if err := k.open(); err != nil {
		k.end()
		return nil, err
	}
	return k, nil
}

func newDriver(o options, name, dir string) (cluster.Driver, error) {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	switch name {
	case "embedded":
		return embedded.New(embedded.Options{Dir: dir, Program: o.clusterhost, Memory: 1 << 30, EtcdQuota: 256 << 20, Orphan: time.Hour, Log: log})
	case "kind":
		return kind.New(kind.Options{Dir: dir, Agent: o.agent, Image: o.image, Archives: []string{o.archive}, Trusted: true, StartTimeout: 15 * time.Minute, Log: log})
	}
	return nil, fmt.Errorf("there is no driver %q", name)
}

// takeOver finds a cluster that runs.
func takeOver(ctx context.Context, d cluster.Driver, id string) (cluster.Instance, error) {
	found, err := d.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range found {
		if f.ID != id {
			continue
		}
		if in, err := d.(cluster.Adopter).Adopt(ctx, id); err == nil {
			return in, nil
		}
		if err := d.Delete(ctx, id); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("none runs")
}

func (k *kubernetesCluster) open() (err error) {
	config := k.instance.REST()
	if k.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if k.dynamic, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	if err := os.MkdirAll(k.home, 0o700); err != nil {
		return err
	}
	k.relay, err = relay.Listen(k.instance.DialAPI)
	return err
}

// writeConfig writes a kubeconfig for a namespace.
func (k *kubernetesCluster) writeConfig(path, namespace string) error {
	const name = "fidelity"
	rest := k.instance.REST()
	c := clientcmdapi.NewConfig()
	c.Clusters[name] = &clientcmdapi.Cluster{
		Server: "https://" + k.relay.Address(), TLSServerName: rest.ServerName, CertificateAuthorityData: rest.CAData,
	}
	c.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: rest.BearerToken}
	c.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	c.CurrentContext = name
	return clientcmd.WriteToFile(*c, path)
}
