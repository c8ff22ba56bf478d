package systems

import (
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/launch/service"
	"libspx/tests/harness"
)

// The cluster is lost whose spxrun leads a system of clusters that were started one by one: another one's leads it on.

// matches waits until the spxrun of a cluster has said what a pattern describes.
func (r *running) matches(pattern string) (found []string) {
	r.t.Helper()
	re := regexp.MustCompile(pattern)
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		if found = re.FindStringSubmatch(r.text()); found != nil {
			return found
		}
		if time.Since(began) > harness.Patience(apartLimit) {
			r.t.Fatalf("cluster %s has not said %q", r.name, pattern)
		}
	}
}

// takesLead is the line that says which host leads now, and where.
const takesLead = `host (\S+) decides about job [0-9a-f]{16} now, in the place of host %s, which is lost; clusters are attached at (\S+) now`

// copied waits until so many hosts vote about what is decided, as one of them says.
func (s *apartOn) copied(host, hosts int) {
	s.t.Helper()
	o := &onHosts{s.apart, nil, s.hosts, s.names}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		text := o.ctl(s.hosts.name(host-1), "hosts", ".", "--json")
		if strings.Count(text, `"votes":true`)+strings.Count(text, `"votes": true`) == hosts {
			return
		}
		if time.Since(began) > harness.Patience(apartLimit) {
			s.t.Fatalf("not %d hosts that vote:\n%s", hosts, text)
		}
	}
}

// loses loses a host, from 1, as losesFirst does the first one.
func (s *apartOn) loses(host int, how string) (back func()) {
	s.t.Helper()
	link := func(state string) {
		s.hosts.run("ip", "-n", s.hosts.prefix+"sw", "link", "set", fmt.Sprintf("port%d", host), state)
	}
	switch how {
	case "killed":
		s.hosts.killAgent(s.t, s.hosts.name(host-1))
		for _, pid := range s.hosts.Pids(host) {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it has ended then
		}
	case "stopped":
		s.hosts.signal(s.t, host, service.AgentName, syscall.SIGSTOP)
		return func() { s.hosts.signal(s.t, host, service.AgentName, syscall.SIGCONT) }
	case "unplugged":
		link("down")
		return func() { link("up") }
	}
	return func() {}
}

// fourApart are four clusters, of which the first one leads and the last one does nothing but wait; from the second to the third go messages.
const fourApart = `
[start]
wait = "none"
[failure]
cluster = "restart"
network = "degrade"
[[cluster]]
name = "lead"
program = "/bin/sh"
args = ["-c", "echo here; while [ ! -e stop ]; do sleep 0.05; done"]
ranks = 1
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 2
[[cluster]]
name = "b"
program = "%P"
args = ["order", "b", "each"]
ranks = 2
[[link]]
from = "a"
to = "b"
iops = 2
choice = "key"
`

// The agent that leads is killed with its host, stands still, or is unplugged: the next one leads within two seconds, what the others say to each other comes in order and all of it, the cluster that was lost is attached again where
// the next one says, and all end as they should.
func TestApartLeaderLost(t *testing.T) {
	for _, how := range []string{"killed", "stopped", "unplugged"} {
		t.Run(how, func(t *testing.T) {
			s := newApartOn(t, 3, func(*testHosts) {}, fourApart)
			lead := s.startOn(1, "lead", "-x", "SPX_HEARTBEAT_LIMIT=1000", "-x", "SPX_AGENT_LIMIT=0")
			lead.says("[lead.0] here")
			a, b := s.startOn(2, "a"), s.startOn(3, "b")
			s.flows("b")
			s.copied(2, 3)
			began := time.Now()
			back := s.loses(1, how)
			next := a.matches(fmt.Sprintf(takesLead, s.hosts.name(0)))
			took := time.Since(began)
			t.Logf("%s: host %s leads after %v", how, next[1], took)
			if took > harness.Patience(2*time.Second) {
				t.Errorf("no other host has led for %v", took)
			}
			b.says(next[0])
			for _, r := range []*running{a, b} {
				r.says("cluster lead is away; it may be attached again, and the others wait for it.")
			}
			s.flows("b")
			back()
			s.emptied(1)
			again := s.startOn(1, "lead", "--join", next[2])
			again.says("[lead.0] here")
			s.flows("b")
			s.write("stop", "", "")
			again.ends(0)
			a.ends(0)
			b.ends(0)
			for rank := range 2 {
				sent := a.matches(fmt.Sprintf(`\[a\.%d\] rank %[1]d sent (\d+)\n`, rank))
				b.matches(fmt.Sprintf(`\] rank %d received %s\n`, rank, sent[1]))
			}
			s.hosts.empty(t)
		})
	}
}
