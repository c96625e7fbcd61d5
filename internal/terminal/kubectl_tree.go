package terminal

import (
	"context"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	componentversion "k8s.io/component-base/version"
	"k8s.io/kubectl/pkg/cmd/annotate"
	"k8s.io/kubectl/pkg/cmd/apiresources"
	"k8s.io/kubectl/pkg/cmd/apply"
	"k8s.io/kubectl/pkg/cmd/attach"
	"k8s.io/kubectl/pkg/cmd/auth"
	"k8s.io/kubectl/pkg/cmd/autoscale"
	"k8s.io/kubectl/pkg/cmd/certificates"
	"k8s.io/kubectl/pkg/cmd/clusterinfo"
	"k8s.io/kubectl/pkg/cmd/cp"
	"k8s.io/kubectl/pkg/cmd/create"
	"k8s.io/kubectl/pkg/cmd/debug"
	"k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/describe"
	"k8s.io/kubectl/pkg/cmd/diff"
	"k8s.io/kubectl/pkg/cmd/drain"
	"k8s.io/kubectl/pkg/cmd/events"
	cmdexec "k8s.io/kubectl/pkg/cmd/exec"
	"k8s.io/kubectl/pkg/cmd/explain"
	"k8s.io/kubectl/pkg/cmd/expose"
	"k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/cmd/kustomize"
	"k8s.io/kubectl/pkg/cmd/label"
	"k8s.io/kubectl/pkg/cmd/logs"
	"k8s.io/kubectl/pkg/cmd/patch"
	"k8s.io/kubectl/pkg/cmd/replace"
	"k8s.io/kubectl/pkg/cmd/rollout"
	"k8s.io/kubectl/pkg/cmd/run"
	"k8s.io/kubectl/pkg/cmd/scale"
	"k8s.io/kubectl/pkg/cmd/set"
	"k8s.io/kubectl/pkg/cmd/taint"
	"k8s.io/kubectl/pkg/cmd/top"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/cmd/version"
	"k8s.io/kubectl/pkg/cmd/wait"
	utilcomp "k8s.io/kubectl/pkg/util/completion"
	"k8s.io/kubectl/pkg/util/templates"
	utilexec "k8s.io/utils/exec"

	"kubistro/internal/shell"
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// tree is kubectl as learners have it: its own commands, without those that
// listen, start programs or write a configuration.
func (k *kubectl) tree(g *getter, streams genericiooptions.IOStreams) *cobra.Command {
	root := &cobra.Command{
		Use: "kubectl", Short: "kubectl controls the Kubernetes cluster manager",
		Long:          "kubectl controls the Kubernetes cluster manager.\n\n Find more information at: https://kubernetes.io/docs/reference/kubectl/",
		SilenceErrors: true, SilenceUsage: true,
		Run: func(cmd *cobra.Command, _ []string) { cmd.Help() },
	}
	g.global.add(root)
	f := cmdutil.NewFactory(cmdutil.NewMatchVersionFlags(g))
	getCmd := get.NewCmdGet("kubectl", f, streams)
	getCmd.ValidArgsFunction = utilcomp.ResourceTypeAndNameCompletionFunc(f)
	groups := templates.CommandGroups{
		{Message: "Basic Commands (Beginner):", Commands: []*cobra.Command{
			create.NewCmdCreate(f, streams), expose.NewCmdExposeService(f, streams), run.NewCmdRun(f, streams), set.NewCmdSet(f, streams)}},
		{Message: "Basic Commands (Intermediate):", Commands: []*cobra.Command{
			explain.NewCmdExplain("kubectl", f, streams), getCmd, editHelp(), delete.NewCmdDelete(f, streams)}},
		{Message: "Deploy Commands:", Commands: []*cobra.Command{
			rollout.NewCmdRollout("kubectl", f, streams), scale.NewCmdScale(f, streams), autoscale.NewCmdAutoscale(f, streams)}},
		{Message: "Cluster Management Commands:", Commands: []*cobra.Command{
			certificates.NewCmdCertificate(f, streams), clusterinfo.NewCmdClusterInfo(f, streams), top.NewCmdTop(f, streams),
			drain.NewCmdCordon(f, streams), drain.NewCmdUncordon(f, streams), drain.NewCmdDrain(f, streams), taint.NewCmdTaint(f, streams)}},
		{Message: "Troubleshooting and Debugging Commands:", Commands: []*cobra.Command{
			describe.NewCmdDescribe("kubectl", f, streams), logs.NewCmdLogs(f, streams), attach.NewCmdAttach(f, streams), cmdexec.NewCmdExec(f, streams),
			cp.NewCmdCp(f, streams), authCommand(f, streams), debug.NewCmdDebug(f, streams), events.NewCmdEvents(f, streams)}},
		{Message: "Advanced Commands:", Commands: []*cobra.Command{
			k.diffCommand(f, streams), apply.NewCmdApply("kubectl", f, streams), patch.NewCmdPatch(f, streams), replace.NewCmdReplace(f, streams),
			wait.NewCmdWait(f, streams), kustomize.NewCmdKustomize(streams)}},
		{Message: "Settings Commands:", Commands: []*cobra.Command{
			label.NewCmdLabel(f, streams), annotate.NewCmdAnnotate("kubectl", f, streams)}},
	}
	groups.Add(root)
	templates.ActsAsRootCommand(root, []string{"options"}, groups...)
	utilcomp.SetFactoryForCompletion(f)
	cmdutil.CheckErr(root.RegisterFlagCompletionFunc("namespace", func(_ *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		return utilcomp.CompGetResource(f, "namespace", toComplete), cobra.ShellCompDirectiveNoFileComp
	}))
	root.AddCommand(configHelp(), versionCommand(f, streams), apiresources.NewCmdAPIVersions(f, streams), apiresources.NewCmdAPIResources(f, streams))
	root.CompletionOptions.DisableDefaultCmd = true
	k.guard(root, g)
	return root
}

// editHelp and configHelp stand for commands that are ours; run never gets to them.
func editHelp() *cobra.Command {
	return &cobra.Command{Use: "edit (RESOURCE/NAME)", Short: "Edit a resource on the server", Run: func(*cobra.Command, []string) {}}
}

func configHelp() *cobra.Command {
	c := &cobra.Command{Use: "config SUBCOMMAND", Short: "Show the context and set its namespace", Run: func(*cobra.Command, []string) {}}
	for _, s := range []string{"view", "current-context", "get-contexts", "set-context", "use-context"} {
		sub := &cobra.Command{Use: s, Run: func(*cobra.Command, []string) {}}
		if s == "set-context" {
			sub.Flags().Bool("current", false, "Modify the current context")
		}
		c.AddCommand(sub)
	}
	return c
}

// versionCommand is kubectl version. In a program that was built without
// -ldflags the client doesn't know its version and would warn of a skew: it is the
// one that its modules have.
func versionCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := version.NewCmdVersion(f, streams)
	if !strings.HasPrefix(componentversion.Get().GitVersion, "v0.0.0") {
		return cmd
	}
	cmd.Run = func(cmd *cobra.Command, _ []string) {
		fmt.Fprintln(streams.Out, "Client Version: "+clientVersion)
		if only, _ := cmd.Flags().GetBool("client"); only {
			return
		}
		d, err := f.ToDiscoveryClient()
		cmdutil.CheckErr(err)
		v, err := d.ServerVersion()
		cmdutil.CheckErr(err)
		fmt.Fprintln(streams.Out, "Server Version: "+v.GitVersion)
	}
	return cmd
}

const clientVersion = "v1.37.2"

// authCommand replaces can-i, which ends the process when the answer is no.
func authCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	cmd := auth.NewCmdAuth(f, streams)
	for _, sub := range cmd.Commands() {
		if sub.Name() != "can-i" {
			continue
		}
		o := &auth.CanIOptions{IOStreams: streams}
		fresh := &cobra.Command{Use: sub.Use, Short: sub.Short, Long: sub.Long, Example: sub.Example, DisableFlagsInUseLine: true, Run: func(_ *cobra.Command, args []string) {
			cmdutil.CheckErr(o.Complete(f, args))
			cmdutil.CheckErr(o.Validate())
			if o.List {
				cmdutil.CheckErr(o.RunAccessList())
				return
			}
			allowed, err := o.RunAccessCheck()
			cmdutil.CheckErr(err)
			if !allowed {
				cmdutil.CheckErr(cmdutil.ErrExit)
			}
		}}
		fresh.Flags().BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "If true, check the specified action in all namespaces.")
		fresh.Flags().BoolVarP(&o.Quiet, "quiet", "q", false, "If true, suppress output and just return the exit code.")
		fresh.Flags().StringVar(&o.Subresource, "subresource", "", "SubResource such as pod/log or deployment/scale")
		fresh.Flags().BoolVar(&o.List, "list", false, "If true, prints all allowed actions.")
		fresh.Flags().BoolVar(&o.NoHeaders, "no-headers", false, "If true, prints allowed actions without headers")
		cmd.RemoveCommand(sub)
		cmd.AddCommand(fresh)
	}
	return cmd
}

// diffCommand is kubectl diff with the shell's own diff in place of an external program.
func (k *kubectl) diffCommand(f cmdutil.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := diff.NewDiffOptions(streams)
	o.Diff.Exec = diffExec{k: k, streams: streams}
	cmd := &cobra.Command{Use: "diff -f FILENAME", Short: "Diff the live version against a would-be applied version", Run: func(cmd *cobra.Command, args []string) {
		cmdutil.CheckDiffErr(o.Complete(f, cmd, args))
		cmdutil.CheckDiffErr(o.Validate())
		if err := o.Run(); err != nil {
			if e, ok := err.(utilexec.ExitError); ok && e.ExitStatus() <= 1 {
				cmdutil.CheckErr(cmdutil.ErrExit)
			}
			cmdutil.CheckDiffErr(err)
		}
	}}
	cmd.Flags().StringArray("prune-allowlist", []string{}, "Overwrite the default allowlist with <group/version/kind> for --prune")
	cmd.Flags().Bool("prune", false, "Include resources that would be deleted by pruning")
	cmd.Flags().BoolVar(&o.ShowManagedFields, "show-managed-fields", false, "If true, include managed fields in the diff.")
	cmd.Flags().BoolVar(&o.ShowSecrets, "show-secrets", false, "If true, do not mask secret values in the diff.")
	cmd.Flags().IntVar(&o.Concurrency, "concurrency", 1, "Number of objects to process in parallel")
	cmdutil.AddFilenameOptionFlags(cmd, &o.FilenameOptions, "contains the configuration to diff")
	cmdutil.AddServerSideApplyFlags(cmd)
	cmdutil.AddFieldManagerFlagVar(cmd, &o.FieldManager, apply.FieldManagerClientSideApply)
	cmdutil.AddLabelSelectorFlagVar(cmd, &o.Selector)
	return cmd
}

// diffExec runs "diff" and nothing else.
type diffExec struct {
	utilexec.Interface
	k       *kubectl
	streams genericiooptions.IOStreams
}

func (d diffExec) Command(_ string, args ...string) utilexec.Cmd { return &diffCmd{d: d, args: args} }

func (d diffExec) CommandContext(_ context.Context, cmd string, args ...string) utilexec.Cmd {
	return d.Command(cmd, args...)
}

func (diffExec) LookPath(string) (string, error) { return "", osexec.ErrNotFound }

type diffCmd struct {
	utilexec.Cmd
	d    diffExec
	args []string
	out  io.Writer
}

func (c *diffCmd) SetStdout(w io.Writer) { c.out = w }
func (c *diffCmd) SetStderr(io.Writer)   {}
func (c *diffCmd) SetEnv([]string)       {}

// Run compares the two folders that kubectl has written below the home.
func (c *diffCmd) Run() error {
	var names []string
	for _, a := range c.args {
		if strings.HasPrefix(a, "-") {
			continue
		}
		names = append(names, strings.Replace(a, c.d.k.c.Home, homePath, 1))
	}
	env := shell.Env{FS: c.d.k.c.home, Dir: homePath, Getenv: os.Getenv, Environ: func() []string { return nil }}
	env.Out, env.Err = c.out, c.d.streams.ErrOut
	code := shell.Commands()["diff"](context.Background(), env, append([]string{"diff", "-u", "-N", "-r"}, names...))
	if code == 0 {
		return nil
	}
	return utilexec.CodeExitError{Err: os.ErrInvalid, Code: code}
}
