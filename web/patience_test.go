package web_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"kubistro/web"
	"kubistro/web/webtest"
)

func limited(change func(*web.Limits)) func(*web.Config) {
	return func(c *web.Config) {
		c.Limits = web.DefaultLimits()
		change(&c.Limits)
	}
}

// A request whose body never comes must not hold its connection, wherever it goes.
func TestStalledBodiesAreCutOff(t *testing.T) {
	s := webtest.NewServer(t, limited(func(l *web.Limits) { l.BodyTime = 100 * time.Millisecond }))
	for _, line := range []string{"POST /api/v1/sessions", "PUT /api/v1/preferences", "GET /", "GET /healthz", "GET /assets/none", "POST /nowhere", "POST /k8s/x/api/v1/namespaces"} {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, line+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		var timeout net.Error
		if _, err := io.Copy(io.Discard, conn); errors.As(err, &timeout) && timeout.Timeout() {
			t.Errorf("%s: the connection is still open", line)
		}
	}
}

// A client that takes nothing of a long answer must not hold its handler.
func TestAnswersThatNobodyTakesAreCutOff(t *testing.T) {
	s := webtest.NewServer(t, limited(func(l *web.Limits) { l.AnswerTime = 100 * time.Millisecond }))
	ended := make(chan struct{})
	inner := s.Config.Handler
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		inner.ServeHTTP(w, r)
		if strings.HasSuffix(r.URL.Path, "/big") {
			close(ended)
		}
	})
	c := newClient(t, s)
	id := c.open()
	s.Lab.Only().PutFile("big", strings.Repeat("x", 64<<20)) // more than the system's buffers take
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/api/v1/sessions/"+id+"/files/big", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the handler still waits")
	}
}

// Deadlines are for requests: a stream goes on, even one that was asked for with a body.
func TestStreamsOutliveTheDeadlinesOfRequests(t *testing.T) {
	s := webtest.NewServer(t, limited(func(l *web.Limits) { l.BodyTime, l.AnswerTime = time.Millisecond, time.Millisecond }))
	c := newClient(t, s)
	id := c.open()
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/api/v1/sessions/"+id+"/events?after=0", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	begin := time.Now()
	for i := 0; i < 20 || time.Since(begin) < 50*time.Millisecond; i++ {
		s.Lab.Only().Write("learner", "create", webtest.Ref("Pod", "a"), 0)
		for got := false; !got; {
			if !lines.Scan() {
				t.Fatalf("the stream ended after %d frames: %v", i, lines.Err())
			}
			got = strings.HasPrefix(lines.Text(), "id: ")
		}
	}
}

// Pings are answered by the library, below every limit on messages.
func TestPingsArePaced(t *testing.T) {
	const burst = 800
	s := webtest.NewServer(t, limited(func(l *web.Limits) { l.SocketBytes, l.SocketBurst = 1, burst }))
	c := newClient(t, s)
	id := c.open()
	for _, path := range []string{"/events", "/terminal"} {
		k := c.dial("/api/v1/sessions/" + id + path)
		reading := k.CloseRead(k.ctx)
		n := 0
		for ; n < burst; n++ {
			ctx, cancel := context.WithTimeout(reading, 500*time.Millisecond)
			err := k.Ping(ctx)
			cancel()
			if err != nil {
				break
			}
		}
		if n == burst { // a ping has more than one byte
			t.Errorf("%s: %d pings were answered", path, n)
		}
		k.CloseNow()
	}
}
