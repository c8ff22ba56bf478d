package reach

import (
	"net/netip"
	"slices"
)

// Hosts that come to a job which runs, by a way of their own, as those of a cluster that is
// attached to a system: they need not be in a network with all that are there.

// Known is a host of the job: what it has said of itself, and its address for those of which
// nothing else is known.
type Known struct {
	Host *Host // nil: it has said nothing
	At   netip.Addr
}

// Late finds addresses for a host that comes: mine[i] is that by which known host i calls it,
// theirs[i] that by which it calls known host i; not valid: there is no way. at is the address by
// which it has come, which is taken where it fits; not valid: there is none. need says which of the
// known hosts it has to reach: no way to one of these is an error.
func Late(known []Known, h Host, at netip.Addr, need func(i int) bool) (mine, theirs []netip.Addr,
	err error) {
	h = h.usable()
	for i, k := range known {
		a, b, ok := k.late(&h, at)
		if !ok && need(i) {
			return nil, nil, apart(&h, k.Host)
		}
		mine, theirs = append(mine, b), append(theirs, a)
	}
	return mine, theirs, nil
}

// late finds an address of a known host and one of the host that comes, for each other.
func (k *Known) late(h *Host, at netip.Addr) (a, b netip.Addr, ok bool) {
	if k.At.IsLoopback() { // all is on one machine
		return k.At, k.At, true
	}
	if at.IsValid() && k.At.IsValid() && (k.Host == nil || h.shares(at, k.At)) {
		return k.At, at, true
	}
	if k.Host == nil {
		return k.At, Known{h, at}.first(), k.At.IsValid()
	}
	if k.Host.Stack != "" && k.Host.Stack == h.Stack { // another cluster's, on the same machine
		x := Known{h, k.At}.first()
		return x, x, x.IsValid()
	}
	g := k.Host.usable()
	return pair(&g, h)
}

// shares: two addresses are in one network of the host, which has the first one.
func (h *Host) shares(own, other netip.Addr) bool {
	return slices.ContainsFunc(h.Addresses, func(x Address) bool {
		return x.Addr == own &&
			x.Network.Contains(other)
	})
}

// first is an address that stands for the host.
func (k Known) first() netip.Addr {
	if !k.At.IsValid() && len(k.Host.Addresses) > 0 {
		return k.Host.Addresses[0].Addr
	}
	return k.At
}

// usable leaves the addresses by which other hosts may reach it.
func (h Host) usable() Host {
	h.Addresses = slices.DeleteFunc(slices.Clone(h.Addresses),
		func(a Address) bool { return a.Inner || !Usable(a.Addr) })
	return h
}

// Everywhere is where a host listens to which others may come by any of its networks.
func (h Host) Everywhere() netip.Addr {
	var all []netip.Addr
	for _, a := range h.usable().Addresses {
		all = append(all, a.Addr)
	}
	return Listen(all)
}
