//go:build unix && !linux

package terminal

import (
	"context"
	"os"

	"kubistro/internal/shell"
)

// ptyPair is not available here: kubectl exec -t falls back to no terminal.
type ptyPair struct{}

func openPTY() *ptyPair { return nil }

func (*ptyPair) attach(context.Context, shell.Env) (*os.File, func()) { return nil, func() {} }
