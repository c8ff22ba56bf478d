package sim

import (
	"container/heap"
	"slices"

	"libspx/mcast"
)

// Wire is a network of ports that all reach each other alike, each by one port that carries one message at a time in each direction. A message of n bytes
// keeps its sender's port for Overhead + n*PerByte and arrives Latency later, when the receiver's port has been as long with it.
// Times are microseconds.
type Wire struct {
	Overhead, Latency, PerByte float64
}

// McastTimes is what a plan costs on a Wire.
type McastTimes struct {
	Last float64 // until all members have all bytes
	Free float64 // until the master has sent its part
	Sent int     // messages
}

type span struct {
	lo, hi int
	at     float64
}

type port struct {
	sends   []mcast.Send // still to be done, in order
	has     []span
	out, in float64 // when its port is free
}

// ready is when the port has the bytes of its next send; false: some are not on their way yet.
func (n *port) ready(s mcast.Send) (float64, bool) {
	for _, p := range slices.Backward(n.has) {
		if p.lo <= s.Lo && s.Hi <= p.hi {
			return p.at, true
		}
	}
	parts := slices.Clone(n.has)
	slices.SortFunc(parts, func(a, b span) int { return a.lo - b.lo })
	at, end := 0.0, s.Lo
	for _, p := range parts {
		if p.lo <= end && p.hi > end {
			end = p.hi
			at = max(at, p.at)
		}
	}
	return at, end >= s.Hi
}

type turn struct {
	at  float64
	who int
}

type turns []turn

func (q turns) Len() int           { return len(q) }
func (q turns) Less(i, j int) bool { return q[i].at < q[j].at }
func (q turns) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *turns) Push(x any)        { *q = append(*q, x.(turn)) }
func (q *turns) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// Time tells how long a plan takes from process master on, who has all bytes. Each process carries out its sends in the plan's order, each as
// soon as it has the bytes.
func (w Wire) Time(plan []mcast.Send, master, bytes int) McastTimes {
	ports := map[int]*port{}
	at := func(i int) *port {
		if ports[i] == nil {
			ports[i] = &port{}
		}
		return ports[i]
	}
	for _, s := range plan {
		at(s.From).sends = append(at(s.From).sends, s)
	}
	at(master).has = []span{{0, bytes, 0}}
	var res McastTimes
	queue := &turns{}
	next := func(who int) {
		n := at(who)
		if len(n.sends) == 0 {
			return
		}
		if t, ok := n.ready(n.sends[0]); ok {
			heap.Push(queue, turn{max(t, n.out), who})
		}
	}
	next(master)
	waits := map[int]bool{master: true} // in the queue
	for queue.Len() > 0 {
		t := heap.Pop(queue).(turn)
		from := at(t.who)
		s := from.sends[0]
		from.sends = from.sends[1:]
		busy := w.Overhead + float64(s.Hi-s.Lo)*w.PerByte
		from.out = t.at + busy
		to := at(s.To)
		to.in = max(t.at+w.Latency, to.in) + busy
		to.has = append(to.has, span{s.Lo, s.Hi, to.in})
		res.Sent++
		res.Last = max(res.Last, to.in)
		if t.who == master {
			res.Free = from.out
		}
		delete(waits, t.who)
		for _, who := range [2]int{t.who, s.To} {
			if n := at(who); !waits[who] && len(n.sends) > 0 {
				if r, ok := n.ready(n.sends[0]); ok {
					waits[who] = true
					heap.Push(queue, turn{max(r, n.out), who})
				}
			}
		}
	}
	return res
}
