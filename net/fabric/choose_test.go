package fabric

import (
	"net/netip"
	"strings"
	"testing"
)

var (
	here = netip.MustParseAddr("10.0.0.1")
	ipv6 = netip.MustParseAddr("fd00::1")
	link = netip.MustParseAddr("fe80::1")
)

func offer(provider, domain string, at netip.Addr) Offer {
	return Offer{Provider: provider, Domain: domain, Address: at, Longest: 1 << 30}
}

func TestChoose(t *testing.T) {
	ip := []Offer{
		offer("udp;ofi_rxd", "eth0", here), offer("tcp;ofi_rxm", "eth0", link),
		offer("tcp;ofi_rxm", "lo", netip.MustParseAddr("127.0.0.1")),
		offer("tcp;ofi_rxm", "eth0", ipv6), offer("tcp;ofi_rxm", "eth0", here),
		offer("shm", "shm", netip.Addr{}), offer("sockets", "eth0", here),
	}
	slow, fast, down := offer("verbs;ofi_rxm", "mlx5_0", netip.MustParseAddr("10.1.0.1")),
		offer("verbs;ofi_rxm", "mlx5_1", netip.MustParseAddr("10.2.0.1")),
		offer("verbs;ofi_rxm", "mlx5_2", netip.MustParseAddr("10.3.0.1"))
	slow.Speed, fast.Speed, down.Speed, down.Down = 100e9, 200e9, 400e9, true
	hardware := append([]Offer{slow, fast, down}, ip...)
	short := offer("udp;ofi_rxd", "eth0", here)
	short.Longest = 1000
	for _, c := range []struct {
		name   string
		offers []Offer
		s      Settings
		want   int
		text   string
	}{
		{"over IP, on the interface that reaches the peers", ip, Settings{Address: here}, 4, ""},
		{"the same by IPv6", ip, Settings{Address: ipv6}, 3, ""},
		{"named", ip, Settings{Address: here, Provider: "udp"}, 0, ""},
		{"named with all its layers", ip, Settings{Address: here, Provider: "udp;ofi_rxd"}, 0, ""},
		{"given up, but named", ip, Settings{Address: here, Provider: "sockets"}, 6, ""},
		{"a domain without that address", ip,
			Settings{Address: here, Provider: "tcp", Domain: "lo"}, 2, ""},
		{"of a domain's addresses not the link's own", ip[1:4],
			Settings{Address: here, Domain: "eth0"}, 2, ""},
		{"hardware first, the fastest that works", hardware, Settings{Address: here}, 1, ""},
		{"hardware by its name", hardware, Settings{Address: here, Domain: "mlx5_0"}, 0, ""},
		{"one whose link is down, but named", hardware,
			Settings{Address: here, Domain: "mlx5_2"}, 2, ""},
		{"the device with the address of the process, though another is faster", hardware,
			Settings{Address: slow.Address}, 0, ""},
		{"nothing", nil, Settings{Address: here}, -1, "offers no provider"},
		{"unknown", ip, Settings{Address: here, Provider: "quantum"}, -1,
			"offers sockets, tcp, udp"},
		{"unknown domain", ip, Settings{Address: here, Provider: "tcp", Domain: "ib0"}, -1,
			"SPX_FABRIC_DOMAIN=ib0: there are eth0, lo"},
		{"no interface", ip, Settings{Address: netip.MustParseAddr("10.9.9.9")}, -1, "10.9.9.9"},
		{"leaves files", ip, Settings{Address: here, Provider: "shm"}, -1, "/dev/shm"},
		{"leaves files, and is alone", ip[5:6], Settings{Address: here}, -1, "offers no provider"},
		{"has to be named", ip[6:], Settings{Address: here}, -1, "sockets alone"},
		{"messages too short", []Offer{short}, Settings{Address: here, Message: 16384}, -1, "udp"},
	} {
		got, err := Choose(c.offers, c.s)
		switch {
		case got != c.want:
			t.Errorf("%s: %d (%v), want %d", c.name, got, err, c.want)
		case c.text != "" && (err == nil || !strings.Contains(err.Error(), c.text)):
			t.Errorf("%s: %v, want a text with %q", c.name, err, c.text)
		case c.text == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestWanted(t *testing.T) {
	for text, want := range map[string]Ways{"": {}, "shm,tcp": {TCP: true},
		"fabric": {Fabric: true}, "fabric,tcp": {true, true}, "shm fabric": {Fabric: true}} {
		if got := Wanted(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestVersionAndSleep(t *testing.T) {
	if CheckVersion(1<<16|16) == nil || CheckVersion(1<<16|17) != nil ||
		CheckVersion(2<<16) != nil {
		t.Error("1.17 and later can be used, and nothing before")
	}
	if Sleeps("udp;ofi_rxd") || !Sleeps("tcp;ofi_rxm") || !Sleeps("cxi") {
		t.Error("ofi_rxd alone has to be looked after")
	}
}
