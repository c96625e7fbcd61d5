package podctl

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

func fileFlags(f *pflag.FlagSet) {
	outputFlag(f)
	f.StringArrayP("filename", "f", nil, "")
	f.String("dry-run", "none", "")
}

// document is one object of a manifest with its kind.
type document struct {
	*unstructured.Unstructured
	m *meta.RESTMapping
}

// documents reads the objects of all files of -f.
func (r *run) documents() ([]document, error) {
	files, _ := r.flags.GetStringArray("filename")
	if len(files) == 0 {
		return nil, wrong("must specify one of -f and -k")
	}
	var out []document
	for _, name := range files {
		raw, err := r.read(name)
		if err != nil {
			return nil, err
		}
		d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)
		for {
			o := &unstructured.Unstructured{}
			if err := d.Decode(&o.Object); err == io.EOF {
				break
			} else if err != nil {
				return nil, wrong("error parsing %s: %v", name, err)
			}
			if len(o.Object) == 0 {
				continue
			}
			items := []*unstructured.Unstructured{o}
			if o.IsList() {
				list, err := o.ToList()
				if err != nil {
					return nil, wrong("error parsing %s: %v", name, err)
				}
				items = items[:0]
				for k := range list.Items {
					items = append(items, &list.Items[k])
				}
			}
			for _, item := range items {
				d, err := r.document(item, name)
				if err != nil {
					return nil, err
				}
				out = append(out, d)
			}
		}
	}
	if len(out) == 0 {
		return nil, wrong("no objects passed to %s", r.flags.Name())
	}
	return out, nil
}

// document finds the kind of an object from a file.
func (r *run) document(o *unstructured.Unstructured, file string) (document, error) {
	gvk := o.GroupVersionKind()
	m, err := r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		return document{}, wrong("resource mapping not found for name: %q namespace: %q from %q: no matches for kind %q in version %q\nensure CRDs are installed first", o.GetName(), o.GetNamespace(), file, gvk.Kind, gvk.GroupVersion())
	} else if err != nil {
		return document{}, err
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace && o.GetNamespace() == "" {
		o.SetNamespace(r.namespace())
	}
	return document{o, m}, nil
}

func (r *run) of(d document) resource {
	if d.m.Scope.Name() == meta.RESTScopeNameNamespace {
		return r.dynamic.Resource(d.m.Resource).Namespace(d.GetNamespace())
	}
	return r.dynamic.Resource(d.m.Resource)
}

// resource is what of a dynamic client is used here.
type resource interface {
	Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error)
	Create(context.Context, *unstructured.Unstructured, metav1.CreateOptions, ...string) (*unstructured.Unstructured, error)
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (*unstructured.Unstructured, error)
	Delete(context.Context, string, metav1.DeleteOptions, ...string) error
}

func (r *run) dryRun() (server []string, suffix string, err error) {
	switch how, _ := r.flags.GetString("dry-run"); how {
	case "none":
	case "server":
		return []string{metav1.DryRunAll}, " (server dry run)", nil
	default:
		return nil, "", wrong("--dry-run=%s isn't available in this simulated container; server is", how)
	}
	return nil, "", nil
}

func (r *run) create(ctx context.Context) error {
	docs, err := r.documents()
	if err != nil {
		return err
	}
	dry, suffix, err := r.dryRun()
	if err != nil {
		return err
	}
	for _, d := range docs {
		o, err := r.of(d).Create(ctx, d.Unstructured, metav1.CreateOptions{DryRun: dry, FieldManager: "kubectl-create"})
		if err != nil {
			return err
		}
		fmt.Fprintf(r.o.Out, "%s created%s\n", shown(d.m, o.GetName()), suffix)
	}
	return nil
}

// lastApplied is kubectl's annotation for its three-way merge.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// apply is kubectl's client-side apply: cmd/apply/patcher.go.
func (r *run) apply(ctx context.Context) error {
	docs, err := r.documents()
	if err != nil {
		return err
	}
	dry, suffix, err := r.dryRun()
	if err != nil {
		return err
	}
	for _, d := range docs {
		said, err := r.applyOne(ctx, d, dry)
		if err != nil {
			return err
		}
		fmt.Fprintf(r.o.Out, "%s %s%s\n", shown(d.m, d.GetName()), said, suffix)
	}
	return nil
}

func (r *run) applyOne(ctx context.Context, d document, dry []string) (said string, err error) {
	modified, err := withLastApplied(d.Unstructured)
	if err != nil {
		return "", err
	}
	const manager = "kubectl-client-side-apply"
	live, err := r.of(d).Get(ctx, d.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON(modified); err != nil {
			return "", err
		}
		_, err = r.of(d).Create(ctx, o, metav1.CreateOptions{DryRun: dry, FieldManager: manager})
		return "created", err
	} else if err != nil {
		return "", err
	}
	current, err := live.MarshalJSON()
	if err != nil {
		return "", err
	}
	original := []byte(live.GetAnnotations()[lastApplied])
	patch, kind := []byte(nil), types.MergePatchType
	if typed, newErr := scheme.Scheme.New(d.GroupVersionKind()); newErr == nil {
		kind = types.StrategicMergePatchType
		lookup, metaErr := strategicpatch.NewPatchMetaFromStruct(typed)
		if metaErr != nil {
			return "", metaErr
		}
		patch, err = strategicpatch.CreateThreeWayMergePatch(original, modified, current, lookup, true)
	} else {
		if len(original) == 0 {
			original = []byte("{}")
		}
		patch, err = jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
	}
	if err != nil {
		return "", err
	}
	if string(patch) == "{}" {
		return "unchanged", nil
	}
	got, err := r.of(d).Patch(ctx, d.GetName(), kind, patch, metav1.PatchOptions{DryRun: dry, FieldManager: manager})
	if err != nil {
		return "", err
	}
	if got.GetResourceVersion() == live.GetResourceVersion() && len(dry) == 0 {
		return "unchanged", nil
	}
	return "configured", nil
}

// withLastApplied adds the annotation that holds the object itself: util/apply.go.
func withLastApplied(in *unstructured.Unstructured) ([]byte, error) {
	o := in.DeepCopy()
	a := maps.Clone(o.GetAnnotations())
	if a == nil {
		a = map[string]string{}
	}
	delete(a, lastApplied)
	o.SetAnnotations(a)
	plain, err := o.MarshalJSON() // ends with a newline, as kubectl's does
	if err != nil {
		return nil, err
	}
	a[lastApplied] = string(plain)
	o.SetAnnotations(a)
	return o.MarshalJSON()
}
