package kubelet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubistro/internal/clusterhost/pantry"
)

func TestLoginsOfSecrets(t *testing.T) {
	for name, c := range map[string]struct {
		kind corev1.SecretType
		key  string
		data string
		want map[string]pantry.Login
	}{
		"names and passwords": {corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey,
			`{"auths":{"registry.kubistro.test":{"username":"chef","password":"x"}}}`, map[string]pantry.Login{"registry.kubistro.test": {User: "chef", Password: "x"}}},
		"encoded, with a scheme": {corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey,
			`{"auths":{"https://registry.kubistro.test/v2/":{"auth":"Y2hlZjphOmI="}}}`, map[string]pantry.Login{"registry.kubistro.test": {User: "chef", Password: "a:b"}}},
		"old form":      {corev1.SecretTypeDockercfg, corev1.DockerConfigKey, `{"*.kubistro.test":{"username":"chef","password":"x"}}`, map[string]pantry.Login{"*.kubistro.test": {User: "chef", Password: "x"}}},
		"damaged":       {corev1.SecretTypeDockerConfigJson, corev1.DockerConfigJsonKey, `{`, map[string]pantry.Login{}},
		"of other kind": {corev1.SecretTypeOpaque, corev1.DockerConfigJsonKey, `{"auths":{"a":{}}}`, map[string]pantry.Login{}},
	} {
		got := map[string]pantry.Login{}
		for _, l := range loginsOf(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Type: c.kind, Data: map[string][]byte{c.key: []byte(c.data)}}) {
			got[l.registry] = l.Login
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestWhichImagesALoginIsFor(t *testing.T) {
	const image = "registry.kubistro.test/private/grill-cook:1.4"
	for registry, want := range map[string]bool{
		"registry.kubistro.test": true, "*.kubistro.test": true, "registry.kubistro.test/private": true, "registry.*.test": true,
		"registry.kubistro.test/public": false, "kubistro.test": false, "docker.io": false, "registry.kubistro.test:5000": false, "*": false,
	} {
		if got := (pullLogin{registry: registry}).covers(image); got != want {
			t.Errorf("%s covers it: %v, want %v", registry, got, want)
		}
	}
}
