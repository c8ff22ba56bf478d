package sim

import (
	"errors"
	"slices"

	"libspx/ft/agree"
)

// teams are communicators as package ft leaves them to those that build on it: agreements are uniform and exclude no living process, collectives fail at some
// processes and succeed at others when one of them dies meanwhile, and revocations reach all that live if they reach one. The protocols below are
// simulated by jobs (job.go).
type teams struct {
	*steps
	known   []map[int]bool // by process: the processes that it knows to be dead
	flaws   int            // collectives that are to fail at a process without any death, as for want of memory
	revoked []map[*team]bool
}

// team is a communicator. Members are processes, by rank.
type team struct {
	members     []int
	agreements  []*accord
	collectives []*collective
	agreed      map[int]int // by process: agreements called
	called      map[int]int // collectives called
}

// accord is an agreement of a team.
type accord struct {
	flags map[int]uint32
	over  bool
	said  uint32
	next  *team
}

// collective is a collective operation of a team.
type collective struct {
	gave   map[int]any
	broken bool          // it fails wherever it has not succeeded
	parts  map[int]*team // made by it, by color
}

// errBroken is what a collective fails with, here and in takeover.go.
var errBroken = errors.New("a member has failed")

func newTeam(members []int) *team {
	return &team{members: members, agreed: map[int]int{}, called: map[int]int{}}
}

// enter makes another process known.
func (w *teams) enter() {
	w.known = append(w.known, map[int]bool{})
	w.revoked = append(w.revoked, map[*team]bool{})
}

// lives tells whether a process takes part in agreements: it is not dead, and has not returned.
func (w *teams) lives(id int) bool { return !w.tasks[id].dead && !w.tasks[id].done }

// ends makes a process known to have returned.
func (w *teams) ends(id int) {
	w.tasks[id].done = true
	w.version++
	w.died(id)
}

// kill ends a process from outside.
func (w *teams) kill(id int) {
	if t := w.tasks[id]; !t.dead && !t.done {
		t.dieAt = t.made
		w.version++
	}
}

// died spreads the death of a process.
func (w *teams) died(id int) {
	for p := range w.known {
		w.news = append(w.news, func() { w.known[p][id] = true })
	}
}

// revoke is a revocation by p: a flood that reaches all that live, or none.
func (w *teams) revoke(p int, t *team) {
	if w.revoked[p][t] {
		return
	}
	w.version++
	w.revoked[p][t] = true
	for _, q := range t.members {
		if q != p {
			w.news = append(w.news, func() {
				if w.lives(q) && (w.lives(p) || w.rnd.IntN(2) == 0) {
					w.revoke(q, t)
				}
			})
		}
	}
}

// broken tells whether p knows that t is of no use any more.
func (w *teams) broken(p int, t *team) bool {
	return w.revoked[p][t] || slices.ContainsFunc(t.members, func(q int) bool { return w.known[p][q] })
}

// decide is an agreement on flags, and a shrink unless agree.Calm is decided.
func (w *teams) decide(p *task, t *team, flags uint32) (uint32, *team) {
	k := t.agreed[p.id]
	t.agreed[p.id]++
	if k == len(t.agreements) {
		t.agreements = append(t.agreements, &accord{flags: map[int]uint32{}})
	}
	a := t.agreements[k]
	a.flags[p.id] = flags
	w.version++
	p.await(false, func() bool { return w.agreed(t, a) })
	if a.next != nil {
		for _, q := range t.members {
			if !slices.Contains(a.next.members, q) {
				w.known[p.id][q] = true
			}
		}
	}
	return a.said, a.next
}

// agreed decides as soon as all living members have called. Members that have died after that may be taken for living.
func (w *teams) agreed(t *team, a *accord) bool {
	if a.over {
		return true
	}
	a.said = ^uint32(0)
	var stay []int
	for _, q := range t.members {
		flags, gave := a.flags[q]
		switch {
		case w.lives(q) && !gave:
			return false
		case w.lives(q), gave && w.rnd.IntN(2) == 0:
			a.said &= flags
			stay = append(stay, q)
		}
	}
	a.over = true
	if a.said&agree.Calm == 0 {
		a.next = newTeam(stay)
	}
	w.version++
	return true
}

// collect is a collective: p gives part, and gets what all have given. enough tells what p needs of that.
func (w *teams) collect(p *task, t *team, part any, enough func(gave map[int]any) bool) (*collective, error) {
	p.step()
	k := t.called[p.id]
	t.called[p.id]++
	if w.revoked[p.id][t] {
		return nil, errBroken
	}
	if w.flaws > 0 && w.rnd.IntN(20) == 0 {
		w.flaws--
		return nil, errBroken
	}
	for k >= len(t.collectives) {
		t.collectives = append(t.collectives, &collective{gave: map[int]any{}, parts: map[int]*team{}})
	}
	c := t.collectives[k]
	c.gave[p.id] = part
	w.version++
	fails := func() bool {
		return c.broken || w.revoked[p.id][t] || slices.ContainsFunc(t.members, func(q int) bool { return w.known[p.id][q] })
	}
	p.await(false, func() bool { return enough(c.gave) || fails() })
	if !enough(c.gave) || fails() && w.rnd.IntN(2) == 0 {
		return nil, errBroken
	}
	return c, nil
}

// everyPart is what most collectives need.
func (t *team) everyPart(gave map[int]any) bool { return len(gave) == len(t.members) }

func (w *teams) greatest(p *task, t *team, values []int64) ([]int64, error) {
	c, err := w.collect(p, t, values, t.everyPart)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(values)
	for _, part := range c.gave {
		for i, v := range part.([]int64) {
			all[i] = max(all[i], v)
		}
	}
	return all, nil
}

// choice is what a member gives to a split.
type choice struct{ color, key int }

// split makes a team for each color; nil for colors below 0.
func (w *teams) split(p *task, t *team, color, key int) (*team, error) {
	c, err := w.collect(p, t, choice{color, key}, t.everyPart)
	if err != nil || color < 0 {
		return nil, err
	}
	if c.parts[color] == nil {
		var in []int
		for _, q := range t.members {
			if c.gave[q].(choice).color == color {
				in = append(in, q)
			}
		}
		slices.SortStableFunc(in, func(a, b int) int { return c.gave[a].(choice).key - c.gave[b].(choice).key })
		c.parts[color] = newTeam(in)
	}
	return c.parts[color], nil
}
