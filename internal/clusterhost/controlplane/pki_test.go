package controlplane

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
)

// TestPKIIsKept: a second start finds the same keys and tokens, and half of a
// folder is never used.
func TestPKIIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	if err := os.MkdirAll(dir+".new", 0o700); err != nil { // left by a start that was killed
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir+".new", fileCA), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := openPKI(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := openPKI(dir)
	if err != nil {
		t.Fatal(err)
	}
	if first.token(userLearner) != second.token(userLearner) || first.token(userLearner) == first.token(userScheduler) {
		t.Error("tokens aren't stable and distinct")
	}
	cert, err := tls.LoadX509KeyPair(first.path(fileServing), first.path(fileServingKey))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(first.caPEM)
	for _, name := range []string{"kubernetes", "kubernetes.default.svc.cluster.local", "office", "localhost", "127.0.0.1", "10.96.0.1", "172.18.0.2"} {
		if _, err := cert.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, f := range files {
		if st, err := os.Stat(f); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f, st.Mode(), err)
		}
	}
}
