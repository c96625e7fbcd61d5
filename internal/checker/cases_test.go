package checker

import (
	"testing"

	"kubistro/internal/lab"
)

var no = lab.Text{ZhTW: "不對", En: "not so"}

// Case 1: a check demands only what the task says.
func TestJobWithDefaults(t *testing.T) {
	s := Spec{Objects: map[string]Object{"job": {Kind: "Job", Name: "hello-job"}}, Expect: []Expectation{
		{That: "usesImage(job, 'busybox')"},
		{That: "job.spec.template.spec.restartPolicy == 'Never'"},
		{That: "job.spec.activeDeadlineSeconds == 30"},
	}}
	w := worldOf(t, `
kind: Job
metadata: {name: hello-job}
spec:
  backoffLimit: 6
  activeDeadlineSeconds: 30
  template: {spec: {restartPolicy: Never, containers: [{name: hello, image: busybox}]}}`)
	want(t, compile(t, s).Run(t.Context(), w), lab.CheckMet)
}

// Case 2: spelling doesn't matter where the meaning is the same.
func TestSameImage(t *testing.T) {
	same := [][2]string{
		{"nginx", "nginx:latest"}, {"nginx", "docker.io/library/nginx"}, {"docker.io/nginx:latest", "index.docker.io/library/nginx"},
		{"traefik/whoami:v1.10", "docker.io/traefik/whoami:v1.10"}, {"localhost:5000/a", "localhost:5000/a:latest"},
		{"nginx:1.27@sha256:aa", "nginx@sha256:aa"},
	}
	for _, p := range same {
		if !sameImage(p[0], p[1]) {
			t.Errorf("%s and %s are one image", p[0], p[1])
		}
	}
	other := [][2]string{
		{"nginx", "nginx:1.27"}, {"nginx", "quay.io/library/nginx"}, {"a/nginx", "nginx"}, {"localhost:5000/a", "localhost/a"},
		{"nginx@sha256:aa", "nginx@sha256:bb"}, {"nginx@sha256:aa", "nginx"},
	}
	for _, p := range other {
		if sameImage(p[0], p[1]) {
			t.Errorf("%s and %s are different images", p[0], p[1])
		}
	}
}

const readyPod = `
kind: Pod
metadata: {name: web-1, namespace: default, labels: {app: web}}
spec: {containers: [{name: web, image: nginx, ports: [{name: http, containerPort: 80}]}]}
status:
  phase: Running
  conditions: [{type: Ready, status: "True"}]
  containerStatuses: [{name: web, ready: true, state: {running: {}}}]`

const service = `
kind: Service
metadata: {name: web, namespace: default}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}`

// guests is the goal "guests are served", however it is reached.
func guests() Spec {
	return Spec{Requests: map[string]RequestSpec{"web": {Request: Request{URL: "http://web/"}, Times: 3}},
		Expect: []Expectation{{That: "web.all(r, r.code == 200)", Message: no}}}
}

// Case 2: changing the application's port reaches the goal as well as changing the Service's.
func TestGoalNotSpelling(t *testing.T) {
	w := worldOf(t, readyPod, service)
	w.respond = func(Request) (Response, error) { return Response{Code: 200}, nil }
	want(t, compile(t, guests()).Run(t.Context(), w), lab.CheckMet)
}

// Case 3: existing isn't running.
func TestImageThatCannotBePulled(t *testing.T) {
	s := Spec{Objects: map[string]Object{"web": {Kind: "Pod", Name: "web"}}, Expect: []Expectation{{That: "podReady(web)"}}}
	w := worldOf(t, `
kind: Pod
metadata: {name: web}
spec: {containers: [{name: web, image: "nginx:doesnotexist"}]}
status:
  phase: Pending
  conditions: [{type: PodScheduled, status: "True"}, {type: Ready, status: "False"}]
  containerStatuses:
  - name: web
    image: nginx:doesnotexist
    ready: false
    state:
      waiting:
        reason: ErrImagePull
        message: 'rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/nginx:doesnotexist": not found'`)
	got := compile(t, s).Run(t.Context(), w)
	want(t, got, lab.CheckNotMet, "Pod web exists, but its image nginx:doesnotexist can't be pulled", "not found")
	if got.Object != "pod/web" || got.Found != "ErrImagePull" {
		t.Errorf("object %q, found %q", got.Object, got.Found)
	}
}

// Case 4: a later look shows what was broken again.
func TestLaterLookShowsTheRegression(t *testing.T) {
	s := deployment("grill.spec.replicas == 2")
	s.MustHold = true
	c := compile(t, s)
	w := worldOf(t, grill)
	want(t, c.Run(t.Context(), w), lab.CheckMet)
	object(w.objects[0], "spec")["replicas"] = int64(0)
	want(t, c.Run(t.Context(), w), lab.CheckNotMet, "should be 2; it is 0")
	if !c.MustHold() {
		t.Error("MustHold is lost")
	}
}

// Cases 9, 10 and 13: the message says why nobody is served.
func TestServiceThatReachesNobody(t *testing.T) {
	const soup = `
kind: Pod
metadata: {name: soup-1, namespace: default, labels: {app: soup, pod-template-hash: 7d9}}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}`
	const unready = `
kind: Pod
metadata: {name: web-1, namespace: default, labels: {app: web}}
spec: {containers: [{name: web, image: nginx, readinessProbe: {httpGet: {port: 8080}}}]}
status:
  phase: Running
  conditions: [{type: Ready, status: "False"}]
  containerStatuses: [{name: web, ready: false, restartCount: 0, state: {running: {}}}]`
	tests := []struct {
		name     string
		world    *world
		response Response
		parts    []string
	}{
		{"9 the selector picks nobody", worldOf(t, soup, `
kind: Service
metadata: {name: web, namespace: default}
spec: {selector: {name: soup}, ports: [{port: 80}]}`), Response{Failure: "refused"},
			[]string{"spec.selector of Service web is name=soup", "EndpointSlice is empty", "app=soup"}},
		{"10 nobody listens on targetPort", worldOf(t, readyPod, service), Response{Failure: "refused"},
			[]string{"listens on targetPort 8080"}},
		{"13 none is ready", worldOf(t, unready, service), Response{Failure: "refused"},
			[]string{"none of them is ready", "READY 0/1", "readinessProbe"}},
		{"no such Service", worldOf(t, readyPod), Response{Failure: "no such host"}, []string{"Nobody in the cluster is called web"}},
		{"the application's own error is nobody else's fault", worldOf(t, readyPod, service), Response{Code: 500}, []string{"not so"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.world.respond = func(Request) (Response, error) { return tt.response, nil }
			got := compile(t, guests()).Run(t.Context(), tt.world)
			want(t, got, lab.CheckNotMet, tt.parts...)
			if tt.response.Code == 500 && got.Message.En != "not so" {
				t.Errorf("message %q explains too much", got.Message.En)
			}
		})
	}
}

// Case 10, variant: a declared containerPort that is wrong changes nothing and isn't reported.
// Case 13, variant: a slow start that became ready leaves nothing to report.
func TestNothingToReport(t *testing.T) {
	w := worldOf(t, `
kind: Pod
metadata: {name: web-1, namespace: default, labels: {app: web}}
spec: {containers: [{name: web, image: nginx, ports: [{containerPort: 9999}]}]}
status:
  phase: Running
  conditions: [{type: Ready, status: "True"}]
  containerStatuses: [{name: web, ready: true, state: {running: {}}}]`, service)
	w.respond = func(Request) (Response, error) { return Response{Code: 200}, nil }
	want(t, compile(t, guests()).Run(t.Context(), w), lab.CheckMet)
	if got := podsTrouble(w.objects[:1]); !got.IsZero() {
		t.Errorf("a healthy Pod is in trouble: %+v", got)
	}
}

// Case 11.
func TestHPAWithoutRequests(t *testing.T) {
	s := Spec{Objects: map[string]Object{"hpa": {Kind: "HorizontalPodAutoscaler", Name: "web"}},
		Expect: []Expectation{{That: "hpa.status.currentMetrics != null", Message: no}}}
	w := worldOf(t, `
kind: HorizontalPodAutoscaler
metadata: {name: web}
status:
  currentMetrics: null
  conditions:
  - {type: ScalingActive, status: "False", reason: FailedGetResourceMetric, message: "missing request for cpu in container web of Pod web-1"}`)
	want(t, compile(t, s).Run(t.Context(), w), lab.CheckNotMet, "FailedGetResourceMetric", "missing request for cpu")
}

// Case 12 and other ends of a Pod: each is told in words.
func TestPodTrouble(t *testing.T) {
	waiting := func(reason, message string) string {
		return `
kind: Pod
metadata: {name: menu}
spec: {containers: [{name: c, image: "menu:lates"}]}
status:
  phase: Pending
  containerStatuses:
  - name: c
    restartCount: 3
    lastState: {terminated: {exitCode: 137, reason: OOMKilled}}
    state: {waiting: {reason: ` + reason + `, message: '` + message + `'}}`
	}
	tests := []struct{ name, pod, part string }{
		{"tag that isn't there", waiting("ImagePullBackOff", `Back-off pulling image "menu:lates": ErrImagePull: not found`), "image menu:lates can't be pulled (ImagePullBackOff)"},
		{"private registry", waiting("ErrImagePull", "rpc error: code = Unknown desc = pull access denied, authorization failed"), "pull access denied"},
		{"missing ConfigMap", waiting("CreateContainerConfigError", `configmap "recipe" not found`), "can't be made (CreateContainerConfigError): configmap"},
		{"crash loop", waiting("CrashLoopBackOff", "back-off 40s"), "restarted 3 times, last end: OOMKilled"},
		{"no place", "kind: Pod\nmetadata: {name: menu}\nstatus: {phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: '0/4 nodes are available: 3 Insufficient cpu.'}]}", "0/4 nodes are available"},
		{"leaving", "kind: Pod\nmetadata: {name: menu, deletionTimestamp: '2026-01-01T00:00:00Z'}", "on its way out"},
		{"starting", "kind: Pod\nmetadata: {name: menu}\nstatus: {phase: Pending, containerStatuses: [{name: c, state: {waiting: {reason: ContainerCreating}}}]}", "still starting (ContainerCreating)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Spec{Objects: map[string]Object{"menu": {Kind: "Pod", Name: "menu"}}, Expect: []Expectation{{That: "podStatus(menu) == 'Running'"}}}
			want(t, compile(t, s).Run(t.Context(), worldOf(t, tt.pod)), lab.CheckNotMet, tt.part)
		})
	}
}

// The worst trouble of a Deployment's Pods is told, not the first one's.
func TestDeploymentTellsItsWorstPod(t *testing.T) {
	w := worldOf(t, grill, `
kind: Pod
metadata: {name: grill-1, labels: {station: grill}}
status: {phase: Running, conditions: [{type: Ready, status: "True"}]}
---
kind: Pod
metadata: {name: grill-2, deletionTimestamp: x, labels: {station: grill}}
status: {phase: Running}
---
kind: Pod
metadata: {name: grill-3, labels: {station: grill}}
spec: {containers: [{name: cook, image: "grill-cook:1.6"}]}
status: {phase: Pending, containerStatuses: [{name: cook, state: {waiting: {reason: ErrImagePull}}}]}`)
	got := compile(t, deployment("grill.status.availableReplicas == 3")).Run(t.Context(), w)
	want(t, got, lab.CheckNotMet, "it is 2", "Pod grill-3 exists, but its image grill-cook:1.6 can't be pulled")
}
