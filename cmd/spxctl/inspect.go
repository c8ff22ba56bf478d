package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"libspx/core/diagnose"
	"libspx/launch/steer"
)

// Commands that show the activity of the processes of a running job: docs/diagnosis.md.

const jobHelp = `JOB is the beginning of a number that spxctl jobs shows, the name of a program or of a cluster, if one job alone has it, or . for the only job there is. The job goes on meanwhile.`

// inspectCommand is a command that shows what the processes of a job do, as text or as JSON.
func inspectCommand(name, short, long string, stacks bool, text func([]diagnose.Proc) []string) *cobra.Command {
	c := &cobra.Command{Use: name + " JOB", Short: short, Long: long + "\n" + jobHelp, Args: cobra.ExactArgs(1)}
	asJSON := c.Flags().Bool("json", false, "for programs")
	c.RunE = func(_ *cobra.Command, args []string) error {
		job, err := steer.Find(args[0])
		if err != nil {
			return err
		}
		procs, err := steer.Inspect(job, stacks)
		if err != nil {
			return err
		}
		if *asJSON {
			e := json.NewEncoder(os.Stdout)
			e.SetIndent("", "  ")
			return e.Encode(struct {
				Job       string             `json:"job"`
				Findings  []diagnose.Finding `json:"findings"`
				Processes []diagnose.Proc    `json:"processes"`
			}{fmt.Sprintf("%016x", job), diagnose.Find(procs), procs})
		}
		for _, line := range text(procs) {
			fmt.Println(line)
		}
		return nil
	}
	return c
}

func psCommand() *cobra.Command {
	return inspectCommand("ps", "lists a job's processes, and the MPI calls in which they wait",
		"For each process its MPI call with the arguments by name, and for how long it has waited there.", false, diagnose.Ps)
}

func waitsCommand() *cobra.Command {
	return inspectCommand("waits", "says why a job stands still: deadlocks, who is missing, messages that do not fit",
		"Who waits for whom, and what holds the job up: the most telling first, then what every process does.", true, diagnose.Waits)
}

func stacksCommand() *cobra.Command {
	return inspectCommand("stacks", "shows where a job's processes are in their programs",
		"The functions of the program above the MPI call, or of a process that is in none.", true, diagnose.Stacks)
}

func queuesCommand() *cobra.Command {
	return inspectCommand("queues", "shows receives and messages that have not found each other",
		"Of each process that waits: its posted receives, messages that it has not asked for, and sends that were not received.", false, diagnose.QueueLines)
}
