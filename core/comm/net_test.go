package comm

import (
	"fmt"
	"sync"
	"testing"

	"libspx/core/group"
	"libspx/core/ident"
	"libspx/core/mpierr"
)

const procFailed mpierr.Class = 75 // MPIX_ERR_PROC_FAILED

// network is a job of processes that are goroutines. Messages are queued without limit. Instead of
// a time limit it knows a deadlock when it sees one: every goroutine waits or has ended.
type network struct {
	t       *testing.T
	mu      sync.Mutex
	cond    *sync.Cond
	queues  map[route][][]byte
	waiting map[route]int
	running int
	stuck   bool
	dead    map[ident.ProcID]bool
	fuse    map[ident.ProcID]int // messages that a process still sends before it dies
	ids     []*Contexts
}

// route is what messages stay in order for.
type route struct {
	from, to ident.ProcID
	ctx      uint64
	tag      int
}

func proc(rank int) ident.ProcID { return ident.ProcID{Job: 9, Rank: uint32(rank)} }

func newNetwork(t *testing.T, n int) *network {
	w := &network{t: t, queues: map[route][][]byte{}, waiting: map[route]int{},
		dead: map[ident.ProcID]bool{}, fuse: map[ident.ProcID]int{}}
	w.cond = sync.NewCond(&w.mu)
	for r := range n {
		w.ids = append(w.ids, NewContexts(0, uint32(r)))
	}
	return w
}

// netLink is a Link over a network.
type netLink struct {
	w   *network
	me  ident.ProcID
	to  *Table
	ctx uint64
}

func (l *netLink) Send(to, tag int, data []byte) error {
	w, dst := l.w, l.to.Group().At(to)
	w.mu.Lock()
	defer w.mu.Unlock()
	if k, ok := w.fuse[l.me]; ok {
		if k == 0 {
			w.kill(l.me)
			panic(died{l.me})
		}
		w.fuse[l.me] = k - 1
	}
	if w.dead[dst] {
		return mpierr.New(procFailed, "%v is dead", dst)
	}
	r := route{l.me, dst, l.ctx, tag}
	w.queues[r] = append(w.queues[r], append([]byte(nil), data...))
	if w.waiting[r] > 0 {
		w.waiting[r]--
		w.running++
	}
	w.cond.Broadcast()
	return nil
}

// kill makes a process dead: those that wait for it run again, from now on.
func (w *network) kill(who ident.ProcID) {
	w.dead[who] = true
	for r, n := range w.waiting {
		if r.from == who {
			w.running += n
			w.waiting[r] = 0
		}
	}
	w.cond.Broadcast()
}

type died struct{ who ident.ProcID }

func (l *netLink) Recv(from, tag int, buf []byte) (int, error) {
	w, src := l.w, l.to.Group().At(from)
	r := route{src, l.me, l.ctx, tag}
	w.mu.Lock()
	defer w.mu.Unlock()
	for counted := false; len(w.queues[r]) == 0; {
		if w.dead[src] {
			return 0, mpierr.New(procFailed, "%v is dead", src)
		}
		if w.stuck {
			return 0, mpierr.New(mpierr.Intern, "deadlock: %v waits for %v, tag %d", l.me, src, tag)
		}
		if !counted {
			counted = true
			w.waiting[r]++
			w.block()
			continue
		}
		w.cond.Wait()
	}
	msg := w.queues[r][0]
	w.queues[r] = w.queues[r][1:]
	if len(msg) > len(buf) {
		return 0, mpierr.New(mpierr.Truncate, "%d bytes for a buffer of %d", len(msg), len(buf))
	}
	return copy(buf, msg), nil
}

// block counts one goroutine less; when the last one stops, those that wait for a living process
// wait for ever.
func (w *network) block() {
	if w.running--; w.running == 0 {
		for r, n := range w.waiting {
			if n > 0 && !w.dead[r.from] {
				w.stuck = true
			}
		}
		w.cond.Broadcast()
	}
}

// open gives a communicator its links, as capi does.
func (w *network) open(m *Made) *Comm {
	if m == nil {
		return nil
	}
	c := New(m)
	me := c.Me()
	c.Link = &netLink{w: w, me: me, to: c.RemoteTable(), ctx: c.Ctx}
	c.LocalLink = c.Link
	if c.Inter() {
		c.LocalLink = &netLink{w: w, me: me, to: c.LocalTable(), ctx: LocalCtx(c.Ctx)}
	}
	return c
}

// run runs body on n processes with their world, and returns what each returned; a process that
// died has none.
func run[T any](t *testing.T, w *network, n int,
	body func(world *Comm, ids *Contexts) T) map[int]T {
	t.Helper()
	g := group.World(proc(0), n)
	w.running = n
	var wg sync.WaitGroup
	var mu sync.Mutex
	out := map[int]T{}
	for r := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() {
				if why := recover(); why != nil {
					if _, ok := why.(died); !ok {
						t.Errorf("rank %d: %v", r, why)
					}
				}
				w.mu.Lock()
				w.block()
				w.mu.Unlock()
			}()
			v := body(w.open(NewFromGroup(g, WorldContext(0, 0), proc(r))), w.ids[r])
			mu.Lock()
			out[r] = v
			mu.Unlock()
		}()
	}
	wg.Wait()
	if w.stuck {
		t.Error("deadlock")
	}
	return out
}

// show describes a communicator in one line: the same on all its members, but for the rank.
func show(c *Comm) string {
	if c == nil {
		return "null"
	}
	s := fmt.Sprint(ranksOf(c.Group()))
	if c.Inter() {
		s += fmt.Sprint("|", ranksOf(c.RemoteGroup()))
	}
	return s
}

func ranksOf(g *group.Group) []int {
	var out []int
	for _, id := range g.IDs() {
		out = append(out, int(id.Rank))
	}
	return out
}
