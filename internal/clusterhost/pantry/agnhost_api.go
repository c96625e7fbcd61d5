package pantry

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// agnhostInCluster asks the API server for its health now and then, by the
// mounted token, and logs a hash of the token that it used.
func agnhostInCluster(ctx context.Context, a *agnhost, args []string) int {
	f := a.flags("inclusterclient")
	period := f.Int("poll-interval", 30, "")
	if code, ok := a.parse(f, args); !ok {
		return code
	}
	config, err := a.InClusterConfig()
	if err != nil {
		return a.fatal("err: %v", err)
	}
	authenticated := config.WrapTransport
	config.WrapTransport = func(rt http.RoundTripper) http.RoundTripper { return authenticated(shownToken{a, rt}) }
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return a.fatal("err: %v", err)
	}
	a.printf("started")
	ctx, cancel := context.WithCancel(ctx)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for a.sleep(ctx, time.Duration(max(*period, 1))*time.Second) {
			a.printf("calling /healthz")
			if b, err := client.RESTClient().Get().AbsPath("/healthz").Do(ctx).Raw(); err != nil && ctx.Err() == nil {
				a.printf("status=failed")
				a.printf("error checking /healthz: %v\n%s\n", err, b)
			}
		}
	}()
	code := a.run(ctx, 0, 2)
	cancel()
	<-asked
	return code
}

// shownToken logs a hash of each request's credentials.
type shownToken struct {
	a  *agnhost
	rt http.RoundTripper
}

func (s shownToken) RoundTrip(r *http.Request) (*http.Response, error) {
	if h := r.Header.Get("Authorization"); h != "" {
		sum := sha256.Sum256([]byte("salt|" + h))
		s.a.printf("authz_header=%s", base64.RawURLEncoding.EncodeToString(sum[:]))
	} else {
		s.a.printf("authz_header=<empty>")
	}
	return s.rt.RoundTrip(r)
}

// agnhostIssuer verifies a token of the Pod by what its issuer publishes (OIDC discovery).
func agnhostIssuer(ctx context.Context, a *agnhost, args []string) int {
	f := a.flags("test-service-account-issuer-discovery")
	file, audience := f.String("token-path", "", ""), f.String("audience", "", "")
	if code, ok := a.parse(f, args); !ok {
		return code
	}
	raw, err := a.readFile(*file)
	if err != nil {
		return a.fatal("%v", err)
	}
	a.printf("OK: Got token")
	if err := a.verify(ctx, strings.TrimSpace(string(raw)), *audience); err != nil {
		return a.fatal("failed to validate with in-cluster discovery: %v", err)
	}
	return 0
}

// verify accepts a token only if the issuer that it names vouches for it.
func (a *agnhost) verify(ctx context.Context, raw, audience string) error {
	config, err := a.InClusterConfig()
	if err != nil {
		return err
	}
	rt, err := rest.TransportFor(config)
	if err != nil {
		return fmt.Errorf("could not get roundtripper: %w", err)
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, &http.Client{Transport: rt}), time.Minute)
	defer cancel()
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := unverifiedClaims(raw, &claims); err != nil {
		return err
	}
	a.printf("OK: got issuer %s", claims.Issuer)
	provider, err := oidc.NewProvider(ctx, claims.Issuer)
	if err != nil {
		return err
	}
	a.printf("OK: Constructed OIDC provider for issuer %v", claims.Issuer)
	token, err := provider.Verifier(&oidc.Config{
		ClientID: audience, SupportedSigningAlgs: []string{oidc.RS256, oidc.ES256, oidc.ES384, oidc.ES512}, Now: a.Clock.Now,
	}).Verify(ctx, raw)
	if err != nil {
		return err
	}
	a.printf("OK: Validated signature on JWT of %s", token.Subject)
	return nil
}

// unverifiedClaims reads a token's claims without trusting them.
func unverifiedClaims(raw string, claims any) error {
	parts := strings.Split(raw, ".")
	if len(parts) != 3 {
		return fmt.Errorf("%q is no JSON web token", raw)
	}
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return fmt.Errorf("claims: %w", err)
	}
	return json.Unmarshal(b, claims)
}
