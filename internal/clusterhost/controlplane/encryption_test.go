package controlplane

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubistro/internal/clusterhost/controlapi"
	"kubistro/internal/lab"
)

const (
	keyOne = "c2VjcmV0IGlzIHNlY3VyZSwgb3IgaXMgaXQ/MTIzNDU=" // 32 bytes
	keyTwo = "YW5vdGhlciBrZXkgb2YgdGhpcnR5LXR3byBieXRlczE="
)

func encryptionConfig(providers string) lab.Encryption {
	return lab.Encryption{Config: "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers: " + providers + "\n"}
}

// stored reads what etcd holds of a Secret of namespace default.
func stored(t *testing.T, name string) []byte {
	t.Helper()
	v, ok, err := shared.EtcdValue(t.Context(), "/registry/secrets/default/"+name)
	if err != nil || !ok {
		t.Fatalf("secret %s in etcd: %v %v", name, ok, err)
	}
	return v.Value
}

func TestEncryptionAtRest(t *testing.T) {
	secrets := shared.client.CoreV1().Secrets("default")
	create := func(name string) {
		t.Helper()
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"recipe": []byte("grandmother's sauce")}}
		if _, err := secrets.Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { secrets.Delete(context.Background(), name, metav1.DeleteOptions{}) })
	}
	rewrite := func(name string) {
		t.Helper()
		s, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
		if err == nil {
			_, err = secrets.Update(t.Context(), s, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	set := func(e lab.Encryption) {
		t.Helper()
		if err := shared.SetEncryption(e); err != nil {
			t.Fatal(err)
		}
	}
	plain := func(name string) bool { return bytes.Contains(stored(t, name), []byte("grandmother's sauce")) }
	readable := func(name string) {
		t.Helper()
		if s, err := secrets.Get(t.Context(), name, metav1.GetOptions{}); err != nil || string(s.Data["recipe"]) != "grandmother's sauce" {
			t.Errorf("secret %s through the API: %v %v", name, s.Data, err)
		}
	}
	t.Cleanup(func() {
		if err := shared.SetEncryption(lab.Encryption{}); err != nil {
			t.Error(err)
		}
	})

	create("before")
	if !plain("before") {
		t.Errorf("without encryption etcd holds %q", stored(t, "before"))
	}
	first := encryptionConfig("[{secretbox: {keys: [{name: one, secret: " + keyOne + "}]}}, {identity: {}}]")
	set(first)
	create("after")
	if got := stored(t, "after"); !bytes.HasPrefix(got, []byte("k8s:enc:secretbox:v1:one:")) || plain("after") {
		t.Errorf("a Secret that was written with encryption: %q", got)
	}
	if !plain("before") {
		t.Error("what is stored already must stay as it is")
	}
	readable("before")
	readable("after")
	rewrite("before")
	if plain("before") {
		t.Error("a Secret that was written again is still readable in etcd")
	}

	set(encryptionConfig("[{aescbc: {keys: [{name: two, secret: " + keyTwo + "}]}}, {secretbox: {keys: [{name: one, secret: " + keyOne + "}]}}]"))
	readable("after")
	rewrite("after")
	if got := stored(t, "after"); !bytes.HasPrefix(got, []byte("k8s:enc:aescbc:v1:two:")) {
		t.Errorf("after a change of the key: %q", got)
	}

	for name, bad := range map[string]lab.Encryption{
		"kms":         encryptionConfig("[{kms: {apiVersion: v2, name: host, endpoint: 'unix:///tmp/kms.sock'}}]"),
		"KMS":         encryptionConfig("[{KMS: {apiVersion: v2, name: host, endpoint: 'unix:///tmp/kms.sock'}}]"),
		"short key":   encryptionConfig("[{secretbox: {keys: [{name: one, secret: AAAA}]}}]"),
		"no YAML":     {Config: "{"},
		"another one": {Config: "apiVersion: v1\nkind: Secret\n"},
	} {
		if err := shared.SetEncryption(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if e, err := shared.Encryption(); err != nil || !strings.Contains(e.Config, "aescbc") {
		t.Errorf("after refused changes: %q %v", e.Config, err)
	}
	again, err := openEncryption(t.Context(), shared.dir)
	if err != nil || !strings.Contains(again.text(), "aescbc") {
		t.Errorf("the next start goes on with %v (%v)", again, err)
	}

	set(encryptionConfig("[{identity: {}}, {aescbc: {keys: [{name: two, secret: " + keyTwo + "}]}}, {secretbox: {keys: [{name: one, secret: " + keyOne + "}]}}]"))
	for _, name := range []string{"before", "after"} {
		rewrite(name)
		if !plain(name) {
			t.Errorf("%s isn't decrypted", name)
		}
	}
}

func TestEtcdKeys(t *testing.T) {
	ctx := t.Context()
	page, err := shared.EtcdKeys(ctx, "/registry/namespaces/", "", 2)
	if err != nil || len(page.Keys) != 2 || !page.More || page.Keys[0].Key != "/registry/namespaces/default" {
		t.Fatalf("first page: %+v %v", page, err)
	}
	rest, err := shared.EtcdKeys(ctx, "/registry/namespaces/", page.Keys[1].Key, 100)
	if err != nil || rest.More || len(rest.Keys) < 2 || rest.Keys[0].Key <= page.Keys[1].Key {
		t.Errorf("the rest: %+v %v", rest, err)
	}
	if all, err := shared.EtcdKeys(ctx, "", "", 1); err != nil || len(all.Keys) != 1 {
		t.Errorf("without a prefix: %+v %v", all, err)
	}
	if _, ok, err := shared.EtcdValue(ctx, "/registry/nothing"); ok || err != nil {
		t.Errorf("a key that isn't there: %v %v", ok, err)
	}
	if _, err := new(Host).EtcdKeys(ctx, "", "", 1); !errors.Is(err, controlapi.ErrNotReady) {
		t.Errorf("before the start: %v", err)
	}
}
