package pantry

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestNetexecUDP(t *testing.T) {
	n, guest := network(t)
	server, client := pod(t, n, agnhostImage, "10.244.1.2"), pod(t, n, agnhostImage, "10.244.1.3")
	server.proc.Env = append(server.proc.Env, "MENU=soup")
	server.start("netexec", "--http-port=8080", "--udp-port=8080", "--udp-listen-addresses=10.244.1.2,127.0.0.1,10.244.1.2")
	server.out.wait(t, "Started UDP server on port 127.0.0.1 8080")
	if code, body := getSoon(t, guest, "http://10.244.1.2:8080/readyz"); code != 200 || body != "ok" {
		t.Errorf("ready: %d %q", code, body)
	}
	for request, want := range map[string]string{
		"hostName": "cook-1", "echo One two": "one two", "serverport": "8080", "envvar MENU": "soup", "envvar NONE": "", "clientip": "10.244.1.3:",
	} {
		out, code := client.exec(request+"\n", "nc", "-u", "-w", "1", "10.244.1.2", "8080")
		if code != 0 || !strings.HasPrefix(out, want) || want == "" && out != "" {
			t.Errorf("%s: %q, %d; want %q", request, out, code, want)
		}
	}
	ask := "http://10.244.1.2:8080/dial?" + url.Values{"host": {"10.244.1.2"}, "port": {"8080"}, "protocol": {"udp"}, "request": {"hostname"}, "tries": {"2"}}.Encode()
	if _, body := get(t, guest, "GET", ask); body != `{"responses":["cook-1","cook-1"]}` {
		t.Errorf("dial: %q", body)
	}
	if out, code := client.exec("", "/agnhost", "connect", "--protocol=udp", "--udp-data=hostname", "10.244.1.2:8080"); code != 0 || out != "" {
		t.Errorf("connect: %q, %d", out, code)
	}
}

func TestServeHostnameOverUDP(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, agnhostImage, "10.244.1.2")
	c.start("serve-hostname", "--http=false", "--udp", "--tcp")
	c.out.wait(t, "Serving on port 9376")
	if out, code := c.exec("x", "nc", "-u", "-w", "1", "127.0.0.1", "9376"); out != "cook-1" || code != 0 {
		t.Errorf("UDP: %q, %d", out, code)
	}
	if out, code := c.exec("", "nc", "127.0.0.1", "9376"); out != "cook-1" || code != 0 {
		t.Errorf("TCP: %q, %d", out, code)
	}
}

func TestNetcatUDP(t *testing.T) {
	n, _ := network(t)
	server, client := pod(t, n, "busybox:1.37", "10.244.1.4"), pod(t, n, "busybox:1.37", "10.244.1.5")
	server.proc.Stdin = strings.NewReader("coming\n")
	server.start("nc", "-luv", "-p", "9000")
	server.out.wait(t, "listening on")
	if out, code := client.exec("order", "nc", "-u", "-w", "1", "10.244.1.4", "9000"); out != "coming\n" || code != 0 {
		t.Errorf("client: %q, %d", out, code)
	}
	server.out.wait(t, "order")
	if out, code := client.exec("order", "nc", "-u", "-w", "20", "10.244.1.4", "9001"); code != 1 || !strings.Contains(out, "Connection refused") {
		t.Errorf("nobody there: %q, %d", out, code)
	}
	for port, want := range map[string]int{"9000": 0, "9001": 1} {
		start := time.Now()
		if _, code := client.exec("", "nc", "-zuv", "10.244.1.4", port); code != want {
			t.Errorf("nc -zu %s: %d, want %d after %v", port, code, want, time.Since(start))
		}
	}
}
