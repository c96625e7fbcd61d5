package shell

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Exit codes of curl.
const (
	curlUsage      = 2
	curlBadURL     = 3
	curlNoHost     = 6
	curlNoConnect  = 7
	curlHTTPFailed = 22
	curlWrite      = 23
	curlTimeout    = 28
	curlTLS        = 35
	curlRedirects  = 47
	curlEmpty      = 52
	curlRecv       = 56
	curlBadCert    = 60
	curlBadCAFile  = 77
	curlScheme     = 1
)

type curlOptions struct {
	method, output, writeOut, user, agent, cookie string
	headers                                       []string
	data                                          []string
	caCert                                        string
	get, silent, showError, include, head         bool
	verbose, fail, location, insecure, remoteName bool
	max, connect                                  time.Duration
	retry                                         int
	resolve                                       map[string]string
	connected                                     *atomic.Bool // of the transfer that runs
}

func curl(ctx context.Context, env Env, args []string) int {
	opts, urls, err := getopt(args[1:], "o:OsSiIvw:H:d:X:Lkm:fu:A:b:GNgq46#", map[string]string{
		"output:": "o", "remote-name": "O", "silent": "s", "show-error": "S", "include": "i", "head": "I", "verbose": "v", "write-out:": "w", "header:": "H",
		"data:": "d", "data-raw:": "R", "data-ascii:": "d", "data-binary:": "B", "data-urlencode:": "U", "json:": "J", "request:": "X", "location": "L", "insecure": "k",
		"max-time:": "m", "connect-timeout:": "C", "fail": "f", "fail-with-body": "f", "user:": "u", "user-agent:": "A", "cookie:": "b", "get": "G", "no-buffer": "N", "globoff": "g",
		"resolve:": "r", "retry:": "Y", "retry-delay:": "-", "retry-all-errors": "-", "retry-connrefused": "-", "compressed": "-", "http1.1": "-", "no-progress-meter": "s", "url:": "z", "version": "V", "max-redirs:": "-", "progress-bar": "-", "ipv4": "-", "noproxy:": "-", "no-keepalive": "-", "interface:": "-", "help": "?", "cacert:": "E", "oauth2-bearer:": "T",
	})
	if err != nil {
		fmt.Fprintf(env.Err, "curl: %v\ncurl: try 'curl --help' for more information\n", err)
		return curlUsage
	}
	o := curlOptions{agent: "curl/8.14.1", connect: 75 * time.Second, resolve: map[string]string{}}
	for _, f := range opts {
		switch f.name {
		case "o":
			o.output = f.value
		case "O":
			o.remoteName = true
		case "s":
			o.silent = true
		case "S":
			o.showError = true
		case "i":
			o.include = true
		case "I":
			o.head = true
		case "v":
			o.verbose = true
		case "w":
			o.writeOut = f.value
		case "H":
			o.headers = append(o.headers, f.value)
		case "d", "R", "B", "U", "J":
			d, err := curlData(env, f)
			if err != nil {
				return env.curlFail(o, curlUsage, err.Error())
			}
			o.data = append(o.data, d)
			if f.name == "J" {
				o.headers = append(o.headers, "Content-Type: application/json", "Accept: application/json")
			}
		case "X":
			o.method = f.value
		case "L":
			o.location = true
		case "k":
			o.insecure = true
		case "m", "C":
			d, err := strconv.ParseFloat(f.value, 64)
			if err != nil || d < 0 {
				return env.curlFail(o, curlUsage, "expected a proper numerical parameter")
			}
			t := time.Duration(min(d, 1e6) * float64(time.Second))
			if f.name == "m" {
				o.max = t
			} else {
				o.connect = t
			}
		case "E":
			o.caCert = f.value
		case "T":
			o.headers = append([]string{"Authorization: Bearer " + f.value}, o.headers...)
		case "f":
			o.fail = true
		case "u":
			o.user = f.value
		case "A":
			o.agent = f.value
		case "b":
			o.cookie = f.value
		case "G":
			o.get = true
		case "Y":
			o.retry, _ = strconv.Atoi(f.value)
			o.retry = min(o.retry, 20)
		case "r":
			host, addr, ok := cutResolve(f.value)
			if !ok {
				return env.curlFail(o, curlUsage, "couldn't parse --resolve entry '"+f.value+"'")
			}
			o.resolve[host] = addr
		case "z":
			urls = append(urls, f.value)
		case "V":
			fmt.Fprintln(env.Out, "curl 8.14.1 (kubistro) HTTP over the cluster's network\nProtocols: http https")
			return 0
		}
	}
	if len(urls) == 0 {
		fmt.Fprintln(env.Err, "curl: (2) no URL specified\ncurl: try 'curl --help' for more information")
		return curlUsage
	}
	code := 0
	for _, u := range urls {
		for try := 0; ; try++ {
			if code = env.curlOne(ctx, o, u); code == 0 || try >= o.retry || ctx.Err() != nil || code == curlUsage || code == curlBadURL {
				break
			}
			if !wait(ctx, min(time.Second<<try, 30*time.Second)) {
				break
			}
		}
	}
	if ctx.Err() != nil {
		return 130
	}
	return code
}

func cutResolve(s string) (host, addr string, ok bool) {
	parts := strings.SplitN(s, ":", 3)
	if len(parts) != 3 {
		return "", "", false
	}
	return parts[0] + ":" + parts[1], strings.Trim(parts[2], "[]"), true
}

func curlData(env Env, f option) (string, error) {
	v := f.value
	if f.name == "U" {
		if name, val, ok := strings.Cut(v, "="); ok {
			return name + "=" + url.QueryEscape(val), nil
		}
		return url.QueryEscape(v), nil
	}
	if file, ok := strings.CutPrefix(v, "@"); ok && f.name != "R" {
		var b []byte
		var err error
		if file == "-" {
			b, err = io.ReadAll(io.LimitReader(env.In, maxHeld))
		} else {
			b, err = readFile(env.FS, abs(env.Dir, file), maxHeld)
		}
		if err != nil {
			return "", fmt.Errorf("Failed to open %s", file)
		}
		if f.name == "d" {
			b = bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\n"), nil), []byte("\r"), nil)
		}
		return string(b), nil
	}
	return v, nil
}

func (e Env) curlFail(o curlOptions, code int, msg string) int {
	if !o.silent || o.showError {
		fmt.Fprintf(e.Err, "curl: (%d) %s\n", code, msg)
	}
	return code
}

func (e Env) curlOne(ctx context.Context, o curlOptions, target string) int {
	if !strings.Contains(target, "://") {
		target = "http://" + target
	}
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return e.curlFail(o, curlBadURL, "URL rejected: Malformed input to a URL function")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return e.curlFail(o, curlScheme, fmt.Sprintf("Protocol %q not supported or disabled in libcurl", u.Scheme))
	}
	if o.max > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.max)
		defer cancel()
	}
	body := strings.Join(o.data, "&")
	if o.get && len(o.data) > 0 {
		if u.RawQuery != "" {
			body = u.RawQuery + "&" + body
		}
		u.RawQuery, body = body, ""
	}
	method := o.method
	switch {
	case method != "":
	case o.head:
		method = "HEAD"
	case len(o.data) > 0 && !o.get:
		method = "POST"
	default:
		method = "GET"
	}
	start := time.Now()
	var remote string
	o.connected = new(atomic.Bool)
	security := &tls.Config{InsecureSkipVerify: o.insecure}
	if o.caCert != "" && !o.insecure {
		pem, err := readFile(e.FS, abs(e.Dir, o.caCert), maxHeld)
		roots := x509.NewCertPool()
		if err != nil || !roots.AppendCertsFromPEM(pem) {
			return e.curlFail(o, curlBadCAFile, "error adding trust anchors from file: "+o.caCert)
		}
		security.RootCAs = roots
	}
	transport := &http.Transport{
		DisableCompression: true, DisableKeepAlives: true, MaxResponseHeaderBytes: 256 << 10,
		TLSClientConfig: security,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if ip, ok := o.resolve[addr]; ok {
				_, port, _ := net.SplitHostPort(addr)
				addr = net.JoinHostPort(ip, port)
			}
			if e.Net.Dial == nil {
				return nil, errors.New("no network")
			}
			ctx, cancel := context.WithTimeout(ctx, o.connect)
			defer cancel()
			c, err := e.Net.Dial(ctx, network, addr)
			if err != nil {
				return nil, &dialFailure{err}
			}
			o.connected.Store(true)
			if a := c.RemoteAddr(); a != nil {
				remote = a.String()
			}
			if o.verbose {
				fmt.Fprintf(e.Err, "* Connected to %s (%s) port %s\n", u.Hostname(), remote, portOf(u))
			}
			return c, nil
		},
	}
	defer transport.CloseIdleConnections()
	for redirects := 0; ; redirects++ {
		resp, code := e.curlSend(ctx, o, transport, method, u, body, start)
		if resp == nil {
			return code
		}
		location := resp.Header.Get("Location")
		if !o.location || location == "" || resp.StatusCode < 300 || resp.StatusCode > 399 {
			return e.curlReceive(ctx, o, resp, u, start, redirects, remote)
		}
		if redirects >= 50 {
			resp.Body.Close()
			return e.curlFail(o, curlRedirects, "Maximum (50) redirects followed")
		}
		if o.include || o.head {
			fmt.Fprint(e.Out, headerText(resp))
		}
		resp.Body.Close()
		next, err := u.Parse(location)
		if err != nil || next.Scheme != "http" && next.Scheme != "https" {
			return e.curlFail(o, curlBadURL, "URL rejected: Malformed input to a URL function")
		}
		if resp.StatusCode < 307 && method != "HEAD" && o.method == "" {
			method, body = "GET", ""
		}
		u = next
	}
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

type dialFailure struct{ err error }

func (d *dialFailure) Error() string { return d.err.Error() }

func (d *dialFailure) Unwrap() error { return d.err }

func (e Env) curlSend(ctx context.Context, o curlOptions, transport *http.Transport, method string, u *url.URL, body string, start time.Time) (*http.Response, int) {
	req, err := http.NewRequestWithContext(ctx, method, u.String(), strings.NewReader(body))
	if err != nil {
		return nil, e.curlFail(o, curlBadURL, "URL rejected: Malformed input to a URL function")
	}
	if body == "" {
		req.Body, req.ContentLength = nil, 0
	}
	req.Header.Set("User-Agent", o.agent)
	req.Header.Set("Accept", "*/*")
	if body != "" && method != "GET" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if o.user != "" {
		req.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(o.user)))
	}
	if o.cookie != "" {
		req.Header.Set("Cookie", o.cookie)
	}
	for _, h := range o.headers {
		name, v, ok := strings.Cut(h, ":")
		v = strings.TrimSpace(v)
		switch {
		case !ok:
		case strings.EqualFold(name, "Host"):
			req.Host = v
		case v == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, v)
		}
	}
	if o.verbose {
		var b strings.Builder
		fmt.Fprintf(&b, "> %s %s HTTP/1.1\n> Host: %s\n", method, u.RequestURI(), pick(req.Host != "", req.Host, u.Host))
		for _, k := range sortedKeys(req.Header) {
			fmt.Fprintf(&b, "> %s: %s\n", k, strings.Join(req.Header[k], ", "))
		}
		fmt.Fprintf(e.Err, "%s> \n", b.String())
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, e.curlError(ctx, o, u, err, start)
	}
	if o.verbose {
		for _, l := range strings.Split(strings.TrimRight(headerText(resp), "\r\n"), "\r\n") {
			fmt.Fprintf(e.Err, "< %s\n", l)
		}
		fmt.Fprintln(e.Err, "< ")
	}
	return resp, 0
}

func (c *countWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	c.err = err
	return n, err
}
