package pantry

import (
	"strings"
	"testing"

	"github.com/distribution/reference"
)

const digest = "sha256:7cc4b5aefd1d0cadf8d97d4350462ba51c694ebca145b08d7d41b41acc8db5aa"

func TestParseReference(t *testing.T) {
	for in, want := range map[string]string{
		"nginx":                             "docker.io/library/nginx:latest",
		"nginx:1.27":                        "docker.io/library/nginx:1.27",
		"library/nginx":                     "docker.io/library/nginx:latest",
		"docker.io/nginx":                   "docker.io/library/nginx:latest",
		"index.docker.io/nginx":             "docker.io/library/nginx:latest",
		"docker.io/library/nginx":           "docker.io/library/nginx:latest",
		"traefik/whoami":                    "docker.io/traefik/whoami:latest",
		"registry.k8s.io/pause:3.10":        "registry.k8s.io/pause:3.10",
		"localhost/x":                       "localhost/x:latest",
		"localhost:5000/x":                  "localhost:5000/x:latest",
		"[fd00::1]:5000/x":                  "[fd00::1]:5000/x:latest",
		"Registry/x":                        "Registry/x:latest",
		"nginx@" + digest:                   "docker.io/library/nginx@" + digest,
		"nginx:1.27@" + digest:              "docker.io/library/nginx:1.27@" + digest,
		"a__b/c-d---e.f":                    "docker.io/a__b/c-d---e.f:latest",
		"nginx:" + strings.Repeat("a", 128): "docker.io/library/nginx:" + strings.Repeat("a", 128),
	} {
		got, err := ParseReference(in)
		if err != nil || got.String() != want {
			t.Errorf("%s: %s, %v; want %s", in, got, err, want)
		}
	}
	for _, bad := range []string{
		"", " ", "Nginx", "nginx:", "nginx:a b", ":tag", "nginx@", "nginx@sha256:12", "nginx@md5:" + strings.Repeat("a", 32),
		"-nginx", "nginx-", "a___b", "a..b", "a/", "/a", "a//b", "http://nginx", "nginx:1:2", "[fd00::1/x", "reg.io:x/y",
		"nginx:" + strings.Repeat("a", 129), strings.Repeat("a", 64), strings.Repeat("a", 256), "nginx:.x", "grill cook",
	} {
		if got, err := ParseReference(bad); err == nil {
			t.Errorf("%q is taken as %s", bad, got)
		}
	}
}

// FuzzParseReference compares with the distribution project's own parser.
func FuzzParseReference(f *testing.F) {
	for _, s := range []string{"nginx", "Nginx", "a/b/c:1", "localhost:5000/x@" + digest, "[::1]:1/x", "x:y@sha256:z", "UP.io/x", "a__b", "a.b/c_d--e:T_-.", strings.Repeat("a", 64)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseReference(s)
		named, wantErr := reference.ParseNormalizedNamed(s)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: error %v, the reference parser's %v", s, err, wantErr)
		}
		if err != nil {
			return
		}
		if want := reference.TagNameOnly(named).String(); got.String() != want {
			t.Fatalf("%q: %s, want %s", s, got, want)
		}
		again, err := ParseReference(got.String())
		if err != nil || again != got {
			t.Fatalf("%q: normal form %s reads as %s, %v", s, got, again, err)
		}
	})
}
