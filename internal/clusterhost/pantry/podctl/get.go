package podctl

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

func getFlags(f *pflag.FlagSet) {
	outputFlag(f)
	f.BoolP("all-namespaces", "A", false, "")
	f.StringP("selector", "l", "", "")
	f.String("field-selector", "", "")
	f.Bool("no-headers", false, "")
	f.Bool("show-labels", false, "")
	f.Bool("ignore-not-found", false, "")
}

// get prints objects as a table that the server makes, or in full.
func (r *run) get(ctx context.Context) error {
	targets, err := r.targets()
	if err != nil {
		return err
	}
	out, _ := r.flags.GetString("output")
	if out == "" || out == "wide" {
		return r.table(ctx, targets, out == "wide")
	}
	printer, err := printerFor(out)
	if err != nil {
		return err
	}
	var found []unstructured.Unstructured
	single := true
	for _, t := range targets {
		if len(t.names) == 0 {
			single = false
			list, err := r.list(t.RESTMapping).List(ctx, r.listOptions())
			if err != nil {
				return err
			}
			found = append(found, list.Items...)
			continue
		}
		for _, name := range t.names {
			o, err := r.at(t.RESTMapping).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				if r.forgives(err) {
					continue
				}
				return err
			}
			found = append(found, *o)
		}
	}
	if single && len(found) == 1 {
		return printer.PrintObj(&found[0], r.o.Out)
	}
	if single && len(found) == 0 {
		return nil
	}
	if out == "name" {
		for k := range found {
			if err := printer.PrintObj(&found[k], r.o.Out); err != nil {
				return err
			}
		}
		return nil
	}
	items := make([]any, len(found))
	for k := range found {
		items[k] = found[k].Object
	}
	return printer.PrintObj(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""}, "items": items,
	}}, r.o.Out)
}

// printerFor finds the printer for -o.
func printerFor(out string) (printers.ResourcePrinter, error) {
	kind, template, _ := strings.Cut(out, "=")
	switch kind {
	case "json":
		return &printers.OmitManagedFieldsPrinter{Delegate: &printers.JSONPrinter{}}, nil
	case "yaml":
		return &printers.OmitManagedFieldsPrinter{Delegate: &printers.YAMLPrinter{}}, nil
	case "name":
		return &printers.NamePrinter{}, nil
	case "jsonpath":
		p, err := printers.NewJSONPathPrinter(template)
		if err != nil {
			return nil, wrong("error parsing jsonpath %s, %v", template, err)
		}
		p.AllowMissingKeys(true)
		return p, nil
	case "go-template":
		p, err := printers.NewGoTemplatePrinter([]byte(template))
		if err != nil {
			return nil, wrong("error parsing template %s, %v", template, err)
		}
		p.AllowMissingKeys(true)
		return p, nil
	}
	return nil, wrong("unable to match a printer suitable for the output format %q, allowed formats are: go-template,json,jsonpath,name,wide,yaml", kind)
}

func (r *run) listOptions() metav1.ListOptions {
	labels, _ := r.flags.GetString("selector")
	fields, _ := r.flags.GetString("field-selector")
	return metav1.ListOptions{LabelSelector: labels, FieldSelector: fields}
}

func (r *run) all() bool {
	all, err := r.flags.GetBool("all-namespaces")
	return err == nil && all
}

func (r *run) list(m *meta.RESTMapping) lister {
	if r.all() {
		return r.dynamic.Resource(m.Resource)
	}
	return r.at(m)
}

type lister interface {
	List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error)
}

// table asks the server for tables: that is where kubectl get's columns come from.
func (r *run) table(ctx context.Context, targets []target, wide bool) error {
	noHeaders, _ := r.flags.GetBool("no-headers")
	labels, _ := r.flags.GetBool("show-labels")
	rows := 0
	for k, t := range targets {
		namespaced := t.Scope.Name() == meta.RESTScopeNameNamespace
		p := printers.NewTablePrinter(printers.PrintOptions{
			NoHeaders: noHeaders, Wide: wide, ShowLabels: labels, WithNamespace: r.all() && namespaced,
			WithKind: len(targets) > 1, Kind: t.GroupVersionKind.GroupKind(),
		})
		w := printers.GetNewTabWriter(r.o.Out)
		tables, err := r.tables(ctx, t)
		if err != nil {
			return err
		}
		if k > 0 && rows > 0 && len(tables) > 0 && len(tables[0].Rows) > 0 {
			fmt.Fprintln(w)
		}
		for _, table := range tables {
			rows += len(table.Rows)
			if len(table.Rows) == 0 {
				continue
			}
			if err := p.PrintObj(table, w); err != nil {
				return err
			}
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if rows == 0 {
		if len(targets) > 0 && targets[0].Scope.Name() == meta.RESTScopeNameNamespace && !r.all() {
			if len(targets[0].names) == 0 {
				fmt.Fprintf(r.o.Err, "No resources found in %s namespace.\n", r.namespace())
			}
		} else if len(targets[0].names) == 0 {
			fmt.Fprintln(r.o.Err, "No resources found")
		}
	}
	return nil
}

const tableAccept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

func (r *run) tables(ctx context.Context, t target) ([]*metav1.Table, error) {
	c := rest.CopyConfig(r.config)
	gv := t.Resource.GroupVersion()
	c.GroupVersion, c.NegotiatedSerializer, c.APIPath = &gv, scheme.Codecs.WithoutConversion(), "/apis"
	if gv.Group == "" {
		c.APIPath = "/api"
	}
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, err
	}
	names := t.names
	if len(names) == 0 {
		names = []string{""}
	}
	var out []*metav1.Table
	for _, name := range names {
		req := client.Get().Resource(t.Resource.Resource).SetHeader("Accept", tableAccept)
		if t.Scope.Name() == meta.RESTScopeNameNamespace && !r.all() {
			req = req.Namespace(r.namespace())
		}
		if name != "" {
			req = req.Name(name)
		} else {
			o := r.listOptions()
			req = req.Param("labelSelector", o.LabelSelector).Param("fieldSelector", o.FieldSelector).Param("limit", "500")
		}
		raw, err := req.Do(ctx).Raw()
		if err != nil {
			if err = apiError(raw, err); r.forgives(err) {
				continue
			}
			return nil, err
		}
		table := &metav1.Table{}
		if err := decodeTable(raw, table); err != nil {
			return nil, err
		}
		out = append(out, table)
	}
	return out, nil
}

// decodeTable reads a table; its rows' objects are needed for names and labels.
func decodeTable(raw []byte, table *metav1.Table) error {
	if err := json.Unmarshal(raw, table); err != nil {
		return err
	}
	for k := range table.Rows {
		o := &metav1.PartialObjectMetadata{}
		if err := json.Unmarshal(table.Rows[k].Object.Raw, o); err != nil {
			return err
		}
		table.Rows[k].Object.Object = o
	}
	return nil
}

// apiError makes the server's status of a raw answer.
func apiError(raw []byte, err error) error {
	var s metav1.Status
	if json.Unmarshal(raw, &s) == nil && s.Kind == "Status" && s.Message != "" {
		return &apierrors.StatusError{ErrStatus: s}
	}
	return err
}

// forgives follows --ignore-not-found.
func (r *run) forgives(err error) bool {
	ignore, _ := r.flags.GetBool("ignore-not-found")
	return ignore && apierrors.IsNotFound(err)
}
