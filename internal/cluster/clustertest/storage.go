package clustertest

import (
	"bytes"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubistro/internal/cluster"
	"kubistro/internal/lab"
)

// encryptSecrets is a configuration with a key of 32 bytes.
const encryptSecrets = `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - secretbox: {keys: [{name: one, secret: c2VjcmV0IGlzIHNlY3VyZSwgb3IgaXMgaXQ/MTIzNDU=}]}
  - identity: {}
`

// testStorage looks at a Secret in etcd, before and after encryption at rest.
func testStorage(t *testing.T, l *life) {
	op := ability[cluster.StorageOperator](t, l.inst)
	const prefix, recipe = "/registry/secrets/default/", "grandmother's sauce"
	create := func(name string) {
		t.Helper()
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"recipe": []byte(recipe)}}
		if _, err := client(t, l.inst).CoreV1().Secrets("default").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	stored := func(name string) []byte {
		t.Helper()
		v, err := op.EtcdValue(t.Context(), prefix+name)
		if err != nil || v.Key != prefix+name || v.Size != len(v.Value) || v.ModRevision == 0 || v.Version == 0 {
			t.Fatalf("%s in etcd: %+v, %v", name, v, err)
		}
		return v.Value
	}
	readable := func(names ...string) {
		t.Helper()
		for _, name := range names {
			s, err := client(t, l.inst).CoreV1().Secrets("default").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || string(s.Data["recipe"]) != recipe {
				t.Errorf("secret %s: %v, %v", name, s.Data, err)
			}
		}
	}
	create("etcd-1")
	create("etcd-2")
	if !bytes.Contains(stored("etcd-1"), []byte(recipe)) {
		t.Errorf("without encryption etcd holds %q", stored("etcd-1"))
	}
	page, err := op.EtcdKeys(t.Context(), prefix+"etcd-", "", 1)
	if err != nil || len(page.Keys) != 1 || page.Keys[0].Key != prefix+"etcd-1" || !page.More {
		t.Errorf("first page = %+v, %v", page, err)
	}
	page, err = op.EtcdKeys(t.Context(), prefix+"etcd-", prefix+"etcd-1", 0)
	if err != nil || len(page.Keys) != 1 || page.Keys[0].Key != prefix+"etcd-2" || page.More {
		t.Errorf("next page = %+v, %v", page, err)
	}
	if page, err := op.EtcdKeys(t.Context(), "", "", 3); err != nil || len(page.Keys) != 3 {
		t.Errorf("keys from the first on = %+v, %v", page, err)
	}
	_, err = op.EtcdValue(t.Context(), prefix+"nobody's")
	refused(t, "a key that isn't there", err, lab.CodeNotFound)

	for what, config := range map[string]string{
		"no configuration":    "hello",
		"a short key":         strings.Replace(encryptSecrets, "c2VjcmV0IGlzIHNlY3VyZSwgb3IgaXMgaXQ/MTIzNDU=", "c2hvcnQ=", 1),
		"a service of no one": strings.Replace(encryptSecrets, "- identity: {}", "- kms: {apiVersion: v2, name: x, endpoint: 'unix:///run/x.sock', timeout: 3s}", 1),
		"no providers":        encryptSecrets[:strings.Index(encryptSecrets, "  providers")],
	} {
		refused(t, what, op.SetEncryption(t.Context(), lab.Encryption{Config: config}), lab.CodeInvalid)
	}
	set := func(config string) {
		t.Helper()
		if err := op.SetEncryption(t.Context(), lab.Encryption{Config: config}); err != nil {
			t.Fatal(err)
		}
		if e, err := op.Encryption(t.Context()); err != nil || e.Config != config {
			t.Errorf("encryption = %+v, %v", e, err)
		}
	}
	set(encryptSecrets)
	create("etcd-3")
	if got := stored("etcd-3"); bytes.Contains(got, []byte(recipe)) || !bytes.HasPrefix(got, []byte("k8s:enc:secretbox:v1:one:")) {
		t.Errorf("encrypted, etcd holds %q", got)
	}
	readable("etcd-1", "etcd-3")
	// As somebody does it who wants no encryption any more: write plainly first, then forget the key.
	set(strings.Replace(strings.Replace(encryptSecrets, "  - identity: {}\n", "", 1), "  providers:\n", "  providers:\n  - identity: {}\n", 1))
	s, err := client(t, l.inst).CoreV1().Secrets("default").Get(t.Context(), "etcd-3", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client(t, l.inst).CoreV1().Secrets("default").Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	set("")
	if !bytes.Contains(stored("etcd-3"), []byte(recipe)) {
		t.Errorf("written plainly again, etcd holds %q", stored("etcd-3"))
	}
	readable("etcd-1", "etcd-2", "etcd-3")
}
