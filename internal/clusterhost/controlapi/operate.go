package controlapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"kubistro/internal/lab"
)

// What a refused request comes to; use errors.Is.
var (
	ErrInvalid  = errors.New("invalid")
	ErrNotFound = errors.New("not found")
	ErrConflict = errors.New("conflict")
)

// refusals are the statuses of the refusals above.
var refusals = map[int]error{
	http.StatusBadRequest: ErrInvalid, http.StatusNotFound: ErrNotFound, http.StatusConflict: ErrConflict,
}

// StatusOf is the HTTP status of an error, 500 for one that is no refusal.
func StatusOf(err error) int {
	if errors.Is(err, ErrNotReady) {
		return http.StatusServiceUnavailable
	}
	for code, refusal := range refusals {
		if errors.Is(err, refusal) {
			return code
		}
	}
	return http.StatusInternalServerError
}

// refusal is the error of an answer that is one of the refusals.
type refusal struct {
	kind           error
	call, sentence string
}

func (r *refusal) Error() string { return "cluster host, " + r.call + ": " + r.sentence }
func (r *refusal) Unwrap() error { return r.kind }

// Reason is why the host refused, in a sentence that may be shown; empty for an
// error that is no refusal.
func Reason(err error) string {
	var r *refusal
	if !errors.As(err, &r) {
		return ""
	}
	return strings.TrimPrefix(r.sentence, r.kind.Error()+": ")
}

// refused is the error of an answer; it is one of the refusals where the status says so.
func refused(method, path string, resp *http.Response, body []byte) error {
	if kind := refusals[resp.StatusCode]; kind != nil {
		return &refusal{kind, method + " " + path, string(body)}
	}
	return fmt.Errorf("cluster host, %s %s: %s: %s", method, path, resp.Status, body)
}

// Cable pulls a kitchen's network cable or plugs it in.
func (c *Client) Cable(ctx context.Context, r CableRequest) error {
	return c.call(ctx, http.MethodPost, PathCable, r, nil)
}

// Kitchens lists the kitchens that there are now.
func (c *Client) Kitchens(ctx context.Context) ([]lab.KitchenState, error) {
	var out []lab.KitchenState
	return out, c.call(ctx, http.MethodGet, PathKitchens, nil, &out)
}

// AddKitchen opens a kitchen; it returns when its node is Ready.
func (c *Client) AddKitchen(ctx context.Context, k lab.Kitchen) error {
	return c.call(ctx, http.MethodPost, PathKitchens, k, nil)
}

// RemoveKitchen takes a kitchen away with its node, as when a machine is given back:
// what runs on it ends without warning.
func (c *Client) RemoveKitchen(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, PathKitchens+"/"+url.PathEscape(name), nil, nil)
}

// Loops lists the control loops.
func (c *Client) Loops(ctx context.Context) ([]lab.ControlLoop, error) {
	var out []lab.ControlLoop
	return out, c.call(ctx, http.MethodGet, PathLoops, nil, &out)
}

// SetLoop sends a control loop home or calls it back.
func (c *Client) SetLoop(ctx context.Context, r LoopRequest) error {
	return c.call(ctx, http.MethodPost, PathLoops, r, nil)
}

// Clock tells how periods are compressed.
func (c *Client) Clock(ctx context.Context) (lab.Clock, error) {
	var out lab.Clock
	return out, c.call(ctx, http.MethodGet, PathClock, nil, &out)
}

// SetClock changes how periods are compressed. Defaults that are written into
// objects (tolerations, the progress deadline) change for objects that are made afterwards.
func (c *Client) SetClock(ctx context.Context, r ClockRequest) error {
	return c.call(ctx, http.MethodPut, PathClock, r, nil)
}
