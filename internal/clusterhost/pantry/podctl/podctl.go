// Package podctl is the kubectl of Pods: the commands that scripts in containers
// use, over client-go, with kubectl's output and exit codes. It is no part of kubectl: kubectl's
// own commands read the host's files and end the process. It reads files of the container only
// and dials by the configuration that it is given.
package podctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"kubistro/internal/shell"
)

// Options are what a run gets from its container.
type Options struct {
	// Config reaches the API server; its error says why there is none.
	Config func() (*rest.Config, error)
	// Namespace is the Pod's own; the default of commands.
	Namespace string
	Args      []string // without the program's name
	Dir       string
	FS        shell.FS
	In        io.Reader
	Out, Err  io.Writer
}

// maxFile bounds a manifest that is read.
const maxFile = 3 << 20

// run is one call.
type run struct {
	o     Options
	flags *pflag.FlagSet
	args  []string // after the command

	config    *rest.Config
	client    *kubernetes.Clientset
	dynamic   dynamic.Interface
	discovery discovery.CachedDiscoveryInterface
	mapper    meta.RESTMapper
}

// usageError is wrong use: kubectl prints it after "error: " and exits with 1.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func wrong(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// exitCode ends a command with a code and without a message.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

type command struct {
	flags func(*pflag.FlagSet)
	do    func(*run, context.Context) error
}

func commands() map[string]command {
	return map[string]command{
		"get":           {getFlags, (*run).get},
		"create":        {fileFlags, (*run).create},
		"apply":         {fileFlags, (*run).apply},
		"delete":        {deleteFlags, (*run).delete},
		"scale":         {scaleFlags, (*run).scale},
		"patch":         {patchFlags, (*run).patch},
		"label":         {labelFlags, func(r *run, ctx context.Context) error { return r.label(ctx, "labels", "labeled") }},
		"annotate":      {labelFlags, func(r *run, ctx context.Context) error { return r.label(ctx, "annotations", "annotated") }},
		"logs":          {logFlags, (*run).logs},
		"rollout":       {timeoutFlags, (*run).rollout},
		"wait":          {waitFlags, (*run).wait},
		"auth":          {authFlags, (*run).auth},
		"version":       {outputFlag, (*run).version},
		"api-resources": {outputFlag, (*run).apiResources},
		"cluster-info":  {outputFlag, (*run).clusterInfo},
	}
}

// Run is the program; the result is its exit code.
func Run(ctx context.Context, o Options) int {
	err := (&run{o: o}).main(ctx)
	var usage *usageError
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case ctx.Err() != nil:
		return 130
	case errors.As(err, &usage):
		fmt.Fprintf(o.Err, "error: %s\n", usage.text)
	default:
		fmt.Fprintln(o.Err, message(err))
	}
	return 1
}

func (r *run) main(ctx context.Context) error {
	all := commands()
	name, rest := "", []string(nil)
	for k, a := range r.o.Args { // global flags may come before the command
		if _, ok := all[a]; ok {
			name, rest = a, slices.Concat(r.o.Args[:k], r.o.Args[k+1:])
			break
		}
	}
	if name == "" {
		names := make([]string, 0, len(all))
		for n := range all {
			names = append(names, n)
		}
		slices.Sort(names)
		if len(r.o.Args) == 0 || r.o.Args[0] == "help" || r.o.Args[0] == "--help" {
			fmt.Fprintf(r.o.Out, "kubectl in this simulated container has the commands\n  %s\n", strings.Join(names, " "))
			return nil
		}
		return wrong("%q isn't among the commands of kubectl in this simulated container, which has: %s", r.o.Args[0], strings.Join(names, ", "))
	}
	r.flags = pflag.NewFlagSet(name, pflag.ContinueOnError)
	r.flags.SetOutput(io.Discard)
	f := r.flags
	f.StringP("namespace", "n", "", "")
	f.String("token", "", "")
	f.String("as", "", "")
	f.StringArray("as-group", nil, "")
	f.Duration("request-timeout", 0, "")
	f.Int("v", 0, "")
	all[name].flags(f)
	if err := f.Parse(rest); err != nil {
		return wrong("%v\nSee 'kubectl %s --help' for usage.", err, name)
	}
	r.args = f.Args()
	if err := r.connect(); err != nil {
		return err
	}
	return all[name].do(r, ctx)
}

func (r *run) connect() error {
	c, err := r.o.Config()
	if errors.Is(err, rest.ErrNotInCluster) || errors.Is(err, os.ErrNotExist) { // kubectl's default without any configuration
		fmt.Fprintln(r.o.Err, "The connection to the server localhost:8080 was refused - did you specify the right host or port?")
		return exitCode(1)
	}
	if err != nil {
		return err
	}
	c = rest.CopyConfig(c)
	c.QPS = -1
	c.Timeout, _ = r.flags.GetDuration("request-timeout")
	c.Impersonate.UserName, _ = r.flags.GetString("as")
	c.Impersonate.Groups, _ = r.flags.GetStringArray("as-group")
	c.BearerToken, _ = r.flags.GetString("token")
	r.config = c
	if r.client, err = kubernetes.NewForConfig(c); err != nil {
		return err
	}
	if r.dynamic, err = dynamic.NewForConfig(c); err != nil {
		return err
	}
	r.discovery = memory.NewMemCacheClient(r.client.Discovery())
	r.mapper = restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(r.discovery), r.discovery, nil)
	return nil
}

func (r *run) namespace() string {
	if ns, _ := r.flags.GetString("namespace"); ns != "" {
		return ns
	}
	if r.o.Namespace != "" {
		return r.o.Namespace
	}
	return metav1.NamespaceDefault
}

// kind finds what a resource argument means: pods, po, deploy, deployments.apps, deployments.v1.apps.
func (r *run) kind(arg string) (*meta.RESTMapping, error) {
	full, partial := schema.ParseResourceArg(strings.ToLower(arg))
	var gvk schema.GroupVersionKind
	if full != nil {
		gvk, _ = r.mapper.KindFor(*full)
	}
	if gvk.Empty() {
		var err error
		if gvk, err = r.mapper.KindFor(partial.WithVersion("")); err != nil {
			if meta.IsNoMatchError(err) {
				return nil, wrong("the server doesn't have a resource type %q", arg)
			}
			return nil, err
		}
	}
	return r.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

// target is one kind with the names that are asked for; none: all.
type target struct {
	*meta.RESTMapping
	names []string
}

// targets reads TYPE[,TYPE] [NAME...] or TYPE/NAME...
func (r *run) targets() ([]target, error) {
	if len(r.args) == 0 {
		return nil, wrong("You must specify the type of resource. Use \"kubectl api-resources\" for a complete list of supported resources.")
	}
	if strings.Contains(r.args[0], "/") {
		var out []target
		for _, a := range r.args {
			kind, name, ok := strings.Cut(a, "/")
			if !ok || kind == "" || name == "" {
				return nil, wrong("there is no need to specify a resource type as a separate argument when passing arguments in resource/name form (e.g. 'kubectl get resource/<resource_name>' instead of 'kubectl get resource resource/<resource_name>'")
			}
			m, err := r.kind(kind)
			if err != nil {
				return nil, err
			}
			out = append(out, target{m, []string{name}})
		}
		return out, nil
	}
	kinds := r.args[0]
	if kinds == "all" {
		kinds = "pods,services,daemonsets.apps,deployments.apps,replicasets.apps,statefulsets.apps,horizontalpodautoscalers.autoscaling,cronjobs.batch,jobs.batch"
	}
	var out []target
	for kind := range strings.SplitSeq(kinds, ",") {
		m, err := r.kind(kind)
		if err != nil {
			return nil, err
		}
		out = append(out, target{m, r.args[1:]})
	}
	return out, nil
}

// at is the client for a kind in the namespace of the call.
func (r *run) at(m *meta.RESTMapping) dynamic.ResourceInterface {
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		return r.dynamic.Resource(m.Resource).Namespace(r.namespace())
	}
	return r.dynamic.Resource(m.Resource)
}

// shown is how kubectl names an object in its messages: deployment.apps/web.
func shown(m *meta.RESTMapping, name string) string {
	return (schema.GroupKind{Group: m.GroupVersionKind.Group, Kind: strings.ToLower(m.GroupVersionKind.Kind)}).String() + "/" + name
}

func (r *run) read(name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(r.o.In, maxFile))
	}
	if strings.Contains(name, "://") {
		return nil, wrong("unable to read URL %q: there is no way to the internet from here", name)
	}
	at := name
	if !path.IsAbs(at) {
		at = path.Join(r.o.Dir, at)
	}
	f, err := r.o.FS.OpenFile(path.Clean(at), os.O_RDONLY, 0)
	if err != nil {
		return nil, wrong("the path %q does not exist", name)
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// message is an error in kubectl's words: cmd/util/helpers.go, StandardErrorMessage.
func message(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		switch s := status.Status(); {
		case s.Reason == metav1.StatusReasonUnauthorized:
			return fmt.Sprintf("error: You must be logged in to the server (%s)", s.Message)
		case s.Reason != "":
			return fmt.Sprintf("Error from server (%s): %s", s.Reason, s.Message)
		default:
			return "Error from server: " + s.Message
		}
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		host := ue.URL
		if u, parseErr := url.Parse(ue.URL); parseErr == nil {
			host = u.Host
		}
		var timeout net.Error
		switch {
		case errors.Is(ue.Err, syscall.ECONNREFUSED):
			return fmt.Sprintf("The connection to the server %s was refused - did you specify the right host or port?", host)
		case errors.As(ue.Err, &timeout) && timeout.Timeout():
			return fmt.Sprintf("Unable to connect to the server: dial tcp %s: i/o timeout", host)
		}
		return "Unable to connect to the server: " + ue.Err.Error()
	}
	return "error: " + err.Error()
}

func outputFlag(f *pflag.FlagSet)   { f.StringP("output", "o", "", "") }
func timeoutFlags(f *pflag.FlagSet) { f.Duration("timeout", 0, ""); f.BoolP("watch", "w", true, "") }

// within bounds a command by its flag --timeout; 0 is none.
func (r *run) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if d, _ := r.flags.GetDuration("timeout"); d > 0 {
		return context.WithTimeout(ctx, d)
	}
	return context.WithTimeout(ctx, 24*time.Hour)
}
