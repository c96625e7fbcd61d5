package pantry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ncArgs are what a call of nc asks for.
type ncArgs struct {
	listen, keep, zero, verbose, udp bool
	wait                             time.Duration
	port                             string
	rest                             []string
}

func parseNC(args []string) (a ncArgs, err error) {
	for k := 0; k < len(args); k++ {
		if !strings.HasPrefix(args[k], "-") || args[k] == "-" {
			a.rest = append(a.rest, args[k])
			continue
		}
		for _, letter := range args[k][1:] {
			switch letter {
			case 'l':
				a.listen = true
			case 'k':
				a.listen, a.keep = true, true
			case 'z':
				a.zero = true
			case 'v':
				a.verbose = true
			case 'u':
				a.udp = true
			case 'n', 't', 'N', '4':
			case 'p', 'w':
				if k++; k >= len(args) {
					return a, fmt.Errorf("option requires an argument -- '%c'", letter)
				}
				if letter == 'p' {
					a.port = args[k]
					continue
				}
				seconds, err := strconv.Atoi(args[k])
				if err != nil || seconds < 0 {
					return a, fmt.Errorf("invalid number '%s'", args[k])
				}
				a.wait = time.Duration(seconds) * time.Second
			default:
				return a, fmt.Errorf("unrecognized option: %c", letter)
			}
		}
	}
	if a.listen && a.port == "" && len(a.rest) > 0 {
		a.port = a.rest[len(a.rest)-1]
	}
	if a.listen && a.port == "" || !a.listen && len(a.rest) != 2 {
		return a, errors.New("usage: nc [-uvz] [-w SEC] HOST PORT, or nc -l [-ku] -p PORT")
	}
	return a, nil
}

// ncProgram is nc: a TCP client (-u: UDP), or with -l a server for one connection (-k: one after another).
func ncProgram(ctx context.Context, p *Process) int {
	a, err := parseNC(p.Args[1:])
	if err != nil {
		fmt.Fprintf(p.Stderr, "nc: %v\n", err)
		return 1
	}
	return interruptible(ctx, p, func(ctx context.Context) int {
		if a.listen && a.udp {
			return ncListenUDP(ctx, p, a)
		}
		if a.listen {
			return ncListen(ctx, p, a)
		}
		return ncDial(ctx, p, a)
	})
}

func ncDial(ctx context.Context, p *Process, a ncArgs) int {
	network := "tcp"
	if a.udp {
		network = "udp"
	}
	dialCtx := ctx
	if a.wait > 0 {
		var cancel context.CancelFunc
		dialCtx, cancel = context.WithTimeout(ctx, a.wait)
		defer cancel()
		if !a.udp {
			ctx = dialCtx
		}
	}
	address := net.JoinHostPort(a.rest[0], a.rest[1])
	c, err := p.Net.DialContext(dialCtx, network, address)
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		fmt.Fprintf(p.Stderr, "nc: bad address '%s'\n", a.rest[0])
		return 1
	case err != nil:
		fmt.Fprintf(p.Stderr, "nc: %s (%s): %s\n", a.rest[0], address, ncReason(err))
		return 1
	}
	defer c.Close()
	if a.udp {
		return ncTalkUDP(ctx, p, a, c)
	}
	if a.verbose {
		fmt.Fprintf(p.Stderr, "%s (%s) open\n", a.rest[0], c.RemoteAddr())
	}
	if !a.zero {
		relay(ctx, p, c)
	}
	return 0
}

func ncReason(err error) string {
	var ne net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "Connection refused"
	case errors.Is(err, syscall.EHOSTUNREACH):
		return "No route to host"
	case errors.As(err, &ne) && ne.Timeout():
		return "Connection timed out"
	}
	return err.Error()
}

func ncListen(ctx context.Context, p *Process, a ncArgs) int {
	l, err := p.Net.Listen(":" + a.port)
	if err != nil {
		fmt.Fprintf(p.Stderr, "nc: bind: %s\n", listenError(err))
		return 1
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	if a.verbose {
		fmt.Fprintf(p.Stderr, "listening on %s ...\n", l.Addr())
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return exitSigkill
		}
		if a.verbose {
			fmt.Fprintf(p.Stderr, "connect to %s from %s\n", c.LocalAddr(), c.RemoteAddr())
		}
		relay(ctx, p, c)
		c.Close()
		if !a.keep {
			return 0
		}
	}
}

// firstInput is how long a peer that has nothing to say waits for the first of standard
// input: what is in a pipe already goes out, although the peer has closed its side at once.
const firstInput = 500 * time.Millisecond

// relay copies standard input to a connection and back until the peer ends.
// A read of standard input that is under way ends with the process's streams.
func relay(ctx context.Context, p *Process, c net.Conn) {
	defer context.AfterFunc(ctx, func() { c.Close() })()
	began := make(chan struct{})
	begin := sync.OnceFunc(func() { close(began) })
	go func() {
		defer begin()
		io.CopyBuffer(sentWriter{c, begin}, p.Stdin, make([]byte, copyBuffer))
		if half, ok := c.(interface{ CloseWrite() error }); ok {
			half.CloseWrite() // the peer may have gone already
		}
	}()
	io.CopyBuffer(onlyWriter{p.Stdout}, c, make([]byte, copyBuffer))
	t := p.Clock.NewTimer(firstInput)
	defer t.Stop()
	select {
	case <-began:
	case <-t.C():
	case <-ctx.Done():
	}
}

// sentWriter says when something has been written; it hides ReaderFrom.
type sentWriter struct {
	w    io.Writer
	sent func()
}

func (w sentWriter) Write(b []byte) (int, error) {
	defer w.sent()
	return w.w.Write(b)
}

// onlyWriter hides ReaderFrom, so that the buffer stays bounded.
type onlyWriter struct{ io.Writer }

// httpdProgram is busybox httpd: it serves the files of -h (default: the working
// directory) on -p (default 80). Without -f it ends at once, as the real one goes into the background.
func httpdProgram(ctx context.Context, p *Process) int {
	root, port, foreground, verbose := p.workDir(), "80", false, false
	for k := 1; k < len(p.Args); k++ {
		switch a := p.Args[k]; a {
		case "-f":
			foreground = true
		case "-v", "-vv":
			verbose = true
		case "-fv", "-fvv", "-vf":
			foreground, verbose = true, true
		case "-p", "-h":
			if k++; k >= len(p.Args) {
				fmt.Fprintf(p.Stderr, "httpd: option requires an argument -- '%s'\n", a[1:])
				return 1
			}
			if a == "-p" {
				port = p.Args[k][strings.LastIndexByte(p.Args[k], ':')+1:]
			} else {
				root = abs(p, p.Args[k])
			}
		default:
			fmt.Fprintf(p.Stderr, "httpd: unrecognized option: %s\n", a)
			return 1
		}
	}
	if !foreground {
		fmt.Fprintln(p.Stderr, "httpd: in a container run it in the foreground: httpd -f")
		return 1
	}
	srv, err := p.listenHTTP(":"+port, httpdHandler(p, root, verbose))
	if err != nil {
		fmt.Fprintf(p.Stderr, "httpd: bind: %s\n", listenError(err))
		return 1
	}
	defer srv.stop()
	return interruptible(ctx, p, func(ctx context.Context) int {
		<-ctx.Done()
		return exitSigkill
	})
}

func httpdHandler(p *Process, root string, verbose bool) http.Handler {
	log := &lineWriter{w: p.Stderr}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sw := &statusWriter{ResponseWriter: w}
		name := path.Join(root, path.Clean("/"+r.URL.Path))
		info, err := p.FS.Stat(name)
		if err == nil && info.IsDir() {
			name = path.Join(name, "index.html")
			info, err = p.FS.Stat(name)
		}
		if err == nil {
			file, openErr := p.FS.OpenFile(name, os.O_RDONLY, 0)
			if err = openErr; err == nil {
				defer file.Close()
				w.Header().Set("Content-Type", contentType(name))
				http.ServeContent(sw, r, "", info.ModTime(), file)
			}
		}
		if err != nil {
			sw.Header().Set("Content-Type", "text/html")
			sw.WriteHeader(http.StatusNotFound)
			io.WriteString(sw, "<HTML><HEAD><TITLE>404 Not Found</TITLE></HEAD>\n<BODY><H1>404 Not Found</H1>\nThe requested URL was not found\n</BODY></HTML>\n")
		}
		if verbose {
			log.printf("%s: url:%s\n%s: response:%d", r.RemoteAddr, logSafe(r.URL.RequestURI()), r.RemoteAddr, sw.status)
		}
	})
}

// abs is a path of a process, made absolute.
func abs(p *Process, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(p.workDir(), name)
}
