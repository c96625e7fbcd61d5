package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
)

var _ cluster.StorageOperator = (*instance)(nil)

// etcdScript hands a range request to etcd, on the port that the API server uses and with the
// API server's certificate. The request is standard input: a key is never part of a command.
const etcdScript = `exec curl -sS --max-time 10 --cacert /etc/kubernetes/pki/etcd/ca.crt \
  --cert /etc/kubernetes/pki/apiserver-etcd-client.crt --key /etc/kubernetes/pki/apiserver-etcd-client.key \
  --data-binary @- https://127.0.0.1:2379/v3/kv/range`

// etcdRange is a request, and etcdAnswer what etcd says to it, as its gateway writes them: bytes are base64,
// numbers of 64 bits strings.
type etcdRange struct {
	Key      []byte `json:"key"`
	RangeEnd []byte `json:"range_end,omitempty"`
	Limit    int    `json:"limit,omitempty"`
	KeysOnly bool   `json:"keys_only,omitempty"`
}

type etcdAnswer struct {
	Kvs []struct {
		Key            []byte `json:"key"`
		Value          []byte `json:"value"`
		CreateRevision int64  `json:"create_revision,string"`
		ModRevision    int64  `json:"mod_revision,string"`
		Version        int64  `json:"version,string"`
	} `json:"kvs"`
	More  bool   `json:"more"`
	Error string `json:"error"`
}

// EtcdKeys lists a page of etcd's keys.
func (in *instance) EtcdKeys(ctx context.Context, prefix, after string, limit int) (lab.EtcdKeys, error) {
	if limit < 0 {
		return lab.EtcdKeys{}, refusal(fmt.Errorf("%w: a page has at least one key", errInvalid))
	}
	if limit == 0 || limit > lab.EtcdKeysMax {
		limit = lab.EtcdKeysMax
	}
	got, err := in.etcd(ctx, keysAfter(prefix, after, limit))
	if err != nil {
		return lab.EtcdKeys{}, refusal(err)
	}
	out := lab.EtcdKeys{Keys: []lab.EtcdKey{}, More: got.More}
	for _, kv := range got.Kvs {
		out.Keys = append(out.Keys, lab.EtcdKey{Key: string(kv.Key), CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version})
	}
	return out, nil
}

// EtcdValue reads a key as it is stored.
func (in *instance) EtcdValue(ctx context.Context, key string) (lab.EtcdValue, error) {
	if key == "" {
		return lab.EtcdValue{}, refusal(fmt.Errorf("%w: no key", errInvalid))
	}
	got, err := in.etcd(ctx, etcdRange{Key: []byte(key)})
	if err == nil && len(got.Kvs) == 0 {
		err = fmt.Errorf("%w: key %q", errNotFound, key)
	}
	if err != nil {
		return lab.EtcdValue{}, refusal(err)
	}
	kv := got.Kvs[0]
	return lab.EtcdValue{
		EtcdKey: lab.EtcdKey{Key: key, CreateRevision: kv.CreateRevision, ModRevision: kv.ModRevision, Version: kv.Version},
		Value:   kv.Value[:min(len(kv.Value), lab.EtcdValueMax)], Size: len(kv.Value),
	}, nil
}

// keysAfter asks for the keys with a prefix that come after a key. Without a prefix both ends are a zero byte, which
// is etcd's word for everything.
func keysAfter(prefix, after string, limit int) etcdRange {
	from := prefix
	if after >= from {
		from = after + "\x00"
	}
	if from == "" {
		from = "\x00"
	}
	return etcdRange{Key: []byte(from), RangeEnd: prefixEnd(prefix), Limit: limit, KeysOnly: true}
}

// prefixEnd is the first key after all that have a prefix.
func prefixEnd(prefix string) []byte {
	end := []byte(prefix)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] < 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return []byte{0}
}

// etcd asks the cluster's etcd.
func (in *instance) etcd(ctx context.Context, q etcdRange) (etcdAnswer, error) {
	var a etcdAnswer
	if in.ctx.Err() != nil {
		return a, errEnded
	}
	body, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	r := in.known()
	out, err := in.d.engine.run(ctx, strings.NewReader(string(body)), "exec", "-i", r.office(), "sh", "-c", etcdScript)
	if err != nil {
		return a, fmt.Errorf("etcd: %w", err)
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		return a, fmt.Errorf("etcd's answer: %w", err)
	}
	if a.Error != "" {
		return a, fmt.Errorf("etcd: %w", errors.New(a.Error))
	}
	return a, nil
}
