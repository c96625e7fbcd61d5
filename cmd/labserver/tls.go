package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"kubistro/internal/session"
)

// kubectl sends no bearer token over plain HTTP (client-go reads credentials for
// TLS servers only), so the port speaks both: browsers come as they like,
// kubeconfigs name https with the certificate that is made here.

// servingCertificate reads the server's own certificate from the data folder and
// makes it when it is missing or about to expire. The second value is its PEM form, which a
// kubeconfig carries as its certificate authority.
func servingCertificate(dir string, now time.Time) (tls.Certificate, []byte, error) {
	file := filepath.Join(dir, "serving.pem")
	if text, err := os.ReadFile(file); err == nil {
		cert, err := tls.X509KeyPair(text, text)
		if err == nil && now.AddDate(0, 1, 0).Before(cert.Leaf.NotAfter) {
			return cert, publicPart(cert), nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return tls.Certificate{}, nil, fmt.Errorf("serving certificate: %w", err)
	}
	text, err := newCertificate(now)
	if err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("serving certificate: %w", err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return tls.Certificate{}, nil, fmt.Errorf("serving certificate: %w", err)
	}
	cert, err := tls.X509KeyPair(text, text)
	return cert, publicPart(cert), err
}

func publicPart(cert tls.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
}

// newCertificate makes a self-signed certificate for session.ServerName, with its key, as PEM.
func newCertificate(now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: session.ServerName},
		DNSNames: []string{session.ServerName}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(2, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true, IsCA: true,
	}, &x509.Certificate{Subject: pkix.Name{CommonName: session.ServerName}}, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	return append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...), nil
}

const (
	silentFor = 10 * time.Second      // until a connection's first byte
	failedFor = 50 * time.Millisecond // after a failure to accept
)

// bothProtocols is a listener whose connections may speak TLS or plain HTTP: a
// TLS client's first byte is 22, the record type of a handshake (RFC 8446, 5.1).
type bothProtocols struct {
	net.Listener
	config *tls.Config
	ready  chan net.Conn
	failed chan error
	closed chan struct{}
	once   sync.Once
	open   *connections
}

// listenBoth wraps l; Close of the result closes l too.
func listenBoth(l net.Listener, cert tls.Certificate, open *connections) net.Listener {
	b := &bothProtocols{
		Listener: l, ready: make(chan net.Conn), failed: make(chan error, 1), closed: make(chan struct{}), open: open,
		config: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
	}
	go b.accept()
	return b
}

func (b *bothProtocols) accept() {
	for {
		c, err := b.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			b.failed <- err
			return
		}
		if err != nil {
			// Too many open files, for instance: it passes, above all when one is closed.
			b.open.drop()
			select {
			case <-time.After(failedFor):
				continue
			case <-b.closed:
				b.failed <- err
				return
			}
		}
		if counted := b.open.admit(c); counted != nil {
			go b.look(counted)
		}
	}
}

func (b *bothProtocols) look(c net.Conn) {
	first := &peeked{Conn: c, r: bufio.NewReaderSize(c, 1)}
	_ = c.SetReadDeadline(time.Now().Add(silentFor))
	head, err := first.r.Peek(1)
	_ = c.SetReadDeadline(time.Time{})
	if err != nil {
		_ = c.Close()
		return
	}
	var out net.Conn = first
	if head[0] == 22 {
		out = tls.Server(first, b.config)
	}
	select {
	case b.ready <- out:
	case <-b.closed:
		_ = c.Close()
	}
}

func (b *bothProtocols) Accept() (net.Conn, error) {
	select {
	case c := <-b.ready:
		return c, nil
	case err := <-b.failed:
		return nil, err
	case <-b.closed:
		return nil, net.ErrClosed
	}
}

func (b *bothProtocols) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.Listener.Close()
}

// peeked is a connection whose first bytes have been looked at.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.r.Read(b) }
