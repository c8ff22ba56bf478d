package sim

import (
	"cmp"
	"fmt"
	"slices"

	"libspx/ft/agree"
	"libspx/ft/repair"
)

// Repair is a simulated base communicator: Working processes that work, Spares that wait, and in a cluster with standbys Late ones that are started
// when others have died. Each runs the library's own package ft/repair. Deaths are the steps before which processes die, by process; -1: it lives.
type Repair struct {
	Working, Spares, Late int
	Cluster               bool // as clusters with standbys do: they meet within their work, and leave together
	Steps                 int  // of the work
	Flaws                 int  // collectives that fail without a death
	Deaths                []int
	Seed                  uint64
}

type repairs struct {
	Repair
	teams
	base     *team
	alone    map[int]*team    // the pool of a late one before it has met others
	pools    map[string]*team // of Meet, by their members and the first of the fresh ones
	order    []int            // late ones in the order of their starts
	orders   []map[int]int    // by process: what it knows of that
	mail     map[int][][]uint64
	done     map[int]bool // has announced the end of its work
	ended    map[int]bool // has returned
	last     *formation
	finished bool // a process has made all steps
}

// formation is an active communicator that counts.
type formation struct {
	active *team
	before *formation
	pool   int // members of its pool
}

// worker is a process of it.
type worker struct {
	*task
	w      *repairs
	r      *repair.Repair
	formed *formation
	pools  []*team // those that it may be called on
	steps  int
}

// RunRepair runs a repair. The error is the first rule that was broken.
func RunRepair(c Repair) error {
	w := &repairs{Repair: c, teams: teams{steps: newSteps(c.Seed), flaws: c.Flaws}, alone: map[int]*team{}, pools: map[string]*team{}, mail: map[int][][]uint64{}, done: map[int]bool{},
		ended: map[int]bool{}}
	n := c.Working + c.Spares + c.Late
	var all []int
	for p := range n {
		all = append(all, p)
		w.enter()
		w.orders = append(w.orders, map[int]int{})
	}
	w.base = newTeam(all)
	pool := newTeam(all[:n-c.Late])
	for p := range n {
		k := &worker{w: w}
		k.task = w.start(c.Deaths[p], func(*task) error { return k.run(pool) }, func() { w.dies(p) })
	}
	return w.run()
}

// dies has the launcher start a late process, if there is one left. Each host hears of that before it hears of the death.
func (w *repairs) dies(id int) {
	if w.left() > 0 && w.needs(id) {
		var rest []int
		for p := w.Working + w.Spares; p < len(w.base.members); p++ {
			if !slices.Contains(w.order, p) {
				rest = append(rest, p)
			}
		}
		next := rest[w.rnd.IntN(len(rest))]
		w.order = append(w.order, next)
		n := len(w.order)
		w.orders[next][next] = n
		for p := range w.known {
			w.news = append(w.news, func() {
				w.orders[p][next] = n
				w.known[p][id] = true
			})
		}
		return
	}
	w.died(id)
}

// ends notes that a process has returned.
func (w *repairs) ends(id int) {
	w.ended[id] = true
	w.version++
}

// left is the number of late ones that have not been started.
func (w *repairs) left() int { return w.Late - len(w.order) }

// needs tells whether another process is started for a dead one: it had been started.
func (w *repairs) needs(id int) bool {
	return id < w.Working+w.Spares || slices.Contains(w.order, id)
}

func (k *worker) run(pool *team) error {
	w := k.w
	late := k.id - w.Working - w.Spares
	if late >= 0 {
		pool = newTeam([]int{k.id})
		dieAt := k.dieAt
		k.dieAt = -1
		k.idle = true
		k.await(false, func() bool { return slices.Contains(w.order, k.id) })
		k.idle = false
		if dieAt >= 0 {
			k.dieAt = k.made + dieAt
		}
	}
	if w.Cluster {
		k.r = repair.New(k, repair.Config{Working: w.Working, Late: w.Late, Meets: true}, k.comm(pool))
		return k.cluster(late >= 0)
	}
	k.r = repair.New(k, repair.Config{Working: w.Working}, nil)
	return k.program()
}

// program is one that calls MPIX_Comm_repair and MPIX_Comm_dismiss.
func (k *worker) program() error {
	err := k.r.Begin(k.comm(k.w.base))
	home := false
	if err == nil {
		home, err = k.r.StandBy()
	}
	for err == nil && !home {
		if err = k.formation(); err != nil {
			return err
		}
		if k.work() {
			k.w.finished = true
			if err = k.r.Dismiss(); err == nil {
				break
			}
		}
		home, err = k.r.Repair()
	}
	if k.w.ends(k.id); home && !k.w.finished {
		return fmt.Errorf("it is sent home, and the work is not done")
	}
	return err
}

// work is steps in which all that work take part, from the last one that any of them has made.
func (k *worker) work() bool {
	for {
		all, err := k.w.greatest(k.task, k.formed.active, []int64{int64(k.steps)})
		if err != nil {
			return false
		}
		if k.steps = int(all[0]); k.steps >= k.w.Steps {
			return true
		}
		k.steps++
	}
}

// cluster is a process of a cluster with standbys (cluster/takeover).
func (k *worker) cluster(late bool) (err error) {
	w := k.w
	standby := k.id >= w.Working
	if late {
		err = k.r.Join()
	}
	for err == nil && standby && k.r.Active == nil {
		k.r.Await()
		if home, err := k.meet(true); err != nil || home {
			return err
		}
	}
	if err == nil && k.r.Active != nil {
		err = k.formation()
	}
	for ; err == nil && k.steps < w.Steps; k.steps++ {
		if k.step(); k.called() {
			_, err = k.meet(false)
		}
	}
	for err == nil {
		w.done[k.id] = true
		home := false
		for again := true; err == nil && again; again = !home && k.called() {
			home, err = k.meet(true)
		}
		if home || err != nil {
			return err
		}
		delete(w.done, k.id)
	}
	return err
}

// called tells whether this process is to meet the others: one that has a rank is known dead.
func (k *worker) called() bool {
	last := k.w.base.members[:k.w.Working]
	if k.formed != nil {
		last = k.formed.active.members
	}
	return slices.ContainsFunc(last, k.Died) || slices.ContainsFunc(k.pools, func(t *team) bool { return k.w.revoked[k.id][t] })
}

func (k *worker) meet(done bool) (home bool, err error) {
	pool, home, err := k.r.Decide(done)
	k.pools = nil
	if err != nil || home {
		k.w.ends(k.id)
		return home, cmp.Or(err, k.leaves())
	}
	if err = k.r.Form(pool); err == nil && k.r.Active != nil {
		err = k.formation()
	}
	return false, err
}

// leaves is the end of all: the work of each rank has been done.
func (k *worker) leaves() error {
	for _, p := range k.w.working() {
		if !k.w.lives(p) && !k.w.done[p] {
			return fmt.Errorf("it leaves, and process %d has died in its work", p)
		}
	}
	return nil
}

// working lists those that work, by rank.
func (w *repairs) working() []int {
	if w.last == nil {
		return w.base.members[:w.Working]
	}
	return w.last.active.members
}

// formation takes the active communicator, which all of its members have to have alike, and looks at its ranks.
func (k *worker) formation() error {
	w := k.w
	active := k.r.Active.(*repairMember).team
	if w.last == nil || w.last.active != active {
		for f := w.last; f != nil; f = f.before {
			if f.active == active {
				return fmt.Errorf("it has %v, others have %v by now", active.members, w.last.active.members)
			}
		}
		if err := w.check(active); err != nil {
			return err
		}
		w.last = &formation{active: active, before: w.last}
	}
	k.formed = w.last
	return nil
}

// check looks at the ranks of a new active communicator: members keep theirs, unless it has fewer ranks.
func (w *repairs) check(active *team) error {
	before := w.working()
	if len(active.members) > len(before) {
		return fmt.Errorf("%v work, where %v have worked", active.members, before)
	}
	for rank, p := range active.members {
		if was := slices.Index(before, p); was >= 0 && was != rank && len(active.members) == len(before) {
			return fmt.Errorf("process %d has rank %d in %v, and had %d in %v", p, rank, active.members, was, before)
		}
	}
	if len(active.members) == len(before) {
		return nil
	}
	for _, p := range w.base.members[:len(w.base.members)-w.Late] {
		if w.lives(p) && !w.ended[p] && !slices.Contains(active.members, p) {
			return fmt.Errorf("%v work, where %v have worked, and spare %d lives", active.members, before, p)
		}
	}
	return nil
}

// The Shell of package repair.

func (k *worker) Base() (size, self int) { return len(k.w.base.members), k.id }

func (k *worker) Wait(_, limit repair.Duration, over func() bool) bool {
	return k.await(limit > 0, over)
}

func (k *worker) Order(m int) int { return k.w.orders[k.id][m] }
func (k *worker) Died(m int) bool { return k.w.known[k.id][m] }
func (k *worker) Left(m int) bool { return k.Died(m) || k.w.ended[m] }
func (k *worker) Done(m int) bool { return k.w.done[m] }

func (k *worker) Meet(members []int, first int) (repair.Comm, error) {
	key := fmt.Sprint(members, first)
	if k.w.pools[key] == nil {
		k.w.pools[key] = newTeam(members)
	}
	return k.comm(k.w.pools[key]), nil
}

func (k *worker) Send(m int, words []uint64) {
	k.step()
	k.w.news = append(k.w.news, func() { k.w.mail[m] = append(k.w.mail[m], words) })
}

func (k *worker) Receive() ([]uint64, error) {
	if len(k.w.mail[k.id]) == 0 {
		return nil, nil
	}
	return k.w.mail[k.id][0], nil
}

func (k *worker) Together(active repair.Comm) error {
	_, err := active.Greatest(0)
	return err
}

// repairMember is a communicator at a process.
type repairMember struct {
	*team
	k *worker
}

func (k *worker) comm(t *team) repair.Comm {
	if t == nil {
		return nil
	}
	k.pools = append(k.pools, t)
	return &repairMember{t, k}
}

func (m *repairMember) Members() []int { return m.team.members }
func (m *repairMember) Revoke()        { m.k.step(); m.k.w.revoke(m.k.id, m.team) }
func (m *repairMember) Revoked() bool  { return m.k.w.revoked[m.k.id][m.team] }
func (m *repairMember) Broken() bool   { return m.k.w.broken(m.k.id, m.team) }
func (m *repairMember) Free()          {}

func (m *repairMember) Decide(flags uint32) (uint32, repair.Comm, error) {
	m.k.step()
	said, next := m.k.w.decide(m.k.task, m.team, flags)
	m.k.step()
	return said, m.k.comm(next), nil
}

func (m *repairMember) Agree(ok bool) bool {
	flags := uint32(agree.Calm)
	if ok {
		flags |= agree.Go
	}
	m.k.step()
	said, _ := m.k.w.decide(m.k.task, m.team, flags)
	return said&agree.Go != 0
}

func (m *repairMember) Greatest(value int) (int, error) {
	all, err := m.k.w.greatest(m.k.task, m.team, []int64{int64(value)})
	if err != nil {
		return 0, err
	}
	return int(all[0]), nil
}

func (m *repairMember) Split(in bool, key int) (repair.Comm, error) {
	color := 0
	if !in {
		color = -1
	}
	t, err := m.k.w.split(m.k.task, m.team, color, key)
	return m.k.comm(t), err
}
