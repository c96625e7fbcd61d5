package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"kubistro/internal/lab"
)

// Bounds of what goes over the wire.
const (
	maxRequest  = 128 << 10
	maxAnswer   = 4 << 20
	requestTime = 10 * time.Second // until a request must have come
)

// Names of the requests.
const (
	doKitchens      = "kitchens"
	doAddKitchen    = "add-kitchen"
	doRemoveKitchen = "remove-kitchen"
	doSetKitchen    = "set-kitchen"
	doLoops         = "loops"
	doSetLoop       = "set-loop"
	doClock         = "clock"
	doSetClock      = "set-clock"
	doEtcdKeys      = "etcd-keys"
	doEtcdValue     = "etcd-value"
	doEncryption    = "encryption"
	doSetEncryption = "set-encryption"
)

// request is one call; which fields count depends on Do.
type request struct {
	Do         string                `json:"do"`
	Name       string                `json:"name,omitempty"` // of a kitchen, a loop or a key; a prefix of keys
	After      string                `json:"after,omitempty"`
	Number     int                   `json:"number,omitempty"` // limit of keys, speed
	Home       bool                  `json:"home,omitempty"`
	Kitchen    *lab.Kitchen          `json:"kitchen,omitempty"`
	Change     *lab.KitchenChange    `json:"change,omitempty"`
	Encryption *lab.EncryptionChange `json:"encryption,omitempty"`
}

type answer struct {
	Code lab.Code        `json:"code,omitempty"` // of a failure
	Text lab.Text        `json:"text,omitzero"`
	Out  json.RawMessage `json:"out,omitempty"`
}

// Serve answers the one request that comes over conn and returns; the caller closes conn. When
// the other end leaves, the work's context ends.
func Serve(ctx context.Context, conn net.Conn, c Cluster) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	conn.SetReadDeadline(time.Now().Add(requestTime))
	var req request
	if err := json.NewDecoder(io.LimitReader(conn, maxRequest)).Decode(&req); err != nil {
		return
	}
	conn.SetReadDeadline(time.Time{})
	left := make(chan struct{})
	go func() {
		defer close(left)
		io.Copy(io.Discard, conn)
		cancel()
	}()
	out, err := call(ctx, c, req)
	var a answer
	if err == nil && out != nil {
		a.Out, err = json.Marshal(out)
	}
	if err != nil {
		e := lab.AsError(err)
		a = answer{Code: e.Code, Text: e.Text}
	}
	conn.SetWriteDeadline(time.Now().Add(requestTime))
	json.NewEncoder(conn).Encode(a)
	conn.SetReadDeadline(time.Unix(1, 0))
	<-left
}

var errUnknown = lab.Fail(lab.CodeInvalid, "看不懂這個要求。", "The request can't be understood.")

func call(ctx context.Context, c Cluster, r request) (any, error) {
	switch {
	case r.Do == doKitchens:
		return c.Kitchens(ctx)
	case r.Do == doAddKitchen && r.Kitchen != nil:
		return nil, c.AddKitchen(ctx, *r.Kitchen)
	case r.Do == doRemoveKitchen:
		return nil, c.RemoveKitchen(ctx, r.Name)
	case r.Do == doSetKitchen && r.Change != nil:
		return nil, c.SetKitchen(ctx, r.Name, *r.Change)
	case r.Do == doLoops:
		return c.Loops(ctx)
	case r.Do == doSetLoop:
		return nil, c.SetLoop(ctx, r.Name, r.Home)
	case r.Do == doClock:
		return c.ClusterClock(ctx)
	case r.Do == doSetClock:
		return nil, c.SetClusterClock(ctx, r.Number)
	case r.Do == doEtcdKeys:
		return c.EtcdKeys(ctx, r.Name, r.After, r.Number)
	case r.Do == doEtcdValue:
		return c.EtcdValue(ctx, r.Name)
	case r.Do == doEncryption:
		return c.Encryption(ctx)
	case r.Do == doSetEncryption && r.Encryption != nil:
		return nil, c.SetEncryption(ctx, *r.Encryption)
	}
	return nil, errUnknown
}

// Remote is the Cluster at the other end of the connections that dial opens, one for each call.
func Remote(dial func(ctx context.Context) (net.Conn, error)) Cluster { return remote{dial} }

type remote struct {
	dial func(ctx context.Context) (net.Conn, error)
}

func (r remote) ask(ctx context.Context, req request, out any) error {
	conn, err := r.dial(ctx)
	if err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := json.NewEncoder(conn).Encode(req); err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	var a answer
	if err := json.NewDecoder(io.LimitReader(conn, maxAnswer)).Decode(&a); err != nil {
		return fmt.Errorf("answer of the server: %w", errors.Join(ctx.Err(), err))
	}
	if a.Code != "" {
		return &lab.Error{Code: a.Code, Text: a.Text}
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(a.Out, out)
}

func fetch[T any](ctx context.Context, r remote, req request) (T, error) {
	var out T
	err := r.ask(ctx, req, &out)
	return out, err
}

func (r remote) Kitchens(ctx context.Context) ([]lab.KitchenState, error) {
	return fetch[[]lab.KitchenState](ctx, r, request{Do: doKitchens})
}

func (r remote) AddKitchen(ctx context.Context, k lab.Kitchen) error {
	return r.ask(ctx, request{Do: doAddKitchen, Kitchen: &k}, nil)
}

func (r remote) RemoveKitchen(ctx context.Context, name string) error {
	return r.ask(ctx, request{Do: doRemoveKitchen, Name: name}, nil)
}

func (r remote) SetKitchen(ctx context.Context, name string, c lab.KitchenChange) error {
	return r.ask(ctx, request{Do: doSetKitchen, Name: name, Change: &c}, nil)
}

func (r remote) Loops(ctx context.Context) ([]lab.ControlLoop, error) {
	return fetch[[]lab.ControlLoop](ctx, r, request{Do: doLoops})
}

func (r remote) SetLoop(ctx context.Context, name string, home bool) error {
	return r.ask(ctx, request{Do: doSetLoop, Name: name, Home: home}, nil)
}

func (r remote) ClusterClock(ctx context.Context) (lab.Clock, error) {
	return fetch[lab.Clock](ctx, r, request{Do: doClock})
}

func (r remote) SetClusterClock(ctx context.Context, speed int) error {
	return r.ask(ctx, request{Do: doSetClock, Number: speed}, nil)
}

func (r remote) EtcdKeys(ctx context.Context, prefix, after string, limit int) (lab.EtcdKeys, error) {
	return fetch[lab.EtcdKeys](ctx, r, request{Do: doEtcdKeys, Name: prefix, After: after, Number: limit})
}

func (r remote) EtcdValue(ctx context.Context, key string) (lab.EtcdValue, error) {
	return fetch[lab.EtcdValue](ctx, r, request{Do: doEtcdValue, Name: key})
}

func (r remote) Encryption(ctx context.Context) (lab.EncryptionState, error) {
	return fetch[lab.EncryptionState](ctx, r, request{Do: doEncryption})
}

func (r remote) SetEncryption(ctx context.Context, c lab.EncryptionChange) error {
	return r.ask(ctx, request{Do: doSetEncryption, Encryption: &c}, nil)
}
