package sim

import (
	"fmt"

	"libspx/net/conn"
	"libspx/net/topo"
)

// Conn describes a run of connection management: processes on a network send each other messages, mostly to a few partners that change,
// while some processes die.
type Conn struct {
	Tree     *topo.Tree
	Host     []int // of each process
	Static   bool  // keep connections by the topology; else all are made on demand
	Cache    int
	Window   int
	Relay    int
	Messages int // of each process
	Deaths   int
	Loss     float64 // part of the messages of the network that are lost, and come connRetransmit later: what is behind them on the same connection waits
	// Mutate, if set, damages the protocol, to show that the checks can fail: false loses the frame.
	Mutate func(from, to int, f *conn.Frame) bool
}

// ConnResult is what a run cost.
type ConnResult struct {
	Stats       conn.Stats // of all processes together
	Connections int        // at most, of one process
	Took        Time
}

// connTick is the time between two ticks of a process.
const connTick = Time(100)

// connRetransmit is longer than a sender waits for what relays have: it goes again, another way perhaps, while the first is still to come.
const connRetransmit = 30 * connTick

type connRun struct {
	*World
	cfg     Conn
	nodes   []*conn.Node
	limit   []int
	sent    map[[2]int]int // messages of a pair
	got     map[[2]int]int
	missing int
	most    int
	failure error
}

// RunConn simulates one schedule; everything random in it comes from seed. The error names the property that was violated.
func RunConn(cfg Conn, seed uint64) (ConnResult, error) {
	n := len(cfg.Host)
	r := &connRun{World: NewWorld(n, seed), cfg: cfg, sent: map[[2]int]int{}, got: map[[2]int]int{}}
	if delay := r.Delay; cfg.Loss > 0 {
		r.Delay = func() Time {
			d := delay()
			if r.Rand.Float64() < cfg.Loss {
				d += connRetransmit
			}
			return d
		}
	}
	for p := range n {
		var static []int
		if cfg.Static {
			static = conn.Static(cfg.Tree, cfg.Host, p)
		}
		r.limit = append(r.limit, len(static)+max(1, cfg.Cache)+1)
		r.nodes = append(r.nodes, conn.New(conn.Config{Self: p, Static: static, Cache: cfg.Cache, Window: cfg.Window, Relay: cfg.Relay}))
	}
	for p := range n {
		r.act(p, r.nodes[p].Start())
		r.After(Time(r.Rand.IntN(200)), func() { r.talk(p, cfg.Messages, nil) })
		r.After(Time(r.Rand.IntN(int(connTick))), func() { r.tick(p) })
	}
	for _, victim := range r.Rand.Perm(n)[:cfg.Deaths] {
		r.After(Time(r.Rand.IntN(cfg.Messages*20+200)), func() { r.kill(victim) })
	}
	for r.failure == nil && r.Step() {
		if r.Now > Time(cfg.Messages)*5000+1000000 {
			r.fail("%d messages have not arrived", r.missing)
		}
	}
	result := ConnResult{Connections: r.most, Took: r.Now}
	for _, node := range r.nodes {
		result.Stats.Add(node.Stats)
	}
	return result, r.failure
}

func (r *connRun) fail(format string, args ...any) {
	if r.failure == nil {
		r.failure = fmt.Errorf("at %d us: "+format, append([]any{r.Now}, args...)...)
	}
}

// talk sends a message to a partner; the partners change now and then.
func (r *connRun) talk(p, left int, partners []int) {
	if !r.Alive[p] || left == 0 {
		return
	}
	if len(partners) == 0 || r.Rand.IntN(20) == 0 {
		partners = r.Rand.Perm(len(r.nodes))[:min(len(r.nodes), 4)]
	}
	if to := partners[r.Rand.IntN(len(partners))]; to != p && r.Alive[to] && r.cfg.Host[to] != r.cfg.Host[p] {
		k := [2]int{p, to}
		r.sent[k]++
		r.missing++
		r.act(p, r.nodes[p].Submit(to, 1+r.Rand.IntN(1000), r.sent[k]))
	}
	r.After(Time(r.Rand.IntN(20)), func() { r.talk(p, left-1, partners) })
}

func (r *connRun) tick(p int) {
	if r.Alive[p] {
		r.act(p, r.nodes[p].Tick())
		if r.missing > 0 || r.Now < Time(r.cfg.Messages)*20 {
			r.After(connTick, func() { r.tick(p) })
		}
	}
}

func (r *connRun) kill(victim int) {
	r.Kill(victim)
	for k, n := range r.sent {
		if k[0] == victim || k[1] == victim {
			r.missing -= n - r.got[k]
			r.got[k] = n
		}
	}
	for p := range r.nodes {
		r.After(1+Time(r.Rand.IntN(300)), func() {
			if r.Alive[p] {
				r.act(p, r.nodes[p].Dead(victim))
			}
		})
	}
}

// act carries out what a process asks for.
func (r *connRun) act(p int, out conn.Output) {
	for _, f := range out.Deliver {
		k := [2]int{f.Src, p}
		if !r.Alive[f.Src] {
			continue
		}
		if r.got[k]++; f.Payload != r.got[k] {
			r.fail("process %d gets message %v of process %d where %d comes next", p, f.Payload, f.Src, r.got[k])
		}
		r.missing--
	}
	for _, s := range out.Sends {
		f := s.Frame
		if r.cfg.Mutate != nil && !r.cfg.Mutate(p, s.To, &f) {
			continue
		}
		r.Send(p, s.To, func() { r.act(s.To, r.nodes[s.To].Receive(p, f)) })
	}
	for _, to := range out.Connect {
		if !r.Alive[to] {
			r.After(r.Delay(), func() {
				if r.Alive[p] {
					r.act(p, r.nodes[p].Refused(to))
				}
			})
			continue
		}
		r.Send(p, to, func() { r.request(p, to) })
	}
	if c := r.nodes[p].Connections(); r.Alive[p] {
		if r.most = max(r.most, c); r.cfg.Static && c > r.limit[p] {
			r.fail("process %d has %d connections, %d are allowed", p, c, r.limit[p])
		}
	}
}

// request is a connection's arrival at the process that is asked for it.
func (r *connRun) request(from, to int) {
	if !r.nodes[to].Accepts(from) {
		r.Send(to, from, func() { r.act(from, r.nodes[from].Refused(to)) })
		return
	}
	r.Send(to, from, func() { r.act(from, r.nodes[from].Opened(to)) })
	r.act(to, r.nodes[to].Opened(from))
}
