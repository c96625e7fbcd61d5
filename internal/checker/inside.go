package checker

import (
	"bytes"
	"context"
	"fmt"
	"strings"
)

// Inside is what a check asks about the cluster that no object shows.
type Inside interface {
	// Allowed asks the API server whether somebody may do something. Nothing is stored by it.
	Allowed(ctx context.Context, a Access) (bool, error)
	// Stored reads the bytes that etcd holds under a key, as they are there; nil without such a key.
	Stored(ctx context.Context, key string) ([]byte, error)
}

// Access is a question to the API server's authorizers; its variable is true or false.
type Access struct {
	User      string // or system:serviceaccount:NAMESPACE:NAME
	Groups    []string
	Verb      string
	Group     string // API group
	Resource  string // pods, or pods/log
	Namespace string // default "default"; AllNamespaces asks for every one
	Name      string // of one object; empty: any
}

// encryptedPrefix begins what an encryption provider has written
// (apiserver/pkg/storage/value/encrypt).
const encryptedPrefix = "k8s:enc:"

func (a Access) fault(name string) error {
	message := ""
	switch {
	case a.User == "":
		message = "has no user"
	case a.Verb == "" || a.Resource == "":
		message = "needs a verb and a resource"
	case a.Name != "" && a.Namespace == AllNamespaces:
		message = "has a name, so it needs one namespace"
	}
	if message == "" {
		return nil
	}
	return &Fault{Line: 1, Column: 1, Message: fmt.Sprintf("access %q %s", name, message)}
}

func storedFault(name, key string) error {
	if strings.HasPrefix(key, "/") {
		return nil
	}
	return &Fault{Line: 1, Column: 1, Message: fmt.Sprintf("stored %q: a key of etcd begins with /registry/", name)}
}

func (r *run) allowed(ctx context.Context, a Access) (any, error) {
	if a.Namespace == "" {
		a.Namespace = "default"
	}
	ok, err := r.world.Allowed(ctx, a)
	if err != nil {
		return nil, &worldError{err}
	}
	return ok, nil
}

// stored is what etcd holds under a key: whether it is there, whether an encryption provider
// wrote it, by which one, and what of it can be read as text.
func (r *run) stored(ctx context.Context, key string) (any, error) {
	raw, err := r.world.Stored(ctx, key)
	if err != nil {
		return nil, &worldError{err}
	}
	out := map[string]any{"exists": raw != nil, "text": strings.ToValidUTF8(string(raw), "\ufffd"), "encrypted": false, "provider": ""}
	if rest, ok := bytes.CutPrefix(raw, []byte(encryptedPrefix)); ok {
		provider, _, _ := bytes.Cut(rest, []byte(":"))
		out["encrypted"], out["provider"] = true, string(provider)
	}
	return out, nil
}
