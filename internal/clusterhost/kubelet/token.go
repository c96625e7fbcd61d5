package kubelet

import (
	"context"
	"io/fs"
	"sync"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const tokenTimeout = 10 * time.Second

// tokenFile is a projected service account token. It is requested when it is
// first read, and anew when 80 % of its life is over (token/token_manager.go):
// most programs here never read theirs, and signing one for every Pod would
// double the work of starting a cluster.
func (m volumeMaker) tokenFile(p *corev1.ServiceAccountTokenProjection, md fs.FileMode) *inode {
	pod := m.facts.pod
	b := m.b
	var mu sync.Mutex
	var token []byte
	var renew time.Time
	n := m.file(nil, md)
	n.load = func() ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if now := b.k.clock.Now(); token != nil && now.Before(renew) {
			return token, nil
		}
		ctx, cancel := context.WithTimeout(b.ctx, tokenTimeout)
		defer cancel()
		req := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{
			ExpirationSeconds: p.ExpirationSeconds,
			BoundObjectRef:    &authv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
		}}
		if p.Audience != "" {
			req.Spec.Audiences = []string{p.Audience}
		}
		got, err := b.k.cfg.Client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, req, metav1.CreateOptions{})
		if err != nil {
			b.log.Warn("token can't be had", "pod", pod.Namespace+"/"+pod.Name, "err", err)
			return nil, err
		}
		now := b.k.clock.Now()
		token = []byte(got.Status.Token)
		renew = now.Add(got.Status.ExpirationTimestamp.Sub(now) * 8 / 10)
		return token, nil
	}
	return n
}
