package pantry

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"kubistro/internal/clusterhost/pantry/cgroup"
)

func TestTutorialServers(t *testing.T) {
	for _, tc := range []struct {
		ref  string
		args []string
		port string
		want string
	}{
		{"gcr.io/google-samples/hello-app:1.0", nil, ":8080/", "Hello, world!\nVersion: 1.0.0\nHostname: cook-1\n"},
		{"us-docker.pkg.dev/google-samples/containers/gke/hello-app:2.0", nil, ":8080/x", "Version: 2.0.0\n"},
		{"gcr.io/google-samples/kubernetes-bootcamp:v1", nil, ":8080/", "Hello Kubernetes bootcamp! | Running on: cook-1 | v=1\n"},
		{"jocatalin/kubernetes-bootcamp:v2", nil, ":8080/", "| v=2\n"},
		{"gcr.io/google-samples/node-hello:1.0", nil, ":8080/", "Hello Kubernetes!"},
		{"gcr.io/google-samples/hello-go-gke:1.0", nil, ":80/", `{"message":"Hello"}`},
		{"registry.k8s.io/nginx-slim:0.24", nil, ":80/", "Welcome to nginx!"},
		{"httpd:2.4", nil, ":80/", "It works!"},
		{"registry.k8s.io/hpa-example", nil, ":80/", "OK!"},
		{"hashicorp/http-echo", []string{"-listen=:80", "-text", "apple"}, ":80/", "apple\n"},
		{"kicbase/echo-server:1.0", nil, ":8080/a?b", "Request served by cook-1\n\nHTTP/1.1 GET /a?b\n\nHost: 10.244.1.1:8080\n"},
		{"registry.k8s.io/echoserver:1.10", nil, ":8080/a", "real path=/a\n"},
	} {
		t.Run(tc.ref, func(t *testing.T) {
			n, guest := network(t)
			c := pod(t, n, tc.ref, "10.244.1.1")
			c.start(tc.args...)
			if body := answer(t, guest, "http://10.244.1.1"+tc.port); !strings.Contains(body, tc.want) {
				t.Errorf("%q, want %q", body, tc.want)
			}
		})
	}
}

func TestFrontendNeedsItsBackend(t *testing.T) {
	n, guest := network(t)
	c := pod(t, n, "gcr.io/google-samples/hello-frontend:1.0", "10.244.1.1")
	c.start()
	if code := c.ended(); code != 1 || !strings.Contains(c.out.String(), `host not found in upstream "hello"`) {
		t.Errorf("without a backend: %d %s", code, c.out)
	}
	back := pod(t, n, "gcr.io/google-samples/hello-go-gke:1.0", "10.244.1.2")
	back.start()
	answer(t, guest, "http://10.244.1.2/")
	known := c.proc.Net.DNS()
	known.Hosts = hosts("hello", "10.244.1.2")
	c.network().SetDNS(known)
	c.start()
	if body := answer(t, guest, "http://10.244.1.1/"); !strings.Contains(body, `{"message":"Hello"}`) {
		t.Errorf("through the frontend: %q", body)
	}
}

// TestStress: what the program wants is counted, and ends with it.
func TestStress(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, "polinux/stress", "10.244.1.1")
	node := cgroup.NewNode(clock.RealClock{}, 2000, 1<<30)
	c.proc.Usage = node.Child(cgroup.Limits{CPU: 500})
	c.start("stress", "--cpu", "2", "--vm", "1", "--vm-bytes", "40M", "--vm-hang", "1", "-t", "3s")
	c.out.wait(t, "stress: info: [1] dispatching hogs: 2 cpu, 0 io, 1 vm, 0 hdd")
	eventually(t, "40 MiB are held", func() bool { return c.proc.Usage.Memory() >= 40<<20 })
	if code := c.ended(); code != 0 || !strings.Contains(c.out.String(), "successful run completed in ") {
		t.Errorf("%d %s", code, c.out)
	}
	cpu, memory := c.proc.Usage.Read()
	if memory >= 40<<20 {
		t.Errorf("%d bytes are still held", memory)
	}
	if cpu < int64(500*time.Millisecond) {
		t.Errorf("it used %v of CPU time, with half a core for 3 s", time.Duration(cpu))
	}
	if c.start("stress", "--wrong"); c.ended() != 1 {
		t.Error("an unknown option is taken")
	}

	memoryOnly := pod(t, n, "vish/stress", "10.244.1.2")
	memoryOnly.proc.Usage = node.Child(cgroup.Limits{Memory: 64 << 20})
	killed := make(chan struct{}, 1)
	memoryOnly.proc.Usage.OnOOM(func() {
		select {
		case killed <- struct{}{}:
		default:
		}
	})
	memoryOnly.start("-mem-total", "200Mi", "-mem-alloc-size", "20Mi", "-mem-alloc-sleep", "1ms")
	select {
	case <-killed:
	case <-time.After(20 * time.Second):
		t.Error("200 MiB fit into 64")
	}
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(20 * time.Second)
	for !check() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("it isn't so that %s", what)
		}
	}
}

func TestPerl(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, "perl:5.34.0", "10.244.1.1")
	out, code := c.exec("", "perl", "-Mbignum=bpi", "-wle", "print bpi(200)")
	// from the published digits of pi
	const want = "3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679" +
		"821480865132823066470938446095505822317253594081284811174502841027019385211055596446229489549303820\n"
	if code != 0 || out != want {
		t.Errorf("%d %s\nwant %s", code, out, want)
	}
	if out, code := c.exec("", "perl", "-Mbignum=bpi", "-wle", "print bpi(2000)"); code != 0 || len(out) != 2002 || !strings.HasPrefix(out, want[:190]) {
		t.Errorf("2000 digits: %d, %d characters", code, len(out))
	}
	if out, code := c.exec("", "perl", "-e", `print "hello\n"`); code != 0 || out != "hello\n" {
		t.Errorf("print: %d %q", code, out)
	}
	for _, code := range []string{"print bpi(2000000)", "system('ls')", "print $ENV{PATH}"} {
		if out, status := c.exec("", "perl", "-Mbignum=bpi", "-wle", code); status != 2 {
			t.Errorf("%s: %d %q", code, status, out)
		}
	}
}
