package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docker writes a program that takes docker's place; it answers from a list of containers in
// a file and removes from it.
func fakeDocker(t *testing.T, containers ...string) (env map[string]string, list string) {
	t.Helper()
	dir := t.TempDir()
	list = filepath.Join(dir, "containers")
	if err := os.WriteFile(list, []byte(strings.Join(containers, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := `#!/bin/sh
list=` + list + `
case $1 in
ps) for a in "$@"; do case $a in label=*=*) want=${a##*=};; esac; done
    grep -E "^$want" $list;;
inspect) for last in "$@"; do :; done; grep -qx "$last" $list || { echo "No such container: $last" >&2; exit 1; }; echo true;;
rm) shift 3; for c in "$@"; do grep -vx "$c" $list > $list.new; mv $list.new $list; done;;
*) echo "unexpected: $*" >&2; exit 1;;
esac
`
	for name, content := range map[string]string{"docker": script, "kind-agent": "#!/bin/sh\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	return map[string]string{"KUBISTRO_DRIVER": "kind", "KUBISTRO_DATA": filepath.Join(dir, "data"), "KUBISTRO_KIND_AGENT": filepath.Join(dir, "kind-agent")}, list
}

func TestClustersOfKind(t *testing.T) {
	t.Setenv("KIND_EXPERIMENTAL_PROVIDER", "")
	env, list := fakeDocker(t, "kind-control-plane", "kubistro-zzzzzzzz-a-control-plane", "kubistro-abcdefgh-a-control-plane", "kubistro-abcdefgh-a-worker", "kubistro-abcdefgh-b-control-plane")
	if err := os.MkdirAll(filepath.Join(env["KUBISTRO_DATA"], "kind"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(env["KUBISTRO_DATA"], "kind", "owner"), []byte("abcdefgh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := call(t, env, "clusters", "list", "--json")
	var rows []clusterRow
	if err := json.Unmarshal([]byte(out), &rows); err != nil || code != exitGood || len(rows) != 2 || rows[0].ID != "a" || rows[1].ID != "b" || !rows[0].Running {
		t.Fatalf("list: %d %s %s %v", code, out, errs, err)
	}
	if code, out, errs = call(t, env, "clusters", "delete", "a"); code != exitGood || out != "a deleted\n" {
		t.Errorf("delete: %d %q %s", code, out, errs)
	}
	if code, out, errs = call(t, env, "clusters", "prune"); code != exitGood || out != "b deleted\n" {
		t.Errorf("prune: %d %q %s", code, out, errs)
	}
	left, err := os.ReadFile(list)
	if err != nil || strings.TrimSpace(string(left)) != "kind-control-plane\nkubistro-zzzzzzzz-a-control-plane" {
		t.Errorf("left: %q, %v: what isn't ours has to stay, and nothing else", left, err)
	}
	unlock, err := lockFolder(env["KUBISTRO_DATA"])
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if code, _, errs = call(t, env, "clusters", "list"); code != exitGood {
		t.Errorf("list beside a server: %d %s", code, errs)
	}
	if code, _, errs = call(t, env, "clusters", "prune"); code != exitFindings || !strings.Contains(errs, "another labserver") {
		t.Errorf("prune beside a server: %d %s", code, errs)
	}
}
