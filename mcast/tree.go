package mcast

import (
	"cmp"
	"maps"
	"slices"
)

// A Branch is a part of a set: its first member gets the message and forwards it to the rest.
type Branch []Member

// Lead is the member that gets the message.
func (b Branch) Lead() Member { return b[0] }

// Children are the branches to which a process on host home, which has to serve rest, forwards a
// message, in order of sending. A host gets the message once: its first member has the rest of the
// host. Both the hosts and the members of a host form a binomial tree, so that n members have it
// after log2(n) steps. Where processes outnumber processors, each step costs a scheduling turn:
// then the members of a host are cut into `width` equal branches instead; 0: they are not.
// Processes of one host have consecutive numbers. Where sw gives the switch of each host (nil: not
// known), a switch gets the message once, too: its first member has the hosts of that switch, and
// first of all half of the other switches.
func Children(rest []Member, home uint32, host, sw func(uint32) uint32, width int) []Branch {
	var out []Branch
	var mine []Member
	var hosts []Branch           // of the other hosts, on this switch
	far := map[uint32][]Member{} // by switch
	for i := 0; i < len(rest); {
		k := i + 1
		for k < len(rest) && host(rest[k].Proc) == host(rest[i].Proc) {
			k++
		}
		switch h := host(rest[i].Proc); {
		case h == home && mine == nil:
			mine = rest[i:k]
		case sw != nil && sw(h) != sw(home):
			far[sw(h)] = append(far[sw(h)], rest[i:k]...)
		default:
			hosts = append(hosts, rest[i:k])
		}
		i = k
	}
	for switches := slices.Sorted(maps.Keys(far)); len(switches) > 0; {
		at := len(switches) / 2
		var b Branch
		for _, s := range switches[at:] {
			b = append(b, far[s]...)
		}
		slices.SortFunc(b, func(x, y Member) int { return cmp.Compare(x.Proc, y.Proc) })
		out = append(out, b)
		switches = switches[:at]
	}
	for len(hosts) > 0 { // the upper half of what is left to the first of that half
		at := len(hosts) / 2
		var b Branch
		for _, h := range hosts[at:] {
			b = append(b, h...)
		}
		out = append(out, b)
		hosts = hosts[:at]
	}
	for ; len(mine) > 0; width-- {
		at := len(mine) / 2
		if width > 0 {
			at = len(mine) - (len(mine)+width-1)/width
		}
		out = append(out, Branch(mine[at:]))
		mine = mine[:at]
	}
	return out
}
