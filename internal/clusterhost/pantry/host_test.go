package pantry

import (
	"syscall"
	"testing"
)

// The public name starts the same program, by the image's entrypoint; outside of a
// cluster it says why it has no rules, answers, and ends when it is told to.
func TestTraefikStarts(t *testing.T) {
	n, guest := network(t)
	for ip, c := range map[string]struct {
		image string
		args  []string
	}{
		"10.244.1.2": {"traefik:v3.6", []string{"--entryPoints.web.address=:8000", "--providers.kubernetesingress", "--ping"}},
		"10.244.1.3": {"kubistro/host:1.0", []string{"--entryPoints.web.address=:8000", "--providers.kubernetesingress", "--ping"}},
	} {
		h := pod(t, n, c.image, ip)
		h.start(c.args...)
		h.out.wait(t, "unable to load in-cluster configuration")
		if code, body := get(t, guest, "GET", "http://"+ip+":8000/"); code != 404 || body != "404 page not found\n" {
			t.Errorf("%s: %d %q", c.image, code, body)
		}
		if code, body := get(t, guest, "GET", "http://"+ip+":8080/ping"); code != 200 || body != "OK" {
			t.Errorf("%s: ping: %d %q", c.image, code, body)
		}
		h.signals <- syscall.SIGTERM
		if code := h.ended(); code != 0 {
			t.Errorf("%s: exit code %d\n%s", c.image, code, h.out)
		}
	}
	wrong := pod(t, n, "traefik", "10.244.1.4")
	wrong.start("--entryPoints.web.address=nowhere")
	if code := wrong.ended(); code != 1 {
		t.Errorf("an address that can't be listened on: exit code %d\n%s", code, wrong.out)
	}
}
