package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubistro/internal/course"
	"kubistro/internal/lab"
	"kubistro/lessons"
	"kubistro/web"
	"kubistro/web/ui"
	"kubistro/web/webtest"
)

// testClock is a clock that a test moves.
type testClock struct{ nanos atomic.Int64 }

func (c *testClock) Now() time.Time      { return time.Unix(0, c.nanos.Load()).UTC() }
func (c *testClock) Add(d time.Duration) { c.nanos.Add(int64(d)) }
func newTestClock() *testClock {
	c := &testClock{}
	c.nanos.Store(time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}
func (c *testClock) configure(w *web.Config) { w.Now = c.Now }

type memory struct {
	Course, Question string
	Correct          bool
	Due              *time.Time
	At               time.Time
}

// given is the body of one answer.
func given(question, answer string, at time.Time) string {
	return fmt.Sprintf(`{"answers":[{"course":"restaurant","question":%q,"answer":[%q],"at":%q}]}`, question, answer, at.Format(time.RFC3339Nano))
}

func practised(c *client, question, answer string, at time.Time) memory {
	c.t.Helper()
	r := want[struct {
		Memories []memory
		Refused  int
	}](c, 200, "POST", "/api/v1/quizzes/answers", given(question, answer, at))
	if len(r.Memories) != 1 || r.Refused != 0 {
		c.t.Fatalf("%+v", r)
	}
	return r.Memories[0]
}

func TestPracticeNeedsNoCluster(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	page := c.do("GET", "/quizzes", "")
	if page.StatusCode != 200 || !strings.Contains(page.body, `data-question="relay"`) {
		t.Fatalf("%d without the questions", page.StatusCode)
	}
	if strings.Contains(page.body, `data-question="your-ip"`) {
		t.Error("a question that needs a cluster is there")
	}
	if !strings.Contains(page.body, "/courses/restaurant/1#quiz") {
		t.Error("nothing tells of the question that needs a cluster")
	}
	keys := want[struct{ Questions []struct{ ID string } }](c, 200, "GET", "/api/v1/quizzes", "")
	var ids []string
	for _, k := range keys.Questions {
		ids = append(ids, k.ID)
	}
	if d := cmp.Diff([]string{"new-pod", "keeps", "relay", "who", "moves", "sign"}, ids); d != "" {
		t.Error(d)
	}
	practised(c, "new-pod", "delete", time.Now())
	if list := want[struct{ Sessions []any }](c, 200, "GET", "/api/v1/sessions", ""); len(list.Sessions) != 0 {
		t.Errorf("practice has started %v", list.Sessions)
	}
}

func TestAMissedQuestionComesBack(t *testing.T) {
	clock := newTestClock()
	s := webtest.NewServer(t, clock.configure)
	c := newClient(t, s)
	start := clock.Now()
	m := practised(c, "new-pod", "shout", start)
	if m.Correct || m.Due == nil || !m.Due.Equal(start.Add(24*time.Hour)) {
		t.Fatalf("%+v", m)
	}
	if home := c.do("GET", "/", ""); strings.Contains(home.body, "#due") {
		t.Error("it is due at once")
	}
	clock.Add(24 * time.Hour)
	if home := c.do("GET", "/", ""); !strings.Contains(home.body, "/quizzes#due/restaurant/1") {
		t.Error("the start page doesn't tell that it is due")
	}
	m = practised(c, "new-pod", "delete", clock.Now())
	if !m.Correct || m.Due == nil || !m.Due.Equal(clock.Now().Add(3*24*time.Hour)) {
		t.Errorf("%+v", m)
	}
	if home := c.do("GET", "/", ""); strings.Contains(home.body, "#due") {
		t.Error("it is still due")
	}
	// Sending it again, as after an answer that was lost, changes nothing.
	if again := practised(c, "new-pod", "delete", clock.Now()); !cmp.Equal(again, m) {
		t.Error(cmp.Diff(m, again))
	}
	kept := want[struct{ Memories []memory }](c, 200, "GET", "/api/v1/quizzes", "")
	if d := cmp.Diff([]memory{m}, kept.Memories); d != "" {
		t.Error(d)
	}
}

func TestAnswersOfLessonsComeBackToo(t *testing.T) {
	clock := newTestClock()
	s := webtest.NewServer(t, clock.configure)
	c := newClient(t, s)
	want[any](c, 200, "PUT", "/api/v1/courses/restaurant/levels/1/quiz/new-pod", `{"answer":["crash"]}`)
	want[any](c, 200, "PUT", "/api/v1/courses/restaurant/levels/1/quiz/sign", `{"answer":["SIGTERM"]}`)
	clock.Add(25 * time.Hour)
	kept := want[struct{ Memories []memory }](c, 200, "GET", "/api/v1/quizzes", "")
	due := map[string]bool{}
	for _, m := range kept.Memories {
		due[m.Question] = m.Due != nil
	}
	if d := cmp.Diff(map[string]bool{"new-pod": true, "sign": false}, due); d != "" {
		t.Error(d)
	}
}

func TestPracticeCountsInTheLevel(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	kept := func() (right, all int) {
		list := want[struct {
			Answers []struct{ Correct bool }
		}](c, 200, "GET", "/api/v1/courses/restaurant/levels/1/quiz", "")
		for _, a := range list.Answers {
			if a.Correct {
				right++
			}
		}
		return right, len(list.Answers)
	}
	at := time.Now()
	practised(c, "new-pod", "crash", at)
	if right, all := kept(); right != 0 || all != 0 {
		t.Errorf("%d of %d after a wrong answer", right, all)
	}
	practised(c, "new-pod", "delete", at.Add(time.Millisecond))
	if right, all := kept(); right != 1 || all != 1 {
		t.Errorf("%d of %d after a right answer", right, all)
	}
	practised(c, "new-pod", "crash", at.Add(2*time.Millisecond))
	if right, _ := kept(); right != 1 {
		t.Error("a wrong answer has taken the right one away")
	}
}

func TestPracticeRefusesWhatItCannotRead(t *testing.T) {
	clock := newTestClock()
	s := webtest.NewServer(t, clock.configure)
	c := newClient(t, s)
	at := clock.Now().Format(time.RFC3339)
	body := `{"answers":[
		{"course":"restaurant","question":"new-pod","answer":["nobody"],"at":"` + at + `"},
		{"course":"restaurant","question":"your-ip","answer":["10.0.0.1"],"at":"` + at + `"},
		{"course":"none","question":"new-pod","answer":["delete"],"at":"` + at + `"},
		{"course":"restaurant","question":"new-pod","answer":["shout"],"at":"2999-01-01T00:00:00Z"}]}`
	r := want[struct {
		Memories []memory
		Refused  int
	}](c, 200, "POST", "/api/v1/quizzes/answers", body)
	if r.Refused != 3 || len(r.Memories) != 1 {
		t.Fatalf("%+v", r)
	}
	if !r.Memories[0].At.Equal(clock.Now()) {
		t.Errorf("an answer of the year 2999 counts as of %v", r.Memories[0].At)
	}
	if old := practised(c, "sign", "SIGKILL", clock.Now().AddDate(-1, 0, 0)); !old.At.Equal(clock.Now()) {
		t.Errorf("an answer of last year counts as of %v", old.At)
	}
	many := `{"answers":[` + strings.TrimSuffix(strings.Repeat(`{"course":"x","question":"y","answer":["z"]},`, 101), ",") + `]}`
	want[any](c, 400, "POST", "/api/v1/quizzes/answers", many)
	want[any](c, 403, "POST", "/api/v1/quizzes/answers", given("new-pod", "delete", clock.Now()), "Origin", "https://evil.example")
}

func TestTheWorkerIsWhereItMayServeThePage(t *testing.T) {
	s := webtest.NewServer(t, nil)
	r := newClient(t, s).do("GET", "/quizzes-worker.js", "")
	if r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/javascript") || r.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("%d, %v", r.StatusCode, r.Header)
	}
}

// TestTopicsHaveNames: the page tells the score by topic.
func TestTopicsHaveNames(t *testing.T) {
	library, err := course.Load(lessons.FS)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := ui.LoadTexts()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range library.All() {
		for _, l := range c.Levels {
			for _, q := range l.Quiz {
				key := "quizzes.topic." + q.Topic
				for _, lang := range []lab.Lang{lab.En, lab.ZhTW} {
					if q.Topic != "" && texts.In(lang, key) == key {
						t.Errorf("%s/%s: %s has no text in %s", c.ID, l.ID, key, lang)
					}
				}
			}
		}
	}
}
