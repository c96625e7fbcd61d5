package kubelet_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	utilexec "k8s.io/client-go/util/exec"
)

func TestExec(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("p", `{containers: [{name: c, image: busybox, command: [sleep, "600"]}]}`))
	h.pod(t, ns, "p", running)
	t.Run("exit code", func(t *testing.T) {
		_, _, err := h.exec(t, ns, "p", nil, false, "sh", "-c", "exit 7")
		if e, ok := err.(utilexec.CodeExitError); !ok || e.Code != 7 {
			t.Errorf("%v", err)
		}
	})
	t.Run("standard streams", func(t *testing.T) {
		out, errs, err := h.exec(t, ns, "p", strings.NewReader("soup\n"), false, "sh", "-c", "cat; echo hot >&2")
		if out != "soup\n" || errs != "hot\n" || err != nil {
			t.Errorf("%q %q %v", out, errs, err)
		}
	})
	t.Run("unknown program", func(t *testing.T) {
		if _, _, err := h.exec(t, ns, "p", nil, false, "no-such-program"); err == nil || !strings.Contains(err.Error(), `exec: "no-such-program": executable file not found in $PATH`) {
			t.Errorf("%v", err)
		}
	})
	t.Run("interactive shell", func(t *testing.T) {
		out, _, err := h.exec(t, ns, "p", strings.NewReader("echo $((6*7))\rexit 3\r"), true, "sh")
		if e, ok := err.(utilexec.CodeExitError); !ok || e.Code != 3 || !strings.Contains(out, "42") {
			t.Errorf("%q %v", out, err)
		}
	})
	t.Run("copy in and out", func(t *testing.T) {
		var in bytes.Buffer
		w := tar.NewWriter(&in)
		w.WriteHeader(&tar.Header{Name: "menu.txt", Size: 4, Mode: 0o644})
		io.WriteString(w, "soup")
		w.Close()
		if _, errs, err := h.exec(t, ns, "p", &in, false, "tar", "-xmf", "-", "-C", "/tmp"); err != nil {
			t.Fatalf("%v %s", err, errs)
		}
		out, _, err := h.exec(t, ns, "p", nil, false, "tar", "cf", "-", "-C", "/tmp", "menu.txt")
		r := tar.NewReader(strings.NewReader(out))
		head, terr := r.Next()
		if err != nil || terr != nil || head.Name != "menu.txt" {
			t.Fatalf("%v %v %+v", err, terr, head)
		}
		if got, _ := io.ReadAll(r); string(got) != "soup" {
			t.Errorf("%q", got)
		}
	})
}

func TestLogs(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("p", `{containers: [{name: c, image: busybox, command: [sh, -c, "for i in 1 2 3 4 5; do echo line $i; done; sleep 600"]}]}`))
	h.pod(t, ns, "p", running)
	stream, err := h.client.CoreV1().Pods(ns).GetLogs("p", &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	all := make([]byte, len("line 1\n")*5)
	if _, err := io.ReadFull(stream, all); err != nil {
		t.Fatal(err)
	}
	two := int64(2)
	if got := h.logs(t, ns, "p", corev1.PodLogOptions{TailLines: &two}); got != "line 4\nline 5\n" {
		t.Errorf("tail: %q", got)
	}
	if got := h.logs(t, ns, "p", corev1.PodLogOptions{Previous: true}); !strings.Contains(got, `previous terminated container "c" in pod "p" not found`) {
		t.Errorf("previous: %q", got)
	}
}

func TestPortForward(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	ns := h.space(t)
	h.apply(t, ns, podYAML("p", `{containers: [{name: c, image: traefik/whoami}]}`))
	h.pod(t, ns, "p", ready)
	transport, upgrader, err := spdy.RoundTripperFor(h.rest)
	if err != nil {
		t.Fatal(err)
	}
	url := h.client.CoreV1().RESTClient().Post().Namespace(ns).Resource("pods").Name("p").SubResource("portforward").URL()
	stop, up := make(chan struct{}), make(chan struct{})
	defer close(stop)
	f, err := portforward.NewOnAddresses(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", url), []string{"127.0.0.1"}, []string{"0:80"}, stop, up, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	go f.ForwardPorts()
	<-up
	ports, err := f.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("http://127.0.0.1:%d/", ports[0].Local), nil)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); !strings.Contains(string(body), "Hostname: p\n") {
		t.Errorf("%s", body)
	}
}

func TestNodeObject(t *testing.T) {
	t.Parallel()
	h := cluster(t)
	n := until(t, h, "nodes", "", "kitchen-1", func(n *corev1.Node) string {
		if len(n.Status.Images) == 0 {
			return "no images yet"
		}
		return ""
	})
	var kinds []string
	for _, c := range n.Status.Conditions {
		kinds = append(kinds, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	want := []string{"MemoryPressure=False KubeletHasSufficientMemory", "DiskPressure=False KubeletHasNoDiskPressure", "PIDPressure=False KubeletHasSufficientPID", "Ready=True KubeletReady"}
	if !slices.Equal(kinds, want) {
		t.Errorf("conditions %v, want %v", kinds, want)
	}
	i := n.Status.NodeInfo
	if i.KubeletVersion != "v1.37.2" || i.OSImage != "Kubistro (simulated node)" || !strings.HasPrefix(i.ContainerRuntimeVersion, "containerd://2.2.") {
		t.Errorf("nodeInfo %+v", i)
	}
	if n.Labels["kubernetes.io/hostname"] != "kitchen-1" || n.Labels["kitchen"] != "1" || n.Status.DaemonEndpoints.KubeletEndpoint.Port != 10250 {
		t.Errorf("%+v", n)
	}
	lease, err := h.client.CoordinationV1().Leases("kube-node-lease").Get(t.Context(), "kitchen-1", metav1.GetOptions{})
	if err != nil || *lease.Spec.HolderIdentity != "kitchen-1" || *lease.Spec.LeaseDurationSeconds != 40 || time.Since(lease.Spec.RenewTime.Time) > 40*time.Second {
		t.Errorf("lease %+v %v", lease, err)
	}
}
