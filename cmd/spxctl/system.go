package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"libspx/cluster/config"
	"libspx/launch/system"
)

// Commands for systems of clusters: docs/systems.md.

func systemCommand() *cobra.Command {
	c := &cobra.Command{Use: "system", Short: "systems of clusters: their files, and how they are"}
	c.AddCommand(checkCommand(), schemaCommand())
	return c
}

func schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "prints what a system file can say",
		Args:  cobra.NoArgs,
		Run:   func(*cobra.Command, []string) { fmt.Print(config.Manual()) },
	}
}

func checkCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "checks a system file and shows what it describes",
		Long: `Prints all that is wrong, as FILE:LINE:COLUMN: TEXT, and ends with status 1; or else a summary and a picture of clusters and links. --json prints
the system with all that the file leaves open filled in (or the mistakes), --svg draws it. Nothing is started, and no host is asked.`,
		Args: cobra.ExactArgs(1),
	}
	asJSON := c.Flags().Bool("json", false, "print it as JSON")
	svg := c.Flags().String("svg", "", "also draw it into this file (-: standard output, and nothing else)")
	c.RunE = func(_ *cobra.Command, args []string) error {
		s, err := system.Load(args[0])
		var wrong *system.FileError
		if errors.As(err, &wrong) && *asJSON {
			if err := printJSON(map[string]any{"file": wrong.File, "problems": wrong.Problems}); err != nil {
				return err
			}
			return errSaid
		}
		if errors.As(err, &wrong) {
			fmt.Fprintln(os.Stderr, wrong)
			return errSaid
		}
		if err != nil {
			return err
		}
		if *svg == "-" {
			fmt.Print(s.SVG(nil))
			return nil
		}
		if *svg != "" {
			if err := os.WriteFile(*svg, []byte(s.SVG(nil)), 0o666); err != nil {
				return err
			}
		}
		if *asJSON {
			return printJSON(s)
		}
		summary(s)
		return nil
	}
	return c
}

// errSaid: what is wrong has been printed.
var errSaid = errors.New("")

func printJSON(v any) error {
	e := json.NewEncoder(os.Stdout)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func summary(s *config.System) {
	ranks, standbys, iops := s.Processes()
	fmt.Printf("system %s: %d clusters, %d links; %d ranks, %d standbys, %d I/O processes; masters: %s\n\n", s.Name, len(s.Clusters), len(s.Links), ranks, standbys, iops, s.Masters)
	fmt.Println(s.Picture(nil))
	for i := range s.Clusters {
		c := &s.Clusters[i]
		f := c.Failure
		fmt.Printf("%s: MPI_Init waits for %v, at most %g s; a rank dies: %s, a host: %s, a path: %s, an IOP: %s, the cluster: %s\n",
			c.Name, s.Awaited(c), float64(c.Start.LimitMS)/1000, f.Process, f.Host, f.Network, f.IOP, f.Cluster)
	}
}
