package guest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"kubistro/internal/shell"
	"kubistro/internal/shell/guest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// town is a street with a few doors.
func town(t *testing.T) guest.Dial {
	t.Helper()
	var n atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cook":
			fmt.Fprintf(w, "Welcome!\nHostname: cook-%d\n", n.Add(1)%2)
		case "/dish":
			fmt.Fprintf(w, `{"dish":"1","cook":"grill-1"}`)
		case "/proxy":
			w.Header().Set("X-Served-By", "host")
		case "/closed":
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, "no available server\n")
		case "/echo":
			fmt.Fprintf(w, "%s %s %s\n", r.Method, r.Host, r.Header.Get("X-Table"))
		case "/slow":
			<-r.Context().Done()
		case "/hangup":
			c, _, _ := http.NewResponseController(w).Hijack()
			c.Close()
		}
	}))
	t.Cleanup(srv.Close)
	return func(ctx context.Context, address string) (net.Conn, error) {
		switch host, _, _ := net.SplitHostPort(address); host {
		case "refused":
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		case "10.96.0.1":
			return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EHOSTUNREACH)}
		case "dark":
			<-ctx.Done()
			return nil, ctx.Err()
		case "menu.example":
			return (&net.Dialer{}).DialContext(ctx, "tcp", srv.Listener.Addr().String())
		default:
			return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
		}
	}
}

func run(ctx context.Context, dial guest.Dial, zh bool, args ...string) (out, errs string, code int) {
	var o, e bytes.Buffer
	env := shell.Env{Streams: shell.Streams{In: strings.NewReader(""), Out: &o, Err: &e}}
	code = guest.Command(dial, zh)(ctx, env, append([]string{"guest"}, args...))
	return o.String(), e.String(), code
}

func TestOneVisit(t *testing.T) {
	dial := town(t)
	for _, tc := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"http://menu.example/dish"}, "answered by grill-1\n", 0},
		{[]string{"menu.example/proxy"}, "answered by host\n", 0},
		{[]string{"http://menu.example/cook"}, "Hostname: cook-", 0},
		{[]string{"http://menu.example/closed"}, "no available server\n", 1},
		{[]string{"-H", "X-Table: 7", "http://menu.example/echo", "-X", "PUT"}, "PUT menu.example 7\n", 0},
		{[]string{"-H", "Host: other.example", "http://menu.example/echo"}, "GET other.example \n", 0},
		{[]string{"http://menu.example/hangup"}, "ended without an answer", 1},
		{[]string{"https://menu.example/"}, "TLS", 1},
		{[]string{"http://refused/"}, "connection refused", 1},
		{[]string{"http://10.96.0.1/"}, "inside of the cluster only", 1},
		{[]string{"http://nowhere.example/"}, "nobody in the street knows that name", 1},
		{[]string{"-m", "10ms", "http://dark/"}, "waited too long", 1},
		{[]string{"-m", "50ms", "http://menu.example/slow"}, "waited too long", 1},
		{[]string{"--help"}, "usage: guest", 0},
		{nil, "usage: guest", 0},
		{[]string{"ftp://menu.example/"}, "not a URL", 2},
		{[]string{"http://a", "http://b"}, "one URL is needed", 2},
		{[]string{"-n", "0", "http://a", "-c", "99"}, "-c must be from 1 to 32", 2},
		{[]string{"-n", "1000000", "http://a"}, "-n must be from", 2},
		{[]string{"-r", "900/s", "http://a"}, "at most 200 a second", 2},
		{[]string{"-d", "2h", "http://a"}, "-d must be from", 2},
		{[]string{"-H", "nonsense", "http://a"}, `a header is`, 2},
		{[]string{"-z", "http://a"}, "not defined", 2},
	} {
		out, errs, code := run(t.Context(), dial, false, tc.args...)
		if code != tc.code || !strings.Contains(out+errs, tc.want) {
			t.Errorf("guest %q: %d\n%s%s", tc.args, code, out, errs)
		}
	}
	if out, _, _ := run(t.Context(), dial, true, "http://menu.example/dish"); !strings.Contains(out, "由 grill-1 接待") {
		t.Errorf("in Chinese: %s", out)
	}
}

type result struct {
	Visits, Failed int
	Codes, Errors  map[string]int
	By             map[string]int
	LatencyMs      map[string]float64
}

func TestStream(t *testing.T) {
	dial := town(t)
	for _, tc := range []struct {
		args []string
		want result
		code int
	}{
		{[]string{"-n", "20", "-c", "3", "http://menu.example/cook"}, result{Visits: 20, Codes: map[string]int{"200": 20}, Errors: map[string]int{}, By: map[string]int{"cook-0": 10, "cook-1": 10}}, 0},
		{[]string{"-n", "5", "http://menu.example/closed"}, result{Visits: 5, Failed: 5, Codes: map[string]int{"503": 5}, Errors: map[string]int{}, By: map[string]int{}}, 1},
		{[]string{"-n", "5", "http://refused/"}, result{Visits: 5, Failed: 5, Codes: map[string]int{}, Errors: map[string]int{"refused": 5}, By: map[string]int{}}, 1},
		{[]string{"-n", "4", "-m", "20ms", "http://dark/"}, result{Visits: 4, Failed: 4, Codes: map[string]int{}, Errors: map[string]int{"timeout": 4}, By: map[string]int{}}, 1},
	} {
		out, errs, code := run(t.Context(), dial, false, append(tc.args, "--json")...)
		var got result
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatalf("guest %q: %v\n%s%s", tc.args, err, out, errs)
		}
		if p := got.LatencyMs; p["p50"] > p["p99"] || p["p99"] > p["max"] {
			t.Errorf("guest %q: latencies %v", tc.args, p)
		}
		got.LatencyMs = nil
		if diff := cmp.Diff(tc.want, got); diff != "" || code != tc.code {
			t.Errorf("guest %q: %d (-want +got):\n%s", tc.args, code, diff)
		}
	}
}

func TestStreamForPeople(t *testing.T) {
	dial := town(t)
	out, _, code := run(t.Context(), dial, false, "-n", "10", "http://menu.example/cook")
	for _, want := range []string{"10 visits in", "0 disappointed", "  200          10  OK", "latency  p50", "cook-0", "cook-1"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if code != 0 {
		t.Errorf("code %d", code)
	}
}

// The rate is kept: 5 visits at 50 a second can't be over before four gaps have passed.
func TestRateAndDuration(t *testing.T) {
	dial := town(t)
	start := time.Now()
	run(t.Context(), dial, false, "-n", "5", "-r", "50/s", "http://menu.example/cook")
	if took := time.Since(start); took < 80*time.Millisecond {
		t.Errorf("5 visits at 50/s took %v", took)
	}
	out, _, _ := run(t.Context(), dial, false, "-d", "300ms", "-r", "600/m", "--json", "http://menu.example/cook")
	var got result
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Visits < 1 || got.Visits > 4 {
		t.Errorf("300 ms at 10/s: %v, %d visits", err, got.Visits)
	}
}

func TestInterrupt(t *testing.T) {
	dial := town(t)
	ctx, cancel := context.WithCancel(t.Context())
	var n atomic.Int64
	counted := func(ctx context.Context, address string) (net.Conn, error) {
		if n.Add(1) == 5 {
			cancel()
		}
		return dial(ctx, address)
	}
	out, _, code := run(ctx, counted, false, "-c", "1", "-d", "10m", "http://menu.example/cook")
	if code != 130 || !strings.Contains(out, "visits in") || strings.Contains(out, "canceled") {
		t.Errorf("%d\n%s", code, out)
	}
}
