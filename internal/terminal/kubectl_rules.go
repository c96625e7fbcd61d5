package terminal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kubistro/internal/lab"
)

// refusal is why a kubectl command line isn't run.
type refusal struct{ text lab.Text }

func (r *refusal) Error() string { return r.text.En }

func refuse(zhTW, en string) error { return &refusal{lab.Text{ZhTW: zhTW, En: en}} }

// plan is a command line after inspection.
type plan struct {
	args      []string // without "kubectl", paths relative to the home
	verb      string   // the first word that isn't a flag
	stdin     bool     // reads a manifest from standard input
	streaming bool     // holds a connection that isn't a plain request
	tty       bool     // wants a terminal
}

// refusedFlags are flags that would change whom kubectl talks to or what it
// touches on this machine. They don't exist in our command tree either; this list
// only gives the reason.
var refusedFlags = []string{
	"kubeconfig", "server", "token", "user", "cluster", "username", "password", "auth-provider", "exec-command",
	"certificate-authority", "client-certificate", "client-key", "insecure-skip-tls-verify", "tls-server-name",
	"cache-dir", "profile", "profile-output", "log-file", "log-dir", "log-file-max-size", "kuberc", "proxy-url", "disable-compression",
	"match-server-version", "vmodule", "alsologtostderr", "logtostderr", "stderrthreshold", "log-backtrace-at", "v",
}

// pathFlags are flags whose value is a file or folder.
var pathFlags = []string{
	"filename", "kustomize", "patch-file", "from-file", "from-env-file", "cert", "key", "output-directory", "custom",
}

// fileOutputs are values of --output that name a file.
var fileOutputs = []string{"go-template-file=", "templatefile=", "jsonpath-file=", "custom-columns-file="}

// valueFlags take a value that could be taken for the name of a command.
var valueFlags = []string{"-n", "--namespace", "--context", "--request-timeout", "--as", "--as-group", "--as-uid"}

// inspect decides whether a command line may run at all. Paths are looked at
// later, by guard, when kubectl itself has parsed the flags.
func (k *kubectl) inspect(args []string) (plan, error) {
	p := plan{args: slices.Clone(args[1:])}
	interactive, tty := false, false
	for i := 0; i < len(p.args) && p.args[i] != "--"; i++ {
		a := p.args[i]
		if !strings.HasPrefix(a, "-") || a == "-" {
			if p.verb == "" {
				p.verb = a
			}
			p.stdin = p.stdin || a == "-"
			continue
		}
		name, v, has := strings.Cut(strings.TrimLeft(a, "-"), "=")
		short := !strings.HasPrefix(a, "--")
		if err := refusedFlag(a, name, short); err != nil {
			return p, err
		}
		switch {
		case short && p.verb == "" && strings.HasPrefix(a, "-s"):
			return p, refusedFlag("--server", "server", false)
		case strings.HasSuffix(a, "-"):
			p.stdin = true // -f-, -Rf-, --filename=-
		case short && strings.Trim(name, "itqA") == "":
			interactive = interactive || strings.Contains(name, "i")
			tty = tty || strings.Contains(name, "t")
		case name == "stdin":
			interactive = v != "false"
		case name == "tty":
			tty = v != "false"
		case name == "context":
			if !has && i+1 < len(p.args) {
				v = p.args[i+1]
			}
			if v != contextName {
				return p, refuse("這裡只有一個 context："+contextName+"。", "there is only one context here: "+contextName+".")
			}
		}
		if !has && slices.Contains(valueFlags, a) {
			i++
		}
	}
	return p, p.inspectVerb(interactive && tty)
}

func refusedFlag(a, name string, short bool) error {
	if short && (a == "-v" || strings.HasPrefix(a, "-v=") || len(a) == 3 && a[1] == 'v' && a[2] >= '0' && a[2] <= '9') || !short && name == "v" {
		return refuse("這裡不提供 kubectl 的偵錯紀錄（-v）；想看每一次寫入是誰做的，請看下方的「紀錄」分頁。", "kubectl's debug log (-v) isn't available here; to see who wrote what, open the Record tab below.")
	}
	if short || !slices.Contains(refusedFlags, name) {
		return nil
	}
	switch name {
	case "kubeconfig", "server", "cluster", "user", "token", "username", "password", "tls-server-name", "proxy-url":
		return refuse("這個終端機固定連到你自己的叢集，不能用 --"+name+"。想用自己電腦上的 kubectl，可以在頁面上下載 kubeconfig。",
			"this terminal always talks to your own cluster, so --"+name+" isn't available. To use the kubectl on your own computer, download a kubeconfig from the page.")
	}
	return refuse("這個教室終端機不提供 --"+name+"。", "--"+name+" isn't available in this classroom terminal.")
}

func (p *plan) inspectVerb(terminal bool) error {
	switch p.verb {
	case "proxy":
		return refuse("kubectl proxy 會在伺服器上開連接埠，這裡不提供。要看 API 的原始內容，請用 kubectl get --raw /api。", "kubectl proxy would open a port on the server and isn't available. To see raw API answers use: kubectl get --raw /api")
	case "port-forward":
		return refuse("這裡不需要 port-forward：終端機就在叢集的網路裡，直接用 curl 連 Service 名稱或 Pod IP 即可，例如 curl http://web。", "port-forward isn't needed here: this terminal is inside the cluster's network. Use curl with a Service name or a Pod IP, for example: curl http://web")
	case "plugin", "alpha", "kuberc", "completion":
		return refuse("這個教室終端機不提供 kubectl "+p.verb+"（Tab 補全本來就可以用）。", "kubectl "+p.verb+" isn't available in this classroom terminal (completion with Tab works already).")
	case "exec", "attach", "cp", "run", "debug":
		p.streaming, p.tty = true, terminal
	}
	return nil
}

// guard makes every command of the tree look at its parsed paths before it runs.
func (k *kubectl) guard(cmd *cobra.Command, g *getter) {
	check := func(c *cobra.Command, args []string) {
		if err := k.mapFlags(c, args, g.dir); err != nil {
			panic(err)
		}
	}
	if run := cmd.Run; run != nil {
		cmd.Run = func(c *cobra.Command, args []string) { check(c, args); run(c, args) }
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(c *cobra.Command, args []string) error { check(c, args); return run(c, args) }
	}
	for _, sub := range cmd.Commands() {
		k.guard(sub, g)
	}
}

// mapFlags maps the paths of a parsed command line below the home; args is changed in place.
func (k *kubectl) mapFlags(c *cobra.Command, args []string, dir string) (err error) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if err != nil || !f.Changed {
			return
		}
		switch {
		case slices.Contains(pathFlags, f.Name):
			err = k.mapFlag(f, dir)
		case f.Name == "output":
			for _, kind := range fileOutputs {
				if file, ok := strings.CutPrefix(f.Value.String(), kind); ok && err == nil {
					var mapped string
					if mapped, err = k.mapPath(dir, "output", file); err == nil {
						err = f.Value.Set(kind + mapped)
					}
				}
			}
		case f.Name == "template":
			if o := c.Flags().Lookup("output"); o != nil && strings.HasSuffix(o.Value.String(), "file") {
				err = k.mapFlag(f, dir)
			}
		}
	})
	if err != nil {
		return err
	}
	switch c.Name() {
	case "cp":
		for i, a := range args {
			if !strings.Contains(a, ":") {
				if args[i], err = k.mapPath(dir, "cp", a); err != nil {
					return err
				}
			}
		}
	case "kustomize":
		for _, name := range []string{"enable-helm", "enable-alpha-plugins", "helm-command", "network", "mount", "load-restrictor", "output", "env", "network-name", "helm-debug"} {
			if f := c.Flags().Lookup(name); f != nil && f.Changed {
				return refuse("這個教室終端機不提供 kustomize 的 --"+name+"。", "kustomize's --"+name+" isn't available in this classroom terminal.")
			}
		}
		for i, a := range args {
			if args[i], err = k.mapPath(dir, "kustomize", a); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *kubectl) mapFlag(f *pflag.Flag, dir string) error {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		values := list.GetSlice()
		for i, v := range values {
			var err error
			if values[i], err = k.mapPath(dir, f.Name, v); err != nil {
				return err
			}
		}
		return list.Replace(values)
	}
	mapped, err := k.mapPath(dir, f.Name, f.Value.String())
	if err != nil {
		return err
	}
	return f.Value.Set(mapped)
}

// mapPath turns a file of the shell into a path relative to the home.
func (k *kubectl) mapPath(dir, flag, v string) (string, error) {
	lower := strings.ToLower(v)
	switch {
	case v == "-" || v == "":
		return v, nil
	case strings.Contains(lower, "://") || strings.HasPrefix(lower, "git@") || strings.HasPrefix(lower, "github.com/"):
		return "", refuse("這個教室終端機連不到網際網路，所以不能直接套用網址。請把內容存成「檔案」分頁裡的檔案，再用 -f 檔名 套用。",
			"this classroom terminal has no way to the internet, so a web address can't be used. Save the manifest as a file in the Files tab and use -f FILE.")
	}
	key := ""
	if flag == "from-file" {
		if name, file, ok := strings.Cut(v, "="); ok {
			key, v = name+"=", file
		}
	}
	r, err := local(dir, v)
	if err != nil {
		return "", refuse("「"+v+"」不在你的資料夾裡。這裡只能使用 "+homePath+" 底下的檔案。", "\""+v+"\" isn't in your folder. Only files below "+homePath+" can be used here.")
	}
	if _, err := k.c.home.root.Stat(r); err != nil && !os.IsNotExist(err) {
		return "", refuse("「"+v+"」指到你的資料夾外面，不能使用。", "\""+v+"\" points outside your folder and can't be used.")
	}
	if strings.HasSuffix(v, "/") {
		r += "/"
	}
	return key + r, nil
}

// local turns a path of the shell into one relative to the child's working
// directory, which is the home.
func local(dir, name string) (string, error) {
	p := name
	if !strings.HasPrefix(p, "/") {
		p = dir + "/" + p
	}
	r, err := rel("open", p)
	if err != nil {
		return "", err
	}
	if !filepath.IsLocal(r) {
		return "", outside{}
	}
	return r, nil
}
