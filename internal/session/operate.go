package session

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/time/rate"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
	"kubistro/internal/session/stream"
	"kubistro/internal/terminal/operate"
)

// How often a learner may change the cluster from outside: a change starts and stops
// parts of the cluster, and is told in the record.
const (
	changesPerSecond = 2
	changesAtOnce    = 20
)

var errUnable = lab.Fail(lab.CodeUnsupported, "這個伺服器的叢集類型做不到這件事。", "The clusters of this server can't do this.")

// controls is what the learner can do to the session's cluster from outside. Its methods wake a
// sleeping cluster.
type controls struct {
	l       *live
	changes *rate.Limiter
	keys    sync.Mutex // held while encryption changes: no key may get lost
}

var _ operate.Cluster = (*controls)(nil)

func newControls(l *live) *controls {
	return &controls{l: l, changes: rate.NewLimiter(changesPerSecond, changesAtOnce)}
}

// operator finds an ability of the session's cluster.
func operator[T any](ctx context.Context, c *controls) (op T, err error) {
	r, err := c.l.settled(ctx)
	if err != nil {
		return op, err
	}
	op, ok := r.instance.(T)
	if !ok {
		return op, errUnable
	}
	return op, nil
}

// change does something to the cluster with one of its abilities, in its turn.
func change[T any](ctx context.Context, c *controls, do func(op T) error) error {
	op, err := operator[T](ctx, c)
	if err != nil {
		return err
	}
	if err := c.changes.Wait(ctx); err != nil {
		return lab.Fail(lab.CodeBusy, "一下子做太多了，請稍後再試。", "That is too much at once. Try again in a moment.").Because(err)
	}
	return do(op)
}

// happened notes in the record what the learner did to the cluster from outside.
func (l *live) happened(verb, kind, name, reason, zhTW, en string) {
	l.feed.Outside(lab.Event{Actor: stream.ActorLearner, Verb: verb, Object: lab.ObjectRef{Kind: kind, Name: name}, Reason: reason, Text: &lab.Text{ZhTW: zhTW, En: en}})
}

// Kitchens is part of operate.Cluster.
func (c *controls) Kitchens(ctx context.Context) ([]lab.KitchenState, error) {
	op, err := operator[cluster.KitchenOperator](ctx, c)
	if err != nil {
		return nil, err
	}
	return op.Kitchens(ctx)
}

// AddKitchen is part of operate.Cluster.
func (c *controls) AddKitchen(ctx context.Context, k lab.Kitchen) error {
	return change(ctx, c, func(op cluster.KitchenOperator) error {
		if err := op.AddKitchen(ctx, k); err != nil {
			return err
		}
		c.l.happened(stream.VerbKitchen, "Node", k.Name, "added", "廚房 "+k.Name+" 開張了。", "Kitchen "+k.Name+" is open.")
		return nil
	})
}

// RemoveKitchen is part of operate.Cluster.
func (c *controls) RemoveKitchen(ctx context.Context, name string) error {
	return change(ctx, c, func(op cluster.KitchenOperator) error {
		now, err := kitchen(ctx, op, name)
		if err != nil {
			return err
		}
		if now.Name != "" { // told first: its Node goes at once
			c.l.happened(stream.VerbKitchen, "Node", name, "removed", "廚房 "+name+" 拆掉了。", "Kitchen "+name+" was taken away.")
		}
		return op.RemoveKitchen(ctx, name)
	})
}

// SetKitchen is part of operate.Cluster. What is so already isn't told.
func (c *controls) SetKitchen(ctx context.Context, name string, k lab.KitchenChange) error {
	return change(ctx, c, func(op cluster.KitchenOperator) error {
		now, err := kitchen(ctx, op, name)
		if err != nil {
			return err
		}
		if k.Power != nil {
			if err := op.SetPower(ctx, name, *k.Power); err != nil {
				return err
			}
			switch {
			case *k.Power == now.Power:
			case *k.Power:
				c.l.happened(stream.VerbPower, "Node", name, "on", "廚房 "+name+" 復電了。", "Kitchen "+name+" has power again.")
			default:
				c.l.happened(stream.VerbPower, "Node", name, "off", "廚房 "+name+" 停電了。", "Kitchen "+name+" lost its power.")
			}
		}
		if k.Cable == nil {
			return nil
		}
		if err := op.SetCable(ctx, name, *k.Cable); err != nil {
			return err
		}
		switch {
		case *k.Cable == now.Cable:
		case *k.Cable:
			c.l.happened(stream.VerbCable, "Node", name, "in", "廚房 "+name+" 的網路線接回去了。", "Kitchen "+name+" has its network cable back.")
		default:
			c.l.happened(stream.VerbCable, "Node", name, "out", "廚房 "+name+" 的網路線被拔掉了。", "Kitchen "+name+" lost its network cable.")
		}
		return nil
	})
}

// kitchen finds the state of a kitchen; one that isn't there has none, and the change is refused.
func kitchen(ctx context.Context, op cluster.KitchenOperator, name string) (lab.KitchenState, error) {
	list, err := op.Kitchens(ctx)
	if err != nil {
		return lab.KitchenState{}, err
	}
	for _, k := range list {
		if k.Name == name {
			return k, nil
		}
	}
	return lab.KitchenState{}, nil
}

// Loops is part of operate.Cluster.
func (c *controls) Loops(ctx context.Context) ([]lab.ControlLoop, error) {
	op, err := operator[cluster.LoopOperator](ctx, c)
	if err != nil {
		return nil, err
	}
	return op.Loops(ctx)
}

// SetLoop is part of operate.Cluster.
func (c *controls) SetLoop(ctx context.Context, name string, home bool) error {
	return change(ctx, c, func(op cluster.LoopOperator) error {
		if err := op.SetLoop(ctx, name, home); err != nil {
			return err
		}
		if home {
			c.l.happened(stream.VerbLoop, stream.KindLoop, name, stream.ReasonHome, name+" 下班了。", name+" went home.")
		} else {
			c.l.happened(stream.VerbLoop, stream.KindLoop, name, stream.ReasonBack, name+" 回來上班了。", name+" is back at work.")
		}
		return nil
	})
}

// ClusterClock is part of operate.Cluster.
func (c *controls) ClusterClock(ctx context.Context) (lab.Clock, error) {
	op, err := operator[cluster.ClockSetter](ctx, c)
	if err != nil {
		return lab.Clock{}, err
	}
	return op.Clock(ctx)
}

// SetClusterClock is part of operate.Cluster.
func (c *controls) SetClusterClock(ctx context.Context, speed int) error {
	return change(ctx, c, func(op cluster.ClockSetter) error {
		if err := op.SetClock(ctx, speed); err != nil {
			return err
		}
		n := strconv.Itoa(speed)
		if speed == 1 {
			c.l.happened(stream.VerbClock, stream.KindClock, "", n, "時鐘恢復真實的速度。", "The clock runs in real time.")
		} else {
			c.l.happened(stream.VerbClock, stream.KindClock, "", n, "等待時間縮短為 1/"+n+"。", "Waiting times are 1/"+n+" of the real ones.")
		}
		return nil
	})
}

// EtcdKeys is part of operate.Cluster.
func (c *controls) EtcdKeys(ctx context.Context, prefix, after string, limit int) (lab.EtcdKeys, error) {
	op, err := operator[cluster.StorageOperator](ctx, c)
	if err != nil {
		return lab.EtcdKeys{}, err
	}
	return op.EtcdKeys(ctx, prefix, after, limit)
}

// EtcdValue is part of operate.Cluster.
func (c *controls) EtcdValue(ctx context.Context, key string) (lab.EtcdValue, error) {
	op, err := operator[cluster.StorageOperator](ctx, c)
	if err != nil {
		return lab.EtcdValue{}, err
	}
	v, err := op.EtcdValue(ctx, key)
	var e *lab.Error
	if errors.As(err, &e) && e.Code == lab.CodeNotFound {
		return v, lab.Fail(lab.CodeNotFound, "etcd 裡沒有這個鍵。", "etcd has no such key.").Because(err)
	}
	return v, err
}

// Encryption is part of operate.Cluster.
func (c *controls) Encryption(ctx context.Context) (lab.EncryptionState, error) {
	op, err := operator[cluster.StorageOperator](ctx, c)
	if err != nil {
		return lab.EncryptionState{}, err
	}
	e, err := op.Encryption(ctx)
	if err != nil {
		return lab.EncryptionState{}, err
	}
	return encryptionState(e)
}

// SetEncryption is part of operate.Cluster.
func (c *controls) SetEncryption(ctx context.Context, k lab.EncryptionChange) error {
	return change(ctx, c, func(op cluster.StorageOperator) error {
		c.keys.Lock()
		defer c.keys.Unlock()
		now, err := op.Encryption(ctx)
		if err != nil {
			return err
		}
		next, err := changedEncryption(now, k)
		if err != nil {
			return err
		}
		if err := op.SetEncryption(ctx, next); err != nil {
			return err
		}
		state, err := encryptionState(next)
		if err != nil {
			return err
		}
		if state.On {
			c.l.happened(stream.VerbEncryption, stream.KindEtcd, "", "on", "保險箱上鎖了：新寫入的 "+strings.Join(state.Resources, ", ")+" 會加密。", "The safe has a lock: "+strings.Join(state.Resources, ", ")+" are encrypted when they are written.")
		} else {
			c.l.happened(stream.VerbEncryption, stream.KindEtcd, "", "off", "保險箱的鎖拆掉了：新寫入的內容不再加密。", "The safe has no lock: what is written isn't encrypted.")
		}
		return nil
	})
}
