package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Long options may have one dash; short ones and their values, and what follows "--", stay as they are.
func TestTwoDashes(t *testing.T) {
	root := &cobra.Command{Use: "spxctl"}
	root.AddCommand(topologyCommand(), jobsCommand())
	for from, to := range map[string]string{
		"topology -host a,b --json":             "topology --host a,b --json",
		"topology -host=a,b -json":              "topology --host=a,b --json",
		"topology -f hosts":                     "topology -f hosts",
		"topology -h":                           "topology -h",
		"topology -ost":                         "topology -ost",
		"topology -- -host":                     "topology -- -host",
		"__complete topology -hostfile f x":     "__complete topology --hostfile f x",
		"nothing -host a":                       "nothing -host a",
		"jobs -host a":                          "jobs -host a",
		"topology --iface 10.0.0.0/8 -limit=1s": "topology --iface 10.0.0.0/8 --limit=1s",
	} {
		if got := twoDashes(root, strings.Fields(from)); !slices.Equal(got, strings.Fields(to)) {
			t.Errorf("%s: %q", from, got)
		}
	}
}
