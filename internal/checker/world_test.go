package checker

import (
	"context"
	"io/fs"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"kubistro/internal/lab"
)

// world is a World made of YAML documents.
type world struct {
	objects  []map[string]any
	files    map[string]string
	answers  map[string]string
	events   []lab.Event
	respond  func(Request) (Response, error)
	fail     error // of every look at the cluster
	requests int
	visits   []Visit
	allowed  map[string]bool // by "user verb resource"
	etcd     map[string]string
}

// worldOf parses objects; their numbers are int64 as those of the dynamic client.
func worldOf(t *testing.T, manifests ...string) *world {
	t.Helper()
	w := &world{files: map[string]string{}, answers: map[string]string{}}
	for _, m := range manifests {
		for doc := range strings.SplitSeq(m, "\n---\n") {
			o := map[string]any{}
			if err := utilyaml.Unmarshal([]byte(doc), &o); err != nil {
				t.Fatalf("fixture: %v\n%s", err, doc)
			}
			w.objects = append(w.objects, o)
		}
	}
	return w
}

func namespaceOf(o map[string]any) string {
	if ns := text(o, "metadata", "namespace"); ns != "" {
		return ns
	}
	return "default"
}

func (w *world) Get(ctx context.Context, kind, namespace, name string) (map[string]any, error) {
	if w.fail != nil {
		return nil, w.fail
	}
	for _, o := range w.objects {
		if text(o, "kind") == kind && namespaceOf(o) == namespace && text(o, "metadata", "name") == name {
			return o, nil
		}
	}
	return nil, nil
}

func (w *world) List(ctx context.Context, kind, namespace, selector string) ([]map[string]any, error) {
	if w.fail != nil {
		return nil, w.fail
	}
	sel, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, o := range w.objects {
		if text(o, "kind") == kind && (namespace == "" || namespaceOf(o) == namespace) && sel.Matches(labels.Set(labelMap(o, "metadata", "labels"))) {
			out = append(out, o)
		}
	}
	return out, nil
}

func (w *world) Allowed(_ context.Context, a Access) (bool, error) {
	return w.allowed[a.User+" "+a.Verb+" "+a.Resource], w.fail
}

func (w *world) Stored(_ context.Context, key string) ([]byte, error) {
	if v, ok := w.etcd[key]; ok {
		return []byte(v), w.fail
	}
	return nil, w.fail
}

func (w *world) Request(ctx context.Context, r Request) (Response, error) {
	w.requests++
	if w.fail != nil {
		return Response{}, w.fail
	}
	return w.respond(r)
}

func (w *world) Visits(ctx context.Context, guests string) ([]Visit, error) {
	return w.visits, w.fail
}

func (w *world) Record(ctx context.Context) ([]lab.Event, error) { return w.events, w.fail }

func (w *world) Answer(ctx context.Context, check string) (string, bool) {
	a, ok := w.answers[check]
	return a, ok
}

func (w *world) File(ctx context.Context, path string) ([]byte, error) {
	if f, ok := w.files[path]; ok {
		return []byte(f), nil
	}
	return nil, fs.ErrNotExist
}

func compile(t *testing.T, s Spec) *Check {
	t.Helper()
	if s.ID == "" {
		s.ID = "check"
	}
	c, err := Compile(s)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return c
}

// want compares status and parts of the English message.
func want(t *testing.T, got lab.CheckResult, status lab.CheckStatus, parts ...string) {
	t.Helper()
	if got.Status != status {
		t.Fatalf("status %s, want %s: %+v", got.Status, status, got)
	}
	for _, p := range parts {
		if !strings.Contains(got.Message.En, p) {
			t.Errorf("message %q lacks %q", got.Message.En, p)
		}
	}
	if status == lab.CheckNotMet && len(got.Message.Missing()) > 0 {
		t.Errorf("message lacks a language: %+v", got.Message)
	}
}
