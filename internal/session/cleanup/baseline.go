// Package cleanup makes a used cluster look new again: it remembers what a
// cluster had when it was new and later removes everything else, whatever a
// learner broke, restores what is missing or changed, and says so when it
// can't, so that the caller takes a fresh cluster instead.
package cleanup

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
)

// id names an object across versions of its API.
type id struct{ group, resource, namespace, name string }

func (i id) String() string {
	s := i.resource
	if i.group != "" {
		s += "." + i.group
	}
	if i.namespace != "" {
		s += " " + i.namespace + "/" + i.name
	} else {
		s += " " + i.name
	}
	return s
}

// original is an object as it was in the new cluster.
type original struct {
	Group     string `json:"group,omitempty"`
	Version   string `json:"version"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Hash      string `json:"hash"`
	// Object is what it is restored from; nil for what the cluster makes anew by
	// itself, and for Secrets, whose contents aren't written down.
	Object map[string]any `json:"object,omitempty"`
}

// Keep writes down what the cluster has, once: when the file is there already
// it does nothing.
func Keep(ctx context.Context, cfg *rest.Config, path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	c, err := newClient(cfg)
	if err != nil {
		return err
	}
	all, err := c.inventory(ctx)
	if err != nil {
		return err
	}
	var list []original
	for _, item := range all {
		if item.transient() {
			continue
		}
		o := original{
			Group: item.id.group, Version: item.version, Resource: item.id.resource,
			Namespace: item.id.namespace, Name: item.id.name, Hash: hash(item.object),
		}
		if item.id.resource != "secrets" {
			o.Object = stripped(item.object)
		}
		list = append(list, o)
	}
	return write(path, list)
}

// Forget removes a baseline.
func Forget(path string) { _ = os.Remove(path) } // a leftover file is harmless and goes with the session

func write(path string, list []original) (err error) {
	part, err := os.CreateTemp(filepath.Dir(path), "baseline-*.part")
	if err != nil {
		return fmt.Errorf("cleanup: keep baseline: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("cleanup: keep baseline: %w", err), os.Remove(part.Name()))
		}
	}()
	z := gzip.NewWriter(part)
	if err := errors.Join(json.NewEncoder(z).Encode(list), z.Close(), part.Close()); err != nil {
		return err
	}
	return os.Rename(part.Name(), path)
}

func read(path string) (map[id]original, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("cleanup: no baseline of this cluster")
	} else if err != nil {
		return nil, fmt.Errorf("cleanup: baseline: %w", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("cleanup: baseline: %w", err)
	}
	var list []original
	if err := json.NewDecoder(z).Decode(&list); err != nil {
		return nil, fmt.Errorf("cleanup: baseline: %w", err)
	}
	out := make(map[id]original, len(list))
	for _, o := range list {
		out[id{o.Group, o.Resource, o.Namespace, o.Name}] = o
	}
	return out, nil
}

// stripped is an object without what the API server gave it.
func stripped(o *unstructured.Unstructured) map[string]any {
	c := o.DeepCopy()
	delete(c.Object, "status")
	for _, field := range []string{"resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		unstructured.RemoveNestedField(c.Object, "metadata", field)
	}
	if _, aggregated := c.Object["aggregationRule"]; aggregated && c.GetKind() == "ClusterRole" {
		delete(c.Object, "rules") // a controller fills them in
	}
	notes := c.GetAnnotations()
	delete(notes, "deployment.kubernetes.io/revision")
	delete(notes, "deprecated.daemonset.template.generation")
	if len(notes) == 0 {
		notes = nil
	}
	c.SetAnnotations(notes)
	return c.Object
}

// hash tells whether anything that somebody wrote has changed.
func hash(o *unstructured.Unstructured) string {
	data, err := json.Marshal(stripped(o))
	if err != nil {
		return "unreadable"
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
