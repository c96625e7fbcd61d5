package pantry

import (
	"strings"
	"syscall"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"kubistro/internal/clusterhost/pantry/cgroup"
)

const cookURL = "http://10.244.1.2:8080"

func TestCookServesAndLeaves(t *testing.T) {
	n, guest := network(t)
	c := pod(t, n, "grill-cook:1.4", "10.244.1.2")
	c.start()
	c.out.wait(t, "listening on :8080")
	code, body := get(t, guest, "GET", cookURL)
	if code != 200 || !strings.Contains(body, "\nHostname: cook-1\nVersion: 1.4\nStation: grill\n") {
		t.Errorf("%d %q", code, body)
	}
	if code, body := get(t, guest, "GET", cookURL, "Accept: application/json"); code != 200 || !strings.Contains(body, `"version": "1.4"`) {
		t.Errorf("JSON: %d %q", code, body)
	}
	if code, _ := get(t, guest, "GET", cookURL+"/nothing"); code != 404 {
		t.Errorf("unknown path: %d", code)
	}
	if _, memory := c.proc.Usage.Read(); memory < mib {
		t.Errorf("a cook at work holds %d bytes", memory)
	}
	c.signals <- syscall.SIGTERM
	if code := c.ended(); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}
	if !strings.Contains(c.out.String(), "GET / 200 to 10.244.9.9:") {
		t.Errorf("no log line of the request in\n%s", c.out)
	}
	if _, memory := c.proc.Usage.Read(); memory != 0 {
		t.Errorf("%d bytes are held after the end", memory)
	}
}

func TestCookVersionsTellThemselvesApart(t *testing.T) {
	n, guest := network(t)
	c := pod(t, n, "grill-cook:1.5", "10.244.1.2")
	c.start()
	c.out.wait(t, "listening")
	if _, body := get(t, guest, "GET", cookURL); !strings.Contains(body, "Version: 1.5") || !strings.Contains(body, "Trained by version 1.5") {
		t.Errorf("1.5 answers %q", body)
	}
}

func TestBurnDishEndsTheContainer(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, "grill-cook:1.4", "10.244.1.2")
	if out, code := c.exec("", "burn-dish"); code != 1 || !strings.Contains(out, "no grill-cook is at work") {
		t.Errorf("without a cook: %d %q", code, out)
	}
	c.start()
	c.out.wait(t, "listening")
	if out, code := c.exec("", "burn-dish"); code != 0 {
		t.Errorf("burn-dish: %d %q", code, out)
	}
	if code := c.ended(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if !strings.Contains(c.out.String(), "the dish is burnt") {
		t.Errorf("no log line in\n%s", c.out)
	}
	c.start() // the same Pod, the same port, as the kubelet does
	c.out.wait(t, "listening")
	c.signals <- syscall.SIGTERM
	if code := c.ended(); code != 0 {
		t.Errorf("second run: exit code %d", code)
	}
}

func TestSwitches(t *testing.T) {
	n, guest := network(t)
	c := pod(t, n, "grill-cook:1.4", "10.244.1.2")
	c.start()
	c.out.wait(t, "listening")
	for _, tc := range []struct{ command, path string }{{"ready", "/readyz"}, {"health", "/healthz"}} {
		if code, _ := get(t, guest, "GET", cookURL+tc.path); code != 200 {
			t.Errorf("%s at first: %d", tc.path, code)
		}
		if out, code := c.exec("", tc.command, "off"); code != 0 || !strings.Contains(out, "is not") {
			t.Errorf("%s off: %d %q", tc.command, code, out)
		}
		if code, _ := get(t, guest, "GET", cookURL+tc.path); code != 503 {
			t.Errorf("%s after off: %d, want 503", tc.path, code)
		}
		if code, _ := get(t, guest, "GET", cookURL); code != 200 {
			t.Errorf("the cook itself after %s off: %d", tc.command, code)
		}
		if code, _ := get(t, guest, "POST", cookURL+"/admin/"+tc.command+"?on=true"); code != 403 {
			t.Errorf("a guest may switch %s: %d", tc.command, code)
		}
		if code, _ := get(t, c.proc.Net, "POST", "http://127.0.0.1:8080/admin/"+tc.command+"?on=true"); code != 200 {
			t.Errorf("the Pod itself may not switch %s: %d", tc.command, code)
		}
		if out, _ := c.exec("", tc.command); strings.Contains(out, "not") {
			t.Errorf("%s after on: %q", tc.command, out)
		}
	}
	if out, code := c.exec("", "ready", "maybe"); code != 2 {
		t.Errorf("ready maybe: %d %q", code, out)
	}
}

func TestCookFinishesOrDropsWork(t *testing.T) {
	for _, tc := range []struct {
		finish string
		served bool
	}{{"", true}, {"finish", true}, {"drop", false}} {
		t.Run("COOK_FINISH="+tc.finish, func(t *testing.T) {
			n, guest := network(t)
			c := pod(t, n, "grill-cook:1.4", "10.244.1.2")
			c.proc.Env = append(c.proc.Env, "COOK_FINISH="+tc.finish)
			c.start()
			c.out.wait(t, "listening")
			answer := make(chan int, 1)
			go func() {
				code, _ := get(t, guest, "GET", cookURL+"/cook?ms=300")
				answer <- code
			}()
			for { // until the dish is in work
				v, ok := c.proc.Store.Get(cookKey)
				if ok && v.(*cook).busy.Load() == 1 {
					break
				}
				if code, _ := get(t, guest, "GET", cookURL+"/healthz"); code != 200 {
					t.Fatal("not healthy")
				}
			}
			c.signals <- syscall.SIGTERM
			if code := <-answer; (code == 200) != tc.served {
				t.Errorf("the order in work got %d", code)
			}
			if code := c.ended(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestWorkIsAccounted(t *testing.T) {
	n, guest := network(t)
	c := pod(t, n, "grill-cook:1.4", "10.244.1.2")
	c.start()
	c.out.wait(t, "listening")
	before, memory := c.proc.Usage.Read()
	if code, body := get(t, guest, "GET", cookURL+"/cook?ms=50"); code != 200 || !strings.HasPrefix(body, "Dish 1 by cook-1") {
		t.Errorf("%d %q", code, body)
	}
	if after, _ := c.proc.Usage.Read(); after-before < int64(50*time.Millisecond) {
		t.Errorf("a dish of 50 ms cost %v", time.Duration(after-before))
	}
	get(t, guest, "GET", cookURL+"/hoard?mib=100")
	if _, now := c.proc.Usage.Read(); now-memory != 100*mib {
		t.Errorf("hoard of 100 MiB counts %d bytes", now-memory)
	}
	if out, code := c.exec("", "hoard", "0"); code != 0 {
		t.Errorf("hoard 0: %q", out)
	}
	if _, now := c.proc.Usage.Read(); now != memory {
		t.Errorf("after it was given back %d bytes are held, want %d", now, memory)
	}
	for _, bad := range []string{"/cook?ms=-1", "/cook?ms=x", "/cook?ms=99999999999", "/hoard?mib=99999999"} {
		if code, _ := get(t, guest, "GET", cookURL+bad); code != 400 {
			t.Errorf("%s: %d, want 400", bad, code)
		}
	}
}

// stepClock lets a test move the cook's time on.
func stepClock(t *testing.T, c *container) *testclock.FakeClock {
	fake := testclock.NewFakeClock(time.Unix(1_000_000, 0))
	c.proc.Clock = fake
	node := cgroup.NewNode(fake, 2000, 0)
	c.proc.Usage = node.Child(cgroup.Limits{})
	t.Cleanup(node.Close)
	return fake
}

// waiters waits until so many timers of the program are set.
func waiters(t *testing.T, fake *testclock.FakeClock) {
	t.Helper()
	late := time.After(20 * time.Second)
	for !fake.HasWaiters() {
		select {
		case <-late:
			t.Fatal("the program sets no timer")
		default:
		}
	}
}

func TestSlowStartAndBurnAfter(t *testing.T) {
	n, guest := network(t)
	c := pod(t, n, "grill-cook:1.4", "10.244.1.2")
	fake := stepClock(t, c)
	c.proc.Env = append(c.proc.Env, "COOK_START_DELAY=40", "COOK_BURN_AFTER=1m", "PORT=9000", "COOK_STATION=soup")
	c.start()
	c.out.wait(t, "preparing for 40s")
	if code, err := get(t, guest, "GET", "http://10.244.1.2:9000/"); code != 0 || !strings.Contains(err, "connection refused") {
		t.Errorf("before it is prepared: %d %s", code, err)
	}
	waiters(t, fake)
	fake.Step(40 * time.Second)
	c.out.wait(t, "listening on :9000")
	if _, body := get(t, guest, "GET", "http://10.244.1.2:9000/"); !strings.Contains(body, "Station: soup") {
		t.Errorf("%q", body)
	}
	waiters(t, fake)
	fake.Step(time.Minute)
	if code := c.ended(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}

func TestLoad(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, "grill-cook:1.4", "10.244.1.2")
	fake := stepClock(t, c)
	c.start()
	c.out.wait(t, "listening")
	if out, code := c.exec("", "load", "500m"); code != 0 || !strings.Contains(out, "500m") {
		t.Fatalf("load: %d %q", code, out)
	}
	before, _ := c.proc.Usage.Read()
	late := time.After(20 * time.Second)
	for used := int64(0); used < int64(time.Second); {
		fake.Step(250 * time.Millisecond)
		now, _ := c.proc.Usage.Read()
		used = now - before
		select {
		case <-late:
			t.Fatalf("only %v of CPU time were used", time.Duration(used))
		default:
		}
	}
	if _, code := c.exec("", "load", "1", "10s"); code != 0 {
		t.Error("load for a time isn't taken")
	}
	waiters(t, fake)
	fake.Step(10 * time.Second)
	for out := ""; !strings.Contains(out, " uses 0m"); {
		out, _ = c.exec("", "load")
		select {
		case <-late:
			t.Fatalf("the load doesn't end: %s", out)
		default:
		}
	}
	if _, code := c.exec("", "load", "NaN"); code != 2 {
		t.Error("load NaN is taken")
	}
}

func TestMenuShowsSettings(t *testing.T) {
	n, guest := network(t)
	c := pod(t, n, "grill-cook:1.4", "10.244.1.2")
	c.proc.Env = append(c.proc.Env, "MENU_SOUP=miso")
	c.start()
	c.out.wait(t, "listening")
	if out, code := c.exec("", "sh", "-c", "mkdir -p /etc/menu && echo 120 > /etc/menu/price"); code != 0 {
		t.Fatal(out)
	}
	if _, body := get(t, guest, "GET", cookURL+"/menu"); body != "MENU_SOUP: miso\n/etc/menu/price: 120\n" {
		t.Errorf("%q", body)
	}
}

func TestBadSettingsEndTheCook(t *testing.T) {
	for _, kv := range []string{"PORT=http", "PORT=70000", "COOK_START_DELAY=soon", "COOK_BURN_AFTER=-1s", "COOK_FINISH=maybe", "COOK_LOAD=much", "COOK_HOARD=-1"} {
		n, _ := network(t)
		c := pod(t, n, "grill-cook:1.4", "10.244.1.2")
		c.proc.Env = append(c.proc.Env, kv)
		c.start()
		if code := c.ended(); code != 2 || c.out.String() == "" {
			t.Errorf("%s: exit code %d and %q", kv, code, c.out)
		}
	}
}

func TestPortTaken(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, "grill-cook:1.4", "10.244.1.2")
	l, err := c.proc.Net.Listen(":8080")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c.start()
	if code := c.ended(); code != 1 || !strings.Contains(c.out.String(), "address already in use") {
		t.Errorf("exit code %d, %q", code, c.out)
	}
}

func TestKillFreesThePort(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, "grill-cook:1.4", "10.244.1.2")
	c.start()
	c.out.wait(t, "listening")
	c.kill()
	if code := c.ended(); code != exitSigkill {
		t.Errorf("exit code %d, want %d", code, exitSigkill)
	}
	l, err := c.proc.Net.Listen(":8080")
	if err != nil {
		t.Fatalf("the port is still taken: %v", err)
	}
	l.Close()
}
