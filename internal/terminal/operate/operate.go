// Package operate is the command lab of the learner's terminal: what can be done to a
// cluster from outside of it. Nodes lose their power or their network and get them
// back, are opened and closed; control loops are sent home; the clock is compressed; etcd shows its bytes. The
// command runs in the terminal's child and asks the server, which does it (Serve).
package operate

import (
	"context"

	"kubistro/internal/lab"
)

// Cluster is a learner's cluster as the command sees it. Errors are *lab.Error; what the
// driver can't do is lab.CodeUnsupported. Methods may be called concurrently.
type Cluster interface {
	Nodes
	Loops
	Storage
}

// Nodes is what can be done to nodes.
type Nodes interface {
	Kitchens(ctx context.Context) ([]lab.KitchenState, error)
	AddKitchen(ctx context.Context, k lab.Kitchen) error
	RemoveKitchen(ctx context.Context, name string) error
	SetKitchen(ctx context.Context, name string, c lab.KitchenChange) error
}

// Loops is what can be done to control loops and their clock.
type Loops interface {
	Loops(ctx context.Context) ([]lab.ControlLoop, error)
	SetLoop(ctx context.Context, name string, home bool) error
	ClusterClock(ctx context.Context) (lab.Clock, error)
	SetClusterClock(ctx context.Context, speed int) error
}

// Storage is how the cluster is stored.
type Storage interface {
	EtcdKeys(ctx context.Context, prefix, after string, limit int) (lab.EtcdKeys, error)
	EtcdValue(ctx context.Context, key string) (lab.EtcdValue, error)
	Encryption(ctx context.Context) (lab.EncryptionState, error)
	SetEncryption(ctx context.Context, c lab.EncryptionChange) error
}
