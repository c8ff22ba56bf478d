package agent

import (
	"net/netip"

	"libspx/cluster/layout"
	"libspx/launch/control"
	"libspx/launch/reach"
)

// Systems on several networks: clusters that are in none together, and I/O processes on hosts that
// are in the networks of both sides (MPI/SPx, 2.2). Such a host has another address for each
// network, and its processes listen at all of them; each host is told those that it can call.

// placePairs chooses where hosts are in no network all together, but those that need each other are
// in one.
func (a *agent) placePairs(all []reach.Host, who []*remoteHost) error {
	number := func(i int) int {
		if who[i] == nil {
			return 0
		}
		return who[i].number
	}
	need := a.talking()
	at, err := reach.Pairs(all, a.spec.Iface,
		func(i, k int) bool { return need[[2]int{number(i), number(k)}] })
	if err != nil {
		return err
	}
	p := &a.places
	p.pairs = make([][]netip.Addr, len(a.spec.Hosts))
	for i := range all {
		p.pairs[number(i)] = make([]netip.Addr, len(a.spec.Hosts))
		for k := range all {
			p.pairs[number(i)][number(k)] = at[i][k]
		}
	}
	for i, h := range who {
		listen := reach.Listen(at[i])
		if more := a.widely(&all[i]); more.IsValid() {
			listen = more
		}
		if h == nil {
			a.address, p.listen = at[i][i], listen
			continue
		}
		h.at = at[i][i]
		h.box.put(&control.Message{Place: &control.Place{At: h.at, Listen: listen}})
	}
	return nil
}

// talking are the pairs of hosts whose processes send to each other: those of one cluster, and of
// an I/O process and the clusters that it joins.
func (a *agent) talking() map[[2]int]bool {
	need := map[[2]int]bool{}
	l, err := layout.Decode(a.layoutText())
	if err != nil {
		return need
	}
	add := func(x, y []int) {
		for _, i := range x {
			for _, k := range y {
				need[[2]int{i, k}], need[[2]int{k, i}] = true, true
			}
		}
	}
	for c := range l.Clusters {
		add(a.hostsOfPart(a.partOfCluster(l, c)), a.hostsOfPart(a.partOfCluster(l, c)))
	}
	for i, iop := range l.IOPs {
		for _, c := range clustersOf(&iop) {
			add(a.hostsOfPart(a.partOfIOP(l, i)), a.hostsOfPart(a.partOfCluster(l, c)))
		}
	}
	return need
}

// clustersOf are those that an I/O process joins.
func clustersOf(p *layout.IOP) []int { return append(append([]int(nil), p.In...), p.Out...) }

// seen is where a host finds what another one has at an address; not valid: it cannot reach that.
func (a *agent) seen(from, host int, at netip.AddrPort) netip.AddrPort {
	p := a.places.pairs
	if p == nil || !at.IsValid() || host >= len(p) || from >= len(p) || p[host] == nil ||
		p[from] == nil {
		return at
	}
	if own := p[host][from]; own.IsValid() {
		return netip.AddrPortFrom(own, at.Port())
	}
	return netip.AddrPort{}
}

// seenFrom are the addresses of processes as a host finds them.
func (a *agent) seenFrom(from int, list []control.Address,
	hostOf func(proc int) int) []control.Address {
	if a.places.pairs == nil {
		return list
	}
	out := make([]control.Address, len(list))
	for i, x := range list {
		out[i] = control.Address{Proc: x.Proc, At: a.seen(from, hostOf(x.Proc), x.At)}
	}
	return out
}

// beatsFor says where the heartbeats of all are taken that a host finds.
func (a *agent) beatsFor(host int, b *control.Beats) *control.Beats {
	out := *b
	out.At = make([]netip.AddrPort, len(b.At))
	for i, at := range b.At {
		out.At[i] = a.seen(host, i, at)
	}
	return &out
}

// meets: two hosts can reach each other, as far as is known.
func (a *agent) meets(x, y int) bool {
	p := a.places.pairs
	return p == nil || x >= len(p) || y >= len(p) || p[x] == nil || p[x][y].IsValid()
}
