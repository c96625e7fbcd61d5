package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"syscall"

	"kubistro/internal/lab"
)

// Client speaks to an agent over its output and input. It is safe for concurrent use.
type Client struct {
	transport *http.Transport
	conn      *stdio
	ended     chan struct{}
}

// NewClient makes the client of a running agent. Close, or the end of the agent's
// output, ends it; closeAll is then called once and has to end the agent.
func NewClient(out io.Reader, in io.Writer, closeAll func() error) *Client {
	c := &Client{ended: make(chan struct{})}
	end := sync.OnceFunc(func() { close(c.ended) })
	c.conn = &stdio{Reader: endingReader{out, end}, Writer: in, close: func() error { end(); return closeAll() }}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	only := make(chan net.Conn, 1)
	only <- c.conn
	c.transport = &http.Transport{
		Protocols: &protocols, DisableCompression: true,
		HTTP2: &http.HTTP2Config{StrictMaxConcurrentRequests: true},
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			select {
			case conn := <-only:
				return conn, nil
			default:
				return nil, net.ErrClosed
			}
		},
	}
	return c
}

// Ended is closed when the agent has ended.
func (c *Client) Ended() <-chan struct{} { return c.ended }

// Close ends the agent.
func (c *Client) Close() error {
	err := c.conn.Close()
	c.transport.CloseIdleConnections()
	return err
}

// Ready waits until the agent answers.
func (c *Client) Ready(ctx context.Context) error {
	resp, err := c.do(ctx, http.MethodGet, pathReady, nil, nil)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Audit streams the writes that the API server accepted, from the one after a
// number on; the channel is closed when the agent or ctx ends.
func (c *Client) Audit(ctx context.Context, after uint64) (<-chan lab.AuditEntry, error) {
	resp, err := c.do(ctx, http.MethodGet, pathAudit, url.Values{"after": {strconv.FormatUint(after, 10)}}, nil)
	if err != nil {
		return nil, err
	}
	out := make(chan lab.AuditEntry)
	go func() {
		defer close(out)
		defer resp.Body.Close()
		for dec := json.NewDecoder(resp.Body); ; {
			var e lab.AuditEntry
			if dec.Decode(&e) != nil {
				return
			}
			select {
			case out <- e:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// Dial opens a connection in the cluster's network. Its errors are those of a
// real network: ECONNREFUSED, EHOSTUNREACH, a timeout, *net.DNSError.
func (c *Client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	fail := func(err error) error {
		return &net.OpError{Op: "dial", Net: network, Addr: endpoint{network, address}, Err: err}
	}
	body, send := io.Pipe()
	open, cancel := context.WithCancel(context.Background()) // the connection outlives ctx
	stop := context.AfterFunc(ctx, cancel)
	resp, err := c.do(open, http.MethodPost, pathDial, url.Values{"network": {network}, "address": {address}}, body)
	if !stop() && err == nil {
		resp.Body.Close()
		err = ctx.Err()
	}
	if err == nil {
		return newStream(network, endpoint{network, address}, send, resp.Body, cancel), nil
	}
	cancel()
	var refused *refusal
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded): // silence, as seen from here
		return nil, fail(os.ErrDeadlineExceeded)
	case ctx.Err() != nil:
		return nil, fail(ctx.Err())
	case !errors.As(err, &refused):
		return nil, fail(err)
	}
	switch refused.Kind {
	case kindRefused:
		err = os.NewSyscallError("connect", syscall.ECONNREFUSED)
	case kindUnreachable:
		err = os.NewSyscallError("connect", syscall.EHOSTUNREACH)
	case kindTimeout:
		err = os.ErrDeadlineExceeded
	case kindName:
		host, _, _ := net.SplitHostPort(address) // the agent has split it, too
		err = &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return nil, fail(err)
}

// refusal is a dial that the agent reports as failed.
type refusal struct{ failure }

func (r *refusal) Error() string { return r.Message }

func (c *Client) do(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://agent"+path+"?"+query.Encode(), body)
	if err != nil {
		return nil, err
	}
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return nil, fmt.Errorf("node agent: %w", err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	var r refusal
	if err == nil && json.Unmarshal(b, &r.failure) == nil && r.Kind != "" {
		return nil, &r
	}
	return nil, fmt.Errorf("node agent: %s: %s", resp.Status, b)
}

// endpoint is an address as it was asked for.
type endpoint struct{ network, address string }

func (e endpoint) Network() string { return e.network }
func (e endpoint) String() string  { return e.address }
