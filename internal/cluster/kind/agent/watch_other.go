//go:build !linux

package agent

import (
	"context"
	"errors"
	"os"
)

// watch isn't needed here: the agent runs in nodes, which are Linux.
func watch(context.Context, string) (<-chan struct{}, error) {
	return nil, errors.ErrUnsupported
}

func fileID(fi os.FileInfo) string { return fi.Name() }
