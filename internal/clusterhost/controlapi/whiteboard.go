package controlapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// Paths of what shows and changes how the cluster is stored.
const (
	PathEtcdKeys   = "/v1/etcd/keys"  // GET ?prefix=P&after=KEY&limit=N: EtcdKeys
	PathEtcdValue  = "/v1/etcd/value" // GET ?key=KEY: EtcdValue; 404 when there is none
	PathEncryption = "/v1/encryption" // GET: Encryption; PUT Encryption: in force when it is answered
)

// Bounds of one answer about etcd.
const (
	EtcdKeysMax  = 500
	EtcdValueMax = 256 << 10 // bytes
)

// EtcdKeys is a page of etcd's keys, in order.
type EtcdKeys struct {
	Keys []EtcdKey `json:"keys"`
	More bool      `json:"more,omitempty"` // there are keys after the last one
}

// EtcdKey is a key and when it was written.
type EtcdKey struct {
	Key            string `json:"key"`
	CreateRevision int64  `json:"createRevision"`
	ModRevision    int64  `json:"modRevision"`
	Version        int64  `json:"version"` // how often it was written
}

// EtcdValue is what a key holds, byte by byte as it is stored.
type EtcdValue struct {
	EtcdKey
	Value []byte `json:"value"` // at most EtcdValueMax of it
	Size  int    `json:"size"`  // of the whole value
}

// Encryption is how resources are encrypted at rest: the text of an
// EncryptionConfiguration (apiserver.config.k8s.io/v1). Without one, everything
// is stored as it is. Providers are identity, aescbc, aesgcm and secretbox; a KMS would be
// a program of the host and is refused.
type Encryption struct {
	Config string `json:"config"`
}

// EtcdKeys lists keys that begin with prefix and come after a key ("": from the
// first one), at most limit of them (0: EtcdKeysMax).
func (c *Client) EtcdKeys(ctx context.Context, prefix, after string, limit int) (EtcdKeys, error) {
	q := url.Values{"prefix": {prefix}, "after": {after}, "limit": {strconv.Itoa(limit)}}
	var k EtcdKeys
	return k, c.call(ctx, http.MethodGet, PathEtcdKeys+"?"+q.Encode(), nil, &k)
}

// EtcdValue reads the raw bytes of a key.
func (c *Client) EtcdValue(ctx context.Context, key string) (EtcdValue, error) {
	var v EtcdValue
	return v, c.call(ctx, http.MethodGet, PathEtcdValue+"?"+url.Values{"key": {key}}.Encode(), nil, &v)
}

// Encryption asks how resources are encrypted at rest.
func (c *Client) Encryption(ctx context.Context) (Encryption, error) {
	var e Encryption
	return e, c.call(ctx, http.MethodGet, PathEncryption, nil, &e)
}

// SetEncryption changes how resources are written from now on. What is stored
// already stays as it is until it is written again; a configuration without the
// key of something stored makes that unreadable, as on a real cluster.
func (c *Client) SetEncryption(ctx context.Context, e Encryption) error {
	return c.call(ctx, http.MethodPut, PathEncryption, e, nil)
}
