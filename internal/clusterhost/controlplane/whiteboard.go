package controlplane

import (
	"context"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

// EtcdKeys lists at most limit keys that begin with prefix and come after a key.
func (h *Host) EtcdKeys(ctx context.Context, prefix, after string, limit int) (lab.EtcdKeys, error) {
	m := h.member()
	if m == nil {
		return lab.EtcdKeys{}, controlapi.ErrNotReady
	}
	from, end := prefix, clientv3.GetPrefixRangeEnd(prefix)
	if after >= from {
		from = after + "\x00"
	}
	if from == "" {
		from = "\x00"
	}
	got, err := m.embed.Server.Range(ctx, &pb.RangeRequest{Key: []byte(from), RangeEnd: []byte(end), Limit: int64(limit), KeysOnly: true})
	if err != nil {
		return lab.EtcdKeys{}, fmt.Errorf("etcd: %w", err)
	}
	out := lab.EtcdKeys{Keys: []lab.EtcdKey{}, More: got.More}
	for _, kv := range got.Kvs {
		out.Keys = append(out.Keys, lab.EtcdKey{Key: string(kv.Key), CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version})
	}
	return out, nil
}

// EtcdValue reads a key as it is stored; false: there is none.
func (h *Host) EtcdValue(ctx context.Context, key string) (lab.EtcdValue, bool, error) {
	m := h.member()
	if m == nil {
		return lab.EtcdValue{}, false, controlapi.ErrNotReady
	}
	got, err := m.embed.Server.Range(ctx, &pb.RangeRequest{Key: []byte(key)})
	if err != nil || len(got.Kvs) == 0 {
		return lab.EtcdValue{}, false, err
	}
	kv := got.Kvs[0]
	return lab.EtcdValue{
		EtcdKey: lab.EtcdKey{Key: key, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version},
		Value:   kv.Value[:min(len(kv.Value), lab.EtcdValueMax)], Size: len(kv.Value),
	}, true, nil
}

// member is the whiteboard while the cluster answers; nil before and after.
func (h *Host) member() *etcdMember {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.access == nil {
		return nil
	}
	return h.etcd
}

// Encryption is how resources are encrypted at rest.
func (h *Host) Encryption() (lab.Encryption, error) {
	if h.member() == nil {
		return lab.Encryption{}, controlapi.ErrNotReady
	}
	return lab.Encryption{Config: h.encryption.text()}, nil
}

// SetEncryption changes how resources are written from now on.
func (h *Host) SetEncryption(e lab.Encryption) error {
	if h.member() == nil {
		return controlapi.ErrNotReady
	}
	if err := h.encryption.set(e.Config); err != nil {
		return fmt.Errorf("%w: %w", controlapi.ErrInvalid, err)
	}
	return nil
}
