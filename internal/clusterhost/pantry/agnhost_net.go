package pantry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// agnhostConnect tries one connection and names the way in which it failed.
func agnhostConnect(ctx context.Context, a *agnhost, args []string) int {
	f := a.flags("connect")
	timeout := f.Duration("timeout", 0, "")
	protocol := f.String("protocol", "tcp", "")
	data := f.String("udp-data", "connect", "")
	f.String("sctp-data", "connect", "")
	if code, ok := a.parse(f, args); !ok {
		return code
	}
	if f.NArg() != 1 {
		fmt.Fprintln(a.Stderr, "Error: accepts 1 arg(s)")
		return 1
	}
	fail := func(format string, args ...any) int {
		fmt.Fprintf(a.Stderr, format+"\n", args...)
		return 1
	}
	if _, _, err := net.SplitHostPort(f.Arg(0)); err != nil {
		return fail("UNKNOWN: %v", err)
	}
	address, err := a.resolve(ctx, f.Arg(0))
	if err != nil {
		return fail("DNS: %v", err)
	}
	if *timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *timeout)
		defer cancel()
	}
	switch *protocol {
	case "", "tcp":
		var c net.Conn
		if c, err = a.Net.DialContext(ctx, "tcp", address); err == nil {
			c.Close()
		}
	case "udp":
		_, err = a.askUDP(ctx, address, *data+"\n")
	default:
		return fail("Unsupported protocol\n%s", *protocol)
	}
	var late net.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &late) && late.Timeout() || ctx.Err() != nil:
		return fail("TIMEOUT")
	case errors.Is(err, syscall.ECONNREFUSED):
		return fail("REFUSED")
	}
	return fail("OTHER: %v", err)
}

// nettest takes note of who writes to it.
type nettest struct {
	*agnhost
	mu    sync.Mutex
	state nettestState
}

// nettestState is what /read shows.
type nettestState struct {
	Hostname             string
	Sent, Received       map[string]int
	Errors, Log          []string
	StillContactingPeers bool
}

// maxSources bounds what nettest remembers.
const maxSources = 1000

// agnhostNettest serves the receiving side of the real program: /write takes
// note of a peer, /read shows what was noted. It contacts no peers by itself.
func agnhostNettest(ctx context.Context, a *agnhost, args []string) int {
	f := a.flags("nettest")
	port, peers := f.Int("port", 8080, ""), f.Int("peers", 8, "")
	f.String("service", "nettest", "")
	f.String("namespace", "default", "")
	delay := f.Int("delay-shutdown", 0, "")
	if code, ok := a.parse(f, args); !ok {
		return code
	}
	n := &nettest{agnhost: a, state: nettestState{Hostname: a.Hostname, Sent: map[string]int{}, Received: map[string]int{}}}
	mux := http.NewServeMux()
	mux.HandleFunc("/quit", func(http.ResponseWriter, *http.Request) { n.end(0) })
	mux.HandleFunc("/read", n.read)
	mux.HandleFunc("/write", n.write)
	mux.HandleFunc("/status", func(w http.ResponseWriter, _ *http.Request) { n.status(w, *peers) })
	address := ":" + strconv.Itoa(*port)
	srv, err := a.listenHTTP(address, mux)
	if err != nil {
		return a.fatal("listen tcp %s: bind: %s", address, listenError(err))
	}
	defer srv.stop()
	code := 2
	if *delay > 0 {
		code = 0
	}
	return a.run(ctx, time.Duration(*delay)*time.Second, code)
}

func (n *nettest) read(w http.ResponseWriter, _ *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b, err := json.MarshalIndent(n.state, "", "\t"); err == nil {
		w.Write(b)
	}
}

func (n *nettest) write(w http.ResponseWriter, r *http.Request) {
	var post struct{ Source, Dest string }
	err := json.NewDecoder(io.LimitReader(r.Body, mib)).Decode(&post)
	n.mu.Lock()
	defer n.mu.Unlock()
	_, known := n.state.Received[post.Source]
	switch {
	case len(n.state.Errors) > maxSources:
	case err != nil:
		n.state.Errors = append(n.state.Errors, err.Error())
	case post.Source == "":
		n.state.Errors = append(n.state.Errors, n.Hostname+": Got request with no source")
	case known || len(n.state.Received) < maxSources:
		n.state.Received[post.Source]++
	}
	answerJSON(w, map[string]string{"Hostname": n.Hostname})
}

func (n *nettest) status(w http.ResponseWriter, peers int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.state.Received) >= peers {
		io.WriteString(w, "pass")
	} else {
		io.WriteString(w, "fail")
	}
}
