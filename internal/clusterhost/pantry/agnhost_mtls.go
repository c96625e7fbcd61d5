package pantry

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// agnhostMTLSServer tells clients the SPIFFE identity in their certificate.
func agnhostMTLSServer(ctx context.Context, a *agnhost, args []string) int {
	f := a.flags("mtlsserver")
	address, creds, trust := f.String("listen", "", ""), f.String("server-creds", "", ""), f.String("spiffe-trust-bundle", "", "")
	if code, ok := a.parse(f, args); !ok {
		return code
	}
	fail := func(err error) int {
		fmt.Fprintf(a.Stderr, "Error: error while serving: %v\n", err)
		return 1
	}
	if *address == "" || *creds == "" || *trust == "" {
		fmt.Fprintln(a.Stderr, "Error: missing required flags")
		return 1
	}
	if _, err := a.trustPool(*trust); err != nil {
		return fail(fmt.Errorf("while reading SPIFFE trust anchors: %w", err))
	}
	cert, err := a.credentials(*creds)
	if err != nil {
		return fail(fmt.Errorf("while loading server key pair: %w", err))
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /spiffe-echo", func(w http.ResponseWriter, r *http.Request) {
		identity, code, err := a.spiffeIdentity(r.TLS.PeerCertificates, *trust)
		if err != nil {
			a.printf("%v", err)
			http.Error(w, "SPIFFE client certificate authentication required", code)
			return
		}
		io.WriteString(w, "Client Identity: "+identity)
	})
	l, err := a.Net.Listen(*address)
	if err != nil {
		return fail(fmt.Errorf("while listening: %s", listenError(err)))
	}
	srv := serveHTTP(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequestClientCert}), mux)
	defer srv.stop()
	return a.run(ctx, 0, 2)
}

// spiffeIdentity verifies a client's certificates and returns the one URI in the first.
func (a *agnhost) spiffeIdentity(certs []*x509.Certificate, trust string) (identity string, code int, err error) {
	if len(certs) == 0 {
		return "", http.StatusUnauthorized, errors.New("the client sent no certificate")
	}
	roots, err := a.trustPool(trust)
	if err != nil {
		return "", http.StatusInternalServerError, fmt.Errorf("error while reading SPIFFE trust anchors: %w", err)
	}
	between := x509.NewCertPool()
	for _, c := range certs[1:] {
		between.AddCert(c)
	}
	if _, err := certs[0].Verify(x509.VerifyOptions{Intermediates: between, Roots: roots}); err != nil {
		return "", http.StatusUnauthorized, fmt.Errorf("error while verifying SPIFFE client certificate: %w", err)
	}
	if n := len(certs[0].URIs); n != 1 {
		return "", http.StatusUnauthorized, fmt.Errorf("SPIFFE client certificate did not have 1 URI SAN, count: %d", n)
	}
	return certs[0].URIs[0].String(), http.StatusOK, nil
}

func (a *agnhost) trustPool(name string) (*x509.CertPool, error) {
	anchors, err := a.readFile(name)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(anchors) {
		return nil, errors.New("failed to append certificates from PEM")
	}
	return pool, nil
}

// credentials reads a file with a key and a chain of certificates.
func (a *agnhost) credentials(name string) (tls.Certificate, error) {
	bundle, err := a.readFile(name)
	if err != nil {
		return tls.Certificate{}, err
	}
	var key, chain bytes.Buffer
	for rest := bundle; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return tls.X509KeyPair(chain.Bytes(), key.Bytes())
		}
		if block.Type == "CERTIFICATE" {
			pem.Encode(&chain, block)
		} else {
			pem.Encode(&key, block)
		}
	}
}

// mtlsPeriod is how often the client asks.
const mtlsPeriod = 10 * time.Second

// agnhostMTLSClient asks a URL over and over with a certificate and prints the answers.
func agnhostMTLSClient(ctx context.Context, a *agnhost, args []string) int {
	f := a.flags("mtlsclient")
	from, trust, creds := f.String("fetch-url", "", ""), f.String("server-trust-bundle", "", ""), f.String("client-cred-bundle", "", "")
	if code, ok := a.parse(f, args); !ok {
		return code
	}
	if *from == "" || *trust == "" || *creds == "" {
		fmt.Fprintln(a.Stderr, "Error: missing required flags")
		return 1
	}
	if _, err := url.ParseRequestURI(*from); err != nil {
		fmt.Fprintf(a.Stderr, "Error: invalid --fetch-url: %v\n", err)
		return 1
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for a.sleep(ctx, mtlsPeriod) {
			if body, err := a.fetchMTLS(ctx, *from, *trust, *creds); err != nil {
				a.printf("while sending requests to the server: %v", err)
			} else {
				a.printf("Got response body: %s", body)
			}
		}
	}()
	code := a.run(ctx, 0, 2)
	cancel()
	<-asked
	return code
}

// fetchMTLS reads the files anew each time: they are renewed.
func (a *agnhost) fetchMTLS(ctx context.Context, from, trust, creds string) (string, error) {
	pool, err := a.trustPool(trust)
	if err != nil {
		return "", fmt.Errorf("while reading service trust bundle: %w", err)
	}
	cert, err := a.credentials(creds)
	if err != nil {
		return "", fmt.Errorf("while reading client credential bundle: %w", err)
	}
	client := a.client()
	client.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("while getting URL: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return "", fmt.Errorf("non-2xx status %d %q", resp.StatusCode, resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, mib))
	return string(body), err
}
