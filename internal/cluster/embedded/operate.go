package embedded

import (
	"context"
	"errors"

	"kubistro/internal/cluster"
	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

var (
	_ cluster.KitchenOperator = (*instance)(nil)
	_ cluster.LoopOperator    = (*instance)(nil)
	_ cluster.ClockSetter     = (*instance)(nil)
	_ cluster.StorageOperator = (*instance)(nil)
)

// operate does one call of the control API and makes a *lab.Error of its error.
func (in *instance) operate(call func() error) error {
	if in.ctx.Err() != nil {
		return refusal(errEnded)
	}
	return refusal(call())
}

// refusal says for people why the host didn't do what it was asked for.
func refusal(err error) error {
	why := controlapi.Reason(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, controlapi.ErrInvalid):
		return cluster.Refused(lab.CodeInvalid, why).Because(err)
	case errors.Is(err, controlapi.ErrNotFound):
		return cluster.Refused(lab.CodeNotFound, why).Because(err)
	case errors.Is(err, controlapi.ErrConflict):
		return cluster.Refused(lab.CodeConflict, why).Because(err)
	}
	return cluster.Refused(lab.CodeUnavailable, "").Because(err)
}

// Kitchens lists the kitchens that there are now.
func (in *instance) Kitchens(ctx context.Context) (out []lab.KitchenState, err error) {
	err = in.operate(func() (err error) { out, err = in.client.Kitchens(ctx); return err })
	return out, err
}

// AddKitchen opens a kitchen and returns when its node is Ready.
func (in *instance) AddKitchen(ctx context.Context, k lab.Kitchen) error {
	return in.operate(func() error { return in.client.AddKitchen(ctx, k) })
}

// RemoveKitchen takes a kitchen away with its node.
func (in *instance) RemoveKitchen(ctx context.Context, name string) error {
	return in.operate(func() error { return in.client.RemoveKitchen(ctx, name) })
}

// SetPower powers a kitchen off or on.
func (in *instance) SetPower(ctx context.Context, name string, on bool) error {
	return in.operate(func() error { return in.client.Power(ctx, controlapi.PowerRequest{Node: name, On: on}) })
}

// SetCable pulls a kitchen's network cable or plugs it in.
func (in *instance) SetCable(ctx context.Context, name string, plugged bool) error {
	return in.operate(func() error { return in.client.Cable(ctx, controlapi.CableRequest{Node: name, In: plugged}) })
}

// Loops lists the control loops.
func (in *instance) Loops(ctx context.Context) (out []lab.ControlLoop, err error) {
	err = in.operate(func() (err error) { out, err = in.client.Loops(ctx); return err })
	return out, err
}

// SetLoop sends a control loop home or calls it back.
func (in *instance) SetLoop(ctx context.Context, name string, home bool) error {
	return in.operate(func() error { return in.client.SetLoop(ctx, controlapi.LoopRequest{Name: name, Home: home}) })
}

// Clock tells how periods are compressed.
func (in *instance) Clock(ctx context.Context) (out lab.Clock, err error) {
	err = in.operate(func() (err error) { out, err = in.client.Clock(ctx); return err })
	return out, err
}

// SetClock changes how periods are compressed.
func (in *instance) SetClock(ctx context.Context, speed int) error {
	return in.operate(func() error { return in.client.SetClock(ctx, controlapi.ClockRequest{Speed: speed}) })
}

// EtcdKeys lists a page of etcd's keys.
func (in *instance) EtcdKeys(ctx context.Context, prefix, after string, limit int) (out lab.EtcdKeys, err error) {
	err = in.operate(func() (err error) { out, err = in.client.EtcdKeys(ctx, prefix, after, limit); return err })
	return out, err
}

// EtcdValue reads the raw bytes of a key.
func (in *instance) EtcdValue(ctx context.Context, key string) (out lab.EtcdValue, err error) {
	err = in.operate(func() (err error) { out, err = in.client.EtcdValue(ctx, key); return err })
	return out, err
}

// Encryption tells how resources are encrypted at rest.
func (in *instance) Encryption(ctx context.Context) (out lab.Encryption, err error) {
	err = in.operate(func() (err error) { out, err = in.client.Encryption(ctx); return err })
	return out, err
}

// SetEncryption changes how resources are written from now on.
func (in *instance) SetEncryption(ctx context.Context, e lab.Encryption) error {
	return in.operate(func() error { return in.client.SetEncryption(ctx, e) })
}
