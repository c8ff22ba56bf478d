package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"libspx/core/mpierr"
	"libspx/launch/control"
	"libspx/launch/hosts"
	"libspx/launch/job"
	"libspx/launch/service"
	"libspx/shm"
)

// Processes that are added to the running job (MPI-5.0, 11.8): a new world each time. Its members
// find their parents by SPX_PARENT, and meet them in MPI_Init. A death before that is reported to
// the parents alone.
//
// This file is the deciding agent's side: it assigns the numbers, places each process, and leads
// all hosts through the steps (control.Step) in which they are made (newcomers.go). One world is
// made at a time.

// spawning is a world that is being made.
type spawning struct {
	question  *question
	world     uint32
	members   []control.Member
	codes     []uint32 // MPI error classes by process asked for
	step      control.Step
	open      map[*remoteHost]bool // hosts that are not done with the step
	failure   error
	held      map[int]bool // numbers that are in use on other hosts
	addresses []control.Address

	arrivals  *arrivals // in place of a world: processes of another job
	externals []control.External
}

// spawn makes the processes that are asked for, all or none, and answers then.
func (a *agent) spawn(q *question) {
	a.spawnings = append(a.spawnings, &spawning{question: q, held: map[int]bool{}})
	if len(a.spawnings) == 1 {
		a.beginSpawning()
	}
}

// beginSpawning begins with the first of those that wait, until one has to be waited for.
func (a *agent) beginSpawning() {
	for len(a.spawnings) > 0 {
		s := a.spawnings[0]
		err := a.plan(s)
		if err == nil {
			s.world = a.numberOf(s)
			a.relayout(s)
			a.takeStep(s, control.Prepare)
			return
		}
		a.spawnings = a.spawnings[1:]
		a.tellMade(s, refuse(mpierr.Spawn, "%v", err))
	}
	a.joinNow()
}

// tellMade answers the spawning process, or reports the outcome for external processes.
func (a *agent) tellMade(s *spawning, answer *service.Message) {
	if s.arrivals != nil {
		a.externalsEntered(s, answer)
		return
	}
	s.question.reply(answer)
}

// numberOf is that of a new world, or of a group of external processes, which is none.
func (a *agent) numberOf(s *spawning) uint32 {
	if s.arrivals != nil {
		a.abroad.groups++
		return ofExternals | a.abroad.groups
	}
	a.worlds++
	return a.worlds
}

var errEnding = errors.New("the job is being ended")

// plan sets how many processes of each program are made, their hosts, and their numbers.
func (a *agent) plan(s *spawning) error {
	if a.machine.Ending() {
		return errEnding
	}
	if s.arrivals != nil {
		return a.planExternals(s)
	}
	total, load := 0, a.load()
	s.members, s.codes = nil, nil
	for k := range s.question.Programs {
		p := &s.question.Programs[k]
		n := p.Procs
		if len(p.Soft) > 0 {
			n = p.Soft[len(p.Soft)-1]
		}
		if n > p.Procs {
			return fmt.Errorf("soft: %d processes of at most %d", n, p.Procs)
		}
		if total += int(n); total > a.segment.MaxProcs() || p.Procs > shm.MaxProcsLimit {
			return a.full(int(p.Procs))
		}
		s.codes = append(s.codes, make([]uint32, n)...)
		s.codes = append(s.codes, slices.Repeat([]uint32{uint32(mpierr.Spawn)}, int(p.Procs-n))...)
		next, err := a.placer(p.Host, s.question.conn, load)
		if err != nil {
			return err
		}
		for range n {
			s.members = append(s.members, control.Member{Program: k, Host: next()})
		}
	}
	part, _, _ := partOf(a.spec, s.question.Message)
	slots := a.freeSlots(total, part, s.held)
	if len(slots) < total {
		return a.full(total)
	}
	if err := a.numbersLeft(total); err != nil {
		return err
	}
	for rank, slot := range slots {
		m := &s.members[rank]
		m.Proc, m.Serial, m.Life = slot, a.serial, max(a.segment.Incarnation(slot), a.lives[slot])+1
		a.lives[slot] = m.Life
		a.serial++
	}
	return nil
}

// mostSerials is how many processes a job can have had: their numbers are part of the numbers of
// communicators (core/comm, counterBits).
const mostSerials = 1<<26 - 1

// numbersLeft reports an error if n more processes cannot get numbers that none has had.
func (a *agent) numbersLeft(n int) error {
	if uint64(a.serial)+uint64(n) <= mostSerials {
		return nil
	}
	return fmt.Errorf(
		"the job has had %d processes, those of other jobs that it was connected with among "+
			"them, and can have %d: start it again", a.serial, mostSerials)
}

// load is how many processes every host has. A rank of another host counts from the beginning: it
// may be asking already when word of its start arrives here.
func (a *agent) load() []int {
	load := make([]int, max(len(a.spec.Hosts), 1))
	first := a.firstWorld()
	for i := range a.ranks {
		r := &a.ranks[i]
		awaited := i < first && r.host != a.self && !r.begun && (r.called || !a.isSpare(i))
		if (r.alive || awaited) && !r.external {
			load[r.host]++
		}
	}
	return load
}

// placer returns, process by process, the host of the next one. A list of hosts (info key
// "host") gets as many in a row as it has slots, and again from its first host on. Without a list
// they go to the first host that has a free slot or, when none has, to that which has the fewest
// for its slots.
func (a *agent) placer(list string, who client, load []int) (next func() int, err error) {
	if list == "" && !a.several() {
		return func() int { return 0 }, nil
	}
	if list == "" {
		return func() int {
			h := a.leastLoaded(load)
			load[h]++
			return h
		}, nil
	}
	entries, err := hosts.List(strings.Split(list, ","), nil)
	if err != nil {
		return nil, fmt.Errorf("host: %v", err)
	}
	var turn []int
	for _, e := range entries {
		h, err := a.hostCalled(e.Name, who)
		if err != nil {
			return nil, err
		}
		turn = append(turn, slices.Repeat([]int{h}, max(e.Slots, 1))...)
	}
	n := -1
	return func() int {
		n++
		h := turn[n%len(turn)]
		load[h]++
		return h
	}, nil
}

// leastLoaded is the host for a process that can run anywhere.
func (a *agent) leastLoaded(load []int) int {
	best := -1
	for h, slots := range a.spec.Slots {
		switch {
		case slots == 0 || a.isLost(h):
		case load[h] < slots:
			return h
		case best < 0 || load[h]*a.spec.Slots[best] < load[best]*slots:
			best = h
		}
	}
	return max(best, 0)
}

func (a *agent) isLost(host int) bool {
	return slices.ContainsFunc(a.others, func(h *remoteHost) bool {
		return h.number == host &&
			h.gone
	})
}

// hostCalled is the number of the host that a process means by a name.
func (a *agent) hostCalled(name string, who client) (int, error) {
	if self := hosts.Self(); !a.several() {
		if !self.Local(name) {
			return 0, fmt.Errorf(
				"host %s is not this host (%s), on which the whole job runs; spxrun -host or "+
					"-hostfile names others", name, self.Host)
		}
		return 0, nil
	}
	found := -1
	for _, is := range []func(n int) bool{
		// as it was given: another one may have the same name in another domain
		func(n int) bool { return n != a.self && a.spec.Hosts[n] == name },
		func(n int) bool { return a.isCalled(n, name) },
	} {
		for n := range a.spec.Hosts {
			// one that was lost may have been added again
			if (found < 0 || a.isLost(found)) && is(n) {
				found = n
			}
		}
	}
	if (hosts.Names{}).Local(name) { // localhost: that of the process which asks
		found = a.self
		if r, ok := who.(*remote); ok {
			found = r.from.number
		}
	}
	switch {
	case found < 0:
		return 0, fmt.Errorf("host %s is none of this job's hosts (%s)", name,
			strings.Join(a.spec.Hosts, ", "))
	case a.isLost(found):
		return 0, fmt.Errorf("host %s is lost, or was removed", name)
	}
	return found, nil
}

// isCalled: the name is that of host n.
func (a *agent) isCalled(n int, name string) bool {
	if n == a.self {
		return hosts.Self().Local(name)
	}
	return (hosts.Names{Host: a.spec.Hosts[n]}).Local(name)
}

// takeStep has all hosts take a step.
func (a *agent) takeStep(s *spawning, step control.Step) {
	s.step, s.open, s.failure = step, map[*remoteHost]bool{}, nil
	w := &control.World{Number: s.world, Step: step}
	switch step {
	case control.Prepare:
		s.addresses = nil
		w.Members, w.Externals = s.members, s.externals
		if part, _, _ := partOf(a.spec, s.question.Message); part > 0 {
			w.Life, w.Cold = a.tree.lives[part], s.cold()
		}
	case control.Enter:
		w.Addresses = s.addresses
		a.noteListens(s.addresses)
	}
	for _, h := range a.others {
		if !h.gone {
			s.open[h] = true
			h.box.put(&control.Message{World: s.forHost(a, w, h.number)})
		}
	}
	if own := a.newcomers(s.forHost(a, w, a.self)); own != nil {
		s.take(a.self, own)
	}
	a.stepTaken(s)
}

// cold is how many of the members, the last, are started when a rank has died.
func (s *spawning) cold() int {
	if n, part := s.question.conn.(*nobody); part {
		return n.cold
	}
	return 0
}

// forHost is a step as it is sent to a host: the environment of a program goes where its processes
// start, and nowhere else.
func (s *spawning) forHost(a *agent, w *control.World, host int) *control.World {
	switch {
	case s.arrivals != nil:
		return w
	case w.Step == control.Prepare:
	case w.Step == control.Enter:
		out := *w
		out.Addresses = a.seenFrom(host, w.Addresses, s.hostOf)
		return &out
	default:
		return w
	}
	q := *s.question.Message
	q.Programs = slices.Clone(q.Programs)
	for k := range q.Programs {
		if !slices.ContainsFunc(s.members, func(m control.Member) bool {
			return m.Program == k &&
				m.Host == host
		}) {
			q.Programs[k].Env = ownSettings(q.Programs[k].Env)
		}
	}
	out := *w
	out.Question = packed(&q)
	return &out
}

func (s *spawning) hostOf(proc int) int {
	return s.members[slices.IndexFunc(s.members,
		func(m control.Member) bool { return m.Proc == proc })].Host
}

// take notes what a host has made of a step.
func (s *spawning) take(host int, m *control.Made) {
	if m.Text != "" && s.failure == nil {
		s.failure = errors.New(m.Text)
	}
	for _, slot := range m.Held {
		s.held[slot] = true
	}
	for _, at := range m.Addresses {
		if slices.ContainsFunc(s.members, func(m control.Member) bool {
			return m.Proc == at.Proc &&
				m.Host == host
		}) {
			s.addresses = append(s.addresses, at)
		}
	}
}

// madeThere: another host is done with a step, or is gone.
func (a *agent) madeThere(h *remoteHost, m *control.Made) {
	if len(a.spawnings) == 0 {
		return
	}
	s := a.spawnings[0]
	if m == nil {
		m = &control.Made{Number: s.world, Step: s.step,
			Text: fmt.Sprintf("host %s is lost: %s", h.name, h.fate)}
	}
	if s.world != m.Number || s.step != m.Step || !s.open[h] {
		return
	}
	delete(s.open, h)
	s.take(h.number, m)
	a.stepTaken(s)
}

// stepTaken goes on when all are done with a step.
func (a *agent) stepTaken(s *spawning) {
	if len(s.open) > 0 {
		return
	}
	if s.failure == nil {
		s.failure = a.obstacle(s)
	}
	held := slices.ContainsFunc(s.members, func(m control.Member) bool { return s.held[m.Proc] }) ||
		slices.ContainsFunc(s.externals, func(g control.External) bool { return s.held[g.Proc] })
	switch {
	case s.failure != nil:
		a.undo(s)
		a.spawned(s, refuse(mpierr.Spawn, "%v", s.failure))
	case s.step == control.Prepare && held: // again, with other numbers
		a.undo(s)
		a.beginSpawning()
	case s.step == control.Prepare:
		a.takeStep(s, control.Enter)
	case s.arrivals != nil:
		a.spawned(s, &service.Message{FD: -1})
	case s.step == control.Enter:
		a.takeStep(s, control.Start)
	default:
		answer := &service.Message{World: s.world, Codes: s.codes, FD: -1}
		for _, m := range s.members {
			answer.Slots = append(answer.Slots, uint32(m.Proc))
		}
		if part, _, _ := partOf(a.spec, s.question.Message); part > 0 {
			a.step(job.Manned{Part: part, Crew: a.crewOf(part, s)})
			a.followTo(part, s.members)
		}
		a.spawned(s, answer)
	}
}

// obstacle is why a world cannot come about although nothing has gone wrong in making it.
func (a *agent) obstacle(s *spawning) error {
	if a.machine.Ending() {
		return errEnding
	}
	for _, m := range s.members {
		if a.isLost(m.Host) {
			return fmt.Errorf("host %s is lost", a.spec.Hosts[m.Host])
		}
	}
	return nil
}

// undo takes back what was done: nothing of the world stays.
func (a *agent) undo(s *spawning) {
	drop := &control.World{Number: s.world, Step: control.Drop}
	for _, h := range a.others {
		if !h.gone {
			h.box.put(&control.Message{World: drop})
		}
	}
	a.newcomers(drop)
	if s.step == control.Prepare {
		return
	}
	if s.arrivals != nil {
		for _, g := range s.externals {
			a.externalGone(&control.Parted{Who: g.ID, Proc: g.Proc, Life: g.Life})
		}
		return
	}
	a.abandonAll(s.world)
	for _, m := range s.members {
		if i := m.Proc; i < len(a.ranks) && !a.ranks[i].alive &&
			a.segment.Incarnation(i) == m.Life && a.segment.AgentState(i) != shm.AgentDead {
			act := job.Publish{Proc: i}
			a.toAll(act)
			a.carryOut(act)
		}
	}
}

// spawned answers, and begins with the next world.
func (a *agent) spawned(s *spawning, answer *service.Message) {
	a.spawnings = a.spawnings[1:]
	a.tellMade(s, answer)
	// between two worlds, each of which is made by the same hosts from its first step to its last
	a.joinNow()
	a.beginSpawning()
}

// abandonAll ends the processes of a world, on all hosts, that its parents have not met.
func (a *agent) abandonAll(world uint32) {
	for _, h := range a.others {
		if !h.gone {
			h.box.put(&control.Message{Abandon: world})
		}
	}
	a.abandon(world)
}
