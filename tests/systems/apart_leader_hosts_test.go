package systems

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// Clusters of several hosts, of systems that were started one by one: they go on when the host is lost whose agent led, lead themselves, and of the cluster that led the other hosts are left.

// byTwo are three clusters of two hosts each, of which the first one leads and has nothing to do with the others; from the second to the third go messages.
const byTwo = `
[start]
wait = "none"
[failure]
cluster = "restart"
[[cluster]]
name = "lead"
program = "/bin/sh"
args = ["-c", "echo here; while [ ! -e stop ]; do sleep 0.05; done"]
ranks = 2
hosts = ["%1:1", "%6:1"]
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 2
hosts = ["%2:1", "%3:1"]
[[cluster]]
name = "b"
program = "%P"
args = ["order", "b", "each"]
ranks = 2
hosts = ["%4:1", "%5:1"]
[[link]]
from = "a"
to = "b"
iops = 2
choice = "key"
hosts = ["%3"]
`

// leadsNext waits until all of these say that another host leads in the place of one.
func leadsNext(before string, all ...*running) (host, join string) {
	var next []string
	for _, r := range all {
		next = r.matches(fmt.Sprintf(takesLead, before))
	}
	return next[1], next[2]
}

// The leading one of three clusters, each on two hosts, is lost, in three ways. The agent of another one leads within two seconds, with a host of its cluster behind it, and the third one speaks with it for its own other host: all
// messages come, in order, each spxrun prints what is its own, and nothing is left. The lost one is attached again where the next one says; that one is lost in turn, and again the others go on.
func TestApartHostsLeaderLost(t *testing.T) {
	for _, how := range []string{"killed", "stopped", "unplugged"} {
		t.Run(how, func(t *testing.T) {
			s := newApartOn(t, 6, func(*testHosts) {}, byTwo)
			lead := s.startOn(1, "lead", "-x", "SPX_HEARTBEAT_LIMIT=1000", "-x", "SPX_AGENT_LIMIT=0")
			lead.says("[lead.1] here")
			a, b := s.startOn(2, "a"), s.startOn(4, "b")
			b.hasIOPs(2)
			s.flows("b")
			s.copied(2, 3)
			began := time.Now()
			back := s.loses(1, how)
			host, join := leadsNext(s.hosts.name(0), a, b)
			took := time.Since(began)
			t.Logf("%s: host %s leads after %v", how, host, took)
			if took > harness.Patience(2*time.Second) {
				t.Errorf("no other host has led for %v", took)
			}
			for _, r := range []*running{a, b} {
				r.says("cluster lead is away; it may be attached again, and the others wait for it.")
			}
			s.flows("b")
			back()
			s.emptied(1)
			s.emptied(6)
			again := s.startOn(1, "lead", "--join", join)
			again.says("[lead.1] here")
			s.flows("b")
			s.write("stop", "", "")
			again.ends(0)
			a.ends(0, "[a.0] rank 0 sent ", "[a.1] rank 1 sent ")
			b.ends(0, "[b.0] b: 2 ranks\n")
			for rank := range 2 {
				sent := a.matches(fmt.Sprintf(`\[a\.%d\] rank %[1]d sent (\d+)\n`, rank))
				b.matches(fmt.Sprintf(`\[b\.%d\] rank %[1]d received %s\n`, rank, sent[1]))
			}
			s.hosts.empty(t)
		})
	}
}

// As byTwo, with receivers of which any may be lost.
const shareByTwo = `
[start]
wait = "none"
[failure]
cluster = "restart"
[[cluster]]
name = "c"
program = "%P"
args = ["share", "c", "each"]
ranks = 2
hosts = ["%1:1", "%2:1"]
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 2
hosts = ["%3:1", "%4:1"]
[[cluster]]
name = "b"
program = "%P"
args = ["share", "b", "each"]
ranks = 2
hosts = ["%5:1", "%6:1"]
[[link]]
from = "a"
to = "b"
iops = 2
[[link]]
from = "a"
to = "c"
`

// Clusters of two hosts each lead one after another: each is lost with the host of its spxrun, the others go on, it is attached again. The loss of a host that is reached through another one is what it was.
func TestApartHostsLeadersLost(t *testing.T) {
	s := newApartOn(t, 6, func(*testHosts) {}, shareByTwo)
	at := map[string]int{"c": 1, "a": 3, "b": 5}
	runs := map[string]*running{}
	for _, name := range []string{"c", "a", "b"} {
		runs[name] = s.startOn(at[name], name)
		runs[name].made()
	}
	s.flows("b")
	s.flows("c")
	leads, host := "c", s.hosts.name(0)
	for k := range 3 {
		s.copied(at["b"], 3)
		s.loses(at[leads], "killed")
		<-runs[leads].ended
		delete(runs, leads)
		var all []*running
		for _, r := range runs {
			all = append(all, r)
		}
		var join string
		host, join = leadsNext(host, all...)
		for _, r := range all {
			r.says(fmt.Sprintf("cluster %s is away; it may be attached again, and the others wait for it.", leads))
		}
		s.emptied(at[leads])
		s.emptied(at[leads] + 1)
		runs[leads] = s.startOn(at[leads], leads, "--join", join, "-x", fmt.Sprintf("APART_FROM=%d", 10*(k+1)))
		runs[leads].made()
		s.flows("b")
		s.flows("c")
		leads, _, _ = strings.Cut(host, "@")
	}
	other := map[string]string{"a": "b", "b": "c", "c": "b"}[leads]
	s.hosts.killAgent(t, s.hosts.name(at[other])) // its second host: the one that leads reaches it through the first one
	runs[leads].says("host " + other + "@" + s.hosts.name(at[other]) + " is lost, with its processes: ")
	runs[leads].says("cluster " + other + " cannot be started again: host ")
	s.emptied(at[other] + 1)
	s.write("stop", "", "")
	<-runs[other].ended
	for name, r := range runs {
		if name != other {
			r.ends(0)
		}
	}
	s.hosts.empty(t)
}

// The cluster that leads has ranks on other hosts as well, which the file treats as those of any host: standbys take the place of what was on the host that is lost, or the others are told and go on. What they write is printed by the
// spxrun that leads from then on.
func TestApartHostsOfLeaderLeft(t *testing.T) {
	for name, c := range map[string]struct{ failure, says string }{
		"a standby takes the place": {`host = "replace", process = "stop"`, "a standby takes its place"},
		"the others are told":       {`host = "degrade", process = "stop"`, "others of cluster b are told and go on"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newApartOn(t, 6, func(*testHosts) {}, fmt.Sprintf(`
[start]
wait = "none"
[failure]
cluster = "degrade"
[[cluster]]
name = "b"
program = "/bin/sh"
args = ["-c", "until [ -e there ]; do sleep 0.02; done; exec \"$0\" \"$@\"", %q, "2", "12", ",0@4,", "agent"]
ranks = 2
standbys = 2
hosts = ["%%1:1", "%%4:1", "%%5:2"]
failure = { %s }
[[cluster]]
name = "a"
program = "/bin/sh"
args = ["-c", "while [ ! -e stop ]; do sleep 0.05; done"]
ranks = 2
hosts = ["%%2:1", "%%6:1"]
[[cluster]]
name = "c"
program = "/bin/sh"
args = ["-c", "while [ ! -e stop ]; do sleep 0.05; done"]
ranks = 1
`, program(t, "takeover"), c.failure))
			b := s.startOn(1, "b")
			b.says("rank b.standby1 is pid")
			runs := []*running{s.startOn(2, "a"), s.startOn(3, "c")}
			runs[0].says("rank 1 of cluster a is pid")
			runs[1].says("rank 0 of cluster c is pid")
			s.copied(2, 3)
			s.write("there", "", "")
			host, _ := leadsNext(s.hosts.name(0), runs...)
			for _, r := range runs {
				r.says(c.says)
			}
			next := runs[map[bool]int{true: 0, false: 1}[strings.HasPrefix(host, "a@")]]
			next.says("] done 12 ")
			for _, h := range []int{1, 4, 5} {
				s.emptied(h)
			}
			s.write("stop", "", "")
			for _, r := range runs {
				r.ends(0)
			}
			s.hosts.empty(t)
		})
	}
}

// The last of four clusters reaches the one that leads only through the third one, which is in two networks: when the host of the first one is lost, it goes on with the others, whoever of these leads, and what is attached again reaches
// all that it has to. Without the one in between it is lost, as ever.
func TestApartHostsLeaderLostInARow(t *testing.T) {
	for _, how := range []string{"killed", "stopped"} {
		t.Run(how, func(t *testing.T) {
			s := newApartOn(t, 6, threeNetworks, fmt.Sprintf(`
through = ["10.78.0.2:7411"]
[start]
wait = "none"
[failure]
cluster = "restart"
[[cluster]]
name = "a"
program = "%%P"
args = ["share", "a", "each"]
ranks = 1
hosts = ["%%1"]
[[cluster]]
name = "d"
program = "%%P"
args = ["send", "90000", "2", "stop"]
ranks = 2
hosts = ["%%6:2"]
[[cluster]]
name = "b"
program = %q
ranks = 2
hosts = ["%%2:1", "%%3:1"]
[[cluster]]
name = "c"
program = "%%P"
args = ["share", "c", "each"]
ranks = 1
hosts = ["%%5:1", "%%4:2"]
[[link]]
from = "d"
to = "a"
hosts = ["%%1"]
[[link]]
from = "d"
to = "b"
hosts = ["%%2"]
[[link]]
from = "b"
to = "c"
hosts = ["%%4"]
`, program(t, "handing")))
			a := s.startOn(1, "a", "-x", "SPX_HEARTBEAT_LIMIT=1000", "-x", "SPX_AGENT_LIMIT=0")
			a.says("rank a.0 is pid")
			b, d := s.startOn(2, "b"), s.startOn(6, "d")
			b.says("of cluster b is pid")
			c := s.startOn(4, "c")
			s.flows("a")
			s.flows("c")
			s.copied(2, 3)
			began := time.Now()
			back := s.loses(1, how)
			host, join := leadsNext(s.hosts.name(0), b, c, d)
			took := time.Since(began)
			t.Logf("%s: host %s leads after %v", how, host, took)
			if took > harness.Patience(2*time.Second) {
				t.Errorf("no other host has led for %v", took)
			}
			for _, r := range []*running{b, c, d} {
				r.says("cluster a is away; it may be attached again, and the others wait for it.")
			}
			s.flows("c")
			back()
			s.emptied(1)
			a = s.startOn(1, "a", "--join", join, "-x", "APART_FROM=10")
			a.made()
			s.flows("a")
			s.hosts.killAgent(t, s.names.Replace("%5")) // it is reached through two others, or one
			d.says(s.names.Replace("host c@%5 is lost, with its processes: "))
			c.says(s.names.Replace("cluster c is started again (1 of at most 3 times) on host c@%4, since host c@%5 is lost."))
			s.flows("c")
			if strings.HasPrefix(host, "d@") {
				s.copied(6, 3)
				s.hosts.killAgent(t, s.names.Replace("%2"))
				d.says("cluster b is away; it may be attached again, and the others wait for it.")
				d.says("cluster c is away; it may be attached again, and the others wait for it.")
				<-b.ended
				c.ends(1, "is lost: its agent has ended, or the connection with it is broken; the processes of cluster c are ended")
				for host := 2; host <= 5; host++ {
					s.emptied(host)
				}
				s.flows("a")
				b = s.startOn(2, "b", "--join", join)
				b.says("of cluster b is pid")
				c = s.startOn(4, "c", "--join", join)
				s.flows("c")
			}
			s.write("stop", "", "")
			for _, r := range []*running{a, d, b, c} {
				r.ends(0)
			}
			s.hosts.empty(t)
		})
	}
}
