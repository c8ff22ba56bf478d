package sim

import (
	"bytes"
	"encoding/binary"
	"slices"

	"libspx/ft/replica"
)

// What must never happen to a sequence, and what must have happened at the end.

// Apply takes an agent's next entry: it is the next one of the sequence, or makes it longer.
func (c copyOf) Apply(e replica.Entry) {
	r, a := c.r, c.a
	if r.s.Trace {
		r.trace("agent %d applies entry %d of agent %d", a.id, e.Seq, e.Origin)
	}
	if a.applied == len(r.sequence) {
		r.longer(e)
	} else if known := r.sequence[a.applied]; known.Index != e.Index || known.Origin != e.Origin || known.Seq != e.Seq || known.At != e.At || !bytes.Equal(known.Data, e.Data) {
		r.violated("agent %d applies %v where others have %v", a.id, e, known)
		return
	}
	a.applied++
	if a.applied < len(r.hashes) {
		a.hash = r.hashes[a.applied]
	}
	if e.Origin == a.id && int(e.Seq) <= len(a.sentAt) && r.s.Steady {
		r.out.Latencies = append(r.out.Latencies, r.Now-a.sentAt[e.Seq-1])
	}
}

// longer takes an entry that no agent had before: it was proposed, all before it of its agent are there, and no time goes back.
func (r *sequenceRun) longer(e replica.Entry) {
	by := r.agents[e.Origin]
	if n := len(r.sequence); n > 0 && (e.Index <= r.sequence[n-1].Index || e.At < r.sequence[n-1].At) {
		r.violated("%v stands behind %v", e, r.sequence[n-1])
	}
	if by == nil || int(e.Seq) > by.proposed && !r.s.Defect.Forget || !bytes.Equal(e.Data, dataOf(e.Origin, int(e.Seq))) {
		r.violated("%v was not proposed by its agent", e)
	}
	if e.Seq != r.numbers[e.Origin]+1 {
		r.violated("entry %d of agent %d comes behind its entry %d", e.Seq, e.Origin, r.numbers[e.Origin])
	}
	r.numbers[e.Origin] = e.Seq
	r.sequence = append(r.sequence, e)
	r.hashes = append(r.hashes, hashOf(r.hashes[len(r.hashes)-1], &e))
}

// Save is how far an agent is.
func (c copyOf) Save() []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(c.a.applied)), c.a.hash)
}

// Load takes over how far another one was: what that had is a part of the sequence.
func (c copyOf) Load(b []byte, _ replica.Mark) {
	n, k := binary.Uvarint(b)
	hash, _ := binary.Uvarint(b[k:])
	c.r.trace("agent %d is given the first %d entries", c.a.id, n)
	if int(n) < c.a.applied || n >= uint64(len(c.r.hashes)) || c.r.hashes[n] != hash {
		c.r.violated("agent %d, with %d entries, gets %d that are not the sequence", c.a.id, c.a.applied, n)
		return
	}
	c.a.applied, c.a.hash = int(n), hash
}

// led hears who leads: one in each term, and what was applied before its time has been applied by itself when it begins to decide.
func (r *sequenceRun) led(a *peer, l replica.Led) {
	if l.Leader < 0 || l.Term == 0 {
		return
	}
	if known, ok := r.leaders[l.Term]; ok && known != l.Leader {
		r.violated("agents %d and %d both lead in term %d", known, l.Leader, l.Term)
	} else if !ok {
		r.trace("agent %d leads in term %d", l.Leader, l.Term)
		r.leaders[l.Term] = l.Leader
	}
	if l.Leader == a.id && a.elected < l.Term {
		a.elected, a.base = l.Term, len(r.sequence)
	}
	if !l.Self {
		return
	}
	if a.applied < a.base {
		r.violated("agent %d leads with %d entries; there were %d when it was elected", a.id, a.applied, a.base)
	}
	if r.leading != a.id && r.goneAt > 0 {
		r.out.Gaps = append(r.out.Gaps, r.Now-r.goneAt)
		r.goneAt = 0
	}
	r.leading = a.id
}

// mostAlone is for how many periods an agent may lead that cannot talk with a majority of its voters: two election times, behind the last word that was under way.
const mostAlone = 2*10 + 1 + 11

// checkAlone: who cannot talk with a majority of its voters stops leading.
func (r *sequenceRun) checkAlone(a *peer) {
	if a.alone++; majorities(a.m.Councils(), func(v int) bool {
		b := r.agents[v]
		return b != nil && b.alive && (b == a || b.paused <= r.Now && r.side[b.id] == r.side[a.id])
	}) {
		a.alone = 0
	}
	if a.alone > mostAlone && a.m.Leads() && !r.s.Defect.Forget {
		r.violated("agent %d still leads after %d periods without a majority", a.id, a.alone)
	}
}

// majorities: of each list a majority is of that kind.
func majorities(lists [][]int, is func(agent int) bool) bool {
	for _, list := range lists {
		n := 0
		for _, v := range list {
			if is(v) {
				n++
			}
		}
		if 2*n <= len(list) {
			return false
		}
	}
	return true
}

// meetAgain lets the time begin anew in which agents cannot talk with each other.
func (r *sequenceRun) meetAgain() {
	for _, a := range r.agents {
		a.alone = 0
	}
}

// hopeful: of the voters that each living agent knows a majority lives.
func (r *sequenceRun) hopeful() bool {
	some := false
	for _, o := range r.order {
		a := r.agents[o]
		if !a.alive || a.out || len(a.m.Voters()) == 0 {
			continue
		}
		some = true
		if !majorities(a.m.Councils(), func(v int) bool { b := r.agents[v]; return b != nil && b.alive }) {
			return false
		}
	}
	return some
}

// goal is what is not yet as it should be in the end; empty: all is.
func (r *sequenceRun) goal() string {
	var there []int
	leader := (*peer)(nil)
	for _, o := range r.order {
		a := r.agents[o]
		if !a.alive {
			continue
		}
		if a.m.Leads() && !a.out && (leader == nil || leader.m.Term() < a.m.Term()) {
			leader = a
		}
		if !a.out {
			there = append(there, o)
		}
	}
	switch {
	case leader == nil && len(there) == 0:
		return ""
	case leader == nil:
		return "no agent leads"
	}
	voters, followers := leader.m.Voters(), leader.m.Followers()
	want := min(len(there), replica.MostVoters)
	if want -= 1 - want%2; len(voters) != want || len(voters)+len(followers) != min(len(there), replica.MostVoters+replica.MostFollowers) {
		return "it is not those who are there that vote and follow"
	}
	for _, o := range there {
		a := r.agents[o]
		member := slices.Contains(voters, o) || slices.Contains(followers, o)
		switch {
		case a.m.Open() > 0:
			return "what an agent has proposed is not applied"
		case member && a.applied < len(r.sequence):
			return "an agent lags behind"
		}
	}
	for _, v := range append(voters, followers...) {
		if !slices.Contains(there, v) {
			return "who votes or follows is not there"
		}
	}
	return ""
}
