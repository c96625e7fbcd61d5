package kubelet

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kubistro/internal/clusterhost/pantry"
)

// pullLogin is a login from a pull secret, for registries that match its key.
type pullLogin struct {
	pantry.Login
	registry string // host and path, perhaps with * in labels of the host
	marks    []string
}

// pullLogins reads the Pod's pull secrets: kubelet.go, getPullSecretsForPod, and
// pkg/credentialprovider/config.go. What can't be read is left out.
func (w *worker) pullLogins(ctx context.Context) []pullLogin {
	var out []pullLogin
	var missing []string
	for _, ref := range w.pod.Spec.ImagePullSecrets {
		if ref.Name == "" {
			continue
		}
		s, err := w.b.objects.secret(ctx, w.pod.Namespace, ref.Name, freshAge)
		if err != nil {
			missing = append(missing, ref.Name)
			continue
		}
		out = append(out, loginsOf(s)...)
	}
	if len(missing) > 0 {
		w.b.podEvent(w.pod, "", corev1.EventTypeWarning, "FailedToRetrieveImagePullSecret",
			"Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", strings.Join(missing, ", "))
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].registry > out[j].registry }) // longer paths first: keyring.go
	return out
}

// loginsOf reads a Secret of type dockerconfigjson or dockercfg.
func loginsOf(s *corev1.Secret) []pullLogin {
	type entry struct {
		Username string `json:"username"`
		Password string `json:"password"`
		Auth     string `json:"auth"`
	}
	var entries map[string]entry
	switch s.Type {
	case corev1.SecretTypeDockerConfigJson:
		var c struct {
			Auths map[string]entry `json:"auths"`
		}
		if json.Unmarshal(s.Data[corev1.DockerConfigJsonKey], &c) == nil {
			entries = c.Auths
		}
	case corev1.SecretTypeDockercfg:
		if json.Unmarshal(s.Data[corev1.DockerConfigKey], &entries) != nil {
			return nil
		}
	}
	var out []pullLogin
	for registry, e := range entries {
		if e.Auth != "" {
			if raw, err := base64.StdEncoding.DecodeString(e.Auth); err == nil {
				e.Username, e.Password, _ = strings.Cut(string(raw), ":")
			}
		}
		sum := sha256.Sum256([]byte(e.Username + "\x00" + e.Password))
		out = append(out, pullLogin{
			Login: pantry.Login{User: e.Username, Password: e.Password}, registry: registryKey(registry),
			marks: []string{"hash " + hex.EncodeToString(sum[:]), fmt.Sprintf("secret %s/%s %s", s.Namespace, s.Name, s.UID)},
		})
	}
	return out
}

// registryKey makes host and path of what people write into their configuration.
func registryKey(s string) string {
	for _, scheme := range []string{"https://", "http://"} {
		s = strings.TrimPrefix(s, scheme)
	}
	s = strings.TrimSuffix(s, "/")
	for _, version := range []string{"/v1", "/v2"} {
		s = strings.TrimSuffix(s, version)
	}
	if s == "index.docker.io" {
		return "docker.io"
	}
	return s
}

// covers says whether the login is for an image: credentialprovider/keyring.go, URLsMatch.
func (l pullLogin) covers(image string) bool {
	keyHost, keyPath, _ := strings.Cut(l.registry, "/")
	host, rest, _ := strings.Cut(image, "/")
	keyParts, parts := strings.Split(keyHost, "."), strings.Split(host, ".")
	if len(keyParts) != len(parts) || !strings.HasPrefix(rest, keyPath) {
		return false
	}
	for i := range parts {
		if ok, err := path.Match(keyParts[i], parts[i]); err != nil || !ok {
			return false
		}
	}
	return true
}

// accessible says whether a Pod may use an image that is there already: one that
// was pulled with a login only with the same login or the same Secret
// (images/pullmanager, MustAttemptImagePull).
func (s *imageStore) accessible(normal string, logins []pullLogin) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	marks, private := s.access[normal]
	if !private {
		return true
	}
	return slices.ContainsFunc(logins, func(l pullLogin) bool {
		return l.covers(normal) && slices.ContainsFunc(l.marks, func(m string) bool { return slices.Contains(marks, m) })
	})
}

// pullWith tries the logins for an image in turn, or without one when there is none.
func (s *imageStore) pullWith(ref, normal string, logins []pullLogin) (*pantry.Image, error) {
	var failures []string
	tried := false
	for _, l := range logins {
		if !l.covers(normal) {
			continue
		}
		tried = true
		img, err := s.registry.PullAs(ref, &l.Login)
		if err == nil {
			s.keep(normal, img, l.marks)
			return img, nil
		}
		failures = append(failures, err.Error())
	}
	switch {
	case !tried:
		return s.pull(ref, normal)
	case len(failures) == 1:
		return nil, &pantry.PullError{Message: failures[0]}
	}
	return nil, &pantry.PullError{Message: "[" + strings.Join(failures, ", ") + "]"}
}

// maxMarks bounds who is remembered for an image: keys of Secrets change for ever.
const maxMarks = 100

// keep notes an image and, where its registry is private, for whom it was pulled.
func (s *imageStore) keep(normal string, img *pantry.Image, marks []string) {
	private := s.registry.Private(normal)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.images[normal] = img
	if !private {
		return
	}
	for _, m := range marks {
		if !slices.Contains(s.access[normal], m) {
			s.access[normal] = append(s.access[normal], m)
		}
	}
	if over := len(s.access[normal]) - maxMarks; over > 0 {
		s.access[normal] = s.access[normal][over:]
	}
}
