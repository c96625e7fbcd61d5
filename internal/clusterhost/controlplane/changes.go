package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"kubistro/internal/clusterhost/cloud"
	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// fileChanges holds what was changed through the control API, so that a cluster
// wakes as it went to sleep.
const fileChanges = "changes.json"

// changes is how a cluster differs from its spec.
type changes struct {
	Speed   int       `json:"speed,omitempty"` // 0: the spec's
	Home    []string  `json:"home,omitempty"`  // control loops that were sent home
	Added   []kitchen `json:"added,omitempty"`
	Removed []string  `json:"removed,omitempty"` // kitchens of the spec
}

// kitchen is a kitchen with its node's address.
type kitchen struct {
	lab.Kitchen
	Address netip.Addr `json:"address"`
	// Instance is the machine of the cloud that the kitchen is; nil for others.
	Instance *cloud.Instance `json:"instance,omitempty"`
}

func readChanges(dir string) (changes, error) {
	var c changes
	b, err := os.ReadFile(filepath.Join(dir, fileChanges))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return c, fmt.Errorf("%s: %w", fileChanges, err)
	}
	return c, nil
}

// write replaces the file, so that a crash leaves the old one or the new one.
func (c changes) write(dir string) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		tmp := filepath.Join(dir, fileChanges+".new")
		if err = os.WriteFile(tmp, b, 0o600); err == nil {
			err = os.Rename(tmp, filepath.Join(dir, fileChanges))
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", fileChanges, err)
	}
	return nil
}

func (c changes) speed(s lab.ClusterSpec) int {
	if c.Speed > 0 {
		return c.Speed
	}
	return s.Speed
}

func (c changes) home(loop string) bool { return slices.Contains(c.Home, loop) }

// setHome notes that a loop is home or works.
func (c *changes) setHome(loop string, home bool) {
	c.Home = slices.DeleteFunc(slices.Clone(c.Home), func(n string) bool { return n == loop })
	if home {
		c.Home = append(c.Home, loop)
	}
}

// kitchens are those that there are now. A kitchen of the spec keeps the address of its place.
func (c changes) kitchens(s lab.ClusterSpec) []kitchen {
	var out []kitchen
	ip := officeIP
	for _, k := range s.Kitchens {
		if ip = ip.Next(); !slices.Contains(c.Removed, k.Name) {
			out = append(out, kitchen{Kitchen: k, Address: ip})
		}
	}
	return append(out, c.Added...)
}

// freeAddress is the first node address that no kitchen has or had by the spec.
func (c changes) freeAddress(s lab.ClusterSpec) netip.Addr {
	ip := officeIP
	for range len(s.Kitchens) + 1 {
		ip = ip.Next()
	}
	for slices.ContainsFunc(c.Added, func(k kitchen) bool { return k.Address == ip }) {
		ip = ip.Next()
	}
	return ip
}

// changing does one change of a cluster that is ready, and keeps it. Others wait
// for it, and it ends with the cluster.
func (h *Host) changing(ctx context.Context, change func(context.Context) error) error {
	select {
	case <-h.up:
	default:
		return controlapi.ErrNotReady
	}
	h.change.Lock()
	defer h.change.Unlock()
	if h.done.Err() != nil {
		return controlapi.ErrNotReady
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.done, cancel)()
	if err := change(ctx); err != nil {
		return err
	}
	return h.changes.write(h.cfg.Dir)
}
