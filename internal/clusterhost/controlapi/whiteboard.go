package controlapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"kubistro/internal/lab"
)

// Paths of what shows and changes how the cluster is stored.
const (
	PathEtcdKeys   = "/v1/etcd/keys"  // GET ?prefix=P&after=KEY&limit=N: lab.EtcdKeys
	PathEtcdValue  = "/v1/etcd/value" // GET ?key=KEY: lab.EtcdValue; 404 when there is none
	PathEncryption = "/v1/encryption" // GET: lab.Encryption; PUT lab.Encryption: in force when it is answered
)

// EtcdKeys lists keys that begin with prefix and come after a key ("": from the
// first one), at most limit of them (0: lab.EtcdKeysMax).
func (c *Client) EtcdKeys(ctx context.Context, prefix, after string, limit int) (lab.EtcdKeys, error) {
	q := url.Values{"prefix": {prefix}, "after": {after}, "limit": {strconv.Itoa(limit)}}
	var k lab.EtcdKeys
	return k, c.call(ctx, http.MethodGet, PathEtcdKeys+"?"+q.Encode(), nil, &k)
}

// EtcdValue reads the raw bytes of a key.
func (c *Client) EtcdValue(ctx context.Context, key string) (lab.EtcdValue, error) {
	var v lab.EtcdValue
	return v, c.call(ctx, http.MethodGet, PathEtcdValue+"?"+url.Values{"key": {key}}.Encode(), nil, &v)
}

// Encryption asks how resources are encrypted at rest.
func (c *Client) Encryption(ctx context.Context) (lab.Encryption, error) {
	var e lab.Encryption
	return e, c.call(ctx, http.MethodGet, PathEncryption, nil, &e)
}

// SetEncryption changes how resources are written from now on. What is stored
// already stays as it is until it is written again; a configuration without the
// key of something stored makes that unreadable, as on a real cluster.
func (c *Client) SetEncryption(ctx context.Context, e lab.Encryption) error {
	return c.call(ctx, http.MethodPut, PathEncryption, e, nil)
}
