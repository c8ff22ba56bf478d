package job

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A system of clusters is one job with several parts: its clusters, and the I/O processes of its
// links. What a death means is said for each part: for the part itself, and then for the rest of
// the system (docs/systems.md).

// Treatment is what is done about a failure.
type Treatment int

// Treatments.
const (
	Stop    Treatment = iota // end what it belongs to: of a process its part, of a part the job
	Degrade                  // the others are told, and go on
	Restart                  // of a part: start it again
	Replace                  // of a process: a standby of its part takes its rank
	LeaveBe                  // of a process that hangs: nothing is done
)

// Fault is of what kind a death is.
type Fault int

// Faults.
const (
	FaultProcess Fault = iota // it has died itself
	FaultHost                 // with the agent of its host
	// nothing was heard of its host: it is cut off, without power, or stands still
	FaultNetwork
)

// treatment is what is done about a death of that kind.
func (p *Part) treatment(f Fault) Treatment {
	switch f {
	case FaultHost:
		return p.Host
	case FaultNetwork:
		return p.Network
	}
	return p.Process
}

// Heals: a process of the part that dies, or some of them, is replaced, or the part is started
// again: what is for it waits.
func (p *Part) Heals() bool {
	return p.Whole == Restart || p.Hang == Restart ||
		slices.Contains([]Treatment{p.Process, p.Host, p.Network, p.Hang}, Replace)
}

// A Part is a cluster, or an I/O process.
type Part struct {
	Name string // for messages: "cluster input"
	Tag  string // of its output, before a rank: "input."
	// of its processes, those that work from the beginning; the others are standbys. 0: all
	Ranks   int
	Waiting int       // of these, those that are there from the beginning
	Cold    int       // so many more standbys are started when they are needed
	Process Treatment // when a process of it has died: Stop, Degrade or Replace
	Host    Treatment // ... with its host
	Network Treatment // ... because nothing is heard of its host
	// when a process of it hangs: LeaveBe, or as Process; of I/O processes as Whole
	Hang                   Treatment
	HangLimit, SilentLimit time.Duration // what counts as hanging (package watch)
	Whole                  Treatment     // when it has stopped
	// at most; then it has stopped for good, and with it the job. As many processes are started in
	// the place of its ranks, and no more; 0: Cold
	Restarts int
	Within   time.Duration // so long each of these counts; 0: for ever
	// I/O processes: when all others have ended they are ended too
	Serves bool
	Away   bool // it is started by another spxrun, later
	// of I/O processes: the cluster, from 1, with which they are started, perhaps by another
	// spxrun; 0: none
	With int
	// of I/O processes: which link they belong to, from 1; 0: not known
	Link int
	// it was added to the running system: 1 + its number among the clusters, or the I/O processes;
	// 0: its place in the list says that
	Added int
}

// RestartPart: all processes of a part have ended, and it is to be started again, on other hosts
// where its own are lost: Placed and Spawned for each, or NotRestarted.
type RestartPart struct {
	Part int  // from 1
	Last bool // nothing else carries its link: a host without a free slot will do, too
}

// Placed: there are hosts for a part that is to be started again.
type Placed struct {
	Part  int    // from 1
	Text  string // where, and why there, if that is elsewhere than before: the end of a line
	Hosts []int  // of its processes, by their numbers in the job
}

// StartCold: a process of a part is to be started, to be a standby: Started, or NotStarted. All do
// it before they hear of the death that is the reason.
type StartCold struct {
	Part, Rank int // from 1; in the part
	// its position among those of the part, in the order in which they are started, from 1
	Order int
}

// TookOver: these processes have the ranks of a part now.
type TookOver struct {
	Part  int // from 1
	Procs []int
}

// Grown: the system has more parts, which the file that it was started with does not have. They are
// away.
type Grown struct{ Parts []Part }

// Coming: so many clusters have called that are to be attached, and of which it is not known yet
// whether they will be. The job does not end before that is known.
type Coming struct{ Clusters int }

// Attached: a part that was away is about to be started: Spawned for each of its processes, or
// Detached.
type Attached struct{ Part int } // from 1

// Detached: a part cannot be started again here, because its host is gone. It may be attached
// again.
type Detached struct{ Part int } // from 1

// PartSignalled: who has started a part wants it to end.
type PartSignalled struct{ Part, Signal int } // from 1

// Ask: a cluster stops, since it cannot go on as it is. The system's master is to say what is done
// about it: Judged.
type Ask struct{ Part int } // from 1

// Judged: the system's master has said what is done about a cluster that stops: Stop (the system),
// Degrade (the others go on) or Restart.
type Judged struct {
	Part int // from 1
	What Treatment
}

// AskLimit is how long is waited for that. Then what the system file says is done without: the
// master would say the same.
const AskLimit = 3 * time.Second

// RankName is what a process of a part with so many ranks is called.
func RankName(rank, ranks int) string {
	if ranks > 0 && rank >= ranks {
		return fmt.Sprintf("standby %d", rank-ranks)
	}
	return fmt.Sprintf("rank %d", rank)
}

// Inherited: whoever has decided so far is lost, and another one goes on.
type Inherited struct{}

// NotRestarted: a part cannot be started again.
type NotRestarted struct {
	Part  int // from 1
	Text  string
	Again bool // a host was lost meanwhile: it may be possible on another one
}

// serveGrace is how long I/O processes may go on when all that they serve have ended.
const serveGrace = 2 * time.Second

// part is the state of one.
type part struct {
	Part
	alive    int
	status   int           // of the death by which it stops
	stopping bool          // its processes are being ended
	deadline time.Duration // then: when they are killed; 0: they were
	restarts int           // so far
	whole    budget        // of these
	ranks    budget        // of processes that are started in the place of ranks
	again    bool          // it is being started again
	begun    bool          // it has had a process
	// so many of its processes are to be made, and are not known to have been: they may take the
	// place of those that have died
	coming int
	fresh  bool // it was attached, and its processes have not all been made since
	// then: a host of it was lost, and standbys are there to make up for that: it is started on
	// those that are left, be there slots or not
	crowds   bool
	gone     bool  // it has stopped for good, and the others go on
	away     bool  // it is nowhere, and may be attached
	leaving  bool  // it stops because that was requested
	lost     []int // processes that have died while the others of the part went on
	done     bool  // a rank of it has come to its proper end, since it was started
	standbys []int // processes that have no rank
	replaced int   // ranks that were taken over
	// of Cold, those that are used up, in the order in which they were started, from 0
	started []int
	waking  int  // of these, those that are about to be there
	making  bool // processes of it are being made, since it was Placed
	// that is repeated, since who has decided is lost: the next time it is placed is the same start
	renewed  bool
	hosts    []int // then and since: where they run
	crew     Crew
	departs  bool          // it leaves in good order
	departBy time.Duration // then: when it is told to end; 0: that is not so far, or was
	patience time.Duration // then: how long it has for that
	forGood  bool          // then: it is not awaited after that
	// of its processes since it was attached: the first status that is not zero, deaths left aside,
	// and those that the job itself has ended
	exit  int
	death int // ... of the first that has died

	// the system's master was asked what is done, about what happened so; empty: it was not
	asked    string
	askUntil time.Duration // then: how long its answer is waited for
	what     Treatment     // then: the answer
}

// of is the part of a process; nil: the job has no parts.
func (m *Machine) partOf(proc int) *part {
	if k := m.procs[proc].part; k > 0 && k <= len(m.parts) {
		return &m.parts[k-1]
	}
	return nil
}

// join enters a process that was started into its part.
func (m *Machine) join(proc, rank int) {
	if p := m.partOf(proc); p != nil {
		if p.again {
			p.lost = nil
		}
		p.alive++
		if p.waking > 0 && (p.coming == 0 || rank >= p.Ranks+p.Waiting) {
			p.waking--
		} else {
			p.coming = max(p.coming-1, 0)
		}
		p.again, p.begun = false, true
		if p.Ranks > 0 && rank >= p.Ranks {
			p.standbys = append(p.standbys, proc)
			m.procs[proc].name = RankName(rank, p.Ranks)
		}
		m.procs[proc].name = fmt.Sprintf("%s of %s", m.procs[proc].name, p.Name)
	}
}

// allStarted: of those that the job begins with none is to be made any more.
func (m *Machine) allStarted() {
	m.started = true
	for i := range m.parts {
		if p := &m.parts[i]; !m.Making(i + 1) {
			p.coming = 0
		}
	}
}

// tookOver: standbys have ranks now.
func (m *Machine) tookOver(e TookOver) []Action {
	if e.Part < 1 || e.Part > len(m.parts) {
		return nil
	}
	p := &m.parts[e.Part-1]
	for rank, i := range e.Procs {
		if i >= len(m.procs) || !slices.Contains(p.standbys, i) {
			continue
		}
		p.standbys = slices.DeleteFunc(p.standbys, func(k int) bool { return k == i })
		p.replaced++
		m.procs[i].name = fmt.Sprintf("%s of %s", RankName(rank, p.Ranks), p.Name)
	}
	p.crew.takes(e.Procs)
	return []Action{Relist{e.Part}}
}

func (m *Machine) number(p *part) int {
	for i := range m.parts {
		if &m.parts[i] == p {
			return i + 1
		}
	}
	return 0
}

func newPart(p Part) part {
	return part{Part: p, away: p.Away, coming: p.warm(), whole: budget{most: p.Restarts,
		within: p.Within}, ranks: budget{most: cmp.Or(p.Restarts, p.Cold), within: p.Within}}
}

// warm is how many processes a part begins with; 0 where that is of no interest, since none takes
// the place of another one.
func (p *Part) warm() int {
	if p.Ranks == 0 {
		return 0
	}
	return p.Ranks + p.Waiting
}

// grown takes parts in. An I/O process serves a cluster that there is by then.
func (m *Machine) grown(e Grown) {
	for _, p := range e.Parts {
		p.Away = true
		m.parts, m.added = append(m.parts, newPart(p)), append(m.added, p)
	}
}

// attached: a part is about to have processes.
func (m *Machine) attached(e Attached) {
	p := &m.parts[e.Part-1]
	p.away, p.gone, p.leaving, p.again, p.making, p.standbys = false, false, false, true, false, nil
	p.departs, p.departBy, p.renewed = false, 0, false
	p.started, p.waking, p.done = nil, 0, false // it has all its places again
	p.fresh, p.crowds, p.coming, p.exit, p.death = true, false, p.warm(), 0, 0
	if !p.Serves {
		m.serveUntil = 0
	}
}

// comes: clusters are about to be attached, or no more. I/O processes that had nothing to serve are
// there for these.
func (m *Machine) comes(e Coming) {
	if m.coming = e.Clusters; m.coming > 0 && m.serveUntil > 0 {
		m.serveUntil = 0
	}
}

// Coming is how many clusters are about to be attached, as it was said last.
func (m *Machine) Coming() int { return m.coming }

// detached: nothing is left of a part, and it is not restarted from here.
func (m *Machine) detached(e Detached) []Action {
	p := &m.parts[e.Part-1]
	again := p.again
	p.away, p.again, p.making, p.fresh, p.coming = true, false, false, false, 0
	if !again || p.Serves {
		return nil
	}
	return []Action{Say{fmt.Sprintf(
		"%s is away; it may be attached again, and the others wait for it.", p.Name)}}
}

// partSignalled ends a part; the system, when that does not go on without it.
func (m *Machine) partSignalled(e PartSignalled, now time.Duration) []Action {
	p := &m.parts[e.Part-1]
	if m.ending || p.alive == 0 {
		return nil
	}
	if p.departs {
		p.departBy = now
		return nil
	}
	if p.leaving {
		p.deadline = now
		return nil
	}
	p.leaving, p.stopping, p.status, p.what = true, true, 128+e.Signal, Degrade
	if p.Whole == Stop {
		m.fail(p.status)
		return m.end(now, e.Signal, GraceSignal,
			Say{fmt.Sprintf("%s is ended by its spxrun, and with it the system; exit status %d.",
				p.Name, p.status)})
	}
	p.deadline = now + GraceSignal
	return []Action{Say{fmt.Sprintf("%s is ended by its spxrun.", p.Name)},
		SendTo{m.livingOf(p), e.Signal}}
}

// placed: a part is about to have processes again.
func (m *Machine) placed(e Placed, now time.Duration) []Action {
	p := &m.parts[e.Part-1]
	if !p.making && !p.renewed { // else it was placed before, and nothing has come of that
		p.restarts++
		p.whole.spend(now)
	}
	p.making, p.renewed, p.hosts = true, false, slices.Clone(e.Hosts)
	p.coming = p.warm() + min(p.Cold, p.Restarts)
	return []Action{Say{fmt.Sprintf("%s is started again (%d of at most %d times)%s.", p.Name,
		p.whole.used(now), p.whole.most, e.Text)}}
}

// mayStart: a part may be started again, or its last start, which has come to nothing, be repeated.
func (p *part) mayStart(now time.Duration) bool { return p.renewed || p.whole.left(now) > 0 }

// inherited: whoever has decided so far is lost. The starts that were under way are not completed,
// but repeated; of what of them dies until then no other one comes. A part that stops by itself has
// had its start.
func (m *Machine) inherited() {
	for i := range m.parts {
		p := &m.parts[i]
		p.renewed, p.coming = p.renewed || m.Making(i+1) && !p.stopping, 0
	}
}

// notRestarted gives a part up: the others go on, as if the file had said so, when some are left
// whom that helps. One that has never been made since it was attached, and hosts of which were
// lost, has lost nothing: it is begun anew on the others and, when these have no room, it counts as
// one that has stopped.
func (m *Machine) notRestarted(e NotRestarted, now time.Duration) []Action {
	p := &m.parts[e.Part-1]
	p.again, p.making, p.coming, p.what = false, false, 0, Degrade
	text := fmt.Sprintf("%s cannot be started%s: %s", p.Name,
		map[bool]string{false: " again"}[p.fresh], e.Text)
	crowds := p.fresh && !p.crowds && p.Waiting > 0 && (p.Host == Replace || p.Network == Replace)
	switch {
	case m.ending:
		return nil
	case (e.Again || crowds) && p.mayStart(now):
		p.what, p.crowds = Restart, p.crowds || crowds
	case p.fresh && p.Whole == Stop, p.Serves && !m.carried(p), !p.Serves && !m.othersWork(p):
		m.fail(max(p.status, StatusFailed))
		return m.end(now, SIGTERM, m.cfg.Grace,
			Say{fmt.Sprintf("%s; the system is ended with exit status %d.", text, m.status)})
	}
	out := []Action{Say{text + "."}}
	if p.alive == 0 {
		return append(out, m.stopped(p, now)...)
	}
	p.stopping, p.deadline = true, now+m.cfg.Grace // some of its processes were made
	return append(out, SendTo{m.livingOf(p), SIGTERM})
}

// carried: other I/O processes do what this one does.
func (m *Machine) carried(p *part) bool {
	return slices.ContainsFunc(m.parts, func(o part) bool {
		return o.Serves && o.Link > 0 && o.Link == p.Link && o.Name != p.Name && !o.stopping &&
			(o.alive > 0 || o.again)
	})
}

// othersWork: there are other clusters, or may be.
func (m *Machine) othersWork(p *part) bool {
	return slices.ContainsFunc(m.parts, func(o part) bool {
		return !o.Serves && o.Name != p.Name && !o.gone &&
			(o.alive > 0 || o.waking > 0 || o.again || o.away)
	})
}

// served: all parts but those that serve have ended, for good, and no other one comes. As long as
// the job is being started any of them may still get its first process.
func (m *Machine) served() bool {
	if m.coming > 0 || !m.started {
		return false
	}
	for i := range m.parts {
		if p := &m.parts[i]; !p.Serves && (p.alive > 0 || p.waking > 0 || p.again || p.stopping) {
			return false
		}
	}
	return true
}

// again: some part is about to be started again, or may be.
func (m *Machine) again() bool {
	for i := range m.parts {
		if m.parts[i].again || m.parts[i].waking > 0 || m.parts[i].askUntil > 0 {
			return true
		}
	}
	return false
}

// partDeadline is when a part is to be seen to.
func (m *Machine) partDeadline() (at time.Duration) {
	for i := range m.parts {
		for _, d := range []time.Duration{m.parts[i].deadline, m.parts[i].askUntil,
			m.parts[i].departBy} {
			if d > 0 && (at == 0 || d < at) {
				at = d
			}
		}
	}
	if m.serveUntil > 0 && (at == 0 || m.serveUntil < at) {
		at = m.serveUntil
	}
	return at
}

// timeParts kills what was asked to end and has not, and ends those that have no cluster to serve.
func (m *Machine) timeParts(now time.Duration) (out []Action) {
	if len(m.parts) == 0 || m.ending || !m.started {
		return nil
	}
	if m.alive > 0 && m.serveUntil == 0 && m.served() {
		m.serveUntil = now + serveGrace
	}
	idle := m.serveUntil > 0 && now >= m.serveUntil
	if idle {
		m.serveUntil = -1
	}
	for i := range m.parts {
		p := &m.parts[i]
		if p.askUntil > 0 && now >= p.askUntil {
			out = append(out,
				Say{fmt.Sprintf(
					"no master of the system has said within %v what is done about %s: what the "+
						"system file says.", AskLimit, p.Name)})
			out = append(out, m.judgedPart(p, m.policy(p, now), now)...)
			if m.ending {
				return out
			}
		}
		out = append(out, m.hurryDeparting(p, now)...)
		if p.deadline > 0 && now >= p.deadline {
			p.deadline = 0
			out = append(out, SendTo{m.livingOf(p), SIGKILL})
		}
		if idle && p.alive > 0 && !p.stopping {
			p.stopping, p.deadline, p.what = true, now+m.cfg.Grace, p.Whole
			out = append(out, SendTo{m.livingOf(p), SIGTERM})
		}
	}
	return out
}
