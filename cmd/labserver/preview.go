package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
)

func (p *program) preview() *cobra.Command {
	o := serveOptions{warm: 1, idle: 30 * time.Minute, preview: true}
	cmd := &cobra.Command{
		Use: "preview FOLDER", Short: "Show an author's courses with live reload and a cluster", Args: cobra.ExactArgs(1),
		Long: `Serve the course in FOLDER (or the courses in it) for its author, without the built-in ones: a page
loads again when a file has changed, and shows what is wrong with file and line. Data is kept in a
temporary folder and removed at the end.`,
		Example: `  labserver preview lessons/restaurant
  labserver preview my-course --addr 127.0.0.1:8081`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := os.MkdirTemp("", "kubistro-preview-")
			if err != nil {
				return fmt.Errorf("data folder: %w", err)
			}
			defer os.RemoveAll(dir)
			o.data, o.courseOptions = dir, courseOptions{folders: args, only: true}
			return p.runServe(cmd.Context(), o)
		},
	}
	cmd.Flags().StringVar(&o.addr, "addr", "127.0.0.1:8080", "address to listen on; port 0 picks one")
	o.driverOptions.flags(cmd.Flags())
	return cmd
}
