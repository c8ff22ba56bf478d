package follow

// An Office is one agent's part in the question which agent decides about a job. Its shell
// (launch/agent, or sim) tells it what happens, and asks it after each step of the sequence.
//
// The agent that decides does nothing of weight (job.Weighty) before its mirror has applied the
// event that it comes from: so a majority knows of it, and whoever decides next goes on from there.
// When another agents' claim stands in the sequence, what this one writes is passed over from there
// on, and so it does nothing more, whether it knows of the claim or not.
//
// An agent claims the office when the one that has it is lost, as far as it knows, and it leads the
// sequence itself: then it has heard of a majority a moment ago, and is not the one that was cut
// off. Who has lost the one that decides and is not called by another one ends the processes of its
// host after some time; so does the one that decides when nothing that it writes is applied any
// more.
//
// Time is counted in ticks: the shell makes none while its process stands still.
type Office struct {
	mirror *Mirror
	self   int
	limit  int
	waits  int    // ticks
	era    uint64 // the latest of which this agent knows
	seen   uint64 // the latest that stands in the sequence
	lost   bool   // who decides in era is
	claims uint64 // the latest that this agent has claimed; 0: none
	// events that were when this agent came to decide, and those that it has noted since
	noted uint64
	holds bool // this agent decides
	left  bool
}

// A Verdict is what an agent has to do.
type Verdict int

// Verdicts. Each but Nothing is given once in an era, Leave once.
const (
	Nothing Verdict = iota
	Claims          // propose Claim()
	Decides         // go on from the mirror in the place of the one that has decided so far
	Leaves          // end the processes of this host: the others go on without them, or may
)

// NewOffice makes the part of the agent self. limit is for how many ticks it waits for another one
// to decide, or for what it has written to be applied.
func NewOffice(mirror *Mirror, self, limit int) *Office {
	return &Office{mirror: mirror, self: self, limit: limit, holds: mirror.Decider == self}
}

// Begin says in which era an agent has begun, when others had decided before.
func (o *Office) Begin(era uint64) { o.era = max(o.era, era) }

// Era counts those that have decided before.
func (o *Office) Era() uint64 { return o.era }

// Allow changes for how many ticks this agent waits.
func (o *Office) Allow(limit int) { o.limit = limit }

// Limit is for how many ticks it does.
func (o *Office) Limit() int { return o.limit }

// Noted takes note that the agent, which decides, has proposed an event.
func (o *Office) Noted() { o.noted++ }

// Settled reports whether a majority has all that this agent has noted, and it still decides.
func (o *Office) Settled() bool { return o.holds && !o.left && o.mirror.Events >= o.noted }

// Left: this agent was told to end its processes.
func (o *Office) Left() bool { return o.left }

// Lose takes note that who decides in an era is lost, as far as this agent knows.
func (o *Office) Lose(era uint64) {
	if era == o.era && !o.holds {
		o.lost = true
	}
}

// Called takes note that the agent which decides in an era has called this one; false: that is
// over.
func (o *Office) Called(era uint64) bool {
	if era <= o.era || o.left || o.holds {
		return false
	}
	o.turn(era)
	return true
}

// turn begins an era.
func (o *Office) turn(era uint64) { o.era, o.lost, o.waits = era, false, 0 }

// Claim is what this agent has to propose.
func (o *Office) Claim() []byte { return Claim(o.mirror.Era) }

// Expel: the others say that this agent is none of theirs any more.
func (o *Office) Expel() Verdict {
	if o.left {
		return Nothing
	}
	o.left = true
	return Leaves
}

// Superseded: an agent for which this one has decided says that another one does, after so many
// others. A majority has made that one's claim stand, whether this one has heard of it or not.
func (o *Office) Superseded(era uint64) Verdict {
	if o.left || !o.holds || era <= o.era {
		return Nothing
	}
	o.left = true
	return Leaves
}

// Look is to be called when entries may have been applied.
func (o *Office) Look() Verdict {
	switch {
	case o.left:
	case o.holds && o.mirror.Decider != o.self:
		o.left = true
		return Leaves
	case !o.holds && o.mirror.Decider == o.self && o.mirror.Err == nil:
		o.turn(o.mirror.Era)
		o.holds, o.noted = true, o.mirror.Events
		return Decides
	}
	return Nothing
}

// Tick lets a period pass. leads: this agent leads the sequence.
func (o *Office) Tick(leads bool) Verdict {
	if o.seen != o.mirror.Era { // another agent has claimed the office, and will call
		o.seen, o.waits = o.mirror.Era, 0
	}
	switch {
	case o.left:
		return Nothing
	case !o.lost && !(o.holds && o.mirror.Events < o.noted):
		o.waits = 0
		return Nothing
	case o.lost && leads && o.mayClaim():
		o.claims = o.mirror.Era + 1
		return Claims
	}
	if o.waits++; o.waits < o.limit {
		return Nothing
	}
	o.left = true
	return Leaves
}

// mayClaim: this agent knows what the one that is lost knew, and no other one has claimed its
// office, or has not called since.
func (o *Office) mayClaim() bool {
	m := o.mirror
	return o.claims <= m.Era && m.Err == nil && m.Machine.Started() &&
		(m.Era == o.era || o.waits >= o.limit/callShare)
}

// callShare is in which part of the limit an agent has called the others that has claimed the
// office.
const callShare = 4
