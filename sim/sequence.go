package sim

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"libspx/ft/replica"
)

// Sequence is a schedule: agents that keep one sequence of entries (package ft/replica), and what befalls them. Times are in hundredths of the period of their clocks. As
// with Job, what the schedule leaves open follows from Seed, each from its own number.
type Sequence struct {
	Agents  int // that begin
	Entries int // that are proposed, by any of them
	Keep    int // entries that each keeps for others
	Seed    uint64
	Faults  []Fault
	Defect  SequenceDefect
	Trace   bool
	Steady  bool // every message takes a tenth of a period, and entries are proposed one after another: for measurements
}

// What befalls agents, beside KillHost, PauseHost and Cut.
const (
	Join   = "join"   // one more agent comes, with this number
	Retire = "retire" // this one is to leave
	Lose   = "lose"   // so many of a hundred messages are lost, and some come twice
	Slow   = "slow"   // the links of an agent take up to ten periods
)

// SequenceDefect is a bug of the shell that is put in on purpose.
type SequenceDefect struct {
	Forget bool // an agent that was lost comes back under its number, and knows nothing
}

// Times of a run, in hundredths of a period.
const (
	tickEvery   = Time(100)
	busyTime    = 40 * tickEvery // in which things happen
	givenUpTime = 20 * tickEvery // an agent that is away for longer is taken for dead, and ended when it is back
	quietTime   = 400 * tickEvery
	hopelessFor = 30 * tickEvery
	steadyDelay = 10
)

// SequenceOutcome is what a run came to.
type SequenceOutcome struct {
	Applied   int
	Messages  int
	Periods   int // that it took
	Bytes     int
	Terms     int    // in which an agent has led
	Stuck     bool   // no majority was left
	Gaps      []Time // from the end of a leader to the next one
	Latencies []Time // steady: from a proposal until its agent has applied it
	Quiet     Time   // from the end of all trouble until all was as it should be
	Trace     []string
}

// peer is an agent of a run.
type peer struct {
	id       int
	m        *replica.Machine
	alive    bool
	out      bool // the others have given it up, or it was to leave
	wanted   []int
	paused   Time // until then
	inbox    []func()
	slow     Time
	proposed int
	applied  int    // entries of the sequence
	hash     uint64 // of these
	alone    int    // ticks in which it could not talk with a majority of its voters
	elected  uint64 // the latest term in which it was
	base     int    // length of the sequence then
	sentAt   []Time
	sends    int
	lastSend int // instead of it, it dies; 0: it does not
}

type sequenceRun struct {
	*World
	s      Sequence
	agents map[int]*peer
	order  []int // their numbers, as they came

	side   map[int]bool
	cuts   int
	losing int
	nth    map[[2]int]uint64
	last   map[[2]int]Time

	sequence []replica.Entry
	hashes   []uint64 // of what is before each
	numbers  map[int]uint64
	leaders  map[uint64]int
	leading  int // the latest known
	goneAt   Time
	quiet    bool
	failure  error
	out      SequenceOutcome
}

// copyOf is what an agent has made of the entries: how many, and a hash of them.
type copyOf struct {
	r *sequenceRun
	a *peer
}

// RandomSequence is the schedule of a seed.
func RandomSequence(seed uint64) Sequence {
	r := rand.New(rand.NewPCG(seed, 0x5e9))
	s := Sequence{Seed: seed, Agents: 1 + r.IntN(5), Entries: r.IntN(25), Keep: 1 + r.IntN(12)}
	if r.IntN(20) == 0 {
		s.Agents += r.IntN(9)
	}
	next := s.Agents
	for range r.IntN(6) {
		f := Fault{At: Time(r.IntN(int(busyTime))), Who: r.IntN(next)}
		long := 1 + Time(r.IntN(int(busyTime)))
		switch r.IntN(10) {
		case 0, 1, 2:
			f.Kind = KillHost
		case 3, 4:
			f.Kind, f.For = PauseHost, long
		case 5:
			f.Kind, f.Who, f.For = Cut, 0, long
			f.Hosts = r.Perm(next)[:1+r.IntN(max(1, next-1))]
		case 6:
			f.Kind, f.Who = Join, next
			next++
		case 7:
			f.Kind = Retire
		case 8:
			f.Kind, f.Who, f.For = Lose, 5+r.IntN(60), long
		default:
			f.Kind, f.For = Slow, long
		}
		s.Faults = append(s.Faults, f)
	}
	return s
}

// RunSequence carries out a schedule. The error names the property that was violated.
func RunSequence(s Sequence) (SequenceOutcome, error) {
	r := &sequenceRun{World: NewWorld(0, s.Seed), s: s, agents: map[int]*peer{}, nth: map[[2]int]uint64{}, last: map[[2]int]Time{}, numbers: map[int]uint64{}, leaders: map[uint64]int{}, leading: -1, hashes: []uint64{0}}
	first := make([]int, s.Agents)
	for i := range first {
		first[i] = i
	}
	for _, i := range first {
		r.begin(i, first, first)
	}
	end := busyTime
	for _, f := range s.Faults {
		if f.Step > 0 { // the agent itself sees to it
			continue
		}
		r.After(f.At, func() { r.befall(f) })
		end = max(end, f.At+f.For)
	}
	end += givenUpTime
	if s.Steady {
		end = busyTime
	}
	for k := range s.Entries {
		at := Time(r.fate(1, k, 0) % uint64(busyTime))
		if s.Steady {
			at = Time(k+1) * 2 * tickEvery
			end = max(end, at+tickEvery)
		}
		r.After(at, func() { r.propose(k) })
	}
	for r.failure == nil && r.Now < end && r.Step() {
	}
	r.becomeQuiet()
	since := Time(0) // it has been hopeless
	for ; r.failure == nil && !s.Defect.Forget; r.untilNext() {
		switch {
		case r.goal() == "":
			r.out.Quiet = max(r.Now-end, 0)
		case !r.hopeful():
			if since == 0 {
				since = r.Now
			}
			if r.Now-since < hopelessFor {
				continue
			}
			r.out.Stuck = true
		default:
			if since = 0; r.Now-end > quietTime {
				r.violated("%s", r.goal())
			}
			continue
		}
		break
	}
	r.out.Applied, r.out.Terms, r.out.Periods = len(r.sequence), len(r.leaders), int(r.Now/tickEvery)
	return r.out, r.failure
}

// untilNext lets a period pass.
func (r *sequenceRun) untilNext() {
	for until := r.Now + tickEvery; r.failure == nil && r.Now < until && r.World.Step(); {
	}
}

func (r *sequenceRun) fate(what uint64, a, b int) uint64 {
	return mix(r.s.Seed, what, uint64(a), uint64(b))
}

// begin starts an agent. first: those who begin together with it.
func (r *sequenceRun) begin(id int, first, wanted []int) {
	a := &peer{id: id, alive: true, wanted: slices.Clone(wanted)}
	a.m = replica.New(replica.Config{Self: id, First: first, Seed: r.fate(2, id, len(r.order)), Keep: r.s.Keep, State: copyOf{r, a}})
	for _, f := range r.s.Faults {
		if f.Step > 0 && f.Who == id {
			a.lastSend = f.Step
		}
	}
	r.agents[id] = a
	r.order = append(r.order, id)
	r.step(a, replica.Members{Agents: a.wanted})
	r.tickLater(a, Time(r.fate(3, id, len(r.order))%uint64(tickEvery)))
}

func (r *sequenceRun) tickLater(a *peer, d Time) {
	r.After(d, func() {
		if !a.alive {
			return
		}
		if a.paused > r.Now { // a clock does not ring again and again for what it has missed
			a.alone = 0
		} else {
			r.checkAlone(a)
			r.step(a, replica.Tick{})
		}
		r.tickLater(a, tickEvery)
	})
}

// awake does something at an agent as soon as it does not stand still.
func (r *sequenceRun) awake(a *peer, do func()) {
	switch {
	case !a.alive:
	case a.paused > r.Now || len(a.inbox) > 0:
		a.inbox = append(a.inbox, do)
	default:
		do()
	}
}

// step hands an event to an agent, and sends what it says. The clocks of agents differ.
func (r *sequenceRun) step(a *peer, e replica.Event) {
	out, err := a.m.Step(e, int64(r.Now)+int64(r.fate(4, a.id, 0)%uint64(busyTime)))
	if err != nil && !r.s.Defect.Forget {
		r.violated("agent %d refuses %T: %v", a.id, e, err)
	}
	for _, act := range out {
		switch act := act.(type) {
		case replica.Send:
			if a.sends++; a.sends == a.lastSend {
				r.kill(a)
			}
			if !a.alive {
				return
			}
			r.send(a, act.Message)
		case replica.Led:
			r.led(a, act)
		}
	}
}

// send brings a message to another agent, or does not.
func (r *sequenceRun) send(from *peer, msg replica.Message) {
	to, text := r.agents[msg.To], msg.Encode()
	r.out.Messages++
	r.out.Bytes += len(text)
	pair := [2]int{from.id, msg.To}
	r.nth[pair]++
	f := r.fate(r.nth[pair]<<8|5, from.id, msg.To)
	if to == nil || r.losing > 0 && int(f%100) < r.losing || r.side[from.id] != r.side[msg.To] && f>>8&1 == 0 {
		return
	}
	delay := 1 + Time(f>>16%50)
	if far := max(from.slow, to.slow); far > 0 {
		delay += Time(f >> 24 % uint64(far))
	}
	if r.s.Steady {
		delay = steadyDelay
	}
	at := r.Now + delay
	if r.losing == 0 { // else they overtake each other
		at = max(at, r.last[pair])
		r.last[pair] = at
	}
	r.After(at-r.Now, func() { r.arrive(from.id, to, text) })
	if r.losing > 0 && f>>40%8 == 0 {
		r.After(at-r.Now+Time(f>>48%300), func() { r.arrive(from.id, to, text) })
	}
}

// arrive hands a message over, unless the network is cut: then it waits.
func (r *sequenceRun) arrive(from int, to *peer, text []byte) {
	if r.side[from] != r.side[to.id] {
		r.After(tickEvery, func() { r.arrive(from, to, text) })
		return
	}
	r.awake(to, func() {
		msg, err := replica.Decode(text)
		if err != nil {
			r.violated("what agent %d has sent is no message: %v", from, err)
			return
		}
		r.step(to, replica.Received{Message: msg})
	})
}

// propose lets some agent propose its next entry.
func (r *sequenceRun) propose(k int) {
	a := r.agents[r.order[r.fate(6, k, 0)%uint64(len(r.order))]]
	if a.alive && !r.quiet {
		r.awake(a, func() {
			a.proposed++
			a.sentAt = append(a.sentAt, r.Now)
			r.step(a, replica.Propose{Data: dataOf(a.id, a.proposed)})
		})
	}
}

// dataOf is what an agent proposes, by number.
func dataOf(agent, n int) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(agent)), uint64(n))
}

// befall lets something happen.
func (r *sequenceRun) befall(f Fault) {
	a := r.agents[f.Who]
	switch {
	case f.Kind == Lose:
		r.trace("%d of 100 messages are lost", f.Who)
		r.losing = f.Who
		r.After(f.For, func() { r.losing = 0 })
	case f.Kind == Cut:
		r.cut(f)
	case f.Kind == Join && a == nil:
		r.trace("agent %d comes", f.Who)
		r.join(f.Who)
	case f.Kind == Join || a == nil || !a.alive:
	case f.Kind == KillHost:
		r.kill(a)
	case f.Kind == PauseHost:
		r.trace("agent %d stands still", a.id)
		r.pause(a, f.For)
	case f.Kind == Retire:
		r.trace("agent %d is to leave", a.id)
		a.out = true
		r.forget(a.id, 5*tickEvery, func(*peer) bool { return true })
		r.After(busyTime, func() { r.kill(a) })
	case f.Kind == Slow:
		a.slow = 10 * tickEvery
		r.After(f.For, func() { a.slow = 0 })
	}
}

// kill ends an agent: each of the others learns of that at its own time.
func (r *sequenceRun) kill(a *peer) {
	if !a.alive {
		return
	}
	r.trace("agent %d dies", a.id)
	a.alive = false
	if r.s.Defect.Forget && a.id < r.s.Agents {
		r.After(5*tickEvery, func() {
			first := make([]int, r.s.Agents)
			for i := range first {
				first[i] = i
			}
			r.order = slices.DeleteFunc(r.order, func(id int) bool { return id == a.id })
			r.begin(a.id, first, first)
			r.agents[a.id].out = true
		})
		return
	}
	if r.leading == a.id {
		r.goneAt = r.Now
	}
	if !a.out {
		a.out = true
		r.forget(a.id, 15*tickEvery, func(*peer) bool { return true })
	}
}

// forget takes an agent from what some others know of who is there, each within a time.
func (r *sequenceRun) forget(id int, within Time, who func(*peer) bool) {
	for _, o := range r.order {
		if b := r.agents[o]; who(b) {
			r.know(b, 1+Time(r.fate(7, id, b.id)%uint64(within)), func() {
				b.wanted = slices.DeleteFunc(slices.Clone(b.wanted), func(x int) bool { return x == id })
			})
		}
	}
}

func (r *sequenceRun) know(b *peer, d Time, change func()) {
	r.After(d, func() {
		if b.alive {
			change()
			r.awake(b, func() { r.step(b, replica.Members{Agents: b.wanted}) })
		}
	})
}

// join brings an agent that the others learn of, each at its own time.
func (r *sequenceRun) join(id int) {
	var there []int
	for _, o := range r.order {
		if b := r.agents[o]; b.alive && !b.out {
			there = append(there, o)
			r.know(b, 1+Time(r.fate(8, id, b.id)%uint64(5*tickEvery)), func() {
				if !r.agents[id].out {
					b.wanted = append(slices.Clone(b.wanted), id)
				}
			})
		}
	}
	r.begin(id, nil, append(there, id))
}

// pause lets an agent stand still. If that is for long, the others give it up, and it is ended some time after it goes on.
func (r *sequenceRun) pause(a *peer, d Time) {
	a.paused = max(a.paused, r.Now+d)
	if d > givenUpTime && !a.out {
		r.After(givenUpTime, func() {
			if a.alive && !a.out {
				a.out = true
				r.forget(a.id, 5*tickEvery, func(b *peer) bool { return b != a })
			}
		})
		r.After(d+Time(r.fate(9, a.id, 0)%uint64(10*tickEvery)), func() { r.kill(a) })
	}
	r.After(d, func() {
		r.meetAgain()
		for a.paused <= r.Now && len(a.inbox) > 0 && a.alive {
			do := a.inbox[0]
			do()
			a.inbox = a.inbox[1:]
		}
	})
}

// cut parts some agents from the others. One side gives the other up when that lasts.
func (r *sequenceRun) cut(f Fault) {
	r.trace("agents %v are cut off", f.Hosts)
	r.cuts++
	own := r.cuts
	r.side = map[int]bool{}
	for _, h := range f.Hosts {
		r.side[h] = true
	}
	side := r.side
	if f.For > givenUpTime {
		r.After(givenUpTime, func() { r.giveUp(side) })
	}
	r.After(f.For, func() {
		if r.cuts == own {
			r.trace("agents %v are back", f.Hosts)
			r.side = nil
			r.meetAgain()
		}
	})
}

// giveUp has the side where an agent leads give the other one up: it is voters that count, not agents.
func (r *sequenceRun) giveUp(side map[int]bool) {
	var goesOn *peer
	for _, o := range r.order {
		if a := r.agents[o]; a.alive && a.paused <= r.Now && a.m.Leads() && (goesOn == nil || goesOn.m.Term() < a.m.Term()) {
			goesOn = a
		}
	}
	if goesOn == nil {
		return
	}
	for _, o := range r.order {
		if a := r.agents[o]; side[o] != side[goesOn.id] && a.alive && !a.out {
			a.out = true
			r.forget(o, 5*tickEvery, func(b *peer) bool { return side[b.id] == side[goesOn.id] })
			if r.fate(10, o, 0)&1 == 0 { // else it goes on for some time, and nothing may come of that
				r.After(10*tickEvery, func() { r.kill(a) })
			}
		}
	}
}

// becomeQuiet ends all trouble, and those that were given up.
func (r *sequenceRun) becomeQuiet() {
	r.quiet, r.side, r.losing = true, nil, 0
	for _, o := range r.order {
		a := r.agents[o]
		a.slow = 0
		if a.paused > r.Now {
			r.pause(a, 0)
			a.paused = r.Now
		}
		if a.out && !r.s.Defect.Forget {
			r.kill(a)
		}
	}
}

func (r *sequenceRun) trace(format string, args ...any) {
	if r.s.Trace {
		r.out.Trace = append(r.out.Trace, fmt.Sprintf("%5d ", r.Now)+fmt.Sprintf(format, args...))
	}
}

func (r *sequenceRun) violated(format string, args ...any) {
	if r.failure == nil {
		r.failure = fmt.Errorf("at %d: "+format, append([]any{r.Now}, args...)...)
		r.trace("%v", r.failure)
	}
}

// Shrink takes out of a schedule that violates a property whatever it can do without.
func (s Sequence) Shrink() Sequence {
	fails := func(try Sequence) bool { _, err := RunSequence(try); return err != nil }
	for again := true; again; {
		again = false
		for i := range s.Faults {
			try := s
			try.Faults = slices.Delete(slices.Clone(s.Faults), i, i+1)
			if fails(try) {
				s, again = try, true
				break
			}
		}
		for s.Entries > 0 {
			try := s
			try.Entries--
			if !fails(try) {
				break
			}
			s = try
		}
	}
	return s
}

func hashOf(before uint64, e *replica.Entry) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %d %d %x", before, e.Origin, e.Seq, e.At, e.Data)
	return h.Sum64()
}
