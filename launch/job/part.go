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
	Away   bool // it is started by somebody else, later
	// of I/O processes: the cluster, from 1, with which they are started, by somebody else perhaps;
	// 0: none
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
	leaving  bool  // it stops because somebody wants that
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

// endedInPart decides what the end of a process means for its part.
func (m *Machine) endedInPart(p *part, e Ended, now time.Duration) (out []Action) {
	p.alive--
	p.count(&e, m.procs[e.Proc].endedByJob)
	standby := slices.Contains(p.standbys, e.Proc)
	p.standbys = slices.DeleteFunc(p.standbys, func(i int) bool { return i == e.Proc })
	failed := e.Failed()
	switch {
	case m.procs[e.Proc].endedByJob:
		out = []Action{Publish{Proc: e.Proc, Wait: e.Wait}}
	case p.departs:
		out = m.endedDeparting(p, e, now)
	case p.stopping:
		out = []Action{Publish{Proc: e.Proc, Dead: failed, Wait: e.Wait}}
	case failed:
		out = m.diedInPart(p, e, standby, now)
	default:
		out = slices.Concat(m.wentOnAndEnded(e.Proc), m.exitedInPart(e))
		if !standby { // else it has had a rank, of which was not heard yet, and so may others
			p.done = true
			out = append(out, m.dismiss(p, now)...)
		}
	}
	if p.departs {
		return append(out, m.departed(now)...)
	}
	if p.alive == 0 && p.stopping && !m.ending {
		out = append(out, m.stopped(p, now)...)
	}
	return out
}

// count takes the status of a process of the part. One that the job itself ends has it from that,
// and wherever it is then: it says nothing about the part. What the part's user ends, or who lets
// it leave, is the user's matter.
func (p *part) count(e *Ended, dismissed bool) {
	if dismissed || p.stopping && !p.leaving && !p.departs {
		return
	}
	status := e.Wait.Status()
	if e.Owner == OwnerInit {
		status = cmp.Or(status, StatusFailed)
	}
	if e.Failed() {
		p.death = cmp.Or(p.death, status)
	} else {
		p.exit = cmp.Or(p.exit, status)
	}
}

// Failed: of a system's process, it has died: its cluster may depend on it.
func (e *Ended) Failed() bool {
	return e.Owner == OwnerInit || e.Owner == OwnerAborted || e.Owner == OwnerNone &&
		(e.OtherMPI || e.Wait.Status() != 0)
}

// dismiss ends standbys when nobody is left whose rank they could take.
func (m *Machine) dismiss(p *part, now time.Duration) []Action {
	if len(p.standbys) == 0 || p.alive > len(p.standbys) {
		return nil
	}
	p.deadline = now + m.cfg.Grace
	for _, i := range p.standbys {
		m.procs[i].endedByJob = true
	}
	return []Action{SendTo{slices.Clone(p.standbys), SIGTERM}}
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

func (m *Machine) exitedInPart(e Ended) []Action {
	out := []Action{Publish{Proc: e.Proc, Wait: e.Wait}}
	status := e.Wait.Status()
	if status == 0 {
		m.succeeded = true
	} else if m.status == 0 {
		out = append(out, Say{fmt.Sprintf("%s; exit status %d.", m.describe(e), status)})
	}
	m.fail(status)
	return out
}

func (m *Machine) diedInPart(p *part, e Ended, standby bool, now time.Duration) []Action {
	status := e.Wait.Status()
	if e.Owner == OwnerAborted {
		status = abortStatus(e.Code)
	}
	if status == 0 {
		status = StatusFailed
	}
	published := Publish{Proc: e.Proc, Dead: true, Wait: e.Wait}
	text := m.describe(e)
	treatment := p.treatment(e.Fault)
	if m.procs[e.Proc].ended {
		treatment = p.Hang
	}
	others := p.alive + p.coming
	if treatment == Degrade && (others > 0 || p.done) {
		if m.death == 0 {
			m.death = status
		}
		p.lost = append(p.lost, e.Proc)
		if others == 0 {
			return []Action{published,
				Say{fmt.Sprintf("%s; the others of %s have ended before.", text, p.Name)}}
		}
		return []Action{published, Say{fmt.Sprintf("%s; %d others of %s are told and go on.", text,
			others, p.Name)}}
	}
	if out := m.startCold(p, e, standby, treatment, now); out != nil {
		return append(out, published)
	}
	if treatment == Replace && e.Owner != OwnerAborted && others+p.waking >= p.Ranks {
		what := "a standby takes its place"
		if standby {
			what = fmt.Sprintf("%s has %d standbys left", p.Name, len(p.standbys))
		}
		return []Action{published, Say{fmt.Sprintf("%s; %s.", text, what)}}
	}
	p.stopping, p.status, p.asked, p.deadline = true, status, text, now+m.cfg.Grace
	if !m.cfg.Masters || p.Serves {
		what := m.policy(p, now)
		if p.Serves && m.procs[e.Proc].ended {
			what = m.within(p, p.Hang, now)
		}
		return append([]Action{published}, m.judgedPart(p, what, now)...)
	}
	p.askUntil = now + AskLimit
	out := []Action{published, Ask{m.number(p)}}
	if living := m.livingOf(p); len(living) > 0 {
		out = append(out, SendTo{living, SIGTERM})
	}
	return out
}

// startCold starts one more process when too few are left, and there is one; nil: not so.
func (m *Machine) startCold(p *part, e Ended, standby bool, treatment Treatment,
	now time.Duration) []Action {
	place := e.Place - 1
	if e.Place == 0 {
		place = p.unused()
	}
	if treatment != Replace || e.Owner == OwnerAborted || p.alive+p.coming+p.waking != p.Ranks-1 ||
		place < 0 || place >= p.Cold || slices.Contains(p.started, place) ||
		p.ranks.left(now) == 0 {
		return nil
	}
	p.started = append(p.started, place)
	p.ranks.spend(now)
	p.waking++
	what := "a process is started that takes its place"
	if standby {
		what = "another one is started"
	}
	return []Action{Say{fmt.Sprintf("%s; %s (%d of at most %d).", m.describe(e), what,
		p.ranks.used(now), p.ranks.most)}, StartCold{m.number(p), p.Ranks + p.Waiting + place,
		len(p.started)}}
}

// unused is the first place that is left for a process that is started in the place of a rank, from
// 0; -1: there is none.
func (p *part) unused() int {
	for k := range p.Cold {
		if !slices.Contains(p.started, k) {
			return k
		}
	}
	return -1
}

// Unused are the places that a part has left for processes that are started in the place of ranks,
// from 0.
func (m *Machine) Unused(part int) (out []int) {
	p := &m.parts[part-1]
	for k := range p.Cold {
		if !slices.Contains(p.started, k) {
			out = append(out, k)
		}
	}
	return out
}

// all are the numbers below n.
func all(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// policy is what the system file says about a part that stops.
func (m *Machine) policy(p *part, now time.Duration) Treatment { return m.within(p, p.Whole, now) }

// within is a treatment, or Stop where a part has been started again too often.
func (m *Machine) within(p *part, t Treatment, now time.Duration) Treatment {
	if t == Restart && !p.mayStart(now) {
		return Stop
	}
	return t
}

// judged: the system's master has answered.
func (m *Machine) judged(e Judged, now time.Duration) []Action {
	if e.Part < 1 || e.Part > len(m.parts) {
		return nil
	}
	p := &m.parts[e.Part-1]
	if p.askUntil == 0 || m.ending {
		return nil
	}
	what := e.What
	// the master does not know what counts no more, and so leaves it to this machine to count
	if what == Restart {
		what = m.policy(p, now)
	}
	return m.judgedPart(p, what, now)
}

// judgedPart does what was decided about a part that stops; when it is to be started again, when it
// has stopped.
func (m *Machine) judgedPart(p *part, what Treatment, now time.Duration) []Action {
	text, asked := p.asked, p.askUntil > 0
	p.asked, p.askUntil, p.what = "", 0, what
	if what == Stop {
		m.fail(p.status)
		why := "and with it the system"
		if p.whole.left(now) == 0 && (p.Whole == Restart || p.whole.used(now) > 0) {
			why = "and with it the system, since it " + p.whole.overdrawn()
		}
		return m.end(now, SIGTERM, m.cfg.Grace,
			Say{fmt.Sprintf("%s; %s is ended %s; exit status %d.", text, p.Name, why, p.status)})
	}
	out := []Action{Say{fmt.Sprintf("%s; %s stops.", text, p.Name)}}
	switch {
	case !asked:
		out = append(out, SendTo{m.livingOf(p), SIGTERM})
	case p.alive == 0:
		out = append(out, m.stopped(p, now)...)
	}
	return out
}

// livingOf lists the processes of a part that exist.
func (m *Machine) livingOf(p *part) (out []int) {
	for i := range m.procs {
		if m.procs[i].alive && m.partOf(i) == p {
			out = append(out, i)
		}
	}
	return out
}

// stopped: nothing of the part is left, and the job goes on without it, or it is started again.
func (m *Machine) stopped(p *part, now time.Duration) []Action {
	if p.askUntil > 0 { // it is not known yet what is done about it
		return nil
	}
	p.stopping, p.deadline = false, 0
	if p.Serves && m.served() { // nobody is there whom it could serve
		return nil
	}
	if p.what == Restart && !p.leaving {
		p.again, p.making, p.standbys, p.waking, p.done = true, false, nil, 0, false
		p.started = all(p.Cold) // those that are not yet started are, with the others, and wait
		return []Action{RestartPart{m.number(p), p.Serves && !m.carried(p) || p.crowds}}
	}
	p.gone, p.leaving = true, false
	if m.death == 0 {
		m.death = p.status
	}
	return []Action{Say{fmt.Sprintf("%s is gone; the others go on.", p.Name)}}
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

// detached: nothing is left of a part, and nobody here starts it again.
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

// timeParts kills what was asked to end and has not, and ends those that have nobody to serve.
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

// StateAway is the state of a part that nobody has started yet.
const StateAway = "awaited"

// StateGone is the state of a part that has stopped for good while the others go on.
const StateGone = "gone"

// PartState is how a part is, for who asks.
type PartState struct {
	Name string `json:"name"`
	// awaited, starting, running, degraded, stopping, restarting, leaving, gone or ended
	State    string `json:"state"`
	Alive    int    `json:"alive"` // processes
	Restarts int    `json:"restarts"`
	Standbys int    `json:"standbys,omitempty"` // of the living
	Replaced int    `json:"replaced,omitempty"` // ranks that were taken over
	// places for processes that are started in the place of ranks, which are left
	Cold int  `json:"cold,omitempty"`
	Left int  `json:"left,omitempty"` // so many of these may be started now
	Over bool `json:"-"`              // nothing of it comes again
	// of its processes since it was attached: the first status that is not zero, deaths left aside
	Exit int `json:"-"`
	// ... of the first that has died: it counts when the part does not go on
	Death int `json:"-"`
	// processes that have died while the others went on: they are not replaced as long as these
	// live
	Lost []int `json:"-"`
}

// isGone: a part has stopped for good, or who would start it has.
func (m *Machine) isGone(p *part) bool {
	return !p.stopping && !p.again && (p.gone || p.away && p.With > 0 && m.parts[p.With-1].gone)
}

// isOver: nothing of a part comes again, in whatever way: it is gone, or has ended, perhaps with
// ranks that had died before. One that is attached once more, all the same, is awaited from then
// on.
func (m *Machine) isOver(p *part) bool {
	return m.isGone(p) || !p.Serves && p.begun && p.alive == 0 && p.waking == 0 && !p.stopping &&
		!p.again && !p.away
}

// Over is how much there is that does not come again: parts, and processes that have died while the
// others of their part went on.
func (m *Machine) Over() (n int) {
	for i := range m.parts {
		n += len(m.parts[i].lost)
		if m.isOver(&m.parts[i]) {
			n++
		}
	}
	return n
}

// Parts tells how the parts of a system are.
func (m *Machine) Parts() (out []PartState) {
	for i := range m.parts {
		p := &m.parts[i]
		state := "running"
		switch {
		case p.departs:
			state = StateLeaving
		case p.stopping:
			state = "stopping"
		case p.again:
			state = "restarting"
		case m.isGone(p):
			state = StateGone
		case p.away:
			state = StateAway
		case p.alive == 0 && p.begun:
			state = "ended"
		case !m.started && !p.begun:
			state = "starting"
		case len(p.lost) > 0:
			state = "degraded"
		}
		out = append(out, PartState{p.Name, state, p.alive, p.restarts, len(p.standbys), p.replaced,
			p.Cold - len(p.started), min(p.Cold-len(p.started), p.ranks.left(m.now)), m.isOver(p),
			p.exit, p.death, slices.Clone(p.lost)})
	}
	return out
}
