package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

func networkTools() map[string]tool {
	return map[string]tool{
		"curl":     {curl, "[-sSiIvLkf] [-o FILE] [-w FORMAT] [-H HEADER] [-d DATA] [-X METHOD] [-m SECONDS] URL...\nTransfer data inside the cluster's network."},
		"wget":     {wget, "[-q] [-O FILE|-] [-S] [-T SECONDS] [--spider] URL\nFetch a file inside the cluster's network."},
		"nslookup": {nslookup, "NAME\nLook a name up in the cluster's DNS."},
		"dig":      {dig, "[+short] NAME\nLook a name up in the cluster's DNS."},
		"host":     {nslookup, "NAME\nLook a name up in the cluster's DNS."},
		"getent":   {getent, "hosts NAME\nLook a name up."},
		"nc":       {nc, "[-z] [-v] [-w SECONDS] HOST PORT\nOpen a TCP connection."},
		"ping":     {ping, "HOST"},
	}
}

func wget(ctx context.Context, env Env, args []string) int {
	opts, urls, err := getopt(args[1:], "qO:ST:t:c", map[string]string{"quiet": "q", "output-document:": "O", "server-response": "S", "timeout:": "T", "spider": "p", "header:": "H", "no-check-certificate": "k", "post-data:": "d", "tries:": "t"})
	if err != nil {
		return env.wrongUse(args, err)
	}
	if len(urls) == 0 {
		return env.fail(args, "missing URL")
	}
	f := flags(opts)
	code := 0
	for _, u := range urls {
		out := value(opts, "O", "")
		if out == "" {
			if out = path.Base(u); out == "/" || out == "." || !strings.Contains(strings.TrimPrefix(strings.TrimPrefix(u, "http://"), "https://"), "/") || strings.HasSuffix(u, "/") {
				out = "index.html"
			}
		}
		o := curlOptions{agent: "Wget", location: true, fail: true, silent: true, connect: 60 * time.Second, insecure: f["k"], output: out, resolve: map[string]string{}}
		if s := value(opts, "T", ""); s != "" {
			if n, err := strconv.ParseFloat(s, 64); err == nil && n > 0 {
				o.max = time.Duration(min(n, 1e6) * float64(time.Second))
			}
		}
		for _, x := range opts {
			switch x.name {
			case "H":
				o.headers = append(o.headers, x.value)
			case "d":
				o.data = append(o.data, x.value)
			}
		}
		sub := env
		var status statusLine
		o.verbose = true
		sub.Err = &status
		if f["p"] {
			o.head, o.output = true, "/dev/null"
		}
		c := sub.curlOne(ctx, o, u)
		if f["S"] {
			io.WriteString(env.Err, status.headers.String())
		}
		host, port := wgetTarget(u)
		switch {
		case c == 0 && !f["q"] && !f["p"]:
			fmt.Fprintf(env.Err, "saving to '%s'\n'%s' saved\n", out, out)
		case c == curlNoHost:
			code = env.fail(args, "bad address '%s'", host)
		case c == curlNoConnect:
			code = env.fail(args, "can't connect to remote host (%s:%s): Connection refused", host, port)
		case c == curlTimeout:
			code = env.fail(args, "download timed out")
		case c == curlHTTPFailed:
			code = env.fail(args, "server returned error: %s", status.line)
		case c != 0:
			code = env.fail(args, "error getting response")
		}
	}
	return code
}

func wgetTarget(u string) (host, port string) {
	rest := strings.TrimPrefix(strings.TrimPrefix(u, "http://"), "https://")
	rest, _, _ = strings.Cut(rest, "/")
	host, port, ok := strings.Cut(rest, ":")
	if !ok {
		port = "80"
	}
	return host, port
}

// statusLine picks the response's header out of curl's -v output.
type statusLine struct {
	line    string
	headers strings.Builder
}

func (s *statusLine) Write(p []byte) (int, error) {
	for _, l := range strings.Split(string(p), "\n") {
		if h, ok := strings.CutPrefix(l, "< "); ok && h != "" && s.headers.Len() < 64<<10 {
			if strings.HasPrefix(h, "HTTP/") {
				s.line = h
			}
			s.headers.WriteString("  " + h + "\n")
		}
	}
	return len(p), nil
}

func (e Env) lookup(ctx context.Context, name string) ([]string, error) {
	if ip := net.ParseIP(name); ip != nil {
		return []string{name}, nil
	}
	if e.Net.LookupHost == nil {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return e.Net.LookupHost(ctx, name)
}

func nslookup(ctx context.Context, env Env, args []string) int {
	var names []string
	for _, a := range args[1:] {
		if !strings.HasPrefix(a, "-") {
			names = append(names, a)
		}
	}
	if len(names) == 0 {
		return env.fail(args, "usage: nslookup NAME")
	}
	if env.Net.Nameserver != "" {
		fmt.Fprintf(env.Out, "Server:\t\t%s\nAddress:\t%s:53\n\n", env.Net.Nameserver, env.Net.Nameserver)
	}
	addrs, err := env.lookup(ctx, names[0])
	if err != nil {
		var dns *net.DNSError
		if errors.As(err, &dns) && dns.IsNotFound {
			fmt.Fprintf(env.Out, "** server can't find %s: NXDOMAIN\n\n", names[0])
		} else {
			fmt.Fprintln(env.Err, ";; connection timed out; no servers could be reached")
		}
		return 1
	}
	for _, a := range addrs {
		fmt.Fprintf(env.Out, "Name:\t%s\nAddress: %s\n", qualified(names[0]), a)
	}
	fmt.Fprintln(env.Out)
	return 0
}

// qualified is the full name of a Service's short one, as the resolver's search list finds it.
func qualified(name string) string {
	switch strings.Count(strings.TrimSuffix(name, "."), ".") {
	case 0:
		return name + ".default.svc.cluster.local"
	case 1:
		return name + ".svc.cluster.local"
	}
	return name
}

func dig(ctx context.Context, env Env, args []string) int {
	short, name := false, ""
	for _, a := range args[1:] {
		switch {
		case a == "+short":
			short = true
		case strings.HasPrefix(a, "+"), strings.HasPrefix(a, "-"), strings.HasPrefix(a, "@"), a == "A", a == "a":
		default:
			name = a
		}
	}
	if name == "" {
		return env.fail(args, "usage: dig [+short] NAME")
	}
	addrs, err := env.lookup(ctx, name)
	if !short {
		status := "NOERROR"
		if err != nil {
			status = "NXDOMAIN"
		}
		fmt.Fprintf(env.Out, ";; ->>HEADER<<- opcode: QUERY, status: %s\n;; QUESTION SECTION:\n;%s.\t\tIN\tA\n\n;; ANSWER SECTION:\n", status, name)
	}
	for _, a := range addrs {
		if short {
			fmt.Fprintln(env.Out, a)
		} else {
			fmt.Fprintf(env.Out, "%s.\t30\tIN\tA\t%s\n", name, a)
		}
	}
	return 0
}

func getent(ctx context.Context, env Env, args []string) int {
	if len(args) < 3 || args[1] != "hosts" {
		return env.fail(args, "usage: getent hosts NAME")
	}
	if known := hostsFile(env.FS, args[2]); len(known) > 0 {
		for _, h := range known {
			fmt.Fprintf(env.Out, "%-15s %s\n", h.address, strings.Join(h.names, " "))
		}
		return 0
	}
	addrs, err := env.lookup(ctx, args[2])
	if err != nil {
		return 2
	}
	for _, a := range addrs {
		fmt.Fprintf(env.Out, "%-15s %s\n", a, args[2])
	}
	return 0
}

func nc(ctx context.Context, env Env, args []string) int {
	opts, rest, err := getopt(args[1:], "zvw:nul:", nil)
	if err != nil {
		return env.wrongUse(args, err)
	}
	f := flags(opts)
	switch {
	case f["l"]:
		return env.fail(args, "listening isn't available here")
	case len(rest) < 2 || env.Net.Dial == nil:
		return env.fail(args, "usage: nc [-z] [-v] [-w SECONDS] HOST PORT")
	}
	timeout := 30 * time.Second
	if s, err := strconv.Atoi(value(opts, "w", "")); err == nil && s > 0 {
		timeout = time.Duration(min(s, 3600)) * time.Second
	}
	dialCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := env.Net.Dial(dialCtx, "tcp", net.JoinHostPort(rest[0], rest[1]))
	if err != nil {
		return env.fail(args, "%s (%s): %s", rest[0], rest[1], dialText(err))
	}
	defer conn.Close()
	if f["v"] {
		fmt.Fprintf(env.Err, "%s (%s) open\n", rest[0], rest[1])
	}
	if f["z"] {
		return 0
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	var wg sync.WaitGroup
	inCtx, stop := context.WithCancel(ctx)
	in := env.In
	if b, ok := in.(boundReader); ok {
		in = boundReader{inCtx, b.r}
	}
	wg.Go(func() {
		copyTo(inCtx, conn, in)
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			half.CloseWrite()
		}
	})
	copyTo(ctx, env.Out, conn)
	stop()
	if file, ok := in.(*os.File); ok {
		file.SetReadDeadline(time.Unix(1, 0))
		defer file.SetReadDeadline(time.Time{})
	}
	conn.Close()
	wg.Wait()
	return 0
}

// dialText is a connection failure in the usual words.
func dialText(err error) string {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.As(err, &dns):
		return "bad address"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "Connection refused"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "Connection timed out"
	case errors.Is(err, syscall.EHOSTUNREACH):
		return "No route to host"
	}
	return err.Error()
}

func ping(_ context.Context, env Env, args []string) int {
	return env.fail(args, "ICMP isn't available here. Service addresses don't answer it anyway; use curl or nc -zv HOST PORT")
}
