package host

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// recorder remembers what was answered, and changes headers of the answer.
type recorder struct {
	http.ResponseWriter
	changes []headerChange
	status  int
	bytes   int64
}

func (w *recorder) WriteHeader(code int) {
	if code >= 200 || code == http.StatusSwitchingProtocols {
		if w.status == 0 {
			w.status = code
			applyHeaders(w.Header(), w.changes)
		}
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// ping is for probes of the controller itself.
func (p *proxy) ping(w http.ResponseWriter, _ *http.Request) {
	code := http.StatusOK
	if p.c.ending.Load() {
		code = http.StatusServiceUnavailable
	}
	w.WriteHeader(code)
	io.WriteString(w, http.StatusText(code)) // a prober that left can't be told
}

// redirectEntry sends all requests of an entry point to another one.
func (p *proxy) redirectEntry(e *entryPoint, w http.ResponseWriter, r *http.Request) {
	host := r.Host
	if h, _, err := net.SplitHostPort(r.Host); err == nil {
		host = h
	}
	port := strings.TrimPrefix(e.redirectTo, ":")
	if to := p.c.opts.entryPoints[strings.ToLower(e.redirectTo)]; to != nil {
		if _, at, err := net.SplitHostPort(to.address); err == nil {
			port = at
		}
	}
	if !(port == "443" && e.scheme == "https") && !(port == "80" && e.scheme == "http") {
		host = net.JoinHostPort(strings.Trim(host, "[]"), port)
	}
	code := http.StatusFound
	switch safe := r.Method == http.MethodGet || r.Method == http.MethodHead; {
	case e.permanent && safe:
		code = http.StatusMovedPermanently
	case e.permanent:
		code = http.StatusPermanentRedirect
	case !safe:
		code = http.StatusTemporaryRedirect
	}
	w.Header().Set("Location", e.scheme+"://"+host+r.URL.RequestURI())
	w.WriteHeader(code)
	io.WriteString(w, http.StatusText(code)) // a client that left can't be told
}

// access writes a line of the access log, in the form of Traefik's common log format.
func (p *proxy) access(number int64, start time.Time, x *exchange, w *recorder, r *http.Request) {
	took := p.c.env.Clock.Since(start).Milliseconds()
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	router, server := "", ""
	if x.rule != nil {
		router = x.rule.name
	}
	if x.tries > 0 {
		server = x.server.String()
	}
	if p.c.opts.accessJSON {
		raw, err := json.Marshal(struct {
			Host      string `json:"ClientHost"`
			Duration  int64  `json:"Duration"`
			Status    int    `json:"DownstreamStatus"`
			Size      int64  `json:"DownstreamContentSize"`
			Method    string `json:"RequestMethod"`
			Name      string `json:"RequestHost"`
			Path      string `json:"RequestPath"`
			Protocol  string `json:"RequestProtocol"`
			Count     int64  `json:"RequestCount"`
			Retries   int    `json:"RetryAttempts"`
			Router    string `json:"RouterName,omitempty"`
			Service   string `json:"ServiceURL,omitempty"`
			Entry     string `json:"entryPointName"`
			StartTime string `json:"StartUTC"`
		}{client, took * int64(time.Millisecond), w.status, w.bytes, r.Method, hostOnly(r.Host), r.URL.Path, r.Proto, number,
			max(x.tries-1, 0), router, server, x.entry.name, start.UTC().Format(time.RFC3339Nano)})
		if err == nil {
			p.c.log.write(string(raw) + "\n")
		}
		return
	}
	quoted := func(s string) string { return fmt.Sprintf("%q", cmp.Or(s, "-")) }
	p.c.log.write(fmt.Sprintf("%s - - [%s] \"%s %s %s\" %d %d %s %s %d %s %s %dms\n", client, start.UTC().Format("02/Jan/2006:15:04:05 -0700"),
		r.Method, printable(r.URL.RequestURI()), r.Proto, w.status, w.bytes, quoted(r.Referer()), quoted(r.UserAgent()), number, quoted(router), quoted(server), took))
}

// printable keeps a log line one line.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}
