package pantry

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"
)

const (
	apacheRoot    = "/usr/local/apache2/htdocs"
	apacheVersion = "2.4.65"
)

// apacheProgram serves the files of the document root as the public image httpd does.
func apacheProgram(ctx context.Context, p *Process) int {
	if len(p.Args) > 1 && (p.Args[1] == "-v" || p.Args[1] == "-V") {
		fmt.Fprintf(p.Stdout, "Server version: Apache/%s (Unix)\n", apacheVersion)
		return 0
	}
	return p.apache(ctx, apacheVersion, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.Usage.Work(r.Context(), nginxRequest) != nil {
			return
		}
		name := path.Join(apacheRoot, path.Clean("/"+r.URL.Path))
		info, err := p.FS.Stat(name)
		if err == nil && info.IsDir() {
			if !strings.HasSuffix(r.URL.Path, "/") {
				http.Redirect(w, r, path.Clean("/"+r.URL.Path)+"/", http.StatusMovedPermanently)
				return
			}
			name = path.Join(name, "index.html")
			info, err = p.FS.Stat(name)
		}
		if err == nil {
			if file, openErr := p.FS.OpenFile(name, readOnly, 0); openErr == nil {
				defer file.Close()
				w.Header().Set("Content-Type", contentType(name))
				http.ServeContent(w, r, "", info.ModTime(), file)
				return
			}
		}
		w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "<!DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\">\n<html><head>\n<title>404 Not Found</title>\n</head><body>\n<h1>Not Found</h1>\n<p>The requested URL was not found on this server.</p>\n</body></html>\n")
	}))
}

// apache runs Apache's part of a server on port 80: its name, its logs and its end.
func (p *Process) apache(ctx context.Context, version string, h http.Handler) int {
	access, errors := &lineWriter{w: p.Stdout}, &lineWriter{w: p.Stderr}
	notice := func(format string, args ...any) {
		errors.printf("[%s] [mpm_event:notice] [pid 1:tid 1] "+format, append([]any{p.Clock.Now().UTC().Format("Mon Jan 02 15:04:05.000000 2006")}, args...)...)
	}
	srv, err := p.listenHTTP(":80", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sw := &statusWriter{ResponseWriter: w}
		w.Header().Set("Server", "Apache/"+version+" (Unix)")
		h.ServeHTTP(sw, r)
		access.printf(`%s - - [%s] "%s %s %s" %d %d`, hostOfString(r.RemoteAddr), p.Clock.Now().UTC().Format("02/Jan/2006:15:04:05 -0700"),
			r.Method, logSafe(r.URL.RequestURI()), r.Proto, sw.status, sw.bytes)
	}))
	if err != nil {
		errors.printf("(98)Address already in use: AH00072: make_sock: could not bind to address 0.0.0.0:80\nno listening sockets available, shutting down")
		return 1
	}
	defer srv.stop()
	if ips := p.Net.IPs(); len(ips) > 0 {
		errors.printf("AH00558: httpd: Could not reliably determine the server's fully qualified domain name, using %s. Set the 'ServerName' directive globally to suppress this message", ips[0])
	}
	notice("AH00489: Apache/%s (Unix) configured -- resuming normal operations", version)
	notice("AH00094: Command line: 'httpd -D FOREGROUND'")
	s, ok := p.terminated(ctx)
	if !ok {
		return exitSigkill
	}
	notice("AH00491: caught %s, shutting down", signalName(s))
	return 0
}

// nginxRequest is about what it costs a web server to answer with a small file.
const nginxRequest = 100 * time.Microsecond
