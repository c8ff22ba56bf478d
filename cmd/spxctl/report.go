package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"libspx/launch/trace/report"
)

// reportCommand makes a page of a timeline: docs/tracing.md.
func reportCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "makes a page with pictures of a timeline that spxrun --trace has written",
		Long: `The page is one HTML file that needs nothing else: the timeline, the load of the ranks, what they waited for, who has sent how much to whom, the sizes of
messages, where the time went, and the hosts.`,
		Args: cobra.ExactArgs(1),
	}
	out := c.Flags().StringP("output", "o", "", "`FILE` of the page, - for standard output (default: the timeline's name with .html)")
	c.RunE = func(_ *cobra.Command, args []string) (err error) {
		t, err := report.Read(args[0])
		if err != nil {
			return err
		}
		if *out == "-" {
			return t.Write(os.Stdout)
		}
		name := *out
		if name == "" {
			name = strings.TrimSuffix(strings.TrimSuffix(args[0], ".gz"), ".json") + ".html"
		}
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		err = t.Write(f)
		if e := f.Close(); err == nil {
			err = e
		}
		if err == nil {
			fmt.Println(name)
		}
		return err
	}
	return c
}
