package session

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// brokenBackend has output to read and takes no more input, as an API server
// whose command has ended.
type brokenBackend struct {
	io.Reader
	failed chan struct{} // closed at the first write
}

func (b *brokenBackend) Write([]byte) (int, error) {
	close(b.failed)
	return 0, io.ErrClosedPipe
}
func (b *brokenBackend) Close() error { return nil }

// afterWrite gives its data only when a write has failed.
type afterWrite struct {
	failed chan struct{}
	rest   []byte
}

func (a *afterWrite) Read(p []byte) (int, error) {
	<-a.failed
	if len(a.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, a.rest[:1])
	a.rest = a.rest[n:]
	return n, nil
}

type upgradeTransport struct{ body io.ReadCloser }

func (u upgradeTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusSwitchingProtocols, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Body: u.body,
		Header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"SPDY/3.1"}},
	}, nil
}

// The output of a command arrives whole although the client still sends when the API server has closed.
func TestUpgradeKeepsTheOutputWhenInputFails(t *testing.T) {
	failed := make(chan struct{})
	backend := &brokenBackend{Reader: &afterWrite{failed: failed, rest: []byte("got soup")}, failed: failed}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "backend"})
			r.Out.Header.Set("Connection", "Upgrade")
		},
		Transport: upgradeTransport{body: &upgraded{ReadWriteCloser: backend, ended: make(chan struct{})}},
	})
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %v", res, err)
	}
	if _, err := io.WriteString(conn, "more"); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil || string(got) != "got soup" {
		t.Errorf("read %q, %v", got, err)
	}
}
