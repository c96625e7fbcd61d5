package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kubistro/internal/lab"
	"kubistro/internal/terminal"
)

// Exit codes.
const (
	exitGood     = 0
	exitFindings = 1 // faults were found, or it didn't work
	exitUsage    = 2 // wrong use
)

// findingsError means that the command worked and found faults, which it has printed.
type findingsError struct{ n int }

func (e *findingsError) Error() string { return fmt.Sprintf("%d faults", e.n) }

// program is what the commands share.
type program struct {
	stdout, stderr io.Writer
	env            func(string) string
	began          bool // a command has begun: what fails now isn't wrong use
	code           int
}

// run is the whole program. env reads an environment variable.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, env func(string) string) int {
	p := &program{stdout: stdout, stderr: stderr, env: env}
	root := p.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var findings *findingsError
	switch {
	case err == nil:
		return p.code
	case errors.As(err, &findings):
		return exitFindings
	case !p.began:
		fmt.Fprintf(stderr, "labserver: %v\nSee labserver --help.\n", err)
		return exitUsage
	}
	fmt.Fprintf(stderr, "labserver: %s\n", sentence(err))
	return exitFindings
}

// sentence is an error for a terminal: the human part, and the cause below it.
func sentence(err error) string {
	var e *lab.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	if e.Err != nil {
		return e.Text.En + "\n  cause: " + e.Err.Error()
	}
	return e.Text.En
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "labserver",
		Short: "Kubistro: a teaching restaurant for Kubernetes",
		Long: `Kubistro gives every learner a Kubernetes cluster of their own and teaches it as
the story of a restaurant.

  labserver serve                   serve on http://localhost:8080
  labserver verify restaurant/1     try every exercise of level 1 on real clusters
  labserver preview my-course       show an author's course, with live reload
  labserver lint                    find faults in lessons, with file and line
  labserver doctor                  what this machine has, and how many learners fit
  labserver clusters list           what runs, and to whom it belongs

Every flag is also an environment variable: --addr is KUBISTRO_ADDR, --log-level is
KUBISTRO_LOG_LEVEL. Exit codes: 0 good, 1 findings or failure, 2 wrong use.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := p.fromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			p.began = true
			return nil
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(p.serve(), p.courses(), p.preview(), p.verify(), p.lint(), p.schema(), p.doctor(), p.clusters(), p.version(), p.terminalChild())
	return root
}

// fromEnvironment gives flags that weren't on the command line their
// variable's value.
func (p *program) fromEnvironment(flags *pflag.FlagSet) error {
	var all error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "KUBISTRO_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		v := p.env(name)
		if f.Changed || v == "" || f.Name == "help" {
			return
		}
		if err := f.Value.Set(v); err != nil {
			all = errors.Join(all, fmt.Errorf("%s=%s: %w", name, v, err))
		}
	})
	return all
}

// terminalChild is what a terminal tab runs in; the server starts it by itself.
func (p *program) terminalChild() *cobra.Command {
	return &cobra.Command{
		Use: childCommand, Hidden: true, DisableFlagParsing: true,
		// The child's environment is its server's business.
		PersistentPreRunE: func(*cobra.Command, []string) error { p.began = true; return nil },
		RunE: func(_ *cobra.Command, args []string) error {
			p.code = terminal.ChildMain(args)
			return nil
		},
	}
}

const childCommand = "terminal-child"

func (p *program) version() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return p.print(map[string]string{"version": version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			fmt.Fprintf(p.stdout, "kubistro %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (p *program) print(v any) error {
	enc := json.NewEncoder(p.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// dataFolder is the default of --data: the user's state folder.
func (p *program) dataFolder() string {
	if state := p.env("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "kubistro")
	}
	if home := p.env("HOME"); home != "" {
		return filepath.Join(home, ".local", "state", "kubistro")
	}
	return filepath.Join(os.TempDir(), "kubistro")
}

func (p *program) logger(level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level %s: use debug, info, warn or error", level)
	}
	return slog.New(slog.NewTextHandler(p.stderr, &slog.HandlerOptions{Level: l})), nil
}
