package sim

import (
	"slices"

	"libspx/ft/agree"
	"libspx/ft/member"
)

// proc is a simulated process: the shell around the machines of its communicators.
type proc struct {
	id, host int
	told     map[int]bool // processes that it knows to have ended
	seen     int          // how much of its agent's news
	looks    Time         // when it is to look at them; in Rounds
	comms    map[uint64]*part
	order    []*part
	early    map[uint64][]frame // messages for communicators that it does not know yet

	cur     *part // nil: started, and not welcomed yet
	op      int
	pending int  // agreements that the present operation waits for
	fresh   int  // contexts that it has brought in
	done    bool // with all operations
	left    bool // has finalized
	sends   int
}

// part is a process's part in a communicator.
type part struct {
	*group
	m    *member.Machine
	num  int                           // agreements called
	back int                           // and returned from
	then func(ctx uint64, procs []int) // what is done with the context and the members that it leaves
}

type frame struct {
	from int
	data []byte
}

// start makes a process. It knows of the deaths that its agent knows of; op is its first operation.
func (r *jobRun) start(host, op int) *proc {
	p := &proc{id: len(r.procs), host: host, told: map[int]bool{}, comms: map[uint64]*part{}, early: map[uint64][]frame{}, op: op}
	r.procs = append(r.procs, p)
	r.onHost[host] = append(r.onHost[host], p)
	r.Alive[p.id] = true
	r.look(p)
	return p
}

// look takes in what the agent has published.
func (r *jobRun) look(p *proc) {
	news := r.agents[p.host].known[p.seen:]
	if len(news) == 0 || p.left {
		return
	}
	p.seen += len(news)
	for _, q := range news {
		p.told[q] = true
	}
	for _, c := range slices.Clone(p.order) {
		if r.Alive[p.id] {
			r.act(p, c, c.m.Failed(c.ranksOf(p.told)))
		}
	}
}

// join gives a process its part in a communicator.
func (r *jobRun) join(p *proc, g *group) *part {
	if c := p.comms[g.ctx]; c != nil {
		return c
	}
	c := &part{group: g, m: member.New(g.where, g.rank[p.id], g.ranksOf(p.told))}
	p.comms[g.ctx] = c
	p.order = append(p.order, c)
	early := p.early[g.ctx]
	delete(p.early, g.ctx)
	for _, f := range early {
		r.receive(p, c, f)
	}
	return c
}

func (r *jobRun) receive(p *proc, c *part, f frame) {
	out, err := c.m.Receive(c.rank[f.from], f.data)
	if err != nil {
		r.violated("process %d refuses a message of process %d: %v", p.id, f.from, err)
		return
	}
	r.act(p, c, out)
}

// act carries out what a machine asks for.
func (r *jobRun) act(p *proc, c *part, out member.Output) {
	for _, s := range out.Sends {
		to, data := c.procs[s.To], s.Data
		if !r.send(p, to, func() { r.control(r.procs[to], c.ctx, frame{p.id, data}) }) {
			return
		}
	}
	if out.Revoked {
		r.out.Revoked = r.Now
	}
	if out.Done != nil && r.Alive[p.id] {
		r.returned(p, c, *out.Done)
	}
}

// send is false when the process dies instead.
func (r *jobRun) send(p *proc, to int, deliver func()) bool {
	if !r.Alive[p.id] {
		return false
	}
	p.sends++
	for _, f := range r.job.Faults {
		if f.Kind == Kill && f.Who == p.id && f.Step == p.sends {
			r.trace("process %d dies instead of its send %d, to process %d", p.id, p.sends, to)
			r.die(p.id)
			return false
		}
	}
	r.post(p.id, to, deliver)
	return true
}

// control is the arrival of a control message at a process.
func (r *jobRun) control(p *proc, ctx uint64, f frame) {
	if r.fenced[f.from] && p.told[f.from] && !r.job.Defect.NoDrop || p.left {
		return
	}
	if c := p.comms[ctx]; c != nil {
		r.receive(p, c, f)
	} else if !r.job.Defect.NoEarly {
		p.early[ctx] = append(p.early[ctx], f)
	}
}

// agree calls the next agreement of a communicator; then gets the context and the members that it returns.
func (r *jobRun) agree(p *proc, c *part, ctx uint64, then func(uint64, []int)) {
	c.num++
	contribution := agree.Contribution{Flags: ^uint32(0), Context: ctx}
	f := r.fate(uint64(c.num)<<8|3, p.id, int(c.ctx>>32)+int(c.ctx))
	if f&3 == 0 {
		contribution.Flags &^= 1 << (f >> 8 & 31)
	}
	if f&4 == 0 {
		contribution.Acked = c.ranksOf(p.told)
	}
	p.pending++
	c.then = then
	r.contributed(p, c, contribution)
	r.act(p, c, c.m.Agree(contribution))
}

// freshContext is a context that nobody else uses.
func (p *proc) freshContext() uint64 {
	p.fresh++
	return uint64(p.id+1)<<32 | uint64(p.fresh)
}

// next begins the process's next operation.
func (r *jobRun) next(p *proc) {
	if p.op == len(r.job.Ops) {
		p.done = true
		return
	}
	op, c := r.job.Ops[p.op], p.cur
	p.op++
	switch op.Kind {
	case Agree:
		r.agree(p, c, 0, func(uint64, []int) {})
	case Shrink:
		r.agree(p, c, p.freshContext(), func(ctx uint64, procs []int) { p.cur = r.made(p, ctx, procs) })
	case Both:
		r.both(p, c)
	case Inter:
		r.inter(p, c)
	case Grow:
		r.grow(p, c, op.N)
	case Leave:
		r.agree(p, c, p.freshContext(), func(ctx uint64, procs []int) { r.leave(p, ctx, procs, op.N) })
	}
}

// survivors are the members that a decision leaves.
func (c *part) survivors(d agree.Decision) (procs []int) {
	for rank, p := range c.procs {
		if !d.Failed.Has(rank) {
			procs = append(procs, p)
		}
	}
	return procs
}

// made is the return of a communicator: all of its processes must have got the same.
func (r *jobRun) made(p *proc, ctx uint64, procs []int) *part {
	g := r.groups[ctx]
	if g == nil {
		g = r.newGroup(ctx, procs)
		r.trace("communicator %d: %v", g.name, procs)
	} else if &g.procs[0] != &procs[0] && !slices.Equal(g.procs, procs) {
		r.violated("communicator %d is %v at process %d, and %v elsewhere", g.name, procs, p.id, g.procs)
	}
	if _, in := g.rank[p.id]; !in {
		r.violated("process %d is not in the communicator %v that it gets", p.id, procs)
		return p.cur
	}
	return r.join(p, g)
}

// both shrinks two overlapping communicators at once.
func (r *jobRun) both(p *proc, c *part) {
	var even []int
	for rank, q := range c.procs {
		if rank%2 == 0 {
			even = append(even, q)
		}
	}
	shrink := func(c *part) {
		r.agree(p, c, p.freshContext(), func(ctx uint64, procs []int) { r.made(p, ctx, procs) })
	}
	p.pending++ // not over before both have been called
	if slices.Contains(even, p.id) {
		ctx := c.ctx ^ subgroup<<56
		g := r.groups[ctx]
		if g == nil {
			g = r.newGroup(ctx, even)
			r.trace("communicator %d: %v", g.name, even)
		}
		shrink(r.join(p, g))
	}
	if r.Alive[p.id] {
		shrink(c)
	}
	r.finished(p)
}

// inter shrinks an intercommunicator, whose members are numbered as the library numbers them: those of the first group, then those of the second. Its two
// groups may see different deaths first, and one of them may be gone altogether.
func (r *jobRun) inter(p *proc, c *part) {
	var sides [2][]int
	for rank, q := range c.procs {
		sides[rank%2] = append(sides[rank%2], q)
	}
	ctx := c.ctx ^ bridge<<56
	g := r.groups[ctx]
	if g == nil {
		g = r.newGroup(ctx, slices.Concat(sides[0], sides[1]))
		r.trace("communicator %d: %v and %v", g.name, sides[0], sides[1])
	}
	p.cur = r.join(p, g)
	r.agree(p, p.cur, p.freshContext(), func(ctx uint64, procs []int) { p.cur = r.made(p, ctx, procs) })
}

// leave lets the last members finalize. One stays.
func (r *jobRun) leave(p *proc, ctx uint64, procs []int, n int) {
	stay := procs[:max(1, len(procs)-n)]
	if slices.Contains(stay, p.id) {
		p.cur = r.made(p, ctx, stay)
		return
	}
	r.trace("process %d finalizes", p.id)
	p.done, p.left, r.gone[p.id] = true, true, true
	r.noticed(p.id)
}

// grow lets the lowest member start processes, before all agree on who is in the new communicator.
func (r *jobRun) grow(p *proc, c *part, n int) {
	lowest := c.procs[c.m.FailedSet().FirstAbsent()]
	ctx := p.freshContext()
	enter := func() {
		r.agree(p, c, ctx, func(ctx uint64, procs []int) {
			p.cur = r.made(p, ctx, slices.Concat(procs, r.newcomer[ctx]))
			r.welcome(p, p.cur.group, p.op)
		})
	}
	if lowest != p.id {
		enter()
		return
	}
	p.pending++
	r.later(p, 20+Time(r.fate(4, p.id, p.op)%60), func() {
		for k := range n {
			if h := r.room(p.host + k); h >= 0 {
				q := r.start(h, p.op)
				r.newcomer[ctx] = append(r.newcomer[ctx], q.id)
				r.trace("process %d is started on host %d", q.id, h)
			}
		}
		enter()
		r.finished(p)
	})
}

// welcome tells new processes of the communicator that they are in. Who has just heard it tells the others again: those who told it may
// have died in the middle.
func (r *jobRun) welcome(p *proc, g *group, op int) bool {
	if r.job.Defect.NoWelcome && p.id != g.procs[0] {
		return true
	}
	for _, id := range r.newcomer[g.ctx] {
		to := r.procs[id]
		if to == p {
			continue
		}
		alive := r.send(p, id, func() {
			if to.cur == nil {
				to.op = op
				to.cur = r.join(to, g)
				if r.welcome(to, g, op) {
					r.next(to)
				}
			}
		})
		if !alive {
			return false
		}
	}
	return true
}

// finished is the end of a part of an operation; the next one begins after the last.
func (r *jobRun) finished(p *proc) {
	if p.pending--; p.pending == 0 && r.Alive[p.id] && !p.done {
		r.later(p, Time(r.fate(5, p.id, p.op)%10), func() { r.next(p) })
	}
}
