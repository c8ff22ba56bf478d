package front

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"libspx/launch/command"
	"libspx/launch/control"
	"libspx/launch/probe"
	"libspx/launch/progress"
)

// tellTopology puts the known network between the hosts of a job into the environment of its
// programs (SPX_TOPOLOGY), unless the user has set it; with --probe, unknown parts are measured
// first. All programs get the same value, as collectives depend on it.
func tellTopology(spec *control.Job, j *command.Job) error {
	said, err := saidTopology(spec.Programs)
	if err != nil || len(spec.Hosts) < 2 {
		return err
	}
	if said != "" {
		addTopology(spec.Programs, said)
		return nil
	}
	var used []int // numbers of hosts with ranks; spxrun's own may have none
	for n := range spec.Hosts {
		if slices.Contains(spec.Where, n) {
			used = append(used, n)
		}
	}
	names := make([]string, len(used))
	for i, n := range used {
		names[i] = spec.Hosts[n]
	}
	n, err := network(names, spec, j)
	if n == nil || err != nil {
		return err
	}
	switches, next := make([]int, len(spec.Hosts)), n.Switches
	for h := range switches {
		i := slices.Index(used, h)
		if i >= 0 && n.Of[i] >= 0 {
			switches[h] = n.Of[i]
			continue
		}
		switches[h] = next // one of its own
		next++
	}
	words := make([]string, len(switches))
	for h, s := range switches {
		words[h] = strconv.Itoa(s)
	}
	addTopology(spec.Programs, topologyIs+strings.Join(words, ","))
	return nil
}

const topologyIs = "SPX_TOPOLOGY="

// topologyOf is the last setting in a program's environment; "" if there is none.
func topologyOf(p *control.Program) (text string) {
	for _, v := range p.Env {
		if strings.HasPrefix(v, topologyIs) {
			text = v
		}
	}
	return text
}

// saidTopology is the user's setting, for one program or several; "": none.
func saidTopology(programs []control.Program) (string, error) {
	said := ""
	for i := range programs {
		text := topologyOf(&programs[i])
		if said != "" && text != "" && text != said {
			return "", fmt.Errorf("one program has %s, another one %s: it must be the same for all",
				said, text)
		}
		said = cmp.Or(said, text)
	}
	return said, nil
}

func addTopology(programs []control.Program, text string) {
	for i := range programs {
		if p := &programs[i]; topologyOf(p) == "" {
			p.Env = append(p.Env[:len(p.Env):len(p.Env)], text)
		}
	}
}

// network is the known network of hosts; nil: unknown.
func network(names []string, spec *control.Job, j *command.Job) (*probe.Network, error) {
	if !j.Probe {
		c, err := probe.OpenCache()
		if err != nil { // it helps, and is not needed
			return nil, nil //nolint:nilerr // see above
		}
		return c.Find(names), nil
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	bar := progress.Start("measuring the network", 0)
	defer bar.End()
	say := func(text string) {
		bar.Clear()
		fmt.Fprintf(os.Stderr, "spxrun: --probe: %s\n", text)
	}
	n, err := probe.Find(probe.Config{Hosts: names, Self: spec.Hosts[0], Rsh: spec.Rsh,
		Program: program, Prefix: spec.Prefix, Iface: spec.Iface, Say: say, Progress: bar.Say},
		false)
	if err != nil {
		say(err.Error())
	}
	if n != nil && n.GroupsAre != probe.Sure {
		say(fmt.Sprintf(
			"it is not sure which hosts share a switch: %s; the job runs without knowing",
			n.GroupsAre))
		return nil, nil
	}
	return n, nil
}
