package sim

import (
	"fmt"

	"libspx/ft/agree"
)

// outcome is what is known of an agreement from outside.
type outcome struct {
	decision agree.Decision
	first    int // who returned first; -1: nobody yet
	gave     map[int]agree.Contribution
	stay     []int // the members that the decision leaves
}

// contributed keeps what a member brings in.
func (r *jobRun) contributed(p *proc, c *part, given agree.Contribution) {
	key := agreement{c.ctx, c.num}
	if r.decided[key] == nil {
		r.decided[key] = &outcome{first: -1, gave: map[int]agree.Contribution{}}
	}
	r.decided[key].gave[p.id] = given
}

// returned checks the safety of one return, and goes on.
func (r *jobRun) returned(p *proc, c *part, d agree.Decision) {
	if c.back++; c.back != c.num || c.then == nil {
		r.violated("process %d returns from an agreement that it is not in", p.id)
		return
	}
	key := agreement{c.ctx, c.num}
	o := r.decided[key]
	r.out.Returned = r.Now
	switch {
	case o.first < 0:
		o.first, o.decision, o.stay = p.id, d, c.survivors(d)
		r.trace("agreement %d of communicator %d: flags %08x, failed %v, acknowledged %v", c.num, c.name, d.Flags, d.Failed, d.Acked)
		r.valid(c, o)
	case o.decision.Flags != d.Flags || o.decision.Context != d.Context || !o.decision.Failed.Equal(d.Failed) || !o.decision.Acked.Equal(d.Acked):
		r.violated("agreement %d of communicator %d: process %d returned %+v, process %d %+v",
			c.num, c.name, p.id, d, o.first, o.decision) // also of the dead: the agreement is uniform
	}
	then := c.then
	c.then = nil
	then(d.Context, o.stay)
	r.finished(p)
}

// valid checks a decision when the first member returns it: later there are less living members, and no other decision.
func (r *jobRun) valid(c *part, o *outcome) {
	d, flags, given := o.decision, ^uint32(0), false
	name := fmt.Sprintf("agreement %d of communicator %d", c.num, c.name)
	for rank, p := range c.procs {
		g, gave := o.gave[p]
		if gave {
			flags &= g.Flags
			given = given || g.Context == d.Context
		}
		switch living := !r.gone[p]; {
		case !living:
		case d.Failed.Has(rank):
			r.violated("%s excludes the living process %d: %v", name, p, d.Failed)
		case !gave:
			r.violated("%s was decided without the living process %d", name, p)
		case d.Flags&^g.Flags != 0:
			r.violated("%s: flags %x do not respect the living process %d's %x", name, d.Flags, p, g.Flags)
		case !g.Acked.Contains(d.Acked):
			r.violated("%s: acknowledged %v, but the living process %d only %v", name, d.Acked, p, g.Acked)
		}
	}
	if flags&^d.Flags != 0 {
		r.violated("%s: flags %x lack bits that everybody gave (%x)", name, d.Flags, flags)
	}
	if !given {
		r.violated("%s: context %x is nobody's", name, d.Context)
	}
}

// ended checks the liveness after the last event: nothing more will happen.
func (r *jobRun) ended() error {
	gone := map[int]bool{}
	for p, is := range r.gone {
		if is {
			gone[p] = true
		}
	}
	knows := map[uint64][2]int{} // of a revocation: how many do, how many do not
	for _, p := range r.procs {
		switch {
		case r.decider < 0 && r.Alive[p.id] && !p.left:
			return fmt.Errorf("process %d has outlived the job", p.id)
		case r.fenced[p.id] && r.Alive[p.id]:
			return fmt.Errorf("process %d has outlived its host", p.id)
		case r.gone[p.id]:
			continue
		case p.cur != nil && !p.done:
			return fmt.Errorf("process %d hangs in operation %d", p.id, p.op)
		}
		for _, c := range p.order {
			if c.num != c.back {
				return fmt.Errorf("process %d hangs in agreement %d of communicator %d", p.id, c.num, c.name)
			}
			if dead := c.ranksOf(gone); !c.m.FailedSet().Equal(dead) {
				return fmt.Errorf("process %d knows of the deaths %v in communicator %d, not %v", p.id, c.m.FailedSet(), c.name, dead)
			}
			for _, q := range c.procs {
				if !r.gone[q] && r.procs[q].cur == nil {
					return fmt.Errorf("process %d waits, and process %d counts on it in communicator %d", q, p.id, c.name)
				}
			}
			k := knows[c.ctx]
			if c.m.Revoked() {
				k[0]++
			} else {
				k[1]++
			}
			knows[c.ctx] = k
			if k[0] > 0 && k[1] > 0 {
				return fmt.Errorf("some living processes know that communicator %d is revoked, others (as %d) do not", c.name, p.id)
			}
		}
	}
	return nil
}
