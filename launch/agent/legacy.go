package agent

import (
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"libspx/cluster/layout"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/service"
	"libspx/shm"
)

// State of the deciding agent beside the machine of the job, and how its successor gets it
// (succession.go):
//
//   - Numbers of processes, incarnations and worlds: all hosts see them assigned, in the first step
//     in which processes are made (newcomers.go), before any of these is there. Each reports the
//     highest that it knows (control.Stand). The next ones are above all reports of the remaining
//     hosts; a number that none of them has seen is not in use.
//   - The processes of a system's parts and their hosts, the parts that are being made, and
//     decisions that may not have been performed: these are in the machine (job.Crew, Open). So the
//     table of the system follows, whose version is above all that any host has seen.
//   - Which processes have left MPI_Init: each host reports it of its own. Those that wait ask
//     again.
//   - The tree of masters: built anew, with a number above all others.
//
// Until all hosts have reported their state, or are given up, nothing is made, and no table is
// published.

// gathered: all hosts may have said how they stand.
type gathered struct{}

// comesAgain: an action is said again by Open, or follows from what is done then.
func comesAgain(act job.Action) bool {
	switch act.(type) {
	case job.RestartPart, job.StartCold, job.Ask, job.Relist:
		return true
	}
	return false
}

// noteNumbers notes which numbers are given to processes that are about to be made.
func (a *agent) noteNumbers(w *control.World) {
	switch {
	case w.Step != control.Prepare:
		return
	case w.Externals != nil:
		a.abroad.groups = max(a.abroad.groups, w.Number&^ofExternals)
	default:
		a.worlds = max(a.worlds, w.Number)
	}
	for _, m := range w.Members {
		a.seesNumber(m.Proc, m.Serial, m.Life)
	}
	for _, g := range w.Externals {
		a.seesNumber(g.Proc, g.Serial, g.Life)
	}
}

func (a *agent) seesNumber(proc int, serial, life uint32) {
	if proc >= 0 && proc < a.segment.MaxProcs() {
		a.serial, a.lives[proc] = max(a.serial, serial+1), max(a.lives[proc], life)
	}
}

// addNumbers sets in a Stand which numbers this host has seen.
func (a *agent) addNumbers(s *control.Stand) {
	s.Serial, s.Worlds, s.Groups, s.Lives, s.Epoch = a.serial, a.worlds, a.abroad.groups,
		maps.Clone(a.lives), a.tree.epoch
	if k := a.tree.master; k != nil {
		s.Master = k.cmd.Process.Pid
	}
	g := &a.asking.granted
	s.Ports, s.Names, s.Servers = slices.Collect(maps.Keys(g.ports)), maps.Clone(g.names),
		maps.Clone(g.servers)
	if l, err := layout.Decode(a.layoutText()); err == nil {
		s.Layout = l.Version
	}
}

// keepGranted takes over ports and published names of processes that are left.
func (a *agent) keepGranted(ports []string, names, servers map[string]string) {
	for _, p := range ports {
		a.keepPort(p)
	}
	for name, port := range names {
		if _, taken := a.ports.names[name]; !taken {
			a.ports.names[name] = port
			a.naming.keep(name, servers[name])
		}
	}
}

// beginsNumbers has what this agent gives numbers itself begin above all that the ones before have
// given.
func (a *agent) beginsNumbers() {
	era := a.succession.era
	a.ports.opened, a.ports.met, a.steering.last = uint32(era)<<portsOfEra, era<<32, era<<32
	g := &a.asking.granted
	a.keepGranted(slices.Collect(maps.Keys(g.ports)), g.names, g.servers)
}

// portsOfEra: one agent opens fewer than 2 to the power of this many ports.
const portsOfEra = 20

// mostBehind is more versions of the table than one host knows behind another one.
const mostBehind = 1 << 16

// heedNumbers takes which numbers another host has seen.
func (a *agent) heedNumbers(h *remoteHost, s *control.Stand) {
	if s.Serial <= mostSerials && s.Worlds < ofExternals && s.Groups < ofExternals {
		a.serial, a.worlds, a.abroad.groups = max(a.serial, s.Serial), max(a.worlds, s.Worlds),
			max(a.abroad.groups, s.Groups)
	}
	for proc, life := range s.Lives {
		a.seesNumber(proc, 0, life)
	}
	a.keepGranted(s.Ports, s.Names, s.Servers)
	if len(a.spec.Parts) == 0 {
		return
	}
	if s.Layout < a.layoutNow().Version+mostBehind {
		a.succession.layout = max(a.succession.layout, s.Layout)
	}
	if s.Epoch < mostEpochs {
		a.tree.epoch = max(a.tree.epoch, s.Epoch)
	}
	a.tree.mastered(h.number, s.Master)
}

// mostEpochs is more trees than a job has.
const mostEpochs = 1 << 31

// dropBatch forgets a world that was being made when the deciding agent was lost. Its processes
// that are there already are ended by the successor: that knows of the world, or none of its
// processes was to be started yet.
func (a *agent) dropBatch() {
	b := a.batch
	if b == nil {
		return
	}
	a.newcomers(&control.World{Number: b.world, Step: control.Drop})
	for _, m := range b.members {
		if i := m.Proc; i < len(a.ranks) && a.ranks[i].host == a.self && !a.ranks[i].alive &&
			a.ranks[i].listener != 0 && a.segment.Member(i).World == b.world {
			unix.Close(a.ranks[i].listener - 1)
			a.ranks[i].listener = 0
		}
	}
	a.succession.dropped = b.members
}

// endHalfMade reports processes as dead that are unknown to the machine and run nowhere: they were
// about to be made.
func (a *agent) endHalfMade(m *job.Machine) {
	for _, x := range a.succession.dropped {
		if x.Proc >= len(a.ranks) || !a.ranks[x.Proc].alive {
			a.disown(x.Proc)
		}
	}
	procs := m.Procs()
	for i := range a.ranks {
		r := &a.ranks[i]
		known := i < len(procs) && procs[i].Alive
		if !known && !r.alive && !r.external && a.segment.AgentState(i) == shm.AgentStarted &&
			!(a.isSpare(i) && (i >= len(procs) || procs[i].Pid == 0)) {
			a.disown(i)
		}
	}
}

// abandonFor ends a spawned world whose parents will not meet it: it was reported to them as
// failed.
func (a *agent) abandonFor(world uint32) {
	m := &service.Message{Kind: service.SpawnResult, World: world, FD: -1}
	if a.up == nil {
		a.serve(&question{m, noClient{}})
		return
	}
	a.asking.count++
	a.up.box.put(&control.Message{Question: &control.Question{Number: a.asking.count,
		Text: packed(m)}})
}

// noClient is the origin of a question without a waiting process.
type noClient struct{}

// Send does nothing.
func (noClient) Send(*service.Message) error { return nil }

// Gone reports that it does not wait.
func (noClient) Gone() bool { return true }

// Close does nothing.
func (noClient) Close() {}

// isSpare: process i is a place of a first world for one that is started in the place of a rank.
func (a *agent) isSpare(i int) bool {
	if i < len(a.ranks) && a.ranks[i].spare {
		return true
	}
	if i >= a.firstWorld() || i >= len(a.ranks) {
		return false
	}
	r := &a.ranks[i]
	return r.program < len(a.spec.Programs) && r.world == a.spec.Programs[r.program].World &&
		a.isCold(i)
}

// asStarted is the word that a process of this agent's list was made.
func (a *agent) asStarted(i, pid int, host string) job.Started {
	return job.Started{Proc: i, Pid: pid, Host: host, Part: a.ranks[i].part, Rank: a.ranks[i].in}
}

// waitsForStands keeps a question for when all hosts have said how they stand; false: it can be
// answered.
func (a *agent) waitsForStands(q *question) bool {
	s := &a.succession
	if !s.gathers {
		return false
	}
	switch q.Kind {
	case service.TookOver, service.Arrive, service.Spawn, service.SpawnResult, service.OpenPort,
		service.ClosePort, service.Accept, service.Connect, service.Publish, service.Unpublish,
		service.Lookup,
		service.AddHosts, service.RemoveHosts:
		s.held = append(s.held, q)
		return true
	}
	return false
}

// forget drops the questions over a connection.
func (s *succession) forget(conn client) {
	s.held = slices.DeleteFunc(s.held, func(q *question) bool { return q.conn == conn })
}

// stood: one more host has said how it stands, or is gone.
func (a *agent) stood() {
	if a.succession.gathers {
		a.inbox.put(gathered{}) // this may be in the middle of a step
	}
}

// goesOn takes up what was under way when the one before was lost, when all hosts have said how
// they stand.
func (a *agent) goesOn() {
	s := &a.succession
	if !s.gathers || a.done || a.waitsFor(func(h *remoteHost) bool { return h.led && !h.ready }) {
		return
	}
	s.gathers = false
	a.inheritPlaces()
	m, ok := a.machine.(*job.Machine)
	if ok {
		a.endHalfMade(m)
	}
	if ok && len(a.spec.Parts) > 0 && !m.Ending() {
		a.inheritStart(m)
		a.inheritTable(m)
		a.inheritTree(m)
		a.finishOpen(m)
		a.seatRest()
	}
	a.holdAllNames()
	held := s.held
	s.held = nil
	for _, q := range held {
		a.serve(q)
	}
}

// inheritTable publishes the table of the system as it follows from the machine.
func (a *agent) inheritTable(m *job.Machine) {
	a.over = m.Over()
	a.change(func(l *layout.Layout) {
		l.Version = max(l.Version, a.succession.layout+1)
		for part := range a.spec.Parts {
			a.enter(l, part+1, m.Crew(part+1))
		}
		a.stopHealing(l, m.Parts())
	})
	for _, c := range a.layoutNow().Clusters {
		for rank, p := range c.Procs {
			if p < len(a.ranks) {
				a.ranks[p].in = rank
			}
		}
	}
	a.spread()
}

// inheritStart resets which processes wait for which parts in MPI_Init: waiting ones ask again.
func (a *agent) inheritStart(m *job.Machine) {
	b := &a.beginning
	if b.open(a.spec.Start); b.machine == nil {
		return
	}
	dead := map[int]bool{}
	for _, e := range a.succession.ends {
		dead[e.Proc] = e.Dead
	}
	listed := map[int]bool{}
	l := a.layoutNow()
	for _, c := range l.Clusters {
		for _, p := range c.Procs {
			listed[p] = true
		}
	}
	for _, p := range l.IOPs {
		listed[p.Proc] = true
	}
	for i, p := range m.Procs()[:min(len(m.Procs()), len(a.ranks))] {
		switch r := &a.ranks[i]; {
		case r.part == 0 || !listed[i]: // it is none of those that work now
		case r.passed:
			b.give(b.machine.Passed(r.part-1, r.in, i, int64(a.now())))
		case !p.Alive && p.Pid != 0:
			failed, told := dead[i]
			b.give(b.machine.Ended(r.part-1, r.in, i, failed || !told, int64(a.now())))
		}
	}
}

// inheritTree builds the tree of masters anew. A part that is being started again is at its next
// start, whether the one before has begun with it or not.
func (a *agent) inheritTree(m *job.Machine) {
	t := &a.tree
	t.lives, t.asked = map[int]uint32{}, map[int]uint32{}
	if t.failed == nil {
		t.failed = map[int]uint32{}
	}
	for i := range a.spec.Parts {
		t.lives[i+1] = 1
	}
	for i := range a.ranks {
		if r := &a.ranks[i]; r.part > 0 {
			t.lives[r.part] = max(t.lives[r.part], r.life)
		}
	}
	for k, c := range t.past.View.Clusters {
		t.lives[k+1] = max(t.lives[k+1], c.Life)
	}
	for _, part := range slices.Concat(m.Restarting(true), m.Restarting(false)) {
		t.lives[part]++
	}
	if k := t.master; k != nil {
		t.mastered(a.self, k.cmd.Process.Pid)
	}
	a.buildTree()
}

// finishOpen does what was decided and may not have been done.
func (a *agent) finishOpen(m *job.Machine) {
	open := m.Open()
	for _, part := range m.Restarting(false) {
		a.step(job.NotRestarted{Part: part, Text: fmt.Sprintf(
			"host %s was lost, whose agent was about to do it", a.hostName(a.succession.before)),
			Again: true})
	}
	for _, act := range open {
		if m.Ending() || a.succession.left {
			return
		}
		switch act.(type) {
		case job.StartCold, job.SendTo:
			a.toAll(act)
		}
		a.carryOut(act)
	}
}

// tellStates reports to the deciding agent which processes of this host hang, or have before: the
// lost one may not have received it.
func (a *agent) tellStates() {
	w := &a.watching
	if w.machine == nil {
		return
	}
	w.machine.Forget(a.now())
	for _, c := range w.machine.Told() {
		a.tellState(c)
	}
}

// tellTooFew prints which loss of a host a job does not survive, though it should, because it has
// too few.
func (a *agent) tellTooFew() {
	if n := len(a.spec.Hosts); a.spec.Verbose && n == sequenceLeast-1 && !a.spec.Joined &&
		a.spec.Join == nil && (a.spec.WithFT || len(a.spec.Parts) > 0) {
		a.say(fmt.Sprintf(
			"this job has %d hosts, and ends when host %s is lost, from which it was started: "+
				"another one could not know whether it is gone or only cut off. With a third "+
				"host, which need not run processes, it would go on", n, a.spec.Hosts[0]))
	}
}
