package webtest

import (
	"context"
	"slices"
	"strings"

	"kubistro/internal/lab"
)

// stored is what etcd of every session holds.
var stored = []struct{ key, value string }{
	{"/registry/configmaps/default/order", "k8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x12\x1a\n\x05order\x12\x00dish\x12\x05steak"},
	{"/registry/pods/default/grill-5d7c9f8b6-x2k9q", "k8s\x00\n\t\n\x02v1\x12\x03Pod"},
	{"/registry/secrets/default/door", "k8s\x00\n\x0c\n\x02v1\x12\x06Secret\x12\x0b\n\x04code\x12\x034711"},
	{"/registry/secrets/default/sauce", "k8s\x00\n\x0c\n\x02v1\x12\x06Secret\x12\x1d\n\x06recipe\x12\x13grandmother's sauce"},
}

// EtcdKeys is part of web.Lab.
func (l *Lab) EtcdKeys(_ context.Context, learner lab.LearnerID, id, prefix, after string, limit int) (lab.EtcdKeys, error) {
	out := lab.EtcdKeys{Keys: []lab.EtcdKey{}}
	if _, err := l.find(learner, id); err != nil {
		return out, err
	}
	for i, s := range stored {
		if !strings.HasPrefix(s.key, prefix) || s.key <= after {
			continue
		}
		if limit > 0 && len(out.Keys) == limit {
			out.More = true
			break
		}
		out.Keys = append(out.Keys, lab.EtcdKey{Key: s.key, CreateRevision: int64(300 + i), ModRevision: int64(310 + i), Version: 2})
	}
	return out, nil
}

// EtcdValue is part of web.Lab.
func (l *Lab) EtcdValue(_ context.Context, learner lab.LearnerID, id, key string) (lab.EtcdValue, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return lab.EtcdValue{}, err
	}
	for i, v := range stored {
		if v.key != key {
			continue
		}
		value := []byte(v.value)
		s.mu.Lock()
		if s.encryption.On && strings.HasPrefix(key, "/registry/secrets/") {
			value = append([]byte("k8s:enc:"+s.encryption.Provider+":v1:key1:"), 0x8f, 0x1c, 0xe0, 0x07, 0xba)
		}
		s.mu.Unlock()
		return lab.EtcdValue{EtcdKey: lab.EtcdKey{Key: key, CreateRevision: int64(300 + i), ModRevision: int64(310 + i), Version: 2}, Value: value, Size: len(value)}, nil
	}
	return lab.EtcdValue{}, lab.Fail(lab.CodeNotFound, "etcd 裡沒有這個鍵。", "etcd has no such key.")
}

// Encryption is part of web.Lab.
func (l *Lab) Encryption(_ context.Context, learner lab.LearnerID, id string) (lab.EncryptionState, error) {
	s, err := l.find(learner, id)
	if err != nil {
		return lab.EncryptionState{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.encryption
	e.Resources = slices.Clone(e.Resources)
	if e.Resources == nil {
		e.Resources = []string{}
	}
	return e, nil
}

// SetEncryption is part of web.Lab.
func (l *Lab) SetEncryption(_ context.Context, learner lab.LearnerID, id string, k lab.EncryptionChange) error {
	s, err := l.find(learner, id)
	if err != nil {
		return err
	}
	l.note("encryption %v", k.On)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.encryption = lab.EncryptionState{}
	if k.On {
		s.encryption = lab.EncryptionState{On: true, Provider: "secretbox", Key: "key1", Resources: []string{"secrets"}}
		if k.Provider != "" {
			s.encryption.Provider = k.Provider
		}
	}
	s.tell("encryption", "Etcd", "", map[bool]string{true: "on", false: "off"}[k.On])
	return nil
}
