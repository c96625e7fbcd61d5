package localpath

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"
	"k8s.io/utils/ptr"
)

// Annotations of k8s.io/component-helpers/storage/volume and of the original.
const (
	annProvisioner     = "volume.kubernetes.io/storage-provisioner"
	annProvisionerBeta = "volume.beta.kubernetes.io/storage-provisioner"
	annSelectedNode    = "volume.kubernetes.io/selected-node"
	annProvisionedBy   = "pv.kubernetes.io/provisioned-by"
	annNode            = "local.path.provisioner/selected-node"
)

func (p *provisioner) list() ([]*corev1.PersistentVolumeClaim, []*corev1.PersistentVolume) {
	claims, err1 := p.claims.List(labels.Everything())
	volumes, err2 := p.volumes.List(labels.Everything())
	if err := errors.Join(err1, err2); err != nil {
		p.logf("%v", err) // a lister of a cache doesn't fail
	}
	return claims, volumes
}

// wanted says whether a claim waits for this provisioner: the claim controller
// names it once a node is chosen, or at once where the class doesn't wait for that.
func wanted(c *corev1.PersistentVolumeClaim) bool {
	name, ok := c.Annotations[annProvisioner]
	if !ok {
		name = c.Annotations[annProvisionerBeta]
	}
	return name == Name && c.Spec.VolumeName == "" && c.DeletionTimestamp == nil
}

// ours says whether a volume's folder is to go with it.
func ours(v *corev1.PersistentVolume) bool {
	return v.Annotations[annProvisionedBy] == Name && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}

// unwanted says whether a volume is to go.
func unwanted(v *corev1.PersistentVolume) bool {
	return ours(v) && v.Status.Phase == corev1.VolumeReleased && v.DeletionTimestamp == nil
}

// provision makes the folder and the volume of a claim.
func (p *provisioner) provision(ctx context.Context, c *corev1.PersistentVolumeClaim) error {
	class, err := p.client.StorageV1().StorageClasses().Get(ctx, ptr.Deref(c.Spec.StorageClassName, ""), metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("class of claim %s/%s: %w", c.Namespace, c.Name, err)
	}
	node := c.Annotations[annSelectedNode]
	p.events.Eventf(c, corev1.EventTypeNormal, "Provisioning", "External provisioner is provisioning volume for claim \"%s/%s\"", c.Namespace, c.Name)
	pv := volumeFor(c, class, node)
	err = possible(c)
	if err == nil {
		_, err = p.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return p.reschedule(ctx, c, fmt.Errorf("failed to get target node: node %q not found", node))
		}
	}
	if err == nil {
		err = p.onNode(ctx, "create", pv, node)
	}
	if err == nil {
		_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			err = nil
		}
	}
	if err != nil {
		err = fmt.Errorf("failed to provision volume with StorageClass %q: %w", class.Name, err)
		if ctx.Err() == nil {
			p.events.Event(c, corev1.EventTypeWarning, "ProvisioningFailed", err.Error())
		}
		return err
	}
	p.events.Eventf(c, corev1.EventTypeNormal, "ProvisioningSucceeded", "Successfully provisioned volume %s", pv.Name)
	return nil
}

// reschedule has the scheduler choose another node.
func (p *provisioner) reschedule(ctx context.Context, c *corev1.PersistentVolumeClaim, why error) error {
	p.events.Event(c, corev1.EventTypeWarning, "ProvisioningFailed", why.Error())
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, annSelectedNode)
	if _, err := p.client.CoreV1().PersistentVolumeClaims(c.Namespace).Patch(ctx, c.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return errors.Join(why, err)
	}
	return nil
}

// possible refuses what a folder on one node can't be.
func possible(c *corev1.PersistentVolumeClaim) error {
	switch {
	case c.Annotations[annSelectedNode] == "":
		return errors.New("configuration error, no node was specified")
	case c.Spec.Selector != nil:
		return errors.New("claim.Spec.Selector is not supported")
	case ptr.Deref(c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem) == corev1.PersistentVolumeBlock:
		return errors.New("block volume provisioning is not supported")
	case slices.ContainsFunc(c.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return m != corev1.ReadWriteOnce && m != corev1.ReadWriteOncePod
	}):
		return errors.New("NodePath only supports ReadWriteOnce and ReadWriteOncePod (1.22+) access modes")
	}
	return nil
}

// volumeFor is the volume of a claim on a node.
func volumeFor(c *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, node string) *corev1.PersistentVolume {
	name := "pvc-" + string(c.UID)
	ref, err := reference.GetReference(scheme.Scheme, c)
	if err != nil {
		ref = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.Namespace, Name: c.Name, UID: c.UID, ResourceVersion: c.ResourceVersion}
	}
	mode := ptr.Deref(c.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{annNode: node, annProvisionedBy: Name}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: c.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   c.Spec.AccessModes,
			ClaimRef:                      ref,
			PersistentVolumeReclaimPolicy: ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete),
			StorageClassName:              class.Name,
			MountOptions:                  class.MountOptions,
			VolumeMode:                    &mode,
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
				Path: folder + "/" + strings.Join([]string{name, c.Namespace, c.Name}, "_"), Type: ptr.To(corev1.HostPathDirectoryOrCreate),
			}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
	}
}

// remove clears the folder of a volume away and deletes the volume.
func (p *provisioner) remove(ctx context.Context, v *corev1.PersistentVolume) error {
	err := p.clear(ctx, v)
	if err == nil {
		err = p.client.CoreV1().PersistentVolumes().Delete(ctx, v.Name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			err = nil
		}
	}
	if err != nil {
		if ctx.Err() == nil {
			p.events.Event(v, corev1.EventTypeWarning, "VolumeFailedDelete", err.Error())
		}
		return fmt.Errorf("delete volume %s: %w", v.Name, err)
	}
	return nil
}

// clear removes the folder of a volume. With the node the folder is gone already.
func (p *provisioner) clear(ctx context.Context, v *corev1.PersistentVolume) error {
	node := v.Annotations[annNode]
	_, err := p.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err == nil {
		if err := p.onNode(ctx, "delete", v, node); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, lost := p.lost[v.UID]; lost {
		delete(p.lost, v.UID)
	} else {
		p.cleared[v.UID] = true
	}
	return nil
}
