package checker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kubistro/internal/lab"
)

func calls(times, together int, that ...string) Spec {
	s := Spec{Requests: map[string]RequestSpec{"calls": {Request: Request{URL: "http://grill/"}, Times: times, Together: together}}}
	for _, e := range that {
		s.Expect = append(s.Expect, Expectation{That: e, Message: lab.Text{ZhTW: "不對", En: "wrong: {calls[0].code}"}})
	}
	return s
}

func TestRequestsAreCounted(t *testing.T) {
	var n atomic.Int64
	w := worldOf(t)
	w.respond = func(Request) (Response, error) {
		switch i := n.Add(1); {
		case i == 10:
			return Response{Failure: "reset"}, nil
		case i == 20:
			return Response{Code: 503}, nil
		default:
			return Response{Code: 200, By: fmt.Sprintf("grill-%d", i%2), Took: time.Duration(i) * time.Millisecond}, nil
		}
	}
	met := []string{
		"errorRate(calls) == 0.02", "errorRate(calls) < 0.03", "size(spread(calls)) == 2", "spread(calls)['grill-1'] == 50",
		"calls.filter(c, ok(c)).size() == 98", "percentile(calls, 50) >= 49 && percentile(calls, 50) <= 52", "percentile(calls, 99.5) == 100",
		"spread(calls).all(pod, n, n >= 40)", "errorRate(calls.filter(c, c.by == 'grill-1')) == 0.0",
	}
	want(t, compile(t, calls(100, 1, met...)).Run(t.Context(), w), lab.CheckMet)
	n.Store(0)
	want(t, compile(t, calls(100, 1, "errorRate(calls) == 0.0")).Run(t.Context(), w), lab.CheckNotMet, "wrong: 200")
}

func TestRequestsTogether(t *testing.T) {
	var mu sync.Mutex
	var now, most int
	gate := make(chan struct{})
	w := &together{world: worldOf(t), do: func(Request) (Response, error) {
		mu.Lock()
		now++
		most = max(most, now)
		if most == 4 && now == 4 {
			select {
			case <-gate:
			default:
				close(gate)
			}
		}
		mu.Unlock()
		<-gate // until four are here at once
		mu.Lock()
		now--
		mu.Unlock()
		return Response{Code: 200}, nil
	}}
	want(t, compile(t, calls(20, 4, "size(calls) == 20 && errorRate(calls) == 0.0")).Run(t.Context(), w), lab.CheckMet)
	if most != 4 {
		t.Errorf("%d at once, want 4", most)
	}
}

// together is a world whose requests may overlap.
type together struct {
	*world
	do func(Request) (Response, error)
}

// Request is part of Cluster.
func (w *together) Request(_ context.Context, r Request) (Response, error) { return w.do(r) }

// What couldn't be tried is unknown, not an error rate.
func TestRequestThatCannotBeSent(t *testing.T) {
	w := worldOf(t)
	w.respond = func(Request) (Response, error) {
		return Response{}, lab.Fail(lab.CodeUnavailable, "沒有 Pod", "no Pod to ask from").Because(errors.New("gone"))
	}
	want(t, compile(t, calls(5, 3, "errorRate(calls) == 0.0")).Run(t.Context(), w), lab.CheckUnknown, "no Pod to ask from")
}

func TestGuests(t *testing.T) {
	s := Spec{
		Guests: map[string]GuestSpec{"guests": {Request: Request{URL: "http://shop.example/", From: FromStreet}, Rate: 5, Keep: time.Minute}},
		Lets:   []Let{{Name: "late", Expr: "guests.filter(v, v.at > timestamp('2026-05-01T12:00:10Z'))"}},
		Expect: []Expectation{
			{That: "size(late) >= 3", Message: lab.Text{ZhTW: "太少", En: "too few: {size(late)}"}},
			{That: "errorRate(late) == 0.0", Message: lab.Text{ZhTW: "有人餓肚子", En: "hungry: {late.filter(v, !ok(v)).map(v, v.failure)}"}},
		},
	}
	w := worldOf(t)
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	visit := func(second int, v Response) {
		w.visits = append(w.visits, Visit{v, at.Add(time.Duration(second) * time.Second)})
	}
	visit(5, Response{Failure: "refused"})
	c := compile(t, s)
	want(t, c.Run(t.Context(), w), lab.CheckNotMet, "too few: 0")
	visit(11, Response{Code: 200})
	visit(12, Response{Code: 200})
	visit(13, Response{Code: 404})
	want(t, c.Run(t.Context(), w), lab.CheckMet)
	visit(14, Response{Failure: "timeout"})
	want(t, c.Run(t.Context(), w), lab.CheckNotMet, "hungry: ", "timeout")
	w.fail = errors.New("no connection")
	want(t, c.Run(t.Context(), w), lab.CheckUnknown)
	if !slices.Contains(c.Watches(), "EndpointSlice") {
		t.Errorf("watches %v", c.Watches())
	}
}

// Figures about nothing are missing: never met.
func TestNoVisitsAreNoSuccess(t *testing.T) {
	s := Spec{Guests: map[string]GuestSpec{"guests": {Request: Request{URL: "http://shop/"}, Rate: 1, Keep: time.Second}},
		Expect: []Expectation{{That: "errorRate(guests) == 0.0", Message: lab.Text{ZhTW: "不", En: "no"}}}}
	want(t, compile(t, s).Run(t.Context(), worldOf(t)), lab.CheckNotMet)
	s.Expect[0].That = "percentile(guests, 99) < 100"
	want(t, compile(t, s).Run(t.Context(), worldOf(t)), lab.CheckNotMet)
}

func TestAllNamespaces(t *testing.T) {
	s := Spec{Objects: map[string]Object{"pods": {Kind: "Pod", Namespace: AllNamespaces, Labels: "a=b"}},
		Expect: []Expectation{{That: "pods.map(p, p.metadata.namespace).sort() == ['one', 'two']", Message: lab.Text{ZhTW: "不", En: "no"}}}}
	w := worldOf(t, "kind: Pod\nmetadata: {name: x, namespace: one, labels: {a: b}}", "kind: Pod\nmetadata: {name: x, namespace: two, labels: {a: b}}", "kind: Pod\nmetadata: {name: y, namespace: two}")
	want(t, compile(t, s).Run(t.Context(), w), lab.CheckMet)
}

func TestRequestFaults(t *testing.T) {
	for name, s := range map[string]Spec{
		"too many together": {Requests: map[string]RequestSpec{"x": {Request: Request{URL: "http://a/"}, Together: 11}}},
		"no host":           {Requests: map[string]RequestSpec{"x": {Request: Request{URL: "grill"}}}},
		"from nowhere":      {Requests: map[string]RequestSpec{"x": {Request: Request{URL: "http://a/", From: "moon"}}}},
		"bad labels":        {Requests: map[string]RequestSpec{"x": {Request: Request{URL: "http://a/", From: "pods/=="}}}},
		"a flood":           {Guests: map[string]GuestSpec{"x": {Request: Request{URL: "http://a/"}, Rate: 21, Keep: time.Second}}},
		"too long":          {Guests: map[string]GuestSpec{"x": {Request: Request{URL: "http://a/"}, Rate: 1, Keep: time.Hour}}},
		"one of many":       {Objects: map[string]Object{"x": {Kind: "Pod", Name: "a", Namespace: AllNamespaces}}},
	} {
		s.Expect = []Expectation{{That: "true", Message: lab.Text{ZhTW: "不", En: "no"}}}
		if _, err := Compile(s); err == nil {
			t.Errorf("%s: compiles", name)
		}
	}
}
