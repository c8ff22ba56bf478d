package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"libspx/launch/live"
	"libspx/launch/live/screen"
	"libspx/launch/steer"
)

// `spxctl top`: docs/live.md.

// shortest is the least interval between two looks at a job.
const shortest = 50 * time.Millisecond

func topCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "top JOB",
		Short: "shows what a job's processes do, again and again",
		Long: `For each process its host, state, messages and bytes per second, the share of the time in which it waits, failures that it has noticed, processes that it
has sent to, and open connections to other hosts; sums for hosts, and for clusters and links of a system. ? shows the keys. In a pipe, and with --once, it
prints one table of plain text.
` + jobHelp,
		Args: cobra.ExactArgs(1),
	}
	every := c.Flags().Duration("every", time.Second, "time from one look to the next")
	once := c.Flags().Bool("once", false, "print one table and end")
	sort := c.Flags().String("sort", "host", "of the table: "+strings.Join(live.Keys, ", "))
	filter := c.Flags().String("filter", "", "of the table: only processes with these words: a host, cluster, state, call, r3 or r4-9 for ranks")
	asJSON := c.Flags().Bool("json", false, "print the table as JSON")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if !slices.Contains(live.Keys, *sort) {
			return fmt.Errorf("--sort %s: there are %s", *sort, strings.Join(live.Keys, ", "))
		}
		*every = max(*every, shortest)
		job, err := steer.Find(args[0])
		if err != nil {
			return err
		}
		if *once || *asJSON || !term.IsTerminal(os.Stdout.Fd()) || !term.IsTerminal(os.Stdin.Fd()) {
			return printOnce(os.Stdout, job, *every, *sort, *filter, *asJSON)
		}
		steer.Waiting = nil // the screen is the table's
		s := screen.New(func() (*live.Look, error) { return live.Take(job) }, *every)
		s.Choose(*sort, *filter)
		_, err = tea.NewProgram(s).Run()
		if errors.Is(err, tea.ErrInterrupted) {
			return nil
		}
		return err
	}
	c.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(slices.Clone(live.Keys), cobra.ShellCompDirectiveNoFileComp)) //nolint:errcheck // the flag is there
	return c
}

// printOnce prints what has happened between two looks.
func printOnce(w io.Writer, job uint64, every time.Duration, sort, filter string, asJSON bool) error {
	before, err := live.Take(job)
	if err != nil {
		return err
	}
	time.Sleep(every)
	now, err := live.Take(job)
	if err != nil {
		return err
	}
	all := live.Rows(before, now)
	rows := live.Filter(all, filter)
	live.Sort(rows, sort, false)
	if asJSON {
		return printJSON(live.Picture(now, rows))
	}
	for _, line := range live.Summary(now, all, 0) {
		fmt.Fprintln(w, line)
	}
	tables := []live.Table{live.RankTable(rows, 0)}
	if hosts := live.GroupBy(rows, func(r *live.Row) string { return r.Host }); len(hosts) > 1 {
		tables = append(tables, live.GroupTable("HOST", hosts, 0))
	}
	if now.Layout != nil {
		tables = append(tables, live.ClusterTable(live.Clusters(now, rows), 0), live.LinkTable(live.Links(now, rows), 0))
	}
	for _, t := range tables {
		fmt.Fprintf(w, "\n%s\n", t.Head)
		for _, line := range t.Lines {
			fmt.Fprintln(w, line)
		}
	}
	return nil
}
