package pantry

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"

	"golang.org/x/time/rate"
)

// Registry is the set of images that exist. It is safe for concurrent use.
type Registry struct {
	mu     sync.RWMutex
	images map[string]map[string]*Image // by repository, then tag
	logins map[string]Login             // of private registries, by domain
	rate   *rate.Limiter                // of the commands in all shells of all containers
}

// A Pod's endless loop shares its process with the learner's API server: all
// loops together may have a few per cent of a core.
const (
	commandsPerSecond = 20_000
	commandBurst      = 20_000
)

// NewRegistry makes an empty registry.
func NewRegistry() *Registry {
	return &Registry{images: make(map[string]map[string]*Image), logins: map[string]Login{}, rate: rate.NewLimiter(commandsPerSecond, commandBurst)}
}

// Add makes an image known under its Name, which is normalised. An empty ID is
// derived from the repository and the tag. Images that are there already are replaced.
func (r *Registry) Add(img *Image) error {
	ref, err := ParseReference(img.Name)
	if err != nil {
		return fmt.Errorf("pantry: image %q: %w", img.Name, err)
	}
	known := *img
	known.Name = ref.Name() + ":" + ref.Tag
	if known.ID == "" {
		known.ID = imageID(ref.Name(), ref.Tag)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.images[ref.Name()] == nil {
		r.images[ref.Name()] = make(map[string]*Image)
	}
	r.images[ref.Name()][ref.Tag] = &known
	return nil
}

// AddTagged makes one image of a repository known under several tags, with the
// same ID, derived from version.
func (r *Registry) AddTagged(img Image, repository, version string, tags ...string) error {
	for _, tag := range tags {
		named := img
		named.Name = repository + ":" + tag
		if named.ID == "" {
			ref, err := ParseReference(named.Name)
			if err != nil {
				return fmt.Errorf("pantry: image %q: %w", named.Name, err)
			}
			named.ID = imageID(ref.Name(), version)
		}
		if err := r.Add(&named); err != nil {
			return err
		}
	}
	return nil
}

// imageID is the same for a version of a repository on every machine.
func imageID(repository, version string) string {
	sum := sha256.Sum256([]byte("kubistro pantry\n" + repository + "\n" + version))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Pull finds an image by reference as a container runtime would, without a login.
// Errors are *PullError.
func (r *Registry) Pull(ref string) (*Image, error) { return r.PullAs(ref, nil) }

// Known finds an image that was pulled before, whoever was allowed to.
func (r *Registry) Known(ref string) (*Image, error) { return r.find(ref) }

func (r *Registry) find(ref string) (*Image, error) {
	parsed, err := ParseReference(ref)
	if err != nil {
		return nil, &PullError{Invalid: true, Message: fmt.Sprintf(
			"Failed to apply default image tag %q: couldn't parse image name %q: %v", ref, ref, err)}
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	tags, known := r.images[parsed.Name()]
	if !known {
		return nil, pullFailure(parsed, "this kitchen's pantry has only: "+strings.Join(r.familiarNames(), ", "))
	}
	if parsed.Digest == "" {
		if img := tags[parsed.Tag]; img != nil {
			return img, nil
		}
		return nil, pullFailure(parsed, parsed.canonical()+": not found")
	}
	var found *Image // by digest, whatever the tag says; the one with that tag, else the first by name
	for tag, img := range tags {
		if img.ID == parsed.Digest && (found == nil || tag == parsed.Tag || found.Name > img.Name) {
			if found = img; tag == parsed.Tag {
				break
			}
		}
	}
	if found == nil {
		return nil, pullFailure(parsed, parsed.canonical()+": not found")
	}
	return found, nil
}

// canonical is the reference that a runtime resolves: the digest wins over the tag.
func (r Reference) canonical() string {
	if r.Digest != "" {
		r.Tag = ""
	}
	return r.String()
}

func pullFailure(ref Reference, reason string) *PullError {
	name := ref.canonical()
	return &PullError{Message: fmt.Sprintf(
		"rpc error: code = NotFound desc = failed to pull and unpack image %q: failed to resolve reference %q: %s",
		name, name, reason)}
}

// Repositories lists the known repositories with their tags, sorted: for messages and lint.
func (r *Registry) Repositories() []Repository {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := make([]Repository, 0, len(r.images))
	for name, tags := range r.images {
		repo := Repository{Name: name}
		for tag := range tags {
			repo.Tags = append(repo.Tags, tag)
		}
		sort.Strings(repo.Tags)
		out = append(out, repo)
	}
	sort.Slice(out, func(a, b int) bool { return out[a].Name < out[b].Name })
	return out
}

// familiarNames are the repositories as people write them, without those of
// private registries, which tell nobody what they have; those of Kubernetes' own
// tests are named together. What is there under several names is named once, by the shortest.
func (r *Registry) familiarNames() []string {
	short := map[string]string{} // by the last part of the name
	for name := range r.images {
		domain, _, _ := strings.Cut(name, "/")
		if _, private := r.logins[domain]; private {
			continue
		}
		name, last := familiar(name), path.Base(name)
		if strings.HasPrefix(name, testImages) {
			name, last = testImages+"*", testImages
		}
		if known := short[last]; known == "" || len(name) < len(known) || len(name) == len(known) && name < known {
			short[last] = name
		}
	}
	return slices.Sorted(maps.Values(short))
}

// familiar undoes the normalisation: docker.io/library/nginx is nginx.
func familiar(name string) string {
	short, ok := strings.CutPrefix(name, "docker.io/")
	if !ok {
		return name
	}
	if official, ok := strings.CutPrefix(short, "library/"); ok && !strings.Contains(official, "/") {
		return official
	}
	return short
}

// Repository is a known name and its tags.
type Repository struct {
	Name string
	Tags []string
}

// PullError says why an image can't be pulled, in the container runtime's words.
type PullError struct {
	// Invalid: the reference can't be parsed (InvalidImageName instead of ErrImagePull).
	Invalid bool
	Message string
}

func (e *PullError) Error() string { return e.Message }
