package checker

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// send makes a request as often as the spec says. After the first failure to look no more are sent.
func (r *run) send(ctx context.Context, q RequestSpec) (any, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := make([]any, max(q.Times, 1))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(max(q.Together, 1), len(out)) {
		wg.Go(func() {
			for i := range next {
				resp, err := r.world.Request(ctx, q.Request)
				if err != nil {
					cancel(err) // the first one stays the cause
					return
				}
				out[i] = responseMap(resp)
			}
		})
	}
	for i := range out {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, &worldError{err}
	}
	return out, nil
}

func responseMap(v Response) map[string]any {
	headers := map[string]any{}
	for k, h := range v.Headers {
		headers[k] = h
	}
	return map[string]any{
		"code": int64(v.Code), "body": v.Body, "headers": headers, "failure": v.Failure, "by": v.By, "ms": v.Took.Milliseconds(),
	}
}

// visits are what steady guests have met.
func (r *run) visits(ctx context.Context, name string) (any, error) {
	list, err := r.world.Visits(ctx, name)
	if err != nil {
		return nil, &worldError{err}
	}
	out := make([]any, len(list))
	for i, v := range list {
		m := responseMap(v.Response)
		m["at"] = v.At
		out[i] = m
	}
	return out, nil
}

// withList calls f with a list of responses.
func withList(f func([]map[string]any) ref.Val) func(ref.Val) ref.Val {
	return func(v ref.Val) ref.Val {
		list, ok := v.(traits.Lister)
		if !ok {
			return types.MaybeNoSuchOverloadErr(v)
		}
		var out []map[string]any
		for it := list.Iterator(); it.HasNext() == types.True; {
			item := it.Next()
			m, ok := item.Value().(map[string]any)
			if !ok {
				native, err := item.ConvertToNative(reflect.TypeFor[map[string]any]())
				if m, ok = native.(map[string]any); err != nil || !ok {
					return types.MaybeNoSuchOverloadErr(item)
				}
			}
			out = append(out, m)
		}
		return f(out)
	}
}

func answered(r map[string]any) bool {
	code := number(r, "code")
	return text(r, "failure") == "" && code > 0 && code < 400
}

func failed(r map[string]any) bool { return text(r, "failure") != "" || number(r, "code") >= 500 }

// nobodyAsked is the result of figures about no requests at all: something missing, not zero.
func nobodyAsked() ref.Val { return types.NewErr("no such key: there were no requests") }

func errorRate(list []map[string]any) ref.Val {
	if len(list) == 0 {
		return nobodyAsked()
	}
	n := 0
	for _, r := range list {
		if failed(r) {
			n++
		}
	}
	return types.Double(float64(n) / float64(len(list)))
}

func spread(list []map[string]any) ref.Val {
	out := map[string]int64{}
	for _, r := range list {
		if by := text(r, "by"); by != "" && answered(r) {
			out[by]++
		}
	}
	return types.DefaultTypeAdapter.NativeToValue(out)
}

func percentile(list []map[string]any, p ref.Val) ref.Val {
	var share float64
	switch v := p.(type) {
	case types.Int:
		share = float64(v) / 100
	case types.Double:
		share = float64(v) / 100
	default:
		return types.MaybeNoSuchOverloadErr(p)
	}
	if share <= 0 || share > 1 {
		return types.NewErr("percentile: %v isn't above 0 and at most 100", p.Value())
	}
	var took []int64
	for _, r := range list {
		if text(r, "failure") == "" {
			took = append(took, number(r, "ms"))
		}
	}
	if len(took) == 0 {
		return nobodyAsked()
	}
	slices.Sort(took)
	return types.Int(took[max(0, int(share*float64(len(took))+0.999999)-1)])
}
