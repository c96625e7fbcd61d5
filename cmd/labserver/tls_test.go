package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"kubistro/internal/session"
)

func TestPortSpeaksBothProtocols(t *testing.T) {
	dir := t.TempDir()
	cert, ca, err := servingCertificate(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := listenBoth(plain, cert, newConnections(4, 4))
	served := make(chan error, 1)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "tls=%t", r.TLS != nil)
	})}
	go func() { served <- server.Serve(l) }()
	silent, err := net.Dial("tcp", plain.Addr().String()) // says nothing and must stop nobody
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()

	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: session.ServerName}}}
	for url, want := range map[string]string{
		"http://" + plain.Addr().String():  "tls=false",
		"https://" + plain.Addr().String(): "tls=true",
	} {
		resp, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != want {
			t.Errorf("%s: got %q, want %q", url, body, want)
		}
	}
	client.CloseIdleConnections()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("Serve = %v, want %v", err, http.ErrServerClosed)
	}
}

func TestServingCertificateIsKept(t *testing.T) {
	dir := t.TempDir()
	_, first, err := servingCertificate(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	_, second, err := servingCertificate(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if string(first) != string(second) {
		t.Error("a restart made another certificate: kubeconfigs stopped working")
	}
	_, third, err := servingCertificate(dir, time.Now().AddDate(2, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	if string(first) == string(third) {
		t.Error("an expiring certificate was kept")
	}
}
