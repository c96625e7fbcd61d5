package kubelet_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const privateImage = "registry.kubistro.test/private/grill-cook:1.4"

func secretYAML(name, user, password string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\ntype: kubernetes.io/dockerconfigjson\nstringData: {.dockerconfigjson: '{\"auths\":{\"registry.kubistro.test\":{\"username\":%q,\"password\":%q}}}'}", name, user, password)
}

// TestPrivateRegistry: what a registry refuses without the right login, before and after
// somebody has pulled the image to the node with it.
func TestPrivateRegistry(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, secretYAML("right", "chef", "secret-sauce"))
	h.apply(t, ns, secretYAML("wrong", "chef", "guess"))
	pod := func(name, policy, secret string) {
		pull := ""
		if secret != "" {
			pull = "imagePullSecrets: [{name: " + secret + "}], "
		}
		h.apply(t, ns, podYAML(name, fmt.Sprintf(`{%snodeName: kitchen-3, terminationGracePeriodSeconds: 0, containers: [{name: c, image: %q, imagePullPolicy: %s}]}`, pull, privateImage, policy)))
	}
	refused := func(name, part string) {
		t.Helper()
		h.event(t, ns, name, "Failed", part)
		p := h.pod(t, ns, name, waiting("ImagePullBackOff"))
		if m := container(p).State.Waiting.Message; !strings.HasPrefix(m, "Back-off pulling image") || !strings.Contains(m, part) {
			t.Errorf("%s waits with %q", name, m)
		}
	}
	const denied = "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed"
	pod("never", "Never", "")
	h.event(t, ns, "never", "ErrImageNeverPull", fmt.Sprintf("Container image %q is not present with pull policy of Never", privateImage))
	h.pod(t, ns, "never", waiting("ErrImageNeverPull"))
	pod("anonymous", "IfNotPresent", "")
	refused("anonymous", fmt.Sprintf("failed to pull and unpack image %q: failed to resolve reference %[1]q: %s", privateImage, denied))
	pod("guesses", "IfNotPresent", "wrong")
	refused("guesses", "401 Unauthorized")
	pod("lost", "IfNotPresent", "nowhere")
	h.event(t, ns, "lost", "FailedToRetrieveImagePullSecret", "Unable to retrieve some image pull secrets (nowhere); attempting to pull the image may not succeed.")

	pod("chef", "IfNotPresent", "right")
	p := h.pod(t, ns, "chef", ready)
	if c := container(p); c.Image != privateImage || !strings.HasPrefix(c.ImageID, "registry.kubistro.test/private/grill-cook@sha256:") {
		t.Errorf("status: %+v", c)
	}
	h.event(t, ns, "chef", "Pulled", fmt.Sprintf("Successfully pulled image %q", privateImage))

	// The image is on the node now, but only for who has the login.
	pod("second", "IfNotPresent", "right")
	h.pod(t, ns, "second", ready)
	h.event(t, ns, "second", "Pulled", "already present on machine and can be accessed by the pod")
	pod("sneaks", "IfNotPresent", "")
	refused("sneaks", denied)
	pod("never-mine", "Never", "right")
	h.pod(t, ns, "never-mine", func(p *corev1.Pod) string { return ready(p) })
	pod("never-yours", "Never", "")
	h.pod(t, ns, "never-yours", waiting("ErrImageNeverPull"))
}
