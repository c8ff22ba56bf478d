package systems

import (
	"fmt"
	"os/exec"
	"path/filepath"
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

// threeApart are three clusters, of which the first one, on two hosts, leads and has nothing to do with the others; from the second to the third go messages.
const threeApart = `
[start]
wait = "none"
[failure]
cluster = "restart"
network = "degrade"
[[cluster]]
name = "lead"
program = "/bin/sh"
args = ["-c", "echo here; while [ ! -e stop ]; do sleep 0.05; done"]
ranks = 2
hosts = ["%1:1", "%4:1"]
failure = { network = "stop" }
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

// As before, with a cluster beside the second one to which messages go: that of the first one leads.
const sharedApart = `
[start]
wait = "none"
[failure]
cluster = "%POLICY"
[[cluster]]
name = "c"
program = "%P"
args = ["share", "c", "each"]
ranks = 1
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 2
[[cluster]]
name = "b"
program = "%P"
args = ["share", "b", "each"]
ranks = 2
[[link]]
from = "a"
to = "b"
iops = 2
[[link]]
from = "a"
to = "c"
`

// made waits until the spxrun of a cluster has said that it runs.
func (r *running) made() { r.matches("rank (0 of cluster " + r.name + "|" + r.name + "[.]0) is pid") }

// hasIOPs waits until the I/O processes from a to b have been started, with this one.
func (r *running) hasIOPs(n int) {
	for i := range n {
		r.says(fmt.Sprintf("rank 0 of I/O process a-b.iop%d is pid", i))
	}
}

// The cluster that leads is lost with I/O processes and ranks, which is treated as the loss of any other one's spxrun is: messages take their other way, and its own when it is attached again. Then the next one that
// leads is lost, and attached again. A cluster that no file knew comes to the one that leads by then, and one leaves, as ever.
func TestApartLeadersLost(t *testing.T) {
	for policy, c := range map[string]struct {
		times int
		says  string
	}{
		"restart": {2, "cluster %s is away; it may be attached again, and the others wait for it."},
		"degrade": {1, "cluster %s is gone; the others go on."}, // else that from which all come may be the second one
	} {
		t.Run(policy, func(t *testing.T) {
			s := newApartOn(t, 4, func(*testHosts) {}, strings.ReplaceAll(sharedApart, "%POLICY", policy))
			s.name = "apart"
			at := map[string]int{"c": 1, "a": 2, "b": 3}
			runs := map[string]*running{}
			for _, name := range []string{"c", "a", "b"} {
				runs[name] = s.startOn(at[name], name)
				runs[name].made()
			}
			s.flows("b")
			s.flows("c")
			leads, join, host := "c", "", s.hosts.name(0)
			for k := range c.times {
				s.copied(at["b"], 3)
				s.loses(at[leads], "killed")
				<-runs[leads].ended
				delete(runs, leads)
				var next []string
				for _, r := range runs {
					next = r.matches(fmt.Sprintf(takesLead, host))
					r.says(fmt.Sprintf(c.says, leads))
				}
				s.emptied(at[leads])
				join = next[2]
				runs[leads] = s.startOn(at[leads], leads, "--join", join, "-x", fmt.Sprintf("APART_FROM=%d", 10*(k+1)))
				runs[leads].made()
				s.flows("b")
				s.flows("c")
				host = next[1]
				leads, _, _ = strings.Cut(host, "@")
			}
			file := s.file
			s.file = s.writeOther("more.toml", more)
			n := s.startOn(4, "n", "--join", join)
			s.file = file
			s.flows("n")
			o := &onHosts{s.apart, nil, s.hosts, s.names}
			if text := o.ctl(s.hosts.name(at[leads]-1), "system", "detach", "n", "apart"); !strings.Contains(text, "cluster n has left") {
				t.Error(text)
			}
			n.ends(0, "[n.0] n: 2 ranks\n")
			s.flows("b")
			s.write("stop", "", "")
			for _, r := range runs {
				r.ends(0)
			}
			s.hosts.empty(t)
		})
	}
}

// The agent that leads is killed with its host, stands still, or is unplugged: the next one leads within two seconds, what the others say to each other comes in order and all of it, the cluster that was lost is attached again where
// the next one says, and all end as they should.
func TestApartLeaderLost(t *testing.T) {
	for _, how := range []string{"killed", "stopped", "unplugged"} {
		t.Run(how, func(t *testing.T) {
			s := newApartOn(t, 4, func(*testHosts) {}, threeApart)
			lead := s.startOn(1, "lead", "-x", "SPX_HEARTBEAT_LIMIT=1000", "-x", "SPX_AGENT_LIMIT=0")
			lead.says("[lead.1] here")
			a, b := s.startOn(2, "a"), s.startOn(3, "b")
			b.hasIOPs(2)
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
			s.emptied(4)
			s.startOn(1, "lead").ends(1, "the system apart runs already, and is led at "+next[2]+" since the agent was lost that had led it here: spxrun --join "+next[2]+" attaches cluster lead there")
			again := s.startOn(1, "lead", "--join", next[2])
			again.says("[lead.1] here")
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

// The spxrun that leads is killed alone, that of the cluster which began, or of one that leads on: its agent does, with all that runs, and another spxrun takes its place, which prints what comes, and ends with the system's status.
func TestApartFrontLost(t *testing.T) {
	for _, on := range []bool{false, true} {
		t.Run(fmt.Sprintf("another leads on: %v", on), func(t *testing.T) {
			s := newApartOn(t, 4, func(*testHosts) {}, threeApart)
			lead := s.startOn(1, "lead")
			lead.says("[lead.1] here")
			runs := map[string]*running{"a": s.startOn(2, "a"), "b": s.startOn(3, "b")}
			s.flows("b")
			host := 1
			if on {
				s.copied(2, 3)
				s.loses(1, "killed")
				leads := runs["a"].matches(fmt.Sprintf(takesLead, s.hosts.name(0)))[1]
				host = map[bool]int{true: 2, false: 3}[strings.HasPrefix(leads, "a@")]
			} else {
				runs["lead"] = lead
			}
			s.flows("b")
			dead := map[int]string{1: "lead", 2: "a", 3: "b"}[host]
			s.hosts.signal(t, host, "spxrun", syscall.SIGKILL)
			runs[dead].says("goes on without it") // until then it has its spxrun, and none takes its place
			cmd := exec.Command(s.hosts.script, "on", s.hosts.name(host-1), filepath.Join(harness.Build(t), "bin/spxrun"), "--attach", ".")
			s.flows("b")
			front := s.launch("front", cmd)
			front.says("goes on without it") // it has the place: else the job may end before it comes
			s.flows("b")
			s.write("stop", "", "")
			front.ends(0)
			for cluster, r := range runs {
				if cluster != dead {
					r.ends(0)
				}
			}
			for rank := range 2 {
				sent := (&running{t: t}).of(front, runs["a"]).matches(fmt.Sprintf(`rank %d sent (\d+)\n`, rank))
				(&running{t: t}).of(front, runs["b"]).matches(fmt.Sprintf(`\] rank %d received %s\n`, rank, sent[1]))
			}
			s.hosts.empty(t)
		})
	}
}

// of has said what others have.
func (r *running) of(others ...*running) *running {
	r.changed.L = &r.mu
	for _, o := range others {
		r.said.WriteString(o.text())
	}
	return r
}
