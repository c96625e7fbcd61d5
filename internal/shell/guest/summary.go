package guest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// maxNames bounds the answerers that are told apart.
const maxNames = 200

// summary counts visits.
type summary struct {
	elapsed time.Duration
	visits  int
	bad     int
	codes   map[string]int
	errors  map[string]int
	by      map[string]int
	took    []time.Duration // of visits that had an answer
}

func newSummary(visits int) *summary {
	return &summary{codes: map[string]int{}, errors: map[string]int{}, by: map[string]int{}, took: make([]time.Duration, 0, min(max(visits, 16), 1024))}
}

// bad: no answer, or one that isn't what the guest came for.
func (v visit) bad() bool { return v.failure != "" || v.code >= 400 }

// result is the code or the kind of failure.
func (v visit) result() string {
	if v.failure != "" {
		return v.failure
	}
	return strconv.Itoa(v.code)
}

func (s *summary) add(v visit) {
	s.visits++
	if v.bad() {
		s.bad++
	}
	if v.failure != "" {
		s.errors[v.failure]++
		return
	}
	s.codes[strconv.Itoa(v.code)]++
	s.took = append(s.took, v.took)
	by := v.by
	if _, known := s.by[by]; !known && len(s.by) >= maxNames {
		by = "..."
	}
	if by != "" {
		s.by[by]++
	}
}

// percentile of the latencies, which are sorted.
func (s *summary) percentile(p int) time.Duration {
	if len(s.took) == 0 {
		return 0
	}
	return s.took[min(len(s.took)-1, len(s.took)*p/100)]
}

type count struct {
	name  string
	count int
}

// ordered lists counts, the greatest first.
func ordered(m map[string]int) []count {
	out := make([]count, 0, len(m))
	for name, n := range m {
		out = append(out, count{name, n})
	}
	slices.SortFunc(out, func(a, b count) int { return cmp.Or(b.count-a.count, cmp.Compare(a.name, b.name)) })
	return out
}

// brief is a latency for people.
func brief(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Microsecond).String()
}

func (s *summary) code() int {
	if s.bad > 0 || s.visits == 0 {
		return 1
	}
	return 0
}

// print writes the summary for people.
func (s *summary) print(g *guest) int {
	slices.Sort(s.took)
	w := g.env.Out
	rate := 0.0
	if s.elapsed > 0 {
		rate = float64(s.visits) / s.elapsed.Seconds()
	}
	fmt.Fprintf(w, g.say("%d 次上門，%.1f 秒（每秒 %.1f 次），%d 次失望\n", "%d visits in %.1f s (%.1f/s), %d disappointed\n"), s.visits, s.elapsed.Seconds(), rate, s.bad)
	for _, c := range ordered(s.codes) {
		n, _ := strconv.Atoi(c.name)
		fmt.Fprintf(w, "  %-8s %6d  %s\n", c.name, c.count, http.StatusText(n))
	}
	for _, c := range ordered(s.errors) {
		fmt.Fprintf(w, "  %-8s %6d  %s\n", c.name, c.count, g.failureText(c.name))
	}
	if len(s.took) > 0 {
		fmt.Fprintf(w, g.say("延遲  p50 %s  p90 %s  p99 %s  最慢 %s\n", "latency  p50 %s  p90 %s  p99 %s  max %s\n"),
			brief(s.percentile(50)), brief(s.percentile(90)), brief(s.percentile(99)), brief(s.took[len(s.took)-1]))
	}
	if len(s.by) > 0 {
		fmt.Fprintln(w, g.say("誰接待的", "answered by"))
		for _, c := range ordered(s.by) {
			fmt.Fprintf(w, "  %-40s %6d\n", c.name, c.count)
		}
	}
	return s.code()
}

// json writes the summary for programs.
func (s *summary) json(g *guest) int {
	slices.Sort(s.took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	last := time.Duration(0)
	if len(s.took) > 0 {
		last = s.took[len(s.took)-1]
	}
	enc := json.NewEncoder(g.env.Out)
	enc.SetEscapeHTML(false)
	enc.Encode(map[string]any{
		"url": g.plan.url.String(), "visits": s.visits, "failed": s.bad, "seconds": float64(s.elapsed.Milliseconds()) / 1000,
		"codes": s.codes, "errors": s.errors, "by": s.by,
		"latencyMs": map[string]float64{"p50": ms(s.percentile(50)), "p90": ms(s.percentile(90)), "p99": ms(s.percentile(99)), "max": ms(last)},
	})
	return s.code()
}
