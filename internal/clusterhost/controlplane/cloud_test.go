package controlplane

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"kubistro/internal/clusterhost/cloud"
)

// A Pod's way to the cloud: HTTP in the virtual network.
func TestCloud(t *testing.T) {
	c := cloud.NewClient(cloud.Endpoint, shared.street.DialContext)
	defer c.Close()
	types, err := c.InstanceTypes(t.Context())
	if err != nil || len(types) != len(cloud.Catalogue()) {
		t.Fatalf("%d types, %v", len(types), err)
	}
	order := cloud.LaunchRequest{Type: "t3.small", Zone: cloud.Zones[0], Token: "one", Labels: map[string]string{"team": "soup"}, Taints: []string{"x=y:NoSchedule"}}
	i, err := c.Launch(t.Context(), order)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Terminate(context.Background(), i.ID)
	if again, err := c.Launch(t.Context(), order); err != nil || again.ID != i.ID {
		t.Errorf("the same order gives %s and %s, %v", i.ID, again.ID, err)
	}
	<-shared.nodes.get(i.Node).Ready()
	n, err := shared.client.CoreV1().Nodes().Get(t.Context(), i.Node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n.Spec.ProviderID != i.ProviderID() || n.Labels["team"] != "soup" || n.Labels["node.kubernetes.io/instance-type"] != "t3.small" || n.Status.Capacity.Memory().String() != "2Gi" {
		t.Errorf("%s %v %v", n.Spec.ProviderID, n.Labels, n.Status.Capacity)
	}
	if c := n.Status.Capacity; c.Pods().Value() != cloud.MaxPods || c.StorageEphemeral().Value() != cloud.DiskMiB<<20 {
		t.Errorf("the contractors reckon with another machine: %v", c)
	}
	for what, wrong := range map[string]cloud.LaunchRequest{
		"type": {Type: "m7i.huge", Zone: cloud.Zones[0]}, "zone": {Type: "t3.small", Zone: "kitchen"},
		"label": {Type: "t3.small", Zone: cloud.Zones[0], Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}},
		"taint": {Type: "t3.small", Zone: cloud.Zones[0], Taints: []string{"nonsense"}},
	} {
		if _, err := c.Launch(t.Context(), wrong); err == nil || cloud.IsLimit(err) {
			t.Errorf("an order with a wrong %s: %v", what, err)
		}
	}
	if err := c.Terminate(t.Context(), "i-0"); !cloud.IsNotFound(err) {
		t.Errorf("an unknown machine: %v", err)
	}
	if err := c.Terminate(t.Context(), i.ID); err != nil {
		t.Fatal(err)
	}
	if all, err := c.Instances(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%d machines are left, %v", len(all), err)
	}
}

// However many are ordered, there are no more than the quota allows.
func TestCloudQuota(t *testing.T) {
	m := cloudMachines{shared.Host}
	t.Cleanup(func() {
		for _, i := range m.Instances() {
			if err := m.Terminate(context.Background(), i.ID); err != nil {
				t.Error(err)
			}
		}
	})
	for n := 0; ; n++ {
		_, err := m.Launch(t.Context(), cloud.LaunchRequest{Type: "t3.small", Zone: cloud.Zones[n%3], CapacityType: cloud.Spot, Token: fmt.Sprint("n", n)})
		if cloud.IsLimit(err) && n == cloud.MaxInstances {
			return
		}
		if err != nil || n > cloud.MaxInstances {
			t.Fatalf("machine %d: %v", n, err)
		}
	}
}
