package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"libspx/cluster/config"
	"libspx/launch/service"
	"libspx/launch/steer"
	"libspx/launch/system"
)

// Commands for systems of clusters: docs/systems.md.

func systemCommand() *cobra.Command {
	c := &cobra.Command{Use: "system", Short: "systems of clusters: their files, and how they are"}
	c.AddCommand(checkCommand(), schemaCommand(), statusCommand(), detachCommand(), keyCommand())
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

func keyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "key FILE",
		Short: "makes a file with a new key, by which the clusters of a system know each other that are started one by one",
		Long:  `The file must not exist. Nobody but its owner can read it; it has to be the same on all hosts where a cluster is started.`,
		Args:  cobra.ExactArgs(1),
		RunE:  func(_ *cobra.Command, args []string) error { return system.MakeKey(args[0]) },
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
		fmt.Printf("%s: to start with %v, within %g s; a rank dies: %s, a host: %s, a path: %s, an IOP: %s, the cluster: %s\n",
			c.Name, s.Awaited(c), float64(c.Start.LimitMS)/1000, f.Process, f.Host, f.Network, f.IOP, f.Cluster)
	}
}

func statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "status [JOB]",
		Short: "shows how a running system is",
		Long: `JOB is the name of the system, or the beginning of its job's number; without it, the only system of this user whose spxrun is on this host. Shows the
clusters with their states, the links with the I/O processes that live, and the masters with their processes.`,
		Args: cobra.MaximumNArgs(1),
	}
	watch := c.Flags().Bool("watch", false, "show it again whenever it has changed, until the system ends")
	every := c.Flags().Duration("every", 200*time.Millisecond, "with --watch: how often to look")
	asJSON := c.Flags().Bool("json", false, "print it as JSON, one object in each line")
	svg := c.Flags().String("svg", "", "draw it into this file (-: standard output)")
	c.RunE = func(_ *cobra.Command, args []string) error {
		about, err := findSystem(args)
		if err != nil {
			return err
		}
		number, err := strconv.ParseUint(about.Job, 16, 64)
		if err != nil {
			return err
		}
		last := ""
		for {
			text, err := show(about, *asJSON, *svg)
			if err != nil {
				return err
			}
			if text != last {
				fmt.Print(text)
				last = text
			}
			if !*watch {
				return nil
			}
			time.Sleep(*every)
			switch next, err := steer.Describe(number); {
			case err == nil:
				about = &next
			case !errors.Is(err, steer.ErrLate): // it has ended
				return nil
			}
		}
	}
	return c
}

// lastsLonger is added to the time that a leaving cluster has: at the end of that time it is
// ordered to end, and its I/O processes after it.
const lastsLonger = time.Minute

func detachCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "detach CLUSTER [JOB]",
		Short: "has a cluster leave a running system in good order",
		Long: `Nothing more is sent to the cluster; its I/O processes hand on what they have; then its receives from MPISP_CLUSTER_IN end as from MPI_PROC_NULL, by which its
programs know that nothing more comes, and end. What has not ended within --within is told to (SIGTERM). The others go on, and the command returns when the cluster has left. It may be
attached again, on any host, by the spxrun command that has started it; what is for it waits until then (docs/systems.md). JOB as for status.`,
		Args: cobra.RangeArgs(1, 2),
	}
	gone := c.Flags().Bool("gone", false, "it is not awaited: what was only for it is lost, sends that have no other way fail, and who received from it alone learns that nothing more comes; also of one that has left before")
	within := c.Flags().Duration("within", 30*time.Second, "how long the cluster has to end by itself")
	c.RunE = func(_ *cobra.Command, args []string) error {
		if *within < 0 {
			return fmt.Errorf("--within %v: a time is wanted, as 30s; 0 tells the programs at once to end", *within)
		}
		about, err := findSystem(args[1:])
		if err != nil {
			return err
		}
		number, err := strconv.ParseUint(about.Job, 16, 64)
		if err != nil {
			return err
		}
		text, err := steer.Detach(number, args[0], *within, 2**within+lastsLonger, *gone)
		if err == nil {
			fmt.Println(text)
		}
		return err
	}
	return c
}

// findSystem is the system that the user means.
func findSystem(args []string) (*service.About, error) {
	var found []*service.About
	list, late := steer.List()
	for _, about := range list {
		s, err := system.StatusOf(&about)
		if err == nil && (len(args) == 0 || args[0] == s.Name || len(args[0]) > 3 && len(args[0]) <= len(about.Job) && about.Job[:len(args[0])] == args[0]) {
			found = append(found, &about)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && late != nil: // it may be meant
		return nil, late
	case len(found) == 0:
		return nil, errors.New("no such system of this user runs with its spxrun on this host; spxctl jobs lists the jobs")
	}
	return nil, fmt.Errorf("%d systems run; say which: its name, or the beginning of its job's number (spxctl jobs)", len(found))
}

// show is a status in the form that is wanted; svg is a file to draw it into.
func show(about *service.About, asJSON bool, svg string) (string, error) {
	s, err := system.StatusOf(about)
	if err != nil {
		return "", err
	}
	if svg == "-" {
		return s.Drawing(), nil
	}
	if svg != "" {
		if err := os.WriteFile(svg, []byte(s.Drawing()), 0o666); err != nil {
			return "", err
		}
	}
	if asJSON {
		text, err := json.Marshal(about)
		return string(text) + "\n", err
	}
	head := fmt.Sprintf("system %s, job %s on %s", s.Name, about.Job, about.Host)
	if n := about.System.Refused; n > 0 {
		head += fmt.Sprintf("; %d calls were refused, of those who have not proved to have its key", n)
	}
	return fmt.Sprintf("%s\n\n%s\n", head, s.Text()), nil
}
