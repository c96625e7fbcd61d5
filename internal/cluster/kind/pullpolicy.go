package kind

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// maxIndex bounds the index of an image archive, in bytes.
const maxIndex = 4 << 20

// imagesIn lists the names of an archive's images: of docker save (manifest.json), and
// of an OCI layout (index.json) as containerd reads them.
func imagesIn(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var names []string
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return slices.Compact(names), nil
		}
		if err != nil {
			return nil, fmt.Errorf("image archive %s: %w", path, err)
		}
		if h.Name != "manifest.json" && h.Name != "index.json" {
			continue
		}
		var docker []struct{ RepoTags []string }
		var oci struct {
			Manifests []struct {
				Annotations map[string]string `json:"annotations"`
			} `json:"manifests"`
		}
		b, err := io.ReadAll(io.LimitReader(r, maxIndex))
		if err == nil && h.Name == "manifest.json" {
			err = json.Unmarshal(b, &docker)
		} else if err == nil {
			err = json.Unmarshal(b, &oci)
		}
		if err != nil {
			return nil, fmt.Errorf("image archive %s: %s: %w", path, h.Name, err)
		}
		for _, d := range docker {
			names = append(names, d.RepoTags...)
		}
		for _, m := range oci.Manifests {
			if name := m.Annotations["io.containerd.image.name"]; name != "" {
				names = append(names, name)
			}
		}
	}
}

// spellings are the ways in which a manifest may write an image's name.
func spellings(names []string) []string {
	var out []string
	add := func(name string) {
		out = append(out, name)
		if bare, ok := strings.CutSuffix(name, ":latest"); ok {
			out = append(out, bare)
		}
	}
	for _, full := range names {
		add(full)
		if short, ok := strings.CutPrefix(full, "docker.io/"); ok {
			add(short)
			if official, ok := strings.CutPrefix(short, "library/"); ok {
				add(official)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// policyPull is the name of the mutating policy for images that every node has.
const policyPull = "kubistro-images"

// preferLoaded lets Pods use the images that were loaded into the nodes: without a tag the
// kubelet would ask the registry for each start, which a classroom may not reach.
func preferLoaded(ctx context.Context, dyn dynamic.Interface, names []string) error {
	if len(names) == 0 {
		return nil
	}
	list, err := json.Marshal(spellings(names)) // CEL writes lists of strings as JSON does
	if err != nil {
		return err
	}
	containers := func(field string) string {
		return fmt.Sprintf(`%s: object.spec.%s.filter(c, c.image in %s).map(c, Object.spec.%s{name: c.name, imagePullPolicy: "IfNotPresent"})`, field, field, list, field)
	}
	mutation := func(fields string) any {
		return map[string]any{"patchType": "ApplyConfiguration", "applyConfiguration": map[string]any{"expression": "Object{spec: Object.spec{" + fields + "}}"}}
	}
	for _, with := range []struct {
		name, condition, fields string
	}{
		{policyPull, `true`, containers("containers")},
		{policyPull + "-init", `has(object.spec.initContainers)`, containers("initContainers")},
	} {
		policy := map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicy", "metadata": map[string]any{"name": with.name},
			"spec": map[string]any{
				"failurePolicy": "Ignore", "reinvocationPolicy": "Never",
				"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
					"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"pods"}}}},
				"matchConditions": []any{map[string]any{"name": "has-containers", "expression": with.condition}},
				"mutations":       []any{mutation(with.fields)},
			},
		}
		binding := map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": map[string]any{"name": with.name},
			"spec": map[string]any{"policyName": with.name},
		}
		for resource, o := range map[string]map[string]any{"mutatingadmissionpolicies": policy, "mutatingadmissionpolicybindings": binding} {
			gvr := schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
			if _, err := dyn.Resource(gvr).Apply(ctx, with.name, &unstructured.Unstructured{Object: o}, metav1.ApplyOptions{FieldManager: labUser, Force: true}); err != nil {
				return fmt.Errorf("%s %s: %w", resource, with.name, err)
			}
		}
	}
	return nil
}
