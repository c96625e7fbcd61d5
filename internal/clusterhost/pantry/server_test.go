package pantry

import (
	"encoding/json"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

func TestWhoami(t *testing.T) {
	n, guest := network(t)
	c := pod(t, n, "traefik/whoami", "10.244.1.2")
	c.start("--name", "till", "--verbose")
	c.out.wait(t, "Starting up on port 80")
	_, body := get(t, guest, "GET", "http://10.244.1.2/a?b=c", "User-Agent: curl/8.5.0", "Accept: */*")
	want := regexp.MustCompile(`^Name: till
Hostname: cook-1
IP: 127.0.0.1
IP: ::1
IP: 10.244.1.2
RemoteAddr: 10.244.9.9:\d+
GET /a\?b=c HTTP/1.1\r
Host: 10.244.1.2\r
User-Agent: curl/8.5.0\r
Accept: \*/\*\r
(.*\r\n)*\r
$`)
	if !want.MatchString(body) {
		t.Errorf("answer:\n%q", body)
	}
	var api struct{ Hostname, Method, URL, RemoteAddr string }
	if _, body := get(t, guest, "GET", "http://10.244.1.2/api"); json.Unmarshal([]byte(body), &api) != nil || api.Hostname != "cook-1" || api.Method != "GET" || api.URL != "/api" {
		t.Errorf("api: %q", body)
	}
	if code, _ := get(t, guest, "GET", "http://10.244.1.2/health"); code != 200 {
		t.Errorf("health: %d", code)
	}
	if code, body := get(t, guest, "GET", "http://10.244.1.2/data?size=10&unit=KB"); code != 200 || len(body) != 10<<10 {
		t.Errorf("data: %d, %d bytes", code, len(body))
	}
	if code, _ := get(t, guest, "GET", "http://10.244.1.2/data?size=1&unit=TB"); code != 400 {
		t.Errorf("too much data: %d", code)
	}
	if _, there := c.image.Programs["sh"]; there {
		t.Error("whoami has a shell")
	}
	c.signals <- syscall.SIGTERM
	if code := c.ended(); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
}

func TestWhoamiFlags(t *testing.T) {
	n, guest := network(t)
	c := pod(t, n, "traefik/whoami", "10.244.1.2")
	c.proc.Env = append(c.proc.Env, "WHOAMI_PORT_NUMBER=81")
	c.start("-port=8081")
	c.out.wait(t, "port 8081")
	if code, _ := get(t, guest, "GET", "http://10.244.1.2:8081/"); code != 200 {
		t.Errorf("got %d", code)
	}
	bad := pod(t, n, "traefik/whoami", "10.244.1.3")
	bad.start("--nothing", "x")
	if code := bad.ended(); code != 2 {
		t.Errorf("unknown flag: exit code %d", code)
	}
}

func TestNginx(t *testing.T) {
	n, guest := network(t)
	c := pod(t, n, "nginx:1.27", "10.244.1.2")
	c.start()
	c.out.wait(t, "start worker process 29")
	if code, body := get(t, guest, "GET", "http://10.244.1.2/", "User-Agent: curl/8.5.0"); code != 200 || body != nginxWelcome {
		t.Errorf("%d %q", code, body)
	}
	line := regexp.MustCompile(`10\.244\.9\.9 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000\] "GET / HTTP/1.1" 200 615 "-" "curl/8.5.0" "-"`)
	if !line.MatchString(c.out.String()) {
		t.Errorf("access log:\n%s", c.out)
	}
	if code, body := get(t, guest, "GET", "http://10.244.1.2/menu"); code != 404 || !strings.Contains(body, "<center><h1>404 Not Found</h1></center>\r\n<hr><center>nginx/1.27.5</center>") {
		t.Errorf("%d %q", code, body)
	}
	c.out.wait(t, `open() "/usr/share/nginx/html/menu" failed (2: No such file or directory), client: 10.244.9.9`)
	if code, _ := get(t, guest, "GET", "http://10.244.1.2/../../etc/passwd"); code != 404 {
		t.Errorf("path outside of the root: %d", code)
	}
	if code, _ := get(t, guest, "POST", "http://10.244.1.2/"); code != 405 {
		t.Errorf("POST: %d", code)
	}
	if out, code := c.exec("", "sh", "-c", "mkdir /usr/share/nginx/html/menu; echo soup > /usr/share/nginx/html/menu/index.html; echo hi > /usr/share/nginx/html/a.txt; rm /usr/share/nginx/html/index.html"); code != 0 {
		t.Fatal(out)
	}
	for _, tc := range []struct {
		path, want string
		code       int
	}{{"/menu/", "soup\n", 200}, {"/menu", "301 Moved", 301}, {"/a.txt", "hi\n", 200}, {"/", "403 Forbidden", 403}} {
		if code, body := get(t, guest, "GET", "http://10.244.1.2"+tc.path); code != tc.code || !strings.Contains(body, tc.want) {
			t.Errorf("%s: %d %q", tc.path, code, body)
		}
	}
	if out, code := c.exec("", "nginx", "-v"); code != 0 || out != "nginx version: nginx/1.27.5\n" {
		t.Errorf("nginx -v: %d %q", code, out)
	}
	c.signals <- syscall.SIGTERM
	if code := c.ended(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestNginxConfig(t *testing.T) {
	for _, tc := range []struct {
		conf, want string
		path       string
		code       int
	}{
		{"server { listen 8080; return 200 'table for two\\n'; }", "table for two\n", ":8080/", 200},
		{"# comment\nserver {\n listen 80;\n location / { return 301 http://x/; } }", "301 Moved", "/", 301},
		{"server { listen 80; root /srv; index start.html; }", "start here\n", "/", 200},
	} {
		n, guest := network(t)
		c := pod(t, n, "nginx:alpine", "10.244.1.2")
		if out, code := c.exec(tc.conf, "sh", "-c", "cat > /etc/nginx/conf.d/default.conf; mkdir /srv; echo start here > /srv/start.html"); code != 0 {
			t.Fatal(out)
		}
		c.start()
		c.out.wait(t, "start worker process 29")
		if code, body := get(t, guest, "GET", "http://10.244.1.2"+tc.path); code != tc.code || !strings.Contains(body, tc.want) {
			t.Errorf("%s: %d %q", tc.conf, code, body)
		}
	}
	for _, bad := range []string{"server {", "server { listen 80 }", "}", "server { listen x; }", ";", "server { return 'x"} {
		n, _ := network(t)
		c := pod(t, n, "nginx", "10.244.1.2")
		if out, code := c.exec(bad, "sh", "-c", "cat > /etc/nginx/conf.d/default.conf"); code != 0 {
			t.Fatal(out)
		}
		c.start()
		if code := c.ended(); code != 1 || !strings.Contains(c.out.String(), "/etc/nginx/conf.d/default.conf:1") {
			t.Errorf("%s: exit code %d\n%s", bad, code, c.out)
		}
	}
}

func FuzzNginxConfig(f *testing.F) {
	f.Add("server { listen 80; location / { return 200 \"x\"; } }")
	f.Fuzz(func(t *testing.T, text string) {
		sites, err := parseSites(text)
		for _, s := range sites {
			if err == nil && (s.port < 1 || s.port > 65535 || !strings.HasPrefix(s.root, "/")) {
				t.Fatalf("%q gives %+v", text, s)
			}
		}
	})
}

func TestPause(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, "registry.k8s.io/pause:3.10", "10.244.1.2")
	c.start()
	c.signals <- syscall.SIGTERM
	if code := c.ended(); code != 0 || c.out.String() != "Shutting down, got signal: Terminated\n" {
		t.Errorf("%d %q", code, c.out)
	}
}
