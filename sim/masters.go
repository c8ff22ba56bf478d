package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"

	"libspx/cluster/backlog"
	"libspx/cluster/manage"
)

// Masters is a system of clusters whose management tree (cluster/manage) is measured: a chain of clusters with a network each, and between two of them a host
// with I/O processes, which is on both.
type Masters struct {
	Clusters, Processes, PerHost int
	IOP                          bool    // the masters are the agents beside I/O processes; else any, those of other hosts first
	Changes                      float64 // processes that die or are replaced in a second, in the whole system
	Clock                        func() int64
	Hub                          int // all messages pass through an agent that hands on so many in a millisecond; 0: they go from agent to agent
}

// Load is what was asked of agents in a second.
type Load struct {
	Messages float64 // that came, or were relayed
	Bytes    float64 // sent
	Work     float64 // nanoseconds of the processor, if there was a clock
}

// Loads are those of the agents by their place in the tree, in a second of simulated time. A master has what it does for its host in its figures, too.
type Loads struct {
	Hosts   int
	System  Load
	Cluster Load // the busiest master of a cluster that is not the system's
	Mean    Load // of such a master
	Host    Load // of an agent that is no master
	IO      Load // the busiest agent beside I/O processes
	Delay   float64
	Waiting int `json:",omitempty"` // messages that waited to be handed on, at most
}

type management struct {
	m     *Masters
	cfg   manage.Config
	agent []*manage.Machine
	work  []int64
	now   int64
	next  []int64 // tick
	queue pending
	n     int
	rand  *rand.Rand
	state [][]manage.Count

	hub   backlog.Queue[handed, manage.Send] // what the agent in the middle has to hand on
	turn  bool                               // its next turn will come
	still bool                               // it hands on nothing
}

// handed is what tells messages apart of which the newest alone is handed on: to whom, and what it is about.
type handed struct {
	to int
	manage.Slot
}

// hubTurn is the receiver of the turns of the agent in the middle.
const hubTurn = -1

type arrival struct {
	at, serial int64
	to         int
	event      manage.Event
}

type pending []arrival

func (p pending) Len() int { return len(p) }
func (p pending) Less(i, j int) bool {
	return p[i].at < p[j].at || p[i].at == p[j].at && p[i].serial < p[j].serial
}
func (p pending) Swap(i, j int) { p[i], p[j] = p[j], p[i] }
func (p *pending) Push(x any)   { *p = append(*p, x.(arrival)) }
func (p *pending) Pop() any     { x := (*p)[len(*p)-1]; *p = (*p)[:len(*p)-1]; return x }

// Run lets the tree come about, and measures so many milliseconds of it. An error: the agents do not agree, before or afterwards.
func (m Masters) Run(ms int64, seed uint64) (Loads, error) {
	g := m.build(seed)
	g.until(3000)
	if err := g.agree(); err != nil {
		return Loads{}, fmt.Errorf("at the beginning: %w", err)
	}
	before := g.counters()
	changes, begin := int64(m.Changes*float64(ms)/1000), g.now
	for k := range changes {
		g.until(begin + ms*k/max(changes, 1))
		g.change()
	}
	g.until(begin + ms)
	after := g.counters()
	loads := g.sort(before, after, float64(ms)/1000)
	loads.Waiting = g.hub.Most()
	var err error
	if loads.Delay, err = g.death(); err != nil {
		return Loads{}, err
	}
	return loads, nil
}

func (m Masters) build(seed uint64) *management {
	cfg := manage.Config{BeatMS: 100, LimitMS: 400, FenceMS: 3000, SilentMS: 700}
	for c := range m.Clusters {
		n := m.Processes/m.Clusters + min(1, max(0, m.Processes%m.Clusters-c))
		hosts := (n + m.PerHost - 1) / m.PerHost
		cl := manage.Cluster{Name: fmt.Sprint("c", c), OnDeath: manage.GoOn, Degrade: true, Want: hosts * m.PerHost}
		for range hosts {
			cl.Agents = append(cl.Agents, len(cfg.Agents))
			cfg.Agents = append(cfg.Agents, manage.Agent{Networks: []int{c}})
		}
		last := &cfg.Agents[len(cfg.Agents)-1]
		last.IOP = true
		if c+1 < m.Clusters {
			last.Networks = append(last.Networks, c+1)
		}
		for k := range cl.Agents {
			if m.IOP {
				k = len(cl.Agents) - 1 - k
			}
			cl.Candidates = append(cl.Candidates, cl.Agents[k])
		}
		cfg.Clusters = append(cfg.Clusters, cl)
	}
	g := &management{m: &m, cfg: cfg, rand: rand.New(rand.NewPCG(seed, 4))}
	for i := range cfg.Agents {
		own := cfg
		own.Self = i
		g.agent = append(g.agent, manage.New(own, 0))
		g.work, g.next = append(g.work, 0), append(g.next, 0)
		g.state = append(g.state, make([]manage.Count, m.Clusters))
		g.post(g.rand.Int64N(50), i, manage.Tick{})
	}
	for c, cl := range cfg.Clusters {
		for _, a := range cl.Agents {
			g.count(a, c, manage.Count{Life: 1, Alive: m.PerHost})
		}
	}
	return g
}

func (g *management) post(at int64, to int, e manage.Event) {
	g.n++
	heap.Push(&g.queue, arrival{at, int64(g.n), to, e})
}

func (g *management) count(agent, cluster int, c manage.Count) {
	g.state[agent][cluster] = c
	g.post(g.now, agent, manage.Counted{Cluster: cluster, Count: c})
}

// change lets a process of some host die, or be replaced.
func (g *management) change() {
	c := g.rand.IntN(g.m.Clusters)
	a := g.cfg.Clusters[c].Agents[g.rand.IntN(len(g.cfg.Clusters[c].Agents))]
	n := g.state[a][c]
	if n.Lost > 0 {
		n.Lost, n.Alive = n.Lost-1, n.Alive+1
	} else {
		n.Lost, n.Alive = n.Lost+1, n.Alive-1
	}
	g.count(a, c, n)
}

func (g *management) until(at int64) {
	for len(g.queue) > 0 && g.queue[0].at <= at {
		g.step(heap.Pop(&g.queue).(arrival))
	}
	g.now = at
}

func (g *management) step(a arrival) {
	g.now = max(g.now, a.at)
	if a.to == hubTurn {
		g.turn = false
		for range g.m.Hub {
			if s, ok := g.hub.Take(); ok {
				g.post(g.now+1, s.To, manage.Received{Message: s.Message})
			}
		}
		g.turnHub()
		return
	}
	var from int64
	if g.m.Clock != nil {
		from = g.m.Clock()
	}
	m := g.agent[a.to]
	actions := m.Step(a.event, g.now)
	if g.m.Clock != nil {
		g.work[a.to] += g.m.Clock() - from
	}
	for _, action := range actions {
		if s, ok := action.(manage.Send); ok && g.m.Hub > 0 {
			g.hub.Renew(handed{s.To, s.Message.Slot()}, s, s.Message.Size())
			g.turnHub()
		} else if ok {
			g.post(g.now+1, s.To, manage.Received{Message: s.Message})
		}
	}
	if _, tick := a.event.(manage.Tick); tick {
		g.next[a.to] = -1
	}
	if at := m.Deadline(); g.next[a.to] < 0 || at < g.next[a.to] {
		g.next[a.to] = at
		g.post(at, a.to, manage.Tick{})
	}
}

// turnHub gives the agent in the middle its next turn, when it has something to hand on.
func (g *management) turnHub() {
	if !g.turn && !g.still && g.hub.Len() > 0 {
		g.turn = true
		g.post(g.now+1, hubTurn, nil)
	}
}

// master is the agent that holds a seat, -1: none does.
func (g *management) master(seat int) int {
	for i, m := range g.agent {
		if m.Holds(seat, g.now) {
			return i
		}
	}
	return -1
}

// agree: every seat has a holder, and all agents have the view of the system's master.
func (g *management) agree() error {
	for seat := manage.System; seat < g.m.Clusters; seat++ {
		if g.master(seat) < 0 {
			return fmt.Errorf("nobody holds seat %d after %d ms", seat, g.now)
		}
	}
	v := g.agent[g.master(manage.System)].View()
	for i, m := range g.agent {
		if o := m.View(); o.Term != v.Term {
			return fmt.Errorf("agent %d has a view of term %d, the master one of %d", i, o.Term, v.Term)
		}
	}
	return nil
}

// death lets a cluster at one end of the chain die; how many milliseconds it takes until every agent knows.
func (g *management) death() (float64, error) {
	last := g.m.Clusters - 1
	begin := g.now
	g.count(g.cfg.Clusters[last].Agents[0], last, manage.Count{Life: 1, Failed: true})
	for ; g.now < begin+2000; g.until(g.now + 1) {
		know := 0
		for _, m := range g.agent {
			if v := m.View(); v.Clusters[last].State == manage.Dead {
				know++
			}
		}
		if know == len(g.agent) {
			return float64(g.now - begin), nil
		}
	}
	return 0, fmt.Errorf("the death of cluster %d is not known everywhere after 2 s", last)
}

type counter struct{ messages, bytes, work float64 }

func (g *management) counters() (out []counter) {
	for i, m := range g.agent {
		out = append(out, counter{float64(m.Handled + m.Relayed), float64(m.SentSize), float64(g.work[i])})
	}
	return out
}

func (g *management) sort(before, after []counter, seconds float64) Loads {
	load := func(i int) Load {
		return Load{(after[i].messages - before[i].messages) / seconds, (after[i].bytes - before[i].bytes) / seconds, (after[i].work - before[i].work) / seconds}
	}
	system := g.master(manage.System)
	master := map[int]bool{system: true}
	out := Loads{Hosts: len(g.agent), System: load(system)}
	masters, hosts := 0, 0
	for c := range g.m.Clusters {
		i := g.master(c)
		if master[i] {
			continue
		}
		master[i] = true
		l := load(i)
		if l.Messages > out.Cluster.Messages {
			out.Cluster = l
		}
		out.Mean = out.Mean.plus(l, 1)
		masters++
	}
	for i := range g.agent {
		l := load(i)
		if g.cfg.Agents[i].IOP && l.Messages > out.IO.Messages {
			out.IO = l
		}
		if !master[i] && !g.cfg.Agents[i].IOP {
			out.Host = out.Host.plus(l, 1)
			hosts++
		}
	}
	out.Mean, out.Host = Load{}.plus(out.Mean, 1/float64(max(masters, 1))), Load{}.plus(out.Host, 1/float64(max(hosts, 1)))
	return out
}

func (l Load) plus(o Load, times float64) Load {
	return Load{l.Messages + o.Messages*times, l.Bytes + o.Bytes*times, l.Work + o.Work*times}
}
