package pantry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// helloCPU is about what a small program's answer costs.
const helloCPU = 200 * time.Microsecond

// web runs a server on an address until the container is told to end. An answer costs
// CPU time, so that it comes later where that is scarce.
func (p *Process) web(ctx context.Context, address string, h http.HandlerFunc, started string) int {
	srv, err := p.listenHTTP(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.Usage.Work(r.Context(), helloCPU) == nil {
			h(w, r)
		}
	}))
	if err != nil {
		fmt.Fprintf(p.Stderr, "listen tcp %s: bind: %s\n", address, listenError(err))
		return 1
	}
	defer srv.stop()
	if started != "" {
		fmt.Fprintln(p.Stdout, started)
	}
	if _, ok := p.terminated(ctx); !ok {
		return exitSigkill
	}
	return 2 // what Go programs without a handler exit with
}

// port is PORT, or another one where that isn't set.
func (p *Process) port(otherwise string) string {
	if port := p.Getenv("PORT"); port != "" {
		return port
	}
	return otherwise
}

// helloProgram is hello-app of a version.
func helloProgram(version string) Program {
	return func(ctx context.Context, p *Process) int {
		port, out := p.port("8080"), &lineWriter{w: p.Stderr}
		stamp := func() string { return p.Clock.Now().UTC().Format("2006/01/02 15:04:05") }
		out.printf("%s Server listening on port %s", stamp(), port)
		return p.web(ctx, ":"+port, func(w http.ResponseWriter, r *http.Request) {
			out.printf("%s Serving request: %s", stamp(), r.URL.Path)
			fmt.Fprintf(w, "Hello, world!\nVersion: %s\nHostname: %s\n", version, p.Hostname)
		}, "")
	}
}

// bootcampProgram is the application of the Kubernetes Basics tutorial.
func bootcampProgram(version string) Program {
	return func(ctx context.Context, p *Process) int {
		out, began := &lineWriter{w: p.Stdout}, p.Clock.Now()
		var requests atomic.Int64
		out.printf("Kubernetes Bootcamp App Started At: %s | Running On:  %s \n", began.UTC().Format("2006-01-02T15:04:05.000Z"), p.Hostname)
		return p.web(ctx, ":8080", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "Hello Kubernetes bootcamp! | Running on: %s | v=%s\n", p.Hostname, version)
			now := p.Clock.Now()
			out.printf("Running On: %s | Total Requests: %d | App Uptime: %.3f seconds | Log Time: %s",
				p.Hostname, requests.Add(1), now.Sub(began).Seconds(), now.UTC().Format("2006-01-02T15:04:05.000Z"))
		}, "")
	}
}

func nodeHelloProgram(ctx context.Context, p *Process) int {
	return p.web(ctx, ":8080", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "Hello Kubernetes!") }, "")
}

func helloBackend(ctx context.Context, p *Process) int {
	return p.web(ctx, ":80", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, `{"message":"Hello"}`+"\n") }, "")
}

// helloFrontend is nginx that passes everything on to the Service hello. As nginx does,
// it looks its backend up at the start only, and doesn't start when there is none.
func helloFrontend(ctx context.Context, p *Process) int {
	n := &nginx{p: p, version: "1.14.1", access: &lineWriter{w: p.Stdout}, errors: &lineWriter{w: p.Stderr}}
	ips, err := p.Net.LookupHost(ctx, "hello")
	if err != nil || len(ips) == 0 {
		n.notice("emerg", `host not found in upstream "hello" in /etc/nginx/conf.d/frontend.conf:2`)
		return 1
	}
	transport := &http.Transport{DialContext: p.Net.DialContext, DisableCompression: true, MaxIdleConns: 16, IdleConnTimeout: time.Minute}
	defer transport.CloseIdleConnections()
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: ips[0].String()})
	proxy.Transport, proxy.ErrorLog = transport, log.New(io.Discard, "", 0)
	proxy.ErrorHandler = func(w http.ResponseWriter, r *http.Request, err error) {
		sw := &statusWriter{ResponseWriter: w}
		if errors.Is(err, context.Canceled) {
			return
		}
		n.failed(r, n.requests.Add(1), "connect() failed while connecting to upstream")
		n.page(sw, http.StatusBadGateway, "Bad Gateway")
	}
	srv, err := p.listenHTTP(":80", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.Usage.Work(r.Context(), nginxRequest) == nil {
			proxy.ServeHTTP(w, r)
		}
	}))
	if err != nil {
		n.notice("emerg", "bind() to 0.0.0.0:80 failed (98: Address already in use)")
		return 1
	}
	defer srv.stop()
	if _, ok := p.terminated(ctx); !ok {
		return exitSigkill
	}
	return 0
}

// httpEchoProgram is hashicorp/http-echo: -text on -listen.
func httpEchoProgram(ctx context.Context, p *Process) int {
	text, listen, status := p.Getenv("ECHO_TEXT"), ":5678", http.StatusOK
	args := p.Args[1:]
	for k := 0; k < len(args); k++ {
		name, value, given := strings.Cut(strings.TrimLeft(args[k], "-"), "=")
		if !given {
			if k++; k < len(args) {
				value = args[k]
			}
		}
		switch name {
		case "text":
			text = value
		case "listen":
			listen = value
		case "status-code":
			var err error
			if status, err = strconv.Atoi(value); err != nil || status < 200 || status > 599 {
				fmt.Fprintf(p.Stderr, "invalid value %q for flag -status-code\n", value)
				return 2
			}
		default:
			fmt.Fprintf(p.Stderr, "flag provided but not defined: -%s\n", name)
			return 2
		}
	}
	if text == "" {
		fmt.Fprintln(p.Stderr, "Missing -text option!")
		return 127
	}
	return p.web(ctx, listen, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-App-Name", "http-echo")
		w.WriteHeader(status)
		fmt.Fprintln(w, text)
	}, p.Clock.Now().UTC().Format("2006/01/02 15:04:05")+" [INFO] server is listening on "+listen)
}

// echoServerProgram answers the request that it got, and who served it.
func echoServerProgram(ctx context.Context, p *Process) int {
	port, out := p.port("8080"), &lineWriter{w: p.Stdout}
	return p.web(ctx, ":"+port, func(w http.ResponseWriter, r *http.Request) {
		out.printf("%s | %s %s", r.RemoteAddr, r.Method, logSafe(r.URL.RequestURI()))
		fmt.Fprintf(w, "Request served by %s\n\n%s %s %s\n\nHost: %s\n", p.Hostname, r.Proto, r.Method, r.URL.RequestURI(), r.Host)
		for _, name := range sortedNames(r.Header) {
			fmt.Fprintf(w, "%s: %s\n", name, strings.Join(r.Header[name], ", "))
		}
		io.WriteString(w, "\n")
		io.Copy(w, io.LimitReader(r.Body, maxEcho))
	}, "Echo server listening on port "+port+".")
}

// clientValuesProgram is the echoserver of Kubernetes' own examples.
func clientValuesProgram(ctx context.Context, p *Process) int {
	return p.web(ctx, ":8080", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, maxEcho))
		if err != nil {
			return
		}
		fmt.Fprintf(w, "\n\nHostname: %s\n\nPod Information:\n\t-no pod information available-\n\nServer values:\n\tserver_version=nginx: 1.13.3 - lua: 10008\n\nRequest Information:\n", p.Hostname)
		fmt.Fprintf(w, "\tclient_address=%s\n\tmethod=%s\n\treal path=%s\n\tquery=%s\n\trequest_version=%d.%d\n\trequest_scheme=http\n\trequest_uri=http://%s:8080%s\n\nRequest Headers:\n",
			hostOfString(r.RemoteAddr), r.Method, r.URL.RequestURI(), r.URL.RawQuery, r.ProtoMajor, r.ProtoMinor, hostWithoutPort(r.Host), r.URL.RequestURI())
		fmt.Fprintf(w, "\thost=%s\n", r.Host)
		for _, name := range sortedNames(r.Header) {
			fmt.Fprintf(w, "\t%s=%s\n", strings.ToLower(name), strings.Join(r.Header[name], ", "))
		}
		text := "\t-no body in request-"
		if len(body) > 0 {
			text = string(body)
		}
		fmt.Fprintf(w, "\nRequest Body:\n%s\n\n", text)
	}, "Generating self-signed cert\nStarting nginx")
}

func sortedNames(h http.Header) []string {
	var out []string
	for name := range h {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func hostWithoutPort(host string) string {
	if at := strings.LastIndexByte(host, ':'); at > 0 && !strings.HasSuffix(host, "]") {
		return host[:at]
	}
	return host
}
