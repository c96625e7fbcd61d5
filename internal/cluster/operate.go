package cluster

import (
	"context"

	"kubistro/internal/lab"
)

// Optional abilities of an Instance, found by a type assertion where the driver has
// the capability. Their errors are *lab.Error: CodeInvalid, CodeNotFound for a name
// that isn't there, CodeConflict, CodeUnavailable while the cluster can't do it.

// Refused says for people why a cluster didn't do what it was asked for; why may be
// empty. Any other code than the first three above is CodeUnavailable.
func Refused(code lab.Code, why string) *lab.Error {
	zhTW, en := "。", "."
	if why != "" {
		zhTW, en = "："+why, ": "+why
	}
	switch code {
	case lab.CodeInvalid:
		return lab.Fail(code, "叢集不接受這項設定"+zhTW, "The cluster doesn't accept this setting"+en)
	case lab.CodeNotFound:
		return lab.Fail(code, "叢集裡沒有這個名稱的東西"+zhTW, "There is nothing of this name in the cluster"+en)
	case lab.CodeConflict:
		return lab.Fail(code, "以叢集目前的狀態，無法這麼做"+zhTW, "The cluster can't do this in its present state"+en)
	}
	return lab.Fail(lab.CodeUnavailable, "叢集現在無法處理，請稍後再試。", "The cluster can't do this right now. Try again in a moment.")
}

// KitchenOperator changes the nodes of a running cluster (CapKitchens, CapKitchenPower).
type KitchenOperator interface {
	// Kitchens lists the kitchens that there are now.
	Kitchens(ctx context.Context) ([]lab.KitchenState, error)
	// AddKitchen opens a kitchen and returns when its node is Ready. It is kept over a sleep.
	AddKitchen(ctx context.Context, k lab.Kitchen) error
	// RemoveKitchen takes a kitchen away with its node; what runs there ends without warning.
	RemoveKitchen(ctx context.Context, name string) error
	// SetPower powers a kitchen off or on. Its containers die with the power.
	SetPower(ctx context.Context, name string, on bool) error
	// SetCable pulls a kitchen's network cable or plugs it in. Its containers run on.
	SetCable(ctx context.Context, name string, in bool) error
}

// LoopOperator sends control loops home and calls them back (CapControlLoops).
type LoopOperator interface {
	Loops(ctx context.Context) ([]lab.ControlLoop, error)
	SetLoop(ctx context.Context, name string, home bool) error
}

// ClockSetter compresses the cluster's periods (CapClock). A cluster starts with the
// speed of its spec.
type ClockSetter interface {
	Clock(ctx context.Context) (lab.Clock, error)
	SetClock(ctx context.Context, speed int) error
}

// StorageOperator shows how the cluster is stored, and changes it (CapEtcd).
type StorageOperator interface {
	// EtcdKeys lists keys that begin with prefix and come after a key, at most limit of them
	// (0: lab.EtcdKeysMax).
	EtcdKeys(ctx context.Context, prefix, after string, limit int) (lab.EtcdKeys, error)
	// EtcdValue reads the raw bytes of a key.
	EtcdValue(ctx context.Context, key string) (lab.EtcdValue, error)
	Encryption(ctx context.Context) (lab.Encryption, error)
	// SetEncryption changes how resources are written from now on; it is in force when it returns.
	SetEncryption(ctx context.Context, e lab.Encryption) error
}
