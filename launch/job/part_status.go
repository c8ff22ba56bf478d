package job

import "slices"

// How the parts of a system are, for spxctl ps and masters, and how much of them does
// not come again.

// StateAway is the state of a part that is not started yet.
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
