package clusterautoscaler

import (
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func node(name, zone string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone}},
		Spec:       corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("2Gi"), corev1.ResourcePods: resource.MustParse("3"),
		}},
	}
}

func pod(cpu string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: map[string]string{"app": "soup"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
		}}}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

var soup = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "soup"}}

func apart(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: soup}}}}
	}
}

func together(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelTopologyZone, LabelSelector: soup}}}}
}

func spread(p *corev1.Pod) {
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: soup}}
}

func TestWrong(t *testing.T) {
	hostPort := func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }
	selecting := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "b"} }
	tainted := node("a", "a", corev1.Taint{Key: "x", Effect: corev1.TaintEffectNoSchedule})
	soft := node("a", "a", corev1.Taint{Key: "x", Effect: corev1.TaintEffectPreferNoSchedule})
	cordoned := node("a", "a")
	cordoned.Spec.Unschedulable = true
	for name, c := range map[string]struct {
		node  *corev1.Node
		there []*corev1.Pod // on the node
		other []*corev1.Pod // on another node, in zone b
		pod   *corev1.Pod
		want  string
	}{
		"room":                {node: node("a", "a"), pod: pod("2")},
		"CPU":                 {node: node("a", "a"), there: []*corev1.Pod{pod("1500m")}, pod: pod("1"), want: "Insufficient cpu"},
		"number of Pods":      {node: node("a", "a"), there: []*corev1.Pod{pod("0"), pod("0"), pod("0")}, pod: pod("0"), want: "Too many pods"},
		"taint":               {node: tainted, pod: pod("1"), want: "node(s) had untolerated taint(s)"},
		"tolerated taint":     {node: tainted, pod: pod("1", func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} })},
		"preference":          {node: soft, pod: pod("1")},
		"cordoned":            {node: cordoned, pod: pod("1"), want: "node(s) were unschedulable"},
		"selector":            {node: node("a", "a"), pod: pod("1", selecting), want: "node(s) didn't match Pod's node affinity/selector"},
		"host port":           {node: node("a", "a"), there: []*corev1.Pod{pod("0", hostPort)}, pod: pod("0", hostPort), want: "node(s) didn't have free ports for the requested pod ports"},
		"apart, taken":        {node: node("a", "a"), there: []*corev1.Pod{pod("0")}, pod: pod("0", apart(corev1.LabelHostname)), want: "node(s) didn't match pod anti-affinity rules"},
		"apart, of who is in": {node: node("a", "a"), there: []*corev1.Pod{pod("0", apart(corev1.LabelHostname))}, pod: pod("0"), want: "node(s) didn't satisfy existing pods anti-affinity rules"},
		"apart, elsewhere":    {node: node("a", "a"), other: []*corev1.Pod{pod("0")}, pod: pod("0", apart(corev1.LabelHostname))},
		"together, first":     {node: node("a", "a"), pod: pod("0", together)},
		"together, elsewhere": {node: node("a", "a"), other: []*corev1.Pod{pod("0")}, pod: pod("0", together), want: "node(s) didn't match pod affinity rules"},
		"together, here":      {node: node("a", "a"), there: []*corev1.Pod{pod("0")}, pod: pod("0", together)},
		"spread, too many":    {node: node("a", "a"), there: []*corev1.Pod{pod("0")}, pod: pod("0", spread), want: "node(s) didn't match pod topology spread constraints"},
		"spread, even":        {node: node("a", "a"), there: []*corev1.Pod{pod("0")}, other: []*corev1.Pod{pod("0")}, pod: pod("0", spread)},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(c.node, c.there)
			w := world{places: []*place{p, newPlace(node("b", "b"), c.other)}}
			if got := w.wrong(c.pod, p); got != c.want {
				t.Errorf("%q, not %q", got, c.want)
			}
		})
	}
}

func TestFlags(t *testing.T) {
	file := func(string) ([]byte, error) {
		return []byte("nodeGroups: [{name: small, instanceType: t3.small, minSize: 1, maxSize: 2}, {name: big, instanceType: r7i.xlarge, maxSize: 1}]"), nil
	}
	for name, c := range map[string]struct {
		args   string
		groups []string // name, type and sizes
		want   string   // part of the error
	}{
		"of a tutorial":  {args: "--v=4 --stderrthreshold=info --cloud-provider=aws --skip-nodes-with-local-storage=false --expander=least-waste --nodes=1:10:m7i.large", groups: []string{"m7i.large m7i.large 1 10"}},
		"of the file":    {args: "--cloud-config=f", groups: []string{"small t3.small 1 2", "big r7i.xlarge 0 1"}},
		"sizes by flag":  {args: "--cloud-config=f --nodes=0:7:small", groups: []string{"small t3.small 0 7"}},
		"unknown type":   {args: "--nodes=1:2:k8s-worker-asg-1", want: `there is no instance type "k8s-worker-asg-1"`},
		"wrong sizes":    {args: "--nodes=3:2:m7i.large", want: "sizes 3 to 2"},
		"no spec":        {args: "--nodes=m7i.large", want: "MIN:MAX:GROUP"},
		"named twice":    {args: "--nodes=0:1:m7i.large --nodes=0:2:m7i.large", want: "its name is taken"},
		"wrong expander": {args: "--expander=magic", want: "expander magic not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := parse(strings.Fields(c.args), io.Discard, file, nil)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, not %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, g := range o.groups {
				got = append(got, fmt.Sprint(g.Name, " ", g.typ.Name, " ", g.MinSize, " ", g.MaxSize))
			}
			if strings.Join(got, "\n") != strings.Join(c.groups, "\n") {
				t.Errorf("groups %q, not %q", got, c.groups)
			}
		})
	}
}
