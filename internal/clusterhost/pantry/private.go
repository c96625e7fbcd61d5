package pantry

import (
	"crypto/subtle"
	"fmt"
	"net/url"
)

// The private registry that every cluster knows, and who may pull from it: what
// lessons about image pull secrets put into theirs. It guards nothing.
const (
	PrivateRegistry = "registry.kubistro.test"
	PrivateUser     = "chef"
	PrivatePassword = "secret-sauce"
)

// Login is what a pull secret holds for a registry.
type Login struct{ User, Password string }

// Protect has a registry refuse pulls without the login.
func (r *Registry) Protect(domain string, l Login) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logins[domain] = l
}

// Private reports whether an image's registry wants a login.
func (r *Registry) Private(ref string) bool {
	parsed, err := ParseReference(ref)
	if err != nil {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, private := r.logins[parsed.Domain]
	return private
}

// PullAs is Pull with a login; nil is anonymous. The refusals are those of
// containerd's resolver and of its token fetcher (core/remotes/docker).
func (r *Registry) PullAs(ref string, l *Login) (*Image, error) {
	if parsed, err := ParseReference(ref); err == nil {
		r.mu.RLock()
		want, private := r.logins[parsed.Domain]
		r.mu.RUnlock()
		switch {
		case !private:
		case l == nil:
			return nil, pullDenied(parsed, "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed")
		case !same(l.User, want.User) || !same(l.Password, want.Password):
			return nil, pullDenied(parsed, fmt.Sprintf("failed to authorize: failed to fetch oauth token: unexpected status from GET request to https://%s/token?account=%s&scope=repository%%3A%s%%3Apull&service=%[1]s: 401 Unauthorized",
				parsed.Domain, l.User, url.QueryEscape(parsed.Path)))
		}
	}
	return r.find(ref)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// pullDenied is an error without a code of its own, which the kubelet passes on without gRPC's prefix: pullImageV1 of k8s.io/cri-client.
func pullDenied(ref Reference, reason string) *PullError {
	name := ref.canonical()
	return &PullError{Message: fmt.Sprintf(
		"failed to pull and unpack image %q: failed to resolve reference %q: %s", name, name, reason)}
}

// addPrivate gives the private registry a cook of its own.
func addPrivate(r *Registry) error {
	r.Protect(PrivateRegistry, Login{PrivateUser, PrivatePassword})
	for version, tags := range map[string][]string{"1.4": {"1.4"}, "1.5": {"1.5", "latest"}} {
		cook, err := r.Pull("grill-cook:" + version)
		if err != nil {
			return err
		}
		private := *cook
		private.ID = ""
		if err := r.AddTagged(private, PrivateRegistry+"/private/grill-cook", version, tags...); err != nil {
			return err
		}
	}
	return nil
}
