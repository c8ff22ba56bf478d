package sim

import (
	"fmt"
	"math/rand"
	"runtime/debug"

	"libspx/core/comm"
	members "libspx/core/group"
	"libspx/core/ident"
	"libspx/core/mpierr"
)

// Collective creations (core/comm) under deaths: each process runs the library's own code on a goroutine of its own, one at a time, in an order that a
// seed decides. Every send and receive is a step, before which a process may die; news of a death come late.

// procFailed is the class of an error because a process has failed.
const procFailed = mpierr.ProcFailed

// Creation is one simulated creation: Ranks processes (and Others more on the other side, or children), of which Victim dies
// before its step number After, counted from 0.
type Creation struct {
	Kind          string // one of Creations
	Ranks, Others int
	Root          int
	Victim, After int
	Seed          int64
}

// Creations are the kinds of creations.
var Creations = []string{"dup", "split", "create", "group", "fromgroup", "inter", "merge", "spawn", "join", "private", "graph", "window", "free"}

type route struct {
	from, to int
	ctx      uint64
	tag      int
}

// maker is a process that takes part.
type maker struct {
	w       *creation
	id      int
	resume  chan struct{}
	steps   int
	dead    bool
	begun   bool
	done    bool
	wants   *route // waits for a message on it
	err     error
	made    bool // has what was to be made
	revoked bool // has taken it from all

	begunToFree bool // the window
}

type creation struct {
	Creation
	rnd    *rand.Rand
	procs  []*maker
	queues map[route][][]byte
	yield  chan struct{}
	end    bool // the simulation is over: those that wait for ever are let go
}

type gone struct{}

func (w *creation) member(i int) ident.ProcID { return ident.ProcID{Job: 1, Rank: uint32(i)} }

// step lets others run, and ends the victim when it is its turn.
func (p *maker) step() {
	if p.id == p.w.Victim && p.steps == p.w.After {
		p.dead = true
		panic(gone{})
	}
	p.steps++
	p.pause()
}

func (p *maker) pause() {
	p.w.yield <- struct{}{}
	<-p.resume
	if p.w.end || p.dead {
		panic(gone{})
	}
}

type creationLink struct {
	p   *maker
	to  *comm.Table
	ctx uint64
}

func (l creationLink) Send(to, tag int, data []byte) error {
	l.p.step()
	dst := int(l.to.Group().At(to).Rank)
	if w := l.p.w; w.procs[dst].dead && w.rnd.Intn(2) == 0 {
		return mpierr.New(procFailed, "process %d has failed", dst)
	}
	r := route{l.p.id, dst, l.ctx, tag}
	l.p.w.queues[r] = append(l.p.w.queues[r], append([]byte(nil), data...))
	return nil
}

func (l creationLink) Recv(from, tag int, buf []byte) (int, error) {
	l.p.step()
	src := int(l.to.Group().At(from).Rank)
	r := route{src, l.p.id, l.ctx, tag}
	for len(l.p.w.queues[r]) == 0 {
		if l.p.w.procs[src].dead {
			return 0, mpierr.New(procFailed, "process %d has failed", src)
		}
		l.p.wants = &r
		l.p.pause()
		l.p.wants = nil
	}
	msg := l.p.w.queues[r][0]
	l.p.w.queues[r] = l.p.w.queues[r][1:]
	return copy(buf, msg), nil
}

// open gives a communicator its links.
func (p *maker) open(m *comm.Made) *comm.Comm {
	c := comm.New(m)
	c.Link = creationLink{p, c.RemoteTable(), c.Ctx}
	c.LocalLink = c.Link
	if c.Inter() {
		c.LocalLink = creationLink{p, c.LocalTable(), comm.LocalCtx(c.Ctx)}
	}
	return c
}

// over is a communicator of some processes that exists before.
func (p *maker) over(ctx uint64, from, to int) *comm.Comm {
	var ids []ident.ProcID
	for i := from; i < to; i++ {
		ids = append(ids, p.w.member(i))
	}
	return p.open(comm.NewFromGroup(members.Of(ids...), ctx*1024, p.w.member(p.id)))
}

// pair is the communicator of two processes.
func (p *maker) pair(a, b int) *comm.Comm {
	return p.open(comm.NewFromGroup(members.Of(p.w.member(a), p.w.member(b)), 7*1024, p.w.member(p.id)))
}

func (p *maker) maker() comm.Maker {
	return comm.Maker{
		Build:  func(*comm.Made) error { p.made = true; return nil },
		GiveUp: func() { p.made, p.revoked = false, true },
	}
}

// run is what process p does: the creation, and one more on the same communicator, which must find its own messages whatever became of the first.
func (p *maker) run() error {
	w := p.w
	ids := comm.NewContexts(0, uint32(p.id))
	first := p.id < w.Ranks
	from, to := 0, w.Ranks
	if !first {
		from, to = to, to+w.Others
	}
	local := p.over(1, from, to)
	err := p.create(ids, local, first)
	if _, again := local.Split(ids, 0, 0, nil); again != nil && mpierr.ClassOf(again) != procFailed {
		return again
	}
	return err
}

func (p *maker) create(ids *comm.Contexts, local *comm.Comm, first bool) error {
	w := p.w
	keep := func(m *comm.Made, err error) error {
		p.made = err == nil
		return err
	}
	switch w.Kind {
	case "dup":
		return keep(local.Dup(ids, nil))
	case "graph":
		m, _, err := local.DupWith(ids, []byte{byte(p.id)}, nil, func(blocks [][]byte) ([][]byte, error) { return blocks, nil })
		return keep(m, err)
	case "split":
		return keep(local.Split(ids, p.id%2, 0, nil))
	case "create":
		return keep(local.Create(ids, local.Group()))
	case "group":
		return keep(local.CreateGroup(ids, local.Group(), 3))
	case "fromgroup":
		return keep(local.CreateFromGroup(ids))
	case "window":
		return p.window(local)
	case "free":
		return p.freed(local)
	case "private":
		return local.DupForAll(ids, p.maker())
	case "spawn":
		if !first {
			return p.child(ids, local)
		}
		_, err := local.Spawn(ids, w.Root, comm.Starter{
			Start: func() comm.Outcome {
				for _, c := range w.procs[w.Ranks:] {
					c.begun = true
				}
				return comm.Outcome{Asked: w.Others}
			},
			Meet: func() (*comm.Comm, error) { return p.pair(w.Root, w.Ranks), nil },
		}, p.maker())
		if err != nil && p.id == w.Root { // the agent ends those that have not met
			for _, c := range w.procs[w.Ranks:] {
				c.dead = c.dead || !c.made
			}
		}
		return err
	}
	root, other := w.Root, w.Ranks
	lead := root
	if !first {
		lead = 0
	}
	var pair *comm.Comm
	if local.Rank == lead {
		pair = p.pair(root, other)
	}
	if w.Kind == "join" {
		return comm.Join(ids, local, lead, pair, nil, p.maker())
	}
	if w.Kind == "merge" {
		p.steps = -1 << 20 // no process dies before
	}
	m, err := comm.InterCreate(ids, local, lead, pair, 1-pairRank(pair), 5, nil)
	if err != nil || w.Kind == "inter" {
		return keep(m, err)
	}
	p.steps = 0
	return keep(p.open(m).Merge(ids, first))
}

func pairRank(pair *comm.Comm) int {
	if pair == nil {
		return 0
	}
	return pair.Rank
}

// child is MPI_Init of a spawned process.
func (p *maker) child(ids *comm.Contexts, local *comm.Comm) error {
	var pair *comm.Comm
	if local.Rank == 0 {
		pair = p.pair(p.w.Root, p.w.Ranks)
	}
	return comm.Join(ids, local, 0, pair, nil, p.maker())
}

// RunCreation runs a creation. The error is the first rule that was broken: a process waits for ever, has an error of another class, or has what was to
// be made while a living process has not, and none has told it.
func RunCreation(c Creation) error {
	w := &creation{Creation: c, rnd: rand.New(rand.NewSource(c.Seed)), queues: map[route][][]byte{}, yield: make(chan struct{})}
	for i := range c.Ranks + c.Others {
		p := &maker{w: w, id: i, resume: make(chan struct{}), begun: i < c.Ranks || c.Kind != "spawn"}
		w.procs = append(w.procs, p)
		go func() {
			defer func() {
				if why := recover(); why != nil && why != (gone{}) {
					p.err = fmt.Errorf("%v\n%s", why, debug.Stack())
				}
				p.done = true
				w.yield <- struct{}{}
			}()
			<-p.resume
			if !w.end {
				p.err = p.run()
			}
		}()
	}
	for {
		ready := w.ready()
		if len(ready) == 0 {
			break
		}
		ready[w.rnd.Intn(len(ready))].resume <- struct{}{}
		<-w.yield
	}
	err := w.check()
	w.end = true
	for _, p := range w.procs {
		if !p.done {
			p.resume <- struct{}{}
			<-w.yield
		}
	}
	return err
}

// ready lists those that can go on.
func (w *creation) ready() (out []*maker) {
	for _, p := range w.procs {
		waits := p.wants != nil && len(w.queues[*p.wants]) == 0 && !w.procs[p.wants.from].dead
		if !p.done && p.begun && (!waits || p.dead) {
			out = append(out, p)
		}
	}
	return out
}

func (w *creation) check() error {
	have, lack, told := -1, -1, false
	for _, p := range w.procs {
		switch {
		case p.dead || !p.begun:
			continue
		case !p.done:
			return fmt.Errorf("process %d waits for %d for ever", p.id, p.wants.from)
		case p.err != nil && mpierr.ClassOf(p.err) != procFailed:
			return fmt.Errorf("process %d: %v", p.id, p.err)
		}
		if p.made {
			have = p.id
		} else {
			lack = p.id
		}
		told = told || p.revoked
	}
	whole := w.Kind == "spawn" || w.Kind == "join" || w.Kind == "private" || w.Kind == "window"
	if whole && have >= 0 && lack >= 0 && !told {
		return fmt.Errorf("process %d has it, process %d has not, and none has told it", have, lack)
	}
	return nil
}
