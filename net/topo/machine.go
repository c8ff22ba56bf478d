package topo

import (
	"math"
	"slices"
)

// Config defines what is to be inferred, and with how much traffic.
type Config struct {
	// hosts 0 to Hosts-1, numbered in the order of their addresses: neighbours are tried first
	Hosts  int
	Groups [][]int // hosts known to share a switch; no host twice
	// the known part of the network, as from an earlier inference (Of is -1 for the other hosts);
	// nil: nothing
	Known *Tree
	// measurements of round-trip times at once; 0: as many as there are pairs of idle hosts
	MaxPings int
	MaxFlows int // streams per path in a measurement of throughput; 0: 4
}

// Ping requests the round-trip time between two hosts: the shortest of Echoes echoes. Spaced: with
// pauses of a random length between them, so that they do not all fall into the same phase of other
// work on the hosts.
type Ping struct {
	ID, A, B, Echoes int
	Spaced           bool
}

// Shortest is how many of the shortest times of a Ping are to be reported.
const Shortest = 6

// Stream requests the throughput of one or two paths at once: the sum over the flows of each. A
// flow is a pair of hosts, from and to. No other Stream runs meanwhile.
type Stream struct {
	ID    int
	Flows [][][2]int
}

// Output is what is to be measured next, and the network once it is known.
type Output struct {
	Pings  []Ping
	Stream *Stream
	Done   *Tree
	Doubt  Doubt // with Done
}

// Doubt is the reason why a result is not sure; an empty field means sure. If the groups are not
// sure, nothing of the result is to be used; if the links are not, no link.
type Doubt struct {
	Groups, Links string
	Hosts         [2]int // of Groups: two that are concerned
}

// Cost counts the measurements that a Machine has requested.
type Cost struct {
	Pings, Echoes, Streams int
}

type phase int

const (
	searching phase = iota
	doubting
	joining
	done
)

// Machine infers a network. Every measurement that it requests must be answered once, by Pinged,
// Streamed or Failed, in any order.
type Machine struct {
	Cost Cost

	cfg     Config
	phase   phase
	search  *search
	links   *links
	answers map[Paths]bool
	assumed []Paths         // answers that too few hosts were there to measure
	alone   map[alone]*solo // throughput of one path
	full    []bool          // of each measurement of one path alone: it was about the most so far
	found   *evidence       // by which the groups are sure
	doubt   Doubt
	verify  *verify

	waiting [][]want // measurements that a host waits to make
	blocked [][]int  // hosts that wait for a host to become idle
	late    []int    // hosts that wait because enough is being measured
	busy    []bool
	freed   []int // hosts that have become idle
	running map[int]want
	nextID  int
	test    *throughput
}

// alone is a path without another: that of so many flows, of which the first is given.
type alone struct {
	first [2]int
	flows int
}

// throughput is a question to links under way: each path alone and both, in turn, until the answers
// agree.
type throughput struct {
	paths    Paths
	foreseen *bool // by times
	fresh    int   // measurements of a path alone since the last one of both
	flows    [2][][2]int
	id       int // of the measurement under way, -1: none yet
	path     int // that is measured alone; -1: both
	both     [][2]float64
}

// New makes a machine; Start begins.
func New(cfg Config) *Machine {
	if cfg.MaxFlows == 0 {
		cfg.MaxFlows = 4
	}
	if cfg.MaxPings == 0 {
		cfg.MaxPings = math.MaxInt
	}
	if cfg.Known != nil {
		cfg.Groups = append(cfg.Groups[:len(cfg.Groups):len(cfg.Groups)], cfg.Known.groups()...)
	}
	m := &Machine{cfg: cfg, search: newSearch(cfg.Hosts, cfg.Groups), answers: map[Paths]bool{},
		alone: map[alone]*solo{}, running: map[int]want{}}
	if cfg.Known != nil {
		m.search.apartAs = cfg.Known.Of
	}
	m.grow(cfg.Hosts)
	return m
}

func (m *Machine) grow(hosts int) {
	for len(m.busy) < hosts {
		m.busy, m.waiting, m.blocked = append(m.busy, false), append(m.waiting, nil),
			append(m.blocked, nil)
	}
}

// Start returns the first measurements.
func (m *Machine) Start() Output { return m.next(m.search.round()) }

// Join adds a host, whose number may be a new one. It may come at any time.
func (m *Machine) Join(host int) Output {
	m.grow(host + 1)
	wants := m.search.add(host)
	if m.phase != searching {
		m.phase = searching
		m.test, m.verify = nil, nil
	}
	return m.next(wants)
}

// Leave takes a host out at any time. Measurements with it may still be requested, and must be
// answered, by Failed for example.
func (m *Machine) Leave(host int) Output {
	m.search.remove(host)
	if m.phase != searching {
		m.phase, m.test, m.verify = doubting, nil, nil
	}
	return m.next(nil)
}

// Pinged takes the shortest of the echoes' times in nanoseconds, in ascending order.
func (m *Machine) Pinged(id int, took []int64) Output {
	w, ok := m.finish(id)
	if !ok {
		return Output{}
	}
	return m.next(m.search.measured(w.a, w.b, sampleOf(took, w.echoes)))
}

// Streamed takes the throughput of each path, in any unit.
func (m *Machine) Streamed(id int, rates []float64) Output {
	if m.test == nil || m.test.id != id {
		return m.next(nil)
	}
	t := m.test
	t.id = -1
	if t.path >= 0 {
		x := m.solo(t.flows[t.path])
		x.rates, x.most = append(x.rates, rates[0]), max(x.most, rates[0])
		t.fresh++
		m.full = append(m.full, rates[0] >= keepsMost*x.most)
		return m.next(nil)
	}
	t.fresh = 0
	t.both = append(t.both, [2]float64(rates))
	each := [2]*solo{m.solo(t.flows[0]), m.solo(t.flows[1])}
	for i, x := range each {
		x.most = max(x.most, rates[i])
	}
	switch apart, v := judgePaths(t.both, each, m.fastest(), m.often(), t.foreseen); v {
	case sure:
		m.links.answer(t.paths, apart)
		m.test = nil
	case unsure:
		m.doubt.Links = "whether two paths between switches slow each other down came out " +
			"differently again and again"
		m.links.answer(t.paths, apart)
		m.test = nil
	}
	return m.next(nil)
}

func (m *Machine) solo(flows [][2]int) *solo {
	k := alone{flows[0], len(flows)}
	if m.alone[k] == nil {
		m.alone[k] = &solo{}
	}
	return m.alone[k]
}

// often is how often, of the last measurements of a path alone, it carried what it can.
func (m *Machine) often() float64 {
	last := m.full[max(0, len(m.full)-lately):]
	n := 0
	for _, full := range last {
		if full {
			n++
		}
	}
	return float64(n) / float64(len(last)+1)
}

// fastest is the most that a path has carried.
func (m *Machine) fastest() (most float64) {
	for _, x := range m.alone {
		most = max(most, x.most)
	}
	return most
}

// wanting is the path whose throughput alone is to be measured before both are: one that was not
// yet, or, between two measurements of both, the one that was less often.
func (m *Machine) wanting(t *throughput) (path int, ok bool) {
	a, b := len(m.solo(t.flows[0]).rates), len(m.solo(t.flows[1]).rates)
	if b < a {
		path = 1
	}
	return path, min(a, b) == 0 || len(t.both) > 0 && t.fresh == 0
}

// Failed reports that a measurement could not be made.
func (m *Machine) Failed(id int) Output {
	if w, ok := m.finish(id); ok {
		return m.next(m.search.answered(w.a, w.b))
	}
	if m.test != nil && m.test.id == id { // no interference is the common case
		m.doubt.Links = "throughputs could not be measured"
		m.links.answer(m.test.paths, true)
		m.test = nil
	}
	return m.next(nil)
}

// Times are those by which hosts were judged to share a switch or not, in nanoseconds, once done:
// the most between hosts of one (but for the tenth that is largest), and the least between those of
// different ones; 0 where there are none.
func (m *Machine) Times() (within, across int64) {
	if m.found == nil {
		return 0, 0
	}
	return m.found.most, m.found.between
}

// finish frees the hosts of a measurement.
func (m *Machine) finish(id int) (want, bool) {
	w, ok := m.running[id]
	if ok {
		delete(m.running, id)
		m.busy[w.a], m.busy[w.b] = false, false
		m.freed = append(m.freed, w.a, w.b)
	}
	return w, ok
}

// next queues measurements, moves on to the next phase when nothing is waited for, and returns what
// can start now.
func (m *Machine) next(wants []want) (out Output) {
	var touched []int
	for {
		for _, w := range wants {
			m.waiting[w.a] = append(m.waiting[w.a], w)
			touched = append(touched, w.a)
		}
		if m.search.waiting > 0 || m.phase == done {
			break
		}
		wants = nil
		switch m.phase {
		case searching:
			if wants = m.search.round(); m.search.waiting == 0 && len(m.search.left) == 0 {
				m.phase = doubting
				m.search.distances()
				wants = m.search.doubts()
			}
		case doubting:
			m.search.unite()
			if m.verify == nil {
				m.verify = &verify{}
			}
			var anew bool
			if wants, m.doubt, anew = m.verify.next(m.search); len(wants) > 0 {
				continue
			}
			if anew {
				m.search.batch = firstBatch
				m.search.forget()
				m.phase = searching
				continue
			}
			m.verify, m.found = nil, m.search.evidence()
			m.phase = joining
			if m.doubt.Groups != "" { // links between doubtful switches mean nothing
				m.phase, m.doubt.Links = done, m.doubt.Groups
				m.links = newLinks(m.terminals(), m.near, map[Paths]bool{})
				out.Done, out.Doubt = m.tree(), m.doubt
				return out
			}
			for _, p := range m.assumed { // there may be more hosts now
				delete(m.answers, p)
			}
			m.assumed = nil
			m.links = newLinks(m.terminals(), m.near, m.answers)
		case joining:
			if m.test == nil {
				// one wrong answer spoils the tree: more of them help nothing
				if m.doubt.Links != "" || !m.ask() {
					m.phase, out.Done, out.Doubt = done, m.tree(), m.doubt
					return out
				}
			}
			if m.test.id < 0 {
				out.Stream = m.stream()
			}
			return out
		}
	}
	m.dispatch(touched, &out)
	return out
}

// dispatch starts measurements of the given hosts and of those that waited for a host that is idle
// now.
func (m *Machine) dispatch(hosts []int, out *Output) {
	if len(m.freed) > 0 {
		hosts = append(hosts, m.late...)
		m.late = m.late[:0]
	}
	for _, h := range m.freed {
		hosts = append(append(hosts, h), m.blocked[h]...)
		m.blocked[h] = m.blocked[h][:0]
	}
	m.freed = m.freed[:0]
	for _, h := range hosts {
		m.start(h, out)
	}
}

// start starts a host's first measurement whose other host is idle, or queues it.
func (m *Machine) start(h int, out *Output) {
	if len(m.waiting[h]) == 0 || m.busy[h] { // busy: retried when it is idle
		return
	}
	if len(m.running) >= m.cfg.MaxPings {
		m.late = append(m.late, h)
		return
	}
	i := slices.IndexFunc(m.waiting[h], func(w want) bool { return !m.busy[w.b] })
	if i < 0 {
		other := m.waiting[h][0].b
		m.blocked[other] = append(m.blocked[other], h)
		return
	}
	w := m.waiting[h][i]
	m.waiting[h] = slices.Delete(m.waiting[h], i, i+1)
	m.busy[w.a], m.busy[w.b] = true, true
	m.nextID++
	m.running[m.nextID] = w
	m.Cost.Pings++
	m.Cost.Echoes += w.echoes
	out.Pings = append(out.Pings, Ping{m.nextID, w.a, w.b, w.echoes, w.spaced})
}

func (m *Machine) terminals() (list []int) {
	for p, x := range m.search.places {
		if len(x.members) > 0 {
			list = append(list, p)
		}
	}
	return list
}

func (m *Machine) near(a, b int) int64 {
	if d := m.search.places[a].at[b]; d >= 0 {
		return d
	}
	return math.MaxInt64
}

// tree is the result so far. Without sure links it has none.
func (m *Machine) tree() *Tree {
	if m.doubt.Links != "" {
		m.links = newLinks(m.terminals(), m.near, map[Paths]bool{})
	}
	members := make([][]int, len(m.search.places))
	for p, x := range m.search.places {
		members[p] = x.members
	}
	return m.links.tree(members, len(m.search.of))
}

// ask takes the next question of links that must be measured; false if there is none.
func (m *Machine) ask() bool {
	for {
		paths, more := m.links.run()
		if !more {
			return false
		}
		if apart, known := m.recalls(paths); known {
			m.links.answer(paths, apart)
			continue
		}
		t := &throughput{paths: paths, id: -1, foreseen: m.found.foresee(paths)}
		if t.flows = m.flows(paths); len(t.flows[0]) > 0 && len(t.flows[1]) > 0 {
			m.test = t
			return true
		}
		m.assumed = append(m.assumed, paths)
		// too few hosts to tell: a switch with one host cannot be told from that host
		m.links.answer(paths, false)
	}
}

// recalls answers a question about paths between known switches.
func (m *Machine) recalls(paths Paths) (apart, known bool) {
	if m.cfg.Known == nil {
		return false, false
	}
	for i, p := range paths {
		for k, terminal := range p {
			of := m.cfg.Known.Of
			h := slices.IndexFunc(m.search.places[terminal].members,
				func(h int) bool { return h < len(of) && of[h] >= 0 })
			if h < 0 {
				return false, false
			}
			paths[i][k] = of[m.search.places[terminal].members[h]]
		}
	}
	return !m.cfg.Known.Share(paths), true
}

// flows chooses different hosts for all streams of two paths, as many streams for one as for the
// other.
func (m *Machine) flows(paths Paths) (flows [2][][2]int) {
	uses := map[int]int{}
	for _, p := range paths {
		uses[p[0]]++
		uses[p[1]]++
	}
	n := m.cfg.MaxFlows
	for p, times := range uses {
		n = min(n, len(m.search.places[p].members)/times)
	}
	next := map[int]int{}
	take := func(p int) int {
		next[p]++
		return m.search.places[p].members[next[p]-1]
	}
	for i, p := range paths {
		for range n {
			flows[i] = append(flows[i], [2]int{take(p[0]), take(p[1])})
		}
	}
	return flows
}

// stream is the next measurement of the question under way. A path whose single throughput is known
// well enough is not measured again.
func (m *Machine) stream() *Stream {
	t := m.test
	m.nextID++
	t.id = m.nextID
	m.Cost.Streams++
	path, ok := m.wanting(t)
	if t.path = -1; ok {
		t.path = path
		return &Stream{t.id, t.flows[path : path+1]}
	}
	return &Stream{t.id, t.flows[:]}
}
