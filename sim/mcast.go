package sim

import (
	"fmt"
	"slices"

	"libspx/mcast"
)

// Mcast is a case of multicasts: masters send to random sets, which overlap, while processes die, and leave. All of it follows from a seed.
type Mcast struct {
	Procs, PerHost, Width, Masters int
	Switches                       int // 0: not known
	Messages                       int // of all masters together; every fourth is a plain send to one process
	Deaths                         int
	Acked                          bool // some are acked: their master waits until all have received them
	Leave                          bool // each process leaves as soon as it has all that is for it, and has sent all; masters if nobody dies
	Defect                         mcast.Defect
}

// McastStats counts what happened in cases.
type McastStats struct {
	Sent, Delivered, Records, Deaths, Again, Ordered, Fetched, Failed, Left, Split, Acked int
}

// Add adds the counts of another case.
func (s *McastStats) Add(o McastStats) {
	s.Sent += o.Sent
	s.Delivered += o.Delivered
	s.Records += o.Records
	s.Deaths += o.Deaths
	s.Again += o.Again
	s.Ordered += o.Ordered
	s.Fetched += o.Fetched
	s.Failed += o.Failed
	s.Left += o.Left
	s.Split += o.Split
	s.Acked += o.Acked
}

// sent is a message as the naive model sees it: in a list for each master and receiver.
type sent struct {
	id             uint64
	plain, ordered bool
}

type mcastRun struct {
	*World
	c        Mcast
	procs    []*mcast.Process
	knows    [][]bool                   // of a death, by who knows
	puts     []int                      // a process dies instead of its put number 0; below: never
	model    map[[2]int][]sent          // by master and receiver, in the order of sending
	got      map[[2]int]map[uint64]bool // ids of what was delivered
	open     map[uint64]int             // announced: its master, while it is not complete
	unread   map[[2]uint64]int          // announced or acked, and delivered, by receiver and id: its master, while it has not fetched or received it
	acked    map[uint64][]uint32        // by id: who is to have received it before it is complete
	received map[[2]uint64]bool         // acked, by receiver and id
	killed   []int
	left     []bool
	over     Time // when nobody sends anything of its own any more
	stats    McastStats
	failure  error
}

func (m *mcastRun) fail(format string, args ...any) {
	if m.failure == nil {
		m.failure = fmt.Errorf("at %d: "+format, append([]any{m.Now}, args...)...)
	}
}

func (m *mcastRun) die(who int) {
	if !m.Alive[who] {
		return
	}
	m.Kill(who)
	m.killed = append(m.killed, who)
	m.stats.Deaths++
	for p := range m.procs {
		if p != who {
			m.After(1+Time(m.Rand.IntN(60)), func() { m.learn(p, who) })
		}
	}
}

func (m *mcastRun) learn(p, who int) {
	if !m.Alive[p] || m.left[p] {
		return
	}
	m.knows[p][who] = true
	before := m.stats.Records
	m.carryOut(p, m.procs[p].Died(uint32(who)))
	m.stats.Again += m.stats.Records - before
}

// put sends a record; the process may die instead, and false is returned.
func (m *mcastRun) put(from, to int, deliver func()) bool {
	if m.puts[from] == 0 {
		m.die(from)
		return false
	}
	m.puts[from]--
	m.stats.Records++
	m.Send(from, to, func() {
		if !m.knows[to][from] && !m.left[to] {
			deliver()
			m.mayLeave(to)
		}
	})
	return true
}

// mayLeave lets a process go that has all that is for it, and sent all. Others learn of it later, and what it has sent still arrives.
func (m *mcastRun) mayLeave(p int) {
	if !m.c.Leave || m.Now <= m.over || m.left[p] || !m.Alive[p] || p < m.c.Masters && m.c.Deaths > 0 || !m.isThrough(p) {
		return
	}
	before := m.stats.Records
	m.carryOut(p, m.procs[p].Leave())
	if m.stats.Records > before {
		m.stats.Split++
	}
	m.left[p] = true
	m.stats.Left++
	for q := range m.procs {
		m.After(1+Time(m.Rand.IntN(60)), func() {
			if m.Alive[q] && !m.left[q] {
				m.carryOut(q, m.procs[q].Left(uint32(p)))
				m.mayLeave(q)
			}
		})
	}
}

func (m *mcastRun) isThrough(p int) bool {
	if m.procs[p].Aggregation() {
		return false
	}
	for _, master := range m.open {
		if master == p {
			return false
		}
	}
	for key := range m.unread {
		if key[0] == uint64(p) {
			return false
		}
	}
	for pair, all := range m.model {
		if pair[1] == p && m.Alive[pair[0]] && len(m.got[pair]) != len(all) {
			return false
		}
	}
	return true
}

func (m *mcastRun) carryOut(p int, res mcast.Result) {
	for _, rec := range res.Delivered {
		m.deliver(p, rec)
	}
	for _, id := range res.Complete {
		delete(m.open, id)
		for _, q := range m.acked[id] {
			if m.Alive[q] && !m.received[[2]uint64{uint64(q), id}] {
				m.fail("multicast %d of %d is complete, but process %d has not received it", id, p, q)
			}
		}
	}
	m.stats.Failed += len(res.Failed)
	for _, out := range res.Puts {
		to := int(out.To)
		if !m.put(p, to, func() { m.arrive(p, to, out.Record) }) {
			return
		}
	}
}

func (m *mcastRun) arrive(from, to int, rec mcast.Record) {
	if rec.Kind == mcast.Answer {
		m.stats.Fetched++
		delete(m.unread, [2]uint64{uint64(to), rec.ID})
		return
	}
	m.carryOut(to, m.procs[to].Arrived(uint32(from), rec))
}

// deliver compares with the model: the next message of this master to this process, and no other.
func (m *mcastRun) deliver(p int, rec mcast.Record) {
	pair := [2]int{int(rec.Master), p}
	m.took(pair, rec.ID)
	if rec.Kind != mcast.Announced && rec.Kind != mcast.Acked {
		return
	}
	key := [2]uint64{uint64(p), rec.ID}
	m.unread[key] = pair[0]
	if rec.Kind == mcast.Acked {
		m.After(Time(m.Rand.IntN(100)), func() {
			if !m.Alive[p] {
				return
			}
			m.stats.Acked++
			m.received[key] = true
			delete(m.unread, key)
			m.carryOut(p, m.procs[p].Received(rec))
			m.mayLeave(p)
		})
		return
	}
	m.After(Time(m.Rand.IntN(100)), func() { // a receive
		if out := m.procs[p].Fetch(rec); m.Alive[p] {
			m.put(p, pair[0], func() { m.arrive(p, pair[0], out.Record) })
		}
	})
}

// took notes that a message was delivered. Multicasts are in order; plain sends are, and the two against each other where it was asked for.
func (m *mcastRun) took(pair [2]int, id uint64) {
	m.stats.Delivered++
	at := slices.IndexFunc(m.model[pair], func(s sent) bool { return s.id == id })
	if at < 0 {
		m.fail("process %d has message %d of %d, which is not for it", pair[1], id, pair[0])
		return
	}
	if m.got[pair][id] {
		m.fail("process %d has message %d of %d twice", pair[1], id, pair[0])
		return
	}
	if m.got[pair] == nil {
		m.got[pair] = map[uint64]bool{}
	}
	m.got[pair][id] = true
	now := m.model[pair][at]
	for k, s := range m.model[pair] {
		related := s.plain == now.plain || s.ordered || now.ordered
		if !related || k == at {
			continue
		}
		if has := m.got[pair][s.id]; has != (k < at) {
			m.fail("process %d has message %d of %d when it has message %d: %v", pair[1], id, pair[0], s.id, has)
			return
		}
	}
}

func (m *mcastRun) send(id uint64) {
	master := m.Rand.IntN(m.c.Masters)
	if !m.Alive[master] {
		return
	}
	m.stats.Sent++
	if m.Rand.IntN(4) == 0 {
		to := m.Rand.IntN(m.c.Procs)
		if to != master {
			pair := [2]int{master, to}
			m.model[pair] = append(m.model[pair], sent{id: id, plain: true})
			m.put(master, to, func() { m.took(pair, id) })
		}
		return
	}
	kind, ordered := []mcast.Kind{mcast.Data, mcast.Announced, mcast.Acked}[m.Rand.IntN(3)], m.Rand.IntN(6) == 0
	var set []uint32
	density := 1 + m.Rand.IntN(3)
	for p := range m.c.Procs {
		if p != master && m.Rand.IntN(density) == 0 {
			set = append(set, uint32(p))
			if !m.knows[master][p] {
				pair := [2]int{master, p}
				m.model[pair] = append(m.model[pair], sent{id: id, ordered: ordered})
			}
		}
	}
	if kind == mcast.Acked && !m.c.Acked {
		kind = mcast.Data
	}
	if kind != mcast.Data {
		m.open[id] = master
	}
	if kind == mcast.Acked {
		m.acked[id] = set
	}
	if ordered {
		m.stats.Ordered++
	}
	m.carryOut(master, m.procs[master].Send(id, set, kind, ordered))
}

// RunMcast runs a case of multicasts with the machine of package mcast, and compares with a naive model: each process gets from each master
// what was sent to it, once and in order, whoever dies; a master waits for nobody for ever.
func RunMcast(c Mcast, seed uint64) (McastStats, error) {
	m := &mcastRun{World: NewWorld(c.Procs, seed), c: c, model: map[[2]int][]sent{}, got: map[[2]int]map[uint64]bool{}, open: map[uint64]int{}, unread: map[[2]uint64]int{},
		acked: map[uint64][]uint32{}, received: map[[2]uint64]bool{}}
	host := func(p uint32) uint32 { return p / uint32(c.PerHost) }
	var sw func(uint32) uint32
	if c.Switches > 0 {
		sw = func(host uint32) uint32 { return host % uint32(c.Switches) }
	}
	for p := range c.Procs {
		process := mcast.NewProcess(uint32(p), uint32(c.Procs), host, sw, c.Width)
		process.Defect = c.Defect
		m.procs = append(m.procs, process)
		m.knows = append(m.knows, make([]bool, c.Procs))
		m.left = append(m.left, false)
		m.puts = append(m.puts, -1)
	}
	most := 8 * Time(c.Messages)
	m.over = most
	for id := range uint64(c.Messages) {
		m.After(Time(m.Rand.IntN(int(most))), func() { m.send(id + 1) })
	}
	for range c.Deaths {
		if who := m.Rand.IntN(c.Procs); m.Rand.IntN(2) == 0 {
			m.puts[who] = m.Rand.IntN(2 * c.Messages)
		} else {
			m.After(Time(m.Rand.IntN(int(most))), func() { m.die(who) })
		}
	}
	for p := range c.Procs {
		m.After(most+1, func() { m.mayLeave(p) })
	}
	for m.failure == nil && m.Step() {
	}
	if m.failure == nil {
		m.checkEnd()
	}
	return m.stats, m.failure
}

func (m *mcastRun) checkEnd() {
	for pair, all := range m.model {
		if m.Alive[pair[0]] && m.Alive[pair[1]] && len(m.got[pair]) != len(all) {
			m.fail("process %d has %d of the %d messages of %d", pair[1], len(m.got[pair]), len(all), pair[0])
		}
	}
	for id, master := range m.open {
		if m.Alive[master] {
			m.fail("multicast %d of %d is not complete", id, master)
		}
	}
	for key, master := range m.unread {
		if m.Alive[master] && m.Alive[key[0]] {
			m.fail("process %d has not got the data of %d from %d", key[0], key[1], master)
		}
	}
}
