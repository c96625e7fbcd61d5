package host_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// load visits a URL from several guests at a time until it is stopped.
type load struct {
	stop context.CancelFunc
	wg   sync.WaitGroup
	mu   sync.Mutex
	seen map[string]int // answers by code and body; "200" for all good ones
}

func (l *lab) load(ctx context.Context, url string, guests int) *load {
	out := &load{seen: map[string]int{}}
	ctx, out.stop = context.WithCancel(ctx)
	for range guests {
		out.wg.Go(func() {
			for ctx.Err() == nil {
				// A visit that has begun ends by itself: one that is cut short would look like a failure.
				a := l.visit(context.WithoutCancel(ctx), http.MethodGet, url)
				kind := "200"
				if a.code != 200 {
					kind = a.String()
				}
				out.mu.Lock()
				out.seen[kind]++
				out.mu.Unlock()
			}
		})
	}
	return out
}

// end stops the load and returns how many answers were good, and the others.
func (o *load) end() (good int, failed map[string]int) {
	o.stop()
	o.wg.Wait()
	failed = maps.Clone(o.seen)
	delete(failed, "200")
	return o.seen["200"], failed
}

// restart is kubectl rollout restart; it returns when the old Pods are gone.
func (l *lab) restart(t *testing.T, ns, name, stamp string) {
	t.Helper()
	pods, err := l.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		t.Fatal(err)
	}
	l.patch(t, "apps/v1", "Deployment", ns, name, fmt.Sprintf(`{"spec": {"template": {"metadata": {"annotations": {"restarted": %q}}}}}`, stamp))
	l.rolledOut(t, ns, name)
	until(t, func() string {
		now, err := l.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil {
			return err.Error()
		}
		for _, p := range now.Items {
			for _, old := range pods.Items {
				if p.UID == old.UID {
					return "Pod " + p.Name + " is still there"
				}
			}
		}
		return ""
	})
}

// In a plain rolling update a Pod stops listening while the controller, which hears of
// the endpoints' change later, still sends guests to it. With a preStop delay
// longer than that, and a program that finishes its work, nobody notices.
func TestRollingUpdateUnderLoad(t *testing.T) {
	l := cluster(t)
	ns := l.space(t)
	const probe = `, readinessProbe: {httpGet: {path: /readyz, port: 8080}, periodSeconds: 1}`
	l.mustApply(t, ns, app("plain", "grill-cook:1.5", 8080, 3, probe)+
		app("careful", "grill-cook:1.5", 8080, 3, probe+`, lifecycle: {preStop: {sleep: {seconds: 20}}}`)+
		ingress("plain", "plain."+ns, "", "/ Prefix plain")+ingress("careful", "careful."+ns, "", "/ Prefix careful"))
	l.patch(t, "apps/v1", "Deployment", ns, "careful", `{"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 60}}}}`)
	for _, name := range []string{"plain", "careful"} {
		l.rolledOut(t, ns, name)
		l.comes(t, "http://"+name+"."+ns+"/", 200, "Welcome!")
	}
	run := func(name string, times int) (good int, failed map[string]int) {
		o := l.load(t.Context(), "http://"+name+"."+ns+"/cook?ms=20", 4)
		for k := range times {
			l.restart(t, ns, name, fmt.Sprint(k))
		}
		good, failed = o.end()
		t.Logf("%s: %d good answers, failed: %v", name, good, failed)
		return good, failed
	}
	good, failed := run("plain", 2)
	if good == 0 || len(failed) == 0 {
		t.Errorf("plain: %d good answers and no failure: the update was to be noticed", good)
	}
	for _, kind := range slices.Sorted(maps.Keys(failed)) {
		if kind != `502 "Bad Gateway"` && kind != `504 "Gateway Timeout"` {
			t.Errorf("plain: %d answers %s", failed[kind], kind)
		}
	}
	if good, failed := run("careful", 1); good == 0 || len(failed) > 0 {
		t.Errorf("careful: %d good answers, failed: %v", good, failed)
	}
}
