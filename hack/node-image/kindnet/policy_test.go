package main

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

const here = "172.18.0.2"

func pod(namespace, app, ip, host string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: app, Labels: map[string]string{"app": app}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}}}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, HostIP: host},
	}
}

// restaurant has a counter and a grill in front, a grill behind, and a Pod that ended.
func restaurant(t *testing.T, specs ...string) *world {
	t.Helper()
	w := &world{
		namespaces: map[string]labels.Set{"front": {"zone": "open"}, "back": {"zone": "staff"}},
		pods: []*corev1.Pod{
			pod("front", "counter", "10.244.0.5", here), pod("front", "grill", "10.244.1.6", "172.18.0.3"),
			pod("back", "grill", "10.244.0.7", here), pod("front", "done", "10.244.0.8", here), pod("front", "host", here, here),
		},
	}
	w.pods[3].Status.Phase = corev1.PodSucceeded
	w.pods[4].Spec.HostNetwork = true
	for _, s := range specs {
		p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "front"}}
		if err := yaml.UnmarshalStrict([]byte(s), &p.Spec); err != nil {
			t.Fatal(err)
		}
		w.policies = append(w.policies, p)
	}
	return w
}

const (
	head = "table ip kindnet-policies\ndelete table ip kindnet-policies\ntable ip kindnet-policies {\n"
	est  = "\t\tct state established,related accept\n"
)

func hooks(forward, input string) string {
	return "\tchain forward {\n\t\ttype filter hook forward priority filter;\n" + est + forward + "\t}\n" +
		"\tchain input {\n\t\ttype filter hook input priority filter;\n" + est + input + "\t}\n}\n"
}

func TestRuleset(t *testing.T) {
	const (
		jumpIn  = "\t\tip daddr vmap { 10.244.0.5 : jump ingress-10.244.0.5 }\n"
		jumpOut = "\t\tip saddr vmap { 10.244.0.5 : jump egress-10.244.0.5 }\n"
		selfIn  = "\t\tip saddr { 10.244.0.5 } return\n"
		selfOut = "\t\tip daddr { 10.244.0.5 } return\n"
	)
	in := func(rules string) string {
		return head + "\tchain ingress-10.244.0.5 {\n" + selfIn + rules + "\t\tdrop\n\t}\n" + hooks(jumpIn, "")
	}
	out := func(rules string) string {
		return head + "\tchain egress-10.244.0.5 {\n" + selfOut + rules + "\t\tdrop\n\t}\n" + hooks(jumpOut, jumpOut)
	}
	for name, c := range map[string]struct {
		specs []string
		want  string
	}{
		"no policy":                      {nil, head + hooks("", "")},
		"a policy for Pods elsewhere":    {[]string{`{podSelector: {matchLabels: {app: grill}}, policyTypes: [Ingress]}`}, head + hooks("", "")},
		"nothing may come in":            {[]string{`{podSelector: {}, policyTypes: [Ingress]}`}, in("")},
		"all may come in":                {[]string{`{podSelector: {}, policyTypes: [Ingress], ingress: [{}]}`}, in("\t\treturn\n")},
		"Pods of the same namespace":     {[]string{`{podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{podSelector: {matchLabels: {app: grill}}}]}]}`}, in("\t\tip saddr { 10.244.1.6 } return\n")},
		"Pods of another namespace":      {[]string{`{podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {matchLabels: {zone: staff}}}]}]}`}, in("\t\tip saddr { 10.244.0.7 } return\n")},
		"both selectors, matching none":  {[]string{`{podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {matchLabels: {zone: staff}}, podSelector: {matchLabels: {app: counter}}}]}]}`}, in("")},
		"a named port of the Pod":        {[]string{`{podSelector: {}, policyTypes: [Ingress], ingress: [{ports: [{port: web}]}]}`}, in("\t\ttcp dport 8080 return\n")},
		"a named port it hasn't":         {[]string{`{podSelector: {}, policyTypes: [Ingress], ingress: [{ports: [{port: db}]}]}`}, in("")},
		"two policies add up":            {[]string{`{podSelector: {}, policyTypes: [Ingress], ingress: [{ports: [{port: 80}]}]}`, `{podSelector: {}, policyTypes: [Ingress], ingress: [{ports: [{port: 53, protocol: UDP}]}]}`}, in("\t\ttcp dport 80 return\n\t\tudp dport 53 return\n")},
		"egress to a range of ports":     {[]string{`{podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: 8000, endPort: 9000}, {protocol: SCTP}]}]}`}, out("\t\tsctp dport 0-65535 return\n\t\ttcp dport 8000-9000 return\n")},
		"egress to a block with a hole":  {[]string{`{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}]}]}`}, out("\t\tip daddr { 10.0.0.0/8 } ip daddr != { 10.1.0.0/16 } return\n")},
		"everything but a block":         {[]string{`{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 0.0.0.0/0, except: [10.0.0.0/8]}}]}]}`}, out("\t\tip daddr != { 10.0.0.0/8 } return\n")},
		"egress to a named port":         {[]string{`{podSelector: {}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchLabels: {app: grill}}}], ports: [{port: web}]}]}`}, out("\t\tip daddr { 10.244.1.6 } tcp dport 8080 return\n")},
		"overlapping peers in one rule":  {[]string{`{podSelector: {}, policyTypes: [Egress], egress: [{to: [{podSelector: {}}, {podSelector: {matchLabels: {app: grill}}}]}]}`}, out("\t\tip daddr { 10.244.0.5, 10.244.1.6 } return\n")},
		"an IPv6 block means nobody":     {[]string{`{podSelector: {}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: "fd00::/8"}}]}]}`}, out("")},
		"numbers and names in one rule":  {[]string{`{podSelector: {}, policyTypes: [Egress], egress: [{to: [{podSelector: {matchLabels: {app: grill}}}], ports: [{port: 53, protocol: UDP}, {port: web}]}]}`}, out("\t\tip daddr { 10.244.1.6 } udp dport 53 return\n\t\tip daddr { 10.244.1.6 } tcp dport 8080 return\n")},
		"only names, and no Pod has one": {[]string{`{podSelector: {}, policyTypes: [Egress], egress: [{ports: [{port: db}]}]}`}, out("")},
	} {
		t.Run(name, func(t *testing.T) {
			got := ruleset(restaurant(t, c.specs...).isolations(netip.MustParseAddr(here)))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	n := &corev1.Node{
		Spec:   corev1.NodeSpec{PodCIDR: "10.244.3.0/24"},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "x"}, {Type: corev1.NodeInternalIP, Address: here}}},
	}
	node, pods, ok := addresses(n)
	if !ok || node.String() != here || pods.String() != "10.244.3.0/24" {
		t.Errorf("got %v %v %v", node, pods, ok)
	}
	n.Spec.PodCIDR = ""
	if _, _, ok := addresses(n); ok {
		t.Error("a node without a range of Pods was taken")
	}
}
