package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"kubistro/internal/checker"
	"kubistro/internal/lab"
	"kubistro/internal/shell/guest"
)

const (
	requestTimeout = 2 * time.Second
	requestBody    = 64 << 10
)

// Request is part of checker.Cluster.
func (w *world) Request(ctx context.Context, q checker.Request) (checker.Response, error) {
	if w.r == nil {
		return checker.Response{}, errNoCluster
	}
	network, err := w.network(ctx, q)
	if err != nil {
		return checker.Response{}, err
	}
	return w.r.request(ctx, network, q)
}

// network is that of instance.Dial for where a request comes from; empty: as it is.
func (w *world) network(ctx context.Context, q checker.Request) (string, error) {
	if q.From == "" || q.From == checker.FromStreet {
		return q.From, nil
	}
	namespace := q.Namespace
	if namespace == "" {
		namespace = "default"
	}
	kind, which, _ := strings.Cut(q.From, "/")
	var pods []map[string]any
	if kind == "pods" {
		list, err := w.List(ctx, "Pod", namespace, which)
		if err != nil {
			return "", err
		}
		pods = list
	} else {
		p, err := w.Get(ctx, "Pod", namespace, which)
		if err != nil {
			return "", err
		}
		if p != nil {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b map[string]any) int { return strings.Compare(podName(a), podName(b)) })
	for _, p := range pods {
		status, _ := p["status"].(map[string]any)
		if ip, _ := status["podIP"].(string); ip != "" && checker.PodStatus(p) == "Running" {
			return "from:" + ip, nil
		}
	}
	return "", lab.Fail(lab.CodeUnavailable, "現在沒有可以發出請求的 Pod（"+q.From+"）。", "There is no running Pod to ask from ("+q.From+").")
}

func podName(p map[string]any) string {
	meta, _ := p["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	return name
}

// request sends one request through the cluster's network.
func (r *running) request(ctx context.Context, network string, q checker.Request) (checker.Response, error) {
	timeout, method := q.Timeout, q.Method
	if timeout == 0 {
		timeout = requestTimeout
	}
	if method == "" {
		method = http.MethodGet
	}
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, q.URL, strings.NewReader(q.Body))
	if err != nil {
		return checker.Response{}, fmt.Errorf("request: %w", err)
	}
	for k, v := range q.Headers {
		if strings.EqualFold(k, "Host") {
			req.Host = v
			continue
		}
		req.Header.Set(k, v)
	}
	client := &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, tcp, address string) (net.Conn, error) {
				if network != "" {
					tcp = network
				}
				return r.instance.Dial(ctx, tcp, address)
			},
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	began := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		return r.failure(parent, ctx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, requestBody))
	if err != nil {
		return r.failure(parent, ctx, err)
	}
	out := checker.Response{
		Code: resp.StatusCode, Body: string(body), Headers: map[string]string{},
		By: guest.Answerer(resp.Header, body), Took: time.Since(began),
	}
	for k, v := range resp.Header {
		out.Headers[k] = v[0]
	}
	return out, nil
}

// failure tells what a guest would have seen apart from what the lab couldn't do.
func (r *running) failure(parent, ctx context.Context, err error) (checker.Response, error) {
	select {
	case <-r.instance.Lost():
		return checker.Response{}, errNoCluster.Because(err)
	default:
	}
	var dns *net.DNSError
	var netErr net.Error
	switch {
	case parent.Err() != nil:
		return checker.Response{}, errNoCluster.Because(err)
	case errors.As(err, &dns) && !dns.IsTimeout:
		return checker.Response{Failure: "no such host"}, nil
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return checker.Response{Failure: "no route"}, nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return checker.Response{Failure: "refused"}, nil
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return checker.Response{Failure: "reset"}, nil
	case ctx.Err() != nil, errors.As(err, &netErr) && netErr.Timeout():
		return checker.Response{Failure: "timeout"}, nil
	}
	return checker.Response{Failure: "failed"}, nil
}
