package kubelet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

const mebi = 1 << 20

// hungry is a Pod with a container c that uses so much memory.
func hungry(name, request string, use int64, priority int32) podStats {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Priority: ptr.To(priority), Containers: []corev1.Container{{Name: "c"}}}}
	if request != "" {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(request)}
	}
	return podStats{pod: p, memory: use, containers: []containerStats{{name: "c", memory: use}}}
}

func newEvictor() (*evictor, *testclock.FakeClock) {
	fake := testclock.NewFakeClock(noon)
	return &evictor{seen: map[corev1.NodeConditionType]time.Time{}, now: fake.Now}, fake
}

func TestMemoryEvictionOrder(t *testing.T) {
	e, _ := newEvictor()
	low := map[evictionSignal]observation{memoryAvailable: {90 * mebi, 2048 * mebi}}
	pods := []podStats{
		hungry("within its request", "800Mi", 700*mebi, 0),
		hungry("a little over", "100Mi", 150*mebi, 0),
		hungry("far over", "100Mi", 400*mebi, 0),
		hungry("besteffort", "", 300*mebi, 0),
		hungry("important, far over", "100Mi", 600*mebi, 1000),
		hungry("critical", "", 900*mebi, 2_000_000_000),
	}
	var got []string
	for len(pods) > 0 {
		starved, out := e.synchronize(low, pods)
		if starved != corev1.ResourceMemory {
			t.Fatalf("starved of %q", starved)
		}
		if len(out) == 0 {
			break
		}
		v := out[0]
		got = append(got, v.pod.Name)
		for i := range pods {
			if pods[i].pod == v.pod {
				pods = append(pods[:i:i], pods[i+1:]...)
				break
			}
		}
		if v.pod.Name == "far over" {
			want := "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. Container c was using 400Mi, request is 100Mi, has larger consumption of memory. "
			if v.message != want || !v.disruption || v.annotations["offending_containers"] != "c" {
				t.Errorf("%q %v", v.message, v.annotations)
			}
		}
	}
	want := []string{"far over", "besteffort", "a little over", "important, far over", "within its request"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got)\n%s", diff)
	}
}

func TestPressureStaysForAWhile(t *testing.T) {
	e, clock := newEvictor()
	besteffort, burstable := hungry("p", "", 0, 0).pod, hungry("p", "10Mi", 0, 0).pod
	if got := e.refuses(besteffort); got != "" {
		t.Errorf("without pressure: %q", got)
	}
	e.synchronize(map[evictionSignal]observation{memoryAvailable: {1, 2048 * mebi}}, nil)
	fine := map[evictionSignal]observation{memoryAvailable: {1000 * mebi, 2048 * mebi}, pidAvailable: {900, 1024}}
	clock.Step(pressureTransition - time.Second)
	if starved, out := e.synchronize(fine, []podStats{hungry("p", "", 1, 0)}); starved != "" || len(out) > 0 {
		t.Errorf("enough memory, but %q and %v", starved, out)
	}
	if got := e.refuses(besteffort); got != "The node had condition: [MemoryPressure]. " {
		t.Errorf("a BestEffort Pod under pressure: %q", got)
	}
	if got := e.refuses(burstable); got != "" {
		t.Errorf("a Burstable Pod under memory pressure: %q", got)
	}
	besteffort.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeMemoryPressure, Operator: corev1.TolerationOpExists}}
	if got := e.refuses(besteffort); got != "" {
		t.Errorf("a BestEffort Pod that tolerates it: %q", got)
	}
	clock.Step(2 * time.Second)
	if got := e.conditions(); len(got) != 0 {
		t.Errorf("after the transition period: %v", got)
	}
	e.synchronize(map[evictionSignal]observation{pidAvailable: {100, 1024}}, nil)
	if got := e.refuses(burstable); got != "The node had condition: [PIDPressure]. " {
		t.Errorf("any Pod under pid pressure: %q", got)
	}
}

func TestLocalStorageLimits(t *testing.T) {
	limited := func(volumeLimit string, limits corev1.ResourceList, medium corev1.StorageMedium) *corev1.Pod {
		p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Limits: limits}}, {Name: "d"}}}}
		if volumeLimit != "" {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: ptr.To(resource.MustParse(volumeLimit)), Medium: medium}}}}
		}
		return p
	}
	ten := corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("10Mi")}
	for name, tc := range map[string]struct {
		p    podStats
		want string
	}{
		"volume":          {podStats{pod: limited("5Mi", nil, ""), emptyDirs: map[string]int64{"v": 6 * mebi}}, `Usage of EmptyDir volume "v" exceeds the limit "5Mi". `},
		"volume has room": {podStats{pod: limited("5Mi", nil, ""), emptyDirs: map[string]int64{"v": 5 * mebi}}, ""},
		"tmpfs":           {podStats{pod: limited("5Mi", nil, corev1.StorageMediumMemory), emptyDirs: map[string]int64{"v": 6 * mebi}}, ""},
		"pod":             {podStats{pod: limited("", ten, ""), disk: 11 * mebi}, "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. "},
		"container":       {podStats{pod: limited("", ten, ""), disk: 9 * mebi, containers: []containerStats{{name: "c", disk: 11 * mebi}}}, `Container c exceeded its local ephemeral storage limit "10Mi". `},
		"other container": {podStats{pod: limited("", ten, ""), disk: 9 * mebi, containers: []containerStats{{name: "d", disk: 11 * mebi}}}, ""},
	} {
		if got := localLimit(tc.p); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		e, _ := newEvictor()
		if _, out := e.synchronize(nil, []podStats{tc.p}); (len(out) == 1) != (tc.want != "") {
			t.Errorf("%s: %v", name, out)
		}
	}
}

func TestOOMScores(t *testing.T) {
	const capacity = 2000 * mebi
	p := hungry("p", "200Mi", 0, 0).pod
	if got := oomScoreAdjust(p, &p.Spec.Containers[0], capacity); got != 900 {
		t.Errorf("a tenth of the node requested: %d", got)
	}
	p = hungry("p", "1Ki", 0, 0).pod
	if got := oomScoreAdjust(p, &p.Spec.Containers[0], capacity); got != 999 {
		t.Errorf("next to nothing requested: %d", got)
	}
	p = hungry("p", "", 0, 0).pod
	if got := oomScoreAdjust(p, &p.Spec.Containers[0], capacity); got != 1000 {
		t.Errorf("BestEffort: %d", got)
	}
}
