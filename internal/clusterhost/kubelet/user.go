package kubelet

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"kubistro/internal/clusterhost/pantry"
	"kubistro/internal/shell"
)

// effectiveUser is whom a container's processes run as: its own security context, else the
// Pod's, else the image's user (kuberuntime/security_context.go,
// securitycontext.DetermineEffectiveSecurityContext).
func effectiveUser(pod *corev1.Pod, c *corev1.Container, imageUser int64) shell.User {
	u := shell.User{UID: imageUser}
	if sc := pod.Spec.SecurityContext; sc != nil {
		u.UID, u.GID = ptr.Deref(sc.RunAsUser, u.UID), ptr.Deref(sc.RunAsGroup, 0)
		if sc.FSGroup != nil {
			u.Groups = append(u.Groups, *sc.FSGroup)
		}
		u.Groups = append(u.Groups, sc.SupplementalGroups...)
	}
	if sc := c.SecurityContext; sc != nil {
		u.UID, u.GID = ptr.Deref(sc.RunAsUser, u.UID), ptr.Deref(sc.RunAsGroup, u.GID)
	}
	return u
}

// mustNotBeRoot follows kuberuntime/security_context.go, verifyRunAsNonRoot.
func (w *worker) mustNotBeRoot(c *corev1.Container, img *pantry.Image) bool {
	non := false
	if sc := w.pod.Spec.SecurityContext; sc != nil {
		non = ptr.Deref(sc.RunAsNonRoot, false)
	}
	if sc := c.SecurityContext; sc != nil {
		non = ptr.Deref(sc.RunAsNonRoot, non)
	}
	return non && effectiveUser(w.pod, c, img.User).UID == 0
}

// containerUser shows the user in the status.
func containerUser(pod *corev1.Pod, c *corev1.Container, imageUser int64) *corev1.ContainerUser {
	u := effectiveUser(pod, c, imageUser)
	groups := []int64{u.GID}
	for _, g := range u.Groups {
		if !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	return &corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{UID: u.UID, GID: u.GID, SupplementalGroups: groups}}
}
