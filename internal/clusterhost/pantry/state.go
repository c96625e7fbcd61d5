package pantry

import (
	"sync"

	"kubistro/internal/clusterhost/pantry/cgroup"
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

// Usage is the control group of a container: it counts what the programs use,
// and has them wait for CPU time that isn't there. The zero value counts only.
type Usage = cgroup.Group
