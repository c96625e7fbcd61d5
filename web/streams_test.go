package web_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"kubistro/internal/lab"
	"kubistro/web"
	"kubistro/web/webtest"
)

// socket is a WebSocket of a client; its messages are JSON objects.
type socket struct {
	t *testing.T
	*websocket.Conn
	ctx context.Context
}

func (c *client) dial(path string) *socket {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	c.t.Cleanup(cancel)
	conn, res, err := websocket.Dial(ctx, c.s.URL+path, &websocket.DialOptions{HTTPClient: c.Client})
	if err != nil {
		c.t.Fatalf("dial %s: %v (%v)", path, err, res)
	}
	conn.SetReadLimit(1 << 20)
	c.t.Cleanup(func() { conn.CloseNow() })
	return &socket{c.t, conn, ctx}
}

func (s *socket) next() map[string]any {
	s.t.Helper()
	_, body, err := s.Read(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		s.t.Fatal(err)
	}
	return v
}

func (s *socket) send(text string) {
	s.t.Helper()
	if err := s.Write(s.ctx, websocket.MessageText, []byte(text)); err != nil {
		s.t.Fatal(err)
	}
}

// until reads messages until one fits.
func (s *socket) until(fits func(map[string]any) bool) []map[string]any {
	s.t.Helper()
	var all []map[string]any
	for {
		m := s.next()
		all = append(all, m)
		if fits(m) {
			return all
		}
	}
}

func TestEventsComeNumberedAfterASnapshot(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	id := c.open()
	v := s.Lab.Only()
	first := v.Put(lab.ObjectState{Ref: webtest.Ref("Node", "office")}, "", 0)
	k := c.dial("/api/v1/sessions/" + id + "/events?after=0")
	if m := k.next(); m["type"] != "session" || m["session"].(map[string]any)["state"] != "ready" {
		t.Fatalf("first message: %v", m)
	}
	if m := k.next(); m["type"] != "snapshot" || m["n"] != float64(first) || len(m["state"].([]any)) != 1 {
		t.Fatalf("second message: %v", m)
	}
	n := v.Write("learner", "create", webtest.Ref("Pod", "a"), 0)
	if m := k.next(); m["type"] != "audit" || m["n"] != float64(n) || m["actor"] != "learner" || m["cause"] != nil {
		t.Errorf("frame: %v", m)
	}
	v.SetStatus(lab.Status{State: lab.StateAsleep})
	if m := k.next(); m["type"] != "session" || m["session"].(map[string]any)["state"] != "asleep" {
		t.Errorf("after the state changed: %v", m)
	}
	again := c.dial("/api/v1/sessions/" + id + "/events?after=1")
	again.next()
	if m := again.next(); m["n"] != float64(2) {
		t.Errorf("a client that knows 1 gets %v", m)
	}
	far := c.dial("/api/v1/sessions/" + id + "/events?after=99")
	far.next()
	if m := far.next(); m["type"] != "snapshot" {
		t.Errorf("a client from the future gets %v", m)
	}
}

func TestEventsWithoutWebSockets(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	id := c.open()
	v := s.Lab.Only()
	v.Write("learner", "create", webtest.Ref("Pod", "a"), 0)
	v.Write("learner", "delete", webtest.Ref("Pod", "a"), 0)
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/api/v1/sessions/"+id+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", "1")
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if ct := res.Header.Get("Content-Type"); !strings.HasPrefix(ct, "text/event-stream") {
		t.Fatalf("content type %q", ct)
	}
	lines := bufio.NewScanner(res.Body)
	var got []string
	for lines.Scan() {
		if lines.Text() == "" {
			continue
		}
		got = append(got, lines.Text())
		if len(got) == 3 {
			break
		}
	}
	if len(got) != 3 || !strings.Contains(got[0], `"type":"session"`) || got[1] != "id: 2" || !strings.Contains(got[2], `"verb":"delete"`) {
		t.Errorf("stream: %q", got)
	}
}

func TestTerminalLosesAndDoublesNothing(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	id := c.open()
	path := "/api/v1/sessions/" + id + "/terminal?tab=main&after="
	k := c.dial(path + "0")
	if m := k.next(); m["ready"] != true {
		t.Fatalf("first: %v", m)
	}
	prompt := k.next()
	if prompt["n"] != float64(1) {
		t.Fatalf("prompt: %v", prompt)
	}
	k.send(`{"resize":[100,30]}`)
	k.send(`{"in":"echo hal"}`)
	last := k.until(func(m map[string]any) bool { return m["n"] == float64(9) })
	if last[len(last)-1]["out"] != "l" {
		t.Errorf("echo: %v", last)
	}
	k.send(`{"ack":9}`)
	tab := s.Lab.Only().Tab("main")
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for tab.AckedTo() != 9 { // a cut may lose what was sent last
		select {
		case <-tick.C:
		case <-k.ctx.Done():
			t.Fatalf("acknowledged %d", tab.AckedTo())
		}
	}
	k.CloseNow() // no close frame
	tab.Print("while away\r\n")

	back := c.dial(path + "9")
	back.next()
	if m := back.next(); m["n"] != float64(10) || m["out"] != "while away\r\n" {
		t.Errorf("after coming back: %v", m)
	}
	back.send(`{"in":"lo\r"}`)
	back.until(func(m map[string]any) bool { out, _ := m["out"].(string); return strings.Contains(out, "hallo") })
	if got := tab.Entered(); len(got) != 1 || got[0] != "echo hallo" {
		t.Errorf("entered: %q", got)
	}
	if tab.Size != [2]int{100, 30} {
		t.Errorf("size %v", tab.Size)
	}
	future := c.dial(path + "100000")
	future.next()
	if m := future.next(); m["reset"] != true {
		t.Errorf("a client with unknown numbers gets %v", m)
	}
}

func TestTerminalWaitsForTheCluster(t *testing.T) {
	s := webtest.NewServer(t, nil)
	s.Lab.Start = lab.StateProvisioning
	c := newClient(t, s)
	id := c.open()
	k := c.dial("/api/v1/sessions/" + id + "/terminal")
	k.send(`{"in":"early\r"}`)
	s.Lab.Only().SetStatus(lab.Status{State: lab.StateReady})
	if m := k.next(); m["ready"] != true {
		t.Fatalf("first: %v", m)
	}
	k.until(func(m map[string]any) bool {
		out, _ := m["out"].(string)
		return strings.Contains(out, "$ ") && m["n"] != float64(1)
	})
	if got := s.Lab.Only().Tab("main").Entered(); len(got) != 1 || got[0] != "early" {
		t.Errorf("what was typed before: %q", got)
	}
}

func TestTerminalRefuses(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	id := c.open()
	path := "/api/v1/sessions/" + id + "/terminal"
	for _, q := range []string{"?tab=../x", "?tab=" + strings.Repeat("a", 33), "?tab=A", "?after=x", ""} {
		if r := c.do("GET", path+q, ""); r.StatusCode != 400 {
			t.Errorf("%q: %d %s", q, r.StatusCode, r.body)
		}
	}
	for name, tc := range map[string]struct {
		message string
		code    websocket.StatusCode
	}{
		"a paste of 5 MB in one message": {`{"in":"` + strings.Repeat("x", 5<<20) + `"}`, websocket.StatusMessageTooBig},
		"not JSON":                       {`rm -rf /`, websocket.StatusUnsupportedData},
	} {
		t.Run(name, func(t *testing.T) {
			k := c.dial(path)
			k.next()
			k.next()
			// The write itself may already fail when the server has closed.
			_ = k.Write(k.ctx, websocket.MessageText, []byte(tc.message))
			for {
				if _, _, err := k.Read(k.ctx); err != nil {
					if got := websocket.CloseStatus(err); got != tc.code && got != -1 {
						t.Errorf("closed with %v, want %v", got, tc.code)
					}
					return
				}
			}
		})
	}
}

func TestOpenStreamsAreLimited(t *testing.T) {
	s := webtest.NewServer(t, func(c *web.Config) {
		c.Limits = web.DefaultLimits()
		c.Limits.Sockets = 2
	})
	c := newClient(t, s)
	path := "/api/v1/sessions/" + c.open() + "/events"
	first := c.dial(path)
	first.next()
	c.dial(path).next()
	if r := c.do("GET", path, "", "Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="); r.StatusCode != 429 {
		t.Errorf("third stream: %d", r.StatusCode)
	}
	first.Close(websocket.StatusNormalClosure, "")
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, res, err := websocket.Dial(t.Context(), s.URL+path, &websocket.DialOptions{HTTPClient: c.Client})
		if err == nil {
			conn.CloseNow()
			return
		}
		if res == nil || res.StatusCode != 429 {
			t.Fatal(err)
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal("the place of a closed stream isn't given back")
		}
	}
}

func TestCloseStreamsEndsThem(t *testing.T) {
	s := webtest.NewServer(t, nil)
	c := newClient(t, s)
	k := c.dial("/api/v1/sessions/" + c.open() + "/events")
	k.next()
	k.next()
	s.Web.CloseStreams()
	if _, _, err := k.Read(k.ctx); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("stream ended with %v", err)
	}
}
