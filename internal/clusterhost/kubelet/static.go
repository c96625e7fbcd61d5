package kubelet

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// Annotations of static Pods and their mirrors: types/pod_update.go.
const (
	annotationSource = "kubernetes.io/config.source"
	annotationMirror = "kubernetes.io/config.mirror"
	annotationHash   = "kubernetes.io/config.hash"
	annotationSeen   = "kubernetes.io/config.seen"
)

func metaOf(o any) (metav1.Object, error) { return meta.Accessor(o) }

func cmpStrings(a, b string) int { return strings.Compare(a, b) }

func isMirror(p *corev1.Pod) bool { _, ok := p.Annotations[annotationMirror]; return ok }

func isStatic(p *corev1.Pod) bool {
	s, ok := p.Annotations[annotationSource]
	return ok && s != "api"
}

// staticPod completes a Pod of Config.Static as config/common.go does: its name
// ends with the node's, its UID is a hash of the manifest.
func staticPod(p *corev1.Pod, node string, now time.Time) *corev1.Pod {
	p = p.DeepCopy()
	raw, _ := json.Marshal(p) // a Pod always marshals
	sum := md5.Sum(append(raw, node...))
	hash := hex.EncodeToString(sum[:])
	if !strings.HasSuffix(p.Name, "-"+node) {
		p.Name += "-" + node
	}
	if p.Namespace == "" {
		p.Namespace = metav1.NamespaceDefault
	}
	p.UID = types.UID(hash)
	p.Spec.NodeName = node
	if p.Annotations == nil {
		p.Annotations = map[string]string{}
	}
	p.Annotations[annotationSource] = "file"
	p.Annotations[annotationHash] = hash
	p.Annotations[annotationSeen] = now.UTC().Format(time.RFC3339Nano)
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
	if p.Spec.RestartPolicy == "" {
		p.Spec.RestartPolicy = corev1.RestartPolicyAlways
	}
	if p.Spec.TerminationGracePeriodSeconds == nil {
		p.Spec.TerminationGracePeriodSeconds = ptr.To(int64(corev1.DefaultTerminationGracePeriodSeconds))
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		if c.ImagePullPolicy == "" {
			c.ImagePullPolicy = corev1.PullIfNotPresent
		}
		if c.TerminationMessagePath == "" {
			c.TerminationMessagePath = corev1.TerminationMessagePathDefault
		}
	}
	p.Status.Phase = corev1.PodPending
	return p
}

// readStatic reads the manifests for the first time.
func (b *boot) readStatic() {
	pods := map[string]*corev1.Pod{}
	for _, p := range b.k.statics() {
		p = staticPod(p, b.k.cfg.Name, b.started)
		pods[podName(p)] = p
	}
	b.mu.Lock()
	b.static = pods
	b.mu.Unlock()
}

// byName finds the static Pod that a mirror shows.
func (b *boot) staticByName(mirror *corev1.Pod) *worker {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.workers {
		if p := w.spec(); w.static && p.Name == mirror.Name && p.Namespace == mirror.Namespace {
			return w
		}
	}
	return nil
}

func (b *boot) mirrorSeen(m *corev1.Pod) {
	w := b.staticByName(m)
	known := b.wanted(m)
	outdated := known == nil || known.Annotations[annotationHash] != m.Annotations[annotationMirror]
	if outdated || m.DeletionTimestamp != nil {
		b.wg.Go(func() { b.deleteMirror(m) })
		return
	}
	if w == nil {
		return // startStatic will find it
	}
	w.mu.Lock()
	w.mirror = m
	w.mu.Unlock()
	b.statuses.enqueue(w)
}

func (b *boot) mirrorRemoved(m *corev1.Pod) {
	w := b.staticByName(m)
	if w == nil || b.wanted(m) == nil {
		return
	}
	w.mu.Lock()
	if w.mirror != nil && w.mirror.UID == m.UID {
		w.mirror = nil
	}
	w.mu.Unlock()
	b.wg.Go(func() { b.createMirror(w) })
}

func (b *boot) deleteMirror(m *corev1.Pod) {
	err := b.k.cfg.Client.CoreV1().Pods(m.Namespace).Delete(b.ctx, m.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(m.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) && b.ctx.Err() == nil {
		b.log.Warn("mirror pod can't be deleted", "pod", podName(m), "err", err)
	}
}

// startStatic starts the static Pods once the API's Pods are known, so that
// restarts go on being counted from what the mirrors say, and makes missing mirrors.
func (b *boot) startStatic(pods cache.Store) {
	b.mu.Lock()
	static := slices.Collect(maps.Values(b.static))
	b.mu.Unlock()
	for _, p := range static {
		if b.staticByName(p) != nil { // put there meanwhile
			continue
		}
		w := newWorker(b, p, true)
		if o, ok, _ := pods.GetByKey(p.Namespace + "/" + p.Name); ok {
			if m := o.(*corev1.Pod); isMirror(m) && m.Annotations[annotationMirror] == p.Annotations[annotationHash] {
				w.mirror = m
				w.status = *m.Status.DeepCopy()
			}
		}
		b.add(w)
		if w.mirror == nil {
			b.wg.Go(func() { b.createMirror(w) })
		}
	}
}

// createMirror shows a static Pod in the API: pod/mirror_client.go. It tries until it is there.
func (b *boot) createMirror(w *worker) {
	p := w.spec().DeepCopy()
	p.UID, p.ResourceVersion, p.Status = "", "", corev1.PodStatus{}
	p.Annotations[annotationMirror] = p.Annotations[annotationHash]
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: b.k.cfg.Name, UID: b.nodeUID(), Controller: ptr.To(true)}}
	b.retry(b.ctx, "create mirror pod "+podName(p), func(ctx context.Context) error {
		_, err := b.k.cfg.Client.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
}
