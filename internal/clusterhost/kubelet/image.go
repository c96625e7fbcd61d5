package kubelet

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"

	"kubistro/internal/clusterhost/pantry"
)

// imageStore is what the node has pulled; it survives a loss of power.
type imageStore struct {
	registry *pantry.Registry

	mu     sync.Mutex
	images map[string]*pantry.Image // by normalised name
	access map[string][]string      // of images from private registries: logins and Secrets that they were pulled with
}

func newImageStore(r *pantry.Registry) *imageStore {
	return &imageStore{registry: r, images: map[string]*pantry.Image{}, access: map[string][]string{}}
}

// withTag adds the default tag as images/image_manager.go's applyDefaultImageTag
// does, without making a short name long; normal is the full name.
func withTag(ref string) (image, normal string, err error) {
	named, err := reference.ParseNormalizedNamed(ref)
	if err != nil {
		return "", "", fmt.Errorf("couldn't parse image name %q: %w", ref, err)
	}
	full := reference.TagNameOnly(named)
	image = ref
	if tagged, ok := full.(reference.Tagged); ok && reference.IsNameOnly(named) {
		image = ref + ":" + tagged.Tag()
	}
	return image, full.String(), nil
}

func (s *imageStore) have(normal string) *pantry.Image {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.images[normal]
}

// pull gets an image from the pantry. The error's text is the container runtime's.
func (s *imageStore) pull(ref, normal string) (*pantry.Image, error) {
	img, err := s.registry.Pull(ref)
	if err != nil {
		return nil, err
	}
	s.keep(normal, img, nil)
	return img, nil
}

// restore takes up an image that the node has had.
func (s *imageStore) restore(name string, access []string) error {
	img, err := s.registry.Known(name)
	if err == nil {
		s.keep(name, img, access)
	}
	return err
}

// list is what the Node reports, largest first: images/image_gc_manager.go.
func (s *imageStore) list() []corev1.ContainerImage {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]corev1.ContainerImage, 0, len(s.images))
	for _, img := range s.images {
		out = append(out, corev1.ContainerImage{Names: []string{imageDigest(img), img.Name}, SizeBytes: img.SizeBytes})
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].SizeBytes != out[j].SizeBytes {
			return out[i].SizeBytes > out[j].SizeBytes
		}
		return out[i].Names[0] < out[j].Names[0]
	})
	if len(out) > 50 {
		out = out[:50]
	}
	return out
}

// imageDigest is the name by digest, as in RepoDigests.
func imageDigest(img *pantry.Image) string {
	name := img.Name
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		name = name[:i]
	}
	return name + "@" + img.ID
}

// imageID is what the container's status shows; it says so when the program is
// not the one that the name stands for in public.
func imageID(img *pantry.Image) string {
	if img.Simulated {
		return "simulated://" + imageDigest(img)
	}
	return imageDigest(img)
}

const simulatedNote = " Simulated: Kubistro runs a program of its own under this name."

// pullState is the back-off of one image of one Pod.
type pullState struct {
	Backoff backoff `json:"backoff"`
	Last    string  `json:"last,omitempty"` // the last pull's "ErrImagePull: ..."
}

// ensureImage follows images/image_manager.go, EnsureImageExists: it returns the
// image, or the waiting reason and message and, for a back-off, until when.
func (w *worker) ensureImage(ctx context.Context, c *corev1.Container, path string) (*pantry.Image, *startProblem) {
	record := func(kind, reason, format string, args ...any) {
		w.b.podEvent(w.pod, path, kind, reason, format, args...)
	}
	image, normal, err := withTag(c.Image)
	if err != nil {
		msg := fmt.Sprintf("Failed to apply default image tag %q: %v", c.Image, err)
		record(corev1.EventTypeWarning, "InspectFailed", "%s", msg)
		return nil, &startProblem{reason: "InvalidImageName", message: msg}
	}
	store := w.b.k.images
	logins := w.pullLogins(ctx)
	if c.ImagePullPolicy != corev1.PullAlways {
		if img := store.have(normal); img != nil && store.accessible(normal, logins) {
			note := ""
			if img.Simulated {
				note = "." + simulatedNote
			}
			record(corev1.EventTypeNormal, "Pulled", "Container image %q already present on machine and can be accessed by the pod%s", c.Image, note)
			return img, nil
		}
		if c.ImagePullPolicy == corev1.PullNever {
			msg := fmt.Sprintf("Container image %q is not present with pull policy of Never", c.Image)
			record(corev1.EventTypeWarning, "ErrImageNeverPull", "%s", msg)
			return nil, &startProblem{reason: "ErrImageNeverPull", message: msg}
		}
	}
	return w.pullImage(c.Image, image, normal, logins, record)
}

func (w *worker) pullImage(asked, image, normal string, logins []pullLogin, record func(kind, reason, format string, args ...any)) (*pantry.Image, *startProblem) {
	clock := w.b.k.clock
	st := w.pulls[asked]
	if st == nil {
		st = &pullState{}
		w.pulls[asked] = st
	}
	if until, wait := st.Backoff.since(st.Backoff.Last, clock.Now(), w.b.k.pullBackoff()); wait {
		msg := fmt.Sprintf("Back-off pulling image %q", asked)
		record(corev1.EventTypeNormal, "BackOff", "%s", msg)
		if st.Last != "" {
			msg += ": " + st.Last
		}
		return nil, &startProblem{reason: "ImagePullBackOff", message: msg, until: until, later: true}
	}
	st.Last = ""
	record(corev1.EventTypeNormal, "Pulling", "Pulling image %q", asked)
	start := clock.Now()
	img, err := w.b.k.images.pullWith(image, normal, logins)
	if err != nil {
		record(corev1.EventTypeWarning, "Failed", "Failed to pull image %q: %v", asked, err)
		st.Backoff.next(clock.Now(), clock.Now(), w.b.k.pullBackoff())
		problem := &startProblem{reason: "ErrImagePull", message: err.Error()}
		var pe *pantry.PullError
		if errors.As(err, &pe) && pe.Invalid {
			problem.reason = "InvalidImageName"
		}
		st.Last = problem.reason + ": " + problem.message
		return nil, problem
	}
	delete(w.pulls, asked)
	took := clock.Since(start).Truncate(time.Millisecond)
	note := ""
	if img.Simulated {
		note = simulatedNote
	}
	record(corev1.EventTypeNormal, "Pulled", "Successfully pulled image %q in %v (%v including waiting). Image size: %v bytes.%s", asked, took, took, img.SizeBytes, note)
	return img, nil
}
