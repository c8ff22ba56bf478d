package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"libspx/core/coll"
	"libspx/core/diagnose"
	"libspx/launch/cpus"
	"libspx/launch/explain"
	"libspx/launch/hosts"
	"libspx/launch/steer"
)

// Which algorithm a collective uses, and why: docs/collectives.md.

// explainOptions are the options of the command line.
type explainOptions struct {
	ranks, count, cpus, world int
	hosts, list, bind         string
	call                      explain.Call
	json, rules               bool
}

func explainCommand() *cobra.Command {
	var o explainOptions
	c := &cobra.Command{
		Use:   "explain [JOB] [COLLECTIVE [SIZE]]",
		Short: "says which algorithm a collective uses, and why",
		Long: `The algorithm with its parameters, the setting or the line of the library's table that has chosen it, what would have been chosen
otherwise, and from which size on others are: for MPI_COMM_WORLD of a running job, or of one that would be started here as the options say. COLLECTIVE is
bcast, allreduce, reduce_scatter ...; without one, all are listed. SIZE is what the choice rests on: the whole of a bcast, reduce, allreduce or scan, one block of
a gather, scatter, allgather, alltoall or reduce_scatter_block, all blocks of an allgatherv or reduce_scatter. SPX_COLL_BCAST and the like count, in
the environment or the table of spxctl tune, and so do SPX_TOPOLOGY, SPX_CONNECTIONS and SPX_TRANSPORTS; those of the job, if one is named.
` + jobHelp,
		Args: cobra.MaximumNArgs(3),
	}
	f := c.Flags()
	f.IntVarP(&o.count, "np", "n", 0, "number of ranks (default: one for each processor)")
	f.StringVar(&o.hosts, "hosts", "", "a number of hosts, which get equal parts of the ranks")
	f.StringVar(&o.list, "host", "", "hosts with their slots, with commas, as for spxrun")
	f.IntVar(&o.cpus, "cpus", 0, "processors of a host (default: those that this one has for a job)")
	f.StringVar(&o.bind, "bind-to", "none", "as for spxrun: core, hwthread, socket, numa")
	ranks := f.String("ranks", "", "of a communicator with these ranks alone, as 0-3,8")
	f.Int64Var(&o.call.Element, "element", 0, "`bytes` of an element of the datatype (default: 8 for reductions, else 1)")
	f.BoolVar(&o.call.Gaps, "gaps", false, "the datatype is not contiguous")
	f.BoolVar(&o.call.Ordered, "ordered", false, "the operation does not commute")
	f.BoolVar(&o.call.InPlace, "in-place", false, "with MPI_IN_PLACE")
	f.BoolVar(&o.call.Persistent, "persistent", false, "of a persistent request")
	f.IntVar(&o.call.Remote, "remote", 0, "of an intercommunicator with so many ranks in the other group")
	f.BoolVar(&o.rules, "rules", false, "also why the lines of the table before it were passed over")
	f.BoolVar(&o.json, "json", false, "for programs")
	c.RunE = func(_ *cobra.Command, args []string) error { return o.run(args, *ranks) }
	return c
}

func (o *explainOptions) run(args []string, ranks string) error {
	s, err := o.situation(&args)
	if err != nil {
		return err
	}
	if ranks != "" {
		if s, err = s.Pick(cpus.ParseList(ranks)); err != nil {
			return err
		}
	}
	if len(args) == 0 {
		return o.all(s)
	}
	k, ok := coll.Lookup(strings.ToLower(strings.TrimPrefix(args[0], "MPI_")))
	if !ok {
		return fmt.Errorf("%s is no collective; there are: %s", args[0], strings.Join(kinds(), ", "))
	}
	call := o.of(k)
	if len(args) > 1 {
		if call.Bytes, err = parseBytes(args[1]); err != nil {
			return err
		}
	} else if coll.Measure(k) != "" {
		call.Bytes = 1024
	}
	e, err := s.Explain(call)
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(e)
	}
	fmt.Println(s.Head(call, e))
	for _, line := range explain.Lines(e, o.rules) {
		fmt.Println(line)
	}
	return nil
}

func (o *explainOptions) of(k coll.Kind) explain.Call {
	call := o.call
	call.Kind = k
	if call.Element == 0 {
		call.Element = explain.Element(k)
	}
	return call
}

// all lists every operation with its algorithms by size.
func (o *explainOptions) all(s *explain.Situation) error {
	var list []*coll.Explanation
	for k := range coll.Kinds {
		call := o.of(k)
		call.Bytes = 1
		e, err := s.Explain(call)
		if o.call.Remote > 0 && err != nil {
			continue // scan and exscan are not defined there
		}
		if err != nil {
			return err
		}
		list = append(list, e)
	}
	if o.json {
		return printJSON(list)
	}
	for _, e := range list {
		name := e.Operation
		if len(e.Ranges) < 2 {
			fmt.Printf("%-21s %-28s %s\n", name, "", e.Algorithm)
		}
		for _, r := range e.Ranges {
			if len(e.Ranges) > 1 && r.To != 0 {
				fmt.Printf("%-21s %-28s %s\n", name, explain.Span(r), r.Algorithm)
				name = ""
			}
		}
	}
	return nil
}

func kinds() (list []string) {
	for k := range coll.Kinds {
		list = append(list, k.String())
	}
	return list
}

// parseBytes reads a size as settings have it: 65536, 64K, 1M, 2G.
func parseBytes(text string) (int64, error) {
	digits := strings.TrimRight(text, "KkMmGg")
	n, err := strconv.ParseInt(digits, 10, 64)
	unit := strings.ToUpper(text[len(digits):])
	shift := map[string]uint{"": 0, "K": 10, "M": 20, "G": 30}
	if _, known := shift[unit]; err != nil || !known || n < 0 || n > 1<<40>>shift[unit] {
		return 0, fmt.Errorf("%q is no number of bytes, as 65536 or 64K", text)
	}
	return n << shift[unit], nil
}

// situation is that of the job which the first argument names, if it is no collective, else that of
// the options.
func (o *explainOptions) situation(args *[]string) (*explain.Situation, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	if len(*args) > 0 {
		if _, ok := coll.Lookup(strings.ToLower(strings.TrimPrefix((*args)[0], "MPI_"))); !ok {
			job := (*args)[0]
			*args = (*args)[1:]
			if o.count != 0 || o.hosts != "" || o.list != "" || o.cpus != 0 {
				return nil, errors.New("a running job has its ranks, hosts and processors: name no others")
			}
			return situationOf(job, host)
		}
	}
	s := &explain.Situation{CPUs: o.cpus, Hostname: host, Getenv: os.Getenv, TCP: os.Getenv("SPX_TRANSPORTS") == "tcp"}
	if s.CPUs == 0 {
		s.CPUs = processors()
	}
	n := o.count
	if n == 0 {
		n = s.CPUs
	}
	where, err := o.place(n)
	if err != nil {
		return nil, err
	}
	near, err := o.near(n)
	if err != nil {
		return nil, err
	}
	for rank := range n {
		p := explain.Process{Host: where[rank]}
		if near != nil {
			p.Node, p.Cache = near[rank][0], near[rank][1]
		}
		s.Ranks = append(s.Ranks, p)
	}
	s.World, s.Procs = n, n
	return s, nil
}

// place is the host of each rank, as spxrun would place them.
func (o *explainOptions) place(n int) ([]int, error) {
	if n < 1 || n > 1<<16 {
		return nil, fmt.Errorf("-n %d: from 1 to %d ranks", n, 1<<16)
	}
	self := hosts.Self()
	var list []hosts.Host
	switch {
	case o.hosts != "" && o.list != "":
		return nil, errors.New("--hosts and --host say the same in two ways")
	case o.hosts != "":
		count, err := strconv.Atoi(o.hosts)
		if err != nil || count < 1 || count > n {
			return nil, fmt.Errorf("--hosts %s: from 1 to %d hosts", o.hosts, n)
		}
		list = append(list, hosts.Host{Name: self.Host, Slots: (n + count - 1) / count})
		for i := 1; i < count; i++ {
			list = append(list, hosts.Host{Name: fmt.Sprintf("host%d.invalid", i), Slots: (n + count - 1) / count})
		}
	case o.list != "":
		var err error
		if list, err = hosts.List(strings.Split(o.list, ","), nil); err != nil {
			return nil, err
		}
		list = hosts.Merge(list, self)
	}
	if len(list) > 1 || len(list) == 1 && !self.Local(list[0].Name) {
		if layout := hosts.Place(list, self, n, 0); layout != nil {
			return layout.Where, nil
		}
	}
	return make([]int, n), nil
}

// near is what each rank would be bound to; nil: to nothing.
func (o *explainOptions) near(n int) (list [][2]int, err error) {
	if o.bind == "none" || o.bind == "" {
		return nil, nil
	}
	allowed, err := cpus.Allowed()
	if err != nil {
		return nil, err
	}
	all := cpus.Read("/", allowed)
	domains := cpus.Domains(all, o.bind)
	if len(domains) == 0 {
		return nil, fmt.Errorf("--bind-to %s: there are none, core, hwthread, socket, numa", o.bind)
	}
	for rank := range n {
		node, cache := cpus.Near(all, domains[rank%len(domains)])
		list = append(list, [2]int{int(node), int(cache)})
	}
	return list, nil
}

// situationOf is that of MPI_COMM_WORLD of a running job.
func situationOf(name, host string) (*explain.Situation, error) {
	job, err := steer.Find(name)
	if err != nil {
		return nil, err
	}
	procs, err := steer.Inspect(job, false)
	if err != nil {
		return nil, err
	}
	s := &explain.Situation{Hostname: host, CPUs: 1}
	slices.SortStableFunc(procs, func(a, b diagnose.Proc) int { return a.Rank - b.Rank })
	for i := range procs {
		p := &procs[i]
		if p.Part != "" {
			return nil, errors.New("the job is a system of clusters, of which this knows too little: MPI_T and --trace tell what its programs use")
		}
		if p.Place == nil {
			return nil, fmt.Errorf("nothing is known of rank %d on %s", p.Rank, p.Host)
		}
		s.Procs++
		if p.Place.Host == 0 || len(s.Ranks) == 0 {
			s.CPUs, s.TCP = p.Place.CPUs, p.Place.Network
		}
		if p.World != 0 {
			continue
		}
		s.Ranks = append(s.Ranks, explain.Process{Host: p.Place.Host, Node: p.Place.Node, Cache: p.Place.Cache})
		if s.Getenv == nil && p.Host == host {
			s.Getenv = environmentOf(p.Pid)
		}
	}
	s.World = len(s.Ranks)
	if s.Getenv == nil {
		return nil, errors.New("no process of the job runs on this host, where its environment could be read")
	}
	return s, nil
}

// environmentOf is what a process was started with; nil: it cannot be read.
func environmentOf(pid int) func(string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return nil
	}
	vars := map[string]string{}
	for _, v := range bytes.Split(text, []byte{0}) {
		if name, value, ok := strings.Cut(string(v), "="); ok {
			vars[name] = value
		}
	}
	return func(name string) string { return vars[name] }
}
