package pantry

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
)

// issuer makes the credential bundles of a signer's Pods.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newIssuer(t *testing.T) issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return issuer{cert, key}
}

func (i issuer) bundle(t *testing.T, identity string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	uri, err := url.Parse(identity)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: i.cert.NotBefore, NotAfter: i.cert.NotAfter, URIs: []*url.URL{uri}, DNSNames: []string{"localhost"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.cert, key.Public(), i.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	pem.Encode(&out, &pem.Block{Type: "PRIVATE KEY", Bytes: private})
	pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	return out.Bytes()
}

func TestMTLSTellsIdentities(t *testing.T) {
	n, _ := network(t)
	c := pod(t, n, agnhostImage, "10.244.1.2")
	good, stranger := newIssuer(t), newIssuer(t)
	for name, data := range map[string][]byte{
		"/server.pem": good.bundle(t, "spiffe://cluster.local/server"), "/client.pem": good.bundle(t, "spiffe://cluster.local/client"),
		"/stranger.pem": stranger.bundle(t, "spiffe://cluster.local/client"),
		"/trust.pem":    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: good.cert.Raw}),
		"/others.pem":   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: stranger.cert.Raw}),
	} {
		f, err := c.proc.FS.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(data); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	c.start("mtlsserver", "--listen=0.0.0.0:8443", "--server-creds=/server.pem", "--spiffe-trust-bundle=/trust.pem")
	eventually(t, "mtlsserver listens", func() bool {
		conn, err := c.proc.Net.DialContext(t.Context(), "tcp", "127.0.0.1:8443")
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	proc := c.proc
	a := &agnhost{Process: &proc}
	for _, tc := range []struct{ trust, creds, want string }{
		{"/trust.pem", "/client.pem", "Client Identity: spiffe://cluster.local/client"},
		{"/trust.pem", "/stranger.pem", "non-2xx status 401"},
		{"/others.pem", "/client.pem", "certificate signed by unknown authority"},
		{"/trust.pem", "/none.pem", "while reading client credential bundle"},
	} {
		got, err := a.fetchMTLS(t.Context(), "https://localhost:8443/spiffe-echo", tc.trust, tc.creds)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("with %s and %s: %q, want %q", tc.trust, tc.creds, got, tc.want)
		}
	}
}
