package podctl

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

func deleteFlags(f *pflag.FlagSet) {
	fileFlags(f)
	f.StringP("selector", "l", "", "")
	f.String("field-selector", "", "")
	f.Bool("all", false, "")
	f.Bool("ignore-not-found", false, "")
	f.Int64("grace-period", -1, "")
	f.Bool("force", false, "")
	f.Bool("now", false, "")
	f.Bool("wait", true, "")
	f.Duration("timeout", 0, "")
}

func (r *run) delete(ctx context.Context) error {
	var victims []document
	if files, _ := r.flags.GetStringArray("filename"); len(files) > 0 {
		docs, err := r.documents()
		if err != nil {
			return err
		}
		victims = docs
	} else {
		named, err := r.named(ctx)
		if err != nil {
			return err
		}
		victims = named
	}
	if len(victims) == 0 {
		fmt.Fprintln(r.o.Out, "No resources found")
		return nil
	}
	o := metav1.DeleteOptions{PropagationPolicy: ptrTo(metav1.DeletePropagationBackground)}
	grace, _ := r.flags.GetInt64("grace-period")
	if now, _ := r.flags.GetBool("now"); now {
		grace = 1
	}
	if force, _ := r.flags.GetBool("force"); force && grace < 0 {
		grace = 0
	}
	if grace >= 0 {
		o.GracePeriodSeconds = &grace
	}
	var gone []document
	for _, d := range victims {
		if err := r.of(d).Delete(ctx, d.GetName(), o); err != nil {
			if r.forgives(err) {
				continue
			}
			return err
		}
		where := ""
		if d.m.Scope.Name() == meta.RESTScopeNameNamespace {
			where = " from " + d.GetNamespace() + " namespace"
		}
		fmt.Fprintf(r.o.Out, "%s %q deleted%s\n", strings.TrimSuffix(shown(d.m, ""), "/"), d.GetName(), where)
		gone = append(gone, d)
	}
	if wait, _ := r.flags.GetBool("wait"); !wait || grace == 0 {
		return nil
	}
	ctx, cancel := r.within(ctx)
	defer cancel()
	for _, d := range gone {
		if err := r.untilGone(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// untilGone waits until the object isn't there any more.
func (r *run) untilGone(ctx context.Context, d document) error {
	t := time.NewTicker(300 * time.Millisecond)
	defer t.Stop()
	for {
		o, err := r.of(d).Get(ctx, d.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err), err == nil && d.GetUID() != "" && o.GetUID() != d.GetUID():
			return nil
		case ctx.Err() != nil:
			return wrong("timed out waiting for the condition on %s", shown(d.m, d.GetName()))
		case err != nil:
			return err
		}
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
}

// named are the objects that the arguments, -l and --all mean.
func (r *run) named(ctx context.Context) ([]document, error) {
	targets, err := r.targets()
	if err != nil {
		return nil, err
	}
	var out []document
	for _, t := range targets {
		for _, name := range t.names {
			o := &unstructured.Unstructured{Object: map[string]any{}}
			o.SetName(name)
			o.SetNamespace(r.namespace())
			out = append(out, document{o, t.RESTMapping})
		}
		if len(t.names) > 0 {
			continue
		}
		all, err := r.flags.GetBool("all")
		o := r.listOptions()
		if err != nil || !all && o.LabelSelector == "" && o.FieldSelector == "" {
			return nil, wrong("resource(s) were provided, but no name was specified")
		}
		list, err := r.at(t.RESTMapping).List(ctx, o)
		if err != nil {
			return nil, err
		}
		for k := range list.Items {
			out = append(out, document{&list.Items[k], t.RESTMapping})
		}
	}
	return out, nil
}

func scaleFlags(f *pflag.FlagSet) { outputFlag(f); f.Int("replicas", -1, "") }

func (r *run) scale(ctx context.Context) error {
	n, _ := r.flags.GetInt("replicas")
	if n < 0 {
		return wrong("required flag(s) \"replicas\" not set")
	}
	docs, err := r.named(ctx)
	if err != nil {
		return err
	}
	for _, d := range docs {
		patch := []byte(`{"spec":{"replicas":` + strconv.Itoa(n) + `}}`)
		if _, err := r.of(d).Patch(ctx, d.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-scale"}, "scale"); err != nil {
			return err
		}
		fmt.Fprintf(r.o.Out, "%s scaled\n", shown(d.m, d.GetName()))
	}
	return nil
}

func patchFlags(f *pflag.FlagSet) {
	outputFlag(f)
	f.StringP("patch", "p", "", "")
	f.String("type", "strategic", "")
	f.String("subresource", "", "")
}

func (r *run) patch(ctx context.Context) error {
	text, _ := r.flags.GetString("patch")
	kind, _ := r.flags.GetString("type")
	if text == "" {
		return wrong("must specify --patch or --patch-file containing the contents of the patch")
	}
	how, ok := map[string]types.PatchType{"strategic": types.StrategicMergePatchType, "merge": types.MergePatchType, "json": types.JSONPatchType}[kind]
	if !ok {
		return wrong("--type must be one of [json merge strategic], not %q", kind)
	}
	body, err := utilyaml.ToJSON([]byte(text))
	if err != nil {
		return wrong("unable to parse %q: %v", text, err)
	}
	docs, err := r.named(ctx)
	if err != nil {
		return err
	}
	var sub []string
	if s, _ := r.flags.GetString("subresource"); s != "" {
		sub = []string{s}
	}
	for _, d := range docs {
		before, err := r.of(d).Get(ctx, d.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		after, err := r.of(d).Patch(ctx, d.GetName(), how, body, metav1.PatchOptions{FieldManager: "kubectl-patch"}, sub...)
		if err != nil {
			return err
		}
		said := "patched"
		if before.GetResourceVersion() == after.GetResourceVersion() {
			said = "patched (no change)"
		}
		fmt.Fprintf(r.o.Out, "%s %s\n", shown(d.m, d.GetName()), said)
	}
	return nil
}

func labelFlags(f *pflag.FlagSet) {
	outputFlag(f)
	f.Bool("overwrite", false, "")
	f.StringP("selector", "l", "", "")
	f.String("field-selector", "", "")
	f.Bool("all", false, "")
}

// label sets or takes away labels or annotations: KEY=VALUE and KEY-.
func (r *run) label(ctx context.Context, field, said string) error {
	var objects []string
	change := map[string]any{}
	for _, a := range r.args {
		key, value, sets := strings.Cut(a, "=")
		switch {
		case sets:
			change[key] = value
		case strings.HasSuffix(a, "-"):
			change[strings.TrimSuffix(a, "-")] = nil
		default:
			objects = append(objects, a)
		}
	}
	if len(change) == 0 {
		return wrong("at least one %s update is required", strings.TrimSuffix(field, "s"))
	}
	r.args = objects
	docs, err := r.named(ctx)
	if err != nil {
		return err
	}
	overwrite, _ := r.flags.GetBool("overwrite")
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{field: change}})
	if err != nil {
		return err
	}
	for _, d := range docs {
		old, err := r.of(d).Get(ctx, d.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		have, _, _ := unstructured.NestedStringMap(old.Object, "metadata", field)
		for key, value := range change {
			if was, ok := have[key]; ok && value != nil && was != value && !overwrite {
				return wrong("'%s' already has a value (%s), and --overwrite is false", key, was)
			}
		}
		if _, err := r.of(d).Patch(ctx, d.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: "kubectl-label"}); err != nil {
			return err
		}
		fmt.Fprintf(r.o.Out, "%s %s\n", shown(d.m, d.GetName()), said)
	}
	return nil
}

func ptrTo[T any](v T) *T { return &v }
