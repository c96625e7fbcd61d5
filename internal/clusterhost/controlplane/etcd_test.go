package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFullDatabase: with the quota used up, reads and deletes go on, and after
// space was freed writes do too.
func TestFullDatabase(t *testing.T) {
	maps := shared.client.CoreV1().ConfigMaps("default")
	block := strings.Repeat("soup ", 200_000) // 1 MB
	list := metav1.ListOptions{LabelSelector: "full=yes"}
	t.Cleanup(func() { maps.DeleteCollection(context.Background(), metav1.DeleteOptions{}, list) })
	full := false
	for i := 0; i < 200 && !full; i++ {
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("full-%d", i), Labels: map[string]string{"full": "yes"}},
			Data:       map[string]string{"block": block},
		}, metav1.CreateOptions{})
		full = err != nil && strings.Contains(err.Error(), "database space exceeded")
	}
	if !full {
		t.Fatal("200 MB fit into a quota of 64 MB")
	}
	got, err := maps.Get(t.Context(), "full-0", metav1.GetOptions{})
	if err != nil || len(got.Data["block"]) != len(block) {
		t.Errorf("read from a full database: %v", err)
	}
	if err := maps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, list); err != nil {
		t.Fatalf("delete from a full database: %v", err)
	}
	if err := shared.etcd.maintainOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	ok := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "full-after", Labels: map[string]string{"full": "yes"}}}
	if err := retry(t.Context(), func() error {
		_, err := maps.Create(t.Context(), ok, metav1.CreateOptions{})
		return errors.Join(err, shared.etcd.maintainOnce(t.Context()))
	}); err != nil {
		t.Errorf("write after space was freed: %v", err)
	}
	if size := shared.etcd.size(); size > shared.etcd.quota*7/10 {
		t.Errorf("the emptied database still takes %d bytes", size)
	}
}
