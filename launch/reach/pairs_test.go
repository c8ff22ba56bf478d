package reach

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// The addresses of hosts in several networks, by who calls them; where they listen for that; and
// hosts that need each other and are in none together.
func TestPairs(t *testing.T) {
	both := "eth0 10.1.0.9/24; data0 10.2.0.9/24"
	for _, c := range []struct {
		name  string
		iface string
		hosts []string
		need  string   // pairs, as "0-1"
		want  []string // rows; - is no address
		at    string   // where each listens
		err   string
	}{
		{name: "between two networks", hosts: []string{both, "eth0 10.1.0.1/24",
			"eth0 10.2.0.2/24"}, need: "0-1 0-2",
			want: []string{"10.1.0.9 10.1.0.9 10.2.0.9", "10.1.0.1 10.1.0.1 -",
				"10.2.0.2 - 10.2.0.2"}, at: "0.0.0.0 10.1.0.1 10.2.0.2"},
		{name: "one of them is of IPv6", hosts: []string{"eth0 10.1.0.9/24; data0 fd77::9/64",
			"eth0 10.1.0.1/24", "eth0 fd77::2/64"}, need: "0-1 0-2",
			want: []string{"10.1.0.9 10.1.0.9 fd77::9", "10.1.0.1 10.1.0.1 -", "fd77::2 - fd77::2"},
			at:   ":: 10.1.0.1 fd77::2"},
		{name: "the faster one of two",
			hosts: []string{"eth0 10.1.0.9/24 @1000; data0 10.2.0.9/24 @9000",
				"eth0 10.1.0.1/24 @1000; data0 10.2.0.1/24 @9000", "eth0 10.1.0.2/24 @1000"},
			need: "0-1 0-2",
			want: []string{"10.2.0.9 10.2.0.9 10.1.0.9", "10.2.0.1 10.2.0.1 10.1.0.1",
				"10.1.0.2 10.1.0.2 10.1.0.2"}, at: "0.0.0.0 0.0.0.0 10.1.0.2"},
		{name: "by a route", hosts: []string{"eth0 10.1.0.9/24; via 10.3.0.0/24 eth0",
			"eth0 10.3.0.1/24; via 10.1.0.0/24 eth0", "eth0 10.2.0.2/24"}, need: "0-1",
			want: []string{"10.1.0.9 10.1.0.9 -", "10.3.0.1 10.3.0.1 -", "- - 10.2.0.2"},
			at:   "10.1.0.9 10.3.0.1 10.2.0.2"},
		{name: "they need each other", hosts: []string{both, "eth0 10.1.0.1/24",
			"eth0 10.2.0.2/24"}, need: "0-1 1-2",
			err: "hosts h1 and h2 are in no network together"},
		{name: "an interface leaves out one network", iface: "eth0",
			hosts: []string{both, "eth0 10.1.0.1/24", "eth0 10.2.0.2/24"}, need: "0-2",
			err: "hosts h0 and h2 are in no network together"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var hosts []Host
			for i, text := range c.hosts {
				hosts = append(hosts, host(t, fmt.Sprintf("h%d", i), text))
			}
			need := func(i, k int) bool {
				return strings.Contains(" "+c.need+" ",
					fmt.Sprintf(" %d-%d ", i, k))
			}
			at, err := Pairs(hosts, c.iface, need)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("%v, %v", at, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var listen []netip.Addr
			for i, row := range at {
				if got := strings.ReplaceAll(strings.Trim(fmt.Sprint(row), "[]"), "invalid IP",
					"-"); got != c.want[i] {
					t.Errorf("host %d is at %s, want %s", i, got, c.want[i])
				}
				listen = append(listen, Listen(row))
			}
			if got := strings.Trim(fmt.Sprint(listen), "[]"); got != c.at {
				t.Errorf("they listen at %s, want %s", got, c.at)
			}
		})
	}
}
