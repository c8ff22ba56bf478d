package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"libspx/launch/service"
	"libspx/launch/steer"
)

func hostsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "hosts JOB [add|remove HOST...]",
		Short: "lists the hosts of a running job, adds some, or removes idle ones",
		Long: `Hosts that are added, as NAME or NAME:SLOTS, are reached as spxrun has reached the first ones; what is spawned then, and spxctl resize, uses
them. Those on which no process of the job runs can be removed again. It is done when the command returns: docs/malleability.md. A job that began on
one host must have been started with --more-hosts.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) > 2 && (args[1] == "add" || args[1] == "remove") {
				return nil
			}
			return fmt.Errorf("a job is expected, then nothing, or add or remove and the names of hosts")
		},
	}
	limit := limitFlag(c)
	asJSON := c.Flags().Bool("json", false, "for programs")
	c.RunE = func(_ *cobra.Command, args []string) error {
		job, err := steer.Find(args[0])
		if err != nil {
			return err
		}
		var list []service.Host
		began := time.Now()
		switch {
		case len(args) == 1:
			list, err = steer.Hosts(job)
		case args[1] == "add":
			list, err = steer.AddHosts(job, split(args[2:]), *limit)
		default:
			list, err = steer.RemoveHosts(job, split(args[2:]), *limit)
		}
		if err != nil {
			return err
		}
		if *asJSON {
			return json.NewEncoder(os.Stdout).Encode(list)
		}
		for _, h := range list {
			fmt.Printf("%-20s %4d slots, %4d processes%s%s\n", h.Name, h.Slots, h.Procs, behind(", ", h.State), copyOf(h.Copy))
		}
		if len(args) > 1 {
			fmt.Printf("done in %.6f s\n", time.Since(began).Seconds())
		}
		return nil
	}
	return c
}

// copyOf describes a host's copy of the job's deciding state.
func copyOf(c *service.Copy) (text string) {
	if c == nil {
		return ""
	}
	text = fmt.Sprintf(", copy of %d events", c.Events)
	if c.Votes {
		text += ", votes"
	}
	if c.Leads {
		text += ", leads"
	}
	if c.Refused > 0 {
		text += fmt.Sprintf(", %d calls refused", c.Refused)
	}
	return text
}

// split splits names at commas.
func split(words []string) []string { return strings.Split(strings.Join(words, ","), ",") }

// behind is text with something before it, if there is any.
func behind(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}
