package main

import (
	"bytes"
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
)

// tlsName is the name in the server's own certificate.
const tlsName = "kubistro"

// identity is the server's own certificate. kubectl sends a token over TLS
// only, so the server answers TLS on the port where it answers plain http.
type identity struct {
	certificate tls.Certificate
	pem         []byte // the certificate alone, for kubeconfigs
}

// loadIdentity reads the certificate from the data folder and makes it the first time.
func loadIdentity(dir string) (*identity, error) {
	path := filepath.Join(dir, "tls.pem")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if data, err = newIdentity(); err == nil {
			err = os.WriteFile(path, data, 0o600)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("own certificate: %w", err)
	}
	c, err := tls.X509KeyPair(data, data)
	if err != nil {
		return nil, fmt.Errorf("own certificate %s: %w", path, err)
	}
	return &identity{certificate: c, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]})}, nil
}

func newIdentity() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: tlsName}, DNSNames: []string{tlsName},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = errors.Join(pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.Encode(&b, &pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
	return b.Bytes(), err
}

func (i *identity) config() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{i.certificate}, NextProtos: []string{"http/1.1"}}
}

// bothListener accepts plain http and TLS.
type bothListener struct {
	net.Listener
	config *tls.Config
}

func (l *bothListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &bothConn{Conn: c, config: l.config}, nil
}

// bothConn finds out at the first read whether the client speaks TLS: its
// first byte is then that of a handshake record, which no HTTP request begins with.
type bothConn struct {
	net.Conn
	config *tls.Config

	once  sync.Once
	inner net.Conn
	err   error
}

func (c *bothConn) sniff() {
	const handshake = 0x16
	var first [1]byte
	n, err := c.Conn.Read(first[:])
	if n == 0 {
		c.inner, c.err = c.Conn, err
		return
	}
	c.inner = &prefixConn{Conn: c.Conn, first: first[:]}
	if first[0] == handshake {
		c.inner = tls.Server(c.inner, c.config)
	}
}

func (c *bothConn) Read(b []byte) (int, error) {
	c.once.Do(c.sniff)
	if c.err != nil {
		return 0, c.err
	}
	return c.inner.Read(b)
}

func (c *bothConn) Write(b []byte) (int, error) {
	c.once.Do(c.sniff)
	return c.inner.Write(b)
}

// prefixConn gives the byte back that was read ahead.
type prefixConn struct {
	net.Conn
	first []byte
}

func (c *prefixConn) Read(b []byte) (int, error) {
	if len(c.first) > 0 && len(b) > 0 {
		n := copy(b, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}
