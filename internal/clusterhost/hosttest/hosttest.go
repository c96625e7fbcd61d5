// Package hosttest runs a cluster host for tests of other packages and looks at it
// as a client does.
package hosttest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
	"kubistro/internal/testprocess"
)

// Patience bounds every wait: the machine may be busy with others.
const Patience = 3 * time.Minute

// Host is a cluster that runs.
type Host struct {
	API     *controlapi.Client
	Client  *kubernetes.Clientset
	Dynamic dynamic.Interface

	dir    string
	mapper *restmapper.DeferredDiscoveryRESTMapper
	cmd    *exec.Cmd
	wait   func() error
}

// Start runs a cluster of a shape until it is ready; Stop ends it.
func Start(spec lab.ClusterSpec) (*Host, error) {
	program := os.Getenv("KUBISTRO_CLUSTERHOST")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("these tests need the cluster host: build it (make build) and name it in KUBISTRO_CLUSTERHOST: %w", err)
	}
	dir, err := os.MkdirTemp("", "hosttest")
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(spec)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, controlapi.FileSpec), raw, 0o600)
	}
	h := &Host{dir: dir, API: controlapi.New(dir), cmd: exec.Command(program, "run", "--dir", dir)}
	var out bytes.Buffer
	h.cmd.Stdout, h.cmd.Stderr = &out, &out
	if err == nil {
		h.wait, err = testprocess.Start(h.cmd, syscall.SIGKILL)
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if err := h.connect(); err != nil {
		h.Stop()
		return nil, fmt.Errorf("%w\n%s", err, out.String())
	}
	return h, nil
}

func (h *Host) connect() error {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if err := poll(ctx, func() string {
		s, err := h.API.Status(ctx)
		if err != nil || !s.Ready {
			return fmt.Sprintf("isn't ready: %s %v", s.Problem, err)
		}
		return ""
	}); err != nil {
		return err
	}
	cfg, err := h.API.RESTConfig(ctx)
	if err != nil {
		return err
	}
	if h.Client, err = kubernetes.NewForConfig(cfg); err != nil {
		return err
	}
	h.Dynamic, err = dynamic.NewForConfig(cfg)
	h.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(h.Client.Discovery()))
	return err
}

// Stop ends the cluster and deletes its folder.
func (h *Host) Stop() {
	h.cmd.Process.Signal(os.Interrupt)
	h.wait()
	h.API.Close()
	os.RemoveAll(h.dir)
}

// poll calls check until it returns "", which says what is still wrong.
func poll(ctx context.Context, check func() string) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last := "there was no time to look"
	for {
		wrong := check()
		if wrong == "" {
			return nil
		}
		if ctx.Err() == nil { // else it may only say that
			last = wrong
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New(last)
		}
	}
}

// Until waits until check returns "", which says what is still wrong.
func (h *Host) Until(t *testing.T, check func(context.Context) string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	if err := poll(ctx, func() string { return check(ctx) }); err != nil {
		t.Fatal(err)
	}
}

// Apply creates or replaces the objects of a manifest as kubectl apply --server-side
// does; without a namespace of their own they are in default. Kinds that a definition has
// just brought are waited for.
func (h *Host) Apply(t *testing.T, manifest []byte) {
	t.Helper()
	dec := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := dec.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(u.Object) == 0 {
			continue
		}
		h.Until(t, func(ctx context.Context) string {
			r, err := h.resource(u)
			if err == nil {
				_, err = r.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: "test", Force: true})
			}
			switch {
			case err == nil:
				return ""
			case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
				h.mapper.Reset()
				return fmt.Sprintf("%s %s: %v", u.GetKind(), u.GetName(), err)
			}
			t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
			return ""
		})
	}
}

// Object finds an object; kind is as in manifests, group with version as in apiVersion.
func (h *Host) Object(ctx context.Context, apiVersion, kind, namespace, name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	u.SetNamespace(namespace)
	r, err := h.resource(u)
	if err != nil {
		return nil, err
	}
	return r.Get(ctx, name, metav1.GetOptions{})
}

func (h *Host) resource(u *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := u.GroupVersionKind()
	m, err := h.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, err
	}
	if m.Scope.Name() == meta.RESTScopeNameRoot {
		return h.Dynamic.Resource(m.Resource), nil
	}
	if u.GetNamespace() == "" {
		u.SetNamespace(metav1.NamespaceDefault)
	}
	return h.Dynamic.Resource(m.Resource).Namespace(u.GetNamespace()), nil
}
