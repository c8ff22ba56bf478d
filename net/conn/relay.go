package conn

import (
	"slices"

	"libspx/ft/rankset"
)

// relayed is a frame of other processes held in this one. It holds one buffer of its class, given
// by from.
type relayed struct {
	from  int
	class int // Left as it came
	frame Frame
}

// advertise sends the neighbours the processes that this one reaches, if that has changed: over
// static connections at once, and through one neighbour. Tick calls it, so that many changes cost
// one message.
func (n *Node) advertise(out *Output) {
	if !n.stale {
		return
	}
	n.stale = false
	var ranks []int
	for p, l := range n.links {
		if l.static {
			ranks = append(ranks, p)
		}
	}
	slices.Sort(ranks)
	near, far := rankset.Of(ranks...), rankset.Set{}
	for _, p := range ranks {
		far = far.Union(n.links[p].near)
	}
	if near.Equal(n.near) && far.Equal(n.far) {
		return
	}
	n.near, n.far = near, far
	for _, p := range ranks {
		out.send(p, Frame{Kind: Advert, Near: near, Far: far})
	}
}

// way returns the neighbour through which a frame for dst continues with at most left hops after
// it, and how many of them it needs; -1: none. Of several it is another one for each pair of
// processes, one with a buffer free if there is one.
func (n *Node) way(src, dst, left int) (neighbour, needs int) {
	for needs = 1; needs <= left; needs++ {
		var able []int
		for p, l := range n.links {
			if l.static && !l.closing && p != src &&
				(needs == 1 && l.near.Has(dst) || needs == 2 && l.far.Has(dst)) {
				able = append(able, p)
			}
		}
		if len(able) == 0 {
			continue
		}
		slices.Sort(able)
		first := (src + dst) % len(able)
		for i := range able {
			if p := able[(first+i)%len(able)]; n.links[p].credits[needs] > 0 {
				return p, needs
			}
		}
		return able[first], needs
	}
	return -1, 0
}

// relay takes a frame for another process.
func (n *Node) relay(from int, f Frame, out *Output) {
	if f.Left < 1 || f.Left >= hops {
		return // not a frame of this protocol's
	}
	r := relayed{from, f.Left, f}
	// acknowledgements hold no buffer; one that finds no way is lost, and the next one contains as
	// much
	if f.Kind == Ack {
		n.forwardOne(r, out)
		return
	}
	n.queue = append(n.queue, r)
	n.forward(out)
}

// forward sends on what can be sent on. Frames of a pair stay in order as long as their way does.
func (n *Node) forward(out *Output) {
	stuck := map[int]bool{}
	n.queue = slices.DeleteFunc(n.queue, func(r relayed) bool {
		if stuck[r.frame.Dst] || !n.forwardOne(r, out) {
			stuck[r.frame.Dst] = true
			return false
		}
		n.repay(r, out)
		return true
	})
}

// forwardOne sends a frame on; false if it has to wait for a buffer. A frame without any way is
// dropped: its sender sends it again.
func (n *Node) forwardOne(r relayed, out *Output) bool {
	f := r.frame
	if l := n.open(f.Dst); l != nil {
		f.Left = 0
		l.used = n.tick()
		out.send(f.Dst, f)
		n.Stats.Forwarded++
		return true
	}
	next, needs := n.way(f.Src, f.Dst, r.class-1)
	if next < 0 {
		return true
	}
	if f.Kind == Data {
		if n.links[next].credits[needs] == 0 {
			return false
		}
		n.links[next].credits[needs]--
	}
	f.Left = needs
	out.send(next, f)
	n.Stats.Forwarded++
	return true
}

// repay gives a buffer back to the neighbour that used it, many at a time.
func (n *Node) repay(r relayed, out *Output) {
	l := n.links[r.from]
	if l == nil {
		return
	}
	if l.owed[r.class]++; l.owed[r.class] >= max(1, n.cfg.Relay/4) {
		out.send(r.from, Frame{Kind: Credit, Class: r.class, N: l.owed[r.class]})
		l.owed[r.class] = 0
	}
}
