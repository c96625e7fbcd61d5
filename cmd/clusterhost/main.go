// Command clusterhost runs one learner's Kubernetes cluster: the real control
// plane and simulated nodes in one process, reached through unix sockets in the
// cluster's folder. labserver starts one for each learner; see package
// clusterhost/controlapi for the folder and the control API.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-base/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the whole program; its result is the exit code: 0 good, 1 the cluster
// failed, 2 wrong use.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	failed := error(nil)
	root := &cobra.Command{
		Use: "clusterhost", Short: "Runs one learner's Kubernetes cluster",
		SilenceUsage: true, SilenceErrors: true,
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(runCommand(&failed, stderr), versionCommand())
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, "clusterhost:", err)
		return 2
	}
	if failed != nil {
		fmt.Fprintln(stderr, "clusterhost:", failed)
		return 1
	}
	return 0
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Prints the version of Kubernetes", Args: cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) { fmt.Fprintln(c.OutOrStdout(), version.Get().GitVersion) },
	}
}

func runCommand(failed *error, stderr io.Writer) *cobra.Command {
	s := settings{}
	memory, quota := "512Mi", "64Mi" // an object is there some three times in memory: with more, the collector never rests
	c := &cobra.Command{
		Use: "run --dir DIR", Short: "Runs the cluster in a folder until SIGTERM", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if s.memory, err = bytesOf("memory", memory); err != nil {
				return err
			}
			if s.etcdQuota, err = bytesOf("etcd-quota", quota); err != nil {
				return err
			}
			if st, err := os.Stat(s.dir); err != nil || !st.IsDir() {
				return fmt.Errorf("--dir: %q is no folder", s.dir)
			}
			*failed = host(c.Context(), s, stderr)
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&s.dir, "dir", "", "the cluster's folder")
	f.DurationVar(&s.orphan, "orphan", 10*time.Minute, "end when nobody has used the control API for this long; 0 never")
	f.StringVar(&memory, "memory", memory, "memory that the process may take before it ends itself")
	f.StringVar(&quota, "etcd-quota", quota, "size that etcd's database may take")
	f.StringVar(&s.pprof, "pprof", "", "serve profiles on this unix socket")
	f.Lookup("pprof").Hidden = true
	c.MarkFlagRequired("dir")
	return c
}

// bytesOf reads a size such as 512Mi.
func bytesOf(flag, size string) (int64, error) {
	q, err := resource.ParseQuantity(size)
	if err != nil || q.Value() < 16<<20 {
		return 0, fmt.Errorf("--%s: %q is no size of at least 16Mi", flag, size)
	}
	return q.Value(), nil
}
