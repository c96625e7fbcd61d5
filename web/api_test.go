package web_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kubistro/internal/lab"
	"kubistro/web"
	"kubistro/web/webtest"
)

func TestFiles(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	base := "/api/v1/sessions/" + c.open() + "/files"
	put := c.do("PUT", base+"/dir/%E7%83%A4%20grill.yaml", "kind: Pod\n", "If-None-Match", "*")
	if put.StatusCode != 200 {
		t.Fatalf("put: %d %s", put.StatusCode, put.body)
	}
	get := c.do("GET", base+"/dir/%E7%83%A4%20grill.yaml", "")
	if get.body != "kind: Pod\n" || get.Header.Get("ETag") != put.Header.Get("ETag") || !strings.HasPrefix(get.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("get: %q %v", get.body, get.Header)
	}
	list := want[struct{ Files []web.File }](c, 200, "GET", base, "")
	if len(list.Files) != 1 || list.Files[0].Path != "dir/烤 grill.yaml" {
		t.Errorf("list: %+v", list.Files)
	}
	s.Lab.Only().PutFile("dir/烤 grill.yaml", "kind: Changed\n")
	if r := c.do("PUT", base+"/dir/%E7%83%A4%20grill.yaml", "mine", "If-Match", put.Header.Get("ETag")); r.StatusCode != 409 {
		t.Errorf("overwriting what the terminal wrote: %d %s", r.StatusCode, r.body)
	}
	if r := c.do("PUT", base+"/dir/%E7%83%A4%20grill.yaml", "mine"); r.StatusCode != 200 {
		t.Errorf("overwriting without a condition: %d %s", r.StatusCode, r.body)
	}
	if r := c.do("DELETE", base+"/dir/%E7%83%A4%20grill.yaml", ""); r.StatusCode != 204 {
		t.Errorf("delete: %d", r.StatusCode)
	}
	if r := c.do("PUT", base+"/dir/%E7%83%A4%20grill.yaml", "mine", "If-Match", put.Header.Get("ETag")); r.StatusCode != 409 {
		t.Errorf("saving a deleted file: %d %s", r.StatusCode, r.body)
	}
}

func TestFilesRefuse(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	base := "/api/v1/sessions/" + c.open() + "/files/"
	big := strings.Repeat("x", 1<<20+1)
	for name, tc := range map[string]struct {
		path, body string
		code       int
	}{
		"parent":          {"%2e%2e/x", "a", 400},
		"escaped parent":  {"..%2f..%2fetc%2fpasswd", "a", 400},
		"parent inside":   {"a/%2e%2e/%2e%2e/x", "a", 400},
		"absolute":        {"%2fetc%2fpasswd", "a", 400},
		"backslash":       {"a%5cb", "a", 400},
		"null byte":       {"a%00b", "a", 400},
		"newline":         {"a%0ab", "a", 400},
		"long name":       {strings.Repeat("n", 201), "a", 400},
		"broken UTF-8":    {"%ff", "a", 400},
		"double slash":    {"a//b", "a", 400},
		"too large":       {"big", big, 413},
		"binary content":  {"bin", "a\x00b", 400},
		"not UTF-8":       {"bin", "\xff\xfe", 400},
		"an ordinary one": {"a.yaml", "kind: Pod", 200},
	} {
		t.Run(name, func(t *testing.T) {
			r := c.do("PUT", base+tc.path, tc.body)
			if r.StatusCode != tc.code {
				t.Errorf("got %d %s, want %d", r.StatusCode, r.body, tc.code)
			}
		})
	}
}

func TestQuizIsJudgedByTheServer(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	page := c.do("GET", "/courses/restaurant/1?lang=en", "").body
	if strings.Contains(page, "counts one too few") {
		t.Error("the page tells the explanation before an answer")
	}
	const quiz = "/api/v1/courses/restaurant/levels/1/quiz"
	type verdict struct {
		Question string
		Answer   []string
		Correct  bool
		Attempts int
		Options  []struct {
			ID    string
			Right bool
			Why   lab.Text
		}
	}
	wrong := want[verdict](c, 200, "PUT", quiz+"/new-pod", `{"answer":["crash"]}`)
	if wrong.Correct || len(wrong.Options) != 3 || wrong.Options[1].Why.En == "" {
		t.Errorf("wrong answer: %+v", wrong)
	}
	right := want[verdict](c, 200, "PUT", quiz+"/new-pod", `{"answer":["delete"]}`)
	if !right.Correct || right.Attempts != 2 {
		t.Errorf("right answer: %+v", right)
	}
	for name, body := range map[string]string{
		"two of one": `{"answer":["crash","delete"]}`, "none": `{"answer":[]}`, "unknown": `{"answer":["x"]}`,
		"unknown field": `{"answer":["crash"],"correct":true}`, "not JSON": `answer`, "two values": `{"answer":["crash"]}{}`,
	} {
		if r := c.do("PUT", quiz+"/new-pod", body); r.StatusCode != 400 {
			t.Errorf("%s: %d %s", name, r.StatusCode, r.body)
		}
	}
	// What was typed is explained, and nothing of the other answers is told.
	typed := want[struct {
		Correct bool
		Options []any
		Why     lab.Text
	}](c, 200, "PUT", quiz+"/sign", `{"answer":["sigkill"]}`)
	if typed.Correct || len(typed.Options) != 0 || typed.Why.En != "That is the last one." {
		t.Errorf("typed: %+v", typed)
	}
	if r := c.do("PUT", quiz+"/your-ip", `{"answer":["10.96.0.7"]}`); r.StatusCode != 409 {
		t.Errorf("about a cluster that isn't there: %d %s", r.StatusCode, r.body)
	}
	want[map[string]any](c, 201, "POST", "/api/v1/sessions", `{"course":"restaurant"}`)
	if v := want[struct {
		Correct bool
		Why     lab.Text
	}](c, 200, "PUT", quiz+"/your-ip", `{"answer":["<b>"]}`); v.Correct || v.Why.En != "Not &lt;&lt;b&gt;&gt;." {
		t.Errorf("about the cluster: %+v", v)
	}
	for _, q := range []string{"sign", "your-ip"} {
		if r := c.do("PUT", quiz+"/"+q, `{"answer":["a","b"]}`); r.StatusCode != 400 {
			t.Errorf("two for one: %d %s", r.StatusCode, r.body)
		}
	}
	c.do("DELETE", quiz, "")
	want[verdict](c, 200, "PUT", quiz+"/new-pod", `{"answer":["delete"]}`)
	kept := want[struct{ Answers []verdict }](c, 200, "GET", quiz, "")
	if len(kept.Answers) != 1 || !cmp.Equal(kept.Answers[0].Answer, []string{"delete"}) {
		t.Errorf("kept: %+v", kept)
	}
	progress := want[struct {
		Levels map[string]struct{ Done, Total, Percent int }
	}](c, 200, "GET", "/api/v1/courses/restaurant/progress", "")
	if l := progress.Levels["1"]; l.Done != 1 || l.Total != 9 || l.Percent != 11 {
		t.Errorf("progress: %+v", progress)
	}
	if r := c.do("DELETE", quiz, ""); r.StatusCode != 204 {
		t.Errorf("clear: %d", r.StatusCode)
	}
	if kept := want[struct{ Answers []verdict }](c, 200, "GET", quiz, ""); len(kept.Answers) != 0 {
		t.Errorf("after clearing: %+v", kept)
	}
}

func TestExercises(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	base := "/api/v1/sessions/" + c.open()
	type exercise struct {
		Exercise          string
		Checks            []lab.CheckResult
		Hints, HintsTotal int
		HintTexts         []lab.Text
	}
	list := want[struct{ Exercises []exercise }](c, 200, "GET", base+"/exercises?level=1", "")
	if len(list.Exercises) != 2 || list.Exercises[0].HintsTotal != 2 || len(list.Exercises[0].HintTexts) != 0 {
		t.Errorf("exercises: %+v", list)
	}
	hint := want[exercise](c, 200, "POST", base+"/exercises/bare-pod/hint", "")
	if len(hint.HintTexts) != 1 || !strings.Contains(hint.HintTexts[0].En, "get pods") {
		t.Errorf("hint: %+v", hint)
	}
	checked := want[exercise](c, 200, "POST", base+"/exercises/bare-pod/check", "")
	if k := checked.Checks[0]; k.Status != lab.CheckNotMet || k.Object == "" || k.Field == "" || k.Expected == "" || k.Found == "" {
		t.Errorf("check: %+v", checked.Checks[0])
	}
	r := c.do("POST", base+"/exercises/bare-pod/solve", `{"solution":1}`)
	if r.StatusCode != 202 || r.Header.Get("Location") != base+"/operations/o1" || !s.Lab.Called("solve bare-pod 1") {
		t.Errorf("solve: %d %v", r.StatusCode, r.Header)
	}
	if op := want[lab.Operation](c, 200, "GET", r.Header.Get("Location"), ""); !op.Done {
		t.Errorf("operation: %+v", op)
	}
	if r := c.do("PUT", base+"/exercises/bare-pod/answers/why", `{"text":"`+strings.Repeat("好", 501)+`"}`); r.StatusCode != 413 {
		t.Errorf("long answer: %d", r.StatusCode)
	}
	if r := c.do("POST", base+"/reset", ""); r.StatusCode != 202 || !s.Lab.Called("reset") {
		t.Errorf("reset: %d", r.StatusCode)
	}
}

func TestLessonFilesShowManifestsOnly(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	const base = "/api/v1/courses/restaurant/levels/1/files/"
	if r := c.do("GET", base+"manifests/grill.yaml", ""); r.StatusCode != 200 || !strings.Contains(r.body, "replicas: 3") {
		t.Errorf("manifest: %d", r.StatusCode)
	}
	for _, p := range []string{"solutions/secret.sh", "level.yaml", "..%2fcourse.yaml", "manifests"} {
		if r := c.do("GET", base+p, ""); r.StatusCode != 404 {
			t.Errorf("%s: %d %s", p, r.StatusCode, r.body)
		}
	}
}

func TestKubernetesProxyGetsNoCookies(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	c.open()
	r := c.do("GET", "/k8s/s1/api/v1/pods", "", "Authorization", "Bearer x")
	if !strings.Contains(r.body, `"cookie":""`) || !strings.Contains(r.body, `"auth":"Bearer x"`) {
		t.Errorf("proxy saw %s", r.body)
	}
	if !strings.HasPrefix(r.Header.Get("Content-Security-Policy"), "sandbox") {
		t.Errorf("policy of Pod content: %q", r.Header.Get("Content-Security-Policy"))
	}
}

func TestRecordGivesOlderEvents(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	id := c.open()
	s.Lab.Only().Restaurant()
	got := want[struct{ Events []lab.Event }](c, 200, "GET", "/api/v1/sessions/"+id+"/record?before=5&limit=2", "")
	if len(got.Events) != 2 || got.Events[0].N != 3 || got.Events[1].N != 4 {
		t.Errorf("events before 5: %+v", got.Events)
	}
	for _, q := range []string{"before=-1", "before=x", "limit=1e3"} {
		if r := c.do("GET", "/api/v1/sessions/"+id+"/record?"+q, ""); r.StatusCode != 400 {
			t.Errorf("%s: %d", q, r.StatusCode)
		}
	}
}

func TestRequestsAreLimited(t *testing.T) {
	s := webtest.NewServer(t, func(c *web.Config) {
		c.Limits = web.DefaultLimits()
		c.Limits.Requests, c.Limits.RequestBurst = 0.001, 5
	})
	c := newClient(t, s)
	var codes []int
	for range 8 {
		codes = append(codes, c.do("GET", "/api/v1/courses", "").StatusCode)
	}
	if codes[0] != 200 || codes[7] != 429 {
		t.Errorf("codes: %v", codes)
	}
	other := newClient(t, s)
	other.Jar = nil
	if r := other.do("GET", "/api/v1/courses", "", "Cookie", "kubistro_learner="+strings.Repeat("b", 26)); r.StatusCode != 200 {
		t.Errorf("another learner pays for it: %d", r.StatusCode)
	}
}

func TestFirstVisitsOfAnAddressAreLimited(t *testing.T) {
	for name, cookie := range map[string]func(int) string{
		"without a cookie": func(int) string { return "x=y" },
		"made-up learners": func(i int) string { return "kubistro_learner=" + strings.Repeat(string(rune('a'+i)), 26) },
	} {
		t.Run(name, func(t *testing.T) {
			s := webtest.NewServer(t, func(c *web.Config) {
				c.Limits = web.DefaultLimits()
				c.Limits.NewLearners, c.Limits.NewBurst = 0.001, 3
			})
			known := newClient(t, s)
			var codes []int
			for i := range 6 {
				if i == 0 {
					codes = append(codes, known.do("GET", "/api/v1/courses", "").StatusCode)
					continue
				}
				other := newClient(t, s)
				other.Jar = nil
				codes = append(codes, other.do("GET", "/api/v1/courses", "", "Cookie", cookie(i)).StatusCode)
			}
			if want := []int{200, 200, 200, 429, 429, 429}; !slices.Equal(codes, want) {
				t.Errorf("codes: %v, want %v", codes, want)
			}
			if s.Store.Learners() != 3 {
				t.Errorf("%d learners were made", s.Store.Learners())
			}
			if r := known.do("GET", "/api/v1/courses", ""); r.StatusCode != 200 {
				t.Errorf("who was here before: %d", r.StatusCode)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	ready := lab.Fail(lab.CodeUnavailable, "", "")
	s := webtest.NewServer(t, func(c *web.Config) { c.Ready = failing(ready) })
	c := newClient(t, s)
	if r := c.do("GET", "/healthz", ""); r.StatusCode != 200 {
		t.Errorf("healthz: %d", r.StatusCode)
	}
	if r := c.do("GET", "/readyz", ""); r.StatusCode != 503 {
		t.Errorf("readyz: %d", r.StatusCode)
	}
	if s.Store.Learners() != 0 {
		t.Error("health checks make learners")
	}
	if r := c.do("GET", "/metrics", ""); !bytes.Contains([]byte(r.body), []byte(`kubistro_http_requests_total{method="GET",route="/readyz",status="503"} 1`)) {
		t.Errorf("metrics: %.300s", r.body)
	}
}
