package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"kubistro/internal/cluster"
	"kubistro/internal/store"
)

// inventory is a driver that can list its clusters while another process uses them.
type inventory interface {
	Inventory(ctx context.Context) ([]cluster.Found, error)
}

// clusterRow is a cluster as clusters list shows it.
type clusterRow struct {
	ID       string    `json:"id"`
	Running  bool      `json:"running"`
	Kitchens int       `json:"kitchens"`
	Created  time.Time `json:"created,omitzero"`
	Session  string    `json:"session,omitempty"` // whose it is; empty: nobody's
}

func (p *program) clusters() *cobra.Command {
	var o driverOptions
	var data string
	cmd := &cobra.Command{
		Use: "clusters", Short: "List and delete the clusters of a data folder",
		Long: `List and delete the clusters of a data folder. delete and prune want the server to be stopped: it
does both by itself while it runs. Clusters of other data folders, and what kind's own command has made, are
never touched.`,
		Example: `  labserver clusters list --driver kind
  labserver clusters delete c-2kq7yzv4m3xw --driver kind
  labserver clusters prune --driver kind`,
	}
	o.flags(cmd.PersistentFlags())
	cmd.PersistentFlags().StringVar(&data, "data", p.dataFolder(), "data folder")
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "List the clusters", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withClusters(cmd.Context(), o, data, true, func(ctx context.Context, d closingDriver, rows []clusterRow) error {
				if asJSON {
					return p.print(rows)
				}
				p.tellClusters(rows)
				return nil
			})
		},
	}
	list.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	remove := &cobra.Command{
		Use: "delete ID...", Short: "Delete clusters with all that they kept", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, ids []string) error {
			return p.withClusters(cmd.Context(), o, data, false, func(ctx context.Context, d closingDriver, rows []clusterRow) error {
				var failed error
				for _, id := range ids {
					failed = errors.Join(failed, p.deleteCluster(ctx, d, id))
				}
				return failed
			})
		},
	}
	prune := &cobra.Command{
		Use: "prune", Short: "Delete the clusters that belong to no session", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withClusters(cmd.Context(), o, data, false, func(ctx context.Context, d closingDriver, rows []clusterRow) error {
				var failed error
				for _, r := range rows {
					if r.Session == "" {
						failed = errors.Join(failed, p.deleteCluster(ctx, d, r.ID))
					}
				}
				return failed
			})
		},
	}
	cmd.AddCommand(list, remove, prune)
	return cmd
}

func (p *program) deleteCluster(ctx context.Context, d closingDriver, id string) error {
	if err := d.Delete(ctx, id); err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	_, err := fmt.Fprintf(p.stdout, "%s deleted\n", id)
	return err
}

// withClusters does something with a data folder's clusters; looking may be done beside
// a server that runs, where the driver can.
func (p *program) withClusters(ctx context.Context, o driverOptions, data string, looking bool, do func(context.Context, closingDriver, []clusterRow) error) (err error) {
	log, err := p.logger(o.logLevel)
	if err != nil {
		return err
	}
	if _, err := os.Stat(data); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	d, err := o.open(data, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	looker, can := d.(inventory)
	if !looking || !can {
		unlock, err := lockFolder(data)
		if err != nil {
			return err
		}
		defer unlock()
	}
	var found []cluster.Found
	if can {
		found, err = looker.Inventory(ctx)
	} else {
		found, err = d.List(ctx)
	}
	if err != nil {
		return err
	}
	owners, err := ownersOf(ctx, data)
	if err != nil {
		return err
	}
	rows := []clusterRow{}
	for _, f := range found {
		rows = append(rows, clusterRow{f.ID, f.Running, len(f.Spec.Kitchens), f.Created, owners[f.ID]})
	}
	return do(ctx, d, rows)
}

// ownersOf finds the sessions that clusters belong to.
func ownersOf(ctx context.Context, data string) (owners map[string]string, err error) {
	owners = map[string]string{}
	path := filepath.Join(data, "kubistro.db")
	if _, err := os.Stat(path); err != nil {
		return owners, nil // a server never ran here
	}
	s, err := store.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	sessions, err := s.RunningSessions(ctx)
	for _, x := range sessions {
		if x.Cluster != "" {
			owners[x.Cluster] = x.ID
		}
	}
	return owners, err
}

func (p *program) tellClusters(rows []clusterRow) {
	t := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ID\tSTATE\tKITCHENS\tCREATED\tSESSION")
	for _, r := range rows {
		state, created, session := "asleep", "half made", r.Session
		if r.Running {
			state = "running"
		}
		if !r.Created.IsZero() {
			created = r.Created.Local().Format(time.DateTime)
		}
		if session == "" {
			session = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", r.ID, state, r.Kitchens, created, session)
	}
	t.Flush()
}
