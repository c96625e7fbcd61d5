// Package cgroup accounts what simulated containers use, as the kernel's control
// groups (version 2) do for real ones: CPU time by weight and quota, memory and
// the number of processes, in a tree of node, QoS class, Pod and container.
//
// Nothing here uses the host's CPU or memory, but for NewReal: a program says what its work costs
// and waits as long as that work would take where it runs. The package knows no
// Kubernetes; it starts a goroutine only while work is going on.
package cgroup

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// Limits are what a group may use; 0 means no limit.
type Limits struct {
	Weight int64 // of CPU against its neighbours, in CPU shares: 1024 for a core; 0: 2, the least
	CPU    int64 // millicores: quota of a period of 100 ms
	Memory int64 // bytes
	Pids   int64
}

// Group is a control group. The zero value belongs to no node: it counts and
// limits nothing, which is enough for a program that is tried alone. It is safe
// for concurrent use.
type Group struct {
	m      *machine
	parent *Group

	kernel Kernel // of a real container; nil: all is simulated

	direct atomic.Int64 // CPU time that was used without waiting, nanoseconds
	memory atomic.Int64
	pids   atomic.Int64
	limit  atomic.Pointer[Limits]
	oom    atomic.Pointer[func()]

	mu     sync.Mutex // guards closed, and with it that nothing is counted afterwards
	closed bool

	cpu cpuState // guarded by machine.mu
}

// Kernel uses CPU and memory in earnest. Its methods are safe for concurrent use.
type Kernel interface {
	Work(ctx context.Context, d time.Duration) error
	Load(millicores int64) (stop func())
	Hold(bytes int64) // in all, from now on
}

// NewReal is the group of a process in a real container: the kernel limits what it
// uses, so it has to be used.
func NewReal(k Kernel) *Group { return &Group{kernel: k} }

// NewNode is the root of a node's tree: a machine with so many cores.
func NewNode(c clock.Clock, millicores, memory int64) *Group {
	g := &Group{m: &machine{clock: c, last: c.Now(), epoch: c.Now(), kick: make(chan struct{}, 1)}}
	g.m.root = g
	g.limit.Store(&Limits{CPU: millicores, Memory: memory})
	return g
}

// Child makes a group in g.
func (g *Group) Child(l Limits) *Group {
	c := &Group{m: g.m, parent: g}
	c.limit.Store(&l)
	if g.m != nil {
		g.m.mu.Lock()
		defer g.m.mu.Unlock()
		g.m.advance()
		c.cpu.tokens = l.burst()
		g.cpu.children = append(g.cpu.children, c)
	}
	return c
}

// Limits are the group's own limits, not those of the groups that it is in.
func (g *Group) Limits() Limits {
	if l := g.limit.Load(); l != nil {
		return *l
	}
	return Limits{}
}

// SetLimits changes the limits; memory that is over the new limit already is
// noticed at the next use, as in the kernel when it can't reclaim.
func (g *Group) SetLimits(l Limits) {
	if g.m == nil {
		g.limit.Store(&l)
		return
	}
	g.m.mu.Lock()
	defer g.m.mu.Unlock()
	g.m.advance()
	g.limit.Store(&l)
	g.cpu.tokens = min(g.cpu.tokens, l.burst())
	g.m.schedule()
}

// OnOOM sets what is called when the group's memory grows over its limit. It is
// called by the program that asked for the memory and must not block.
func (g *Group) OnOOM(f func()) { g.oom.Store(&f) }

// Close takes the group out of the tree: its memory and processes no longer
// count, its work ends unfinished. What it used can still be read.
func (g *Group) Close() {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	g.closed = true
	g.mu.Unlock()
	mem, pids := g.memory.Swap(0), g.pids.Swap(0)
	for p := g.parent; p != nil; p = p.parent {
		p.memory.Add(-mem)
		p.pids.Add(-pids)
	}
	if g.m != nil {
		g.m.remove(g)
	}
}

// AddMemory changes what the programs of the group hold by so many bytes.
func (g *Group) AddMemory(bytes int64) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return
	}
	g.memory.Add(bytes)
	for p := g.parent; p != nil; p = p.parent {
		p.memory.Add(bytes)
	}
	g.mu.Unlock()
	if g.kernel != nil {
		g.kernel.Hold(g.Memory())
	}
	if bytes <= 0 {
		return
	}
	for p := g; p != nil; p = p.parent {
		if l := p.Limits().Memory; l > 0 && p.memory.Load() > l {
			if f := p.oom.Load(); f != nil {
				(*f)()
			}
			return
		}
	}
}

// SetMemory says how many bytes the programs of the group hold now.
func (g *Group) SetMemory(bytes int64) { g.AddMemory(bytes - g.memory.Load()) }

// Memory is what the group holds.
func (g *Group) Memory() int64 { return max(g.memory.Load(), 0) }

// Fork counts one more process; false, and nothing is counted, when a limit is reached.
func (g *Group) Fork() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	for p := g; p != nil; p = p.parent {
		if l := p.Limits().Pids; p.pids.Add(1) > l && l > 0 {
			for u := g; ; u = u.parent {
				u.pids.Add(-1)
				if u == p {
					return false
				}
			}
		}
	}
	return true
}

// Exit is the end of a process that Fork counted.
func (g *Group) Exit() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return
	}
	for p := g; p != nil; p = p.parent {
		p.pids.Add(-1)
	}
}

// Pids is how many processes the group has.
func (g *Group) Pids() int64 { return max(g.pids.Load(), 0) }

// Read returns the CPU time so far (nanoseconds) and the working set (bytes).
func (g *Group) Read() (cpuNanos, memoryBytes int64) {
	cpu := g.direct.Load()
	if g.m != nil {
		g.m.mu.Lock()
		g.m.advance()
		cpu += int64(g.cpu.used * float64(time.Second))
		g.m.mu.Unlock()
	}
	return cpu, g.Memory()
}
