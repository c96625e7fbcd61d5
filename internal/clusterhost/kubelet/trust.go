package kubelet

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
)

// trustAnchors are the certificates of one ClusterTrustBundle, or of all those of
// a signer that match: clustertrustbundle/clustertrustbundle_manager.go. Their
// order means nothing; the real kubelet shuffles them, here they are sorted.
func (m volumeMaker) trustAnchors(ctx context.Context, s *corev1.ClusterTrustBundleProjection) ([]byte, error) {
	optional := ptr.Deref(s.Optional, false)
	switch {
	case s.Name != nil:
		b, err := m.b.objects.trustBundle(ctx, *s.Name, m.age)
		switch {
		case apierrors.IsNotFound(err) && optional:
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("while getting ClusterTrustBundle: %w", err)
		}
		return normalized([]certificatesv1.ClusterTrustBundle{*b}), nil
	case s.SignerName != nil:
		selector, err := metav1.LabelSelectorAsSelector(s.LabelSelector) // nil: none; empty: all
		if err != nil {
			return nil, fmt.Errorf("while parsing label selector: %w", err)
		}
		var list []certificatesv1.ClusterTrustBundle
		if s.LabelSelector != nil {
			if list, err = m.b.objects.trustBundles(ctx, *s.SignerName, selector.String(), m.age); err != nil {
				return nil, fmt.Errorf("while listing ClusterTrustBundles matching label selector %v: %w", s.LabelSelector, err)
			}
		}
		if len(list) == 0 && !optional {
			return nil, errors.New("combination of signerName and labelSelector matched zero ClusterTrustBundles")
		}
		return normalized(list), nil
	}
	return nil, errors.New("ClusterTrustBundle projection requires either name or signerName to be set")
}

// normalized joins bundles: each certificate once, without comments and headers.
func normalized(list []certificatesv1.ClusterTrustBundle) []byte {
	var anchors [][]byte
	for _, b := range list {
		rest := []byte(b.Spec.TrustBundle)
		for {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
			anchors = append(anchors, block.Bytes)
		}
	}
	slices.SortFunc(anchors, bytes.Compare)
	var out bytes.Buffer
	for _, a := range slices.CompactFunc(anchors, bytes.Equal) {
		pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: a})
	}
	return out.Bytes()
}

// trustBundle gets a ClusterTrustBundle not older than age.
func (c *objectCache) trustBundle(ctx context.Context, name string, age time.Duration) (*certificatesv1.ClusterTrustBundle, error) {
	k := objectKey{"clustertrustbundle", "", name}
	if o, ok := c.lookup(k, age); ok {
		return &o.bundles[0], nil
	}
	b, err := c.client.CertificatesV1().ClusterTrustBundles().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	c.store(k, cachedObject{bundles: []certificatesv1.ClusterTrustBundle{*b}})
	return b, nil
}

// trustBundles lists a signer's ClusterTrustBundles as trustBundle gets one.
func (c *objectCache) trustBundles(ctx context.Context, signer, selector string, age time.Duration) ([]certificatesv1.ClusterTrustBundle, error) {
	k := objectKey{"clustertrustbundles", signer, selector}
	if o, ok := c.lookup(k, age); ok {
		return o.bundles, nil
	}
	list, err := c.client.CertificatesV1().ClusterTrustBundles().List(ctx, metav1.ListOptions{
		LabelSelector: selector, FieldSelector: fields.OneTermEqualSelector("spec.signerName", signer).String(),
	})
	if err != nil {
		return nil, err
	}
	c.store(k, cachedObject{bundles: list.Items})
	return list.Items, nil
}
