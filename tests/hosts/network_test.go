package hosts

import (
	"net/netip"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"libspx/tests/harness"
)

// newSix makes n hosts that have IPv6 addresses alone.
func newSix(t testing.TB, n int) *bed {
	t.Helper()
	return newBedBy(t, n, func(name string) []string { return []string{"six", name, strconv.Itoa(n)} })
}

// newTwo makes n hosts with two networks: eth0 is slow, data0 fast.
func newTwo(t testing.TB, n int) *bed {
	t.Helper()
	return newBedBy(t, n, func(name string) []string { return []string{"two", name, program(t, "links"), strconv.Itoa(n)} })
}

// ipOn runs ip(8) in a host's namespace; where is a number, or "sw".
func (b *bed) ipOn(where string, args ...string) {
	b.t.Helper()
	if out, err := exec.Command("ip", append([]string{"-n", b.Name + where}, args...)...).CombinedOutput(); err != nil {
		b.t.Fatalf("ip %s on %s: %v\n%s", strings.Join(args, " "), b.Name+where, err, out)
	}
}

// talkedOver runs talk, and fails unless all is right and every connection of every host lies between addresses of the network, both ends, with at least one on each host.
func talkedOver(t *testing.T, b *bed, o harness.Outcome, hosts int, network ...string) {
	t.Helper()
	if o.Status != 0 || o.Late {
		t.Errorf("exit status %d (late: %v)\n%s", o.Status, o.Late, o.Text())
		return
	}
	seen := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(o.Stdout), "\n") {
		host, ends, _ := strings.Cut(line, ": ")
		for _, text := range strings.Fields(ends) {
			at, err := netip.ParseAddrPort(text)
			in := false
			for _, n := range network {
				in = in || err == nil && netip.MustParsePrefix(n).Contains(at.Addr())
			}
			if !in {
				t.Errorf("a connection of %s is not in %v: %s", host, network, ends)
			}
			seen[host]++
		}
	}
	for n := 1; n <= hosts; n++ {
		if seen[b.host(n)] == 0 {
			t.Errorf("host %s has no connection\n%s", b.host(n), o.Text())
		}
	}
}

// Hosts that have IPv6 addresses alone: named by name and by address, with long messages (announced ones over the connection, and over further streams), an all-to-all, spawned processes, and TLS.
// All connections are of IPv6.
func TestSix(t *testing.T) {
	b, talk := newSix(t, 3), program(t, "talk")
	names := b.list(2, 2, 1)
	for _, c := range []struct {
		name, hosts string
		env         []string
		children    string
	}{
		{"names", names, nil, "0"},
		{"addresses", "[fd77::1]:2,[fd77::2]:2,fd77::3", nil, "0"},
		{"spawn", names, nil, "3"},
		{"streams", names, []string{"SPX_STREAMS=4"}, "0"},
		{"tls", names, []string{"SPX_TLS=1"}, "2"},
		{"ports", names, []string{"SPX_PORTS=50010-50029"}, "0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			command := b.spxrun("-host", c.hosts, "-n", "5", talk, "4000000", c.children)
			command.Env = append(command.Env, c.env...)
			talkedOver(t, b, harness.Run(t, command), 3, "fd77::/64")
		})
	}
	if left := b.find(""); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
}

// Hosts with both: what --iface names is used, by network, and IPv4 where nothing is named; an interface name alone leaves the choice among its addresses.
func TestBoth(t *testing.T) {
	b, talk := newBed(t, 2), program(t, "talk")
	for _, n := range []string{"1", "2"} {
		b.ipOn(n, "addr", "add", "fd77::"+n+"/64", "dev", "eth0", "nodad")
	}
	for _, c := range []struct{ iface, network string }{{"fd77::/64", "fd77::/64"}, {"10.77.0.0/24", "10.77.0.0/24"}, {"eth0", "10.77.0.0/24"}, {"", "10.77.0.0/24"}} {
		args := []string{"-host", b.list(2, 1), "-n", "3", talk, "100000", "1"}
		if c.iface != "" {
			args = append([]string{"--iface", c.iface}, args...)
		}
		talkedOver(t, b, harness.Run(t, b.spxrun(args...)), 2, c.network)
	}
	b.ipOn("2", "addr", "del", "10.77.0.2/24", "dev", "eth0")
	talkedOver(t, b, harness.Run(t, b.spxrun("--iface", "eth0", "-host", b.list(1, 1), "-n", "2", talk, "1000")), 2, "fd77::/64")
}

// Two networks on each host. The faster one is taken although the slow one comes first, and the default route leads there; --iface takes either; what only some hosts have is an error that says
// which, and what there is.
func TestTwoNetworks(t *testing.T) {
	b, talk := newTwo(t, 3), program(t, "talk")
	for _, n := range []string{"1", "2", "3"} {
		b.ipOn(n, "route", "add", "default", "via", "10.77.0.254", "dev", "eth0")
	}
	run := func(args ...string) harness.Outcome {
		return harness.Run(t, b.spxrun(append(args, "-host", b.list(1, 1, 1), "-n", "3", talk, "20000", "1")...))
	}
	slow, fast := "10.77.0.0/24", "10.78.0.0/24"
	talkedOver(t, b, run(), 3, fast)
	talkedOver(t, b, run("--iface", "data0"), 3, fast)
	talkedOver(t, b, run("--iface", "10.78.0.0/16"), 3, fast)
	talkedOver(t, b, run("--iface", "eth0"), 3, slow)
	talkedOver(t, b, run("--iface", slow), 3, slow)
	b.ipOn("2", "link", "set", "data0", "name", "data1")
	b.ipOn("2", "link", "set", "data1", "up")
	check(t, run("--iface", "data0"), 1, nil, "--iface data0: no interface that is up has that name", "on host "+b.host(2)+" (there are: ", "data1 10.78.0.2", "it is there on "+b.host(1)+", "+b.host(3)+" alone")
	talkedOver(t, b, run("--iface", "10.78.0.0/16"), 3, fast)
	b.ipOn("3", "link", "set", "data0", "down")
	talkedOver(t, b, run(), 3, slow)
	// spxrun's host is in the slow network alone, and has no ranks: the others use the one that they have for themselves.
	b.ipOn("3", "link", "set", "data0", "up")
	b.ipOn("1", "link", "set", "data0", "down")
	o := harness.Run(t, b.spxrun("-host", b.host(2)+","+b.host(3), "-n", "2", talk, "20000"))
	if o.Status != 0 || strings.Count(o.Stdout, "10.78.0.2") == 0 || strings.Contains(o.Stdout, "10.77.") {
		t.Errorf("exit status %d, want connections between 10.78.0.2 and 10.78.0.3 alone\n%s", o.Status, o.Text())
	}
	if left := b.find(""); len(left) > 0 {
		t.Errorf("%d processes are left", len(left))
	}
}

// Two networks that a router joins: hosts are in none together, and are reached by routes; also where each has a network of its own for managing, to which the default route leads.
func TestRouter(t *testing.T) {
	b, talk := newTwo(t, 3), program(t, "talk")
	b.ipOn("sw", "link", "add", "br2", "type", "bridge")
	b.ipOn("sw", "link", "set", "br2", "up")
	b.ipOn("sw", "link", "set", "data3", "master", "br2")
	b.ipOn("sw", "addr", "add", "10.78.0.254/24", "dev", "br1")
	b.ipOn("sw", "addr", "add", "10.79.0.254/24", "dev", "br2")
	if out, err := exec.Command("ip", "netns", "exec", b.Name+"sw", "sysctl", "-qw", "net.ipv4.ip_forward=1").CombinedOutput(); err != nil {
		t.Skipf("%v\n%s", err, out)
	}
	b.ipOn("3", "addr", "flush", "dev", "data0")
	b.ipOn("3", "addr", "add", "10.79.0.3/24", "dev", "data0")
	for _, n := range []string{"1", "2", "3"} {
		b.ipOn(n, "addr", "flush", "dev", "eth0")
		b.ipOn(n, "addr", "add", "192.168."+n+".1/24", "dev", "eth0")
		b.ipOn(n, "route", "add", "default", "via", "192.168."+n+".254", "dev", "eth0")
	}
	for n, gateway := range map[string]string{"1": "10.78.0.254", "2": "10.78.0.254", "3": "10.79.0.254"} {
		b.ipOn(n, "route", "add", "10.78.0.0/15", "via", gateway, "dev", "data0")
	}
	run := func(args ...string) harness.Outcome {
		return harness.Run(t, b.spxrun(append(args, "-host", b.list(1, 1, 1), "-n", "3", talk, "200000", "1")...))
	}
	talkedOver(t, b, run(), 3, "10.78.0.0/24", "10.79.0.0/24")
	talkedOver(t, b, run("--iface", "data0"), 3, "10.78.0.0/24", "10.79.0.0/24")
	for _, n := range []string{"1", "2", "3"} {
		b.ipOn(n, "route", "del", "default")
	}
	b.ipOn("3", "route", "del", "10.78.0.0/15")
	check(t, run(), 1, nil, "hosts "+b.host(1)+" and "+b.host(3)+" are in no network together, and no route leads from one to the other and back", "data0 10.79.0.3")
}
