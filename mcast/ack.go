package mcast

import (
	"cmp"
	"slices"
)

// aggregation is the set of members known to have received an acked message: this process, and
// those behind it in the tree. When all have, or have died, it reports to the process from which
// the message came. A member that gets the message a second way reports to both: so reports lost
// with a dead process also reach the master, which sends the message again to all members without a
// report.
type aggregation struct {
	master uint32
	id     uint64
	parent uint32
	own    bool     // this process has still to receive it
	wait   []uint32 // members behind whose report is missing
	got    []Member
}

// behind records that the message was forwarded to child.
func (g *aggregation) behind(child uint32) {
	if g != nil {
		g.wait = append(g.wait, child)
	}
}

// gather begins to collect the report to peer, from which the message came; nil: no report is
// needed.
func (p *Process) gather(peer uint32, rec Record, own bool) *aggregation {
	if rec.Kind != Acked {
		return nil
	}
	g := &aggregation{master: rec.Master, id: rec.ID, parent: peer, own: own}
	if !own {
		g.got = []Member{{p.me, 1}}
	}
	p.acks = append(p.acks, g)
	return g
}

// isUnread reports whether the message, which has arrived before, has still to be received here.
func (p *Process) isUnread(rec Record) bool {
	return slices.ContainsFunc(p.acks, func(g *aggregation) bool {
		return g.own &&
			g.master == rec.Master && g.id == rec.ID
	})
}

// tell sends the reports that are complete now.
func (p *Process) tell(res *Result) {
	p.acks = slices.DeleteFunc(p.acks, func(g *aggregation) bool {
		if g.own || len(g.wait) > 0 && p.Defect != NoAggregation {
			return false
		}
		if !p.dead[g.parent] {
			slices.SortFunc(g.got, func(a, b Member) int { return cmp.Compare(a.Proc, b.Proc) })
			res.put(g.parent, Record{Kind: Got, Master: g.master, ID: g.id,
				Set: Encode(nil, slices.Compact(g.got))})
		}
		return true
	})
}

// Received is called when a receive has taken an acked message.
func (p *Process) Received(rec Record) Result {
	var res Result
	for _, g := range p.acks {
		if g.own && g.master == rec.Master && g.id == rec.ID {
			g.own = false
			g.got = append(g.got, Member{p.me, 1})
		}
	}
	p.tell(&res)
	return res
}

// got handles a report from a process behind, or one to the master.
func (p *Process) got(res *Result, from uint32, rec Record) {
	members, err := Decode(rec.Set, p.procs)
	if err != nil {
		return
	}
	if rec.Master == p.me {
		for _, m := range members {
			p.strike(res, m.Proc, func(k *kept) bool { return k.id == rec.ID }, false)
		}
		return
	}
	for _, g := range p.acks {
		if at := slices.Index(g.wait, from); at >= 0 && g.master == rec.Master && g.id == rec.ID {
			g.wait = slices.Delete(g.wait, at, at+1)
			g.got = append(g.got, members...)
			break
		}
	}
	p.tell(res)
}

// gone: process who sends no more reports. Its reports before it left may still arrive, or it has
// not had the message from this process: the master sends it again.
func (p *Process) gone(res *Result, who uint32, died bool) {
	p.acks = slices.DeleteFunc(p.acks, func(g *aggregation) bool { return died && g.master == who })
	for _, g := range p.acks {
		before := len(g.wait)
		g.wait = slices.DeleteFunc(g.wait, func(child uint32) bool { return child == who })
		if len(g.wait) < before && !died && p.Defect != NoLost {
			res.put(g.master, Record{Kind: Lost, Master: g.master, ID: g.id})
		}
	}
	p.tell(res)
}

// lost: so members answer this process.
func (p *Process) lost(res *Result, rec Record) {
	for _, k := range p.kept {
		if k.id == rec.ID && k.kind == Acked && !k.lossy {
			p.sendAll(res, k)
		}
	}
	p.passGone(res)
}

// passGone: members that have left have received their messages; their reports may be lost.
func (p *Process) passGone(res *Result) {
	for _, k := range p.kept {
		if k.lossy && k.kind == Acked {
			k.left = slices.DeleteFunc(k.left, func(m uint32) bool { return p.dead[m] })
			p.settle(res, k)
		}
	}
}

// Aggregation reports whether other processes depend on outstanding reports of this one: it must
// not leave.
func (p *Process) Aggregation() bool { return len(p.acks) > 0 }
