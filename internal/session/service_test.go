package session_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"kubistro/internal/checker"
	"kubistro/internal/cluster"
	"kubistro/internal/cluster/embedded"
	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/internal/session"
	"kubistro/internal/store"
)

const (
	me       = lab.LearnerID("learnerone")
	somebody = lab.LearnerID("learnertwo")
)

// orphan is how long a cluster host outlives a test that was killed.
const orphan = time.Minute

// patience is how long something may take on a busy machine.
const patience = 3 * time.Minute

// restaurant is a course with one exercise: write the line "grill: 2".
func restaurant(t *testing.T) *course.Library {
	t.Helper()
	check, err := checker.Compile(checker.Spec{
		ID: "two", Title: lab.Text{ZhTW: "兩位", En: "two"},
		Objects: map[string]checker.Object{"grill": {Kind: "Deployment", Name: "grill"}},
		Expect: []checker.Expectation{{
			That:    "grill != null && grill.spec.replicas == 2",
			Message: lab.Text{ZhTW: "還不是兩位。", En: "Not two yet."},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := &course.Course{ID: "restaurant", Spec: lab.DefaultClusterSpec()}
	level := &course.Level{Course: c, ID: "1", Number: 1, Files: fstest.MapFS{
		"start.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: order\ndata:\n  dish: steak\n")},
	}}
	level.Exercises = []*course.Exercise{{
		Level: level, ID: "hire", Letter: "a", Setup: []string{"start.yaml"}, Checks: []*checker.Check{check},
		Files: map[string][]byte{"grill.yaml": []byte("replicas: 2\n")},
	}}
	shape := lab.ClusterSpec{Speed: 10, Kitchens: []lab.Kitchen{c.Spec.Kitchens[0],
		{Name: "annex", CPU: "4", Memory: "4Gi", Labels: map[string]string{"floor": "2"}, Resources: map[string]string{"nvidia.com/gpu": "2"}}}}
	second := &course.Level{Course: c, ID: "2", Number: 2, Files: level.Files, Cluster: &shape}
	second.Exercises = []*course.Exercise{{Level: second, ID: "annex", Letter: "a", Setup: []string{"start.yaml"}, Checks: []*checker.Check{check}, Home: []string{"kube-scheduler"}}}
	alone := c.Spec
	alone.WithoutLoadBalancers = true
	third := &course.Level{Course: c, ID: "3", Number: 3, Files: level.Files, Cluster: &alone}
	third.Exercises = []*course.Exercise{{Level: third, ID: "alone", Letter: "a", Setup: []string{"start.yaml"}, Checks: []*checker.Check{check}}}
	c.Levels = []*course.Level{level, second, third}
	return &course.Library{Courses: []*course.Course{c}}
}

// server is a labserver's inside without its pages.
type server struct {
	*session.Service
	stop func()
}

func serve(t *testing.T, dir string, change ...func(*cluster.Config, *session.Config)) *server {
	t.Helper()
	program := os.Getenv("KUBISTRO_CLUSTERHOST")
	if program == "" {
		t.Fatal("KUBISTRO_CLUSTERHOST names no clusterhost: run the tests with make test")
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	driver, err := embedded.New(embedded.Options{Dir: dir, Program: program, Log: log, Orphan: orphan})
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), filepath.Join(dir, "kubistro.db"))
	if err != nil {
		t.Fatal(err)
	}
	of, c := cluster.Config{Driver: driver, Dir: dir, Log: log}, session.Config{
		Store: db, Library: restaurant(t), Dir: dir, Program: os.Args[0], Args: []string{"terminal-child"}, Log: log, ServingCA: []byte("the CA"),
	}
	for _, f := range change {
		f(&of, &c)
	}
	m := cluster.NewManager(of)
	c.Manager = m
	s, err := session.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &server{Service: s, stop: func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for what, err := range map[string]error{"sessions": s.Close(ctx), "clusters": m.Close(ctx), "driver": driver.Close(), "store": db.Close()} {
			if err != nil {
				t.Errorf("close %s: %v", what, err)
			}
		}
	}}
}

// outside is a client with a downloaded kubeconfig.
func (s *server) outside(t *testing.T, id, base string) (*kubernetes.Clientset, string) {
	t.Helper()
	data, err := s.Kubeconfig(t.Context(), me, id, base)
	if err != nil {
		t.Fatal(err)
	}
	file, err := clientcmd.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	at := file.Contexts[file.CurrentContext]
	c := file.Clusters[at.Cluster]
	if c.Server != strings.Replace(base, "http:", "https:", 1)+"/k8s/"+id || c.TLSServerName != session.ServerName || string(c.CertificateAuthorityData) != "the CA" {
		t.Errorf("kubeconfig: %+v", c)
	}
	// The test's server has no TLS.
	cfg := &rest.Config{Host: base + "/k8s/" + id, BearerToken: file.AuthInfos[at.AuthInfo].Token}
	k, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return k, cfg.BearerToken
}

// ready waits until the session's cluster is ready.
func (s *server) ready(t *testing.T, id string) {
	t.Helper()
	for {
		changed, err := s.Changes(t.Context(), me, id)
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.Get(t.Context(), me, id)
		switch {
		case err != nil:
			t.Fatal(err)
		case v.State == lab.StateReady:
			return
		case v.State == lab.StateFailed:
			t.Fatalf("failed: %+v", v.Status.Problem)
		}
		select {
		case <-changed:
		case <-time.After(3 * time.Minute):
			t.Fatalf("still %s", v.State)
		}
	}
}

// until reads frames until one fits.
func until(t *testing.T, sub *session.Subscription, fits func(lab.Event) bool) (seen []lab.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			for _, f := range seen {
				t.Logf("%d %s %s %s %s/%s", f.N, f.Type, f.Actor, f.Verb, f.Object.Kind, f.Object.Name)
			}
			t.Fatalf("the frame didn't come: %v", err)
		}
		seen = append(seen, e)
		if fits(e) {
			return seen
		}
	}
}

func grill(replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "grill"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"station": "grill"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"station": "grill"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "cook", Image: "registry.k8s.io/pause:3.10"}}},
			},
		},
	}
}

// One learner's path: open, start, work from outside with a kubeconfig, see who did what and the
// check tick, reset, and find it all again after the server has gone.
func TestLab(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir)
	v, created, err := s.Open(t.Context(), me, "restaurant")
	if err != nil || !created {
		t.Fatalf("open: %v, created %v", err, created)
	}
	if again, created, err := s.Open(t.Context(), me, "restaurant"); err != nil || created || again.ID != v.ID {
		t.Errorf("second open: %+v, %v, %v; want the same session", again.ID, created, err)
	}
	if _, err := s.Get(t.Context(), somebody, v.ID); lab.AsError(err).Code != lab.CodeNotFound {
		t.Errorf("somebody else's session: %v, want not found", err)
	}
	s.ready(t, v.ID)
	state, err := s.StartExercise(t.Context(), me, v.ID, "hire")
	if err != nil || !state.Started || state.Checks[0].Status != lab.CheckNotMet {
		t.Fatalf("start: %v %+v", err, state)
	}
	if data, _, err := s.ReadFile(t.Context(), me, v.ID, "grill.yaml"); err != nil || string(data) != "replicas: 2\n" {
		t.Errorf("file of the exercise: %q %v", data, err)
	}

	web := httptest.NewServer(s.KubernetesProxy())
	defer web.Close()
	k, token := s.outside(t, v.ID, web.URL)
	sub, err := s.Events(t.Context(), me, v.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if first, err := sub.Next(t.Context()); err != nil || first.Type != lab.EventSnapshot {
		t.Fatalf("first frame: %v %v", first.Type, err)
	}
	if _, err := k.AppsV1().Deployments("default").Create(t.Context(), grill(2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	done := func(e lab.Event) bool { return e.Verb == "check" && e.Reason == "done" }
	seen := until(t, sub, done)
	if !slices.ContainsFunc(seen, func(e lab.Event) bool { return e.Type == lab.EventObject && e.Object.Kind == "Pod" }) {
		seen = append(seen, until(t, sub, func(e lab.Event) bool { return e.Type == lab.EventObject && e.Object.Kind == "Pod" })...)
	}
	for _, who := range []struct{ actor, verb, kind string }{
		{"learner", "create", "Deployment"}, {"deployment-controller", "create", "ReplicaSet"}, {"replicaset-controller", "create", "Pod"},
	} {
		i := slices.IndexFunc(seen, func(e lab.Event) bool {
			return e.Type == lab.EventAudit && e.Actor == who.actor && e.Verb == who.verb && e.Object.Kind == who.kind
		})
		switch {
		case i < 0:
			t.Errorf("no frame: %+v", who)
		case who.actor != "learner" && seen[i].Cause == nil:
			t.Errorf("no cause: %+v", who)
		}
	}

	t.Run("proxy", func(t *testing.T) { testProxy(t, s, web, v.ID, token) })
	k, _ = s.outside(t, v.ID, web.URL) // the first token is revoked now

	op, err := s.ResetExercise(t.Context(), me, v.ID, "hire")
	if err != nil {
		t.Fatal(err)
	}
	if twice, err := s.ResetExercise(t.Context(), me, v.ID, "hire"); err != nil || twice.ID != op.ID {
		t.Errorf("reset pressed twice: %+v %v, want the same operation", twice, err)
	}
	for !op.Done {
		if op, err = s.Operation(t.Context(), me, v.ID, op.ID); err != nil {
			t.Fatal(err)
		}
	}
	if op.Problem != nil {
		t.Fatalf("reset: %+v", op.Problem)
	}
	t.Logf("reset took %d ms", op.Millis)
	if _, err := k.AppsV1().Deployments("default").Get(t.Context(), "grill", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the Deployment after the reset: %v, want not found", err)
	}
	states, err := s.Exercises(t.Context(), me, v.ID, "1")
	if err != nil || !states[0].Done || !states[0].Started || states[0].Checks[0].Status != lab.CheckNotMet {
		t.Errorf("after the reset: %v %+v, want done, started, check not met", err, states)
	}

	sub.Close()
	s.stop()
	s = serve(t, dir)
	defer s.stop()
	again, created, err := s.Open(t.Context(), me, "restaurant")
	if err != nil || created || again.ID != v.ID {
		t.Fatalf("open after a restart: %+v %v %v", again, created, err)
	}
	s.ready(t, v.ID)
	state, err = s.Check(t.Context(), me, v.ID, "hire")
	if err != nil || !state.Done || state.Checks[0].Status != lab.CheckNotMet {
		t.Errorf("progress after a restart: %v %+v", err, state)
	}
	if err := s.End(t.Context(), me, v.ID); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(t.Context(), me, v.ID); lab.AsError(err).Code != lab.CodeNotFound {
		t.Errorf("an ended session: %v, want not found", err)
	}
}

// The proxy takes the token only from its header, acts as nobody else, and
// never with the lab's cookies.
func testProxy(t *testing.T, s *server, web *httptest.Server, id, token string) {
	ask := func(path, auth string, header ...string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+"/k8s/"+id+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if auth != "" {
			req.Header.Set("Authorization", auth)
		}
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		resp, err := web.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	if code, body := ask("/version", "Bearer "+token); code != 200 || !strings.Contains(body, "gitVersion") {
		t.Errorf("with the token: %d %s", code, body)
	}
	for name, auth := range map[string]string{"none": "", "wrong": "Bearer nonsense", "basic": "Basic " + token} {
		if code, _ := ask("/version", auth); code != http.StatusUnauthorized {
			t.Errorf("%s: %d, want 401", name, code)
		}
	}
	code, body := ask("/apis/authentication.k8s.io/v1/selfsubjectreviews", "Bearer "+token, "Impersonate-User", "system:node:kitchen-1")
	if strings.Contains(body, "kitchen-1") {
		t.Errorf("impersonated: %d %s", code, body)
	}
	var status metav1.Status
	if _, body := ask("/api/v1/namespaces/nowhere/pods/x", "Bearer "+token, "Impersonate-User", "nobody"); json.Unmarshal([]byte(body), &status) != nil || status.Reason != metav1.StatusReasonNotFound {
		t.Errorf("as somebody without rights: %s, want the learner's own 404", body)
	}
	if err := s.RevokeKubeconfigs(t.Context(), me, id); err != nil {
		t.Fatal(err)
	}
	if code, _ := ask("/version", "Bearer "+token); code != http.StatusUnauthorized {
		t.Errorf("revoked: %d, want 401", code)
	}
}
