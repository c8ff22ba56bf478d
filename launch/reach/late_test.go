package reach

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// on is a host with addresses, each in a network of 256.
func on(name string, addresses ...string) Host {
	h := Host{Name: name}
	for i, text := range addresses {
		at := netip.MustParseAddr(text)
		p, err := at.Prefix(24)
		if err != nil {
			panic(err)
		}
		iface := "eth" + string(rune('0'+i))
		h.Addresses = append(h.Addresses, Address{Iface: iface, Addr: at, Network: p})
		h.Routes = append(h.Routes, Route{To: p, Iface: iface})
	}
	return h
}

func address(text string) netip.Addr {
	if text == "" {
		return netip.Addr{}
	}
	return netip.MustParseAddr(text)
}

// A host that comes calls each of those that are there in a network with it, and is called there.
func TestLate(t *testing.T) {
	first, both, second := on("first", "10.1.0.1"), on("both", "10.1.0.2", "10.2.0.2"),
		on("second", "10.2.0.3")
	inner := on("inner", "10.1.0.7", "10.9.0.7")
	inner.Addresses[1].Inner = true
	stack := on("stack", "10.1.0.8")
	stack.Stack = "boot net"
	for name, c := range map[string]struct {
		known  []Known
		comes  Host
		at     string
		need   []int
		mine   []string
		theirs []string
		fails  string
	}{
		"one network": {[]Known{{&first, address("10.1.0.1")},
			{&both, address("10.1.0.2")}}, on("new", "10.1.0.9"), "10.1.0.9", []int{0, 1},
			[]string{"10.1.0.9", "10.1.0.9"}, []string{"10.1.0.1", "10.1.0.2"}, ""},
		"two, and one for each": {[]Known{{&first, address("10.1.0.1")},
			{&both, address("10.1.0.2")}, {&second, address("10.2.0.3")}}, on("new", "10.2.0.9"),
			"", []int{1, 2}, []string{"", "10.2.0.9", "10.2.0.9"},
			[]string{"", "10.2.0.2", "10.2.0.3"}, ""},
		"it is in both": {[]Known{{&first, address("10.1.0.1")},
			{&second, address("10.2.0.3")}}, on("new", "10.1.0.9", "10.2.0.9"), "10.1.0.9",
			[]int{0, 1}, []string{"10.1.0.9", "10.2.0.9"}, []string{"10.1.0.1", "10.2.0.3"}, ""},
		"no way to one that it needs": {[]Known{{&first, address("10.1.0.1")},
			{&both, address("10.1.0.2")}}, on("new", "10.2.0.9"), "", []int{0, 1}, nil, nil,
			"hosts new and first are in no network together"},
		"nothing is known of one": {[]Known{{nil, address("10.5.0.1")}},
			on("new", "10.2.0.9"), "10.2.0.9", []int{0}, []string{"10.2.0.9"}, []string{"10.5.0.1"},
			""},
		"nothing is known of one, nor at": {[]Known{{nil, address("10.5.0.1")}},
			on("new", "10.2.0.9"), "", []int{0}, []string{"10.2.0.9"}, []string{"10.5.0.1"}, ""},
		"one machine": {[]Known{{&first, address("127.0.0.1")}},
			on("new", "10.2.0.9"), "", []int{0}, []string{"127.0.0.1"}, []string{"127.0.0.1"}, ""},
		"a network within a host": {[]Known{{&inner, address("10.1.0.7")}},
			on("new", "10.9.0.9"), "", nil, []string{""}, []string{""}, ""},
		"another agent of the same machine": {[]Known{{&stack, address("10.1.0.8")}}, stack, "",
			[]int{0}, []string{"10.1.0.8"}, []string{"10.1.0.8"}, ""},
	} {
		mine, theirs, err := Late(c.known, c.comes, address(c.at),
			func(i int) bool { return slices.Contains(c.need, i) })
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var m, th []netip.Addr
		for i := range c.mine {
			m, th = append(m, address(c.mine[i])), append(th, address(c.theirs[i]))
		}
		if err != nil || !slices.Equal(mine, m) || !slices.Equal(theirs, th) {
			t.Errorf("%s: it is called at %v, and calls %v (%v); not at %v, and %v", name, mine,
				theirs, err, m, th)
		}
	}
}

// A host in one network listens there, one in several at all of them.
func TestEverywhere(t *testing.T) {
	for want, h := range map[string]Host{"10.1.0.1": on("one", "10.1.0.1"),
		"0.0.0.0": on("two", "10.1.0.1", "10.2.0.1"), "invalid IP": on("none")} {
		if at := h.Everywhere(); at.String() != want {
			t.Errorf("%s listens at %v, not %s", h.Name, at, want)
		}
	}
}
