package web_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"kubistro/internal/course"
	"kubistro/web"
	"kubistro/web/webtest"
)

func TestPreviewFollowsTheCourses(t *testing.T) {
	p := web.NewPreview(nil)
	s := webtest.NewServer(t, func(c *web.Config) { c.Preview = p })
	r, err := http.Get(s.URL + "/api/v1/preview")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(r.Body)
	next := func() (v struct {
		Version int
		Faults  []course.Fault
	}) {
		t.Helper()
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &v); err != nil {
					t.Fatal(err)
				}
				return v
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return v
	}
	if v := next(); v.Version != 1 || len(v.Faults) != 0 {
		t.Errorf("at first: %+v", v)
	}
	p.Reloaded(course.Faults{{File: "level.yaml", Line: 3, Message: "unknown field"}})
	if v := next(); v.Version != 2 || len(v.Faults) != 1 || v.Faults[0].Line != 3 {
		t.Errorf("after a change: %+v", v)
	}

	learners := webtest.NewServer(t, nil)
	if r, err := http.Get(learners.URL + "/api/v1/preview"); err != nil || r.StatusCode != http.StatusNotFound {
		t.Errorf("a server for learners: %v %v", r, err)
	} else {
		r.Body.Close()
	}
}
