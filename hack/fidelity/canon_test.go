package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCanonicalLine(t *testing.T) {
	for name, c := range map[string]struct {
		in, want string
		nodes    bool
	}{
		"generated name":       {in: "grill-6d4cf56db6-x7k2p is gone", want: "grill-6d4cf56db6-<random> is gone"},
		"word with vowels":     {in: "my-nginx and grill-cook", want: "my-nginx and grill-cook"},
		"uid":                  {in: "pvc-0b1c2d3e-0000-4aaa-8bbb-123456789abc", want: "pvc-<uid>"},
		"time":                 {in: "startedAt: \"2026-12-01T10:11:12Z\"", want: "startedAt: \"<time>\""},
		"time of describe":     {in: "Started: Tue, 01 Dec 2026 10:11:12 +0000", want: "Started: <time>"},
		"age at the end":       {in: "grill 1/1 Running 0 3m4s", want: "grill 1/1 Running 0 <age>"},
		"ages side by side":    {in: "5s 6s 7s", want: "<age> <age> <age>"},
		"restarts":             {in: "CrashLoopBackOff 2 (13s ago) 33s", want: "CrashLoopBackOff 2 (<age> ago) <age>"},
		"settings stay":        {in: "http-get http://:80/ delay=0s timeout=1s period=10s", want: "http-get http://:80/ delay=0s timeout=1s period=10s"},
		"toleration stays":     {in: "node.kubernetes.io/not-ready:NoExecute op=Exists for 300s", want: "node.kubernetes.io/not-ready:NoExecute op=Exists for 300s"},
		"address":              {in: "dial tcp 10.244.1.7:80: connect: connection refused", want: "dial tcp <ip>:80: connect: connection refused"},
		"addresses that stay":  {in: "0.0.0.0:80 127.0.0.1:80", want: "0.0.0.0:80 127.0.0.1:80"},
		"client's port":        {in: "read tcp 10.244.0.1:45678->10.244.1.7:80: reset", want: "read tcp <ip>:<port>-><ip>:80: reset"},
		"kitchen":              {in: "assigned to kitchen-2", want: "assigned to <node>"},
		"kitchen that is told": {in: "assigned to kitchen-2", want: "assigned to kitchen-2", nodes: true},
		"counted event":        {in: "4s (x3 over 20s)", want: "<age> (<count>)"},
		"exit code stays":      {in: "exit code 137", want: "exit code 137"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := canonicalLine(c.in, c.nodes); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestCanonicalText(t *testing.T) {
	got := canonicalText("NAME          READY\nweb-7d9f5-zzzzz   1/1   \nweb-7d9f5-bbbbb   0/1\nEvents:   <none>\n", false)
	want := []string{"NAME  READY", "web-7d9f5-<random>  0/1", "web-7d9f5-<random>  1/1", "Events:  <none>"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// transcript is one as a cluster gives it; changes are made to it.
func transcript(changes ...func(*Transcript)) *Transcript {
	t := &Transcript{
		Commands: []Command{{Line: "kubectl get pod web", Output: "NAME   READY   AGE\nweb    1/1     3s\n"}},
		Objects: []map[string]any{{
			"kind": "Pod",
			"metadata": map[string]any{
				"name": "web", "uid": "1", "resourceVersion": "77", "creationTimestamp": "2026-12-01T10:00:00Z",
				"managedFields": []any{
					map[string]any{"manager": "kubelet", "operation": "Update", "subresource": "status"},
					map[string]any{"manager": "kubectl-client-side-apply", "operation": "Update"},
				},
			},
			"status": map[string]any{
				"podIP":             "10.244.1.2",
				"conditions":        []any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": "2026-12-01T10:00:03Z"}},
				"containerStatuses": []any{map[string]any{"name": "web", "restartCount": int64(0), "imageID": "a"}},
			},
		}},
		Events: []map[string]any{
			event("web.18a0000000000002", "Pulled", "Container image already present", 1),
			event("web.18a0000000000001", "Scheduled", "Successfully assigned x/web to kitchen-1", 1),
		},
	}
	for _, c := range changes {
		c(t)
	}
	return t
}

func event(name, reason, message string, count int64) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": name}, "reason": reason, "message": message, "type": "Normal", "count": count,
		"source": map[string]any{"component": "kubelet"}, "involvedObject": map[string]any{"kind": "Pod", "name": "web"},
	}
}

func status(t *Transcript) map[string]any { return t.Objects[0]["status"].(map[string]any) }

// TestDifferencesAreFound changes one thing at a time: what is chance is no difference, all else is.
func TestDifferencesAreFound(t *testing.T) {
	s := &Scenario{Name: "x"}
	for name, c := range map[string]struct {
		change func(*Transcript)
		found  bool
	}{
		"nothing":        {func(*Transcript) {}, false},
		"age":            {func(t *Transcript) { t.Commands[0].Output = strings.Replace(t.Commands[0].Output, "3s", "2m1s", 1) }, false},
		"width":          {func(t *Transcript) { t.Commands[0].Output = strings.ReplaceAll(t.Commands[0].Output, " ", "  ") }, false},
		"address":        {func(t *Transcript) { status(t)["podIP"] = "10.244.2.9" }, false},
		"image's digest": {func(t *Transcript) { status(t)["containerStatuses"].([]any)[0].(map[string]any)["imageID"] = "b" }, false},
		"node":           {func(t *Transcript) { t.Events[1]["message"] = "Successfully assigned x/web to kitchen-2" }, false},
		"order of list":  {func(t *Transcript) { t.Events[0], t.Events[1] = t.Events[1], t.Events[0] }, false},
		"exit code":      {func(t *Transcript) { t.Commands[0].Exit = 1 }, true},
		"output":         {func(t *Transcript) { t.Commands[0].Output += "more\n" }, true},
		"restarts": {func(t *Transcript) {
			status(t)["containerStatuses"].([]any)[0].(map[string]any)["restartCount"] = int64(1)
		}, true},
		"condition":   {func(t *Transcript) { status(t)["conditions"].([]any)[0].(map[string]any)["reason"] = "Why" }, true},
		"field more":  {func(t *Transcript) { status(t)["phase"] = "Running" }, true},
		"field less":  {func(t *Transcript) { delete(status(t), "podIP") }, true},
		"object more": {func(t *Transcript) { t.Objects = append(t.Objects, t.Objects[0]) }, true},
		"event more":  {func(t *Transcript) { t.Events = append(t.Events, event("web.18a0000000000003", "Created", "c", 1)) }, true},
		"event less":  {func(t *Transcript) { t.Events = t.Events[1:] }, true},
		"count":       {func(t *Transcript) { t.Events[0]["count"] = int64(2) }, true},
		"component":   {func(t *Transcript) { t.Events[0]["source"] = map[string]any{"component": "other"} }, true},
		"event's order": {func(t *Transcript) {
			t.Events[0]["metadata"] = map[string]any{"name": "web.18a0000000000000"}
		}, true},
		"manager": {func(t *Transcript) {
			t.Objects[0]["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)["manager"] = "other"
		}, true},
		"failure": {func(t *Transcript) { t.Failure = "step 2 waits in vain" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			list := compare(s, canonical(s, transcript()), canonical(s, transcript(c.change)), nil)
			if found := len(list) > 0; found != c.found {
				t.Errorf("found %v", list)
			}
		})
	}
}

func TestRepeatedEvents(t *testing.T) {
	once := canonicalEvents([]map[string]any{event("web.1", "BackOff", "Back-off restarting", 1)}, false)
	often := canonicalEvents([]map[string]any{event("web.1", "BackOff", "Back-off restarting", 7), event("web.2", "BackOff", "Back-off restarting", 2)}, false)
	if d := cmp.Diff(once, often); d != "" {
		t.Error(d)
	}
}

func TestEqualObjectsAreCounted(t *testing.T) {
	got := counted([]string{"Pod a\n  x", "Pod b", "Pod a\n  x"})
	if d := cmp.Diff([]string{"Pod a (2 of them)", "  x", "Pod b"}, got); d != "" {
		t.Error(d)
	}
}
