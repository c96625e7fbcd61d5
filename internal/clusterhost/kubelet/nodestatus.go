package kubelet

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newBootID is the kernel's boot_id of this boot.
func newBootID() string {
	var b [16]byte
	rand.Read(b[:])
	return uuidOf(b[:])
}

func uuidOf(b []byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}

func olderVersion(a, b string) bool {
	x, err1 := strconv.ParseUint(a, 10, 64)
	y, err2 := strconv.ParseUint(b, 10, 64)
	return err1 == nil && err2 == nil && x < y
}

// pressures are the words for the node's pressure conditions: nodestatus/setters.go.
var pressures = []struct {
	condition                                         corev1.NodeConditionType
	good, goodText, goodEvent, bad, badText, badEvent string
}{
	{corev1.NodeMemoryPressure, "HasSufficientMemory", "has sufficient memory available", "NodeHasSufficientMemory",
		"HasInsufficientMemory", "has insufficient memory available", "NodeHasInsufficientMemory"},
	{corev1.NodeDiskPressure, "HasNoDiskPressure", "has no disk pressure", "NodeHasNoDiskPressure",
		"HasDiskPressure", "has disk pressure", "NodeHasDiskPressure"},
	{corev1.NodePIDPressure, "HasSufficientPID", "has sufficient PID available", "NodeHasSufficientPID",
		"HasInsufficientPID", "has insufficient PID available", "NodeHasInsufficientPID"},
}

// nodeStatus makes the node's status from the one before: nodestatus/setters.go.
// Changes of conditions that the kubelet tells as Events are added to events.
func (b *boot) nodeStatus(n *corev1.Node, now time.Time, events *[]string) corev1.NodeStatus {
	s := *n.Status.DeepCopy()
	cfg := b.k.cfg
	s.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: cfg.IP.String()},
		{Type: corev1.NodeHostName, Address: cfg.Name},
	}
	s.Capacity, s.Allocatable = cfg.Capacity.DeepCopy(), cfg.Allocatable.DeepCopy()
	s.DaemonEndpoints.KubeletEndpoint.Port = kubeletPort
	machine := sha256.Sum256([]byte("kubistro machine " + cfg.Name))
	if s.NodeInfo.BootID != "" && s.NodeInfo.BootID != b.id && events != nil {
		b.rebooted.Do(func() {
			b.nodeEvent(corev1.EventTypeWarning, "Rebooted", fmt.Sprintf("Node %s has been rebooted, boot id: %s", cfg.Name, b.id))
		})
	}
	bootID := b.id
	if events == nil && s.NodeInfo.BootID != "" {
		bootID = s.NodeInfo.BootID
	}
	s.NodeInfo = corev1.NodeSystemInfo{
		MachineID: fmt.Sprintf("%x", machine[:16]), SystemUUID: uuidOf(machine[16:]), BootID: bootID,
		KernelVersion: "simulated", OSImage: osImage, ContainerRuntimeVersion: runtimeVersion,
		KubeletVersion: kubeletVersion, OperatingSystem: "linux", Architecture: runtime.GOARCH,
	}
	s.Images = b.k.images.list()
	set := func(t corev1.NodeConditionType, ok bool, good corev1.ConditionStatus, reason, message, event string) {
		status := good
		if !ok {
			status = map[corev1.ConditionStatus]corev1.ConditionStatus{corev1.ConditionTrue: corev1.ConditionFalse, corev1.ConditionFalse: corev1.ConditionTrue}[good]
		}
		c := corev1.NodeCondition{Type: t, Status: status, Reason: reason, Message: message,
			LastHeartbeatTime: metav1.NewTime(now).Rfc3339Copy(), LastTransitionTime: metav1.NewTime(now).Rfc3339Copy()}
		for i := range s.Conditions {
			if s.Conditions[i].Type != t {
				continue
			}
			if s.Conditions[i].Status == status {
				c.LastTransitionTime = s.Conditions[i].LastTransitionTime
			} else if events != nil {
				*events = append(*events, event)
			}
			s.Conditions[i] = c
			return
		}
		s.Conditions = append(s.Conditions, c)
	}
	under := b.evictor.conditions()
	for _, p := range pressures {
		if slices.Contains(under, p.condition) {
			set(p.condition, false, corev1.ConditionFalse, "Kubelet"+p.bad, "kubelet "+p.badText, p.badEvent)
		} else {
			set(p.condition, true, corev1.ConditionFalse, "Kubelet"+p.good, "kubelet "+p.goodText, p.goodEvent)
		}
	}
	if b.addresses.known() {
		set(corev1.NodeReady, true, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status", "NodeReady")
	} else {
		set(corev1.NodeReady, false, corev1.ConditionTrue, "KubeletNotReady", networkNotReady, "NodeNotReady")
	}
	return s
}
