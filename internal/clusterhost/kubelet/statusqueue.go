package kubelet

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// statusQueue sends Pod statuses one after the other, each the newest there is:
// what changes while another is under way is merged (status/status_manager.go).
type statusQueue struct {
	b    *boot
	kick chan struct{}

	mu    sync.Mutex
	order []*worker
	in    map[*worker]bool
	sent  map[types.UID]*corev1.Pod // answers to the last patches
}

const statusRetry = 2 * time.Second

func newStatusQueue(b *boot) *statusQueue {
	return &statusQueue{b: b, kick: make(chan struct{}, 1), in: map[*worker]bool{}, sent: map[types.UID]*corev1.Pod{}}
}

func (q *statusQueue) enqueue(w *worker) {
	q.mu.Lock()
	if !q.in[w] {
		q.in[w] = true
		q.order = append(q.order, w)
	}
	q.mu.Unlock()
	select {
	case q.kick <- struct{}{}:
	default:
	}
}

func (q *statusQueue) next() *worker {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.order) == 0 {
		return nil
	}
	w := q.order[0]
	q.order = q.order[1:]
	delete(q.in, w)
	return w
}

// run sends until ctx ends.
func (q *statusQueue) run(ctx context.Context) {
	for {
		for w := q.next(); w != nil && q.b.k.work.wait(ctx); w = q.next() {
			if !q.send(ctx, w) && ctx.Err() == nil {
				t := q.b.k.clock.NewTimer(statusRetry)
				q.b.wg.Go(func() {
					defer t.Stop()
					select {
					case <-t.C():
						q.enqueue(w)
					case <-ctx.Done():
					}
				})
			}
		}
		select {
		case <-q.kick:
		case <-ctx.Done():
			return
		}
	}
}

// send patches one Pod's status and reports whether there is nothing to try again.
func (q *statusQueue) send(ctx context.Context, w *worker) bool {
	w.mu.Lock()
	pod, status, finished, gone := w.incoming, w.status, w.finished, w.deleted
	if w.static {
		pod = w.mirror
	}
	w.mu.Unlock()
	if gone || pod == nil {
		return true
	}
	base := q.newest(pod)
	// Others may have written since the status was made: their part isn't ours to take back.
	updated, err := patchPodStatus(ctx, q.b, base, keepForeign(base.Status, status))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return true // the object is gone or another one by now: the watch tells
	case err != nil:
		if ctx.Err() == nil {
			q.b.log.Warn("pod status can't be sent", "pod", podName(pod), "err", err)
		}
		return false
	}
	if updated != nil {
		q.mu.Lock()
		q.sent[pod.UID] = updated
		q.mu.Unlock()
		base = updated
	}
	if finished && !w.static && base.DeletionTimestamp != nil && terminalPhase(base.Status.Phase) {
		err := q.b.k.cfg.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
		})
		return err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err)
	}
	return true
}

// newest is the Pod as last seen: from the watch or from the answer to the last patch.
func (q *statusQueue) newest(pod *corev1.Pod) *corev1.Pod {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.sent[pod.UID]
	if s == nil {
		return pod
	}
	seen, err1 := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	sent, err2 := strconv.ParseUint(s.ResourceVersion, 10, 64)
	if err1 == nil && err2 == nil && seen >= sent {
		delete(q.sent, pod.UID)
		return pod
	}
	return s
}

func (q *statusQueue) forget(uid types.UID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.sent, uid)
}

// patchPodStatus sends the difference between the statuses, as
// pkg/util/pod/pod.go does; nil without an error: there is none.
func patchPodStatus(ctx context.Context, b *boot, pod *corev1.Pod, status corev1.PodStatus) (*corev1.Pod, error) {
	if apiequality.Semantic.DeepEqual(pod.Status, status) {
		return nil, nil
	}
	before, err := json.Marshal(corev1.Pod{Status: pod.Status})
	if err != nil {
		return nil, fmt.Errorf("marshal old status: %w", err)
	}
	after, err := json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID}, Status: status})
	if err != nil {
		return nil, fmt.Errorf("marshal new status: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("make status patch: %w", err)
	}
	if bytes.Equal(patch, fmt.Appendf(nil, `{"metadata":{"uid":%q}}`, pod.UID)) {
		return nil, nil
	}
	return b.k.cfg.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
}
