package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"libspx/internal/manual"
)

// manualCommand is for building: it prints the manual page of all commands.
func manualCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:    "manual DATE VERSION",
		Short:  "prints the manual page",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		Run:    func(_ *cobra.Command, args []string) { fmt.Print(manualPage(root, args[0], args[1])) },
	}
}

func manualPage(root *cobra.Command, date, version string) string {
	p := manual.New("spxctl", "1", date, version)
	p.Name("looks at running MPI jobs and steers them, tunes libspx for a machine", "spxctl")
	p.Section("SYNOPSIS")
	p.Raw(".Nm\n.Ar command\n.Op Ar arguments")
	p.Section("DESCRIPTION")
	p.Text("The commands:")
	p.List()
	describeCommands(p, root, "")
	p.EndList()
	p.Section("EXIT STATUS")
	p.Raw(".Ex -std")
	p.See([][2]string{{"spxrun", "1"}, {"libspx", "7"}})
	return p.String()
}

// describeCommands adds the commands below c that are meant for users, with their options.
func describeCommands(p *manual.Page, c *cobra.Command, before string) {
	for _, sub := range c.Commands() {
		if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
			continue
		}
		if sub.HasSubCommands() {
			describeCommands(p, sub, before+sub.Name()+" ")
		}
		if !sub.Runnable() {
			continue
		}
		p.Term("Cm", before+sub.Use)
		p.Text("%s.", strings.ToUpper(sub.Short[:1])+strings.TrimSuffix(sub.Short[1:], "."))
		if sub.Long != "" {
			p.Prose(sub.Long)
		}
		flags := 0
		sub.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" {
				return
			}
			if flags++; flags == 1 {
				p.List()
			}
			what, usage := pflag.UnquoteUsage(f)
			p.Term("Fl", strings.TrimSpace("-"+f.Name+" "+what))
			p.Text("%s.", strings.TrimSuffix(usage, "."))
		})
		if flags > 0 {
			p.EndList()
		}
	}
}
