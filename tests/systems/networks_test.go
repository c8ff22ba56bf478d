package systems

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

// apartNetworks puts hosts on two networks: the first host is in both, the third in the second one alone, and all others in the first.
func apartNetworks(h *testHosts) {
	sw, both, third := h.prefix+"sw", h.name(0), h.name(2)
	h.run("ip", "-n", sw, "link", "add", "br1", "type", "bridge")
	h.run("ip", "-n", sw, "link", "set", "br1", "up")
	h.run("ip", "-n", sw, "link", "add", "second1", "type", "veth", "peer", "name", "data0", "netns", both)
	h.run("ip", "-n", sw, "link", "set", "second1", "master", "br1", "up")
	h.run("ip", "-n", both, "addr", "add", "10.78.0.1/24", "dev", "data0")
	h.run("ip", "-n", both, "link", "set", "data0", "up")
	h.run("ip", "-n", sw, "link", "set", "port3", "master", "br1")
	h.run("ip", "-n", third, "addr", "flush", "dev", "eth0")
	h.run("ip", "-n", third, "addr", "add", "10.78.0.3/24", "dev", "eth0")
}

// Two clusters, each in a network of its own, one of them on two hosts; the I/O process, and spxrun, on a host that is in both. Messages go through, also when the I/O process has been started again, and the silence
// of a host in either network is noticed. An I/O process in one of the networks alone is refused, with the hosts that cannot reach each other.
func TestClustersInTwoNetworks(t *testing.T) {
	const text = `
[[cluster]]
name = "a"
program = "%P"
args = [%SEND]
ranks = 2
hosts = ["%2", "%4"]
[[cluster]]
name = "b"
program = "%P"
args = [%RECEIVE]
ranks = 2
hosts = ["%3:2"]
[[link]]
from = "a"
to = "b"
hosts = ["%IOP"]
`
	system := func(head, send, receive, iop string) string {
		return head + strings.NewReplacer("%SEND", send, "%RECEIVE", receive, "%IOP", iop).Replace(text)
	}
	for name, env := range map[string][]string{"messages": nil, "messages, encrypted": {"SPX_TLS=1"}} {
		t.Run(name, func(t *testing.T) {
			o := startOnTwo(t, system("", `"send", "200", "1"`, `"receive"`, "%1"), env...)
			o.ends(0, "[a.0] rank 0 sent 200\n", "[a.1] rank 1 sent 200\n", "[b.0] rank 0 received 200\n", "[b.1] rank 1 received 200\n")
			o.hosts.empty(t)
		})
	}
	t.Run("the I/O process dies", func(t *testing.T) {
		o := startOnTwo(t, system("", `"send", "90000", "2", "stop"`, `"share", "b", "each"`, "%1"))
		o.flows("b")
		for _, pid := range o.hosts.Pids(1) {
			if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.TrimSpace(string(comm)) == "spx-iop" {
				syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it was there
			}
		}
		o.says("I/O process a-b.iop0 is started again (1 of at most 3 times).")
		o.flows("b")
		o.finishes("[b.0] b: 2 ranks\n")
	})
	t.Run("a host is silent", func(t *testing.T) {
		o := startOnTwo(t, system("[failure]\ncluster = \"degrade\"\nnetwork = \"degrade\"\n", `"send", "90000", "2", "stop"`, `"share", "b", "each"`, "%1"), "SPX_HEARTBEAT_LIMIT=1000")
		o.flows("b")
		o.hosts.run("ip", "netns", "exec", o.hosts.prefix+"sw", "bridge", "link", "set", "dev", "port3", "state", "0")
		o.says(o.names.Replace("host %3 is lost, with its processes: ")) // it has ended them itself, a moment before it would have been given up
		o.says("cluster b is gone; the others go on.")
		o.finishes()
	})
	t.Run("in one network alone", func(t *testing.T) {
		o := startOnTwo(t, system("", `"send", "200", "1"`, `"receive"`, "%4"))
		o.ends(1, o.names.Replace("hosts %4 and %3 are in no network together, and no route leads from one to the other and back: %4 has eth0 10.77.0.4, %3 has eth0 10.78.0.3"))
	})
}

func startOnTwo(t *testing.T, text string, env ...string) *onHosts {
	t.Helper()
	return startOn(t, 4, apartNetworks, text, env...)
}
