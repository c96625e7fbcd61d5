package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/yaml"

	"kubistro/internal/shell"
)

const kubeconfigPath = ".kube/config"

// virtualConfig is the learner's kubeconfig: one context whose namespace can
// be set. Everything else that a ~/.kube/config may hold is ignored.
type virtualConfig struct {
	c    *inside
	mu   sync.Mutex
	ns   string
	read time.Time // modification time of the file that ns is from
	told time.Time // of the file whose extra entries were mentioned
}

func newVirtualConfig(c *inside) *virtualConfig { return &virtualConfig{c: c} }

type configFile struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	CurrentContext string         `json:"current-context"`
	Contexts       []namedContext `json:"contexts"`
	Clusters       []any          `json:"clusters,omitempty"`
	Users          []any          `json:"users,omitempty"`
}

type namedContext struct {
	Name    string `json:"name"`
	Context struct {
		Cluster   string `json:"cluster,omitempty"`
		User      string `json:"user,omitempty"`
		Namespace string `json:"namespace,omitempty"`
	} `json:"context"`
}

func (v *virtualConfig) namespace() string {
	v.load(io.Discard)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ns == "" {
		return "default"
	}
	return v.ns
}

// load takes the namespace of the current context from the file when it has
// changed, and says once that its other entries don't count.
func (v *virtualConfig) load(notes io.Writer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	info, err := v.c.home.root.Stat(kubeconfigPath)
	if err != nil {
		if !v.read.IsZero() {
			v.ns, v.read = "", time.Time{}
		}
		return
	}
	if info.ModTime().Equal(v.read) && (notes == io.Discard || info.ModTime().Equal(v.told)) {
		return
	}
	if info.Size() > 1<<20 {
		return
	}
	b, err := v.c.home.root.ReadFile(kubeconfigPath)
	if err != nil {
		return
	}
	v.read = info.ModTime()
	var f configFile
	if err := yaml.Unmarshal(b, &f); err != nil {
		fmt.Fprintln(notes, v.c.say("提醒：~/.kube/config 不是正確的 YAML，已略過。", "note: ~/.kube/config isn't valid YAML and is ignored."))
		return
	}
	v.ns = ""
	for _, c := range f.Contexts {
		if c.Name == f.CurrentContext || f.CurrentContext == "" {
			v.ns = c.Context.Namespace
		}
	}
	if (len(f.Clusters) > 0 || len(f.Users) > 0) && notes != io.Discard {
		fmt.Fprintln(notes, v.c.say("提醒：~/.kube/config 裡的伺服器、使用者和 exec 設定在這裡不會使用；這個終端機固定連到你自己的叢集。",
			"note: server, user and exec entries of ~/.kube/config aren't used here; this terminal always talks to your own cluster."))
	}
	if notes != io.Discard {
		v.told = info.ModTime()
	}
}

func (v *virtualConfig) save(ns string) error {
	f := configFile{APIVersion: "v1", Kind: "Config", CurrentContext: contextName}
	var c namedContext
	c.Name, c.Context.Cluster, c.Context.User, c.Context.Namespace = contextName, contextName, "learner", ns
	f.Contexts = []namedContext{c}
	b, err := yaml.Marshal(f)
	if err != nil {
		return err
	}
	if err := v.c.home.root.Mkdir(".kube", 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	if err := v.c.home.root.WriteFile(kubeconfigPath, b, 0o600); err != nil {
		return err
	}
	v.mu.Lock()
	v.ns = ns
	v.mu.Unlock()
	return nil
}

// command is kubectl config, as far as it makes sense here.
func (v *virtualConfig) command(env shell.Env, args []string) int {
	var words []string
	ns, hasNS, minify := "", false, false
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case strings.HasPrefix(a, "--namespace="):
			ns, hasNS = strings.TrimPrefix(a, "--namespace="), true
		case (a == "--namespace" || a == "-n") && i+1 < len(args):
			i++
			ns, hasNS = args[i], true
		case a == "--minify" || a == "--current" || strings.HasPrefix(a, "-o") || strings.HasPrefix(a, "--output"):
			minify = true
		case strings.HasPrefix(a, "-"):
			return v.refuse(env, a)
		default:
			words = append(words, a)
		}
	}
	_ = minify
	if len(words) == 0 {
		fmt.Fprintln(env.Out, "usage: kubectl config view | current-context | get-contexts | set-context --current --namespace=NAME")
		return 0
	}
	switch words[0] {
	case "current-context":
		fmt.Fprintln(env.Out, contextName)
	case "get-contexts":
		fmt.Fprintf(env.Out, "CURRENT   NAME       CLUSTER    AUTHINFO   NAMESPACE\n*         %s   %s   learner    %s\n", contextName, contextName, v.namespace())
	case "get-clusters":
		fmt.Fprintf(env.Out, "NAME\n%s\n", contextName)
	case "get-users":
		fmt.Fprintln(env.Out, "NAME\nlearner")
	case "view":
		fmt.Fprintf(env.Out, "apiVersion: v1\nkind: Config\ncurrent-context: %s\nclusters:\n- name: %s\n  cluster:\n    server: https://kubernetes\ncontexts:\n- name: %s\n  context:\n    cluster: %s\n    namespace: %s\n    user: learner\nusers:\n- name: learner\n  user:\n    token: REDACTED\n",
			contextName, contextName, contextName, contextName, v.namespace())
	case "set-context":
		if !hasNS || len(words) > 1 && words[1] != contextName {
			return v.refuse(env, "set-context")
		}
		if err := v.save(ns); err != nil {
			fmt.Fprintln(env.Err, "error: "+v.c.say("無法儲存設定。", "the setting could not be stored."))
			return 1
		}
		fmt.Fprintf(env.Out, "Context %q modified.\n", contextName)
	case "use-context":
		if len(words) != 2 || words[1] != contextName {
			fmt.Fprintf(env.Err, "error: %s\n", v.c.say("這裡只有一個 context："+contextName+"。", "there is only one context here: "+contextName+"."))
			return 1
		}
		fmt.Fprintf(env.Out, "Switched to context %q.\n", contextName)
	default:
		return v.refuse(env, words[0])
	}
	return 0
}

func (v *virtualConfig) refuse(env shell.Env, what string) int {
	fmt.Fprintf(env.Err, "error: %s\n", v.c.say(
		"kubectl config "+what+" 在這裡沒有作用：這個終端機固定連到你自己的叢集。可以改的只有命名空間：kubectl config set-context --current --namespace=名稱",
		"kubectl config "+what+" has no effect here: this terminal always talks to your own cluster. Only the namespace can be set: kubectl config set-context --current --namespace=NAME"))
	return 1
}
