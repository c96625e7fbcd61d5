package shell

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func headerText(resp *http.Response) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP/%d.%d %s\r\n", resp.ProtoMajor, resp.ProtoMinor, resp.Status)
	for _, k := range sortedKeys(resp.Header) {
		for _, v := range resp.Header[k] {
			fmt.Fprintf(&b, "%s: %s\r\n", k, v)
		}
	}
	if resp.Header.Get("Content-Length") == "" && resp.ContentLength >= 0 {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", resp.ContentLength)
	}
	return b.String() + "\r\n"
}

// curlError turns a failure into curl's message and exit code.
func (e Env) curlError(ctx context.Context, o curlOptions, u *url.URL, err error, start time.Time) int {
	code := e.curlFailure(ctx, o, u, err, start)
	if o.writeOut != "" && code != 130 { // as curl does: %{http_code} is then 000
		io.WriteString(e.Out, writeOut(o.writeOut, &http.Response{Header: http.Header{}}, u, 0, 0, time.Since(start), 0, "", code))
	}
	return code
}

func (e Env) curlFailure(ctx context.Context, o curlOptions, u *url.URL, err error, start time.Time) int {
	ms := time.Since(start).Milliseconds()
	var dns *net.DNSError
	var d *dialFailure
	var timeout net.Error
	var cert *tls.CertificateVerificationError
	timedOut := errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout()
	switch {
	case errors.As(err, &dns) && !timedOut:
		return e.curlFail(o, curlNoHost, "Could not resolve host: "+u.Hostname())
	case timedOut && (errors.As(err, &d) || !o.connected.Load()):
		if ctx.Err() == nil && o.connect < 75*time.Second || ctx.Err() != nil {
			return e.curlFail(o, curlTimeout, fmt.Sprintf("Connection timed out after %d milliseconds", ms))
		}
		return e.curlFail(o, curlTimeout, fmt.Sprintf("Failed to connect to %s port %s after %d ms: Could not connect to server", u.Hostname(), portOf(u), ms))
	case timedOut:
		return e.curlFail(o, curlTimeout, fmt.Sprintf("Operation timed out after %d milliseconds with 0 bytes received", ms))
	case ctx.Err() != nil:
		return 130
	case errors.As(err, &d):
		return e.curlFail(o, curlNoConnect, fmt.Sprintf("Failed to connect to %s port %s after %d ms: Could not connect to server", u.Hostname(), portOf(u), ms))
	case errors.As(err, &cert):
		return e.curlFail(o, curlBadCert, "SSL certificate problem: unable to get local issuer certificate")
	case errors.Is(err, syscall.ECONNRESET):
		return e.curlFail(o, curlRecv, "Recv failure: Connection reset by peer")
	case u.Scheme == "https" && strings.Contains(err.Error(), "tls"):
		return e.curlFail(o, curlTLS, "TLS connect error: "+strings.TrimPrefix(err.Error(), "tls: "))
	case errors.Is(err, io.EOF), strings.Contains(err.Error(), "EOF"), strings.Contains(err.Error(), "closed"):
		return e.curlFail(o, curlEmpty, "Empty reply from server")
	}
	return e.curlFail(o, curlRecv, err.Error())
}

func (e Env) curlReceive(ctx context.Context, o curlOptions, resp *http.Response, u *url.URL, start time.Time, redirects int, remote string) int {
	defer resp.Body.Close()
	first := time.Since(start)
	code := 0
	var n int64
	if o.fail && resp.StatusCode >= 400 {
		code = e.curlFail(o, curlHTTPFailed, fmt.Sprintf("The requested URL returned error: %d", resp.StatusCode))
	} else {
		w := e.Out
		name := o.output
		if o.remoteName {
			if name = path.Base(u.Path); name == "/" || name == "." {
				name = "curl_response"
			}
		}
		if name != "" && name != "-" {
			f, err := e.FS.OpenFile(abs(e.Dir, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
			if err != nil {
				return e.curlFail(o, curlWrite, fmt.Sprintf("Failure writing output to destination: %s: %s", name, errText(err)))
			}
			defer f.Close()
			w = f
		}
		if o.include || o.head {
			io.WriteString(w, headerText(resp))
		}
		counter := &countWriter{w: w}
		err := copyTo(ctx, counter, resp.Body)
		n = counter.n
		switch {
		case err == nil:
		case ctx.Err() != nil && o.max > 0:
			return e.curlFail(o, curlTimeout, fmt.Sprintf("Operation timed out after %d milliseconds with %d bytes received", time.Since(start).Milliseconds(), n))
		case ctx.Err() != nil:
			return 130
		case counter.err != nil:
			return e.curlFail(o, curlWrite, "Failure writing output to destination: "+errText(counter.err))
		default:
			return e.curlFail(o, curlRecv, "Recv failure: Connection reset by peer")
		}
	}
	if o.writeOut != "" {
		io.WriteString(e.Out, writeOut(o.writeOut, resp, u, n, first, time.Since(start), redirects, remote, code))
	}
	return code
}

type countWriter struct {
	w   io.Writer
	n   int64
	err error
}

func writeOut(format string, resp *http.Response, u *url.URL, n int64, first, total time.Duration, redirects int, remote string, exit int) string {
	ip, port, _ := net.SplitHostPort(remote)
	return strings.NewReplacer(
		"%{http_code}", fmt.Sprintf("%03d", resp.StatusCode), "%{response_code}", fmt.Sprintf("%03d", resp.StatusCode),
		"%{size_download}", strconv.FormatInt(n, 10), "%{time_total}", fmt.Sprintf("%.6f", total.Seconds()), "%{time_starttransfer}", fmt.Sprintf("%.6f", first.Seconds()),
		"%{time_connect}", fmt.Sprintf("%.6f", first.Seconds()), "%{content_type}", resp.Header.Get("Content-Type"), "%{url_effective}", u.String(), "%{num_redirects}", strconv.Itoa(redirects),
		"%{remote_ip}", ip, "%{remote_port}", port, "%{redirect_url}", resp.Header.Get("Location"), "%{http_version}", "1.1", "%{exitcode}", strconv.Itoa(exit), "%{errormsg}", "",
		`\n`, "\n", `\t`, "\t", `\r`, "\r", "%%", "%",
	).Replace(format)
}
