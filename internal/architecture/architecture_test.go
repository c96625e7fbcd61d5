// Package architecture holds the test that keeps the direction of imports:
// downward only, as docs/design.md draws it.
package architecture

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "kubistro/"

// allowed lists, for each area (the longest prefix wins), which areas of the
// project its packages may import besides those of the same area.
var allowed = map[string][]string{
	"internal/lab":                       {},
	"lessons":                            {},
	"internal/shell":                     {},
	"internal/checker":                   {"internal/lab"},
	"internal/course":                    {"internal/lab", "internal/checker"},
	"internal/quiz":                      {},
	"internal/store":                     {"internal/lab", "internal/quiz"},
	"internal/testprocess":               {},
	"internal/labclient":                 {"internal/testprocess"},
	"internal/systemtest":                {"internal/lab", "internal/labclient"},
	"internal/terminal":                  {"internal/lab", "internal/shell"},
	"internal/clusterhost/controlapi":    {"internal/lab"},
	"internal/clusterhost/balancer":      {},
	"internal/clusterhost/cloud":         {},
	"internal/clusterhost/loops":         {},
	"internal/clusterhost/noderules":     {"internal/lab"},
	"internal/clusterhost/hosttest":      {"internal/lab", "internal/testprocess", "internal/clusterhost/controlapi"},
	"internal/clusterhost/pace":          {"internal/lab"},
	"internal/clusterhost/street":        {},
	"internal/clusterhost/vnet":          {"internal/lab", "internal/clusterhost/street"},
	"internal/clusterhost/pantry":        {"internal/lab", "internal/shell", "internal/clusterhost/vnet", "internal/clusterhost/cloud", "internal/clusterhost/pace"},
	"internal/clusterhost/addons":        {"internal/lab", "internal/shell", "internal/clusterhost/vnet", "internal/clusterhost/pantry", "internal/clusterhost/kubelet"},
	"internal/clusterhost/controlserver": {"internal/lab", "internal/clusterhost/controlapi"},
	"internal/clusterhost/kubelet":       {"internal/lab", "internal/shell", "internal/clusterhost/vnet", "internal/clusterhost/pantry", "internal/clusterhost/pace"},
	"internal/clusterhost/controlplane":  {"internal/lab", "internal/clusterhost"},
	"internal/cluster":                   {"internal/lab"},
	"internal/cluster/embedded":          {"internal/lab", "internal/cluster", "internal/clusterhost/controlapi"},
	"internal/cluster/kind":              {"internal/lab", "internal/cluster", "internal/clusterhost/balancer", "internal/clusterhost/loops", "internal/clusterhost/noderules", "internal/clusterhost/pace", "internal/clusterhost/street"},
	"internal/session":                   {"internal/lab", "internal/shell", "internal/cluster", "internal/checker", "internal/course", "internal/terminal", "internal/store"},
	"internal/verify":                    {"internal/lab", "internal/cluster", "internal/checker", "internal/course", "internal/terminal", "internal/store", "internal/session"},
	"web":                                {"internal/lab", "internal/course", "internal/checker", "internal/session", "internal/store", "internal/terminal", "internal/quiz"},
}

// outside lists the modules that only some areas may import.
var outside = map[string][]string{
	"k8s.io/kubernetes/":     {"internal/clusterhost/controlplane", "cmd/clusterhost"},
	"go.etcd.io/etcd/server": {"internal/clusterhost/controlplane", "cmd/clusterhost"},
	"sigs.k8s.io/kind/":      {"internal/cluster/kind"},
	"k8s.io/kubectl/":        {"internal/terminal"},
	"modernc.org/sqlite":     {"internal/store"},
	"github.com/a-h/templ":   {"web"},
}

type goPackage struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %s", exit.Stderr)
		}
		t.Fatal(err)
	}
	var list []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

// area is the longest key of allowed that path lies in; "" for commands and tools.
func area(path string) string {
	best := ""
	for a := range allowed {
		if (path == a || strings.HasPrefix(path, a+"/")) && len(a) > len(best) {
			best = a
		}
	}
	return best
}

func TestImportsGoDownward(t *testing.T) {
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		from := area(path)
		if from == "" {
			if strings.HasPrefix(path, "internal/") && path != "internal/architecture" {
				t.Errorf("%s is in no area: add it to the table with what it may import", path)
			}
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module)
			if !ours || area(to) == from {
				continue
			}
			if !slices.ContainsFunc(allowed[from], func(a string) bool { return to == a || strings.HasPrefix(to, a+"/") }) {
				t.Errorf("%s imports %s: %s may import %v only", path, to, from, allowed[from])
			}
		}
	}
}

func TestHeavyModulesStayWhereTheyBelong(t *testing.T) {
	for _, p := range packages(t) {
		path := strings.TrimPrefix(p.ImportPath, module)
		for prefix, areas := range outside {
			for _, imp := range p.Imports {
				if !strings.HasPrefix(imp+"/", prefix) && !strings.HasPrefix(imp, prefix) {
					continue
				}
				if !slices.ContainsFunc(areas, func(a string) bool { return path == a || strings.HasPrefix(path, a+"/") }) {
					t.Errorf("%s imports %s: only %v may", path, imp, areas)
				}
			}
		}
	}
}

// The lessons and the web server build without compiling Kubernetes.
func TestServerDoesNotLinkKubernetes(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./cmd/labserver")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range strings.Fields(string(out)) {
		if strings.HasPrefix(dep, "k8s.io/kubernetes/") || strings.HasPrefix(dep, "go.etcd.io/etcd/server") {
			t.Fatalf("cmd/labserver depends on %s", dep)
		}
	}
}
