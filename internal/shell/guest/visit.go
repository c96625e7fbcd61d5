package guest

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// visit is what came of one request.
type visit struct {
	code    int
	failure string // a kind, "" when there was an answer
	took    time.Duration
	by      string // who answered; "" when the answer doesn't say
	body    []byte
}

// Kinds of failures.
const (
	failName     = "name"
	failRefused  = "refused"
	failTimeout  = "timeout"
	failNoRoute  = "no-route"
	failReset    = "reset"
	failClosed   = "closed"
	failTLS      = "tls"
	failBusy     = "busy"
	failUnknown  = "other"
	failCanceled = "canceled" // the command was ended; not counted
)

// visit makes one request and reads the answer; keep bounds what is kept of the body.
func (g *guest) visit(ctx context.Context, tr http.RoundTripper, keep int) visit {
	ctx, cancel := context.WithTimeout(ctx, g.plan.patience)
	defer cancel()
	start := time.Now()
	v := visit{}
	req, err := http.NewRequestWithContext(ctx, g.plan.method, g.plan.url.String(), nil)
	if err != nil {
		v.failure = failUnknown
		return v
	}
	req.Header = g.plan.header.Clone()
	if g.plan.host != "" {
		req.Host = g.plan.host
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "guest")
	}
	res, err := tr.RoundTrip(req)
	if err == nil {
		defer res.Body.Close()
		v.code = res.StatusCode
		v.body, err = io.ReadAll(io.LimitReader(res.Body, int64(keep)))
		if err == nil {
			_, err = io.CopyN(io.Discard, res.Body, maxRead)
		}
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			err = nil
		}
	}
	v.took = time.Since(start)
	if err != nil {
		v.code, v.failure = 0, failure(ctx, err)
		return v
	}
	v.by = Answerer(res.Header, v.body)
	return v
}

// failure sorts an error.
func failure(ctx context.Context, err error) string {
	var dns *net.DNSError
	var timeout net.Error
	var record tls.RecordHeaderError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return failCanceled
	case errors.As(err, &dns) && dns.IsNotFound:
		return failName
	case errors.Is(err, syscall.ECONNREFUSED):
		return failRefused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return failNoRoute
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return failTimeout
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return failReset
	case errors.As(err, &record), errors.As(err, &cert):
		return failTLS
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return failClosed
	case strings.Contains(err.Error(), "too many connections"):
		return failBusy
	}
	return failUnknown
}

// failureText is a failure in words.
func (g *guest) failureText(kind string) string {
	switch kind {
	case failName:
		return g.say("找不到這個名字的地方", "nobody in the street knows that name")
	case failRefused:
		return g.say("連線被拒絕：那個門沒有人在", "connection refused: nobody is at that door")
	case failNoRoute:
		return g.say("從街上到不了這個位址（ClusterIP 和 Pod 的位址只在叢集裡面有用）", "no way there from the street (ClusterIPs and Pod addresses work inside of the cluster only)")
	case failTimeout:
		return g.say("等太久，客人走了", "waited too long and left")
	case failReset:
		return g.say("連線中途被切斷", "the connection was cut")
	case failClosed:
		return g.say("沒有回答就掛掉了", "the connection ended without an answer")
	case failTLS:
		return g.say("憑證不能信任，或對方不說 TLS", "the certificate can't be trusted, or the other end doesn't speak TLS")
	case failBusy:
		return g.say("同時太多連線了", "too many connections at once")
	}
	return g.say("失敗", "failed")
}

// Who answered, in the words of whoami, grill-cook and others that name themselves.
var names = []*regexp.Regexp{
	regexp.MustCompile(`(?m)^Hostname: ([\w.-]+)\s*$`),
	regexp.MustCompile(`(?m)^Dish \d+ by ([\w.-]+),`),
	regexp.MustCompile(`"(?:hostname|cook)":\s*"([\w.-]+)"`),
	regexp.MustCompile(`(?m)^Server name: ([\w.-]+)\s*$`),
}

// Answerer finds who answered in the headers and body of a response; empty when it doesn't say.
func Answerer(h http.Header, body []byte) string {
	for _, name := range []string{"X-Served-By", "X-Hostname", "X-Cook"} {
		if v := h.Get(name); v != "" && len(v) <= 253 {
			return v
		}
	}
	for _, re := range names {
		if m := re.FindSubmatch(body); m != nil && len(m[1]) <= 253 {
			return string(m[1])
		}
	}
	return ""
}
