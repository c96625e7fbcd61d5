package kubelet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetCable pulls the node's network cable or plugs it in. Without it the node's
// containers run on and reach each other, and nothing passes between the node and
// the rest of the cluster, the API server included.
func (k *Kubelet) SetCable(in bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cut = !in
	if k.iface != nil {
		k.iface.SetCut(k.cut)
	}
}

// Cable reports whether the network cable is in.
func (k *Kubelet) Cable() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.cut
}

// Discard gives back what the node held, after Run has returned for the last time.
func (k *Kubelet) Discard() { k.disk.Release() }

// Power reports whether the node is on.
func (k *Kubelet) Power() bool { return k.power.isOn() }

// SetWorking stops the kubelet, or starts it again, as systemctl does on a node:
// containers run on without it, but nobody starts, ends, probes or restarts them,
// and nothing is reported. It may be called before Run.
func (k *Kubelet) SetWorking(on bool) { k.work.set(on) }

// Working reports whether the kubelet runs.
func (k *Kubelet) Working() bool { return k.work.isOpen() }

// SetStatic takes the manifest of a Pod of Config.Static away or puts it back: the
// Pod and its mirror end, or start anew. The name is without the node's.
func (k *Kubelet) SetStatic(name string, on bool) error {
	at := slices.IndexFunc(k.cfg.Static, func(p *corev1.Pod) bool { return strings.TrimSuffix(p.Name, "-"+k.cfg.Name) == name })
	if at < 0 {
		return fmt.Errorf("kubelet %s: there is no static Pod %q", k.cfg.Name, name)
	}
	p := k.cfg.Static[at]
	k.mu.Lock()
	b := k.boot
	has := slices.Contains(k.static, p)
	switch {
	case on && !has:
		k.static = append(k.static, p)
	case !on && has:
		k.static = slices.DeleteFunc(k.static, func(q *corev1.Pod) bool { return q == p })
	}
	k.mu.Unlock()
	if b != nil && on != has {
		b.changeStatic(p, on)
	}
	return nil
}

func (k *Kubelet) statics() []*corev1.Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.static)
}

// changeStatic follows kubelet.go, HandlePodAdditions and HandlePodRemoves, for a
// manifest. Before the node's Pods are watched, startStatic will do it.
func (b *boot) changeStatic(p *corev1.Pod, on bool) {
	p = staticPod(p, b.k.cfg.Name, b.k.clock.Now())
	b.mu.Lock()
	if b.static == nil {
		b.mu.Unlock()
		return
	}
	old := b.static[podName(p)]
	if on {
		b.static[podName(p)] = p
	} else {
		delete(b.static, podName(p))
	}
	b.mu.Unlock()
	if on && old == nil {
		w := newWorker(b, p, true)
		b.add(w)
		b.wg.Go(func() { b.createMirror(w) })
		return
	}
	if w := b.staticByName(p); !on && w != nil {
		w.mu.Lock()
		m := w.mirror
		w.mu.Unlock()
		w.remove()
		if m != nil {
			b.wg.Go(func() { b.deleteMirror(m) })
		}
	}
}

// wanted is the manifest of a static Pod; nil when there is none.
func (b *boot) wanted(p metav1.Object) *corev1.Pod {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.static[p.GetName()+"_"+p.GetNamespace()]
}

// gate holds those that wait for it while it is closed.
type gate struct {
	mu      sync.Mutex
	open    bool
	changed chan struct{} // closed at the next change
}

func newGate() *gate { return &gate{open: true, changed: make(chan struct{})} }

func (g *gate) set(open bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open != open {
		g.open = open
		close(g.changed)
		g.changed = make(chan struct{})
	}
}

func (g *gate) isOpen() bool {
	open, _ := g.state()
	return open
}

func (g *gate) state() (open bool, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open, g.changed
}

// wait waits until the gate is open; false: ctx ended first.
func (g *gate) wait(ctx context.Context) bool {
	for ctx.Err() == nil {
		open, changed := g.state()
		if open {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return false
}
