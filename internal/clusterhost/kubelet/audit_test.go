package kubelet_test

import (
	"context"
	"testing"

	"kubistro/internal/lab"
)

// TestSessionsAreAudited: what somebody runs in a container has an entry when it
// begins and one when it ends.
func TestSessionsAreAudited(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("grill", `{terminationGracePeriodSeconds: 0, containers: [{name: c, image: busybox, command: [sleep, "600"]}]}`))
	h.pod(t, ns, "grill", ready)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	entries, err := h.api.Audit(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	h.mustExec(t, ns, "grill", "echo", "hello", "chef")
	var begin, end lab.AuditEntry
	for e := range entries {
		if e.Session == "" || e.Object.Namespace != ns {
			continue
		}
		if e.Ended {
			end = e
			break
		}
		begin = e
	}
	if begin.User != "learner" || begin.Subresource != "exec" || begin.Object.Kind != "Pod" || begin.Object.Name != "grill" || begin.Command != "echo hello chef" || begin.Code != 101 {
		t.Errorf("the beginning: %+v", begin)
	}
	if end.Session != begin.Session || end.N <= begin.N {
		t.Errorf("the end %+v of %+v", end, begin)
	}
}
