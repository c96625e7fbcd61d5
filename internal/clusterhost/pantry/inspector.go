package pantry

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Bounds of what the inspector reads and keeps.
const (
	maxReview     = 4 << 20
	inspectorLife = 365 * 24 * time.Hour
)

// inspector is kubistro/inspector: admission webhooks over TLS, /validate and
// /mutate. Its flags say what it refuses and what it adds.
type inspector struct {
	p       *Process
	require list // labels that objects must have
	deny    list // patterns of images that Pods may not have
	latest  bool
	labels  list // NAME=VALUE to add
	delay   time.Duration
	fail    bool
	answer  string // refuses everything
}

// list is a flag that may be repeated.
type list []string

func (l *list) String() string     { return strings.Join(*l, ",") }
func (l *list) Set(s string) error { *l = append(*l, s); return nil }

// inspectorProgram serves until it is told to end.
func inspectorProgram(ctx context.Context, p *Process) int {
	in := &inspector{p: p}
	f := flag.NewFlagSet("inspector", flag.ContinueOnError)
	f.SetOutput(p.Stderr)
	listen := f.String("listen", ":8443", "address of the webhooks")
	cert := f.String("tls-cert-file", "", "certificate, as a mounted Secret of type kubernetes.io/tls has it")
	key := f.String("tls-private-key-file", "", "its key")
	service := f.String("self-signed", "", "make a certificate for this Service: NAME.NAMESPACE.svc")
	var hooks list
	f.Var(&hooks, "inject-ca", "put the self-signed certificate's CA into validatingwebhookconfigurations/NAME or mutatingwebhookconfigurations/NAME")
	f.Var(&in.require, "require-label", "refuse objects without this label")
	f.Var(&in.deny, "deny-image", "refuse Pods with an image that matches, such as nginx:*")
	f.BoolVar(&in.latest, "deny-latest", false, "refuse Pods with an image without a tag or with latest")
	f.Var(&in.labels, "set-label", "add the label NAME=VALUE where it is missing")
	f.DurationVar(&in.delay, "delay", 0, "wait before each answer")
	f.BoolVar(&in.fail, "fail", false, "answer with status 500")
	f.StringVar(&in.answer, "deny-all", "", "refuse everything with this message")
	if err := f.Parse(p.Args[1:]); err != nil {
		return 2
	}
	pair, err := in.certificate(ctx, *cert, *key, *service, hooks)
	if err != nil {
		fmt.Fprintf(p.Stderr, "inspector: %v\n", err)
		return 1
	}
	return in.serve(ctx, *listen, pair)
}

func (in *inspector) serve(ctx context.Context, listen string, pair tls.Certificate) int {
	l, err := in.p.Net.Listen(listen)
	if err != nil {
		fmt.Fprintf(in.p.Stderr, "inspector: listen %s: %s\n", listen, listenError(err))
		return 1
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /validate", in.review(in.validate))
	mux.HandleFunc("POST /mutate", in.review(in.mutate))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") })
	srv := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 75 * time.Second, MaxHeaderBytes: 32 << 10,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		srv.Serve(tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}))
	}()
	fmt.Fprintf(in.p.Stdout, "inspector listens on %s\n", listen)
	code := 137
	if _, ok := in.p.terminated(ctx); ok {
		code = 0
		end, cancel := context.WithTimeout(ctx, 10*time.Second)
		srv.Shutdown(end)
		cancel()
	}
	srv.Close()
	<-done
	return code
}

// certificate reads the one that is mounted, or makes one whose CA goes into the
// webhook configurations.
func (in *inspector) certificate(ctx context.Context, cert, key, service string, hooks []string) (tls.Certificate, error) {
	if service == "" {
		return keyPair(in.file, cert, key)
	}
	pair, ca, err := selfSignedFor(service, in.p.Clock.Now())
	if err != nil || len(hooks) == 0 {
		return pair, err
	}
	cfg, err := in.p.InClusterConfig()
	if err != nil {
		return pair, err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return pair, err
	}
	for _, h := range hooks {
		if err := injectCA(ctx, client, h, ca); err != nil {
			return pair, fmt.Errorf("CA of %s: %w", h, err)
		}
	}
	return pair, nil
}

func (in *inspector) file(name string) ([]byte, error) {
	if name == "" {
		return nil, errors.New("--tls-cert-file and --tls-private-key-file, or --self-signed, must be set")
	}
	f, err := in.p.FS.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxCredential))
}

// selfSignedFor makes a certificate that is its own CA.
func selfSignedFor(service string, now time.Time) (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: service},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(inspectorLife), DNSNames: []string{service},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// injectCA sets the CA of all webhooks of a configuration.
func injectCA(ctx context.Context, client kubernetes.Interface, hook string, ca []byte) error {
	api := client.AdmissionregistrationV1()
	kind, name, _ := strings.Cut(hook, "/")
	switch kind {
	case "validatingwebhookconfigurations":
		c, err := api.ValidatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig.CABundle = ca
		}
		_, err = api.ValidatingWebhookConfigurations().Update(ctx, c, metav1.UpdateOptions{})
		return err
	case "mutatingwebhookconfigurations":
		c, err := api.MutatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i := range c.Webhooks {
			c.Webhooks[i].ClientConfig.CABundle = ca
		}
		_, err = api.MutatingWebhookConfigurations().Update(ctx, c, metav1.UpdateOptions{})
		return err
	}
	return errors.New("it must be validatingwebhookconfigurations/NAME or mutatingwebhookconfigurations/NAME")
}

// review answers AdmissionReviews of version v1.
func (in *inspector) review(judge func(*admissionv1.AdmissionRequest, *admissionv1.AdmissionResponse) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var rv admissionv1.AdmissionReview
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxReview)).Decode(&rv); err != nil || rv.Request == nil {
			http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
			return
		}
		if in.delay > 0 {
			t := in.p.Clock.NewTimer(in.delay)
			defer t.Stop()
			select {
			case <-t.C():
			case <-r.Context().Done():
				return
			}
		}
		q := rv.Request
		if in.fail {
			fmt.Fprintf(in.p.Stdout, "%s %s %s/%s by %s: fails\n", r.URL.Path, q.Operation, q.Resource.Resource, q.Name, q.UserInfo.Username)
			http.Error(w, "the inspector is ill", http.StatusInternalServerError)
			return
		}
		a := &admissionv1.AdmissionResponse{UID: q.UID, Allowed: true}
		if err := judge(q, a); err != nil {
			a.Allowed, a.Result = false, &metav1.Status{Message: err.Error(), Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
		}
		verdict := "allowed"
		if !a.Allowed {
			verdict = "refused: " + a.Result.Message
		}
		fmt.Fprintf(in.p.Stdout, "%s %s %s %s/%s by %s: %s\n", r.URL.Path, q.Operation, q.Kind.Kind, q.Namespace, q.Name, q.UserInfo.Username, verdict)
		rv.Request, rv.Response = nil, a
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(rv)
	}
}

// inspected is what the inspector looks at of any object.
type inspected struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		InitContainers []imageOf `json:"initContainers"`
		Containers     []imageOf `json:"containers"`
	} `json:"spec"`
}

type imageOf struct {
	Image string `json:"image"`
}

func (in *inspector) validate(q *admissionv1.AdmissionRequest, _ *admissionv1.AdmissionResponse) error {
	if in.answer != "" {
		return errors.New(in.answer)
	}
	if len(q.Object.Raw) == 0 { // a deletion
		return nil
	}
	var o inspected
	if err := json.Unmarshal(q.Object.Raw, &o); err != nil {
		return fmt.Errorf("the object can't be read: %w", err)
	}
	for _, label := range in.require {
		if o.Metadata.Labels[label] == "" {
			return fmt.Errorf("label %q is missing", label)
		}
	}
	if q.Kind.Kind != "Pod" {
		return nil
	}
	for _, c := range append(o.Spec.InitContainers, o.Spec.Containers...) {
		if ref, err := ParseReference(c.Image); in.latest && err == nil && ref.Digest == "" && ref.Tag == "latest" {
			return fmt.Errorf("image %q: a tag other than latest must be named", c.Image)
		}
		for _, pattern := range in.deny {
			if ok, err := path.Match(pattern, c.Image); err == nil && ok {
				return fmt.Errorf("image %q isn't allowed here", c.Image)
			}
		}
	}
	return nil
}

func (in *inspector) mutate(q *admissionv1.AdmissionRequest, a *admissionv1.AdmissionResponse) error {
	var o inspected
	if len(q.Object.Raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(q.Object.Raw, &o); err != nil {
		return fmt.Errorf("the object can't be read: %w", err)
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	var patch []operation
	have := o.Metadata.Labels != nil
	for _, l := range in.labels {
		name, value, _ := strings.Cut(l, "=")
		if _, there := o.Metadata.Labels[name]; there {
			continue
		}
		if !have {
			patch, have = append(patch, operation{"add", "/metadata/labels", map[string]string{}}), true
		}
		patch = append(patch, operation{"add", "/metadata/labels/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name), value})
	}
	if len(patch) == 0 {
		return nil
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	kind := admissionv1.PatchTypeJSONPatch
	a.Patch, a.PatchType = raw, &kind
	return nil
}
