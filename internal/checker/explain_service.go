package checker

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"kubistro/internal/lab"
)

func readyColumn(pod map[string]any) string {
	ready, total := PodReady(pod)
	return fmt.Sprintf("%d/%d", ready, total)
}

// requestTrouble explains why the responses to a request of a Service aren't as expected.
func (r *run) requestTrouble(ctx context.Context, q RequestSpec, responses any) lab.Text {
	u, err := url.Parse(q.URL)
	if err != nil {
		return lab.Text{}
	}
	name, namespace, _ := strings.Cut(u.Hostname(), ".")
	if namespace, _, _ = strings.Cut(namespace, "."); namespace == "" {
		namespace = "default"
	}
	refused := false
	list, _ := responses.([]any)
	for _, v := range list {
		m, _ := v.(map[string]any)
		if text(m, "failure") == "no such host" {
			return textf("叢集裡沒有 %s 這個名字：有叫這個名字的 Service 嗎？", "Nobody in the cluster is called %s: is there a Service of that name?", u.Hostname())
		}
		refused = refused || text(m, "failure") == "refused"
	}
	svc, err := r.world.Get(ctx, "Service", namespace, name)
	if err != nil || svc == nil {
		return lab.Text{}
	}
	return r.serviceTrouble(ctx, svc, refused)
}

// serviceTrouble explains why a Service reaches nobody; nothing when it has ready
// addresses and no connection was refused.
func (r *run) serviceTrouble(ctx context.Context, svc map[string]any, refused bool) lab.Text {
	name, namespace := text(svc, "metadata", "name"), text(svc, "metadata", "namespace")
	sel := labelMap(svc, "spec", "selector")
	if len(sel) == 0 {
		return lab.Text{}
	}
	pods, err := r.world.List(ctx, "Pod", namespace, labels.Set(sel).String())
	if err != nil {
		return lab.Text{}
	}
	if len(pods) == 0 {
		return r.selectsNobody(ctx, svc, sel)
	}
	ready := slices.DeleteFunc(slices.Clone(pods), func(p map[string]any) bool { return !podReady(p) })
	if len(ready) == 0 {
		t := textf("Service %s 挑到了 Pod，但沒有一個就緒。", "Service %s picks Pods, but none of them is ready.", name)
		return join(t, podsTrouble(pods))
	}
	if refused {
		return textf("Service %s 有就緒的 Pod，但它們在 targetPort %s 上沒有人接聽。看看應用程式實際聽哪個連接埠。",
			"Service %s has ready Pods, but nobody in them listens on targetPort %s. See which port the application listens on.",
			name, targetPorts(svc))
	}
	return lab.Text{}
}

// selectsNobody compares a Service's selector with the labels that Pods carry.
func (r *run) selectsNobody(ctx context.Context, svc map[string]any, sel map[string]string) lab.Text {
	t := textf("Service %s 的 spec.selector 是 %s，沒有任何 Pod 符合，所以它的 EndpointSlice 是空的。",
		"spec.selector of Service %s is %s, which picks no Pod, so its EndpointSlice is empty.",
		text(svc, "metadata", "name"), labels.Set(sel).String())
	all, err := r.world.List(ctx, "Pod", text(svc, "metadata", "namespace"), "")
	if err != nil {
		return t
	}
	var carried []string
	for _, p := range all {
		l := labelMap(p, "metadata", "labels")
		delete(l, "pod-template-hash")
		if len(l) > 0 {
			carried = append(carried, labels.Set(l).String())
		}
	}
	slices.Sort(carried)
	carried = slices.Compact(carried)
	if len(carried) == 0 || len(carried) > 5 {
		return t
	}
	return join(t, textf("Pod 身上的標籤是 %s。", "The Pods carry %s.", strings.Join(carried, "; ")))
}

func targetPorts(svc map[string]any) string {
	var out []string
	for _, p := range items(svc, "spec", "ports") {
		port := value(p, "targetPort")
		if port == nil {
			port = value(p, "port")
		}
		out = append(out, fmt.Sprint(port))
	}
	return strings.Join(out, ", ")
}

// similar finds an object of the kind whose name is a slip away from the missing one.
func (r *run) similar(ctx context.Context, o Object) string {
	list, err := r.world.List(ctx, o.Kind, o.namespace(), "")
	if err != nil {
		return ""
	}
	for _, m := range list {
		if n := text(m, "metadata", "name"); n != o.Name && slip(n, o.Name) {
			return n
		}
	}
	return ""
}

// slip reports whether two names differ by at most two letters and are long enough for that to mean something.
func slip(a, b string) bool {
	if min(len(a), len(b)) < 4 || max(len(a), len(b)) > 63 {
		return false
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)] <= 2
}
