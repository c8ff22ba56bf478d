package coll

// The environment of the ranks of a communicator, as far as the choice of an algorithm depends on
// it. The library fills it in from the memory file of the job, spxctl explain from its arguments.

// PartBytes is the size of a part of the memory that the ranks of a communicator share
// (Args.Shared).
const PartBytes = 1 << 20

// Place is where a process is, or counts as being.
type Place struct {
	Host   uint32 // a number, the same for all on one host
	Switch uint32 // of the host, where switches are known
	// 1 + the memory and the cache that it is bound to; 0: it is bound to none, or on another host
	Node, Cache uint32
}

// Around is the information about the ranks of a communicator together; equal at all of them.
type Around struct {
	Places []Place // by rank
	CPUs   int     // processors that the ranks of a host share
	TCP    bool    // ranks of a host talk over the network, too
	Inter  bool    // it is an intercommunicator
	// they are of several jobs: these number hosts differently, may use other processors of a host,
	// and talk otherwise
	Foreign  bool
	Switches bool // switches are known, and alike to all of them
	Moving   bool // they may come to other hosts: what they are bound to does not count
}

// Nearness groups ranks that are near each other, as in Args.
type Nearness struct {
	Levels   [][]int32
	Switched bool
	Several  bool
	Foreign  bool
	Relayed  []int32 // Args.Near
}

// Near finds the groups of ranks that are near each other: on one host, and behind one switch; on
// one host without more ranks than processors, those bound to one memory or one cache. Nothing
// counts between jobs.
func (w *Around) Near() Nearness {
	n := len(w.Places)
	switch {
	case w.Foreign:
		return Nearness{Several: true, Foreign: true}
	case w.Inter || n < 2:
		return Nearness{}
	}
	hosts, switches, nodes, caches := make([]uint32, n), make([]uint32, n), make([]uint32, n),
		make([]uint32, n)
	several, bound := false, n <= w.CPUs && !w.Moving
	for rank, p := range w.Places {
		hosts[rank], switches[rank], nodes[rank], caches[rank] = p.Host, p.Switch, p.Node, p.Cache
		several = several || p.Host != hosts[0]
		bound = bound && p.Node != 0
	}
	switch {
	case several && w.Switches:
		levels, switched := ByNetwork(switches, hosts)
		return Nearness{Levels: levels, Switched: switched, Several: true}
	case several:
		return Nearness{Levels: Levels(hosts), Several: true}
	case bound:
		return Nearness{Levels: Levels(nodes, caches)}
	}
	return Nearness{}
}

// Place sets in the call the places of its ranks.
func (a *Args) Place(w *Around, n *Nearness) {
	a.CPUs = w.CPUs
	a.Wired = w.TCP && !n.Foreign
	a.Levels, a.Switched, a.Near, a.Several = n.Levels, n.Switched, n.Relayed, n.Several
}

// Share gives the call the memory that its communicator shares, if there is any: all on one host,
// and not communicating over the network. Ranks may start persistent calls in another order than
// others.
func (a *Args) Share(offered bool) {
	if offered && !a.Persistent && a.Remote == 0 {
		a.Shared = PartBytes
	}
}
