package kubelet

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubistro/internal/clusterhost/pantry/memfs"
	"kubistro/internal/shell"
)

const tokenTimeout = 10 * time.Second

// tokenFile is a projected service account token. It is requested when it is
// first read, and anew when 80 % of its life is over (token/token_manager.go):
// most programs here never read theirs, and signing one for every Pod would
// double the work of starting a cluster.
func (m volumeMaker) tokenFile(p *corev1.ServiceAccountTokenProjection, md fs.FileMode) content {
	pod := m.facts.pod
	b := m.b
	var mu sync.Mutex
	var token []byte
	var renew time.Time
	return content{mode: md, load: func() ([]byte, error) {
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
		var got *authv1.TokenRequest
		var err error
		tried := b.retry(ctx, "token", func(ctx context.Context) error {
			got, err = b.k.cfg.Client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, pod.Spec.ServiceAccountName, req, metav1.CreateOptions{})
			if apierrors.IsForbidden(err) { // the node authorizer hasn't heard of the Pod yet
				return err
			}
			return nil
		})
		if !tried && err == nil {
			err = ctx.Err()
		}
		if err != nil {
			b.log.Warn("token can't be had", "pod", pod.Namespace+"/"+pod.Name, "err", err)
			return nil, err
		}
		now := b.k.clock.Now()
		token = []byte(got.Status.Token)
		renew = now.Add(got.Status.ExpirationTimestamp.Sub(now) * 8 / 10)
		return token, nil
	}}
}

// loaded is a file whose content is made when it is opened.
func loaded(name string, load func() ([]byte, error)) memfs.Device {
	return func(flag int) (shell.File, error) {
		if flag&(os.O_WRONLY|os.O_RDWR) != 0 {
			return nil, syscall.EROFS
		}
		data, err := load()
		if err != nil {
			return nil, syscall.EIO
		}
		return &tokenFile{name: name, Reader: bytes.NewReader(data)}, nil
	}
}

// tokenFile is an open file of fixed content.
type tokenFile struct {
	name string
	*bytes.Reader
}

func (f *tokenFile) Stat() (fs.FileInfo, error) { return f, nil }
func (f *tokenFile) Write([]byte) (int, error)  { return 0, syscall.EROFS }
func (f *tokenFile) Close() error               { return nil }
func (f *tokenFile) Name() string               { return f.name }
func (f *tokenFile) Size() int64                { return f.Reader.Size() }
func (f *tokenFile) Mode() fs.FileMode          { return 0o644 }
func (f *tokenFile) ModTime() time.Time         { return time.Time{} }
func (f *tokenFile) IsDir() bool                { return false }
func (f *tokenFile) Sys() any                   { return nil }
