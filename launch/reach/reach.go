// Package reach chooses the addresses by which the hosts of a job reach each other. It owns the
// choice alone: a pure function over what every host says of its interfaces, addresses and routes
// (launch/agent asks the kernel for these). It must not touch a network. It serves no section of
// the standard; MPI says nothing of networks.
//
// A host has one address for all others. In order:
//
//  1. --iface, if it was given: of each host, only the addresses of that interface, or in that
//     network, count.
//  2. A network that all hosts are in. Of several, the fastest, if all speeds are known; else that
//     by which the hosts were started; else the first of the first host. A network in which two
//     hosts have the same address is none (those of containers and virtual machines within a host
//     are so).
//  3. If there is none: addresses between which routes lead, both ways by the interfaces that have
//     them.
package reach

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Host is what a host says of itself.
type Host struct {
	Name string
	// the network stack of this machine, or container: those with the same are reached alike.
	// Empty: not known
	Stack     string
	Addresses []Address
	Routes    []Route
	Near      netip.Addr // that to which a remote shell has come; not valid: not known
}

// Address is one of an interface that is up.
type Address struct {
	Iface   string
	Addr    netip.Addr
	Network netip.Prefix
	Speed   int // of the interface, in Mbit/s; 0: not known
	// of a network that does not leave the host (a bridge with no port but those of external
	// processes), or that has two ends (a tunnel): taken where it is named, only
	Inner bool
}

// Route is an entry of a host's main table.
type Route struct {
	To     netip.Prefix
	Iface  string // empty: the way is forbidden
	Metric int
}

// Common is a network that all hosts are in.
type Common struct {
	Network netip.Prefix
	Iface   string // of the first host
	Speed   int    // the least of the hosts'; 0: not known of all
}

func (c Common) String() string {
	text := c.Network.String() + " (" + c.Iface
	switch {
	case c.Speed >= 1000:
		text += fmt.Sprintf(", %g Gbit/s", float64(c.Speed)/1000)
	case c.Speed > 0:
		text += fmt.Sprintf(", %d Mbit/s", c.Speed)
	}
	return text + ")"
}

// Plan is what was chosen.
type Plan struct {
	At     []netip.Addr // by host
	Chosen *Common      // nil: hosts are reached by routes
	Others []Common     // which could have been chosen, too
}

// Choose finds an address for every host. iface is what --iface says; hosts before free have an
// address already, their only one, for which it does not count.
func Choose(hosts []Host, iface string, free int) (p Plan, err error) {
	if hosts, err = restrict(hosts, iface, free); err != nil {
		return p, err
	}
	list := common(hosts)
	if len(list) == 0 {
		p.At, err = byRoutes(hosts)
		return p, err
	}
	rank(hosts, list)
	p.Chosen, p.Others = &list[0], list[1:]
	for _, h := range hosts {
		p.At = append(p.At, h.in(list[0].Network))
	}
	return p, nil
}

// restrict leaves to each host the addresses that count.
func restrict(hosts []Host, iface string, free int) ([]Host, error) {
	out := slices.Clone(hosts)
	var lack, have []string
	for i := range out {
		h := &out[i]
		if i < free {
			continue
		}
		if iface != "" {
			h.Addresses = Named(iface, h.Addresses)
		} else {
			h.Addresses = slices.DeleteFunc(slices.Clone(h.Addresses),
				func(a Address) bool { return a.Inner || !Usable(a.Addr) })
		}
		switch {
		case len(h.Addresses) > 0:
			have = append(have, h.Name)
		case iface != "":
			lack = append(lack, fmt.Sprintf("host %s (there are: %s)", h.Name,
				addressList(hosts[i].Addresses)))
		default:
			lack = append(lack, fmt.Sprintf("host %s (there are: %s)", h.Name,
				addressList(hosts[i].Addresses)))
		}
	}
	switch {
	case len(lack) == 0:
		return out, nil
	case iface == "":
		return nil, fmt.Errorf(
			"no interface has an address by which other hosts could reach it: %s; --iface names "+
				"one", strings.Join(lack, "; "))
	case len(have) == 0:
		return nil, fmt.Errorf(
			"--iface %s: no interface that is up has that name or an address in that network on %s",
			iface, strings.Join(lack, "; "))
	}
	return nil, fmt.Errorf(
		"--iface %s: no interface that is up has that name or an address in that network on %s; "+
			"it is there on %s alone; a network (10.1.0.0/16) in place of a name holds also "+
			"where hosts name their interfaces differently",
		iface, strings.Join(lack, "; "), strings.Join(have, ", "))
}

// Named are the addresses that --iface means: of an interface, or in a network.
func Named(iface string, list []Address) (out []Address) {
	network, err := netip.ParsePrefix(iface)
	for _, a := range list {
		if !a.Addr.IsLinkLocalUnicast() && (a.Iface == iface || err == nil &&
			network.Contains(a.Addr)) {
			out = append(out, a)
		}
	}
	return out
}

// Usable: another host could have a way to it.
func Usable(a netip.Addr) bool {
	return a.IsValid() && !a.IsLoopback() && !a.IsLinkLocalUnicast() && !a.IsUnspecified() &&
		!a.IsMulticast()
}

func addressList(list []Address) string {
	var out []string
	for _, a := range list {
		out = append(out, fmt.Sprintf("%s %v", a.Iface, a.Addr))
	}
	if out == nil {
		return "none"
	}
	return strings.Join(out, ", ")
}

// common are the networks that all hosts are in, in the order of the first host.
func common(hosts []Host) (out []Common) {
	for _, a := range hosts[0].Addresses {
		c := Common{a.Network, a.Iface, a.Speed}
		if a.Network.IsSingleIP() || slices.ContainsFunc(out,
			func(o Common) bool { return o.Network == c.Network }) {
			continue
		}
		taken, all := map[netip.Addr]bool{}, true
		for _, h := range hosts {
			at := h.in(c.Network)
			// the loopback of one machine, with several names: --iface says so
			all = all && at.IsValid() && (!taken[at] || at.IsLoopback())
			taken[at] = true
			if i := slices.IndexFunc(h.Addresses,
				func(x Address) bool { return x.Addr == at }); i >= 0 && c.Speed > 0 {
				c.Speed = min(c.Speed, h.Addresses[i].Speed)
			}
		}
		if all {
			out = append(out, c)
		}
	}
	return out
}

// in is the host's address in a network: that of the interface by which its own packets go there,
// if it has several.
func (h *Host) in(network netip.Prefix) (at netip.Addr) {
	way, _ := h.lookUp(network.Addr().Next())
	for _, a := range h.Addresses {
		if a.Network == network && (!at.IsValid() || way.Iface == a.Iface &&
			h.ifaceOf(at) != way.Iface) {
			at = a.Addr
		}
	}
	return at
}

func (h *Host) ifaceOf(at netip.Addr) string {
	for _, a := range h.Addresses {
		if a.Addr == at {
			return a.Iface
		}
	}
	return ""
}

// rank puts the network first that is to be taken.
func rank(hosts []Host, list []Common) {
	known := !slices.ContainsFunc(list, func(c Common) bool { return c.Speed == 0 })
	near := map[netip.Prefix]int{}
	for _, c := range list {
		for _, h := range hosts {
			if h.Near.IsValid() && c.Network.Contains(h.Near) {
				near[c.Network]++
			}
		}
	}
	slices.SortStableFunc(list, func(x, y Common) int {
		if known && x.Speed != y.Speed {
			return cmp.Compare(y.Speed, x.Speed)
		}
		return cmp.Compare(near[y.Network], near[x.Network])
	})
}
