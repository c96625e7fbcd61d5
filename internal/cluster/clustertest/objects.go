package clustertest

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"kubistro/internal/lab"
)

// objects is a cluster's disk: objects by their path in the API, and the record
// of writes.
type objects struct {
	mu      sync.Mutex
	byPath  map[string]map[string]any
	lastUID int
	audit   []lab.AuditEntry
	more    chan struct{} // closed when audit grows
}

func newObjects(spec lab.ClusterSpec) *objects {
	o := &objects{byPath: map[string]map[string]any{}, more: make(chan struct{})}
	put := func(dir, name string, labels map[string]any) {
		o.create(dir, map[string]any{"metadata": map[string]any{"name": name, "labels": labels}}, "system:node:"+name)
	}
	put("/api/v1/nodes", "office", nil)
	for _, k := range spec.Kitchens {
		l := map[string]any{}
		for k, v := range k.Labels {
			l[k] = v
		}
		put("/api/v1/nodes", k.Name, l)
	}
	for p, n := range o.byPath {
		if strings.HasPrefix(p, "/api/v1/nodes/") {
			n["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
		}
	}
	put("/api/v1/namespaces/default/serviceaccounts", "default", nil)
	return o
}

func meta(object map[string]any) map[string]any {
	m, _ := object["metadata"].(map[string]any)
	if m == nil {
		m = map[string]any{}
		object["metadata"] = m
	}
	return m
}

// create stores an object below the path of its collection; nil when it exists.
func (o *objects) create(dir string, object map[string]any, user string) any {
	o.mu.Lock()
	defer o.mu.Unlock()
	m := meta(object)
	name, _ := m["name"].(string)
	p := path.Join(dir, name)
	if o.byPath[p] != nil || name == "" {
		return nil
	}
	o.lastUID++
	m["uid"] = fmt.Sprintf("00000000-0000-0000-0000-%012d", o.lastUID)
	if f := strings.Split(dir, "/namespaces/"); len(f) == 2 {
		m["namespace"], _, _ = strings.Cut(f[1], "/")
	}
	o.byPath[p] = object
	o.record("create", p, user)
	if path.Base(dir) == "deployments" {
		o.work(p, object)
	}
	return object
}

// work does what the controllers would do with a new Deployment, in one go.
func (o *objects) work(p string, object map[string]any) {
	spec, _ := object["spec"].(map[string]any)
	replicas, _ := spec["replicas"].(float64)
	template, _ := spec["template"].(map[string]any)
	pods := "/api/v1/namespaces/" + fmt.Sprint(meta(object)["namespace"]) + "/pods"
	for i := range int(replicas) {
		o.lastUID++
		name := fmt.Sprintf("%s-%d", path.Base(p), i)
		o.byPath[path.Join(pods, name)] = map[string]any{
			"metadata": map[string]any{"name": name, "namespace": meta(object)["namespace"], "labels": meta(template)["labels"], "uid": fmt.Sprint(o.lastUID)},
			"spec":     template["spec"],
			"status": map[string]any{"phase": "Running", "podIP": fmt.Sprintf("10.244.1.%d", o.lastUID%250+1),
				"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
		}
		o.record("create", path.Join(pods, name), "system:serviceaccount:kube-system:replicaset-controller")
	}
	object["status"] = map[string]any{"readyReplicas": replicas, "availableReplicas": replicas, "replicas": replicas}
}

func (o *objects) update(p string, object map[string]any, user string) any {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byPath[p] == nil {
		return nil
	}
	o.byPath[p] = object
	o.record("update", p, user)
	return object
}

func (o *objects) delete(p, user string) any {
	o.mu.Lock()
	defer o.mu.Unlock()
	object := o.byPath[p]
	if object == nil {
		return nil
	}
	o.record("delete", p, user)
	delete(o.byPath, p)
	return object
}

// get finds an object, or lists a collection; nil when there is no such object.
func (o *objects) get(p, selector string) any {
	o.mu.Lock()
	defer o.mu.Unlock()
	if object := o.byPath[p]; object != nil {
		return object
	}
	kind, version := listKind(path.Base(p))
	if kind == "" {
		return nil
	}
	want, err := labels.Parse(selector)
	if err != nil {
		return nil
	}
	items := []any{}
	for _, q := range slices.Sorted(maps.Keys(o.byPath)) {
		if path.Dir(q) != p {
			continue
		}
		have := labels.Set{}
		l, _ := meta(o.byPath[q])["labels"].(map[string]any)
		for k, v := range l {
			have[k] = fmt.Sprint(v)
		}
		if want.Matches(have) {
			items = append(items, o.byPath[q])
		}
	}
	return map[string]any{"kind": kind, "apiVersion": version, "items": items}
}

// listKind is the kind of a collection; empty when the path isn't one.
func listKind(resource string) (kind, version string) {
	switch resource {
	case "nodes":
		return "NodeList", "v1"
	case "pods":
		return "PodList", "v1"
	case "configmaps":
		return "ConfigMapList", "v1"
	case "serviceaccounts":
		return "ServiceAccountList", "v1"
	case "deployments":
		return "DeploymentList", "apps/v1"
	}
	return "", ""
}

// podWithIP finds the name of a Pod; empty when none has the address.
func (o *objects) podWithIP(ip string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	for p, object := range o.byPath {
		status, _ := object["status"].(map[string]any)
		if path.Base(path.Dir(p)) == "pods" && status["podIP"] == ip {
			return path.Base(p)
		}
	}
	return ""
}

// record adds to the record of writes.
func (o *objects) record(verb, p, user string) {
	e := lab.AuditEntry{N: uint64(len(o.audit) + 1), User: user, Verb: verb, Resource: path.Base(path.Dir(p)), Code: 200,
		Object: lab.ObjectRef{Name: path.Base(p), Namespace: fmt.Sprint(meta(o.byPath[p])["namespace"])}}
	if verb == "create" {
		e.Code = 201
	}
	o.audit = append(o.audit, e)
	close(o.more)
	o.more = make(chan struct{})
}

// audited lists the writes after a number, and tells when there are more.
func (o *objects) audited(after uint64) ([]lab.AuditEntry, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.audit[min(int(after), len(o.audit)):]), o.more
}
