package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"libspx/cluster/layout"
	"libspx/core/mpierr"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/service"
)

// Parts of a system (clusters, I/O processes) that have stopped and are started again: each a new
// world of the job, made in the steps of spawned ones.

// nobody is the client of a world that the agent makes by itself.
type nobody struct {
	a    *agent
	part int
	lost int // hosts that were, when it began
	cold int // of its processes, the last: they are started when a rank has died
}

// asksFor begins to ask for the world of a part.
func (a *agent) asksFor(part int) *nobody { return &nobody{a: a, part: part, lost: a.lostHosts()} }

// lostHosts is how many hosts are lost.
func (a *agent) lostHosts() (n int) {
	for _, h := range a.others {
		n += boolInt(h.gone && !h.removed)
	}
	return n
}

func (n *nobody) Send(m *service.Message) error {
	if m.Class == 0 {
		return nil
	}
	lost := n.a.lostHosts() > n.lost // any of them: all take part in the making of a world
	switch h := n.a.homeOf(n.part); {
	case h != nil && h.gone:
		n.a.inbox.put(notMade{n.part})
	case h != nil && !lost:
		n.a.notStartedThere(h, n.part, m.Text)
	default:
		// the next world may begin meanwhile
		n.a.inbox.put(job.NotRestarted{Part: n.part, Text: m.Text, Again: lost})
	}
	return nil
}

func (n *nobody) Gone() bool { return false }
func (n *nobody) Close()     {}

// restartPart restarts the processes of a part, on their hosts, or on others (rehost.go).
func (a *agent) restartPart(part int, last bool) {
	h := a.homeOf(part)
	if h != nil && h.gone {
		a.step(job.Detached{Part: part})
		return
	}
	m, asks := &service.Message{Kind: service.Spawn, FD: -1, Number: uint64(part)}, a.asksFor(part)
	var at []int
	var moved, why string
	if h == nil {
		at, moved, why = a.rehost(part, last)
	} else {
		at, moved, why = a.rehostExternal(h, part, last)
	}
	if why != "" {
		a.step(job.NotRestarted{Part: part, Text: why})
		return
	}
	if h == nil || h.attached.begun {
		a.step(job.Placed{Part: part, Text: moved, Hosts: at})
	}
	for k := range a.spec.Programs {
		p := &a.spec.Programs[k]
		if p.Part == part {
			// more would only wait
			n := p.Procs - p.Cold + min(p.Cold, a.spec.Parts[part-1].Restarts)
			if h != nil && !h.attached.begun {
				n, asks.cold = p.Procs, p.Cold
			}
			where, env := a.hostsOf(at[:min(n, len(at))]), p.Env
			if h != nil {
				env = ownSettings(env)
			}
			m.Programs = append(m.Programs, service.Program{Argv: p.Argv, Procs: uint32(n),
				Dir: p.Dir, Path: p.Path, Host: where, Env: env})
		}
	}
	a.beginning.again(part)
	a.spawn(&question{m, asks})
}

// hostsOf lists the hosts of processes as info key "host" does.
func (a *agent) hostsOf(where []int) string {
	if !a.several() {
		return ""
	}
	var out []string
	for i := 0; i < len(where); {
		host, many := where[i], 0
		for ; i < len(where) && where[i] == host; i++ {
			many++
		}
		name := a.spec.Hosts[host]
		if host == a.self {
			name = "localhost"
		}
		out = append(out, fmt.Sprintf("%s:%d", name, many))
	}
	return strings.Join(out, ",")
}

// partOf is the part that a world is made for, and what its processes are called; 0: a process has
// spawned it.
func partOf(spec *control.Job, q *service.Message) (part int, name, tag string) {
	if q.Text != "" || q.Number == 0 || q.Number > uint64(len(spec.Parts)) ||
		q.Kind != service.Spawn {
		return 0, "", ""
	}
	return int(q.Number), spec.Parts[q.Number-1].Name, spec.Parts[q.Number-1].Tag
}

// ofPart is " of cluster x", or nothing.
func ofPart(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

// relayout gives the processes of a restarted part the table of the system with themselves in it.
// The others get it when those are there: before, it would be of no use.
func (a *agent) relayout(s *spawning) {
	part, _, _ := partOf(a.spec, s.question.Message)
	if part == 0 {
		return
	}
	crew := a.crewOf(part, s)
	text := a.next(func(l *layout.Layout) { a.enter(l, part, crew) })
	for k := range s.question.Programs {
		if text != "" {
			s.question.Programs[k].Env = replaced(s.question.Programs[k].Env, layout.Variable, text)
		}
	}
}

// crewOf are the processes of a part that is being started again.
func (a *agent) crewOf(part int, s *spawning) job.Crew {
	crew := job.Crew{World: s.world, Lead: s.members[0].Serial + 1, Cold: s.cold()}
	for _, m := range s.members {
		crew.Procs = append(crew.Procs, m.Proc)
	}
	if program := &a.spec.Programs[a.programOf(part)]; !a.spec.Parts[part-1].Serves {
		ranks := program.Procs - program.Standbys
		crew.Procs, crew.Standbys = crew.Procs[:ranks], crew.Procs[ranks:]
	}
	return crew
}

// enter enters the processes of a part into a table, whose parts are the clusters, and then the
// IOPs. Standbys that got their ranks before the part was restarted are not entered.
func (a *agent) enter(l *layout.Layout, part int, crew job.Crew) {
	k, iop := a.placeIn(l, part)
	if len(crew.Procs) == 0 || k < 0 && iop < 0 {
		return
	}
	if iop >= 0 {
		p := &l.IOPs[iop]
		if p.World != crew.World {
			p.World, p.Proc, p.Heals = crew.World, crew.Procs[0], a.healsAgain(part, p.Heals)
			p.Leaving = false
		}
		return
	}
	c := &l.Clusters[k]
	if crew.World != 0 && c.World != crew.World {
		c.World, c.Lead, c.Standbys = crew.World, crew.Lead, crew.Standbys
		c.Dead, c.Cold = nil, crew.Cold // the others were started with the ranks, and wait
		c.Heals = a.healsAgain(part, c.Heals)
		c.Leaving = false
	}
	c.Procs = crew.Procs
	c.Standbys = slices.DeleteFunc(slices.Clone(c.Standbys),
		func(p int) bool { return slices.Contains(c.Procs, p) })
}

// relist publishes the processes of a part to the system.
func (a *agent) relist(part int) {
	crew := a.machine.(*job.Machine).Crew(part)
	a.change(func(l *layout.Layout) { a.enter(l, part, crew) })
	for rank, p := range crew.Procs {
		if p < len(a.ranks) {
			a.ranks[p].in = rank
		}
	}
	a.spread()
}

// programOf is the program of a part, by its number.
func (a *agent) programOf(part int) int {
	return slices.IndexFunc(a.spec.Programs, func(p control.Program) bool { return p.Part == part })
}

// keptFor are the processes that the table of the system names as those of other parts.
func (a *agent) keptFor(part int) map[int]bool {
	text := ""
	if len(a.spec.Programs) > 0 {
		text = a.layoutText()
	}
	l, err := layout.Decode(text)
	if text == "" || err != nil {
		return nil
	}
	kept := map[int]bool{}
	cluster, iop := a.placeIn(l, part)
	for i, c := range l.Clusters {
		for _, p := range slices.Concat(c.Procs, c.Standbys) {
			kept[p] = i != cluster
		}
	}
	for i, p := range l.IOPs {
		kept[p.Proc] = i != iop
	}
	return kept
}

// layoutText is the table of the system as it is now; empty: there is none.
func (a *agent) layoutText() string { return variable(a.spec.Programs[0].Env, layout.Variable) }

// change makes the next version of the table, for processes that are started from now on; empty:
// there is none. spread publishes it to running ones.
func (a *agent) change(how func(*layout.Layout)) string {
	text := a.next(how)
	if text != "" {
		a.takeLayout(text)
	}
	return text
}

// next is what the table would be; empty: there is none.
func (a *agent) next(how func(*layout.Layout)) string {
	text := a.layoutText()
	if text == "" {
		return ""
	}
	l, err := layout.Decode(text)
	if err == nil {
		l.Version++
		how(l)
		text, err = l.Encode()
	}
	if err != nil {
		a.say(fmt.Sprintf("the table of the system: %v", err))
		return ""
	}
	return text
}

func (a *agent) takeLayout(text string) {
	for k := range a.spec.Programs {
		a.spec.Programs[k].Env = replaced(a.spec.Programs[k].Env, layout.Variable, text)
	}
}

// spread notifies all processes of another version of the table.
func (a *agent) spread() {
	text := a.layoutText()
	if text == "" {
		return
	}
	for _, h := range a.others {
		if !h.gone {
			h.box.put(&control.Message{Layout: text})
		}
	}
	a.announceLayout(text)
}

// missing publishes to the processes of a system which parts and ranks do not return: no process
// waits for these.
func (a *agent) missing() {
	m, decides := a.machine.(*job.Machine)
	if !decides || a.succession.gathers || m.Over() == a.over || a.layoutText() == "" {
		return
	}
	a.over = m.Over()
	parts := m.Parts()
	l, err := layout.Decode(a.layoutText())
	if err != nil || !a.stopHealing(l, parts) {
		return
	}
	a.change(func(l *layout.Layout) { a.stopHealing(l, parts) })
	a.spread()
}

// stopHealing notes in a layout which parts do not come again, and which ranks; false: that is
// known.
func (a *agent) stopHealing(l *layout.Layout, parts []job.PartState) (changed bool) {
	for i, p := range parts {
		if k, _ := a.placeIn(l, i+1); k >= 0 && !slices.Equal(l.Clusters[k].Dead, p.Lost) {
			l.Clusters[k].Dead, changed = p.Lost, true
		}
		if !p.Over {
			continue
		}
		heals := a.healsIn(l, i+1)
		if heals == nil {
			continue
		}
		leaving := a.leavingIn(l, i+1)
		changed = changed || *leaving
		*leaving = false
		changed = changed || *heals
		*heals = false
	}
	return changed
}

// announceLayout makes the processes of this host ask for the table.
func (a *agent) announceLayout(text string) {
	if l, err := layout.Decode(text); err == nil {
		a.takeLayout(text)
		a.announced = text // the next one may name processes that are not announced yet
		a.tree.dirty = true
		a.segment.SetLayout(l.Version)
		a.segment.Announce()
	}
}

// tookOver: standbys of a cluster have ranks now.
func (a *agent) tookOver(q *question) *service.Message {
	i := int(q.Number)
	if i >= len(a.ranks) || a.ranks[i].part == 0 {
		return refuse(mpierr.Arg, "process %d belongs to no cluster", i)
	}
	part := a.ranks[i].part
	procs := make([]int, len(q.Slots))
	for k, p := range q.Slots {
		if procs[k] = int(p); int(p) >= len(a.ranks) || a.ranks[p].part != part {
			return refuse(mpierr.Arg, "process %d is not one of %s", p, a.spec.Parts[part-1].Name)
		}
	}
	a.step(job.TookOver{Part: part, Procs: procs})
	if a.succession.left {
		return refuse(mpierr.Other, "host %s is out of the job, which may go on at others", a.host)
	}
	return &service.Message{FD: -1}
}

// aboutSystem describes the job as a system; nil: it is none.
func (a *agent) aboutSystem() *service.System {
	m, decides := a.machine.(*job.Machine)
	if !decides || len(a.spec.Parts) == 0 {
		return nil
	}
	s := &service.System{Refused: a.refusals(),
		Layout: json.RawMessage(variable(a.spec.Programs[0].Env, layout.Variable))}
	if a.meeting != nil && a.meeting.listener != nil {
		s.Meets = a.spec.Join.Address
	}
	view := &a.tree.past.View
	host, pid := a.tree.systemMaster()
	if s.Master = a.masterName(host); s.Master != "" {
		s.MasterPid = pid
	}
	s.Term, s.Version = view.Term, view.Version
	states := m.Parts()
	for i, k := range a.inOrder() {
		p, number := states[k], k+1
		part := service.Part{Name: p.Name, State: p.State, Alive: p.Alive, Restarts: p.Restarts,
			Cold: p.Cold, Left: p.Left}
		for k := range a.spec.Programs {
			if a.spec.Programs[k].Part == number {
				part.Program = strings.Join(a.spec.Programs[k].Argv, " ")
				break
			}
		}
		if i < len(view.Clusters) {
			master := view.Clusters[i].Master
			if pid := a.tree.pids[master]; pid != 0 && a.masterName(master) != "" {
				part.Master, part.MasterPid = a.masterName(master), pid
			}
		}
		s.Parts = append(s.Parts, part)
	}
	return s
}

func variable(env []string, name string) string {
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

func replaced(env []string, name, value string) []string {
	var out []string
	for _, kv := range env {
		if !strings.HasPrefix(kv, name+"=") {
			out = append(out, kv)
		}
	}
	return append(out, name+"="+value)
}
