package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"

	"libspx/cluster/takeover"
)

// Takeovers (cluster/takeover) under deaths: each process of a cluster runs the library's own
// Process on a goroutine of its own, one at a time, in an order that a seed decides. Every call of
// its Shell is a step, before and after which a process may be killed; news of a death come late.
// What spare processes do (ft/repair, simulated in repair.go) is a model here: agreements that
// are over when all living members have come, and collectives that fail where one of them has died.

// Takeover is one simulated cluster: Ranks processes that go through Steps barriers and leave, Warm
// standbys, and Cold processes that are started when others have died. Kills are spread over the
// run.
type Takeover struct {
	Ranks, Warm, Cold, Steps int
	Kills                    []TakeoverKill
	Seed                     uint64
	Defect                   TakeoverDefect
}

// A TakeoverKill kills a process at its step number At, counted from 0.
type TakeoverKill struct{ Process, At int }

// TakeoverDefect is what the shell around the machine does wrong.
type TakeoverDefect struct {
	NoNews   bool // a process that has a rank now is not called for deaths that it has seen before
	NoDone   bool // a process that is done with its work does not publish it
	NoRevoke bool // a process that meets does not call the others
	Forgets  bool // the successor begins with its predecessor's first step
}

// taker is a process that takes part.
type taker struct {
	w      *takeovers
	id     int
	m      *takeover.Process
	resume chan struct{}
	wants  func() bool // what it waits for; nil: it can go on
	steps  int
	begun  bool
	dead   bool
	left   bool // it has ended as it should
	over   bool // its goroutine is
	done   bool // it has published that
	known  map[int]bool
	news   bool // something to be noticed
	err    error

	pool   *gathering // in which it meets next
	chosen *gathering // by Decide
	places []int      // process by rank
	rank   int        // -1: none
	active *meeting   // of Form
	asked  int        // how many late ones are in pool or were
	held   int
}

// gathering is the processes that meet, and their agreements in order.
type gathering struct {
	members []int
	revoked bool
	rounds  []*round
	calls   map[int]int // agreements that each has called
	splits  map[int]*meeting
}

// round is an agreement: over when all living members have come.
type round struct {
	came   map[int]bool
	flags  bool
	over   bool
	next   *gathering // those that lived
	grown  *gathering // with those that were started since
	called int        // how many late ones are in grown or were
}

// meeting is a collective: it fails where a member has died that has not come.
type meeting struct {
	members []int
	came    map[int]bool
	broken  bool
}

type takeovers struct {
	Takeover
	rnd     *rand.Rand
	procs   []*taker
	yield   chan struct{}
	end     bool
	order   []int // late processes in the order in which they were started
	owed    int   // late processes that are to be started
	arrived []int // by rank: steps made, in its log
	failure error
}

func newMeeting(members []int) *meeting {
	return &meeting{members: slices.Clone(members), came: map[int]bool{}}
}

func newGathering(members []int) *gathering {
	return &gathering{members: slices.Clone(members), calls: map[int]int{}, splits: map[int]*meeting{}}
}

func (w *takeovers) lives(id int) bool { return w.procs[id].begun && !w.procs[id].dead }

func (w *takeovers) living(members []int) (out []int) {
	for _, id := range members {
		if w.lives(id) {
			out = append(out, id)
		}
	}
	return out
}

// step lets others run, and ends the process if it is to be killed now.
func (p *taker) step() {
	if slices.Contains(p.w.Kills, TakeoverKill{p.id, p.steps}) {
		p.w.kill(p)
		panic(gone{})
	}
	p.steps++
	p.until(nil)
}

// until waits for what is true, or lets others run.
func (p *taker) until(what func() bool) {
	p.wants = what
	p.w.yield <- struct{}{}
	<-p.resume
	p.wants = nil
	if p.w.end || p.dead {
		panic(gone{})
	}
}

func (w *takeovers) kill(p *taker) {
	p.dead = true
	left := slices.ContainsFunc(w.procs, func(q *taker) bool { return q.left && q.rank >= 0 })
	if left && p.rank >= 0 && !p.done && w.failure == nil {
		w.failure = fmt.Errorf("rank %d dies before its work is done, and others have left", p.rank)
	}
	if len(w.order)+w.owed < w.Cold && !p.done {
		w.owed++
	}
}

// agree returns whether all that have come agree, and the round.
func (p *taker) agree(g *gathering, flag bool) *round {
	k := g.calls[p.id]
	g.calls[p.id]++
	if k == len(g.rounds) {
		g.rounds = append(g.rounds, &round{came: map[int]bool{}, flags: true})
	}
	r := g.rounds[k]
	r.came[p.id] = true
	r.flags = r.flags && flag
	p.until(func() bool { return r.over || p.w.all(g.members, r.came) })
	if !r.over {
		r.over = true
		r.next = newGathering(p.w.living(g.members))
	}
	p.step()
	return r
}

// all: the living members have come.
func (w *takeovers) all(members []int, came map[int]bool) bool {
	return !slices.ContainsFunc(members, func(id int) bool { return w.lives(id) && !came[id] })
}

var errLack = errors.New("ranks have no process")

func (p *taker) meet(m *meeting) error {
	m.came[p.id] = true
	there := func() bool { return !slices.ContainsFunc(m.members, func(id int) bool { return !m.came[id] }) }
	lost := func() bool {
		return m.broken || slices.ContainsFunc(m.members, func(id int) bool { return !m.came[id] && !p.w.lives(id) })
	}
	p.until(func() bool { return there() || lost() })
	if !there() {
		m.broken = true
		return errBroken
	}
	p.step()
	return nil
}

// assigned is which of members has which rank: the living keep theirs.
func (p *taker) assigned(members []int) []int {
	used := map[int]bool{}
	for _, id := range p.places {
		used[id] = slices.Contains(members, id)
	}
	var out []int
	sorted := slices.Sorted(slices.Values(members))
	for _, id := range p.places {
		if !slices.Contains(members, id) {
			k := slices.IndexFunc(sorted, func(s int) bool { return !used[s] })
			if k < 0 {
				continue
			}
			id = sorted[k]
			used[id] = true
		}
		out = append(out, id)
	}
	return out
}

// grow waits for processes that are started in the place of others.
func (p *taker) grow(g *gathering) *gathering {
	w := p.w
	if len(g.members) < w.Ranks && p.asked < w.Cold {
		p.until(func() bool {
			return len(w.living(g.members))+len(w.order)-p.asked >= w.Ranks || w.owed == 0
		})
		r := p.agree(g, true)
		if r.grown == nil {
			fresh := w.living(w.order[p.asked:])
			r.called = len(w.order)
			r.grown = newGathering(append(slices.Clone(r.next.members), fresh...))
			for _, id := range fresh {
				q := w.procs[id]
				q.pool, q.places, q.asked = r.grown, slices.Clone(p.places), r.called
			}
		}
		g, p.asked = r.grown, r.called
	}
	return g
}

func (p *taker) form(pool *gathering, grows bool) bool {
	for {
		if grows {
			pool = p.grow(pool)
		}
		grows = true
		p.pool = pool
		k := pool.calls[p.id]
		if pool.splits[k] == nil {
			pool.splits[k] = newMeeting(pool.members)
		}
		err := p.meet(pool.splits[k])
		places := p.assigned(pool.members)
		all := p.agree(pool, err == nil)
		if err == nil && !all.flags {
			err = errBroken
		}
		rank := slices.Index(places, p.id)
		if err == nil && rank >= 0 {
			if pool.splits[-1-k] == nil {
				pool.splits[-1-k] = newMeeting(places)
			}
			p.active = pool.splits[-1-k]
			if err = p.m.Together(); err != nil {
				p.active.broken = true
			}
		}
		r := p.agree(pool, err == nil)
		if r.flags {
			p.places, p.rank = places, rank
			p.active = nil
			return rank >= 0
		}
		pool = r.next
	}
}

// ---- takeover.Shell

func (p *taker) Decide(done bool) (bool, error) {
	p.step()
	if !p.w.Defect.NoRevoke {
		p.pool.revoked = true
		for _, id := range p.pool.members {
			p.w.procs[id].news = true
		}
	}
	r := p.agree(p.pool, done)
	p.chosen = r.next
	gone := func(id int) bool { return !slices.Contains(r.next.members, id) && !p.w.procs[id].done }
	return r.flags && !slices.ContainsFunc(p.places, gone), nil
}

func (p *taker) Form() (bool, error) {
	p.step()
	return p.form(p.chosen, true), nil
}

func (p *taker) Join() (bool, error) {
	p.step()
	w := p.w
	first := func() bool {
		return !slices.ContainsFunc(w.procs, func(q *taker) bool {
			before := q.id < w.Ranks+w.Warm || slices.Index(w.order, q.id) >= 0 && slices.Index(w.order, q.id) < slices.Index(w.order, p.id)
			return before && !q.dead && !q.left
		})
	}
	over := func() bool { return slices.ContainsFunc(w.procs, func(q *taker) bool { return q.left }) }
	p.until(func() bool { return p.pool != nil || first() || over() })
	if over() {
		p.Exit() // its agent ends it
	}
	if p.pool != nil {
		return p.form(p.pool, false), nil
	}
	p.asked = slices.Index(w.order, p.id) + 1
	return p.form(newGathering([]int{p.id}), true), nil
}

func (p *taker) Await() {
	p.step()
	p.until(func() bool { return p.pool.revoked || p.emptied() })
	if !p.pool.revoked && !p.someDied() {
		p.Exit() // its agent ends it: all ranks have ended, and were done
	}
}

// emptied: no living process has a rank any more.
func (p *taker) emptied() bool {
	return !slices.ContainsFunc(p.places, func(id int) bool { return p.w.lives(id) && !p.w.procs[id].left })
}

func (p *taker) someDied() bool {
	return slices.ContainsFunc(p.places, func(id int) bool { return p.w.procs[id].dead && !p.w.procs[id].done })
}

func (p *taker) Late() bool { return p.id >= p.w.Ranks+p.w.Warm }

func (p *taker) Died() bool {
	return slices.ContainsFunc(p.places, func(id int) bool { return p.known[id] })
}

func (p *taker) Empty() {
	p.step()
	p.until(p.emptied)
}

func (p *taker) Working() int { return len(p.active.members) }

func (p *taker) Fetch() error { p.step(); return nil }

func (p *taker) Exchange() error { p.step(); return p.meet(p.active) }

func (p *taker) Apply() (int, error) { p.step(); return 0, nil }

func (p *taker) Lack(ranks int) error { return fmt.Errorf("%d %w", ranks, errLack) }

func (p *taker) Prepare() error { return nil }

func (p *taker) Begin() error {
	p.step()
	p.news = !p.w.Defect.NoNews // before it had its rank nothing was done about what it has learnt
	return nil
}

func (p *taker) Settle() { p.step() }

func (p *taker) Publish(done bool) { p.done = done && !p.w.Defect.NoDone; p.step() }

func (p *taker) Hold(on bool) {
	if on {
		p.held++
	} else {
		p.held--
	}
}

func (p *taker) Met() {}

func (p *taker) Fail(err error) {
	if p.w.failure == nil {
		p.w.failure = err
	}
	p.w.end = true
	panic(gone{})
}

func (p *taker) Exit() { p.left = true; panic(gone{}) }

// run is the program of process p: barriers among the ranks, in each of which it waits for all
// others, and whatever happens is noticed.
func (p *taker) run() error {
	w := p.w
	if err := p.m.StandBy(); err != nil {
		return err
	}
	first := w.arrived[p.rank]
	if p.w.Defect.Forgets {
		first = 0
	}
	for s := first; s < w.Steps; s++ {
		p.step()
		if w.arrived[p.rank] != s {
			return fmt.Errorf("rank %d makes step %d after step %d", p.rank, s, w.arrived[p.rank]-1)
		}
		w.arrived[p.rank] = s + 1
		all := func() bool { return slices.Min(w.arrived) > s }
		for !all() {
			p.until(func() bool { return all() || p.news })
			if p.news {
				p.news = false
				p.m.Notice()
			}
		}
	}
	p.m.Leave()
	p.step()
	p.left = true
	return nil
}

// manyTurns is when a run is given up whose processes meet again and again.
const manyTurns = 100000

// RunTakeover runs a cluster. The error is the first rule that was broken: a process waits for
// ever, a rank has not made all of its steps once, or the job has failed although there were enough
// standbys.
func RunTakeover(t Takeover) error {
	w := &takeovers{Takeover: t, rnd: rand.New(rand.NewPCG(t.Seed, 7)), yield: make(chan struct{}), arrived: make([]int, t.Ranks)}
	var warm, ranks []int
	for id := range t.Ranks + t.Warm {
		warm = append(warm, id)
	}
	ranks = warm[:t.Ranks]
	pool := newGathering(warm)
	for id := range t.Ranks + t.Warm + t.Cold {
		p := &taker{w: w, id: id, resume: make(chan struct{}), begun: id < t.Ranks+t.Warm, known: map[int]bool{}, places: slices.Clone(ranks), rank: -1}
		if id < t.Ranks {
			p.rank = id
		}
		if p.begun {
			p.pool = pool
		}
		p.m = takeover.NewProcess(p, t.Ranks, id >= t.Ranks)
		w.procs = append(w.procs, p)
		go p.goOn()
	}
	turns := 0
	for turns < manyTurns && w.turn() {
		turns++
	}
	err := w.check()
	w.end = true
	for _, p := range w.procs {
		for !p.over {
			p.resume <- struct{}{}
			<-w.yield
		}
	}
	return err
}

func (p *taker) goOn() {
	defer func() {
		if why := recover(); why != nil && why != (gone{}) {
			p.err = fmt.Errorf("%v\n%s", why, debug.Stack())
		}
		p.over = true
		p.w.yield <- struct{}{}
	}()
	<-p.resume
	if !p.w.end {
		p.err = p.run()
	}
}

// turn lets something happen; false: nothing can any more.
func (w *takeovers) turn() bool {
	if w.end {
		return false
	}
	var ready []*taker
	for _, p := range w.procs {
		if p.begun && !p.over && (p.wants == nil || p.wants()) {
			ready = append(ready, p)
		}
	}
	k := w.rnd.IntN(len(ready) + 2)
	switch {
	case k < len(ready):
		ready[k].resume <- struct{}{}
		<-w.yield
	case !w.learn() && len(ready) == 0:
		return false
	}
	return true
}

// learn starts a process that is owed, or lets one learn of a death.
func (w *takeovers) learn() bool {
	if w.owed > 0 && w.rnd.IntN(2) == 0 {
		id := w.Ranks + w.Warm + len(w.order)
		w.owed--
		w.order = append(w.order, id)
		w.procs[id].begun = true
		return true
	}
	for _, k := range w.rnd.Perm(len(w.procs)) {
		for _, q := range w.procs {
			if p := w.procs[k]; q.dead && !q.done && !p.known[q.id] && w.lives(p.id) {
				p.known[q.id], p.news = true, true
				return true
			}
		}
	}
	return w.owed > 0
}

func (w *takeovers) check() error {
	if w.failure != nil && !errors.Is(w.failure, errLack) {
		return w.failure
	}
	if w.failure != nil && !slices.ContainsFunc(w.procs, func(p *taker) bool { return p.dead && p.done }) {
		return w.failure // else: one that was done is not replaced, also where another one dies that was not
	}
	if w.failure != nil {
		return nil
	}
	for _, p := range w.procs {
		switch {
		case p.err != nil:
			return fmt.Errorf("process %d: %w", p.id, p.err)
		case p.begun && !p.dead && !p.left:
			return fmt.Errorf("process %d, of rank %d, waits for ever", p.id, p.rank)
		}
	}
	for r, n := range w.arrived {
		if n != w.Steps {
			return fmt.Errorf("rank %d has made %d of %d steps", r, n, w.Steps)
		}
	}
	return nil
}
