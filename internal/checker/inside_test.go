package checker

import (
	"errors"
	"testing"

	"kubistro/internal/lab"
)

func inside(that ...string) Spec {
	s := Spec{
		Access: map[string]Access{"reads": {User: "helper", Verb: "get", Resource: "secrets", Name: "safe"}},
		Stored: map[string]string{"raw": "/registry/secrets/default/safe"},
	}
	for _, e := range that {
		s.Expect = append(s.Expect, Expectation{That: e, Message: lab.Text{ZhTW: "不對", En: "wrong: {raw.text}"}})
	}
	return s
}

func TestInside(t *testing.T) {
	const key = "/registry/secrets/default/safe"
	for _, c := range []struct {
		name    string
		allowed bool
		etcd    map[string]string
		that    string
		status  lab.CheckStatus
		says    string
	}{
		{"refused", false, nil, "!reads", lab.CheckMet, ""},
		{"allowed", true, nil, "!reads", lab.CheckNotMet, "wrong"},
		{"no such key", false, nil, "!raw.exists && !raw.encrypted", lab.CheckMet, ""},
		{"plain", false, map[string]string{key: "k8s\x00\xff 7-24"}, "raw.exists && raw.text.contains('7-24') && !raw.encrypted && raw.provider == ''", lab.CheckMet, ""},
		{"plain, told", false, map[string]string{key: "k8s\x00 7-24"}, "raw.encrypted", lab.CheckNotMet, "7-24"},
		{"encrypted", false, map[string]string{key: "k8s:enc:aescbc:v1:one:\xfe\xff"}, "raw.encrypted && raw.provider == 'aescbc'", lab.CheckMet, ""},
		{"only the first bytes count", false, map[string]string{key: "xk8s:enc:aescbc:v1:one:"}, "raw.encrypted", lab.CheckNotMet, "wrong"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := worldOf(t)
			w.allowed, w.etcd = map[string]bool{"helper get secrets": c.allowed}, c.etcd
			if c.says == "" {
				want(t, compile(t, inside(c.that)).Run(t.Context(), w), c.status)
			} else {
				want(t, compile(t, inside(c.that)).Run(t.Context(), w), c.status, c.says)
			}
		})
	}
}

func TestInsideUnknown(t *testing.T) {
	w := worldOf(t)
	w.fail = errors.New("the API server doesn't answer")
	for _, that := range []string{"!reads", "!raw.exists"} {
		if got := compile(t, inside(that)).Run(t.Context(), w); got.Status != lab.CheckUnknown {
			t.Errorf("%s without an answer is %s", that, got.Status)
		}
	}
}

func TestInsideFaults(t *testing.T) {
	for name, s := range map[string]Spec{
		"no user":        {Access: map[string]Access{"a": {Verb: "get", Resource: "pods"}}},
		"no resource":    {Access: map[string]Access{"a": {User: "x", Verb: "get"}}},
		"name, all over": {Access: map[string]Access{"a": {User: "x", Verb: "get", Resource: "pods", Name: "y", Namespace: AllNamespaces}}},
		"a relative key": {Stored: map[string]string{"a": "registry/secrets"}},
	} {
		s.ID, s.Expect = "x", []Expectation{{That: "true", Message: lab.Text{ZhTW: "不", En: "no"}}}
		if _, err := Compile(s); err == nil {
			t.Errorf("%s: compiled", name)
		}
	}
}
