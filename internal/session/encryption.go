package session

import (
	"crypto/rand"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"kubistro/internal/lab"
)

// encryptionConfig is what an EncryptionConfiguration says, as far as the lab reads it. Providers
// are kept as they are: one key (the provider's name) each.
type encryptionConfig struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Resources  []encryptedResource `json:"resources"`
}

type encryptedResource struct {
	Resources []string         `json:"resources"`
	Providers []map[string]any `json:"providers"`
}

const (
	identity        = "identity"
	defaultProvider = "secretbox"
	keyBytes        = 32
)

// providers that write with a key, as EncryptionConfiguration names them.
var keyProviders = []string{"secretbox", "aescbc", "aesgcm"}

func readEncryption(text string) (encryptionConfig, error) {
	var c encryptionConfig
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		return c, lab.Fail(lab.CodeInvalid, "這不是 EncryptionConfiguration："+err.Error(), "This is no EncryptionConfiguration: "+err.Error())
	}
	return c, nil
}

// writer is the provider that a resource is written with.
func (r encryptedResource) writer() string {
	if len(r.Providers) == 0 {
		return identity
	}
	for name := range r.Providers[0] {
		return name
	}
	return identity
}

// keyName is the name of the key that the resource is written with.
func (r encryptedResource) keyName() string {
	p, _ := r.Providers[0][r.writer()].(map[string]any)
	keys, _ := p["keys"].([]any)
	if len(keys) == 0 {
		return ""
	}
	first, _ := keys[0].(map[string]any)
	name, _ := first["name"].(string)
	return name
}

// encryptionState says in short what a configuration does.
func encryptionState(e lab.Encryption) (lab.EncryptionState, error) {
	out := lab.EncryptionState{Resources: []string{}, Config: e.Config}
	c, err := readEncryption(e.Config)
	if err != nil {
		return out, err
	}
	for _, r := range c.Resources {
		if r.writer() == identity {
			continue
		}
		if !out.On {
			out.On, out.Provider, out.Key = true, r.writer(), r.keyName()
		}
		out.Resources = append(out.Resources, r.Resources...)
	}
	return out, nil
}

// changedEncryption is the configuration that a change makes of the present one.
func changedEncryption(now lab.Encryption, k lab.EncryptionChange) (lab.Encryption, error) {
	if k.Config != "" {
		return lab.Encryption{Config: k.Config}, nil
	}
	c, err := readEncryption(now.Config)
	if err != nil {
		return now, err
	}
	if k.On {
		return writeEncryption(c, k)
	}
	if len(c.Resources) == 0 {
		return lab.Encryption{}, nil
	}
	for i := range c.Resources {
		r := &c.Resources[i]
		r.Providers = append([]map[string]any{{identity: map[string]any{}}}, without(r.Providers, identity)...)
	}
	return c.text()
}

// writeEncryption puts a new key before what c has for the change's resources, so that
// everything that is stored stays readable.
func writeEncryption(c encryptionConfig, k lab.EncryptionChange) (lab.Encryption, error) {
	provider, resources := k.Provider, k.Resources
	if provider == "" {
		provider = defaultProvider
	}
	if !slices.Contains(keyProviders, provider) {
		list := strings.Join(keyProviders, ", ")
		return lab.Encryption{}, lab.Fail(lab.CodeInvalid, "加密方式只能是 "+list+"。", "The provider must be one of "+list+".")
	}
	if len(resources) == 0 {
		resources = []string{"secrets"}
	}
	var secret [keyBytes]byte
	rand.Read(secret[:]) // never fails
	key := map[string]any{"name": c.freeKey(), "secret": base64.StdEncoding.EncodeToString(secret[:])}
	next := encryptionConfig{APIVersion: "apiserver.config.k8s.io/v1", Kind: "EncryptionConfiguration"}
	for _, name := range resources {
		r := encryptedResource{Resources: []string{name}, Providers: []map[string]any{{provider: map[string]any{"keys": []any{key}}}}}
		for _, old := range c.Resources {
			if slices.Contains(old.Resources, name) {
				r.Providers = append(r.Providers, without(old.Providers, identity)...)
			}
		}
		r.Providers = append(r.Providers, map[string]any{identity: map[string]any{}})
		next.Resources = append(next.Resources, r)
	}
	for _, old := range c.Resources {
		old.Resources = slices.DeleteFunc(slices.Clone(old.Resources), func(n string) bool { return slices.Contains(resources, n) })
		if len(old.Resources) > 0 {
			next.Resources = append(next.Resources, old)
		}
	}
	return next.text()
}

// freeKey is the name of a key that no provider has yet: key1, key2, ...
func (c encryptionConfig) freeKey() string {
	text, _ := c.text()
	for n := 1; ; n++ {
		if name := "key" + strconv.Itoa(n); !strings.Contains(text.Config, "name: "+name+"\n") {
			return name
		}
	}
}

func without(providers []map[string]any, name string) (out []map[string]any) {
	for _, p := range providers {
		if _, is := p[name]; !is {
			out = append(out, maps.Clone(p))
		}
	}
	return out
}

func (c encryptionConfig) text() (lab.Encryption, error) {
	b, err := yaml.Marshal(c)
	return lab.Encryption{Config: string(b)}, err
}
