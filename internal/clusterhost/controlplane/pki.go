package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"kubistro/internal/clusterhost/balancer"
)

// Users of the cluster that have a token.
const (
	userLearner    = "learner"
	userController = "system:kube-controller-manager"
	userScheduler  = "system:kube-scheduler"
	userAddons     = "system:kubistro-addons"
)

// Names of the files in the folder pki.
const (
	fileCA          = "ca.crt"
	fileCAKey       = "ca.key"
	fileServing     = "apiserver.crt"
	fileServingKey  = "apiserver.key"
	fileFrontCA     = "front-proxy-ca.crt"
	fileFront       = "front-proxy-client.crt"
	fileFrontKey    = "front-proxy-client.key"
	fileSAKey       = "sa.key"
	fileSAPublic    = "sa.pub"
	fileTokenSecret = "tokens.secret"
	fileTokens      = "tokens.csv"
)

// pki is the cluster's folder of certificates, keys and tokens. It is made once, at
// the first start; all keys are ECDSA because RSA keys cost half a second to make.
type pki struct {
	dir    string
	caPEM  []byte
	secret []byte
}

// openPKI reads the folder, or makes it where it is missing. It is made beside and
// renamed, so that a start that fails half-way leaves no half of it.
func openPKI(dir string) (*pki, error) {
	if _, err := os.Stat(dir); os.IsNotExist(err) {
		tmp := dir + ".new"
		if err := os.RemoveAll(tmp); err != nil {
			return nil, fmt.Errorf("certificates: %w", err)
		}
		if err := makePKI(tmp); err != nil {
			return nil, fmt.Errorf("certificates: %w", err)
		}
		if err := os.Rename(tmp, dir); err != nil {
			return nil, fmt.Errorf("certificates: %w", err)
		}
	}
	p := &pki{dir: dir}
	var err error
	if p.caPEM, err = os.ReadFile(p.path(fileCA)); err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	if p.secret, err = os.ReadFile(p.path(fileTokenSecret)); err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	return p, nil
}

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

// token is the bearer token of a user: the same at every start, known to nobody
// without the folder.
func (p *pki) token(user string) string {
	m := hmac.New(sha256.New, p.secret)
	m.Write([]byte(user))
	return hex.EncodeToString(m.Sum(nil))
}

// writeTokens writes the API server's file of static tokens.
func (p *pki) writeTokens() error {
	var b strings.Builder
	line := func(user, groups string) { fmt.Fprintf(&b, "%s,%s,%s,%q\n", p.token(user), user, user, groups) }
	line(userLearner, "system:masters")
	line(userController, "")
	line(userScheduler, "")
	line(userAddons, "system:masters")
	line(balancer.User, balancer.Groups)
	if err := os.WriteFile(p.path(fileTokens), []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	return nil
}

// nodeCertificate makes the client certificate of a node's kubelet, as the signer
// kubernetes.io/kube-apiserver-client-kubelet does.
func (p *pki) nodeCertificate(node string) (tls.Certificate, error) {
	keyPEM, err := os.ReadFile(p.path(fileCAKey))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificates: %w", err)
	}
	pair, err := tls.X509KeyPair(p.caPEM, keyPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificates: %w", err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return tls.Certificate{}, fmt.Errorf("certificates: the CA's key is a %T", pair.PrivateKey)
	}
	ca := &authority{cert: pair.Leaf, key: key, pem: p.caPEM}
	cert, own, err := ca.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificates: %w", err)
	}
	return tls.X509KeyPair(cert, own)
}

func makePKI(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	ca, err := newAuthority("kubernetes")
	if err != nil {
		return err
	}
	front, err := newAuthority("front-proxy-ca")
	if err != nil {
		return err
	}
	serving := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "kube-apiserver"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{
			"kubernetes", "kubernetes.default", "kubernetes.default.svc",
			"kubernetes.default.svc.cluster.local", officeName, "localhost",
		},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(apiServiceIP), officeIP.AsSlice()},
	}
	client := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "front-proxy-client"},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	servingPEM, servingKey, err := ca.issue(serving)
	if err != nil {
		return err
	}
	frontPEM, frontKey, err := front.issue(client)
	if err != nil {
		return err
	}
	sa, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	saPublic, err := x509.MarshalPKIXPublicKey(&sa.PublicKey)
	if err != nil {
		return err
	}
	saPEM, err := keyPEM(sa)
	if err != nil {
		return err
	}
	caKey, err := keyPEM(ca.key)
	if err != nil {
		return err
	}
	secret := make([]byte, 32)
	rand.Read(secret)
	for name, data := range map[string][]byte{
		fileCA: ca.pem, fileCAKey: caKey, fileServing: servingPEM, fileServingKey: servingKey,
		fileFrontCA: front.pem, fileFront: frontPEM, fileFrontKey: frontKey,
		fileSAKey: saPEM, fileSAPublic: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: saPublic}),
		fileTokenSecret: secret,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// authority is a certificate authority in the making of a pki.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IsCA: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
	}
	stamp(tmpl)
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert, key, certPEM(der)}, nil
}

// issue signs a certificate for a new key and returns both in PEM.
func (a *authority) issue(tmpl *x509.Certificate) (cert, key []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	tmpl.KeyUsage = x509.KeyUsageDigitalSignature
	stamp(tmpl)
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &k.PublicKey, a.key)
	if err != nil {
		return nil, nil, err
	}
	if key, err = keyPEM(k); err != nil {
		return nil, nil, err
	}
	return certPEM(der), key, nil
}

// stamp sets what all certificates have alike. They are valid for as long as a
// course could be kept; an hour back covers a clock that was set meanwhile.
func stamp(c *x509.Certificate) {
	c.SerialNumber, _ = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	c.NotBefore = time.Now().Add(-time.Hour)
	c.NotAfter = time.Now().AddDate(10, 0, 0)
	c.BasicConstraintsValid = true
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(k *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
