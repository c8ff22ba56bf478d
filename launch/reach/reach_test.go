package reach

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// host reads a host as the tables write it: "eth0 10.0.0.1/24 @1000; docker0 172.17.0.1/16 inner;
// via 10.2.0.0/16 data0; near 10.0.0.1". A network that an address is in has its route, too.
func host(t *testing.T, name, text string) Host {
	t.Helper()
	h := Host{Name: name}
	for _, part := range strings.Split(text, ";") {
		w := strings.Fields(part)
		switch w[0] {
		case "via":
			r := Route{To: netip.MustParsePrefix(w[1])}
			if len(w) > 2 {
				r.Iface = w[2]
			}
			if len(w) > 3 {
				fmt.Sscan(w[3], &r.Metric) //nolint:errcheck // it is seen in what is chosen
			}
			h.Routes = append(h.Routes, r)
		case "near":
			h.Near = netip.MustParseAddr(w[1])
		default:
			p := netip.MustParsePrefix(w[1])
			a := Address{Iface: w[0], Addr: p.Addr(), Network: p.Masked()}
			for _, x := range w[2:] {
				if x == "inner" {
					a.Inner = true
				} else if _, err := fmt.Sscanf(x, "@%d", &a.Speed); err != nil {
					t.Fatalf("%q: %v", x, err)
				}
			}
			h.Addresses = append(h.Addresses, a)
			h.Routes = append(h.Routes, Route{To: a.Network, Iface: a.Iface})
		}
	}
	return h
}

// What is chosen for hosts with these interfaces and routes, and which other networks are named.
func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name  string
		iface string
		hosts []string
		want  string // addresses; or, behind "error:", words of the error
		other string
	}{
		{name: "one network", hosts: []string{"eth0 10.0.0.1/24", "eth0 10.0.0.2/24"},
			want: "10.0.0.1 10.0.0.2"},
		{name: "one host", hosts: []string{"lo 127.0.0.1/8; eth0 10.0.0.1/24"}, want: "10.0.0.1"},
		{name: "the faster network, and both speeds",
			hosts: []string{"eth0 10.0.0.1/24 @1000; ib0 10.9.0.1/24 @100000",
				"eth0 10.0.0.2/24 @1000; ib0 10.9.0.2/24 @25000"},
			want: "10.9.0.1 10.9.0.2", other: "10.0.0.0/24 (eth0, 1 Gbit/s)"},
		{name: "the slowest host counts",
			hosts: []string{"eth0 10.0.0.1/24 @10000; ib0 10.9.0.1/24 @100000",
				"eth0 10.0.0.2/24 @10000; ib0 10.9.0.2/24 @100"},
			want: "10.0.0.1 10.0.0.2", other: "10.9.0.0/24 (ib0, 100 Mbit/s)"},
		{name: "speeds not known: by which the hosts were started",
			hosts: []string{"eth0 10.0.0.1/24; data0 10.9.0.1/24 @100000",
				"eth0 10.0.0.2/24; data0 10.9.0.2/24 @100000; near 10.9.0.2"},
			want: "10.9.0.1 10.9.0.2", other: "10.0.0.0/24 (eth0)"},
		{name: "nothing known: the first", hosts: []string{"eth0 10.0.0.1/24; data0 10.9.0.1/24",
			"data0 10.9.0.2/24; eth0 10.0.0.2/24"},
			want: "10.0.0.1 10.0.0.2", other: "10.9.0.0/24 (data0)"},
		{name: "interface named differently, other default route",
			hosts: []string{"eth0 10.0.0.1/24; via 0.0.0.0/0 mgmt; mgmt 192.168.1.1/24",
				"enp3 10.0.0.2/24; mgmt 192.168.2.1/24; via 0.0.0.0/0 mgmt"},
			want: "10.0.0.1 10.0.0.2"},
		{name: "a bridge of containers has the same address everywhere",
			hosts: []string{"docker0 172.17.0.1/16; eth0 10.0.0.1/24",
				"docker0 172.17.0.1/16; eth0 10.0.0.2/24"}, want: "10.0.0.1 10.0.0.2"},
		{name: "inner networks with different addresses",
			hosts: []string{"virbr0 192.168.122.1/24 inner; eth0 10.0.0.1/24",
				"virbr0 192.168.122.2/24 inner; eth0 10.0.0.2/24"}, want: "10.0.0.1 10.0.0.2"},
		{name: "an inner network by name", iface: "virbr0",
			hosts: []string{"virbr0 192.168.122.1/24 inner; eth0 10.0.0.1/24",
				"virbr0 192.168.122.2/24 inner; eth0 10.0.0.2/24"},
			want: "192.168.122.1 192.168.122.2"},
		{name: "two interfaces in one network: that of the route",
			hosts: []string{"eth0 10.0.0.1/24; eth1 10.0.0.11/24", "eth0 10.0.0.2/24"},
			want:  "10.0.0.1 10.0.0.2"},
		{name: "IPv6 alone", hosts: []string{"lo ::1/128; eth0 fe80::1/64; eth0 fd77::1/64",
			"lo ::1/128; eth0 fe80::2/64; eth0 fd77::2/64"}, want: "fd77::1 fd77::2"},
		{name: "link-local addresses alone", hosts: []string{"eth0 fe80::1/64", "eth0 fe80::2/64"},
			want: "error: no interface has an address; host h0 (there are: eth0 fe80::1)"},
		{name: "IPv4 on one host, both on the other", hosts: []string{"eth0 fd77::1/64",
			"eth0 10.0.0.2/24; eth0 fd77::2/64"}, want: "fd77::1 fd77::2"},
		{name: "interface", iface: "data0",
			hosts: []string{"eth0 10.0.0.1/24 @100000; data0 10.9.0.1/24 @10",
				"eth0 10.0.0.2/24 @100000; data0 10.9.0.2/24 @10"}, want: "10.9.0.1 10.9.0.2"},
		{name: "network", iface: "10.8.0.0/15",
			hosts: []string{"eth0 10.0.0.1/24; data0 10.9.0.1/24",
				"eth0 10.0.0.2/24; fast 10.9.0.2/24"}, want: "10.9.0.1 10.9.0.2"},
		{name: "an interface with IPv4 and IPv6 here, IPv6 there", iface: "data0",
			hosts: []string{"data0 10.9.0.1/24; data0 fd77::1/64", "data0 fd77::2/64"},
			want:  "fd77::1 fd77::2"},
		{name: "an interface that some have", iface: "data0",
			hosts: []string{"eth0 10.0.0.1/24; data0 10.9.0.1/24", "eth0 10.0.0.2/24"},
			want: "error: --iface data0: no interface that is up; host h1 (there are: eth0 " +
				"10.0.0.2); it is there on h0 alone"},
		{name: "an interface that none has", iface: "ib7",
			hosts: []string{"eth0 10.0.0.1/24", "eth0 10.0.0.2/24"},
			want:  "error: --iface ib7; host h0 (there are: eth0 10.0.0.1); host h1"},
		{name: "two networks and a router",
			hosts: []string{"eth0 10.1.0.1/24; via 10.2.0.0/24 eth0",
				"eth0 10.2.0.1/24; via 10.1.0.0/24 eth0"}, want: "10.1.0.1 10.2.0.1"},
		{name: "a route of its own rather than the default route",
			hosts: []string{"mgmt 192.168.1.1/24; via 0.0.0.0/0 mgmt; data 10.1.0.1/24; via " +
				"10.0.0.0/8 data",
				"mgmt 192.168.2.1/24; via 0.0.0.0/0 mgmt; data 10.2.0.1/24; via 10.0.0.0/8 data"},
			want: "10.1.0.1 10.2.0.1"},
		{name: "the faster way among routes",
			hosts: []string{"mgmt 192.168.1.1/24 @100; via 192.168.0.0/16 mgmt; data " +
				"10.1.0.1/24 @1000; via 10.0.0.0/8 data",
				"mgmt 192.168.2.1/24 @100; via 192.168.0.0/16 mgmt; data 10.2.0.1/24 @1000; via " +
					"10.0.0.0/8 data"},
			want: "10.1.0.1 10.2.0.1"},
		{name: "two of three in one network: the third through a router",
			hosts: []string{"eth0 10.1.0.1/24; via 10.2.0.0/24 eth0",
				"eth0 10.1.0.2/24; via 10.2.0.0/24 eth0", "eth0 10.2.0.1/24; via 10.1.0.0/24 eth0"},
			want: "10.1.0.1 10.1.0.2 10.2.0.1"},
		{name: "the least metric",
			hosts: []string{"a 10.1.0.1/24; b 10.3.0.1/24; via 10.2.0.0/24 a 200; via " +
				"10.2.0.0/24 b 100", "eth0 10.2.0.1/24; via 0.0.0.0/0 eth0"},
			want: "10.3.0.1 10.2.0.1"},
		{name: "no route", hosts: []string{"eth0 10.1.0.1/24",
			"eth0 10.2.0.1/24; via 10.1.0.0/24 eth0"},
			want: "error: hosts h0 and h1 are in no network together; h0 has eth0 10.1.0.1; h1 " +
				"has eth0 10.2.0.1; --iface"},
		{name: "no route to the third", hosts: []string{"mgmt 192.168.1.1/24; eth0 10.1.0.1/24",
			"mgmt 192.168.2.1/24; eth0 10.1.0.2/24", "eth0 10.2.0.1/24"},
			want: "error: hosts h0 and h2 are in no network together"},
		{name: "a route that is forbidden",
			hosts: []string{"eth0 10.1.0.1/24; via 0.0.0.0/0 eth0; via 10.2.0.0/24",
				"eth0 10.2.0.1/24; via 0.0.0.0/0 eth0"}, want: "error: hosts h0 and h1"},
		{name: "IPv4 here, IPv6 there", hosts: []string{"eth0 10.1.0.1/24; via 0.0.0.0/0 eth0",
			"eth0 fd77::1/64; via ::/0 eth0"}, want: "error: hosts h0 and h1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var hosts []Host
			for i, text := range c.hosts {
				hosts = append(hosts, host(t, fmt.Sprintf("h%d", i), text))
			}
			p, err := Choose(hosts, c.iface, 0)
			if words, ok := strings.CutPrefix(c.want, "error: "); ok {
				if err == nil {
					t.Fatalf("%v was chosen", p.At)
				}
				for _, w := range strings.Split(words, "; ") {
					if !strings.Contains(err.Error(), w) {
						t.Errorf("%q lacks %q", err, w)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Trim(fmt.Sprint(p.At), "[]"); got != c.want {
				t.Errorf("%s was chosen, want %s", got, c.want)
			}
			var others []string
			for _, o := range p.Others {
				others = append(others, o.String())
			}
			if got := strings.Join(others, ", "); got != c.other {
				t.Errorf("other networks %q, want %q", got, c.other)
			}
		})
	}
}

// A host that is added has to fit the addresses in use, which stay as they are: also where another
// network would be faster, and where --iface is not theirs.
func TestChooseForAdded(t *testing.T) {
	a := host(t, "a", "eth0 10.0.0.1/24 @1000; ib0 10.9.0.1/24 @100000").Only(
		netip.MustParseAddr("10.0.0.1"))
	b := host(t, "b", "eth0 10.0.0.2/24 @1000; ib0 10.9.0.2/24 @100000").Only(
		netip.MustParseAddr("10.0.0.2"))
	c := host(t, "c", "ib0 10.9.0.3/24 @100000; eth0 10.0.0.3/24 @1000")
	p, err := Choose([]Host{a, b, c}, "", 2)
	if err != nil || p.At[2] != netip.MustParseAddr("10.0.0.3") ||
		p.At[0] != netip.MustParseAddr("10.0.0.1") {
		t.Errorf("%v, %v", p.At, err)
	}
	if p, err := Choose([]Host{a, b, c}, "eth0", 2); err != nil ||
		p.At[2] != netip.MustParseAddr("10.0.0.3") {
		t.Errorf("%v, %v", p.At, err)
	}
	if p, err := Choose([]Host{a, b, host(t, "d", "ib0 10.9.0.3/24")}, "", 2); err == nil {
		t.Errorf("%v was chosen for a host that the others cannot reach", p.At)
	}
}

// A thousand hosts in two networks that a router joins are placed in an unnoticeable time.
func BenchmarkByRoutes(b *testing.B) {
	var hosts []Host
	for i := range 1000 {
		net := 1 + i%2
		at := netip.AddrFrom4([4]byte{10, byte(net), byte(i >> 8), byte(i)})
		p := netip.PrefixFrom(at, 16)
		hosts = append(hosts, Host{Name: fmt.Sprint(i),
			Addresses: []Address{{Iface: "eth0", Addr: at, Network: p.Masked()}},
			Routes: []Route{{To: p.Masked(), Iface: "eth0"},
				{To: netip.MustParsePrefix("0.0.0.0/0"), Iface: "eth0"}}})
	}
	for b.Loop() {
		if _, err := Choose(hosts, "", 0); err != nil {
			b.Fatal(err)
		}
	}
}
