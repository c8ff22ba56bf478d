package manage

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
)

// world is a simulated system: agents, the networks between them, and what goes wrong.
type world struct {
	cfg      Config
	rand     *rand.Rand
	now      int64
	machines []*Machine
	alive    []bool
	cut      map[int]bool // networks that carry nothing
	// agents below this number cannot reach the rest, nor the reverse; 0: they do
	split    int
	lossy    float64 // of messages
	slowMS   int64   // a message takes up to so long
	queue    timeline
	serial   int
	counts   [][]Count // by agent and cluster
	seen     []View    // by agent: the latest that it received
	stopped  []map[int]bool
	starts   []map[int]uint32
	fences   []int
	wrong    []string
	lastTick []int64
	shells   []shell
	// the system's master in each: agent, and which of its machines
	terms map[uint64][2]int
}

// shell is the part that survives an agent's machine, whose process may die, or be stopped.
type shell struct {
	past Past
	left []int // agents that are gone for certain
	// what it wants done in so many actions still is, and then it is dead; -1: it does not die
	dying int
	down  bool
	until int64 // it stands still until then, or begins anew
	lives int
}

// begun: the process of a machine has died, and the next one begins.
type begun struct{}

type timed struct {
	at     int64
	serial int
	to     int
	event  Event
	from   int // a neighbour, -1: none
}

type timeline []timed

func (t timeline) Len() int { return len(t) }
func (t timeline) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].serial < t[j].serial
}
func (t timeline) Swap(i, j int) { t[i], t[j] = t[j], t[i] }
func (t *timeline) Push(x any)   { *t = append(*t, x.(timed)) }
func (t *timeline) Pop() any     { x := (*t)[len(*t)-1]; *t = (*t)[:len(*t)-1]; return x }

// shape is the structure of a system.
type shape struct {
	clusters, hosts, procs int // hosts of a cluster, processes of a host
	// every cluster has a network of its own; the host behind its last one is on that of the next
	// as well
	apart    bool
	iop      bool // masters are the agents beside I/O processes
	onDeath  Treatment
	restarts int
}

// build makes a chain of clusters, each with hosts for its ranks and one, the last, for the I/O
// processes to the next cluster.
func build(s shape, seed uint64) *world {
	cfg := Config{BeatMS: 100, LimitMS: 400, FenceMS: 3000, SilentMS: 700}
	for c := range s.clusters {
		cl := Cluster{Name: fmt.Sprint("c", c), OnDeath: s.onDeath, Restarts: s.restarts,
			Want: s.hosts * s.procs}
		for range s.hosts {
			network := 0
			if s.apart {
				network = c
			}
			cl.Agents = append(cl.Agents, len(cfg.Agents))
			cfg.Agents = append(cfg.Agents, Agent{Networks: []int{network}})
		}
		last := &cfg.Agents[len(cfg.Agents)-1]
		last.IOP = true
		if s.apart && c+1 < s.clusters {
			last.Networks = append(last.Networks, c+1)
		}
		for k := range cl.Agents { // beside I/O processes first, or last
			i := k
			if s.iop {
				i = len(cl.Agents) - 1 - k
			}
			cl.Candidates = append(cl.Candidates, cl.Agents[i])
		}
		cfg.Clusters = append(cfg.Clusters, cl)
	}
	w := &world{cfg: cfg, terms: map[uint64][2]int{}, rand: rand.New(rand.NewPCG(seed, 9)),
		cut: map[int]bool{}, slowMS: 3}
	for i := range cfg.Agents {
		own := cfg
		own.Self = i
		w.machines = append(w.machines, New(own, 0))
		w.alive = append(w.alive, true)
		w.counts = append(w.counts, make([]Count, s.clusters))
		w.seen = append(w.seen, View{})
		w.stopped = append(w.stopped, map[int]bool{})
		w.starts = append(w.starts, map[int]uint32{})
		w.fences = append(w.fences, 0)
		w.lastTick = append(w.lastTick, -1)
		w.shells = append(w.shells, shell{dying: -1})
		w.post(int64(w.rand.IntN(50)), i, -1, Tick{})
	}
	for c, cl := range cfg.Clusters {
		for _, a := range cl.Agents {
			w.count(a, c, Count{Life: 1, Alive: s.procs})
		}
	}
	return w
}

func (w *world) post(at int64, to, from int, e Event) {
	w.serial++
	heap.Push(&w.queue, timed{at, w.serial, to, e, from})
}

// count sets the count of an agent's host.
func (w *world) count(agent, cluster int, c Count) {
	w.counts[agent][cluster] = c
	w.post(w.now+1, agent, -1, Counted{cluster, c})
}

// die ends an agent with all its host's processes.
func (w *world) die(agent int) { w.alive[agent] = false }

// kill has the process of an agent's machine die after so many more messages; another one starts
// after delay, with the state of the shell.
func (w *world) kill(agent, more int, delay int64) {
	w.shells[agent].dying, w.shells[agent].until = more, w.now+delay
	w.post(w.now, agent, -1, Tick{})
}

// stop stops it for so long.
func (w *world) stop(agent int, delay int64) { w.shells[agent].until = w.now + delay }

// revive begins the next machine of an agent.
func (w *world) revive(agent int) {
	s, own := &w.shells[agent], w.cfg
	own.Self = agent
	s.down, s.dying = false, -1
	s.lives++
	w.machines[agent] = Revive(own, s.past, w.now)
	for _, g := range s.left {
		w.post(w.now, agent, -1, Gone{g})
	}
	for c, n := range w.counts[agent] {
		w.post(w.now, agent, -1, Counted{c, n})
	}
	w.post(w.now, agent, -1, Tick{})
}

// certain notifies all agents that one is gone.
func (w *world) certain(agent int) {
	for i := range w.machines {
		w.post(w.now+int64(w.rand.IntN(50)), i, -1, Gone{agent})
	}
}

// reaches: two neighbours have a network in common that carries something.
func (w *world) reaches(a, b int) bool {
	if w.split > 0 && (a < w.split) != (b < w.split) {
		return false
	}
	for _, n := range w.cfg.Agents[a].Networks {
		for _, k := range w.cfg.Agents[b].Networks {
			if n == k && !w.cut[n] {
				return true
			}
		}
	}
	return false
}

// run lets time pass until then, and checks what must always hold.
func (w *world) run(until int64) {
	for len(w.queue) > 0 && w.queue[0].at <= until {
		t := heap.Pop(&w.queue).(timed)
		w.now = max(w.now, t.at)
		if !w.alive[t.to] || t.from >= 0 && !w.reaches(t.from, t.to) {
			continue
		}
		sh := &w.shells[t.to]
		if sh.dying < 0 && !sh.down && w.now < sh.until {
			w.post(sh.until, t.to, t.from, t.event)
			continue
		}
		switch e := t.event.(type) {
		case Tick:
			w.lastTick[t.to] = -1
		case Gone:
			sh.left = append(sh.left, e.Agent)
		case begun:
			w.revive(t.to)
			continue
		}
		if sh.down {
			continue
		}
		m := w.machines[t.to]
		actions := m.Step(t.event, w.now)
		if sh.dying >= 0 && len(actions) >= sh.dying {
			actions, sh.down = actions[:sh.dying], true
			w.post(max(sh.until, w.now+1), t.to, -1, begun{})
		} else if sh.dying >= 0 {
			sh.dying -= len(actions)
		}
		w.do(t.to, actions)
		if sh.down {
			continue
		}
		if at := m.Deadline(); w.lastTick[t.to] < 0 || at < w.lastTick[t.to] {
			w.lastTick[t.to] = at
			w.post(at, t.to, -1, Tick{})
		}
		w.check()
	}
	w.now = until
}

func (w *world) do(agent int, actions []Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case Send:
			own := w.cfg
			own.Self = agent
			w.shells[agent].past.Sent(&a.Message, &own, w.now)
			if w.rand.Float64() >= w.lossy {
				w.post(w.now+1+w.rand.Int64N(w.slowMS), a.To, agent, Received{a.Message})
			}
		case Learned:
			if !a.View.newer(&w.seen[agent]) {
				w.complain("agent %d was told the view %d.%d after %d.%d", agent, a.View.Term,
					a.View.Version, w.seen[agent].Term, w.seen[agent].Version)
			}
			w.seen[agent] = a.View
			if life := [2]int{agent, w.shells[agent].lives}; a.View.Master == agent {
				if before, ok := w.terms[a.View.Term]; ok && before != life {
					w.complain("agent %d is the master in term %d, in which agent %d was", agent,
						a.View.Term, before[0])
				}
				w.terms[a.View.Term] = life
			}
			w.shells[agent].past.Told(&a.View)
		case Start:
			n := w.counts[agent][a.Cluster]
			if n.Life >= a.Life { // the previous machine has sent it
				continue
			}
			w.starts[agent][a.Cluster]++
			delete(w.stopped[agent], a.Cluster)
			w.count(agent, a.Cluster, Count{Life: a.Life, Alive: n.Alive + n.Lost})
		case End:
			if w.counts[agent][a.Cluster].Life <= a.Life {
				w.stopped[agent][a.Cluster] = true
			}
		case Fence:
			w.fences[agent]++
		}
	}
}

func (w *world) complain(format string, args ...any) {
	if len(w.wrong) < 5 {
		w.wrong = append(w.wrong, fmt.Sprintf("at %d ms: ", w.now)+fmt.Sprintf(format, args...))
	}
}

// check: at most one agent acts in a seat. The dead do not act.
func (w *world) check() {
	for seat := System; seat < len(w.cfg.Clusters); seat++ {
		holder := -1
		agents := w.cfg.Clusters[max(seat, 0)].Agents
		n := len(agents)
		if seat == System {
			n = len(w.machines)
		}
		for k := range n {
			i := k
			if seat != System {
				i = agents[k]
			}
			if !w.alive[i] || w.shells[i].down || !w.machines[i].Holds(seat, w.now) {
				continue
			}
			if holder >= 0 {
				w.complain("agents %d and %d both act in seat %d", holder, i, seat)
			}
			holder = i
		}
	}
}

// settled returns the reason why the living do not agree on one view in which every cluster has a
// state; "": they do.
func (w *world) settled(is func(View) bool) string {
	master := -1
	for i, m := range w.machines {
		if w.alive[i] && !w.shells[i].down && m.Holds(System, w.now) {
			master = i
		}
	}
	if master < 0 {
		return "there is no system's master"
	}
	v := w.machines[master].View()
	for i, m := range w.machines {
		if o := m.View(); w.alive[i] && !w.shells[i].down && (o.newer(&v) || v.newer(&o)) {
			return fmt.Sprintf("agent %d has the view %d.%d, the master %d has %d.%d", i, o.Term,
				o.Version, master, v.Term, v.Version)
		}
	}
	if !is(v) {
		return fmt.Sprintf("the view is %+v", v)
	}
	return ""
}

// within runs until the system is settled; how long that takes, or -1.
func (w *world) within(limit int64, is func(View) bool) int64 {
	for begin := w.now; w.now-begin <= limit; w.run(w.now + 10) {
		if w.settled(is) == "" {
			return w.now - begin
		}
	}
	return -1
}
