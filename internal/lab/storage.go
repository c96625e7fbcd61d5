package lab

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

// EncryptionState is Encryption with what it says in short.
type EncryptionState struct {
	On        bool     `json:"on"`                 // something is encrypted when it is written
	Provider  string   `json:"provider,omitempty"` // that writes: secretbox
	Key       string   `json:"key,omitempty"`      // the name of the key that writes
	Resources []string `json:"resources"`          // that are encrypted
	Config    string   `json:"config,omitempty"`
}

// EncryptionChange switches encryption at rest. With Config, that configuration is put
// into force. Else On makes one with a new key, and off keeps the keys of the present one for what
// is stored but writes without encryption.
type EncryptionChange struct {
	On        bool     `json:"on"`
	Provider  string   `json:"provider,omitempty"`  // secretbox when empty
	Resources []string `json:"resources,omitempty"` // secrets when empty
	Config    string   `json:"config,omitempty"`
}
