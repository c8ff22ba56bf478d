package conn

import "slices"

// pair is the state of a process's messages with one peer.
type pair struct {
	next    uint64  // number of the next message to it
	waiting []Frame // not sent yet
	unacked []Frame // went through relays, and may have to go again
	bytes   int     // of unacked
	ahead   int     // bytes sent directly while unacked was not empty
	// tick of the last frame that went through relays, or of the last acknowledgement
	sent     int
	patience int // ticks until another try to connect

	expected uint64 // number of the next message from it
	held     map[uint64]Frame
	due      bool // an acknowledgement
	fresh    int  // bytes since the last one
}

// again is the number of ticks after which a frame that went through relays, and was not
// acknowledged, is sent again.
const again = 16

// settling is the number of ticks in which processes learn the routes; until then the lack of a
// route causes no connection request.
const settling = 8

func (n *Node) pair(other int) *pair {
	p := n.pairs[other]
	if p == nil {
		p = &pair{held: map[uint64]Frame{}}
		n.pairs[other] = p
	}
	return p
}

// pump sends what waits for dst as far as it may go.
func (n *Node) pump(dst int, out *Output) {
	p := n.pairs[dst]
	for p != nil && len(p.waiting) > 0 {
		f := p.waiting[0]
		if l := n.open(dst); l != nil {
			// the receiver holds back what comes before those: not more than a window of it
			if len(p.unacked) > 0 {
				if p.ahead > 0 && p.ahead+f.Size > n.cfg.Window {
					return
				}
				p.ahead += f.Size
			}
			l.used = n.tick()
			out.send(dst, f)
			n.Stats.Direct++
		} else {
			if p.bytes > 0 && p.bytes+f.Size > n.cfg.Window || !n.hand(f, out) {
				return
			}
			p.unacked = append(p.unacked, f)
			p.bytes += f.Size
			p.sent = n.ticks
			n.Stats.Relayed++
			if n.cfg.Cache > 0 {
				n.shortcut(dst, out)
			}
		}
		p.waiting[0] = Frame{}
		p.waiting = p.waiting[1:]
	}
}

// hand forwards a frame to a relay; false if none can take it now. Without any way it requests a
// connection.
func (n *Node) hand(f Frame, out *Output) bool {
	next, needs := n.way(n.cfg.Self, f.Dst, hops-1)
	if next < 0 {
		if n.ticks >= settling || len(n.cfg.Static) == 0 {
			n.shortcut(f.Dst, out)
		}
		return false
	}
	l := n.links[next]
	if l.credits[needs] == 0 {
		return false
	}
	l.credits[needs]--
	f.Left = needs
	out.send(next, f)
	return true
}

// arrived takes a message for this process. A message that came through a relay is acknowledged,
// and so are those released by one that came directly.
func (n *Node) arrived(from int, f Frame, out *Output) {
	p := n.pair(f.Src)
	p.due = p.due || from != f.Src || len(p.held) > 0
	if f.Seq < p.expected { // a duplicate: the sender has no acknowledgement
		p.due = true
		return
	}
	p.held[f.Seq] = f
	for {
		f, ok := p.held[p.expected]
		if !ok {
			break
		}
		delete(p.held, p.expected)
		p.expected++
		p.fresh += f.Size
		out.Deliver = append(out.Deliver, f)
	}
	if p.due && p.fresh >= n.cfg.Window/4 {
		n.acknowledge(f.Src, p, out)
	}
}

// acknowledge sends a sender the messages that have arrived.
func (n *Node) acknowledge(src int, p *pair, out *Output) {
	f := Frame{Kind: Ack, Src: n.cfg.Self, Dst: src, Seq: p.expected}
	p.due, p.fresh = false, 0
	if n.open(src) != nil {
		out.send(src, f)
		return
	}
	if next, needs := n.way(n.cfg.Self, src, hops-1); next >= 0 {
		f.Left = needs
		out.send(next, f)
	}
}

// acknowledged takes the news that dst has all below seq.
func (n *Node) acknowledged(dst int, seq uint64, out *Output) {
	p := n.pair(dst)
	kept := slices.IndexFunc(p.unacked, func(f Frame) bool { return f.Seq >= seq })
	if kept < 0 {
		kept = len(p.unacked)
	}
	if kept > 0 {
		for _, f := range p.unacked[:kept] {
			p.bytes -= f.Size
		}
		p.unacked = slices.Delete(p.unacked, 0, kept)
		p.sent = n.ticks
	}
	if len(p.unacked) == 0 {
		p.ahead = 0
	}
	n.pump(dst, out)
}

// overdue acknowledges, and sends again what was not acknowledged for long.
func (n *Node) overdue(dst int, out *Output) {
	p := n.pairs[dst]
	if p.patience > 0 {
		p.patience--
	}
	if p.due {
		n.acknowledge(dst, p, out)
	}
	if len(p.unacked) == 0 || n.ticks-p.sent < again {
		return
	}
	p.sent = n.ticks
	for _, f := range p.unacked {
		if l := n.open(dst); l != nil {
			out.send(dst, f)
		} else if !n.hand(f, out) {
			break
		}
		n.Stats.Again++
	}
}
