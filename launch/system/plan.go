package system

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"libspx/cluster/config"
	"libspx/cluster/layout"
	"libspx/cluster/start"
	"libspx/launch/control"
	"libspx/launch/hosts"
	"libspx/launch/job"
)

// A Plan is a system as a job that is to be started.
type Plan struct {
	System *config.System
	Layout *layout.Layout
}

// planner makes a job of a system file.
type planner struct {
	plan  *Plan
	job   *control.Job
	self  hosts.Names
	env   []string // of all programs, before those of the file
	dir   string   // of the file
	relay string   // path of the relay
	next  int      // number of the next process

	cluster string // that is to be started; empty: all
	file    string // as the user has named it
}

// tls is the setting by which connections are encrypted: the same for all processes.
const tls = "SPX_TLS=1"

// Make fills in the programs, hosts and parts of a job, whose options are set, from a system. file
// is where that was read; env is what programs inherit. With a cluster, that one alone is started,
// with the I/O processes of the links that lead to it first (join.go).
func Make(j *control.Job, s *config.System, file, cluster string, env []string, self hosts.Names) (
	*Plan, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	if cluster != "" && s.Find(cluster) == nil {
		return nil, unknown(s, cluster)
	}
	if cluster == "" && len(s.Others) > 0 {
		return nil, fmt.Errorf(
			"[system] others: another file describes %s, so that this one cannot be started as "+
				"a whole; --cluster NAME --join ADDRESS attaches a cluster of it to the system "+
				"that runs", strings.Join(s.Others, ", "))
	}
	if cluster != "" { // its spxrun declares it itself
		env = slices.DeleteFunc(slices.Clone(env),
			func(kv string) bool { return strings.HasPrefix(kv, "SPX_CLUSTER=") })
	}
	p := &planner{cluster: cluster, file: file, plan: &Plan{System: s,
		Layout: &layout.Layout{Version: 1, System: s.Name,
			Kept: s.Messages == config.MessagesKept}}, job: j, self: self, env: env,
		dir: filepath.Dir(path)}
	if slices.ContainsFunc(s.Links,
		func(k config.Link) bool { return k.Security == config.SecurityTLS }) {
		// two processes have one connection, whichever link it is for
		p.env = with(env, []string{tls})
	}
	p.relay = besides(config.Relay)
	j.Hosts, j.Slots = []string{self.Host}, []int{0}
	if err := p.clusters(); err != nil {
		return nil, err
	}
	for _, name := range s.Others {
		p.plan.Layout.Clusters = append(p.plan.Layout.Clusters,
			layout.Cluster{Name: name, Gone: true})
	}
	if err := p.links(); err != nil {
		return nil, err
	}
	p.starts()
	j.IOPMasters = s.Masters == config.MastersIOP
	if err := p.replayable(); err != nil {
		return nil, err
	}
	if cluster != "" {
		if err := p.join(path, os.Getenv); err != nil {
			return nil, err
		}
	} else if len(j.Hosts) == 1 {
		j.Hosts, j.Slots, j.Where = nil, nil, nil
	}
	return p.plan, control.Attach(j, p.plan.Layout)
}

// besides is a program in this one's directory, or its plain name.
func besides(name string) string {
	if self, err := os.Executable(); err == nil {
		if file := filepath.Join(filepath.Dir(self), name); executable(file) {
			return file
		}
	}
	return name
}

func executable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func (p *planner) clusters() error {
	for i := range p.plan.System.Clusters {
		c := &p.plan.System.Clusters[i]
		all := c.Ranks + c.Standbys + c.Cold()
		where, err := p.place(c.Hosts, all)
		if err != nil {
			return fmt.Errorf("cluster %s: %w", c.Name, err)
		}
		if c.Takeover == config.Transparent && c.Copies != config.OtherHost {
			for i := c.Ranks + c.Standbys; i < all; i++ { // what they need is there
				where[i] = where[0]
			}
		}
		part := p.partOf(c)
		p.job.Parts = append(p.job.Parts, part)
		procs := p.numbers(all)
		p.job.Where = append(p.job.Where, where...)
		env := append(append([]string(nil), c.Environment...), "SPX_CLUSTER="+c.Name)
		p.job.Programs = append(p.job.Programs, control.Program{Procs: all, Standbys: c.Standbys +
			c.Cold(), Cold: c.Cold(), MsgLogs: c.Takeover == config.Transparent && c.Cold() > 0 &&
			c.Copies != config.OtherHost, Argv: append([]string{c.Program}, c.Args...),
			Dir: p.directory(c.Directory), Env: with(p.env, env), Part: len(p.job.Parts)})
		p.plan.Layout.Clusters = append(p.plan.Layout.Clusters,
			layout.Cluster{Name: c.Name, World: uint32(i), Procs: procs[:c.Ranks],
				Standbys: procs[c.Ranks:], Cold: c.Cold(),
				Heals: part.Away || part.Heals(), Replays: c.Takeover == config.Transparent,
				Copies: c.Copies == config.OtherHost})
	}
	return nil
}

// replayable refuses transparent takeover where a standby is on another host than a rank whose
// message log it would need.
func (p *planner) replayable() error {
	for _, c := range p.plan.Layout.Clusters {
		if !c.Replays {
			continue
		}
		procs := slices.Concat(c.Procs, c.Standbys)
		several := slices.ContainsFunc(procs[:len(procs)-c.Cold],
			func(proc int) bool { return p.job.Where[proc] != p.job.Where[procs[0]] })
		switch {
		case c.Copies && !several:
			return fmt.Errorf(
				`cluster %s: copies = "other host" is for a cluster with ranks or standbys on several hosts, and all of them are on one; name another one in hosts (ranks come first, then standbys, in the order of the slots), or say copies = "none"`, c.Name)
		case !c.Copies && several:
			return fmt.Errorf(
				`cluster %s: takeover = "transparent" is for ranks and standbys on one host, in whose memory they keep what was received; use one host for the cluster, or copies = "other host", or takeover = "notified"`, c.Name)
		}
	}
	return nil
}

// numbers are those of the next n processes.
func (p *planner) numbers(n int) (out layout.Procs) {
	for range n {
		out = append(out, p.next)
		p.next++
	}
	return out
}

// partOf is a cluster's treatment of failures, in the form of the job's machine.
func (p *planner) partOf(c *config.Cluster) job.Part {
	part := job.Part{Name: "cluster " + c.Name, Tag: c.Name + ".", Away: p.isAway(c.Name),
		Whole: treatment(c.Failure.Cluster), Restarts: c.Failure.Restarts,
		Within: ms(c.Failure.WithinMS)}
	part.Process, part.Host, part.Network = ofRank(c.Failure.Process), ofRank(c.Failure.Host),
		ofRank(c.Failure.Network)
	part.Hang, part.HangLimit, part.SilentLimit = hanging(c.Failure.Hang, ofRank),
		ms(c.Failure.HangMS), ms(c.Failure.SilentMS)
	part.Ranks, part.Waiting, part.Cold = c.Ranks, c.Standbys, c.Cold()
	return part
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// hanging is what is done about what hangs: nothing, or what the word means for what has died.
func hanging(word string, dead func(word string) job.Treatment) job.Treatment {
	if word == config.Report {
		return job.LeaveBe
	}
	return dead(word)
}

// ofRank is what is done about the death of a rank: also a process that is started takes its place
// as a standby.
func ofRank(word string) job.Treatment {
	switch word {
	case config.Degrade:
		return job.Degrade
	case config.Replace, config.Restart:
		return job.Replace
	}
	return job.Stop
}

func treatment(word string) job.Treatment {
	switch word {
	case config.Degrade:
		return job.Degrade
	case config.Restart:
		return job.Restart
	}
	return job.Stop
}

// links adds the I/O processes: each is a program of one process, and a part of its own. A
// bidirectional link is two in the layout.
func (p *planner) links() error {
	l := p.plan.Layout
	for i := range p.plan.System.Links {
		k := &p.plan.System.Links[i]
		where, err := p.place(k.Hosts, k.IOPs)
		if err != nil {
			return fmt.Errorf("link %s: %w", k.Name, err)
		}
		from, to := indices(l, k.From), indices(l, k.To)
		mine := []int{len(l.Links)}
		l.Links = append(l.Links, layout.Link{Name: k.Name, From: from, To: to,
			Choice: choiceOf(k)})
		if k.Bidirectional {
			mine = append(mine, len(l.Links))
			l.Links = append(l.Links, layout.Link{Name: k.Name + ".back", From: to, To: from,
				Choice: choiceOf(k)})
		}
		for n := range k.IOPs {
			p.iop(k, n, where[n], 1+i, mine, from, to)
		}
	}
	return nil
}

func (p *planner) iop(k *config.Link, n, host, number int, links, from, to []int) {
	l := p.plan.Layout
	iop := layout.IOP{Proc: p.next, World: uint32(len(l.Clusters) + len(l.IOPs)), Links: links,
		In: from, Out: to}
	if k.Bidirectional {
		iop.In, iop.Out = append(append([]int(nil), from...), to...),
			append(append([]int(nil), to...), from...)
	}
	if n < len(k.Weights) {
		iop.Weight = k.Weights[n]
	}
	by := p.with(k)
	first := p.first(k.From[0])
	name := fmt.Sprintf("%s.iop%d", k.Name, n)
	part := job.Part{Name: "I/O process " + name, Tag: name + ".",
		Whole: treatment(first.Failure.IOP), Restarts: first.Failure.Restarts,
		Within: ms(first.Failure.WithinMS), Serves: true,
		Hang: hanging(first.Failure.IOPHang, treatment), HangLimit: ms(first.Failure.HangMS),
		SilentLimit: ms(first.Failure.SilentMS), Away: p.isAway(by), With: 1 + l.Cluster(by),
		Link: number}
	iop.Heals = part.Away || part.Heals()
	p.next++
	l.IOPs = append(l.IOPs, iop)
	p.job.Parts = append(p.job.Parts, part)
	program := k.Program
	if program == config.Relay {
		program = p.relay
	}
	p.job.Where = append(p.job.Where, host)
	p.job.Programs = append(p.job.Programs, control.Program{Procs: 1,
		Argv: append([]string{program}, k.Args...), Dir: p.directory(k.Directory),
		Env: with(p.env, k.Environment), Part: len(p.job.Parts)})
}

// starts sets the parts for which each part waits in MPI_Init: a cluster as in its file, an I/O
// process for the clusters that it joins.
func (p *planner) starts() {
	l, s := p.plan.Layout, p.plan.System
	for i := range s.Clusters {
		c := &s.Clusters[i]
		awaits := p.own(indices(l, s.Awaited(c)))
		for k := range l.IOPs {
			if c.Start.Wait == config.WaitSystem {
				awaits = append(awaits, len(s.Clusters)+k)
			}
		}
		p.job.Start = append(p.job.Start, start.Member{Name: "cluster " + c.Name, Procs: c.Ranks,
			Awaits: awaits, Limit: limitOf(c), Heals: c.Takeover == config.Notified})
	}
	for k, iop := range l.IOPs {
		joins := slices.Concat(iop.In, iop.Out)
		first := p.first(l.Clusters[joins[0]].Name)
		awaits := p.own(joins)
		// it comes with its cluster, and the other clusters perhaps much later
		if with := p.job.Parts[len(s.Clusters)+k].With; p.cluster != "" {
			own := indices(l, s.Awaited(&s.Clusters[with-1]))
			awaits = slices.DeleteFunc(awaits, func(c int) bool { return !slices.Contains(own, c) })
		}
		p.job.Start = append(p.job.Start, start.Member{Name: p.job.Parts[len(s.Clusters)+k].Name,
			Procs: 1, Awaits: awaits, Limit: limitOf(first)})
	}
}

// with is the cluster with which the I/O processes of a link are started: the first to which it
// leads or, where another file describes that, the one that is to be started.
func (p *planner) with(k *config.Link) string {
	if p.plan.System.Find(k.To[0]) == nil {
		return p.cluster
	}
	return k.To[0]
}

// first is a cluster, or, where another file describes it, the one that is to be started.
func (p *planner) first(name string) *config.Cluster {
	if c := p.plan.System.Find(name); c != nil {
		return c
	}
	return p.plan.System.Find(p.cluster)
}

// own are those of some clusters that this file describes.
func (p *planner) own(clusters []int) []int {
	return slices.DeleteFunc(clusters, func(c int) bool { return c >= len(p.plan.System.Clusters) })
}

func limitOf(c *config.Cluster) int64 { return c.Start.LimitMS * 1e6 }

// choiceOf is a link's policy as the layout spells it.
func choiceOf(k *config.Link) string {
	if k.Choice == config.ChoiceLibrary {
		return config.ChoiceLibrary + ":" + k.Library
	}
	return k.Choice
}

func indices(l *layout.Layout, names []string) (out []int) {
	for _, n := range names {
		out = append(out, l.Cluster(n))
	}
	return out
}

// place gives n processes to a list of hosts: to each as many in a row as it has slots, and again
// from the first on.
func (p *planner) place(list []string, n int) ([]int, error) {
	entries, err := hosts.List(list, nil)
	if err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "-host: "))
	}
	var turn []int
	for _, h := range hosts.Merge(entries, p.self) {
		k := p.host(h.Name)
		p.job.Slots[k] = max(p.job.Slots[k], h.Slots)
		for range h.Slots {
			turn = append(turn, k)
		}
	}
	if turn == nil {
		turn = []int{0}
	}
	out := make([]int, n)
	for i := range out {
		out[i] = turn[i%len(turn)]
	}
	return out, nil
}

// host is the number of a host in the job.
func (p *planner) host(name string) int {
	if p.self.Local(name) {
		return 0
	}
	for i, h := range p.job.Hosts {
		if i > 0 && h == name {
			return i
		}
	}
	p.job.Hosts, p.job.Slots = append(p.job.Hosts, name), append(p.job.Slots, 0)
	return len(p.job.Hosts) - 1
}

// directory is where a program works: relative to the system's, which is relative to that of the
// file.
func (p *planner) directory(own string) string {
	dir := cmp.Or(own, p.plan.System.Directory)
	switch {
	case filepath.IsAbs(dir):
		return dir
	case own != "" && p.plan.System.Directory != "":
		return p.absolute(filepath.Join(p.plan.System.Directory, own))
	}
	return p.absolute(dir)
}

func (p *planner) absolute(dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(p.dir, dir)
}

// with is an environment with more variables, which win.
func with(env, more []string) []string {
	set := map[string]bool{}
	for _, kv := range more {
		name, _, _ := strings.Cut(kv, "=")
		set[name] = true
	}
	var out []string
	for _, kv := range env {
		if name, _, _ := strings.Cut(kv, "="); !set[name] {
			out = append(out, kv)
		}
	}
	return append(out, more...)
}
