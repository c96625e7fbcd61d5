package vnet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// serve runs an HTTP server on port 80 of an interface until the end of the test.
func serve(t testing.TB, i *Interface, h http.Handler, wrap func(net.Listener) net.Listener) {
	t.Helper()
	l, err := i.Listen(":80")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Serve(wrap(l))
	}()
	t.Cleanup(func() { s.Close(); <-done })
}

func plain(l net.Listener) net.Listener { return l }

func httpClient(t testing.TB, i *Interface, c *tls.Config) *http.Client {
	tr := &http.Transport{DialContext: i.DialContext, TLSClientConfig: c}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func hello(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s", r.Proto, r.Host, body)
}

func TestHTTPKeepsConnectionsAlive(t *testing.T) {
	a, b := two(t)
	serve(t, b, http.HandlerFunc(hello), plain)
	client := httpClient(t, a, nil)
	reused := 0
	for range 5 {
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			if i.Reused {
				reused++
			}
		}})
		req, _ := http.NewRequestWithContext(ctx, "GET", "http://10.244.2.2/", nil)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if string(body) != "HTTP/1.1 10.244.2.2 " || err != nil {
			t.Fatalf("%q, %v", body, err)
		}
	}
	if reused != 4 {
		t.Errorf("%d of 4 later requests used the connection again", reused)
	}
	if _, err := client.Get("http://10.244.2.2:81/"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
}

func selfSigned(t testing.TB, ip net.IP) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{ip}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLSAndHijack(t *testing.T) {
	a, b := two(t)
	cert, pool := selfSigned(t, b.IPs()[0].AsSlice())
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", hello)
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) { // the hijack sets a read deadline in the past
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		kind, data, err := c.Read(r.Context())
		if err == nil {
			c.Write(r.Context(), kind, data)
		}
	})
	serve(t, b, mux, func(l net.Listener) net.Listener {
		return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}})
	})
	client := httpClient(t, a, &tls.Config{RootCAs: pool})
	res, err := client.Get("https://10.244.2.2:80/hello")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	c, _, err := websocket.Dial(t.Context(), "wss://10.244.2.2:80/echo", &websocket.DialOptions{HTTPClient: client})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := c.Write(t.Context(), websocket.MessageText, []byte("order")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := c.Read(t.Context()); err != nil || string(got) != "order" {
		t.Fatalf("echo %q, %v", got, err)
	}
}

func BenchmarkDial(b *testing.B) {
	x, y := two(b)
	l, err := y.Listen(":80")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		c, err := x.DialContext(b.Context(), "tcp", "10.244.2.2:80")
		if err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
	l.Close()
	<-done
}

func BenchmarkHTTP(b *testing.B) {
	x, y := two(b)
	serve(b, y, http.HandlerFunc(hello), plain)
	client := httpClient(b, x, nil)
	b.ReportAllocs()
	for b.Loop() {
		res, err := client.Get("http://10.244.2.2/")
		if err != nil {
			b.Fatal(err)
		}
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
	}
}
