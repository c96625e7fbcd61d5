package kubelet

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Times of podcertificate/podcertificatemanager.go.
const (
	certRequestLost    = 10 * time.Minute // a request that isn't there by then was deleted
	certOverdue        = 10 * time.Minute // after the time to renew
	certJitter         = 5 * time.Minute
	certRequestTimeout = 10 * time.Second
)

// errNotIssued is the reason why a Pod waits for its first certificate.
var errNotIssued = errors.New("credential bundle is not issued yet")

// podCert is what the node knows of one PodCertificate source of a projected volume (KEP-4317). Only the Pod's worker
// uses it, when it mounts the volume or brings it up to date, so a certificate needs no watch and no timer of its own: the
// back-off of the mount and the minute of volumes are what makes a real kubelet's answer visible, too.
type podCert struct {
	Key       []byte    `json:"key,omitempty"` // PEM
	Chain     []byte    `json:"chain,omitempty"`
	RenewAt   time.Time `json:"renewAt,omitzero"`
	NotAfter  time.Time `json:"notAfter,omitzero"`
	Request   string    `json:"request,omitempty"` // PodCertificateRequest that is waited for
	NextKey   []byte    `json:"nextKey,omitempty"`
	AbandonAt time.Time `json:"abandonAt,omitzero"`
	Refused   string    `json:"refused,omitempty"` // for good
	Overdue   bool      `json:"overdue,omitempty"` // the event has been sent
	Expired   bool      `json:"expired,omitempty"`
}

// certificate returns the PEM of the key and of the chain that a source shows now. It asks for them the first time, and
// anew when it is time. Without a certificate it says what the Pod waits for.
func (m volumeMaker) certificate(ctx context.Context, volume string, index int, s *corev1.PodCertificateProjection) (key, chain []byte, err error) {
	name := fmt.Sprintf("%s/%d", volume, index)
	c := m.certs[name]
	if c == nil {
		c = &podCert{}
		m.certs[name] = c
	}
	ctx, cancel := context.WithTimeout(ctx, certRequestTimeout)
	defer cancel()
	now := m.b.k.clock.Now()
	if c.Refused == "" && c.Request != "" {
		err = m.lookForCertificate(ctx, c, now)
	}
	if c.Refused == "" && c.Request == "" && (c.Chain == nil || !now.Before(c.RenewAt)) {
		m.tellAge(c, now)
		err = m.requestCertificate(ctx, c, s)
	} else if c.Request != "" {
		m.tellAge(c, now)
	}
	switch {
	case c.Refused != "":
		return nil, nil, errors.New(c.Refused)
	case c.Chain != nil:
		if err != nil {
			m.b.log.Warn("certificate can't be renewed", "pod", podName(m.facts.pod), "err", err)
		}
		return c.Key, c.Chain, nil
	case err != nil:
		return nil, nil, err
	}
	return nil, nil, errNotIssued
}

// lookForCertificate takes over what became of the request.
func (m volumeMaker) lookForCertificate(ctx context.Context, c *podCert, now time.Time) error {
	pod := m.facts.pod
	pcr, err := authorized(ctx, func() (*certificatesv1.PodCertificateRequest, error) {
		return m.b.k.cfg.Client.CertificatesV1().PodCertificateRequests(pod.Namespace).Get(ctx, c.Request, metav1.GetOptions{})
	})
	full := pod.Namespace + "/" + c.Request
	if err != nil {
		// The node authorizer knows no more of one that is gone than that it isn't the node's.
		if (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)) && now.After(c.AbandonAt) {
			c.Request, c.NextKey = "", nil
			return fmt.Errorf("PodCertificateRequest %q appears to have been deleted", full)
		}
		return fmt.Errorf("while getting PodCertificateRequest %q: %w", full, err)
	}
	for _, cond := range pcr.Status.Conditions {
		refusal := func(verb, shown string) {
			c.Refused = fmt.Sprintf("PodCertificateRequest was permanently %s: reason=%q message=%q", verb, cond.Reason, cond.Message)
			m.b.podEvent(pod, "", corev1.EventTypeWarning, cond.Type, "PodCertificateRequest %s %s, reason=%q, message=%q", full, shown, cond.Reason, cond.Message)
		}
		switch cond.Type {
		case certificatesv1.PodCertificateRequestConditionTypeDenied:
			refusal("denied", "was denied")
			return nil
		case certificatesv1.PodCertificateRequestConditionTypeFailed:
			refusal("failed", "failed")
			return nil
		case certificatesv1.PodCertificateRequestConditionTypeIssued:
			*c = podCert{Key: c.NextKey, Chain: onlyCertificates(pcr.Status.CertificateChain)}
			if t := pcr.Status.BeginRefreshAt; t != nil {
				c.RenewAt = t.Add(mathrand.N(certJitter))
			}
			if t := pcr.Status.NotAfter; t != nil {
				c.NotAfter = t.Time
			}
			return nil
		}
	}
	return nil
}

// tellAge sends the Events of a certificate whose renewal takes too long, each once.
func (m volumeMaker) tellAge(c *podCert, now time.Time) {
	if c.Chain == nil {
		return
	}
	if now.After(c.RenewAt.Add(certOverdue)) && !c.Overdue {
		c.Overdue = true
		m.b.podEvent(m.facts.pod, "", corev1.EventTypeWarning, "CertificateOverdueForRefresh", "PodCertificate refresh overdue")
	}
	if now.After(c.NotAfter) && !c.Expired {
		c.Expired = true
		m.b.podEvent(m.facts.pod, "", corev1.EventTypeWarning, "CertificateExpired", "PodCertificate expired")
	}
}

// requestCertificate makes a key and asks the signer for a certificate of it.
func (m volumeMaker) requestCertificate(ctx context.Context, c *podCert, s *corev1.PodCertificateProjection) error {
	pod, client := m.facts.pod, m.b.k.cfg.Client
	account, err := authorized(ctx, func() (*corev1.ServiceAccount, error) {
		return client.CoreV1().ServiceAccounts(pod.Namespace).Get(ctx, pod.Spec.ServiceAccountName, metav1.GetOptions{})
	})
	if err != nil {
		return fmt.Errorf("while fetching service account: %w", err)
	}
	key, proof, err := newCertificateKey(s.KeyType)
	if err != nil {
		return fmt.Errorf("while creating initial PodCertificateRequest: %w", err)
	}
	pcr, err := client.CertificatesV1().PodCertificateRequests(pod.Namespace).Create(ctx, &certificatesv1.PodCertificateRequest{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, GenerateName: "req-",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}},
		},
		Spec: certificatesv1.PodCertificateRequestSpec{
			SignerName: s.SignerName, PodName: pod.Name, PodUID: pod.UID,
			ServiceAccountName: pod.Spec.ServiceAccountName, ServiceAccountUID: account.UID,
			NodeName: types.NodeName(m.b.k.cfg.Name), NodeUID: m.b.nodeUID(),
			MaxExpirationSeconds: s.MaxExpirationSeconds, StubPKCS10Request: proof, UnverifiedUserAnnotations: s.UserAnnotations,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("while creating initial PodCertificateRequest: while creating on API: %w", err)
	}
	c.Request, c.NextKey = pcr.Name, key
	c.AbandonAt = pcr.CreationTimestamp.Add(certRequestLost + mathrand.N(certJitter))
	return nil
}

// newCertificateKey makes a key of a type, in PEM, and the request that proves its possession.
func newCertificateKey(kind string) (keyPEM, request []byte, err error) {
	var key crypto.Signer
	switch kind {
	case "RSA3072":
		key, err = rsa.GenerateKey(rand.Reader, 3072)
	case "RSA4096":
		key, err = rsa.GenerateKey(rand.Reader, 4096)
	case "ECDSAP256":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ECDSAP384":
		key, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ECDSAP521":
		key, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "ED25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	default:
		err = fmt.Errorf("unknown key type %q", kind)
	}
	if err != nil {
		return nil, nil, err
	}
	if request, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key); err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), request, nil
}

// onlyCertificates drops what is between the blocks of a chain, and their headers.
func onlyCertificates(chain string) []byte {
	var out bytes.Buffer
	for rest := []byte(chain); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return out.Bytes()
		}
		pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes})
	}
}

// certificateFiles are the files of a source.
func (m volumeMaker) certificateFiles(ctx context.Context, volume string, index int, s *corev1.PodCertificateProjection, p *corev1.ProjectedVolumeSource) (payload, error) {
	key, chain, err := m.certificate(ctx, volume, index, s)
	if err != nil {
		return nil, err
	}
	md := mode(p.DefaultMode)
	out := payload{}
	for name, data := range map[string][]byte{s.CredentialBundlePath: append(bytes.Clone(key), chain...), s.KeyPath: key, s.CertificateChainPath: chain} {
		if name != "" {
			out[name] = m.file(data, md)
		}
	}
	return out, nil
}
