package kind

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"sigs.k8s.io/yaml"

	"kubistro/internal/lab"
)

// flagEncryption names the configuration to the API server, which reads it when it starts. Its own reload
// would look at the file once a minute.
const flagEncryption = "encryption-provider-config"

// Encryption is how resources are encrypted at rest.
func (in *instance) Encryption(context.Context) (lab.Encryption, error) {
	if in.ctx.Err() != nil {
		return lab.Encryption{}, refusal(errEnded)
	}
	return lab.Encryption{Config: in.known().Changes.Encryption}, nil
}

// SetEncryption starts the API server with another configuration of encryption at rest, as an
// administrator would who edits its manifest. The cluster's own flag and files stay out of
// learners' reach: their Pods have no node's disk.
func (in *instance) SetEncryption(ctx context.Context, e lab.Encryption) error {
	return in.changing(ctx, func(ctx context.Context, r *record) error {
		if e.Config == r.Changes.Encryption {
			return nil
		}
		flags := map[string]string{}
		var gone []string
		var path string
		if e.Config == "" {
			gone = []string{flagEncryption}
		} else {
			clean, err := cleanEncryption(e.Config)
			if err != nil {
				return fmt.Errorf("%w: %w", errInvalid, err)
			}
			path = fmt.Sprintf("%s/encryption-%x.yaml", settingsDir, sha256.Sum256(clean))
			if err := writeFile(ctx, in.d.engine, r.office(), path, "600", strings.NewReader(string(clean))); err != nil {
				return err
			}
			flags[flagEncryption] = path
		}
		if err := in.setFlags(ctx, r, "kube-apiserver", flags, gone...); err != nil {
			return err
		}
		r.Changes.Encryption = e.Config
		// Keys that are in no use any more.
		_, err := inNode(ctx, in.d.engine, r.office(), "find", settingsDir, "-name", "encryption-*.yaml", "!", "-path", path, "-delete")
		return err
	})
}

// cleanEncryption reads a configuration strictly and checks it as the API server does, which would
// end over a fault in it. Key management services are programs of the node, and there are none. What it
// returns is written anew from what was read.
func cleanEncryption(config string) ([]byte, error) {
	var c apiserverv1.EncryptionConfiguration
	if err := yaml.UnmarshalStrict([]byte(config), &c); err != nil {
		return nil, fmt.Errorf("not an EncryptionConfiguration: %w", err)
	}
	if c.Kind != "EncryptionConfiguration" || c.APIVersion != apiserverv1.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("it is a %s of %s, not an EncryptionConfiguration of %s", c.Kind, c.APIVersion, apiserverv1.SchemeGroupVersion)
	}
	for _, r := range c.Resources {
		for _, p := range r.Providers {
			if p.KMS != nil {
				return nil, errors.New("provider kms: there is no key management service in a kind cluster")
			}
		}
	}
	var internal apiserver.EncryptionConfiguration
	if err := apiserverv1.Convert_v1_EncryptionConfiguration_To_apiserver_EncryptionConfiguration(&c, &internal, nil); err != nil {
		return nil, err
	}
	if err := validation.ValidateEncryptionConfiguration(&internal, false).ToAggregate(); err != nil {
		return nil, err
	}
	return yaml.Marshal(c)
}
