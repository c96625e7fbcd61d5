package terminal_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestEscapes tries to leave the terminal in every way we know. The host has a
// secret file and a listener; neither may be reached, and each attempt must end
// with a message or without effect.
func TestEscapes(t *testing.T) {
	c := withCluster(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	const word = "TOP-SECRET-OF-THE-HOST"
	if err := os.WriteFile(secret, []byte(word), 0o644); err != nil {
		t.Fatal(err)
	}
	var hits atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		hits.Add(1)
		w.Write([]byte(word))
	}))
	defer srv.Close()
	t.Setenv("KUBISTRO_TEST_SECRET", word)
	for _, link := range []struct{ target, name string }{{secret, "link"}, {outside, "dirlink"}, {"/", "rootlink"}, {"/proc/self/root", "proclink"}} {
		if err := os.Symlink(link.target, filepath.Join(c.Home, link.name)); err != nil {
			t.Fatal(err)
		}
	}
	exe := "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters:\n- name: x\n  cluster: {server: " + srv.URL + "}\ncontexts:\n- name: x\n  context: {cluster: x, user: x}\nusers:\n- name: x\n  user:\n    exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/cat, args: [" + secret + "], interactiveMode: Never}\n"
	for name, text := range map[string]string{
		"exec.yaml": exe, "kustom/kustomization.yaml": "resources:\n- " + srv.URL + "/x.yaml\n", "kustom2/kustomization.yaml": "resources:\n- ../../" + filepath.Base(outside) + "\n",
		"kustom3/kustomization.yaml": "configMapGenerator:\n- name: x\n  files: [" + secret + "]\n", "f.sh": "cat " + secret + "\n", "ok.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ok}\n",
	} {
		p := filepath.Join(c.Home, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	hostHome := c.Home
	attempts := []string{
		// Files by every form of path.
		"cat /etc/passwd", "cat " + secret, "cat ../../.." + secret, "cat /home/learner/../../.." + secret, "cat link", "cat dirlink/secret", "cat rootlink" + secret, "cat proclink/etc/passwd",
		"cat /proc/self/root" + secret, "cat /proc/self/environ", "cat /proc/self/cmdline", "cat /proc/self/fd/0", "cat /dev/fd/3", "cat < " + secret, "cat < /proc/self/fd/3", ". " + secret, "source " + secret, "source /etc/profile",
		"cp " + secret + " x; cat x", "mv " + secret + " x", "ln -s " + secret + " y; cat y", "tar cf - /etc | head -c 100", "tar xf /etc/passwd", "grep -r . /etc", "grep -r " + word + " .", "find / -name passwd", "find dirlink/ -type f -exec cat {} \\;",
		"ls /", "ls /etc", "ls rootlink/", "echo /etc/*", "echo /*", "echo ~root/*", "echo x > /tmp/kubistro-escape", "echo x > dirlink/new", "touch dirlink/new", "mkdir dirlink/new", "rm " + secret, "rm dirlink/secret", "rm -rf rootlink/tmp", "chmod 777 /etc/passwd",
		"sed -i s/a/b/ link", "awk '{print}' " + secret, "awk 'BEGIN{while((getline l < \"" + secret + "\")>0) print l}'", "awk 'BEGIN{system(\"cat " + secret + "\")}'", "jq -R . " + secret, "jq -n 'input_filename, $__prog_args'", "jq -n 'env'", "diff ok.yaml " + secret,
		"cd ..; pwd", "cd /; ls", "cd /etc && ls", "cd dirlink && ls", "cd rootlink; ls etc", "pushd /etc", "test -r /etc/passwd && echo REACHED", "[ -e " + secret + " ] && echo REACHED", "[[ -f " + secret + " ]] && echo REACHED",
		// Programs and the environment.
		"/bin/ls /", "/bin/cat " + secret, "exec /bin/sh", "sh f.sh", "./rootlink/bin/ls", "command cat " + secret, "builtin source " + secret, "eval cat " + secret, "env", "printenv", "export; set", "echo $KUBISTRO_TEST_SECRET", "PATH=/etc; type passwd", "PATH=/etc; command -v passwd; . passwd", "type -p ls; type -P passwd",
		"cat <(cat " + secret + ")", "cat " + secret + " > >(cat)", "exec 3< " + secret + "; cat <&3", "mapfile x < " + secret + "; echo \"${x[@]}\"", "read x < " + secret + "; echo $x", "trap 'cat " + secret + "' EXIT", "pwd -P", "echo $(<" + secret + ")", "history -w /tmp/kubistro-escape",
		// The network of the host.
		"curl -s " + srv.URL, "curl -s file://" + secret, "curl -s --resolve web:80:127.0.0.1 web", "curl -s -d @" + secret + " web", "curl -s -o /tmp/kubistro-escape web", "curl -s unix://x", "wget -qO- " + srv.URL, "nc " + strings.Replace(srv.Listener.Addr().String(), ":", " ", 1) + " < ok.yaml", "nslookup localhost", "curl -s localhost:" + strings.Split(srv.Listener.Addr().String(), ":")[1], "curl -s http://169.254.169.254/",
		// kubectl: whom it talks to.
		"kubectl --kubeconfig exec.yaml get pods", "kubectl --kubeconfig=" + secret + " get pods", "KUBECONFIG=exec.yaml kubectl get nodes -o name", "mkdir .kube; cp exec.yaml .kube/config; kubectl get nodes -o name", "kubectl --server " + srv.URL + " get pods", "kubectl -s " + srv.URL + " get pods", "kubectl -s" + srv.URL + " get pods", "kubectl get pods -s " + srv.URL,
		"kubectl --token x get pods", "kubectl --user x get pods", "kubectl --cluster x get pods", "kubectl --context x get pods", "kubectl --certificate-authority " + secret + " get pods", "kubectl --client-certificate=" + secret + " get pods", "kubectl --insecure-skip-tls-verify get pods", "kubectl --tls-server-name=x get pods", "kubectl --username=x --password=y get pods",
		"kubectl config set-cluster x --server=" + srv.URL, "kubectl config set-credentials x --exec-command=/bin/sh", "kubectl config --kubeconfig=" + secret + " view", "kubectl config view --raw", "kubectl config use-context x", "kubectl config set users.x.exec.command /bin/sh",
		// kubectl: files, programs and ports.
		"kubectl apply -f " + srv.URL + "/x.yaml", "kubectl apply -Rf " + srv.URL + "/x.yaml", "kubectl apply --filename=" + srv.URL, "kubectl apply -f" + srv.URL, "kubectl create -f HTTP://127.0.0.1/x", "kubectl apply -f " + secret, "kubectl apply -f ../../.." + secret, "kubectl apply -f link", "kubectl apply -Rf dirlink", "kubectl apply -f rootlink" + secret, "kubectl apply -f ok.yaml," + secret, "kubectl apply -f /proc/self/environ", "kubectl apply -f file://" + secret,
		"kubectl apply -k " + srv.URL, "kubectl apply -k github.com/x/y", "kubectl apply -k kustom", "kubectl kustomize kustom", "kubectl kustomize kustom2", "kubectl kustomize kustom3", "kubectl kustomize " + outside, "kubectl kustomize --enable-helm kustom", "kubectl kustomize kustom -o /tmp/kubistro-escape",
		"kubectl create configmap x --from-file=" + secret + "; kubectl get configmap x -o yaml", "kubectl create configmap y --from-file=k=" + secret + "; kubectl get configmap y -o yaml", "kubectl create configmap z --from-file=dirlink; kubectl get configmap z -o yaml", "kubectl create secret generic s --from-file=link -o yaml --dry-run=client", "kubectl create secret generic s --from-env-file=" + secret + " -o yaml --dry-run=client", "kubectl create secret tls s --cert=" + secret + " --key=" + secret,
		"kubectl patch ns default --patch-file " + secret, "kubectl get ns -o go-template-file=" + secret, "kubectl get ns -o jsonpath-file=link", "kubectl get ns -o custom-columns-file=" + secret, "kubectl get ns -o go-template-file --template=" + secret, "kubectl get ns -o go-template='{{.metadata}}' --cache-dir=/tmp/kubistro-escape", "kubectl get ns --profile=cpu --profile-output=/tmp/kubistro-escape", "kubectl get ns -v=9 --log-file=/tmp/kubistro-escape", "kubectl get ns --log_dir=/tmp",
		"kubectl cluster-info dump --output-directory=/tmp/kubistro-escape", "kubectl cluster-info dump --output-directory " + outside, "kubectl cp " + secret + " x:/tmp", "kubectl cp x:/tmp/a /etc/x", "kubectl cp x:/tmp/a ../../../../etc/x", "kubectl cp link x:/tmp/a", "kubectl cp -c " + secret + " " + secret + " default/x:/t", "kubectl proxy --port=0", "kubectl proxy -w=/ --www-prefix=/", "kubectl port-forward svc/x 8080:80 --address 0.0.0.0", "kubectl plugin list", "kubectl kuberc view", "kubectl completion bash",
		"EDITOR='cat " + secret + "' kubectl edit ns default", "KUBE_EDITOR=/bin/sh kubectl edit ns default", "KUBECTL_EXTERNAL_DIFF='cat " + secret + "' kubectl diff -f ok.yaml", "kubectl debug node/x --custom=" + secret + " --image=busybox", "kubectl auth reconcile -f " + secret, "kubectl replace --raw /api -f " + secret, "kubectl create --raw /api/v1/namespaces -f " + secret, "kubectl get --raw " + srv.URL + "/x", "kubectl get --raw file://" + secret, "kubectl explain pods --api-version=" + secret,
	}
	if len(attempts) < 40 {
		t.Fatalf("only %d attempts", len(attempts))
	}
	const batch = 30 // attempts of one child: starting a child costs the most
	for len(attempts) > 0 {
		some := attempts[:min(batch, len(attempts))]
		attempts = attempts[len(some):]
		var script strings.Builder
		for _, a := range some {
			script.WriteString("echo; echo @@@@; sh -c '" + strings.ReplaceAll(a, "'", `'\''`) + "'\n")
		}
		out, _ := execIn(t, c, script.String())
		results := strings.Split(out, "@@@@\n")[1:]
		if len(results) != len(some) {
			t.Fatalf("%d results of %d attempts:\n%s", len(results), len(some), out)
		}
		for i, got := range results {
			for _, bad := range []string{word, "root:x:0", "REACHED", hostHome, "/bin/bash"} {
				if strings.Contains(strings.ReplaceAll(got, some[i], ""), bad) {
					t.Errorf("%s: found %q in:\n%s", some[i], bad, got)
				}
			}
		}
	}
	if n := hits.Load(); n > 0 {
		t.Errorf("the host's listener was reached %d times", n)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != word {
		t.Errorf("the secret was changed: %q %v", b, err)
	}
	if _, err := os.Stat("/tmp/kubistro-escape"); err == nil {
		t.Error("a file was written outside the home")
		os.RemoveAll("/tmp/kubistro-escape")
	}
	list, err := os.ReadDir(outside)
	if err != nil || len(list) != 1 {
		t.Errorf("outside now holds %v (%v)", list, err)
	}
}

// TestConfinement tries plain system calls from a confined process.
func TestConfinement(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "own"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(home, "link")); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "probe-confinement", home)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, l := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if strings.HasPrefix(l, "REACHED") && !strings.Contains(l, "must work") {
			t.Error(l)
		}
	}
	t.Log(out.String())
}

// TestBrokerIsTheOnlyWay: what the server doesn't dial can't be reached.
func TestBrokerIsTheOnlyWay(t *testing.T) {
	c := config(t)
	var asked atomic.Int64
	c.Dial = func(context.Context, string, string) (net.Conn, error) {
		asked.Add(1)
		return nil, &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}
	}
	out, code := execIn(t, c, "curl http://127.0.0.1:1/; echo $?")
	if !strings.Contains(out, "curl: (6)") || code != 0 || asked.Load() != 1 {
		t.Errorf("%q, code %d, asked %d times", out, code, asked.Load())
	}
}
