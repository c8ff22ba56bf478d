// Spxctl is the tool beside spxrun. It owns the command line alone: `spxctl tune` measures
// (tune.go) and writes the table that libspx reads when MPI starts (docs/tuning.md); explain shows
// which algorithms collectives use (launch/explain, docs/collectives.md); jobs, resize, hosts,
// kill, wait, end, drill and hook send requests to the agents of running jobs (launch/steer,
// docs/malleability.md); ps, waits, stacks and queues show the activity of their processes
// (core/diagnose, docs/diagnosis.md); top and serve show it as it changes (launch/live,
// docs/live.md); report makes a page about a job's run (launch/trace/report, docs/tracing.md);
// topology shows and measures networks (launch/probe, docs/connections.md); names serves and lists
// published names (launch/names, docs/dynamic-processes.md); system checks system files and shows
// systems (launch/system, docs/systems.md). It starts programs by spxrun and touches no job's
// memory.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"libspx/launch/steer"
)

func main() {
	root := &cobra.Command{Use: "spxctl", Short: "libspx on this machine: running jobs, tuning", SilenceUsage: true, SilenceErrors: true}
	root.CompletionOptions.HiddenDefaultCmd = true // spxctl completion bash
	root.AddCommand(jobsCommand(), psCommand(), waitsCommand(), stacksCommand(), queuesCommand(), reportCommand(), topCommand(), serveCommand(), exportCommand(), resizeCommand(), hostsCommand(), killCommand(), waitCommand(), endCommand(), drillCommand(), hookCommand(), topologyCommand(), tuneCommand(), explainCommand(), systemCommand(), namesCommand())
	root.AddCommand(manualCommand(root))
	root.SetArgs(twoDashes(root, os.Args[1:]))
	steer.Waiting = func(text string) { fmt.Fprintln(os.Stderr, "spxctl:", text) }
	if err := root.Execute(); err != nil {
		if errors.Is(err, errUnsure) {
			os.Exit(statusUnsure)
		}
		if !errors.Is(err, errSaid) {
			fmt.Fprintln(os.Stderr, "spxctl:", err)
		}
		os.Exit(1)
	}
}

// twoDashes lets long options be written with one dash, as spxrun takes them: -host a,b is --host
// a,b. Without it, -host would be read as -h and print the help text instead of an error.
func twoDashes(root *cobra.Command, args []string) []string {
	words := args
	if len(words) > 0 && strings.HasPrefix(words[0], cobra.ShellCompRequestCmd) {
		words = words[1:]
	}
	c, _, err := root.Find(words)
	if err != nil {
		return args // Execute reports it
	}
	out := append([]string(nil), args...)
	for i, a := range out {
		name, _, _ := strings.Cut(strings.TrimPrefix(a, "-"), "=")
		switch {
		case a == "--":
			return out
		case len(name) > 1 && strings.HasPrefix(a, "-") && name[0] != '-' && c.Flags().Lookup(name) != nil:
			out[i] = "-" + a
		}
	}
	return out
}
