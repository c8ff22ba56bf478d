package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"libspx/launch/hosts"
	"libspx/launch/probe"
	"libspx/launch/progress"
	"libspx/net/topo/picture"
)

// statusUnsure is the exit status when the requested result is not sure; the sure part was printed.
const statusUnsure = 3

var errUnsure = errors.New("it is not sure")

// topologyOptions are the options of the command line.
type topologyOptions struct {
	list, file, rsh, svg string
	json, again          bool
	probe                probe.Config
}

func topologyCommand() *cobra.Command {
	var o topologyOptions
	c := &cobra.Command{
		Use:   "topology",
		Short: "shows which hosts share a switch, and how the switches are linked",
		Long: `Shows the network between the hosts of a list (without one, those of the batch system's allocation, or else all networks that are known). What is not
known is measured first, and kept for later jobs (networks.json in the user's cache folder): round-trip times and, between switches, throughput.
Where Slurm describes its switches, nothing is measured. What measurements do not agree on, as on busy hosts, is not told, but called unsure, with exit status 3.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	f := c.Flags()
	f.StringVar(&o.list, "host", "", "hosts, with commas")
	f.StringVarP(&o.file, "hostfile", "f", "", "file of hosts, one a line")
	f.StringVar(&o.rsh, "rsh", "", "reach other hosts by COMMAND HOST LINE instead of ssh (also by SPX_RSH)")
	f.StringVar(&o.probe.Prefix, "prefix", "", "where libspx is installed on other hosts (default: the same place as here)")
	f.StringVar(&o.probe.Iface, "iface", os.Getenv("SPX_IFACE"), "interface or network whose links are measured")
	f.BoolVar(&o.again, "again", false, "measure also what is known")
	f.BoolVar(&o.json, "json", false, "as JSON")
	f.StringVar(&o.svg, "svg", "", "write a picture to this file, too (-: to standard output, alone)")
	f.IntVar(&o.probe.Parallel, "parallel", 64, "round-trip times that are measured at once")
	f.DurationVar(&o.probe.Limit, "limit", 10*time.Minute, "for measuring, at most: seconds do on hosts without other work, on busy ones it is measured again and again")
	f.Int64Var(&o.probe.Bytes, "bytes", 1<<30, "sent to measure throughput, about, at most")
	return c
}

func (o *topologyOptions) run() error {
	var entries, files, rsh []string
	if o.list != "" {
		entries = strings.Split(o.list, ",")
	}
	if o.file != "" {
		files = []string{o.file}
	}
	if o.rsh != "" {
		rsh = strings.Fields(o.rsh)
	}
	list, rsh, err := hosts.Find(entries, files, rsh, os.Getenv)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return o.showKnown()
	}
	self := hosts.Self()
	o.probe.Self, o.probe.Rsh = self.Host, rsh
	for _, h := range hosts.Merge(list, self) {
		name := h.Name
		if self.Local(name) {
			name = self.Host
		}
		o.probe.Hosts = append(o.probe.Hosts, name)
	}
	here, err := os.Executable()
	if err != nil {
		return err
	}
	o.probe.Program = filepath.Join(filepath.Dir(here), "spxrun")
	bar := progress.Start("measuring the network", 0)
	o.probe.Progress = bar.Say
	o.probe.Say = func(text string) {
		bar.Clear()
		fmt.Fprintln(os.Stderr, "spxctl:", text)
	}
	n, err := probe.Find(o.probe, o.again)
	bar.End()
	if n == nil {
		return err
	}
	if err != nil {
		o.probe.Say(err.Error())
	}
	return o.show([]*probe.Network{n})
}

// showKnown shows what the cache has.
func (o *topologyOptions) showKnown() error {
	c, err := probe.OpenCache()
	if err != nil {
		return err
	}
	if len(c.Networks) == 0 {
		return errors.New("no network is known; -host or --hostfile names hosts to measure between")
	}
	if o.svg != "" && len(c.Networks) > 1 {
		return errors.New("several networks are known; -host or --hostfile says which one is meant")
	}
	return o.show(c.Networks)
}

func (o *topologyOptions) show(list []*probe.Network) error {
	if o.svg != "" {
		drawn := picture.SVG(list[0].Tree(), list[0].Hosts)
		if o.svg == "-" {
			_, err := os.Stdout.WriteString(drawn)
			return err
		}
		if err := os.WriteFile(o.svg, []byte(drawn), 0o666); err != nil {
			return err
		}
	}
	var err error
	for _, n := range list {
		if n.GroupsAre != probe.Sure || n.LinksAre != probe.Sure {
			err = errUnsure
		}
		if o.json {
			text, err := json.MarshalIndent(n, "", "  ")
			if err != nil {
				return err
			}
			fmt.Printf("%s\n", text)
			continue
		}
		fmt.Printf("%s%s\n", n.Text(), source(n))
	}
	if err != nil && !o.json {
		fmt.Println(whatToDo)
	}
	return err
}

// whatToDo is printed if a result is unsure.
const whatToDo = "what to do: spxctl topology --again when the hosts have less other work; or tell a job which of its hosts share one, as SPX_TOPOLOGY=0,0,1,1"

// source names the source of a network.
func source(n *probe.Network) string {
	when := n.Measured.Local().Format("2006-01-02 15:04:05")
	if n.How != "measured" {
		return fmt.Sprintf("told by %s on %s", n.How, when)
	}
	by := ""
	if n.Within > 0 {
		by = fmt.Sprintf("round-trip times: %.1f us and less on one switch", float64(n.Within)/1e3)
		if n.Across > 0 {
			by += fmt.Sprintf(", %.1f us and more between switches", float64(n.Across)/1e3)
		}
		by += "\n"
	}
	return by + fmt.Sprintf("measured on %s: %d round-trip times, %d throughputs, %.1f MB, %.1f s", when, n.Cost.Pings, n.Cost.Streams, float64(n.Cost.Bytes)/1e6, n.Cost.Seconds)
}
