package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// One port answers browsers in plain http and kubectl in TLS.
func TestPlainAndTLSOnOnePort(t *testing.T) {
	dir := t.TempDir()
	own, err := loadIdentity(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := loadIdentity(dir)
	if err != nil || string(again.pem) != string(own.pem) {
		t.Fatalf("the certificate changed at the second start: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, r.Header.Get("Authorization"))
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(&bothListener{l, own.config()})
	}()
	defer func() { server.Close(); <-done }()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(own.pem)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: tlsName}}}
	for _, scheme := range []string{"http", "https"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://"+l.Addr().String()+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer x")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", scheme, err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != "Bearer x" {
			t.Errorf("%s: %q %v", scheme, body, err)
		}
	}
}
