package kind

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestLastWordsAreOfWhoEndsAgainAndAgain(t *testing.T) {
	pod := func(name string, ready bool, restarts int32) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceSystem},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "c", Ready: ready, RestartCount: restarts}}}}
	}
	sound := fake.NewClientset(pod("well", true, 4), pod("young", false, 1))
	if got := lastWords(t.Context(), sound); got != "" {
		t.Errorf("nobody ends again and again, and yet %q", got)
	}
	sick := fake.NewClientset(pod("well", true, 4), pod("kube-proxy-x", false, 5))
	if got := lastWords(t.Context(), sick); !strings.Contains(got, "Pod kube-proxy-x said") || !strings.Contains(got, "fake logs") {
		t.Errorf("last words: %q", got)
	}
}
