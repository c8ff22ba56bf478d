package reach

import (
	"cmp"
	"net/netip"
	"slices"
)

// Hosts that are in no network together, as those of two that a router joins.

// lookUp is the route to an address: the longest prefix, then the least metric. False: there is
// none, or it is forbidden.
func (h *Host) lookUp(to netip.Addr) (best Route, ok bool) {
	for _, r := range h.Routes {
		if r.To.Addr().Is4() != to.Is4() || !r.To.Contains(to) {
			continue
		}
		if !ok || r.To.Bits() > best.To.Bits() || r.To.Bits() == best.To.Bits() &&
			r.Metric < best.Metric {
			best, ok = r, true
		}
	}
	return best, ok && best.Iface != ""
}

// A pair's tie says how well an address of one host and one of another fit each other.
type tie struct {
	both bool // each is of the interface by which its host's packets go to the other
	// the shorter of the prefixes of the routes: a route of their own is meant for them, a default
	// route for all else
	bits  int
	speed int // of the slower one, if both are known
}

// tieOf: false: there is no way from one to the other, or back.
func tieOf(h *Host, a Address, g *Host, b Address) (t tie, ok bool) {
	there, ok1 := h.lookUp(b.Addr)
	back, ok2 := g.lookUp(a.Addr)
	if a.Addr.Is4() != b.Addr.Is4() || a.Addr == b.Addr || !ok1 || !ok2 {
		return t, false
	}
	return tie{there.Iface == a.Iface && back.Iface == b.Iface,
		min(there.To.Bits(), back.To.Bits()), min(a.Speed, b.Speed)}, true
}

func (t tie) compare(o tie) int {
	if t.both != o.both {
		return cmp.Compare(boolInt(t.both), boolInt(o.both))
	}
	if t.speed > 0 && o.speed > 0 && t.speed != o.speed {
		return cmp.Compare(t.speed, o.speed)
	}
	return cmp.Compare(t.bits, o.bits)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// mostCompared bounds with how many others a host of a plan is compared: hosts of a job of
// thousands are in few networks.
const mostCompared = 64

// byRoutes tries each address of the first host with those of all others that fit it best, and
// takes the plan in which the most pairs of hosts fit.
func byRoutes(hosts []Host) ([]netip.Addr, error) {
	type plan struct {
		at    []Address
		fit   int // pairs of hosts
		worst tie // with the first host
	}
	var best *plan
	furthest := 0 // the host at which the best try has ended
	for _, a := range hosts[0].Addresses {
		p := &plan{at: []Address{a}}
		for i := 1; i < len(hosts); i++ {
			b, t, ok := closest(&hosts[0], a, &hosts[i])
			if !ok {
				furthest = max(furthest, i)
				break
			}
			if p.at = append(p.at, b); i == 1 || t.compare(p.worst) < 0 {
				p.worst = t
			}
		}
		if len(p.at) < len(hosts) {
			continue
		}
		for i := range hosts {
			for k := range min(i, mostCompared) {
				if t, ok := tieOf(&hosts[i], p.at[i], &hosts[k], p.at[k]); ok {
					p.fit += 1 + boolInt(t.both)
				}
			}
		}
		if best == nil || p.fit > best.fit || p.fit == best.fit && p.worst.compare(best.worst) > 0 {
			best = p
		}
	}
	if best == nil {
		return nil, apart(&hosts[0], &hosts[furthest])
	}
	var out []netip.Addr
	for _, a := range best.at {
		out = append(out, a.Addr)
	}
	return out, nil
}

// closest is the address of g that fits address a of h best.
func closest(h *Host, a Address, g *Host) (best Address, with tie, ok bool) {
	for _, b := range g.Addresses {
		if t, may := tieOf(h, a, g, b); may && (!ok || t.compare(with) > 0) {
			best, with, ok = b, t, true
		}
	}
	return best, with, ok
}

// Only is the host with the one address that it has in a running job.
func (h Host) Only(at netip.Addr) Host {
	h.Addresses = slices.DeleteFunc(slices.Clone(h.Addresses),
		func(a Address) bool { return a.Addr != at })
	if len(h.Addresses) == 0 {
		h.Addresses = []Address{{Addr: at, Network: netip.PrefixFrom(at, at.BitLen())}}
	}
	return h
}
