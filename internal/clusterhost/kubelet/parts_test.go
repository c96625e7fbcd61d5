package kubelet

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
)

func TestBackoffSeries(t *testing.T) {
	clock := testclock.NewFakeClock(noon)
	limits := (&Kubelet{}).restartBackoff()
	var b backoff
	var got []string
	for range 8 {
		ended := clock.Now()
		if until, wait := b.since(ended, clock.Now(), limits); wait {
			got = append(got, until.Sub(ended).String())
			clock.SetTime(until)
		} else {
			got = append(got, "at once")
		}
		b.next(ended, clock.Now(), limits)
	}
	want := []string{"at once", "10s", "20s", "40s", "1m20s", "2m40s", "5m0s", "5m0s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("waits (-want +got)\n%s", diff)
	}
	clock.Step(10*time.Minute + time.Second)
	if _, wait := b.since(clock.Now(), clock.Now(), limits); wait {
		t.Error("ten quiet minutes are not forgotten")
	}
	b.next(clock.Now(), clock.Now(), limits)
	if b.Delay != limits.first {
		t.Errorf("after ten quiet minutes the next wait is %v, want %v", b.Delay, limits.first)
	}
}

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "1", "B": "two words"}
	lookup := func(n string) (string, bool) { v, ok := env[n]; return v, ok }
	for in, want := range map[string]string{
		"x":             "x",
		"$(A)":          "1",
		"a$(A)b$(B)c":   "a1btwo wordsc",
		"$(MISSING)":    "$(MISSING)",
		"$$(A)":         "$(A)",
		"$A $ $( $(A":   "$A $ $( $(A",
		"$$$(A)":        "$1",
		"http://$(A):$": "http://1:$",
	} {
		if got := expand(in, lookup); got != want {
			t.Errorf("expand(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestServiceEnv(t *testing.T) {
	service := func(ns, name, ip string, ports ...corev1.ServicePort) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: ports}}
	}
	all := []*corev1.Service{
		service("default", "kubernetes", "10.96.0.1", corev1.ServicePort{Name: "https", Port: 443, Protocol: "TCP"}),
		service("shop", "grill-station", "10.96.0.7", corev1.ServicePort{Port: 80, Protocol: "TCP"}),
		service("shop", "headless", "None", corev1.ServicePort{Port: 80}),
		service("other", "far", "10.96.0.9", corev1.ServicePort{Port: 80}),
	}
	got := serviceEnv(all, "shop", true)
	for name, want := range map[string]string{
		"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT_HTTPS": "443", "KUBERNETES_PORT_443_TCP_ADDR": "10.96.0.1",
		"GRILL_STATION_SERVICE_HOST": "10.96.0.7", "GRILL_STATION_PORT": "tcp://10.96.0.7:80", "GRILL_STATION_PORT_80_TCP_PROTO": "tcp",
		"HEADLESS_SERVICE_HOST": "", "FAR_SERVICE_HOST": "",
	} {
		if got[name] != want {
			t.Errorf("%s = %q, want %q", name, got[name], want)
		}
	}
	if got := serviceEnv(all, "shop", false); got["GRILL_STATION_SERVICE_HOST"] != "" || got["KUBERNETES_SERVICE_HOST"] == "" {
		t.Errorf("without links: %v", got)
	}
}

func TestDownwardAPI(t *testing.T) {
	pod := testPod(corev1.RestartPolicyAlways, nil, "web")
	pod.Labels = map[string]string{"b": "2", "a": "1"}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("250m")}
	f := podFacts{pod: pod, podIP: "10.244.1.7", hostIP: "172.18.0.3", allocatable: corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("2Gi")}}
	for path, want := range map[string]string{
		"metadata.name": "grill", "status.podIP": "10.244.1.7", "metadata.labels['a']": "1", "metadata.labels": "a=\"1\"\nb=\"2\"",
	} {
		if got, err := f.field(path); err != nil || got != want {
			t.Errorf("%s = %q, %v; want %q", path, got, err, want)
		}
	}
	if _, err := f.field("spec.hostNetwork"); err == nil {
		t.Error("an unsupported field gives no error")
	}
	for _, tt := range []struct{ resource, divisor, want string }{
		{"requests.cpu", "1", "1"}, {"requests.cpu", "1m", "250"}, {"limits.cpu", "1", "2"}, {"limits.memory", "1Mi", "2048"}, {"requests.memory", "1", "0"},
	} {
		got, err := f.resource(&corev1.ResourceFieldSelector{Resource: tt.resource, Divisor: resource.MustParse(tt.divisor)}, &pod.Spec.Containers[0])
		if err != nil || got != tt.want {
			t.Errorf("%s / %s = %q, %v; want %q", tt.resource, tt.divisor, got, err, tt.want)
		}
	}
}

func TestImageNames(t *testing.T) {
	for in, want := range map[string][2]string{
		"nginx":                     {"nginx:latest", "docker.io/library/nginx:latest"},
		"nginx:1.27":                {"nginx:1.27", "docker.io/library/nginx:1.27"},
		"traefik/whoami":            {"traefik/whoami:latest", "docker.io/traefik/whoami:latest"},
		"registry.k8s.io/pause:3.9": {"registry.k8s.io/pause:3.9", "registry.k8s.io/pause:3.9"},
	} {
		image, normal, err := withTag(in)
		if err != nil || image != want[0] || normal != want[1] {
			t.Errorf("%s: %q %q %v, want %v", in, image, normal, err, want)
		}
	}
	if _, _, err := withTag("Nginx:1 2"); err == nil {
		t.Error("an invalid name gives no error")
	}
}

func TestAddresses(t *testing.T) {
	var a addresses
	if _, err := a.take(netip.Addr{}); err == nil {
		t.Error("an address before the range is known")
	}
	a.set(netip.MustParsePrefix("10.244.2.0/29"))
	var got []string
	for range 5 {
		ip, err := a.take(netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ip.String())
	}
	want := []string{"10.244.2.2", "10.244.2.3", "10.244.2.4", "10.244.2.5", "10.244.2.6"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if ip, err := a.take(netip.Addr{}); err == nil {
		t.Errorf("a full range gave %v", ip)
	}
	a.give(netip.MustParseAddr("10.244.2.4"))
	if ip, err := a.take(netip.Addr{}); err != nil || ip.String() != "10.244.2.4" {
		t.Errorf("the free one: %v %v", ip, err)
	}
	a.give(netip.MustParseAddr("10.244.2.3"))
	a.hold(netip.MustParseAddr("10.244.2.3"))
	if _, err := a.take(netip.Addr{}); err == nil {
		t.Error("an address that is held was given away")
	}
	if ip, err := a.take(netip.MustParseAddr("10.244.2.3")); err != nil || ip.String() != "10.244.2.3" {
		t.Errorf("the held one for its Pod: %v %v", ip, err)
	}
}

func TestAddressesAreNotReusedAtOnce(t *testing.T) {
	var a addresses
	a.set(netip.MustParsePrefix("10.244.2.0/24"))
	first, _ := a.take(netip.Addr{})
	a.give(first)
	if second, _ := a.take(netip.Addr{}); second == first {
		t.Errorf("a new Pod got the address %v of the one before", second)
	}
}

func logged(t *testing.T, b *logBuffer, query string, now time.Time) string {
	t.Helper()
	q, _ := url.ParseQuery(query)
	o, err := parseLogOptions(q, now)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	entries, _, _, _ := b.from(b.start(o))
	(&logSender{w: &out, o: o, left: o.limit}).entries(entries)
	return out.String()
}

func TestLogOptions(t *testing.T) {
	clock := testclock.NewFakeClock(noon)
	b := newLogBuffer(clock)
	out, errw := b.writer(context.Background(), false), b.writer(context.Background(), true)
	for i := range 5 {
		fmt.Fprintf(out, "line %d\n", i)
		clock.Step(10 * time.Second)
	}
	fmt.Fprintf(errw, "oops\n")
	io.WriteString(out, "no end")
	out.flush()
	now := clock.Now()
	for query, want := range map[string]string{
		"":                            "line 0\nline 1\nline 2\nline 3\nline 4\noops\nno end",
		"tailLines=0":                 "",
		"tailLines=2":                 "oops\nno end",
		"tailLines=3":                 "line 4\noops\nno end",
		"limitBytes=9":                "line 0\nli",
		"sinceSeconds=15":             "line 4\noops\nno end",
		"timestamps=true&tailLines=2": now.Format("2006-01-02T15:04:05.000000000Z") + " oops\n" + now.Format("2006-01-02T15:04:05.000000000Z") + " no end",
		"stream=Stderr":               "oops\n",
		"sinceTime=" + noon.Add(35*time.Second).Format(time.RFC3339): "line 4\noops\nno end",
	} {
		if got := logged(t, b, query, now); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if _, err := parseLogOptions(url.Values{"tailLines": {"many"}}, now); err == nil {
		t.Error("nonsense is accepted")
	}
}

func TestLogKeepsTheNewestOnly(t *testing.T) {
	b := newLogBuffer(testclock.NewFakeClock(noon))
	w := b.writer(context.Background(), false)
	line := strings.Repeat("x", 1000) + "\n"
	for range logBytes/1000 + 500 {
		io.WriteString(w, line)
	}
	entries, next, _, _ := b.from(0)
	if b.bytes > logBytes || len(entries) < 900 {
		t.Errorf("%d bytes in %d lines are kept, want up to %d", b.bytes, len(entries), logBytes)
	}
	if next != logBytes/1000+500 {
		t.Errorf("the next line's number is %d", next)
	}
	b.shrink()
	if b.bytes > prevLogBytes {
		t.Errorf("%d bytes after shrink", b.bytes)
	}
}

func TestLogFloodIsSlowedDown(t *testing.T) {
	b := newLogBuffer(testclock.NewFakeClock(noon))
	ctx, cancel := context.WithCancel(context.Background())
	w := b.writer(ctx, false)
	b.limiter.SetBurst(0) // as after the burst: nothing may be written now
	cancel()
	if n, err := io.WriteString(w, "more\n"); err == nil {
		t.Errorf("%d bytes were taken beyond the rate", n)
	}
}

func TestCookedTerminal(t *testing.T) {
	var screen strings.Builder
	interrupts := 0
	in := cook(context.Background(), strings.NewReader("helo\x7f\x7fllo\rbye\x03\x15yes\r\x04lost"), &crlfWriter{w: &screen}, func() { interrupts++ })
	got, err := io.ReadAll(in)
	if err != nil || string(got) != "hello\nyes\n" {
		t.Errorf("the program read %q, %v", got, err)
	}
	if interrupts != 1 {
		t.Errorf("%d interrupts", interrupts)
	}
	if want := "helo\b \b\b \bllo\r\nbye^C\r\nyes\r\n"; screen.String() != want {
		t.Errorf("the screen shows %q, want %q", screen.String(), want)
	}
}

func TestQOSClass(t *testing.T) {
	set := func(req, limit string) *corev1.Pod {
		p := testPod(corev1.RestartPolicyAlways, nil, "web")
		r := &p.Spec.Containers[0].Resources
		if req != "" {
			r.Requests = corev1.ResourceList{"cpu": resource.MustParse(req), "memory": resource.MustParse("1Gi")}
		}
		if limit != "" {
			r.Limits = corev1.ResourceList{"cpu": resource.MustParse(limit), "memory": resource.MustParse("1Gi")}
		}
		return p
	}
	for _, tt := range []struct {
		req, limit string
		want       corev1.PodQOSClass
	}{{"", "", "BestEffort"}, {"1", "", "Burstable"}, {"1", "2", "Burstable"}, {"1", "1", "Guaranteed"}, {"", "1", "Guaranteed"}} {
		if got := qosClass(set(tt.req, tt.limit)); got != tt.want {
			t.Errorf("request %q limit %q: %s, want %s", tt.req, tt.limit, got, tt.want)
		}
	}
}
