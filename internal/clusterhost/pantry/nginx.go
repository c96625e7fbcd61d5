package pantry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync/atomic"

	"kubistro/internal/shell"
)

const (
	nginxRoot = "/usr/share/nginx/html"
	nginxConf = "/etc/nginx/conf.d"
)

// nginx serves files of the container as the server of that name does in its
// public image; of its configuration it reads listen, root, index and return of
// the server blocks in conf.d.
type nginx struct {
	p        *Process
	version  string
	access   *lineWriter
	errors   *lineWriter
	requests atomic.Int64
}

func nginxProgram(version string) Program {
	return func(ctx context.Context, p *Process) int {
		n := &nginx{p: p, version: version, access: &lineWriter{w: p.Stdout}, errors: &lineWriter{w: p.Stderr}}
		for _, a := range p.Args[1:] {
			switch a {
			case "-v", "-V":
				fmt.Fprintf(p.Stderr, "nginx version: nginx/%s\n", version)
				return 0
			}
		}
		sites, err := readNginxConfig(p.FS)
		if err != nil {
			n.notice("emerg", "%v", err)
			return 1
		}
		for _, a := range p.Args[1:] {
			if a == "-t" {
				fmt.Fprintf(p.Stderr, "nginx: the configuration file /etc/nginx/nginx.conf syntax is ok\nnginx: configuration file /etc/nginx/nginx.conf test is successful\n")
				return 0
			}
		}
		return n.run(ctx, sites)
	}
}

func (n *nginx) run(ctx context.Context, sites []site) int {
	byPort := map[int]site{} // the first server of a port is its default
	var ports []int
	for _, s := range sites {
		if _, ok := byPort[s.port]; !ok {
			byPort[s.port] = s
			ports = append(ports, s.port)
		}
	}
	for _, port := range ports {
		srv, err := n.p.listenHTTP(":"+strconv.Itoa(port), n.handler(byPort[port]))
		if err != nil {
			n.notice("emerg", "bind() to 0.0.0.0:%d failed (98: Address already in use)", port)
			return 1
		}
		defer srv.stop()
	}
	n.notice("notice", `using the "epoll" event method`)
	n.notice("notice", "nginx/%s", n.version)
	n.notice("notice", "start worker processes")
	n.notice("notice", "start worker process 29")
	s, ok := n.p.terminated(ctx)
	if !ok {
		return exitSigkill
	}
	n.notice("notice", "signal %d (%s) received, exiting", int(s), signalName(s))
	n.notice("notice", "exit")
	return 0
}

func (n *nginx) notice(level, format string, args ...any) {
	n.errors.printf("%s [%s] 1#1: "+format, append([]any{n.p.Clock.Now().UTC().Format("2006/01/02 15:04:05"), level}, args...)...)
}

func (n *nginx) handler(s site) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sw := &statusWriter{ResponseWriter: w}
		if n.p.Usage.Work(r.Context(), nginxRequest) != nil {
			return // the client or the container is gone
		}
		number := n.requests.Add(1)
		w.Header().Set("Server", "nginx/"+n.version)
		n.answer(sw, r, s, number)
		n.access.printf(`%s - - [%s] "%s %s %s" %d %d "%s" "%s" "%s"`,
			hostOfString(r.RemoteAddr), n.p.Clock.Now().UTC().Format("02/Jan/2006:15:04:05 -0700"),
			r.Method, logSafe(r.URL.RequestURI()), r.Proto, sw.status, sw.bytes,
			dash(r.Referer()), dash(r.UserAgent()), dash(r.Header.Get("X-Forwarded-For")))
	})
}

func (n *nginx) answer(w *statusWriter, r *http.Request, s site, number int64) {
	if s.status != 0 {
		n.give(w, s)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		n.page(w, http.StatusMethodNotAllowed, "Not Allowed")
		return
	}
	name := path.Join(s.root, path.Clean("/"+r.URL.Path))
	info, err := n.p.FS.Stat(name)
	if err == nil && info.IsDir() {
		if !strings.HasSuffix(r.URL.Path, "/") {
			w.Header().Set("Location", "http://"+r.Host+path.Clean("/"+r.URL.Path)+"/")
			n.page(w, http.StatusMovedPermanently, "Moved Permanently")
			return
		}
		dir := name
		name = path.Join(dir, s.index)
		if info, err = n.p.FS.Stat(name); err != nil {
			n.failed(r, number, fmt.Sprintf("directory index of %q is forbidden", dir+"/"))
			n.page(w, http.StatusForbidden, "Forbidden")
			return
		}
	}
	var file shell.File
	if err == nil {
		file, err = n.p.FS.OpenFile(name, readOnly, 0)
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		n.failed(r, number, fmt.Sprintf("open() %q failed (13: Permission denied)", name))
		n.page(w, http.StatusForbidden, "Forbidden")
	case err != nil:
		n.failed(r, number, fmt.Sprintf("open() %q failed (2: No such file or directory)", name))
		n.page(w, http.StatusNotFound, "Not Found")
	default:
		defer file.Close()
		w.Header().Set("Content-Type", contentType(name))
		w.Header().Set("ETag", fmt.Sprintf(`"%x-%x"`, info.ModTime().Unix(), info.Size()))
		http.ServeContent(w, r, "", info.ModTime(), file)
	}
}

// give answers what a return directive says.
func (n *nginx) give(w *statusWriter, s site) {
	if s.status >= 300 && s.status < 400 {
		w.Header().Set("Location", s.text)
		n.page(w, s.status, http.StatusText(s.status))
		return
	}
	if s.text == "" {
		n.page(w, s.status, http.StatusText(s.status))
		return
	}
	w.Header().Set("Content-Type", s.kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(s.text)))
	w.WriteHeader(s.status)
	w.Write([]byte(s.text))
}

// page is one of nginx' own pages.
func (n *nginx) page(w *statusWriter, status int, title string) {
	body := fmt.Sprintf("<html>\r\n<head><title>%d %s</title></head>\r\n<body>\r\n<center><h1>%d %s</h1></center>\r\n<hr><center>nginx/%s</center>\r\n</body>\r\n</html>\r\n",
		status, title, status, title, n.version)
	w.Header().Set("Content-Type", "text/html")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	w.Write([]byte(body))
}

// failed is a line of the error log.
func (n *nginx) failed(r *http.Request, number int64, what string) {
	n.errors.printf(`%s [error] 29#29: *%d %s, client: %s, server: localhost, request: "%s %s %s", host: "%s"`,
		n.p.Clock.Now().UTC().Format("2006/01/02 15:04:05"), number, what, hostOfString(r.RemoteAddr),
		r.Method, logSafe(r.URL.RequestURI()), r.Proto, logSafe(r.Host))
}

func contentType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".html", ".htm":
		return "text/html"
	case ".txt":
		return "text/plain"
	case "":
		return "application/octet-stream"
	default:
		if t := mime.TypeByExtension(ext); t != "" {
			t, _, _ = strings.Cut(t, ";")
			return t
		}
	}
	return "application/octet-stream"
}

// logSafe escapes what would break a log line, as nginx does.
func logSafe(s string) string {
	var b strings.Builder
	for k := range len(s) {
		if c := s[k]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			fmt.Fprintf(&b, `\x%02X`, c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return logSafe(s)
}

func hostOfString(address string) string {
	host := address[:max(strings.LastIndexByte(address, ':'), 0)]
	return strings.Trim(host, "[]")
}
