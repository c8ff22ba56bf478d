package follow_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"libspx/ft/replica"
	"libspx/launch/follow"
	"libspx/launch/job"
	"libspx/sim"
)

// leadership is a schedule: agents of a job's hosts that keep a sequence of its events, of which
// one decides (package launch/follow), and what befalls them: sim.KillHost, sim.PauseHost and
// sim.Cut. Times are in hundredths of the period of their clocks.
type leadership struct {
	Agents int
	Events int // that the one that decides is told of
	Seed   uint64
	Faults []sim.Fault
	Defect defect
}

// defect is a bug that is put in on purpose.
type defect struct {
	Hasty bool // who decides acts at once
	Deaf  bool // it acts on what is applied, whoever decides by then
	Rash  bool // who comes to decide tells a table before all others have said which one they have
}

// outcome is what a run came to.
type outcome struct {
	Acts   int
	Tables int // that were told
	Eras   int // in which another agent has decided
	// agents that have ended their hosts' processes, beside those that were killed
	Left int
	Gaps []sim.Time // from the end of the agent that decides to the next one
}

// tickEvery is a period.
const tickEvery = sim.Time(100)

// Limits of these runs, in ticks.
const (
	officeLimit  = 80
	silenceLimit = 16 // without a word of another agent
)

// officer is an agent of a run.
type officer struct {
	id     int
	m      *replica.Machine
	mirror *follow.Mirror
	office *follow.Office

	machine *job.Machine // nil: it decides nothing
	acts    []int        // events on which it is about to act
	counts  []uint64     // the number of each: of mirror.Events when it is applied
	noted   uint64

	alive   bool
	paused  sim.Time
	inbox   []func()
	decider int
	era     uint64
	heard   map[int]int // ticks since a word of each
	wanted  []int
	table   int          // version of the latest that it knows: as that of a system of clusters
	changes int          // of it that it has not told yet
	stands  map[int]bool // who has said what it knows, since this one decides
}

type leadershipRun struct {
	*sim.World
	s       leadership
	list    []*officer
	side    map[int]bool
	cuts    int
	nth     uint64
	applied map[int]bool // events that stand in the sequence, and count
	acted   map[int]bool
	eras    map[uint64]int
	goneAt  sim.Time
	failure error
	out     outcome
}

// randomLeadership is the schedule of a seed.
func randomLeadership(seed uint64) leadership {
	r := rand.New(rand.NewPCG(seed, 0x0ff1ce))
	s := leadership{Seed: seed, Agents: 3 + r.IntN(4), Events: 5 + r.IntN(30)}
	for range r.IntN(4) {
		f := sim.Fault{At: sim.Time(r.IntN(60)) * tickEvery, Who: r.IntN(s.Agents)}
		if r.IntN(2) == 0 {
			f.Who = 0
		}
		long := sim.Time(1+r.IntN(150)) * tickEvery
		switch r.IntN(3) {
		case 0:
			f.Kind = sim.KillHost
		case 1:
			f.Kind, f.For = sim.PauseHost, long
		default:
			f.Kind, f.Who, f.For = sim.Cut, 0, long
			f.Hosts = r.Perm(s.Agents)[:1+r.IntN(s.Agents-1)]
		}
		s.Faults = append(s.Faults, f)
	}
	return s
}

// run carries out a schedule. The error names the property that was violated.
func run(s leadership) (outcome, error) {
	r := &leadershipRun{World: sim.NewWorld(0, s.Seed), s: s, applied: map[int]bool{},
		acted: map[int]bool{}, eras: map[uint64]int{}}
	cfg := job.Config{Host: "a", Procs: s.Agents, OnDeath: job.Continue, Detach: true}
	var first []int
	for i := range s.Agents {
		first = append(first, i)
	}
	for i := range s.Agents {
		a := &officer{id: i, alive: true, heard: map[int]int{}, wanted: first,
			mirror: follow.NewMirror(cfg, 0)}
		a.m = replica.New(replica.Config{Self: i, First: first, Seed: mix(s.Seed, 1, uint64(i), 0),
			State: counted{a.mirror, r}})
		a.office = follow.NewOffice(a.mirror, i, officeLimit)
		r.list = append(r.list, a)
		r.After(sim.Time(mix(s.Seed, 2, uint64(i), 0)%uint64(tickEvery)), func() { r.tick(a) })
	}
	zero := r.list[0]
	zero.machine = job.New(cfg)
	r.After(5*tickEvery, func() {
		for i := range s.Agents {
			r.happens(zero, job.Started{Proc: i, Pid: 1})
		}
		r.happens(zero, job.AllStarted{})
	})
	for k := range s.Events {
		r.After(10*tickEvery+sim.Time(mix(s.Seed, 3, uint64(k), 0)%uint64(150*tickEvery)),
			func() { r.told(job.SIGKILL + 1 + k) })
	}
	tables := 2 * s.Events
	if s.Defect.Hasty || s.Defect.Deaf {
		tables = 0
	}
	for k := range tables {
		r.After(10*tickEvery+sim.Time(mix(s.Seed, 5, uint64(k), 0)%uint64(150*tickEvery)),
			r.changed)
	}
	end := 200 * tickEvery
	for _, f := range s.Faults {
		r.After(10*tickEvery+f.At, func() { r.befall(f) })
		end = max(end, 10*tickEvery+f.At+f.For)
	}
	for end += 3 * officeLimit * tickEvery; r.failure == nil && r.Now < end && r.Step(); {
	}
	if r.failure == nil && s.Defect == (defect{}) {
		r.settled()
	}
	r.out.Eras = len(r.eras)
	return r.out, r.failure
}

// counted is the mirror of an agent, of which the run notes what counts.
type counted struct {
	*follow.Mirror
	r *leadershipRun
}

// Apply takes the next entry.
func (c counted) Apply(e replica.Entry) {
	before := c.Events
	if c.Mirror.Apply(e); c.Events == before {
		return
	}
	if k, ok := eventOf(e.Data); ok {
		c.r.applied[k] = true
	}
}

// Each event is a signal of a number of its own, which is handed on to all processes.
func noteOf(k int, at sim.Time) []byte {
	return follow.Note(job.Signalled{Signal: k}, time.Duration(at))
}

func eventOf(text []byte) (k int, ok bool) {
	for n := range min(len(text), 10) {
		if e, err := job.DecodeEvent(text[n:]); err == nil {
			s, is := e.(job.Signalled)
			return s.Signal, is
		}
	}
	return 0, false
}

// told tells who decides, as an agent sees it that lives, that something has happened.
func (r *leadershipRun) told(k int) {
	for _, a := range r.list {
		if a.alive && !a.office.Left() && a.machine != nil {
			r.awake(a, func() { r.happens(a, job.Signalled{Signal: k}) })
		}
	}
}

// changed gives who decides, as an agent sees it that lives, a change of the table to tell.
func (r *leadershipRun) changed() {
	for _, a := range r.list {
		if a.alive && !a.office.Left() && a.machine != nil {
			r.awake(a, func() { a.changes++ })
		}
	}
}

// tellTable tells all the next version of the table, once: when all have said what they know, and a
// majority knows whom this one has given up. It reaches some of them, or all.
func (r *leadershipRun) tellTable(a *officer) {
	missing := func(id int) bool { return id != a.id && !a.stands[id] }
	if a.changes == 0 || !a.office.Settled() || a.era > 0 && !r.s.Defect.Rash &&
		slices.ContainsFunc(a.wanted, missing) {
		return
	}
	a.changes--
	a.table++
	r.out.Tables++
	era, version := a.era, a.table
	for _, o := range r.list {
		if o == a || a.out(o.id) {
			continue
		}
		r.send(a, o, func() {
			switch {
			case !a.alive: // it had not left that host
			case o.office.Left() || o.era != era || o.decider != a.id:
			case version <= o.table:
				r.violated("agent %d, which knows table %d, is told table %d by agent %d", o.id,
					o.table, version, a.id)
			default:
				o.table = version
			}
		})
	}
}

// happens lets who decides step its machine, and act when it may.
func (r *leadershipRun) happens(a *officer, e job.Event) {
	if a.machine == nil || a.office.Left() || !a.alive {
		return
	}
	a.office.Noted()
	a.noted++
	weighty := job.Weighty(a.machine.Step(e, time.Duration(r.Now)))
	if s, ok := e.(job.Signalled); ok && weighty {
		a.acts, a.counts = append(a.acts, s.Signal), append(a.counts, a.noted)
		if r.s.Defect.Hasty {
			r.act(a)
		}
		r.step(a, replica.Propose{Data: noteOf(s.Signal, r.Now)})
		return
	}
	r.step(a, replica.Propose{Data: follow.Note(e, time.Duration(r.Now))})
}

// act does what follows from events.
func (r *leadershipRun) act(a *officer) {
	for len(a.acts) > 0 {
		k := a.acts[0]
		switch {
		case r.s.Defect.Hasty:
		case r.s.Defect.Deaf && a.m.Open() > 0, !r.s.Defect.Deaf &&
			(a.office.Left() || a.mirror.Events < a.counts[0]):
			return
		}
		a.acts, a.counts = a.acts[1:], a.counts[1:]
		r.out.Acts++
		r.acted[k] = true
		if !r.applied[k] && !r.s.Defect.Hasty {
			r.violated("agent %d acts on event %d, which does not count", a.id, k)
		}
	}
}

func (r *leadershipRun) awake(a *officer, do func()) {
	switch {
	case !a.alive || a.office.Left():
	case a.paused > r.Now || len(a.inbox) > 0:
		a.inbox = append(a.inbox, do)
	default:
		do()
	}
}

// send brings words to another agent after some time, or never.
func (r *leadershipRun) send(from, to *officer, do func()) {
	r.nth++
	f := mix(r.s.Seed, 4, r.nth, 0)
	if !from.alive || r.side[from.id] != r.side[to.id] {
		return
	}
	r.After(1+sim.Time(f%40), func() {
		if r.side[from.id] == r.side[to.id] {
			r.awake(to, func() {
				to.heard[from.id] = 0
				do()
			})
		}
	})
}

// step hands an event to an agent, and does what comes of it.
func (r *leadershipRun) step(a *officer, e replica.Event) {
	out, _ := a.m.Step(e, int64(r.Now))
	for _, act := range out {
		s, ok := act.(replica.Send)
		if !ok {
			continue
		}
		to, text := r.list[s.Message.To], s.Message.Encode()
		r.send(a, to, func() {
			if to.out(a.id) {
				r.send(to, a, func() { r.obey(a, a.office.Expel()) })
				return
			}
			if msg, err := replica.Decode(text); err == nil {
				r.step(to, replica.Received{Message: msg})
			}
		})
	}
	if r.s.Defect.Deaf && a.machine != nil {
		r.act(a)
	}
	r.obey(a, a.office.Look())
	if a.machine != nil && !a.office.Left() {
		r.act(a)
	}
}

// out: the agent knows that another one is none of theirs any more.
func (a *officer) out(id int) bool { return !slices.Contains(a.wanted, id) }

// obey does what an agent's office asks for.
func (r *leadershipRun) obey(a *officer, v follow.Verdict) {
	switch v {
	case follow.Claims:
		r.step(a, replica.Propose{Data: a.office.Claim()})
	case follow.Leaves:
		r.out.Left++
		r.gone(a)
		a.acts = nil
	case follow.Decides:
		r.decides(a)
	}
}

// decides lets an agent decide: one in each era, and it knows all on which anyone has acted.
func (r *leadershipRun) decides(a *officer) {
	if by, ok := r.eras[a.office.Era()]; ok {
		r.violated("agents %d and %d decide in era %d", by, a.id, a.office.Era())
	}
	r.eras[a.office.Era()] = a.id
	for _, k := range slices.Sorted(maps.Keys(r.acted)) {
		if !r.applied[k] {
			r.violated(
				"agent %d decides, and knows nothing of event %d, on which another one has acted",
				a.id, k)
		}
	}
	machine, err := a.mirror.Inherit()
	if err != nil {
		r.violated("agent %d cannot go on: %v", a.id, err)
		return
	}
	if r.goneAt > 0 {
		r.out.Gaps = append(r.out.Gaps, r.Now-r.goneAt)
		r.goneAt = 0
	}
	a.machine, a.noted, a.era = machine, a.mirror.Events, a.office.Era()
	a.wanted = slices.DeleteFunc(slices.Clone(a.wanted),
		func(id int) bool { return id == a.decider })
	a.decider = a.id
}

// tick lets a period pass at an agent.
func (r *leadershipRun) tick(a *officer) {
	r.After(tickEvery, func() { r.tick(a) })
	if !a.alive || a.office.Left() || a.paused > r.Now {
		return
	}
	for _, o := range r.list {
		a.heard[o.id]++
	}
	if a.machine != nil {
		r.govern(a)
	} else if a.heard[a.decider] > silenceLimit {
		a.office.Lose(a.era)
	}
	r.step(a, replica.Tick{})
	r.obey(a, a.office.Tick(a.m.Leads()))
}

// govern is what who decides does each tick: it calls those that do not know of it, tells all who
// is there, and gives up who is silent.
func (r *leadershipRun) govern(a *officer) {
	for _, o := range r.list {
		if o == a || a.out(o.id) {
			continue
		}
		if a.heard[o.id] > 2*silenceLimit {
			r.happens(a, job.Ended{Proc: o.id, Owner: job.OwnerInit,
				Wait: job.Wait{Signal: job.SIGKILL}, OtherMPI: true})
			if a.office.Left() {
				return
			}
			a.wanted = slices.DeleteFunc(slices.Clone(a.wanted),
				func(id int) bool { return id == o.id })
			continue
		}
		era, wanted := a.era, a.wanted
		r.send(a, o, func() {
			if o.office.Left() {
				return
			}
			if era > o.era && o.office.Called(era) {
				before := r.list[o.decider] // it is told, and may be cut off from all others
				r.send(o, before, func() { r.obey(before, before.office.Superseded(era)) })
				o.era, o.decider = era, a.id
			}
			if o.era == era && o.decider == a.id {
				o.wanted = wanted
				r.step(o, replica.Members{Agents: wanted})
				table := o.table
				r.send(o, a, func() {
					a.table = max(a.table, table)
					if a.stands == nil {
						a.stands = map[int]bool{}
					}
					a.stands[o.id] = true
				})
			}
		})
	}
	r.tellTable(a)
	r.step(a, replica.Members{Agents: a.wanted})
}

// gone notes when who decides is no more.
func (r *leadershipRun) gone(a *officer) {
	if a.machine != nil && r.goneAt == 0 {
		r.goneAt = r.Now
	}
}

func (r *leadershipRun) befall(f sim.Fault) {
	a := r.list[f.Who]
	switch f.Kind {
	case sim.KillHost:
		if a.alive {
			r.gone(a)
		}
		a.alive = false
	case sim.PauseHost:
		a.paused = max(a.paused, r.Now+f.For)
		r.After(f.For, func() {
			for a.paused <= r.Now && len(a.inbox) > 0 && a.alive {
				do := a.inbox[0]
				do()
				a.inbox = a.inbox[1:]
			}
		})
	case sim.Cut:
		r.cuts++
		own := r.cuts
		r.side = map[int]bool{}
		for _, h := range f.Hosts {
			r.side[h] = true
		}
		r.After(f.For, func() {
			if own == r.cuts {
				r.side = nil
			}
		})
	}
}

// settled looks whether all is as it should be in the end: of those that go on one decides, and all
// others are with it.
func (r *leadershipRun) settled() {
	deciders := 0
	var there []*officer
	for _, a := range r.list {
		if !a.alive || a.office.Left() {
			continue
		}
		there = append(there, a)
		if a.machine != nil {
			deciders++
		}
	}
	if len(there) > 0 && deciders != 1 {
		r.violated("in the end %d of %d agents decide", deciders, len(there))
	}
	if len(r.s.Faults) == 0 && (len(there) < r.s.Agents || len(r.acted) < r.s.Events) {
		r.violated(
			"nothing has happened, and %d of %d agents go on, which have acted on %d of %d events",
			len(there), r.s.Agents, len(r.acted), r.s.Events)
	}
}

func (r *leadershipRun) violated(format string, args ...any) {
	if r.failure == nil {
		r.failure = fmt.Errorf("at %d: "+format, append([]any{r.Now}, args...)...)
	}
}

// mix is a number that is random, but follows from its arguments alone.
func mix(of ...uint64) uint64 {
	x := uint64(0x9e3779b97f4a7c15)
	for _, n := range of {
		x = (x ^ n) * 0xff51afd7ed558ccd
		x ^= x >> 33
		x *= 0xc4ceb9fe1a85ec53
		x ^= x >> 29
	}
	return x
}
