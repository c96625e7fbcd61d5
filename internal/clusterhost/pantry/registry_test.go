package pantry

import (
	"errors"
	"path"
	"regexp"
	"strings"
	"testing"
)

func TestPull(t *testing.T) {
	r := Default()
	same := func(refs ...string) {
		t.Helper()
		first, err := r.Pull(refs[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range refs {
			img, err := r.Pull(ref)
			if err != nil || img.ID != first.ID {
				t.Errorf("%s isn't %s: %v", ref, refs[0], err)
			}
		}
	}
	same("nginx", "nginx:latest", "docker.io/library/nginx", "nginx:mainline", "nginx:1.29")
	same("nginx:alpine", "nginx:mainline-alpine")
	same("grill-cook:1.5", "grill-cook", "docker.io/library/grill-cook:1.5")
	same("busybox", "busybox:1.37")
	for _, ref := range []string{"grill-cook:1.4", "toolbox", "traefik/whoami:v1.10", "nginx:1.14.2", "nginx:1.27", "nginx:1.28", "busybox:1.28", "curlimages/curl", "registry.k8s.io/pause:3.10"} {
		if _, err := r.Pull(ref); err != nil {
			t.Error(err)
		}
	}
	old, _ := r.Pull("grill-cook:1.4")
	latest, _ := r.Pull("grill-cook")
	if old.ID == latest.ID {
		t.Error("1.4 and 1.5 are one image")
	}
	if got, err := r.Pull("grill-cook:9.9@" + old.ID); err != nil || got.Name != "docker.io/library/grill-cook:1.4" {
		t.Errorf("by digest: %v", err)
	}
	if again, _ := Default().Pull("nginx:1.27"); again.ID != mustPull(t, r, "nginx:1.27").ID {
		t.Error("an ID isn't stable")
	}
}

func mustPull(t *testing.T, r *Registry, ref string) *Image {
	t.Helper()
	img, err := r.Pull(ref)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func TestPullFailures(t *testing.T) {
	r := Default()
	for _, tc := range []struct {
		ref, want string
		invalid   bool
	}{
		{"nginx:doesnotexist", `rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/nginx:doesnotexist": failed to resolve reference "docker.io/library/nginx:doesnotexist": docker.io/library/nginx:doesnotexist: not found`, false},
		{"nginx@" + digest, `rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/nginx@` + digest + `": failed to resolve reference "docker.io/library/nginx@` + digest + `": docker.io/library/nginx@` + digest + `: not found`, false},
		{"mysql", `rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/mysql:latest": failed to resolve reference "docker.io/library/mysql:latest": this kitchen's pantry has only: ` + strings.Join(r.familiarNames(), ", "), false},
		{"Nginx", `Failed to apply default image tag "Nginx": couldn't parse image name "Nginx": invalid reference format: repository name (library/Nginx) must be lowercase`, true},
		{"nginx:", `Failed to apply default image tag "nginx:": couldn't parse image name "nginx:": invalid reference format`, true},
	} {
		_, err := r.Pull(tc.ref)
		var pe *PullError
		if !errors.As(err, &pe) || pe.Message != tc.want || pe.Invalid != tc.invalid {
			t.Errorf("%s: %v\nwant %s", tc.ref, err, tc.want)
		}
	}
}

// TestOfferedNames: a refused pull names each program that there is once, by a name that
// can be pulled, and nothing of private registries.
func TestOfferedNames(t *testing.T) {
	r := Default()
	repositories := map[string]bool{}
	lasts := map[string]int{}
	for _, repo := range r.Repositories() {
		repositories[repo.Name] = true
		if !strings.HasPrefix(repo.Name, testImages) && !strings.HasPrefix(repo.Name, PrivateRegistry+"/") {
			lasts[path.Base(repo.Name)]++
		}
	}
	for _, name := range r.familiarNames() {
		if name == testImages+"*" {
			continue
		}
		ref, err := ParseReference(name)
		if err != nil || !repositories[ref.Name()] || strings.HasPrefix(name, PrivateRegistry) {
			t.Errorf("%s: %v", name, err)
		}
		if last := path.Base(name); lasts[last] == 0 {
			t.Errorf("%s is named twice, or is no image", name)
		} else {
			delete(lasts, last)
		}
	}
	if len(lasts) > 0 {
		t.Errorf("not named: %v", lasts)
	}
}

func TestEveryImageIsWhole(t *testing.T) {
	r := Default()
	id := regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	for _, repo := range r.Repositories() {
		for _, tag := range repo.Tags {
			img, err := r.Known(repo.Name + ":" + tag)
			if err != nil {
				t.Fatal(err)
			}
			if !id.MatchString(img.ID) || img.SizeBytes <= 0 || img.Name != repo.Name+":"+tag {
				t.Errorf("%s: ID %s, size %d", img.Name, img.ID, img.SizeBytes)
			}
			argv := append(append([]string(nil), img.Entrypoint...), img.Cmd...)
			if len(argv) == 0 {
				t.Errorf("%s has nothing to run", img.Name)
			}
			own := repo.Name == "docker.io/library/grill-cook" || repo.Name == "docker.io/library/toolbox" ||
				strings.HasPrefix(repo.Name, "docker.io/kubistro/") || strings.HasPrefix(repo.Name, PrivateRegistry+"/")
			if img.Simulated == own {
				t.Errorf("%s: simulated %v", img.Name, img.Simulated)
			}
		}
	}
}

func TestAdd(t *testing.T) {
	r := NewRegistry()
	if err := r.Add(&Image{Name: "Bad Name"}); err == nil {
		t.Error("a bad name is taken")
	}
	if err := r.Add(&Image{Name: "coredns:v1"}); err != nil {
		t.Fatal(err)
	}
	if img := mustPull(t, r, "docker.io/library/coredns:v1"); img.ID == "" {
		t.Error("no ID")
	}
}

func TestToolsOfImages(t *testing.T) {
	r := Default()
	for ref, want := range map[string]map[string]bool{
		"grill-cook:1.4":             {"sh": true, "burn-dish": true, "sleep": true, "curl": true},
		"toolbox":                    {"bash": true, "curl": true, "nslookup": true, "dig": true, "burn-dish": false},
		"busybox":                    {"sh": true, "wget": true, "nc": true, "httpd": true, "curl": false, "bash": false},
		"nginx":                      {"sh": true, "bash": true, "curl": true, "nginx": true, "ps": false, "nslookup": false},
		"nginx:alpine":               {"sh": true, "bash": false, "nslookup": true, "curl": true},
		"curlimages/curl":            {"sh": true, "curl": true, "bash": false},
		"traefik/whoami":             {"sh": false, "whoami": true},
		"registry.k8s.io/pause:3.10": {"sh": false, "pause": true},
	} {
		img := mustPull(t, r, ref)
		for name, there := range want {
			if (img.Programs[name] != nil) != there {
				t.Errorf("%s in %s: %v, want %v", name, ref, !there, there)
			}
		}
	}
}

// TestPrivateRegistry: who pulls without the right login isn't even told what there is.
func TestPrivateRegistry(t *testing.T) {
	r := Default()
	const ref, missing = PrivateRegistry + "/private/grill-cook:1.4", PrivateRegistry + "/private/none:1"
	right, wrong := &Login{PrivateUser, PrivatePassword}, &Login{PrivateUser, "guess"}
	for _, c := range []struct {
		ref   string
		login *Login
		want  string
	}{
		{ref, nil, "insufficient_scope: authorization failed"},
		{missing, nil, "insufficient_scope: authorization failed"},
		{ref, wrong, "401 Unauthorized"},
		{missing, right, "code = NotFound"},
		{ref, right, ""},
		{"busybox", wrong, ""},
	} {
		_, err := r.PullAs(c.ref, c.login)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s with %v: %v, want %q", c.ref, c.login, err, c.want)
		}
	}
}
