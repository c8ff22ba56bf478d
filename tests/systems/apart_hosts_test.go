package systems

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/launch/service"
	"libspx/tests/harness"
)

// apartOn is a system whose clusters are started one by one, each on several hosts, which share nothing but the files.
type apartOn struct {
	*apart
	hosts *testHosts
	names *strings.Replacer
}

// newApartOn makes hosts and the files of a system. %1 ... in its text are the hosts; %A is an address of the first one.
func newApartOn(t *testing.T, n int, prepare func(*testHosts), text string) *apartOn {
	t.Helper()
	hosts := newHosts(t, n)
	prepare(hosts)
	var pairs []string
	for i := range n {
		pairs = append(pairs, "%"+string(rune('1'+i)), hosts.name(i))
	}
	names := strings.NewReplacer(pairs...)
	return &apartOn{newApartAt(t, "10.77.0.1:7410", names.Replace(text)), hosts, names}
}

// startOn starts a cluster from a host.
func (s *apartOn) startOn(host int, cluster string, options ...string) *running {
	s.t.Helper()
	args := append([]string{"on", s.hosts.name(host - 1), filepath.Join(harness.Build(s.t), "bin/spxrun"), "--rsh", s.hosts.script + " rsh", "-l", "--verbose", "--system", s.file, "--cluster", cluster}, options...)
	cmd := exec.Command(s.hosts.script, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "SPX_SPIN=0", "SPX_HEARTBEAT_LIMIT=20000") // preset: who is to be found out is found out by an agent's end
	return s.launch(cluster, cmd)
}

// flows waits until messages come to a cluster that makes this file.
func (s *apartOn) flows(file string) {
	s.t.Helper()
	for range 3 {
		os.Remove(filepath.Join(s.dir, file)) //nolint:errcheck // it need not be there
		s.await(file)
	}
}

// runsOn checks on which host of the system each process of a cluster runs, by what its spxrun and no other one says.
func (s *apartOn) runsOn(r *running, at map[string]string) {
	s.t.Helper()
	for name, host := range at {
		r.says("rank " + name)
		if want := " on " + s.names.Replace(host) + ": "; !strings.Contains(lineWith(r.text(), name+" "), want) {
			s.t.Errorf("%q is not of host %s", lineWith(r.text(), name+" "), s.names.Replace(host))
		}
	}
}

// lineWith is the first line of a text that has something.
func lineWith(text, has string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, has) && strings.Contains(line, " is pid ") {
			return line
		}
	}
	return ""
}

// twoByTwo are two clusters of two hosts each, with an I/O process on a fifth one. %F is what stands before, %SEND and %RECEIVE what they do.
const twoByTwo = `
[[cluster]]
name = "a"
program = "%P"
args = [%SEND]
ranks = 2
hosts = ["%1:1", "%2:1"]
[[cluster]]
name = "b"
program = "%P"
args = [%RECEIVE]
ranks = 2
hosts = ["%3:2", "%4:2"]
[[link]]
from = "a"
to = "b"
choice = "key"
hosts = ["%5"]
`

func does(text, head, send, receive string) string {
	return head + strings.NewReplacer("%SEND", send, "%RECEIVE", receive).Replace(text)
}

// Two clusters of two hosts each, and an I/O process on a host of its own, started by an spxrun for each cluster, in any order, which runs on a host of the cluster or on another one: all messages come,
// in order, each spxrun prints what its own processes write on whatever host, and nothing is left on any.
func TestApartOnHosts(t *testing.T) {
	for name, c := range map[string]struct {
		order   []string
		bFrom   int
		options []string
	}{
		"the one that leads first":           {[]string{"a", "b"}, 3, nil},
		"the one that leads last":            {[]string{"b", "a"}, 3, nil},
		"from a host that runs nothing else": {[]string{"a", "b"}, 6, nil},
		"a tree of shells":                   {[]string{"b", "a"}, 3, []string{"--fanout", "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newApartOn(t, 6, func(*testHosts) {}, does(strings.ReplaceAll(twoByTwo, `["%3:2", "%4:2"]`, `["%3:1", "%4:1"]`), "", `"send", "300", "1"`, `"order", "b", "each"`))
			started := map[string]*running{}
			for i, cluster := range c.order {
				started[cluster] = s.startOn(map[string]int{"a": 1, "b": c.bFrom}[cluster], cluster, c.options...)
				if i == 0 && cluster == "a" {
					started[cluster].says("waiting for cluster b")
				} else if i == 0 {
					started[cluster].says("cluster b waits for the system apart: nobody leads it at 10.77.0.1:7410 yet")
				}
			}
			a, b := started["a"], started["b"]
			a.ends(0, "[a.0] rank 0 sent 300\n", "[a.1] rank 1 sent 300\n", "[a.0] a: 2 ranks\n")
			b.ends(0, "[b.0] b: 2 ranks\n")
			received(t, b, 600)
			s.runsOn(a, map[string]string{"a.0": "%1", "a.1": "%2"})
			for name, host := range map[string]string{"rank 0 of cluster b": "%3", "rank 1 of cluster b": "%4", "rank 0 of I/O process a-b.iop0": "%5"} {
				if line, want := lineWith(b.text(), name), s.names.Replace(" on b@"+host+": "); !strings.Contains(line, want) && !(c.bFrom == 3 && host == "%3") {
					t.Errorf("%q has no %q", line, want)
				}
			}
			if strings.Contains(a.text(), "b.0") || strings.Contains(b.text(), "a.0") {
				t.Error("a cluster's output has come to the spxrun of the other one")
			}
			s.hosts.empty(t)
		})
	}
}

// received checks how many messages the ranks of a cluster say that they have received, together.
func received(t *testing.T, r *running, want int) {
	t.Helper()
	sum := 0
	for line := range strings.Lines(r.text()) {
		var rank, n int
		if _, rest, ok := strings.Cut(line, "] "); ok {
			if _, err := fmt.Sscanf(rest, "rank %d received %d\n", &rank, &n); err == nil {
				sum += n
			}
		}
	}
	if sum != want {
		t.Errorf("%d messages have come, of %d", sum, want)
	}
}

// A host of a cluster that was started by itself is lost, and with it some of its ranks: that is done which the file says of hosts, on the hosts of the cluster.
func TestApartHostLost(t *testing.T) {
	const send, receive = `"send", "90000", "2", "stop"`, `"share", "b", "each"`
	start := func(t *testing.T, text string) (s *apartOn, a, b *running) {
		t.Helper()
		s = newApartOn(t, 5, func(*testHosts) {}, text)
		a = s.startOn(1, "a")
		a.says("rank a.0 is pid")
		b = s.startOn(3, "b")
		s.flows("b")
		return s, a, b
	}
	t.Run("the cluster is started again where there is room", func(t *testing.T) {
		s, a, b := start(t, strings.ReplaceAll(does(twoByTwo, "[failure]\ncluster = \"restart\"\n", send, receive), `["%3:2", "%4:2"]`, `["%4:1", "%3:2"]`))
		s.runsOn(b, map[string]string{"0 of cluster b": "b@%4", "1 of cluster b": "b@%3"})
		s.hosts.killAgent(t, s.names.Replace("%4"))
		a.says(s.names.Replace("host b@%4 is lost, with its processes: "))
		again := s.names.Replace("cluster b is started again (1 of at most 3 times) on host b@%3, since host b@%4 is lost.")
		a.says(again)
		b.says(again)
		s.flows("b")
		s.write("stop", "", "")
		a.ends(0, "[a.0] rank 0 sent ")
		b.ends(0, "[b.0] b: 2 ranks\n")
		s.hosts.empty(t)
	})
}

// Ranks are lost with a host of such a cluster, or with its connection: by the words of the file standbys take their places, the others are told, or the cluster stops, and with it the system or not. The
// spxrun of the cluster says so, and its status is that of the cluster.
func TestApartFaults(t *testing.T) {
	const died = "host b@%4 is lost, with its processes: "
	for name, c := range map[string]struct {
		failure, with string
		b, a          int // statuses
		says          []string
	}{
		"host is replaced":         {`host = "replace", process = "stop"`, "agent", 0, 0, []string{died, "a standby takes its place"}},
		"host stops the cluster":   {`host = "stop", process = "replace", cluster = "degrade"`, "agent", 137, 0, []string{died, "cluster b stops.", "cluster b is gone; the others go on."}},
		"host stops the system":    {`host = "stop", process = "replace"`, "agent", 137, 137, []string{died, "cluster b is ended and with it the system"}},
		"host is told to others":   {`host = "degrade", process = "stop"`, "agent", 0, 0, []string{died, "others of cluster b are told and go on"}},
		"network is replaced":      {`network = "replace", host = "stop"`, "cut", 0, 0, []string{died, "a standby takes its place"}},
		"network stops the system": {`network = "stop", host = "replace"`, "cut", 137, 137, []string{died, "cluster b is ended and with it the system"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newApartOn(t, 5, func(*testHosts) {}, fmt.Sprintf(`
[start]
wait = "none"
[[cluster]]
name = "a"
program = "/bin/sh"
args = ["-c", "while [ ! -e stop ]; do sleep 0.05; done"]
ranks = 1
hosts = ["%%1:1"]
[[cluster]]
name = "b"
program = "/bin/sh"
args = ["-c", "until [ -e there ]; do sleep 0.02; done; exec \"$0\" \"$@\"", %q, "2", "12", ",1@4,", %q]
ranks = 2
standbys = 2
hosts = ["%%3:1", "%%4:1", "%%5:2"]
failure = { %s }
`, program(t, "takeover"), c.with, c.failure))
			limit := "10000"
			if c.with == "cut" {
				limit = "1000"
			}
			a := s.startOn(1, "a", "-x", "SPX_HEARTBEAT_LIMIT="+limit)
			a.says("rank a.0 is pid")
			b := s.startOn(3, "b")
			for _, name := range []string{"rank 0", "rank 1", "standby 0", "standby 1"} { // else the host may be lost before the cluster is made
				b.says(name + " of cluster b is pid")
			}
			s.write("there", "", "")
			for _, text := range c.says {
				a.says(s.names.Replace(text))
			}
			b.ends(c.b)
			for _, text := range c.says {
				if !strings.Contains(b.text(), s.names.Replace(text)) {
					t.Errorf("cluster b has not said %q", s.names.Replace(text))
				}
			}
			if done := strings.Contains(b.text(), "] done 12 "); done != (c.b == 0) {
				t.Errorf("the cluster has done all: %v", done)
			}
			s.write("stop", "", "")
			a.ends(c.a)
			s.hosts.empty(t)
		})
	}
}

// The spxrun of a cluster of several hosts is killed, or the agent of its host: all of the cluster ends, on all its hosts; the others go on without it, or wait for it, and the same command attaches it again.
func TestApartHostsAgain(t *testing.T) {
	for _, policy := range []string{"restart", "degrade"} {
		for _, killed := range []string{"spxrun", "agent"} {
			t.Run(policy+", "+killed, func(t *testing.T) {
				s := newApartOn(t, 5, func(*testHosts) {}, does(strings.Replace(twoByTwo, `choice = "key"`, "", 1)+another, "[start]\nwait = \"none\"\n[failure]\ncluster = \""+policy+"\"\n", `"send", "90000", "2", "stop"`, `"share", "b", "each"`))
				a := s.startOn(1, "a")
				a.says("rank a.0 is pid")
				c := s.startOn(2, "c")
				s.flows("c")
				b := s.startOn(3, "b")
				s.flows("b")
				if killed == "spxrun" {
					s.hosts.signal(t, 3, "spxrun", syscall.SIGKILL)
				} else {
					s.hosts.killAgent(t, s.names.Replace("%3"))
				}
				a.says(s.names.Replace("host b@%3 is lost"))
				a.says(map[string]string{"restart": "cluster b is away; it may be attached again, and the others wait for it.", "degrade": "cluster b is gone; the others go on."}[policy])
				<-b.ended
				for host := 3; host <= 5; host++ {
					s.emptied(host)
				}
				again := s.startOn(3, "b")
				s.flows("b")
				s.write("stop", "", "")
				a.ends(0, "[a.0] rank 0 sent ", "[a.1] rank 1 sent ")
				again.ends(0, "[b.0] b: 2 ranks\n")
				c.ends(0, "[c.0] c: 1 ranks\n")
				s.hosts.empty(t)
			})
		}
	}
}

// another is one more receiver, to which messages go while the first one is away.
const another = `
[[cluster]]
name = "c"
program = "%P"
args = ["share", "c", "each"]
ranks = 1
hosts = ["%2"]
[[link]]
from = "a"
to = "c"
`

// status waits until the system's state, as it is told on the host that leads, has some texts, and is so besides.
func (s *apartOn) status(has, more string, is func(string) bool) {
	s.t.Helper()
	for until := time.Now().Add(harness.Patience(15 * time.Second)); ; time.Sleep(20 * time.Millisecond) {
		out, err := exec.Command(s.hosts.script, "on", s.hosts.name(0), filepath.Join(harness.Build(s.t), "bin/spxctl"), "system", "status", "apart").CombinedOutput()
		text := string(out)
		if err == nil && strings.Contains(text, has) && strings.Contains(text, more) && is(text) {
			return
		}
		if time.Now().After(until) {
			s.t.Fatalf("no %q and %q (%v) in\n%s", has, more, err, text)
		}
	}
}

// emptied waits until nothing runs on a host.
func (s *apartOn) emptied(host int) {
	s.t.Helper()
	for until := time.Now().Add(harness.Patience(10 * time.Second)); len(s.hosts.Pids(host)) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			s.t.Fatalf("on host %d there are still the processes %v", host, s.hosts.Pids(host))
		}
	}
}

// threeNetworks puts hosts into a row of networks: 1 and 2 are in the first one, 2 to 4 in the second, 4 and 5 in the third.
func threeNetworks(h *testHosts) {
	sw := h.prefix + "sw"
	for n, both := range []int{2, 4} {
		bridge, port, subnet := fmt.Sprintf("br%d", n+1), fmt.Sprintf("more%d", n), fmt.Sprintf("10.7%d.0.", 8+n)
		h.run("ip", "-n", sw, "link", "add", bridge, "type", "bridge")
		h.run("ip", "-n", sw, "link", "set", bridge, "up")
		h.run("ip", "-n", sw, "link", "add", port, "type", "veth", "peer", "name", "data0", "netns", h.name(both-1))
		h.run("ip", "-n", sw, "link", "set", port, "master", bridge, "up")
		h.run("ip", "-n", h.name(both-1), "addr", "add", subnet+fmt.Sprint(both)+"/24", "dev", "data0")
		h.run("ip", "-n", h.name(both-1), "link", "set", "data0", "up")
	}
	for host, n := range map[int]int{3: 0, 4: 0, 5: 1} { // eth0 is in another network than the first one
		h.run("ip", "-n", sw, "link", "set", fmt.Sprintf("port%d", host), "master", fmt.Sprintf("br%d", n+1))
		h.run("ip", "-n", h.name(host-1), "addr", "flush", "dev", "eth0")
		h.run("ip", "-n", h.name(host-1), "addr", "add", fmt.Sprintf("10.7%d.0.%d/24", 8+n, host), "dev", "eth0")
	}
}

// inARow are three clusters in a row of networks. %PASS is the program of the second one.
const inARow = `
through = ["10.78.0.2:7411"]
[start]
wait = "none"
[failure]
cluster = "restart"
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 1
hosts = ["%1"]
[[cluster]]
name = "b"
program = %PASS
ranks = 2
hosts = ["%2:1", "%3:1"]
[[cluster]]
name = "c"
program = "%P"
args = ["share", "c", "each"]
ranks = 1
hosts = ["%5:1", "%4:2"]
[[link]]
from = "a"
to = "b"
hosts = ["%2"]
[[link]]
from = "b"
to = "c"
hosts = ["%4"]
`

// Three clusters in a row of networks: each reaches the next one through the host of the I/O process between them alone, and the last one reaches that which leads only through the host of the one in between.
// All messages go through; the death of the last cluster is known, and it is attached again; without the one in between the last one is lost, too, and both come again.
func TestApartInARow(t *testing.T) {
	s := newApartOn(t, 5, threeNetworks, strings.Replace(inARow, "%PASS", fmt.Sprintf("%q", program(t, "handing")), 1))
	a := s.startOn(1, "a")
	a.says("rank a.0 is pid")
	b := s.startOn(2, "b")
	b.says("of cluster b is pid")
	c := s.startOn(4, "c")
	s.flows("c")
	s.status("master of b: b@"+s.hosts.prefix, "master of c: c@"+s.hosts.prefix, func(text string) bool { return strings.Count(text, "running, ") == 3 })
	s.hosts.killAgent(t, s.names.Replace("%5"))
	a.says(s.names.Replace("host c@%5 is lost, with its processes: "))
	a.says(s.names.Replace("cluster c is started again (1 of at most 3 times) on host c@%4, since host c@%5 is lost."))
	s.flows("c")
	s.hosts.signal(t, 2, "spxrun", syscall.SIGKILL)
	a.says("cluster b is away; it may be attached again, and the others wait for it.")
	a.says("cluster c is away; it may be attached again, and the others wait for it.")
	<-b.ended
	c.ends(1, "is lost: its agent has ended, or the connection with it is broken; the processes of cluster c are ended")
	for host := 2; host <= 5; host++ {
		s.emptied(host)
	}
	b, c = s.startOn(2, "b"), s.startOn(4, "c")
	s.flows("c")
	s.write("stop", "", "")
	a.ends(0, "[a.0] rank 0 sent ")
	b.ends(0)
	c.ends(0, "[c.0] c: 1 ranks\n")
	s.hosts.empty(t)
}

// Hosts that the one which leads does not reach fall silent, at the end of the row or in its middle, by a cut of the network or since they stand still: that is noticed within the same limit as of those which it reaches,
// and long before the kernel would end a connection; it is the loss of all that is behind, and of nothing else, though this is more than half of all hosts; the same commands attach them again.
func TestApartSilentInARow(t *testing.T) {
	const kernel = 5 * time.Second // half of the time after which connections are ended of which nothing is heard
	for name, c := range map[string]struct {
		host int // that falls silent
		how  string
		lost []string // clusters
	}{
		"the last cluster is cut off":          {4, "cut", []string{"c"}},
		"the last cluster stands still":        {4, "stopped", []string{"c"}},
		"the cluster in between is cut off":    {2, "cut", []string{"b", "c"}},
		"the cluster in between stands still":  {2, "stopped", []string{"b", "c"}},
		"a host of the last one is cut off":    {5, "cut", nil},
		"a host of the last one, stands still": {5, "stopped", nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newApartOn(t, 5, threeNetworks, strings.Replace(inARow, "%PASS", fmt.Sprintf("%q", program(t, "handing")), 1))
			a := s.startOn(1, "a", "-x", "SPX_HEARTBEAT_LIMIT=1000")
			a.says("rank a.0 is pid")
			run := map[string]*running{"b": s.startOn(2, "b")}
			run["b"].says("of cluster b is pid")
			run["c"] = s.startOn(4, "c")
			s.flows("c")
			s.status("master of b: b@"+s.hosts.prefix, "master of c: c@"+s.hosts.prefix, func(text string) bool { return strings.Count(text, "running, ") == 3 }) // all have heard of each other by then
			back := s.silences(c.host, c.how)
			began := time.Now()
			host := map[int]string{2: "b@%2", 4: "c@%4", 5: "c@%5"}[c.host]
			why := "nothing was heard of it for "
			if c.host == 5 && c.how == "cut" {
				why = "" // it ends its processes before, and the shell that has brought its agent tells that, which goes by no network
			}
			a.says(s.names.Replace("host " + host + " is lost, with its processes: " + why))
			if took := time.Since(began); took > harness.Patience(kernel) {
				t.Errorf("noticed after %v", took)
			} else {
				t.Logf("noticed after %v", took)
			}
			for _, cluster := range c.lost {
				a.says("cluster " + cluster + " is away; it may be attached again, and the others wait for it.")
			}
			if c.lost == nil {
				a.says(s.names.Replace("cluster c is started again (1 of at most 3 times) on host c@%4, since host c@%5 is lost."))
			}
			back()
			for _, cluster := range c.lost {
				<-run[cluster].ended
			}
			for h := 2; h <= 5; h++ {
				if c.host == 2 || c.lost != nil && h > 3 || c.lost == nil && h == 5 {
					s.emptied(h)
				}
			}
			for _, cluster := range c.lost {
				run[cluster] = s.startOn(map[string]int{"b": 2, "c": 4}[cluster], cluster)
				run[cluster].says("of cluster " + cluster + " is pid")
			}
			s.flows("c")
			s.write("stop", "", "")
			a.ends(0, "[a.0] rank 0 sent ")
			run["b"].ends(0)
			run["c"].ends(0, "[c.0] c: 1 ranks\n")
			s.hosts.empty(t)
		})
	}
}

// A host that the one which leads does not reach is cut off: that is a fault of the network, as the agent knows through which it is reached, though that one hears first that the agent there has ended its processes for it.
func TestApartFaultBehind(t *testing.T) {
	loop := func(name, host string) string {
		return fmt.Sprintf("[[cluster]]\nname = %q\nprogram = \"/bin/sh\"\nargs = [\"-c\", \"while [ ! -e stop ]; do sleep 0.05; done\"]\nranks = 1\nhosts = [%q]\n", name, host)
	}
	s := newApartOn(t, 5, threeNetworks, "through = [\"10.78.0.2:7411\"]\n[start]\nwait = \"none\"\n"+loop("a", "%1")+loop("b", "%2")+fmt.Sprintf(`
[[cluster]]
name = "c"
program = "/bin/sh"
args = ["-c", "until [ -e there ]; do sleep 0.02; done; exec \"$0\" \"$@\"", %q, "2", "12", ",0@4,", "cut"]
ranks = 2
standbys = 2
hosts = ["%%5:1", "%%4:3"]
failure = { network = "replace", host = "stop" }
`, program(t, "takeover")))
	a := s.startOn(1, "a", "-x", "SPX_HEARTBEAT_LIMIT=1000")
	a.says("rank a.0 is pid")
	b := s.startOn(2, "b")
	b.says("of cluster b is pid")
	c := s.startOn(4, "c")
	for _, name := range []string{"rank 0", "rank 1", "standby 0", "standby 1"} {
		c.says(name + " of cluster c is pid")
	}
	s.status("master of b: b@"+s.hosts.prefix, "master of c: c@"+s.hosts.prefix, func(text string) bool { return strings.Count(text, "running, ") == 3 })
	s.write("there", "", "")
	a.says(s.names.Replace("host c@%5 is lost, with its processes: "))
	c.ends(0, "a standby takes its place", "done 12 ")
	s.write("stop", "", "")
	a.ends(0)
	b.ends(0)
	s.hosts.empty(t)
}

// A host behind another one is cut off for longer than the kernel would wait, and for less than the limit: nobody notices.
func TestApartBreakInARow(t *testing.T) {
	if !harness.Full() {
		t.Skip("it waits for longer than the kernel would: SPX_TESTS=full")
	}
	s := newApartOn(t, 5, threeNetworks, strings.Replace(inARow, "%PASS", fmt.Sprintf("%q", program(t, "handing")), 1))
	a := s.startOn(1, "a", "-x", "SPX_HEARTBEAT_LIMIT=60000")
	a.says("rank a.0 is pid")
	b := s.startOn(2, "b")
	b.says("of cluster b is pid")
	c := s.startOn(4, "c")
	s.flows("c")
	back := s.silences(4, "cut")
	select {
	case <-time.After(12 * time.Second):
	case <-c.ended:
	}
	back()
	s.flows("c")
	s.write("stop", "", "")
	a.ends(0, "[a.0] rank 0 sent ")
	b.ends(0)
	c.ends(0, "[c.0] c: 1 ranks\n")
	if strings.Contains(a.text(), "is lost") {
		t.Error("a host was given up")
	}
	s.hosts.empty(t)
}

// silences cuts the first link of a host, or stops its agent; back undoes that.
func (s *apartOn) silences(host int, how string) (back func()) {
	s.t.Helper()
	if how == "cut" {
		link := func(to string) {
			s.hosts.run("ip", "-n", s.hosts.prefix+"sw", "link", "set", fmt.Sprintf("port%d", host), to)
		}
		link("down")
		return func() { link("up") }
	}
	s.hosts.signal(s.t, host, service.AgentName, syscall.SIGSTOP)
	return func() { s.hosts.signal(s.t, host, service.AgentName, syscall.SIGCONT) }
}

// Signals of the spxrun of a cluster are its own matter: one that does not end is for its processes, on all its hosts, and for no others; one that ends ends the cluster, and the others go on. A host that
// cannot be started is said, and the system has not lost anything.
func TestApartHostsSignals(t *testing.T) {
	const catches = `
[start]
wait = "none"
[failure]
cluster = "degrade"
[[cluster]]
name = "a"
program = "/bin/sh"
args = ["-c", "trap 'echo a signal' USR1; while [ ! -e stop ]; do sleep 0.05; done"]
ranks = 1
hosts = ["%1:1"]
[[cluster]]
name = "b"
program = "/bin/sh"
args = ["-c", "trap 'echo a signal' USR1; echo ready; while true; do sleep 0.05; done"]
ranks = 2
hosts = ["%2:1", "%3:1"]
`
	s := newApartOn(t, 3, func(*testHosts) {}, catches)
	a := s.startOn(1, "a")
	a.says("rank a.0 is pid")
	wrong := s.write("wrong.toml", "10.77.0.1:7410", strings.Replace(s.names.Replace(catches), s.names.Replace("%3"), "nosuchhost", 1))
	file := s.file
	s.file = wrong
	s.startOn(2, "b").ends(1, "cluster b: host nosuchhost: ")
	s.emptied(2)
	s.emptied(3)
	s.file = file
	b := s.startOn(2, "b")
	b.says("[b.0] ready\n")
	b.says("[b.1] ready\n")
	s.hosts.signal(t, 2, "spxrun", syscall.SIGUSR1)
	b.says("[b.0] a signal\n")
	b.says("[b.1] a signal\n")
	s.hosts.signal(t, 2, "spxrun", syscall.SIGINT)
	b.ends(130, "cluster b is ended by its spxrun.")
	a.says("cluster b is gone; the others go on.")
	s.write("stop", "", "")
	a.ends(0)
	if strings.Contains(a.text(), "a signal") {
		t.Error("the signal has come to the processes of another cluster")
	}
	s.hosts.empty(t)
}

// The radar of examples/radar, a cluster an spxrun, each on two hosts that share nothing but the disk, comes to what one process without MPI comes to.
func TestApartHostsRadar(t *testing.T) {
	dir := radar(t)
	in(t, dir, "./alone", "200", "expected.txt", "expected.png")
	hosts := newHosts(t, 4)
	key := filepath.Join(dir, "radar.key")
	in(t, dir, filepath.Join(harness.Build(t), "bin/spxctl"), "system", "key", key)
	text, err := os.ReadFile(filepath.Join(dir, "radar.toml"))
	if err != nil {
		t.Fatal(err)
	}
	stages := []string{"input", "compress", "doppler", "detect"}
	more := "[system]\nname = \"apart\"\naddress = \"10.77.0.1:7410\"\nkey = \"radar.key\"\n" + string(text)
	for i, stage := range stages {
		more = strings.Replace(more, fmt.Sprintf("name = %q\n", stage), fmt.Sprintf("name = %q\nhosts = [\"%s:1\", \"%s:1\"]\n", stage, hosts.name(i), hosts.name(i+1)), 1)
	}
	s := &apartOn{&apart{t: t, dir: dir, file: filepath.Join(dir, "apart4.toml")}, hosts, strings.NewReplacer()}
	if err := os.WriteFile(s.file, []byte(more), 0o666); err != nil {
		t.Fatal(err)
	}
	var all []*running
	for i := range stages {
		all = append(all, s.startOn(len(stages)-i, stages[len(stages)-1-i]))
	}
	for _, r := range all {
		r.ends(0)
	}
	same(t, dir, "report.txt", "expected.txt")
	same(t, dir, "radar.png", "expected.png")
	hosts.empty(t)
}

// signal sends a signal to a program on a host, by its name.
func (h *testHosts) signal(t *testing.T, host int, name string, signal syscall.Signal) {
	t.Helper()
	for _, pid := range h.Pids(host) {
		if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.TrimSpace(string(comm)) == name {
			syscall.Kill(pid, signal) //nolint:errcheck // it was there
			return
		}
	}
	t.Fatalf("no %s runs on host %d", name, host)
}

// hostIs waits until a host is one of the system's, in a state.
func (s *apartOn) hostIs(name, state string) {
	s.t.Helper()
	var list []service.Host
	for until := time.Now().Add(harness.Patience(15 * time.Second)); ; time.Sleep(10 * time.Millisecond) {
		out, err := exec.Command(s.hosts.script, "on", s.hosts.name(0), filepath.Join(harness.Build(s.t), "bin/spxctl"), "hosts", ".", "--json").Output()
		if list = nil; err == nil && json.Unmarshal(out, &list) == nil && slices.ContainsFunc(list, func(h service.Host) bool { return h.Name == s.names.Replace(name) && h.State == state }) {
			return
		}
		if time.Now().After(until) {
			s.t.Fatalf("host %s is not in state %q (%v): %+v", name, state, err, list)
		}
	}
}

// A host of a cluster is lost before its ranks have been made: it is begun anew on its other hosts, where its standbys have room for that, and else what the file says about a cluster that stops is done.
func TestApartHostLostBeforeMade(t *testing.T) {
	const lost, room = "cannot be started: host b@%4 is lost", "cannot be started: host b@%4 is lost, and the other hosts of the cluster have too few free slots"
	for name, c := range map[string]struct {
		failure string
		b, a    int // statuses; -1: one that is not 0
		says    []string
	}{
		"standbys are for that": {`process = "replace", host = "replace"`, 0, 0, []string{lost, "cluster b is started again (1 of at most 3 times) on host b@%3, since host b@%4 is lost."}},
		"it stops the system":   {`process = "replace", host = "stop", network = "stop"`, -1, 1, []string{room + "; the system is ended with exit status 1."}},
		"the others go on":      {`process = "replace", host = "stop", network = "stop", cluster = "degrade"`, -1, 0, []string{room + ".", "cluster b is gone; the others go on."}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newApartOn(t, 5, func(*testHosts) {}, fmt.Sprintf(`
[start]
wait = "none"
[[cluster]]
name = "a"
program = "/bin/sh"
args = ["-c", "while [ ! -e stop ]; do sleep 0.05; done"]
ranks = 2
hosts = ["%%1:1", "%%2:1"]
[[cluster]]
name = "b"
program = %q
ranks = 2
standbys = 2
hosts = ["%%3:1", "%%4:1", "%%5:2"]
failure = { %s }
`, program(t, "counted"), c.failure))
			a := s.startOn(1, "a")
			a.says("rank a.1 is pid")
			s.hosts.signal(t, 2, service.AgentName, syscall.SIGSTOP) // all hosts take part in the making of b
			b := s.startOn(3, "b")
			s.hostIs("b@%5", "")
			s.hosts.killAgent(t, s.names.Replace("%4"))
			s.hostIs("b@%4", "lost")
			s.hosts.signal(t, 2, service.AgentName, syscall.SIGCONT)
			for _, text := range c.says {
				a.says(s.names.Replace(text))
			}
			if c.b == 0 {
				b.ends(0, "2 of 2 ranks\n")
			} else if <-b.ended; b.cmd.ProcessState.ExitCode() == 0 {
				t.Error("the spxrun of a cluster that was not made ends with status 0")
			}
			s.write("stop", "", "")
			a.ends(c.a)
			s.hosts.empty(t)
		})
	}
}
