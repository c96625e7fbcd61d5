package pantry

import (
	"encoding/json"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const agnhostImage = testImages + "agnhost:2.66.1"

func TestNetexec(t *testing.T) {
	n, guest := network(t)
	c := pod(t, n, agnhostImage, "10.244.1.2")
	c.start("netexec", "--http-port=8080", "--udp-port=-1")
	c.out.wait(t, "Started HTTP server on port 8080")
	const base = "http://10.244.1.2:8080"
	for path, want := range map[string]string{
		"/hostname":                     "cook-1",
		"/hostName":                     "cook-1",
		"/echo?msg=hi":                  "hi",
		"/header?key=X-Test":            "yes",
		"/serverport":                   "8080",
		"/shell?cmd=echo+one%3B+exit+3": `{"error":"exit status 3","output":"one\n"}`,
		"/dial?host=10.244.1.2&port=8080&request=hostname&tries=2": `{"responses":["cook-1","cook-1"]}`,
	} {
		if _, body := get(t, guest, "GET", base+path, "X-Test: yes"); body != want {
			t.Errorf("%s: %q, want %q", path, body, want)
		}
	}
	if _, body := get(t, guest, "GET", base+"/clientip"); !strings.HasPrefix(body, "10.244.9.9:") {
		t.Errorf("client: %q", body)
	}
	for path, want := range map[string]int{
		"/echo?msg=no&code=404": 404, "/healthz": 412, "/readyz": 412, "/envvar": 400, "/envvar?var=NONE": 500,
		"/dial?host=none.example&port=1&request=x": 400, "/redirect?location=/echo%3Fmsg%3Dx&code=307": 307,
	} {
		if code, body := get(t, guest, "GET", base+path); code != want {
			t.Errorf("%s: %d, want %d (%s)", path, code, want, body)
		}
	}
	_, body := get(t, guest, "GET", base+"/dial?"+url.Values{"host": {"10.244.1.2"}, "port": {"9"}, "request": {"x"}}.Encode())
	var dialled map[string][]string
	if json.Unmarshal([]byte(body), &dialled) != nil || len(dialled["errors"]) != 1 {
		t.Errorf("a refused dial: %q", body)
	}
	get(t, guest, "GET", base+"/exit?code=7")
	if code := c.ended(); code != 7 {
		t.Errorf("exit code %d, want 7", code)
	}
}

// TestAgnhostPause is what most Pods of Kubernetes' tests run.
func TestAgnhostPause(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, agnhostImage, "10.244.1.2")
	c.start()
	c.out.wait(t, "Signals registered")
	if out, code := c.exec("", "cat", "/etc/hostname"); code != 0 || out != "cook-1\n" {
		t.Errorf("exec: %q, %d", out, code)
	}
	c.signals <- syscall.SIGTERM
	if code := c.ended(); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
	if out, _ := c.exec("", "cat", "/dev/termination-log"); out != "exiting because of signal \"terminated\"\n" {
		t.Errorf("termination message %q", out)
	}
}

func TestMounttest(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, agnhostImage, "10.244.1.2")
	out, code := c.exec("", "/agnhost", "mounttest", "--fs_type=/mnt", "--new_file_0660=/mnt/new", "--file_perm=/mnt/new", "--file_mode=/mnt", "--file_owner=/mnt")
	want := `mount type of "/mnt": 61267
content of file "/mnt/new": mount-tester new file

mode of file "/mnt": drwxr-xr-x
perms of file "/mnt/new": -rw-rw----
owner UID of "/mnt": 0
owner GID of "/mnt": 0
`
	if diff := cmp.Diff(want, out); diff != "" || code != 0 {
		t.Errorf("exit code %d (-want +got):\n%s", code, diff)
	}
	if out, code := c.exec("", "/agnhost", "mounttest", "--file_content=/none"); code != 1 || !strings.Contains(out, "error reading file content") {
		t.Errorf("a missing file: %q, %d", out, code)
	}
}

func TestAgnhostServers(t *testing.T) {
	for _, c := range []struct {
		args, env []string
		url, want string
	}{
		{[]string{"serve-hostname"}, nil, "http://10.244.1.2:9376/", "cook-1"},
		{[]string{"test-webserver"}, nil, "http://10.244.1.2/etc/hostname", "cook-1\n"},
		{[]string{"test-webserver"}, nil, "http://10.244.1.2/uploads/", "<!doctype html>\n<meta name=\"viewport\" content=\"width=device-width\">\n<pre>\n<a href=\".keep\">.keep</a>\n</pre>\n"},
		{[]string{"liveness"}, nil, "http://10.244.1.2:8080/healthz", "ok"},
		{[]string{"porter"}, []string{"SERVE_PORT_81=cold"}, "http://10.244.1.2:81/", "cold"},
		{[]string{"porter", "--json-response"}, []string{"SERVE_PORT_81=cold"}, "http://10.244.1.2:81/", `{"Method":"GET","Body":"cold"}`},
		{[]string{"guestbook"}, nil, "http://10.244.1.2/set?key=a&value=b", `{"message":"Updated"}`},
		{[]string{"liveness", "--alsologtostderr", "-v=4", "2>&1"}, nil, "http://10.244.1.2:8080/healthz", "ok"},
		{[]string{"nettest"}, nil, "http://10.244.1.2:8080/status", "fail"},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			n, guest := network(t)
			p := pod(t, n, agnhostImage, "10.244.1.2")
			p.proc.Env = append(p.proc.Env, c.env...)
			p.start(c.args...)
			if code, body := getSoon(t, guest, c.url); code != 200 || body != c.want {
				t.Errorf("%d %q, want %q", code, body, c.want)
			}
		})
	}
}

func TestAgnhostConnect(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, agnhostImage, "10.244.1.2")
	c.start("serve-hostname")
	c.out.wait(t, "Serving on port 9376")
	for _, try := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"127.0.0.1:9376"}, "", 0},
		{[]string{"127.0.0.1:9"}, "REFUSED\n", 1},
		{[]string{"--protocol=udp", "127.0.0.1:9"}, "REFUSED\n", 1},
		{[]string{"10.244.1.99:80"}, "OTHER: dial tcp 10.244.1.99:80: connect: no route to host\n", 1},
		{[]string{"nowhere"}, "UNKNOWN: address nowhere: missing port in address\n", 1},
	} {
		out, code := c.exec("", append([]string{"/agnhost", "connect"}, try.args...)...)
		if out != try.want || code != try.code {
			t.Errorf("connect %v: %q, %d; want %q, %d", try.args, out, code, try.want, try.code)
		}
	}
}

// TestWebhookRules looks at each decision without the network.
func TestWebhookRules(t *testing.T) {
	for _, c := range []struct{ path, operation, object, want string }{
		{"/always-deny", "CREATE", `{}`, `{"uid":"","allowed":false,"status":{"message":"this webhook denies all requests"}}`},
		{"/pods", "CREATE", `{"metadata":{"labels":{"webhook-e2e-test":"webhook-disallow"}},"spec":{"containers":[{"name":"webhook-disallow"}]}}`,
			`{"uid":"","allowed":false,"status":{"message":"the pod contains unwanted label; the pod contains unwanted container name;"}}`},
		{"/pods", "CREATE", `{"spec":{"containers":[{"name":"good"}]}}`, `{"uid":"","allowed":true}`},
		{"/pods/attach", "CONNECT", `{"stdin":true,"container":"container1"}`, `{"uid":"","allowed":false,"status":{"message":"attaching to pod 'to-be-attached-pod' is not allowed"}}`},
		{"/configmaps", "UPDATE", `{"data":{"webhook-e2e-test":"webhook-disallow"}}`, `{"uid":"","allowed":false,"status":{"reason":"the configmap contains unwanted key and value"}}`},
		{"/configmaps", "DELETE", `{"data":{"webhook-e2e-test":"webhook-disallow"}}`, `{"uid":"","allowed":true}`},
		{"/crd", "CREATE", `{"metadata":{"labels":{"webhook-e2e-test":"webhook-disallow"}}}`, `{"uid":"","allowed":false,"status":{"message":"the crd contains unwanted label"}}`},
	} {
		var o reviewed
		if err := json.Unmarshal([]byte(c.object), &o); err != nil {
			t.Fatal(err)
		}
		r := admission{Operation: c.operation, Name: "to-be-attached-pod"}
		r.Resource.Resource = "customresourcedefinitions"
		b, err := json.Marshal(webhookRules("")[c.path](t.Context(), nil, r, o))
		if err != nil || string(b) != c.want {
			t.Errorf("%s %s %s: %s, %v\nwant %s", c.path, c.operation, c.object, b, err, c.want)
		}
	}
	for path, want := range map[string]string{
		"/mutating-configmaps":   `[{"op":"add","path":"/data/mutation-stage-1","value":"yes"}]`,
		"/add-label":             `[{"op":"add","path":"/metadata/labels","value":{"added-label":"yes"}}]`,
		"/mutating-pods-sidecar": `[{"op":"add","path":"/spec/containers/-","value":{"image":"web","name":"webhook-added-sidecar","resources":{}}}]`,
	} {
		d := webhookRules("web")[path](t.Context(), nil, admission{}, reviewed{Data: map[string]any{"mutation-start": "yes"}})
		if string(d.Patch) != want || d.PatchType != "JSONPatch" {
			t.Errorf("%s: %s", path, d.Patch)
		}
	}
}

func TestConvertExample(t *testing.T) {
	o := map[string]any{"apiVersion": "stable.example.com/v1", "hostPort": "localhost:80"}
	if err := convertExample(o, "stable.example.com/v2"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"apiVersion": "stable.example.com/v2", "host": "localhost", "port": "80"}, o); diff != "" {
		t.Error(diff)
	}
	if err := convertExample(o, "stable.example.com/v1"); err != nil || o["hostPort"] != "localhost:80" {
		t.Errorf("and back: %v, %v", o, err)
	}
	for _, to := range []string{"stable.example.com/v1", "stable.example.com/v3"} {
		if convertExample(o, to) == nil {
			t.Errorf("%s: converted", to)
		}
	}
}

// getSoon asks until somebody listens.
func getSoon(t *testing.T, from Network, url string) (code int, body string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(20 * time.Second)
	for {
		if code, body = get(t, from, "GET", url); code != 0 {
			return code, body
		}
		select {
		case <-tick.C:
		case <-late:
			return code, body
		}
	}
}
