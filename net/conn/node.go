package conn

import (
	"slices"

	"libspx/ft/rankset"
)

// Kind is the purpose of a frame.
type Kind uint8

// Kinds of frames.
const (
	Data   Kind = iota // a message, or a part of one, from Src to Dst
	Ack                // Src has delivered all frames below Seq that Dst sent
	Credit             // the receiver of this may send N more frames of a class to be relayed
	// the processes that the sender reaches at once (Near), and through one other (Far)
	Advert
	Close // the last frame on a shortcut
)

// Frame is what goes over a connection.
type Frame struct {
	Kind     Kind
	Src, Dst int    // of Data and Ack
	Seq      uint64 // of Data: its number from Src to Dst
	Left     int    // of Data and Ack: hops that it may take after this one
	Size     int    // of Data: bytes
	Payload  any    // of Data: the sender's; not inspected by Node

	Class, N  int
	Near, Far rankset.Set
}

// Send is a frame for a connected process.
type Send struct {
	To    int
	Frame Frame
}

// Output is what the shell has to do, in this order.
type Output struct {
	Sends   []Send
	Deliver []Frame // messages for this process, in order for each sender
	Connect []int   // answered by Opened or Refused
	Close   []int   // after what has been sent
}

func (o *Output) send(to int, f Frame) { o.Sends = append(o.Sends, Send{to, f}) }

// Config is a process's part of a plan of connections.
type Config struct {
	Self   int
	Static []int // kept as long as both ends live; both ends must name each other
	Cache  int   // shortcuts at most; 0: none, everything is relayed
	// bytes to one receiver that went through relays and are not acknowledged, at most; 0: 1 MiB
	Window int
	// frames of one class that a neighbour may have in this process to be relayed; 0: 64
	Relay int
}

// Stats counts what a Node has done.
type Stats struct {
	Direct, Relayed, Forwarded, Again, Opened, Evicted, Refused int
}

// Add adds another Node's counts.
func (s *Stats) Add(t Stats) {
	s.Direct += t.Direct
	s.Relayed += t.Relayed
	s.Forwarded += t.Forwarded
	s.Again += t.Again
	s.Opened += t.Opened
	s.Evicted += t.Evicted
	s.Refused += t.Refused
}

// link is a connection.
type link struct {
	static  bool
	closing bool // Close was sent: only frames of the other end are still to come
	used    uint64

	near, far rankset.Set // of its last Advert
	credits   [hops]int   // frames that may be sent to be relayed, by hops left
	owed      [hops]int   // credits that go back with the next Credit frame
}

// hops is the most that a frame takes, so that a class is the number of hops left: 0 for the last.
const hops = 3

// Node is one process's connections.
type Node struct {
	Stats Stats

	cfg     Config
	links   map[int]*link
	opening map[int]bool
	dead    rankset.Set
	pairs   map[int]*pair
	queue   []relayed   // frames of other processes that wait for a link or a credit
	near    rankset.Set // as advertised
	far     rankset.Set
	stale   bool   // what is advertised may have changed
	clock   uint64 // counts uses of links
	ticks   int
}

// New returns a process without connections; Start requests the first ones.
func New(cfg Config) *Node {
	if cfg.Window == 0 {
		cfg.Window = 1 << 20
	}
	if cfg.Relay == 0 {
		cfg.Relay = 64
	}
	return &Node{cfg: cfg, links: map[int]*link{}, opening: map[int]bool{}, pairs: map[int]*pair{}}
}

// Start opens the static connections. Of two processes that name each other the lower one opens.
func (n *Node) Start() (out Output) {
	for _, p := range n.cfg.Static {
		if n.cfg.Self < p {
			n.connect(p, &out)
		}
	}
	return out
}

// Connections is the number of connections open or being opened.
func (n *Node) Connections() int { return len(n.links) + len(n.opening) }

// Submit takes a message for another process.
func (n *Node) Submit(dst, size int, payload any) (out Output) {
	p := n.pair(dst)
	p.waiting = append(p.waiting, Frame{Kind: Data, Src: n.cfg.Self, Dst: dst, Seq: p.next,
		Size: size, Payload: payload})
	p.next++
	n.pump(dst, &out)
	return out
}

// Accepts reports whether a connection requested by another process may be made. A connection that
// this process is opening to it is abandoned if the other process is the lower.
func (n *Node) Accepts(peer int) bool {
	if n.links[peer] != nil || n.dead.Has(peer) || n.opening[peer] && n.cfg.Self < peer {
		return false
	}
	return n.isStatic(peer) || n.shortcuts()+len(n.opening) <= n.limit()
}

// Opened is called when a connection exists, whichever end requested it.
func (n *Node) Opened(peer int) (out Output) {
	delete(n.opening, peer)
	if n.dead.Has(peer) { // the news of its death was faster
		out.Close = append(out.Close, peer)
		return out
	}
	l := &link{static: n.isStatic(peer), used: n.tick()}
	for class := 1; class < hops; class++ {
		l.credits[class] = n.cfg.Relay
	}
	n.links[peer] = l
	n.Stats.Opened++
	if l.static {
		out.send(peer, Frame{Kind: Advert, Near: n.near, Far: n.far})
		n.stale = true
	}
	n.evict(&out)
	n.progress(&out)
	return out
}

// Refused is called when a requested connection could not be made.
func (n *Node) Refused(peer int) (out Output) {
	delete(n.opening, peer)
	n.Stats.Refused++
	n.pair(peer).patience = n.patience(peer)
	n.progress(&out)
	return out
}

// Dead is called when a process has died, or a static connection to it broke for good. Nothing is
// sent to it any more.
func (n *Node) Dead(peer int) (out Output) {
	n.dead = n.dead.Union(rankset.Of(peer))
	delete(n.opening, peer)
	delete(n.pairs, peer)
	if l := n.links[peer]; l != nil {
		delete(n.links, peer)
		out.Close = append(out.Close, peer)
	}
	n.queue = slices.DeleteFunc(n.queue, func(r relayed) bool {
		if r.frame.Dst != peer && r.frame.Src != peer {
			return false
		}
		n.repay(r, &out)
		return true
	})
	for _, p := range n.pairs { // the frames it held are sent again with the next tick
		p.sent = min(p.sent, n.ticks-again)
	}
	n.stale = true
	n.progress(&out)
	return out
}

// Receive takes a frame that came over the connection to a process.
func (n *Node) Receive(from int, f Frame) (out Output) {
	l := n.links[from]
	if l == nil { // of a connection that is gone
		return out
	}
	l.used = n.tick()
	switch f.Kind {
	case Data, Ack:
		switch {
		case f.Dst != n.cfg.Self:
			n.relay(from, f, &out)
		case f.Kind == Data:
			n.arrived(from, f, &out)
		default:
			n.acknowledged(f.Src, f.Seq, &out)
		}
	case Credit:
		if f.Class > 0 && f.Class < hops {
			l.credits[f.Class] += f.N
		}
		n.progress(&out)
	case Advert:
		n.stale = n.stale || !l.near.Equal(f.Near)
		l.near, l.far = f.Near, f.Far
		n.progress(&out)
	case Close:
		n.closed(from, l, &out)
	}
	return out
}

// Tick is called now and then, about every round trip through two relays: it sends acknowledgements
// and news of routes that are due, and sends again what seems lost.
func (n *Node) Tick() (out Output) {
	n.ticks++
	n.advertise(&out)
	for _, dst := range n.known() {
		n.overdue(dst, &out)
	}
	n.progress(&out)
	return out
}

// progress moves whatever can move after a change.
func (n *Node) progress(out *Output) {
	n.forward(out)
	for _, dst := range n.known() {
		n.pump(dst, out)
	}
}

// known lists the processes with which this one communicates, in a fixed order.
func (n *Node) known() []int {
	list := make([]int, 0, len(n.pairs))
	for dst := range n.pairs {
		list = append(list, dst)
	}
	slices.Sort(list)
	return list
}

func (n *Node) tick() uint64 {
	n.clock++
	return n.clock
}

func (n *Node) isStatic(p int) bool {
	_, ok := slices.BinarySearch(n.cfg.Static, p)
	return ok
}
