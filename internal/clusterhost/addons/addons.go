// Package addons holds what a cluster has from its first minute: the control
// plane's static Pods, cluster DNS, kube-proxy, the Pod network, the metrics
// server and the storage class with its provisioner, as kubeadm and kind make them,
// and the programs that those Pods run.
//
// The work behind most of these names is done by the cluster host itself (the
// virtual network answers DNS and translates Services); their programs say so in
// their logs. The metrics server is a real one over the simulated nodes.
package addons

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// waves are created one after the other: what Pods need comes before the Pods.
var waves = []string{"manifests/1-base.yaml", "manifests/2-workloads.yaml", "manifests/3-storage.yaml", "manifests/4-provisioner.yaml"}

// parallel bounds the requests at a time.
const parallel = 8

// object is a manifest and where it is created.
type object struct {
	path string // of the collection
	name string
	body []byte
}

// Install creates the cluster's own objects. It leaves alone what is there
// already, so it may run at every start. client must be a cluster-admin.
func Install(ctx context.Context, client kubernetes.Interface) error {
	for _, file := range waves {
		objects, err := read(file)
		if err != nil {
			return fmt.Errorf("addons: %w", err)
		}
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(parallel)
		for _, o := range objects {
			g.Go(func() error { return create(ctx, client, o) })
		}
		if err := g.Wait(); err != nil {
			return fmt.Errorf("addons: %w", err)
		}
	}
	return nil
}

func create(ctx context.Context, client kubernetes.Interface, o object) error {
	err := client.CoreV1().RESTClient().Post().AbsPath(o.path).SetHeader("Content-Type", "application/json").Body(o.body).Do(ctx).Error()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s/%s: %w", o.path, o.name, err)
	}
	return nil
}

// read splits a file into objects.
func read(file string) ([]object, error) {
	raw, err := manifests.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out []object
	for _, doc := range bytes.Split(raw, []byte("\n---\n")) {
		var m struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
			Metadata   struct {
				Name      string `json:"name"`
				Namespace string `json:"namespace"`
			} `json:"metadata"`
		}
		body, err := yaml.YAMLToJSONStrict(doc)
		if err == nil {
			err = json.Unmarshal(body, &m)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		out = append(out, object{collection(m.APIVersion, m.Kind, m.Metadata.Namespace), m.Metadata.Name, body})
	}
	return out, nil
}

// collection is the API path of a kind; the plural of each kind used here is regular.
func collection(apiVersion, kind, namespace string) string {
	p := "/apis/" + apiVersion
	if !strings.Contains(apiVersion, "/") {
		p = "/api/" + apiVersion
	}
	if namespace != "" {
		p += "/namespaces/" + namespace
	}
	if strings.HasSuffix(kind, "s") {
		kind += "e"
	}
	return p + "/" + strings.ToLower(kind) + "s"
}
