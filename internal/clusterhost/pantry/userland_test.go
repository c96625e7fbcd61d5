package pantry

import (
	"archive/tar"
	"bytes"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestShellRunsTheContainersPrograms(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, "grill-cook:1.4", "10.244.1.2")
	c.start()
	c.out.wait(t, "listening")
	for _, tc := range []struct {
		argv []string
		in   string
		want string
		code int
	}{
		{[]string{"sh", "-c", "echo $0 $1", "x", "y"}, "", "x y\n", 0},
		{[]string{"sh", "-c", "exit 3"}, "", "", 3},
		{[]string{"sh"}, "echo from stdin\n", "from stdin\n", 0},
		{[]string{"sh", "-c", "ready off | cat; ready on >/dev/null"}, "", "cook-1 is not ready for guests\n", 0},
		{[]string{"sh", "-c", "grill-cook --version"}, "", "grill-cook 1.4\n", 0},
		{[]string{"env", "ready"}, "", "cook-1 is ready for guests\n", 0},
		{[]string{"cat", "/etc/hostname"}, "", "cook-1\n", 0},
		{[]string{"sh", "-c", "pwd; echo it > x; cat /kitchen/x"}, "", "/kitchen\nit\n", 0},
		{[]string{"sh", "-c", "for i in 1 2 3; do echo $i; done | wc -l"}, "", "3\n", 0},
		{[]string{"nothing"}, "", "nothing: not found\n", 127},
	} {
		if out, code := c.exec(tc.in, tc.argv...); strings.TrimLeft(out, " ") != tc.want || code != tc.code {
			t.Errorf("%q: %d %q, want %d %q", tc.argv, code, out, tc.code, tc.want)
		}
	}
}

func TestFirstProcessWithoutHandlersIgnoresSIGTERM(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, "busybox", "10.244.1.2")
	c.start("sleep", "3600")
	c.signals <- syscall.SIGTERM
	select {
	case code := <-c.code:
		t.Fatalf("sleep ended with %d on SIGTERM", code)
	case <-time.After(20 * time.Millisecond):
	}
	c.kill()
	if code := c.ended(); code != exitSigkill {
		t.Errorf("exit code %d after SIGKILL", code)
	}
	c.start("sleep", "3600")
	c.signals <- syscall.SIGINT
	if code := c.ended(); code != exitSigint {
		t.Errorf("exit code %d after Ctrl-C", code)
	}
}

func TestCurlEntrypoint(t *testing.T) {
	n, _ := network(t)
	web := pod(t, n, "traefik/whoami", "10.244.1.2")
	web.start()
	web.out.wait(t, "Starting up")
	for _, args := range [][]string{{"curl", "-s", "http://10.244.1.2/"}, {"-s", "10.244.1.2"}, {"sh", "-c", "curl -s 10.244.1.2"}} {
		c := pod(t, n, "curlimages/curl", "10.244.1.3")
		c.start(args...)
		if code := c.ended(); code != 0 || !strings.Contains(c.out.String(), "Hostname: cook-1") {
			t.Errorf("%q: %d %q", args, code, c.out)
		}
		c.network().Close()
	}
}

func TestTarRoundTrip(t *testing.T) {
	n, _ := network(t)
	from, to := pod(t, n, "busybox", "10.244.1.2"), pod(t, n, "grill-cook:1.4", "10.244.1.3")
	if out, code := from.exec("", "sh", "-c", "mkdir -p /data/a; echo soup > /data/a/menu; echo x > /data/b"); code != 0 {
		t.Fatal(out)
	}
	archive, code := from.exec("", "tar", "cf", "-", "/data") // as kubectl cp does
	if code != 0 {
		t.Fatal(archive)
	}
	if out, code := to.exec(archive, "tar", "-xmf", "-", "-C", "/tmp"); code != 0 {
		t.Fatal(out)
	}
	if out, _ := to.exec("", "sh", "-c", "cat /tmp/data/a/menu /tmp/data/b"); out != "soup\nx\n" {
		t.Errorf("after the copy: %q", out)
	}
	if out, code := from.exec("", "tar", "cf", "-", "/nothing"); code == 0 || !strings.Contains(out, "/nothing: No such file or directory") {
		t.Errorf("%d %q", code, out)
	}
	if out, code := from.exec("", "sh", "-c", "cd /data && tar czf /tmp/x.tgz a && cd /tmp && tar xzf x.tgz && cat a/menu"); code != 0 || out != "soup\n" {
		t.Errorf("%d %q", code, out)
	}
}

func TestTarStaysInItsFolder(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, "busybox", "10.244.1.2")
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: "../../etc/evil", Typeflag: tar.TypeReg, Size: 1, Mode: 0o644})
	io.WriteString(w, "x")
	w.Close()
	if out, code := c.exec(b.String(), "tar", "xf", "-", "-C", "/tmp"); code != 0 {
		t.Fatal(out)
	}
	if out, code := c.exec("", "cat", "/tmp/etc/evil"); code != 0 || out != "x" {
		t.Errorf("%q", out)
	}
}

func TestFullDisk(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, "busybox", "10.244.1.2")
	c.exec(strings.Repeat("x", 2<<20), "sh", "-c", "cat > /tmp/big")
	info, err := c.proc.FS.Stat("/tmp/big")
	if err != nil || info.Size() == 0 || info.Size() >= 1<<20 {
		t.Errorf("a disk of 1 MiB took %v, %v", info, err)
	}
	if out, code := c.exec("", "sh", "-c", "rm /tmp/big && echo room > /tmp/small && cat /tmp/small"); code != 0 || out != "room\n" {
		t.Errorf("after it was removed: %d %q", code, out)
	}
}

func TestNetcatAndHttpd(t *testing.T) {
	n, guest := network(t)
	c := pod(t, n, "busybox", "10.244.1.2")
	if out, code := c.exec("", "sh", "-c", "mkdir /www; echo hello > /www/index.html"); code != 0 {
		t.Fatal(out)
	}
	c.start("httpd", "-f", "-v", "-p", "8080", "-h", "/www")
	client := pod(t, n, "busybox", "10.244.1.3")
	eventually(t, "httpd listens", func() bool {
		_, code := client.exec("", "nc", "-z", "10.244.1.2", "8080")
		return code == 0
	})
	if code, body := get(t, guest, "GET", "http://10.244.1.2:8080/"); code != 200 || body != "hello\n" {
		t.Errorf("%d %q", code, body)
	}
	if code, _ := get(t, guest, "GET", "http://10.244.1.2:8080/x"); code != 404 {
		t.Errorf("%d", code)
	}
	if out, code := client.exec("GET / HTTP/1.0\r\n\r\n", "nc", "10.244.1.2", "8080"); code != 0 || !strings.Contains(out, "hello") {
		t.Errorf("%d %q", code, out)
	}
	if out, code := client.exec("", "nc", "-vz", "10.244.1.2", "81"); code != 1 || !strings.Contains(out, "Connection refused") {
		t.Errorf("%d %q", code, out)
	}
	server := pod(t, n, "busybox", "10.244.1.4")
	server.start("nc", "-l", "-p", "9000", "-v")
	server.out.wait(t, "listening")
	if _, code := client.exec("order", "nc", "10.244.1.4", "9000"); code != 0 {
		t.Error("nc client failed")
	}
	if code := server.ended(); code != 0 || !strings.HasSuffix(server.out.String(), "order") {
		t.Errorf("%d %q", code, server.out)
	}
}
