package controlapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"

	"kubistro/internal/lab"
)

// ErrNotReady says that the API server doesn't answer yet.
var ErrNotReady = errors.New("the API server doesn't answer yet")

// Client speaks to the cluster host that runs in a folder. It keeps no state
// but idle connections; all methods may be called concurrently.
type Client struct {
	dir  string
	http *http.Client
}

// New makes a client of the cluster host in folder dir; the host need not run yet.
func New(dir string) *Client {
	sock := filepath.Join(dir, FileControl)
	return &Client{dir: dir, http: &http.Client{Transport: &http.Transport{
		DialContext:        func(ctx context.Context, _, _ string) (net.Conn, error) { return DialSocket(ctx, sock) },
		DisableCompression: true,
	}}}
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks how far the cluster is.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	return s, c.call(ctx, http.MethodGet, PathStatus, nil, &s)
}

// Access asks how to reach the API server; ErrNotReady until it answers.
func (c *Client) Access(ctx context.Context) (Access, error) {
	var a Access
	return a, c.call(ctx, http.MethodGet, PathAccess, nil, &a)
}

// Usage asks what the host process uses.
func (c *Client) Usage(ctx context.Context) (Usage, error) {
	var u Usage
	return u, c.call(ctx, http.MethodGet, PathUsage, nil, &u)
}

// Shutdown asks for the graceful stop; it returns when the host has agreed, not when it has ended.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.call(ctx, http.MethodPost, PathShutdown, nil, nil)
}

// Power powers a kitchen off or on.
func (c *Client) Power(ctx context.Context, r PowerRequest) error {
	return c.call(ctx, http.MethodPost, PathPower, r, nil)
}

// Audit streams the accepted writes with numbers above after; the channel is
// closed when the host or ctx ends. A jump in the numbers says that the reader
// was too slow and entries are gone.
func (c *Client) Audit(ctx context.Context, after uint64) (<-chan lab.AuditEntry, error) {
	resp, err := c.do(ctx, http.MethodGet, PathAudit+"?after="+strconv.FormatUint(after, 10), nil)
	if err != nil {
		return nil, err
	}
	out := make(chan lab.AuditEntry)
	go func() {
		defer close(out)
		defer resp.Body.Close()
		dec := json.NewDecoder(resp.Body)
		for {
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

// Dial opens a connection inside the cluster's network, from the street before
// the restaurant: Pod, Service and node addresses and cluster DNS names work as
// in a Pod of namespace default. A refusal is a *DialError.
func (c *Client) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := DialSocket(ctx, filepath.Join(c.dir, FileControl))
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	up, err := upgrade(conn, network, address)
	if err != nil {
		conn.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	if !stop() {
		return nil, ctx.Err()
	}
	return up, nil
}

// upgrade asks for raw bytes on conn.
func upgrade(conn net.Conn, network, address string) (net.Conn, error) {
	q := url.Values{"network": {network}, "address": {address}}
	req, err := http.NewRequest(http.MethodGet, "http://host"+PathDial+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", DialProtocol)
	if err := req.Write(conn); err != nil {
		return nil, fmt.Errorf("ask the cluster host: %w", err)
	}
	br := bufio.NewReader(conn)
	resp, err := http.ReadResponse(br, req)
	if err != nil {
		return nil, fmt.Errorf("answer of the cluster host: %w", err)
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		defer resp.Body.Close()
		var de DialError
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
		if json.Unmarshal(b, &de) == nil && de.Kind != "" {
			return nil, &de
		}
		return nil, fmt.Errorf("cluster host: %s: %s", resp.Status, bytes.TrimSpace(b))
	}
	return &upgraded{Conn: conn, r: br}, nil
}

// upgraded is a connection whose first bytes may sit in the HTTP reader.
type upgraded struct {
	net.Conn
	r *bufio.Reader
}

func (u *upgraded) Read(b []byte) (int, error) { return u.r.Read(b) }

// CloseWrite ends the sending direction.
func (u *upgraded) CloseWrite() error {
	if c, ok := u.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return nil
}

func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	resp, err := c.do(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		return err
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("cluster host, %s: %w", path, err)
	}
	return nil
}

// do sends a request; the caller closes the body of a good response.
func (c *Client) do(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://host"+path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusServiceUnavailable {
		return nil, ErrNotReady
	}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	return nil, refused(method, path, resp, bytes.TrimSpace(b))
}
