package agent

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"libspx/cluster/layout"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/system"
	"libspx/shm"
)

// A system that gets clusters which no file named when it was started (docs/systems.md, "A cluster
// that no file knew"). Package system says what is to be added. Here the agent that leads gives its
// processes numbers, as places that are kept for them: the same on all hosts, and of processes that
// count as dead until they are started, as those of any cluster that is awaited. Then all processes
// get the table with them, and the cluster is started as one that comes (lead.go).

// running is the system as this agent knows it.
func (a *agent) running() system.Running {
	j := a.spec.Join
	return system.Running{Name: j.System, Host: a.host, Whole: j.Whole, Declared: j.Declared,
		Parts: a.spec.Parts, Table: a.layoutNow()}
}

// mayCome are the parts of a cluster that has come, those that there are and those that it brings;
// why: it cannot be taken.
func (a *agent) mayCome(e *control.Arrival) (wants []want, why string) {
	m, j := a.machine.(*job.Machine), a.spec.Join
	if m.Ending() {
		return nil, errEnding.Error()
	}
	g, err := system.Merge(a.running(), e)
	if err != nil {
		return nil, err.Error()
	}
	states := m.Parts()
	for i, d := range j.Declared {
		if d.Cluster != e.Cluster {
			continue
		}
		if s := states[i]; s.Alive > 0 || s.State == "restarting" || a.comes(e.Cluster) {
			return nil, fmt.Sprintf("%s of the system %s runs already", d.Name, j.System)
		}
		wants = append(wants, want{d.Name, a.spec.Programs[a.programOf(i+1)].Procs})
	}
	if a.comes(e.Cluster) {
		return nil, fmt.Sprintf("cluster %s of the system %s runs already", e.Cluster, j.System)
	}
	if n := g.Procs(); n > 0 {
		if _, err := a.unused(n); err != nil {
			return nil, err.Error()
		}
	}
	for i := range g.Parts {
		if g.Declared[i].Cluster == e.Cluster {
			wants = append(wants, want{g.Declared[i].Name, g.Programs[i].Procs})
		}
	}
	return wants, ""
}

// unused are n numbers that no process has had yet, on any host.
func (a *agent) unused(n int) (out []int, err error) {
	planned := map[int]bool{}
	for _, s := range a.spawnings { // in the middle of its steps
		for _, m := range s.members {
			planned[m.Proc] = true
		}
		for _, g := range s.externals {
			planned[g.Proc] = true
		}
	}
	for i := 0; i < a.segment.MaxProcs() && len(out) < n; i++ {
		if a.segment.AgentState(i) == shm.AgentEmpty && a.segment.Incarnation(i) == 0 &&
			a.lives[i] == 0 && !planned[i] {
			out = append(out, i)
		}
	}
	if len(out) < n {
		return nil, fmt.Errorf(
			"it has %d processes that the system does not know, and there is room for %d: the "+
				"system was started with room for %d in all, those that ended among them "+
				"(spxrun --usize N, of the spxrun that leads it)", n, len(out),
			a.segment.MaxProcs())
	}
	return out, a.numbersLeft(n)
}

// growFor adds what the file of a host's cluster has and the system has not; false: it does not fit
// any more, and the host is sent away.
func (a *agent) growFor(h *remoteHost) bool {
	g, err := system.Merge(a.running(), h.attached.come)
	if err == nil && len(g.Parts) > 0 {
		err = a.growBy(g)
	}
	if err != nil {
		h.attached.status = job.StatusFailed
		h.box.put(&control.Message{Action: job.Say{Text: fmt.Sprintf("cluster %s: %v",
			h.attached.cluster, err)}})
		a.dismissHost(h)
		return false
	}
	h.attached.parts = nil
	for i, d := range a.spec.Join.Declared {
		if d.Cluster == h.attached.cluster {
			h.attached.parts = append(h.attached.parts, i+1)
		}
	}
	return true
}

// growBy adds parts to the system.
func (a *agent) growBy(g *system.Growth) error {
	n := g.Procs()
	procs, err := a.unused(n)
	if err != nil {
		return err
	}
	var seats []system.Seat
	text := a.next(func(l *layout.Layout) {
		seats = g.Enter(l, len(a.spec.Parts), procs, a.serial,
			a.worlds)
	})
	if text == "" {
		return errors.New("the table of the system has no room for it")
	}
	a.serial += uint32(n)
	a.worlds += uint32(len(g.Parts))
	grown := &control.Grown{Parts: g.Parts, Programs: g.Programs, Start: g.Start,
		Declared: g.Declared}
	for _, s := range seats {
		e := control.Entry{Proc: s.Proc, Host: a.self, World: s.World, Rank: uint32(s.Rank),
			Serial: s.Lead + uint32(s.Rank), Life: 1, State: shm.AgentDead,
			Status: uint32(unix.SIGKILL), Part: s.Part, Away: true}
		if err := a.reserve(&e, s.Part); err != nil {
			return err
		}
		grown.Present = append(grown.Present, e)
	}
	a.addParts(grown)
	a.spec.Join.Declared = slices.Concat(a.spec.Join.Declared, g.Declared)
	a.spec.Start = slices.Concat(a.spec.Start, g.Start)
	if m := a.beginning.machine; m != nil {
		m.Add(g.Start)
	}
	for _, h := range a.others {
		if !h.gone {
			h.box.put(&control.Message{Grown: grown})
		}
	}
	a.step(job.Grown{Parts: g.Parts})
	a.takeLayout(text)
	a.spread()
	if a.spec.Verbose {
		a.say(fmt.Sprintf("the system has %d clusters and I/O processes more, of %d processes: %s",
			len(g.Parts), n, partNames(g.Parts)))
	}
	return nil
}

func partNames(parts []job.Part) string {
	text := ""
	for i := range parts {
		if i > 0 {
			text += ", "
		}
		text += parts[i].Name
	}
	return text
}

// reserve keeps a place of the memory file for a process of a part: it counts as one that has died,
// and is to be started again.
func (a *agent) reserve(e *control.Entry, part int) error {
	if err := a.segment.AddProc(e.Proc, shm.Member{World: e.World, Rank: e.Rank, Serial: e.Serial,
		Host: uint32(e.Host), Life: e.Life}); err != nil {
		return err
	}
	a.segment.MarkDead(e.Proc, syscall.WaitStatus(e.Status))
	*a.rank(e.Proc) = rank{pidfd: -1, host: e.Host, world: e.World, in: int(e.Rank), part: part,
		away: true}
	return nil
}

// addParts takes the parts and programs over into what is known of the job.
func (a *agent) addParts(g *control.Grown) {
	a.spec.Parts = slices.Concat(a.spec.Parts, g.Parts)
	a.spec.Programs = slices.Concat(a.spec.Programs, g.Programs)
}

// hasGrown takes note of more parts, on a host that decides nothing.
func (a *agent) hasGrown(g *control.Grown) {
	if len(g.Parts) != len(g.Programs) {
		return
	}
	a.addParts(g)
	if s := a.spec.System; s != nil { // in case that this agent comes to lead
		s.Declared, a.spec.Start = slices.Concat(s.Declared, g.Declared),
			slices.Concat(a.spec.Start, g.Start)
	}
	a.enterPresent(g.Present)
	a.segment.Announce()
}
