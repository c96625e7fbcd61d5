package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client calls the API. It is safe for concurrent use.
type Client struct {
	base string
	http *http.Client
}

// requestTimeout bounds each request.
const requestTimeout = time.Minute

// NewClient calls the API at a base URL through dial.
func NewClient(base string, dial func(ctx context.Context, network, address string) (net.Conn, error)) *Client {
	return &Client{strings.TrimSuffix(base, "/"), &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			DialContext: dial, MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second, ResponseHeaderTimeout: requestTimeout,
		},
	}}
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// InstanceTypes is the catalogue.
func (c *Client) InstanceTypes(ctx context.Context) (out []InstanceType, err error) {
	return out, c.call(ctx, http.MethodGet, pathTypes, nil, &out)
}

// Instances are the machines that there are.
func (c *Client) Instances(ctx context.Context) (out []Instance, err error) {
	return out, c.call(ctx, http.MethodGet, pathInstances, nil, &out)
}

// Instance is one machine; for the error see IsNotFound.
func (c *Client) Instance(ctx context.Context, id string) (out Instance, err error) {
	return out, c.call(ctx, http.MethodGet, pathInstances+"/"+url.PathEscape(id), nil, &out)
}

// Launch orders a machine; for the error see IsLimit.
func (c *Client) Launch(ctx context.Context, r LaunchRequest) (out Instance, err error) {
	return out, c.call(ctx, http.MethodPost, pathInstances, r, &out)
}

// Terminate gives a machine back; for the error see IsNotFound.
func (c *Client) Terminate(ctx context.Context, id string) error {
	return c.call(ctx, http.MethodDelete, pathInstances+"/"+url.PathEscape(id), nil, nil)
}

// IsNotFound reports that there is no such machine.
func IsNotFound(err error) bool { return hasCode(err, CodeNotFound) }

// IsLimit reports that the quota is used up.
func IsLimit(err error) bool { return hasCode(err, CodeLimit) }

func hasCode(err error, code string) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}

// IDOf is the machine's ID in a providerID; false: it is none of this cloud's.
func IDOf(providerID string) (string, bool) {
	rest, ok := strings.CutPrefix(providerID, ProviderPrefix)
	_, id, found := strings.Cut(rest, "/")
	return id, ok && found && id != ""
}

func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("cloud: %w", err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return fmt.Errorf("cloud: %w", err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("cloud: %w", err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("cloud: %s %s: %w", method, path, err)
	}
	if res.StatusCode >= 300 {
		e := &Error{}
		if json.Unmarshal(raw, e) == nil && e.Code != "" {
			return e
		}
		return fmt.Errorf("cloud: %s %s: %s", method, path, res.Status)
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("cloud: %s %s: %w", method, path, err)
	}
	return nil
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 1 << 20
