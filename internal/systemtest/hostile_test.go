// Package systemtest tests a whole labserver from outside: what one learner does
// must not be felt by another.
package systemtest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kubistro/internal/labclient"
)

// bound is what a command of the other learner may take while somebody misbehaves.
const bound = time.Second

// grows is how long an abuse goes on at least.
const grows = 3 * time.Second

// thinks is how long Ann takes at least from one command to the next: who asks without
// a pause for minutes is slowed down as Mallory is.
const thinks = 200 * time.Millisecond

// class is a server with a hostile learner and a well-behaved one.
type class struct {
	server            *labclient.Server
	mallory, ann      *labclient.Learner
	malloryID, annID  string
	own               http.Client
	quiet             time.Duration // what Ann's slowest command took without an abuse
	kubeURL, kubeAuth string        // Mallory's way past the terminal: an own client with the kubeconfig's token
}

func openClass(t *testing.T) *class {
	t.Helper()
	ctx := t.Context()
	program := os.Getenv("KUBISTRO_LABSERVER")
	if program == "" {
		t.Fatal("KUBISTRO_LABSERVER names no program: run the tests with make test")
	}
	s, err := labclient.Start(ctx, program, "--warm", "2", "--idle", "24h")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	c := &class{server: s, own: http.Client{Timeout: 45 * time.Second}, mallory: s.Learner(), ann: s.Learner()}
	c.malloryID, c.annID = ready(t, c.mallory), ready(t, c.ann)
	if c.kubeURL, c.kubeAuth, err = c.mallory.Kubeconfig(ctx, c.malloryID); err != nil {
		t.Fatal(err)
	}
	c.calm(t)
	return c
}

// calm takes what Ann's commands need now that nobody disturbs her: other work of the
// machine is no learner's fault.
func (c *class) calm(t *testing.T) {
	t.Helper()
	c.quiet = slices.Max(c.commands(t, 0))
}

func ready(t *testing.T, l *labclient.Learner) string {
	t.Helper()
	id, err := l.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.WaitReady(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id
}

// commands runs Ann's commands one after the other, ten at least and for at least a
// time, and returns how long each took. All have to succeed.
func (c *class) commands(t *testing.T, least time.Duration) []time.Duration {
	t.Helper()
	shell, err := c.ann.Terminal(t.Context(), c.annID, "main")
	if err != nil {
		t.Fatal(err)
	}
	defer shell.Close()
	var all []time.Duration
	thought := time.NewTicker(thinks)
	defer thought.Stop()
	for end := time.Now().Add(least); len(all) < 10 || time.Now().Before(end); <-thought.C {
		begin := time.Now()
		out, err := shell.Run(t.Context(), "kubectl get namespaces")
		if err != nil {
			t.Fatalf("Ann's command: %v", err)
		}
		if !strings.Contains(out, "kube-system") {
			t.Fatalf("Ann's command failed: %s", out)
		}
		all = append(all, time.Since(begin))
	}
	return all
}

// undisturbed runs Ann's commands while the abuse goes on: none may take longer
// than bound, or, where the machine has other work, than several times the
// longest of her commands without an abuse.
func (c *class) undisturbed(t *testing.T) {
	t.Helper()
	took := slices.Sorted(slices.Values(c.commands(t, grows)))
	limit := max(bound, 3*c.quiet)
	t.Logf("%d commands, median %v, longest %v; %v without the abuse", len(took), took[len(took)/2], took[len(took)-1], c.quiet)
	if last := took[len(took)-1]; last > limit {
		t.Errorf("Ann's commands took up to %v, want %v at most", last, limit)
	}
}

// bounded looks at what the abuse took of the machine's memory.
func (c *class) bounded(t *testing.T) {
	t.Helper()
	host, terminal := c.server.Largest()
	if host == 0 || host > 1<<30 {
		t.Errorf("a cluster host has %d MiB", host>>20)
	}
	if terminal == 0 || terminal > 800<<20 {
		t.Errorf("a terminal has %d MiB", terminal>>20)
	}
}

// shell types into a tab of Mallory's that is closed again at the end.
func (c *class) shell(t *testing.T, tab string) *labclient.Terminal {
	t.Helper()
	term, err := c.mallory.Terminal(t.Context(), c.malloryID, tab)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		term.Close()
		if err := c.mallory.Call(context.WithoutCancel(t.Context()), "DELETE", "sessions/"+c.malloryID+"/terminals/"+tab, nil, nil); err != nil {
			t.Errorf("closing the tab: %v", err)
		}
	})
	return term
}

func TestHostileLearnerIsNotFelt(t *testing.T) {
	c := openClass(t)
	for _, abuse := range []struct{ name, line, bound string }{ // bound: how the learner is told; "" where an endless loop simply goes on
		{"fork bomb", `:(){ :|:& };:`, "cannot fork"},
		{"busy loops", `for i in 1 2 3 4 5 6 7 8; do while :; do :; done & done; wait`, ""},
		{"loops without commands", `for i in 1 2 3 4; do while ((1)); do ((x++)); done & done; wait`, ""},
		{"memory of a word", `x=aaaaaaaa; while :; do x=$x$x; done`, "variable too long"},
		{"memory of a filter", `jq -n '"x"*1e9|length'`, "too much memory"},
		{"endless output", `yes kubistro`, ""},
		{"big pipe", `yes | sort | uniq -c`, "sort: "},
		{"recursion", `f(){ f; f; }; f`, "nested too deeply"},
		{"brace expansion", `echo {1..99999999} | wc -c`, "too many words"},
		{"file flood", `i=0; while :; do i=$((i+1)); yes > f$i; done`, "write error"},
	} {
		t.Run("shell: "+abuse.name, func(t *testing.T) {
			c.calm(t)
			term := c.shell(t, "abuse")
			if err := term.Type(t.Context(), abuse.line+"\r"); err != nil {
				t.Fatal(err)
			}
			c.undisturbed(t)
			if abuse.bound != "" {
				if _, err := term.Until(t.Context(), abuse.bound, 30*time.Second); err != nil {
					t.Errorf("nothing told the learner: %v", err)
				}
			}
			c.bounded(t)
		})
	}

	t.Run("pods that take all CPU, memory and log", func(t *testing.T) {
		c.calm(t)
		term := c.shell(t, "pods")
		t.Cleanup(func() {
			if code := c.kube(t, "DELETE", "/apis/apps/v1/namespaces/default/deployments", ""); code != http.StatusOK {
				t.Errorf("deleting the deployments: %d", code)
			}
		})
		for name, script := range map[string]string{
			"cpu": `while :; do :; done`, "memory": `x=aaaaaaaa; while :; do x=$x$x; done`, "log": `yes`,
		} {
			if _, err := term.Run(t.Context(), fmt.Sprintf("kubectl create deployment hog-%s --replicas=10 --image=busybox -- sh -c '%s'", name, script)); err != nil {
				t.Fatal(err)
			}
		}
		c.undisturbed(t)
		out, err := term.Run(t.Context(), "kubectl get deployment hog-cpu hog-log") // her own cluster still answers
		if err != nil || !strings.Contains(out, "hog-cpu") {
			t.Errorf("Mallory's own cluster: %s %v", out, err)
		}
		c.bounded(t)
	})

	t.Run("etcd filled, then freed", func(t *testing.T) {
		c.calm(t)
		const maps = "/api/v1/namespaces/default/configmaps"
		full := make(chan bool, 1)
		go func() { full <- c.fill(t, maps) }()
		c.undisturbed(t)
		if !<-full {
			t.Error("400 ConfigMaps of 900 kB were all taken: where is the quota?")
		}
		c.undisturbed(t)
		if code := c.kube(t, "GET", "/api/v1/namespaces/default/pods", ""); code != http.StatusOK {
			t.Errorf("reading while the database is full: %d", code)
		}
		c.bounded(t)
		if code := c.kube(t, "DELETE", maps, ""); code != http.StatusOK {
			t.Errorf("deleting while the database is full: %d", code)
		}
		c.writable(t, maps)
	})

	t.Run("events flood", func(t *testing.T) {
		c.calm(t)
		body := `{"apiVersion":"v1","kind":"Event","metadata":{"generateName":"noise-"},"involvedObject":{"kind":"Pod","namespace":"default","name":"x"},"reason":"Noise","message":"` + strings.Repeat("noise ", 100) + `","type":"Warning"}`
		c.flood(t, "POST", "/api/v1/namespaces/default/events", body, 20*time.Second)
		c.undisturbed(t)
		c.bounded(t)
	})

	t.Run("WebSockets without end", func(t *testing.T) {
		c.calm(t)
		var open []*labclient.Terminal
		refused := 0
		for i := range 100 {
			term, err := c.mallory.Terminal(t.Context(), c.malloryID, fmt.Sprintf("tab%d", i))
			if err != nil {
				refused++
				continue
			}
			open = append(open, term)
		}
		c.undisturbed(t)
		for _, term := range open {
			term.Close()
		}
		if refused == 0 {
			t.Error("100 terminals were opened by one learner: where is the limit?")
		}
	})

	t.Run("watches without end", func(t *testing.T) {
		c.calm(t)
		open, refused := c.watches(t, 300)
		c.undisturbed(t)
		c.bounded(t)
		if open == 0 || refused == 0 {
			t.Errorf("of 300 watches %d were opened and %d refused", open, refused)
		}
		if code := c.kube(t, "GET", "/version", ""); code != http.StatusTooManyRequests {
			t.Errorf("one request more than may be open at once: %d", code)
		}
	})

	t.Run("files over the quota", func(t *testing.T) {
		c.calm(t)
		big := bytes.Repeat([]byte("x"), 1<<20)
		refused := false
		for i := range 40 {
			err := c.mallory.Upload(t.Context(), c.malloryID, fmt.Sprintf("big-%d.txt", i), big)
			refused = refused || err != nil
		}
		c.undisturbed(t)
		if !refused {
			t.Error("40 files of 1 MiB were taken: where is the quota?")
		}
	})
}

// flood sends the same request from 8 connections with Mallory's own client for
// a time. No more may get through than one learner's share.
func (c *class) flood(t *testing.T, method, path, body string, d time.Duration) {
	t.Helper()
	const perSecond, burst = 100, 300 // of an outside client
	var wg sync.WaitGroup
	var served, refused atomic.Int64
	begin := time.Now()
	for range 8 {
		wg.Go(func() {
			for time.Since(begin) < d {
				switch code := c.kube(t, method, path, body); {
				case code == http.StatusTooManyRequests:
					refused.Add(1)
				case code > 0:
					served.Add(1)
				}
			}
		})
	}
	wg.Wait()
	most := burst + int64(perSecond*time.Since(begin).Seconds()) + 1
	t.Logf("%d served, %d refused", served.Load(), refused.Load())
	if served.Load() > most {
		t.Errorf("%d requests were served, want %d at most", served.Load(), most)
	}
}

// watches opens watches with Mallory's own client, which stay open until the test ends.
func (c *class) watches(t *testing.T, n int) (open, refused int) {
	t.Helper()
	var client http.Client // without a time limit
	for range n {
		req, err := http.NewRequestWithContext(t.Context(), "GET", c.kubeURL+"/api/v1/configmaps?watch=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+c.kubeAuth)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		switch resp.StatusCode {
		case http.StatusOK:
			open++
		case http.StatusTooManyRequests:
			refused++
		default:
			t.Errorf("a watch is answered with %s", resp.Status)
		}
	}
	return open, refused
}

// fill writes ConfigMaps of 900 kB from 8 connections until the database has no room,
// 400 at most; full tells whether it came so far.
func (c *class) fill(t *testing.T, maps string) (full bool) {
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"fat-"},"data":{"x":"` + strings.Repeat("0123456789", 90_000) + `"}}`
	var wg sync.WaitGroup
	var sent, tooMany atomic.Int64
	begin := time.Now()
	for range 8 {
		wg.Go(func() {
			for sent.Add(1) <= 400 && tooMany.Load() == 0 {
				if _, answer := c.ask(t, "POST", maps, body); strings.Contains(answer, "database space exceeded") {
					tooMany.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d ConfigMaps in %s", sent.Load(), time.Since(begin).Round(time.Millisecond))
	return tooMany.Load() > 0
}

// writable waits until the database takes something again: the host compacts and
// defragments it every few seconds.
func (c *class) writable(t *testing.T, maps string) {
	t.Helper()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); ; <-tick.C {
		code, answer := c.ask(t, "POST", maps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"thin-"}}`)
		if code == http.StatusCreated {
			t.Logf("writable after %s", time.Since(begin).Round(time.Millisecond))
			return
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("a minute after everything was deleted, the database takes nothing: %d %s", code, answer)
		}
	}
}

func (c *class) kube(t *testing.T, method, path, body string) int {
	code, _ := c.ask(t, method, path, body)
	return code
}

// ask sends a request with Mallory's own client and returns the code and the first
// kilobyte of the answer.
func (c *class) ask(t *testing.T, method, path, body string) (int, string) {
	req, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, c.kubeURL+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	req.Header.Set("Authorization", "Bearer "+c.kubeAuth)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.own.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	first, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, string(first)
}
