package pantry

import (
	"sync"
	"sync/atomic"
)

// Store is a container's shared state: string keys to any value; safe for
// concurrent use. The zero value is empty and ready.
type Store struct{ values sync.Map }

// Get returns the value of a key.
func (s *Store) Get(key string) (any, bool) { return s.values.Load(key) }

// Set sets the value of a key.
func (s *Store) Set(key string, value any) { s.values.Store(key, value) }

// Delete removes a key.
func (s *Store) Delete(key string) { s.values.Delete(key) }

// Usage counts what a container uses, for kubectl top and (later) limits. Safe
// for concurrent use. The zero value is nothing used.
type Usage struct{ cpu, memory atomic.Int64 }

// AddCPU counts d of CPU time that the program has used or pretends to have used, in nanoseconds.
func (u *Usage) AddCPU(nanos int64) { u.cpu.Add(nanos) }

// SetMemory says how many bytes the program holds now.
func (u *Usage) SetMemory(bytes int64) { u.memory.Store(bytes) }

// AddMemory changes what the program holds by so many bytes; several processes
// of a container count together in this way.
func (u *Usage) AddMemory(bytes int64) { u.memory.Add(bytes) }

// Read returns the CPU time so far (nanoseconds) and the working set (bytes).
func (u *Usage) Read() (cpuNanos, memoryBytes int64) { return u.cpu.Load(), max(u.memory.Load(), 0) }
