package main

import (
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"kubistro/internal/clusterhost/pantry"
	"kubistro/internal/course"
	"kubistro/lessons"
)

func (p *program) lint() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "lint [FOLDER]", Short: "Find faults in lessons, with file and line", Args: cobra.MaximumNArgs(1),
		Long: `Find faults in the built-in lessons, or in the courses below FOLDER: unknown fields, missing languages,
checks that don't compile, images that the pantry lacks. Exit code 1 when there are any.`,
		RunE: func(_ *cobra.Command, args []string) error {
			var files fs.FS = lessons.FS
			if len(args) == 1 {
				info, err := os.Stat(args[0])
				if err != nil {
					return err
				}
				if !info.IsDir() {
					return fmt.Errorf("%s is no folder", args[0])
				}
				files = os.DirFS(args[0])
			}
			faults := course.Lint(files, repositories())
			if asJSON {
				if faults == nil {
					faults = []course.Fault{}
				}
				if err := p.print(faults); err != nil {
					return err
				}
			} else {
				for i := range faults {
					fmt.Fprintln(p.stdout, faults[i].Error())
				}
			}
			if len(faults) > 0 {
				return &findingsError{len(faults)}
			}
			if !asJSON {
				fmt.Fprintln(p.stdout, "no faults")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// repositories are the images that simulated nodes have.
func repositories() []course.Repository {
	var out []course.Repository
	for _, r := range pantry.Default().Repositories() {
		out = append(out, course.Repository{Name: r.Name, Tags: r.Tags})
	}
	return out
}

func (p *program) schema() *cobra.Command {
	return &cobra.Command{
		Use: "schema [course|level|quiz]", Short: "Print the JSON Schema of course.yaml, level.yaml and quiz.yaml", Args: cobra.MaximumNArgs(1),
		Long: `Print the JSON Schema of one kind of file, as editors use it, or of all three under "$defs".`,
		Example: `  labserver schema level > level.schema.json
  # and in level.yaml, for the YAML language server of most editors:
  # yaml-language-server: $schema=../../level.schema.json`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				schema, known := course.SchemaOf(args[0])
				if !known {
					return fmt.Errorf("%q is none of course, level, quiz", args[0])
				}
				_, err := p.stdout.Write(schema)
				return err
			}
			_, err := fmt.Fprintf(p.stdout, "%s\n", course.Schema())
			return err
		},
	}
}
