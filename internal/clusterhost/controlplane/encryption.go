package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"sigs.k8s.io/yaml"
)

// fileEncryption holds the EncryptionConfiguration in the cluster's folder, keys included.
const fileEncryption = "encryption.yaml"

// encryption is the API server's encryption at rest. It does what
// --encryption-provider-config with automatic reload does, at once instead of by
// looking at the file every minute.
type encryption struct {
	file         string
	ctx          context.Context // of the transformers
	transformers *encryptionconfig.DynamicTransformers

	mu      sync.Mutex
	current string
}

// openEncryption goes on with the configuration that the folder has; without one
// nothing is encrypted.
func openEncryption(ctx context.Context, dir string) (*encryption, error) {
	e := &encryption{
		file: filepath.Join(dir, fileEncryption), ctx: ctx,
		transformers: encryptionconfig.NewDynamicTransformers(nil, healthy, func() {}, 0),
	}
	raw, err := os.ReadFile(e.file)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err == nil {
		err = e.set(string(raw))
	}
	if err != nil {
		return nil, fmt.Errorf("encryption: %w", err)
	}
	return e, nil
}

var healthy = healthz.NamedCheck("encryption", func(*http.Request) error { return nil })

func (e *encryption) text() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.current
}

// set puts a configuration into force, and keeps it; an empty one ends encryption.
// When it fails, nothing has changed.
func (e *encryption) set(config string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if config == "" {
		if err := os.Remove(e.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		e.current = ""
		e.transformers.Set(nil, func() {}, healthy, 0)
		return nil
	}
	clean, err := withoutKMS(config)
	if err != nil {
		return err
	}
	next := e.file + ".new"
	if err := os.WriteFile(next, clean, 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(e.ctx)
	loaded, err := encryptionconfig.LoadEncryptionConfig(ctx, next, true, officeName)
	if err == nil {
		err = os.Rename(next, e.file)
	}
	if err != nil {
		cancel()
		return errors.Join(err, os.Remove(next))
	}
	e.current = config
	e.transformers.Set(loaded.Transformers, cancel, loaded.HealthChecks[0], loaded.KMSCloseGracePeriod)
	return nil
}

// withoutKMS reads a configuration strictly and refuses providers that the API
// server would reach by a socket of the host. What it returns is written anew from
// what was read, so that no two readers can understand it differently.
func withoutKMS(config string) ([]byte, error) {
	var c apiserverv1.EncryptionConfiguration
	if err := yaml.UnmarshalStrict([]byte(config), &c); err != nil {
		return nil, fmt.Errorf("not an EncryptionConfiguration: %w", err)
	}
	for _, r := range c.Resources {
		for _, p := range r.Providers {
			if p.KMS != nil {
				return nil, errors.New("provider kms: there is no key management service in a simulated cluster")
			}
		}
	}
	return yaml.Marshal(c)
}
