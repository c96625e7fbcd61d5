package kind

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kubistro/internal/cluster"
	"kubistro/internal/clusterhost/loops"
	"kubistro/internal/lab"
)

var (
	_ cluster.KitchenOperator = (*instance)(nil)
	_ cluster.LoopOperator    = (*instance)(nil)
	_ cluster.ClockSetter     = (*instance)(nil)
)

// changeWithin bounds one change of a running cluster. A component that starts anew needs some 15 s, and on a machine
// with more work than processors some minutes.
const changeWithin = 10 * time.Minute

// Reasons for which a change isn't made.
var (
	errInvalid  = errors.New("invalid")
	errNotFound = errors.New("not found")
	errConflict = errors.New("conflict")
)

// refusal says for people why the cluster didn't do what it was asked for.
func refusal(err error) error {
	var already *lab.Error
	switch {
	case err == nil || errors.As(err, &already):
		return err
	case errors.Is(err, errInvalid):
		return cluster.Refused(lab.CodeInvalid, "").Because(err)
	case errors.Is(err, errNotFound):
		return cluster.Refused(lab.CodeNotFound, "").Because(err)
	case errors.Is(err, errConflict):
		return cluster.Refused(lab.CodeConflict, "").Because(err)
	}
	return cluster.Refused(lab.CodeUnavailable, "").Because(err)
}

// changing makes one change at a time; the record is kept when it has succeeded.
func (in *instance) changing(ctx context.Context, change func(ctx context.Context, r *record) error) error {
	in.work.Lock()
	defer in.work.Unlock()
	if in.ctx.Err() != nil {
		return refusal(errEnded)
	}
	ctx, cancel := context.WithTimeout(ctx, changeWithin)
	defer cancel()
	defer context.AfterFunc(in.ctx, cancel)()
	r := in.known()
	if err := change(ctx, &r); err != nil {
		return refusal(err)
	}
	if err := in.d.writeRecord(in.id, &r); err != nil {
		return refusal(err)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.record = r
	return nil
}

// known is what is known of the cluster now; its maps aren't changed any more.
func (in *instance) known() record {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.record
}

// container is that of a kitchen; the office is none.
func (r *record) container(name string) (string, error) {
	if !slices.Contains(r.kitchens(), name) {
		return "", fmt.Errorf("%w: there is no kitchen %q", errNotFound, name)
	}
	return r.Nodes[name], nil
}

// Kitchens lists the kitchens that there are now.
func (in *instance) Kitchens(ctx context.Context) ([]lab.KitchenState, error) {
	if in.ctx.Err() != nil {
		return nil, refusal(errEnded)
	}
	r := in.known()
	out := []lab.KitchenState{}
	for _, name := range r.kitchens() {
		s := lab.KitchenState{Kitchen: *r.kitchen(name), Power: !slices.Contains(r.Changes.Off, name), Cable: !slices.Contains(r.Changes.Cut, name)}
		if ip, err := address(ctx, in.d.engine, r.Nodes[name]); err == nil {
			s.Address = ip // without power it has none
		}
		out = append(out, s)
	}
	return out, nil
}

// SetPower powers a kitchen off or on: its container is killed or started.
func (in *instance) SetPower(ctx context.Context, name string, on bool) error {
	return in.changing(ctx, func(ctx context.Context, r *record) error {
		container, err := r.container(name)
		if err != nil {
			return err
		}
		if on != slices.Contains(r.Changes.Off, name) {
			return nil
		}
		if on {
			err = in.powerOn(ctx, r, name)
		} else {
			_, err = in.d.engine.run(ctx, nil, "kill", container)
		}
		if err == nil {
			r.Changes.Off = set(r.Changes.Off, name, !on)
		}
		return err
	})
}

// powerOn starts a kitchen's container, with what was changed meanwhile.
func (in *instance) powerOn(ctx context.Context, r *record, name string) error {
	container := r.Nodes[name]
	if _, err := in.d.engine.run(ctx, nil, "start", container); err != nil {
		return err
	}
	on := *r
	on.Changes.Off = set(r.Changes.Off, name, false)
	if err := in.d.filter(ctx, &on); err != nil { // before the first Pod runs again
		return err
	}
	if err := in.d.restore(ctx, r, name); err != nil {
		return err
	}
	// The runtime may have given it another address, which the agent has to know.
	return in.currentAgent().Close()
}

// restore brings a node whose container has started into the state that it is to have.
func (d *Driver) restore(ctx context.Context, r *record, name string) error {
	container := r.Nodes[name]
	if slices.Contains(r.Changes.Cut, name) {
		if err := setCable(ctx, d.engine, container, false); err != nil {
			return err
		}
	}
	if err := d.paceKubelet(ctx, r, name); err != nil {
		return err
	}
	if slices.Contains(r.Changes.Home, loops.Kubelet+name) {
		_, err := inNode(ctx, d.engine, container, "systemctl", "stop", "kubelet")
		return err
	}
	return nil
}

// SetCable pulls a kitchen's network cable or plugs it in. Its containers run on.
func (in *instance) SetCable(ctx context.Context, name string, plugged bool) error {
	return in.changing(ctx, func(ctx context.Context, r *record) error {
		container, err := r.container(name)
		if err != nil {
			return err
		}
		if plugged != slices.Contains(r.Changes.Cut, name) {
			return nil
		}
		if !slices.Contains(r.Changes.Off, name) {
			err = setCable(ctx, in.d.engine, container, plugged)
		}
		if err == nil {
			r.Changes.Cut = set(r.Changes.Cut, name, !plugged)
		}
		return err
	})
}

// cableRules drop everything that comes and goes over a node's wire, without a
// word, as a pulled cable does. The container stays on the network, and so keeps its address.
var cableRules = []string{"-t raw %s PREROUTING -i eth0 -j DROP", "-t mangle %s POSTROUTING -o eth0 -j DROP"}

func setCable(ctx context.Context, e engine, container string, plugged bool) error {
	for _, rule := range cableRules {
		action := "-I"
		if plugged {
			action = "-D"
		}
		args := append([]string{"iptables", "-w"}, strings.Fields(fmt.Sprintf(rule, action))...)
		if _, err := inNode(ctx, e, container, args...); err != nil {
			return err
		}
	}
	return nil
}
