package agent

import (
	"net/netip"
	"slices"

	"libspx/launch/control"
	"libspx/launch/reach"
	"libspx/launch/system"
)

// By which addresses the hosts of clusters that attach are reached, and reach those that are there
// (package reach, late.go). They need not all be in one network, but those that have to talk to
// each other: hosts of one cluster, and those of an I/O process and of the clusters that it joins.
// Then a host has another address for each of the others, as in systems that are started as a whole
// (pairs.go). A host that is in several networks listens in all of them, since clusters may come by
// any.

// placeExternal chooses the addresses of a host that comes. at is the one by which it has called;
// not valid: it has not.
func (a *agent) placeExternal(h *remoteHost, at netip.Addr) error {
	p, self := &a.places, a.describeOwn()
	known, numbers := []reach.Known{{Host: &self, At: a.address}}, []int{a.self}
	for _, o := range a.others {
		if !o.gone {
			known, numbers = append(known, reach.Known{Host: o.reach, At: o.at}),
				append(numbers, o.number)
		}
	}
	mine, theirs, err := reach.Late(known, *h.reach, at,
		func(i int) bool { return a.talk(h, numbers[i]) })
	if err != nil {
		return err
	}
	h.at = at
	for _, m := range mine {
		if !h.at.IsValid() {
			h.at = m
		}
	}
	if !h.at.IsValid() && len(h.reach.Addresses) > 0 { // it talks to none that is there
		h.at = h.reach.Addresses[0].Addr
	}
	one := p.pairs == nil
	for i, k := range known {
		one = one && mine[i] == h.at && theirs[i] == k.At
	}
	if !one {
		p.add(h.number, h.at, known, numbers, mine, theirs)
	}
	return nil
}

// add enters a host into the table of addresses for each other host. Those that were in none before
// had one for all.
func (p *places) add(n int, at netip.Addr, known []reach.Known, numbers []int, mine,
	theirs []netip.Addr) {
	for len(p.pairs) <= n {
		p.pairs = append(p.pairs, nil)
	}
	p.pairs = p.pairs[:n+1] // one with this number has come before, and was not taken
	for i, number := range numbers {
		if p.pairs[number] == nil {
			p.pairs[number] = slices.Repeat([]netip.Addr{known[i].At}, n)
		}
	}
	p.pairs[n] = slices.Repeat([]netip.Addr{at}, n+1)
	for i, row := range p.pairs[:n] {
		if row == nil {
			continue
		}
		var to netip.Addr
		if k := slices.Index(numbers, i); k >= 0 {
			to, p.pairs[n][i] = theirs[k], mine[k]
		}
		for len(row) < n { // those that came between had no pairs
			row = append(row, row[i])
		}
		p.pairs[i] = append(row[:n:n], to)
	}
}

// placeMember chooses the addresses of another host of a cluster that comes.
func (a *agent) placeMember(h *remoteHost) {
	if err := a.placeExternal(h, netip.Addr{}); err != nil {
		a.cannotJoin(h, err.Error())
		return
	}
	place := &control.Place{At: h.at, Networks: a.places.networks}
	if !h.at.IsLoopback() {
		place.Listen = h.reach.Everywhere()
	}
	h.box.put(&control.Message{Place: place})
}

// talk tells whether processes of a host that comes have to reach some of another host.
func (a *agent) talk(h *remoteHost, host int) bool {
	l, d := a.layoutNow(), h.joining
	if d.lead != nil && a.isOf(host, d.lead) {
		return true
	}
	for name, on := range d.at {
		if !slices.Contains(on, d.index) {
			continue
		}
		mine := a.partNamed(name)
		if mine == 0 {
			if a.newTalks(d, name, host) {
				return true
			}
			continue
		}
		for k := range a.spec.Parts {
			if theirs := k + 1; a.partsTalk(mine, theirs) || a.serves(l, mine, theirs) ||
				a.serves(l, theirs, mine) {
				if slices.Contains(a.hostsOfPart(theirs), host) {
					return true
				}
			}
		}
	}
	return false
}

// newTalks tells the same of a part that the system does not have yet.
func (a *agent) newTalks(d *addition, name string, host int) bool {
	r := a.running()
	g, err := system.Merge(r, d.come.attach)
	if err != nil {
		return false // it is refused
	}
	return slices.ContainsFunc(g.Meets(&r, name), func(theirs string) bool {
		part := a.partNamed(theirs)
		return part > 0 && slices.Contains(a.hostsOfPart(part), host)
	})
}

// partNamed is a part of the system by its name, from 1; 0: there is none.
func (a *agent) partNamed(name string) int {
	return 1 + slices.IndexFunc(a.spec.Join.Declared,
		func(d control.Declared) bool { return d.Name == name })
}

// partsTalk tells whether two parts are one cluster.
func (a *agent) partsTalk(x, y int) bool { return x == y && !a.spec.Parts[x-1].Serves }

// everywhere is where an agent's processes listen whose host has come by one address, and may be
// reached by others.
func (a *agent) everywhere(at netip.Addr) netip.Addr {
	if at.IsLoopback() || a.spec.Iface != "" {
		return netip.Addr{}
	}
	return a.describe().Everywhere()
}

// widely is where another host of the cluster that leads listens.
func (a *agent) widely(h *reach.Host) netip.Addr {
	if a.meeting == nil || a.spec.Iface != "" {
		return netip.Addr{}
	}
	return h.Everywhere()
}

// noteListens remembers where processes listen, as their hosts say.
func (a *agent) noteListens(list []control.Address) {
	if a.meeting == nil {
		return
	}
	if a.listens == nil {
		a.listens = map[int]netip.AddrPort{}
	}
	for _, x := range list {
		a.listens[x.Proc] = x.At
	}
}
