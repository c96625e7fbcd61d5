package session

import (
	"strings"
	"testing"

	"kubistro/internal/lab"
)

func TestEncryptionChanges(t *testing.T) {
	change := func(now lab.Encryption, k lab.EncryptionChange) (lab.Encryption, lab.EncryptionState) {
		t.Helper()
		next, err := changedEncryption(now, k)
		if err != nil {
			t.Fatal(err)
		}
		s, err := encryptionState(next)
		if err != nil {
			t.Fatal(err)
		}
		return next, s
	}
	if next, s := change(lab.Encryption{}, lab.EncryptionChange{}); next.Config != "" || s.On || s.Resources == nil {
		t.Errorf("off from the beginning: %+v %+v", next, s)
	}
	first, s := change(lab.Encryption{}, lab.EncryptionChange{On: true})
	if !s.On || s.Provider != "secretbox" || s.Key != "key1" || strings.Join(s.Resources, " ") != "secrets" {
		t.Errorf("on: %+v\n%s", s, first.Config)
	}
	second, s := change(first, lab.EncryptionChange{On: true, Provider: "aescbc", Resources: []string{"secrets", "configmaps"}})
	if s.Provider != "aescbc" || s.Key != "key2" || strings.Join(s.Resources, " ") != "secrets configmaps" || !strings.Contains(second.Config, "key1") {
		t.Errorf("another key: %+v\n%s", s, second.Config)
	}
	off, s := change(second, lab.EncryptionChange{})
	if s.On || strings.Count(off.Config, "key1") != 1 || strings.Count(off.Config, "key2") != 2 || strings.Index(off.Config, "identity") > strings.Index(off.Config, "aescbc") {
		t.Errorf("off must keep every key behind identity: %+v\n%s", s, off.Config)
	}
	if third, s := change(off, lab.EncryptionChange{On: true}); s.Key != "key3" || !strings.Contains(third.Config, "key2") || !strings.Contains(third.Config, "configmaps") {
		t.Errorf("on again: %+v\n%s", s, third.Config)
	}
	if next, _ := change(first, lab.EncryptionChange{On: true, Config: "resources: []"}); next.Config != "resources: []" {
		t.Errorf("a configuration of one's own: %+v", next)
	}
	if _, err := changedEncryption(lab.Encryption{}, lab.EncryptionChange{On: true, Provider: "rot13"}); lab.AsError(err).Code != lab.CodeInvalid {
		t.Errorf("rot13: %v", err)
	}
	for _, text := range []string{"resources: [{resources: [secrets], providers: []}]", "resources: [{resources: [secrets], providers: [{aescbc: nonsense}]}]", "resources: [{}]"} {
		if _, err := encryptionState(lab.Encryption{Config: text}); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
