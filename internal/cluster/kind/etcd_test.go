package kind

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubistro/internal/lab"
)

func TestEtcdIsAskedForPages(t *testing.T) {
	for _, tc := range []struct {
		prefix, after string
		from, end     string
	}{
		{"", "", "\x00", "\x00"},
		{"", "/registry/a", "/registry/a\x00", "\x00"},
		{"/registry/", "", "/registry/", "/registry0"},
		{"/registry/", "/registry/b", "/registry/b\x00", "/registry0"},
		{"/registry/", "/a", "/registry/", "/registry0"}, // what comes before the prefix is before all of it
		{"a\xff", "", "a\xff", "b"},
		{"\xff", "", "\xff", "\x00"},
	} {
		want := etcdRange{Key: []byte(tc.from), RangeEnd: []byte(tc.end), Limit: 7, KeysOnly: true}
		if diff := cmp.Diff(want, keysAfter(tc.prefix, tc.after, 7)); diff != "" {
			t.Errorf("prefix %q after %q: %s", tc.prefix, tc.after, diff)
		}
	}
	b, err := json.Marshal(keysAfter("/registry/", "", 7))
	if err != nil || string(b) != `{"key":"L3JlZ2lzdHJ5Lw==","range_end":"L3JlZ2lzdHJ5MA==","limit":7,"keys_only":true}` {
		t.Errorf("request %s, %v", b, err)
	}
}

func TestEtcdsAnswers(t *testing.T) {
	d, e := newTestDriver(t, &fakeMaker{})
	in := &instance{d: d, id: "x", record: *newRecord("k", lab.DefaultClusterSpec(), time.Now())}
	in.ctx, in.end = t.Context(), func() {}
	e.answers = map[string]string{"exec": `{"header":{"revision":"9"},"kvs":[{"key":"L2E=","create_revision":"2","mod_revision":"5","version":"3","value":"AAH/"}],"more":true,"count":"1"}`}
	v, err := in.EtcdValue(t.Context(), "/a")
	want := lab.EtcdValue{EtcdKey: lab.EtcdKey{Key: "/a", CreateRevision: 2, ModRevision: 5, Version: 3}, Value: []byte{0, 1, 255}, Size: 3}
	if diff := cmp.Diff(want, v); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if keys, err := in.EtcdKeys(t.Context(), "/", "", 1); err != nil || !keys.More || len(keys.Keys) != 1 || keys.Keys[0] != want.EtcdKey {
		t.Errorf("%+v, %v", keys, err)
	}
	for answer, code := range map[string]lab.Code{
		`{"header":{"revision":"9"}}`:           lab.CodeNotFound,
		`{"error":"no leader","code":14}`:       lab.CodeUnavailable,
		`curl: (7) Failed to connect`:           lab.CodeUnavailable,
		`{"kvs":[{"key":"x","value":"ÄÖ"}]}`:    lab.CodeUnavailable,
		`{"kvs":[{"mod_revision":"a lot of"}]}`: lab.CodeUnavailable,
	} {
		e.answers["exec"] = answer
		if _, err := in.EtcdValue(t.Context(), "/a"); lab.AsError(err).Code != code {
			t.Errorf("%s: %v, want %s", answer, err, code)
		}
	}
	if _, err := in.EtcdValue(t.Context(), ""); lab.AsError(err).Code != lab.CodeInvalid {
		t.Errorf("no key: %v", err)
	}
}

func TestEncryptionIsCheckedBeforeTheAPIServerReadsIt(t *testing.T) {
	const good = `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers: [{aescbc: {keys: [{name: one, secret: c2VjcmV0IGlzIHNlY3VyZSwgb3IgaXMgaXQ/MTIzNDU=}]}}, {identity: {}}]
`
	clean, err := cleanEncryption(good)
	if err != nil || !strings.Contains(string(clean), "aescbc") || !strings.Contains(string(clean), "name: one") {
		t.Errorf("%v: %s", err, clean)
	}
	if again, err := cleanEncryption(string(clean)); err != nil || string(again) != string(clean) {
		t.Errorf("what was written isn't read alike: %v", err)
	}
	for what, bad := range map[string]string{
		"another kind":      strings.Replace(good, "kind: EncryptionConfiguration", "kind: Pod", 1),
		"another version":   strings.Replace(good, "/v1", "/v0", 1),
		"unknown field":     good + "hello: world\n",
		"short key":         strings.Replace(good, "c2VjcmV0IGlzIHNlY3VyZSwgb3IgaXMgaXQ/MTIzNDU=", "c2hvcnQ=", 1),
		"no base64":         strings.Replace(good, "c2VjcmV0IGlzIHNlY3VyZSwgb3IgaXMgaXQ/MTIzNDU=", "%%%", 1),
		"no resource":       strings.Replace(good, "[secrets]", "[]", 1),
		"a key service":     strings.Replace(good, "{identity: {}}", "{kms: {apiVersion: v2, name: x, endpoint: 'unix:///x', timeout: 3s}}", 1),
		"two in a provider": strings.Replace(good, "{identity: {}}", "{identity: {}, secretbox: {keys: []}}", 1),
		"nothing":           "",
	} {
		if _, err := cleanEncryption(bad); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
}

func TestFlagIsTakenOutOfAManifest(t *testing.T) {
	with, err := withFlags(managerManifest, "kube-controller-manager", map[string]string{"encryption-provider-config": "/x.yaml"})
	if err != nil || with == managerManifest {
		t.Fatalf("%v: %s", err, with)
	}
	if got := withoutFlags(with, []string{"encryption-provider-config", "never-there"}); got != managerManifest {
		t.Error(cmp.Diff(managerManifest, got))
	}
}
