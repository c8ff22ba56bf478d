package reach

import (
	"fmt"
	"net/netip"
	"slices"
)

// Hosts of which not all have to reach each other, as those of clusters that only I/O processes
// join: a host in two networks has another address for each of them.

// Pairs finds an address of every host for every other one: at[i][k] is that of host i which host k
// calls, and at[i][i] the one that stands for i. It is not valid where there is no way, which is an
// error between hosts that need each other. iface is what --iface says.
func Pairs(hosts []Host, iface string, need func(i, k int) bool) (at [][]netip.Addr, err error) {
	if hosts, err = restrict(hosts, iface, 0); err != nil {
		return nil, err
	}
	at = make([][]netip.Addr, len(hosts))
	for i := range at {
		at[i] = make([]netip.Addr, len(hosts))
	}
	for i := range hosts {
		for k := range i {
			a, b, ok := pair(&hosts[k], &hosts[i])
			if !ok && need(k, i) {
				return nil, apart(&hosts[k], &hosts[i])
			}
			at[k][i], at[i][k] = a, b
		}
	}
	for i := range at {
		known := slices.DeleteFunc(append(slices.Clone(at[i]), hosts[i].Addresses[0].Addr),
			func(a netip.Addr) bool { return !a.IsValid() })
		at[i][i] = known[0]
	}
	return at, nil
}

// pair finds an address of each of two hosts for the other one: in a network that both are in or,
// if there is none, those that routes tie best.
func pair(g, h *Host) (a, b netip.Addr, ok bool) {
	two := []Host{*g, *h}
	if list := common(two); len(list) > 0 {
		rank(two, list)
		return g.in(list[0].Network), h.in(list[0].Network), true
	}
	var best tie
	for _, x := range g.Addresses {
		if y, t, may := closest(g, x, h); may && (!ok || t.compare(best) > 0) {
			a, b, best, ok = x.Addr, y.Addr, t, true
		}
	}
	return a, b, ok
}

// Listen is where processes of a host listen that has these addresses for others: at the one that
// they know, or at all of the host.
func Listen(known []netip.Addr) (at netip.Addr) {
	for _, a := range known {
		switch {
		case !a.IsValid() || a == at:
		case !at.IsValid():
			at = a
		case a.Is4() && at.Is4():
			at = netip.IPv4Unspecified()
		default:
			return netip.IPv6Unspecified()
		}
	}
	return at
}

func apart(g, h *Host) error {
	return fmt.Errorf(
		"hosts %s and %s are in no network together, and no route leads from one to the other "+
			"and back: %s has %s, %s has %s; connect them, or name the interfaces that are "+
			"connected (--iface)",
		g.Name, h.Name, g.Name, addressList(g.Addresses), h.Name, addressList(h.Addresses))
}
