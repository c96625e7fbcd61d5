package kubelet

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
)

// certBench is one PodCertificate source of a Pod, whose requests the test answers.
type certBench struct {
	m      volumeMaker
	client *fake.Clientset
	clock  *testclock.FakeClock
	said   chan string
	source *corev1.PodCertificateProjection
}

func newCertBench(t *testing.T) *certBench {
	t.Helper()
	said := record.NewFakeRecorder(10)
	b := &certBench{
		client: fake.NewClientset(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "cook", UID: "account"}}),
		clock:  testclock.NewFakeClock(noon), said: said.Events,
		source: &corev1.PodCertificateProjection{SignerName: "example.com/chef", KeyType: "ECDSAP256", UserAnnotations: map[string]string{"example.com/table": "7"}},
	}
	made := 0
	b.client.PrependReactor("create", "podcertificaterequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
		made++ // what the API server fills in, the fake one doesn't
		o := a.(clienttesting.CreateAction).GetObject().(*certificatesv1.PodCertificateRequest)
		o.Name, o.CreationTimestamp = fmt.Sprintf("%s%d", o.GenerateName, made), metav1.NewTime(b.clock.Now())
		return false, nil, nil
	})
	k := &Kubelet{cfg: Config{Name: "kitchen-1", Client: b.client}, clock: b.clock, work: newGate()}
	b.m = volumeMaker{
		b:     &boot{k: k, log: slog.New(slog.DiscardHandler), events: events{nil, said}},
		facts: podFacts{pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "grill", UID: "pod"}, Spec: corev1.PodSpec{ServiceAccountName: "cook"}}},
		certs: map[string]*podCert{},
	}
	return b
}

func (b *certBench) ask(t *testing.T) (key, chain string, err error) {
	t.Helper()
	k, c, err := b.m.certificate(t.Context(), "tls", 0, b.source)
	return string(k), string(c), err
}

// request is the one that is waited for.
func (b *certBench) request(t *testing.T) *certificatesv1.PodCertificateRequest {
	t.Helper()
	name := b.m.certs["tls/0"].Request
	r, err := b.client.CertificatesV1().PodCertificateRequests("ns").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// answer sets the condition of the request; an issued one shows chain and is to be renewed at a time.
func (b *certBench) answer(t *testing.T, condition, chain string, renew, end time.Time) {
	t.Helper()
	r := b.request(t)
	r.Status = certificatesv1.PodCertificateRequestStatus{
		Conditions:       []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: "Because", Message: "the chef says so"}},
		CertificateChain: chain, BeginRefreshAt: &metav1.Time{Time: renew}, NotAfter: &metav1.Time{Time: end},
	}
	if _, err := b.client.CertificatesV1().PodCertificateRequests("ns").UpdateStatus(t.Context(), r, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// event is the next Event; "" when there is none.
func (b *certBench) event() string {
	select {
	case e := <-b.said:
		return e
	default:
		return ""
	}
}

func block(text string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte(text)}))
}

func TestPodCertificateIsRequestedAndRenewed(t *testing.T) {
	b := newCertBench(t)
	for range 2 {
		if _, _, err := b.ask(t); !errors.Is(err, errNotIssued) {
			t.Fatalf("before it is issued: %v", err)
		}
	}
	r := b.request(t)
	s := r.Spec
	if r.GenerateName != "req-" || len(r.OwnerReferences) != 1 || r.OwnerReferences[0].UID != "pod" || s.SignerName != "example.com/chef" || s.PodName != "grill" || s.PodUID != "pod" ||
		s.ServiceAccountName != "cook" || s.ServiceAccountUID != "account" || s.NodeName != "kitchen-1" || s.UnverifiedUserAnnotations["example.com/table"] != "7" {
		t.Errorf("request %+v", r)
	}
	proof, err := x509.ParseCertificateRequest(s.StubPKCS10Request)
	if err == nil {
		err = proof.CheckSignature()
	}
	if err != nil {
		t.Errorf("proof of possession: %v", err)
	}
	b.answer(t, certificatesv1.PodCertificateRequestConditionTypeIssued, "a comment\n"+block("first")+"another\n"+block("chef"), noon.Add(time.Hour), noon.Add(2*time.Hour))
	key, chain, err := b.ask(t)
	if err != nil || chain != block("first")+block("chef") || !strings.HasPrefix(key, "-----BEGIN PRIVATE KEY-----") {
		t.Fatalf("issued: %q %q, %v", key, chain, err)
	}
	b.clock.SetTime(noon.Add(59 * time.Minute))
	if again, _, _ := b.ask(t); again != key || b.m.certs["tls/0"].NextKey != nil {
		t.Error("it was renewed before it was time")
	}
	if err := b.client.CertificatesV1().PodCertificateRequests("ns").Delete(t.Context(), r.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.clock.SetTime(noon.Add(time.Hour + certJitter))
	if old, _, err := b.ask(t); old != key || err != nil || b.m.certs["tls/0"].NextKey == nil {
		t.Errorf("while the next one is waited for the old one shows: %v", err)
	}
	b.clock.SetTime(noon.Add(3 * time.Hour)) // nobody answers
	for range 2 {
		if old, _, err := b.ask(t); old != key || err != nil {
			t.Errorf("an expired one still shows: %v", err)
		}
	}
	for _, want := range []string{"Warning CertificateOverdueForRefresh PodCertificate refresh overdue", "Warning CertificateExpired PodCertificate expired"} {
		if got := b.event(); got != want {
			t.Errorf("event %q, want %q", got, want)
		}
	}
	b.answer(t, certificatesv1.PodCertificateRequestConditionTypeIssued, block("second"), noon.Add(4*time.Hour), noon.Add(5*time.Hour))
	if next, chain, err := b.ask(t); next == key || chain != block("second") || err != nil {
		t.Errorf("renewed: %q, %v", chain, err)
	}
	if got := b.event(); got != "" {
		t.Errorf("another event: %s", got)
	}
}

func TestPodCertificateIsRefused(t *testing.T) {
	for condition, want := range map[string]string{
		certificatesv1.PodCertificateRequestConditionTypeDenied: `PodCertificateRequest was permanently denied: reason="Because" message="the chef says so"`,
		certificatesv1.PodCertificateRequestConditionTypeFailed: `PodCertificateRequest was permanently failed: reason="Because" message="the chef says so"`,
	} {
		b := newCertBench(t)
		b.ask(t)
		b.answer(t, condition, "", noon, noon)
		for range 2 {
			if _, _, err := b.ask(t); err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if got := b.event(); !strings.HasPrefix(got, "Warning "+condition+" PodCertificateRequest ns/") || len(b.said) != 0 {
			t.Errorf("event %q, and %d more", got, len(b.said))
		}
	}
}

func TestLostPodCertificateRequestIsMadeAnew(t *testing.T) {
	b := newCertBench(t)
	b.ask(t)
	first := b.m.certs["tls/0"].NextKey
	if err := b.client.CertificatesV1().PodCertificateRequests("ns").Delete(t.Context(), b.request(t).Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	b.ask(t)
	if got := b.m.certs["tls/0"].NextKey; string(got) != string(first) {
		t.Error("it was made anew at once")
	}
	b.clock.SetTime(noon.Add(certRequestLost + certJitter + time.Second))
	b.ask(t)
	if got := b.m.certs["tls/0"].NextKey; got == nil || string(got) == string(first) {
		t.Error("it wasn't made anew")
	}
}

func TestCertificateKeys(t *testing.T) {
	for _, kind := range []string{"RSA3072", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"} {
		key, request, err := newCertificateKey(kind)
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		b, _ := pem.Decode(key)
		if _, err := x509.ParsePKCS8PrivateKey(b.Bytes); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if r, err := x509.ParseCertificateRequest(request); err != nil || r.CheckSignature() != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, _, err := newCertificateKey("DSA"); err == nil {
		t.Error("a key of an unknown type")
	}
}
