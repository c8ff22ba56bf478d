package systems

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
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

// The host is lost on which spxrun has started a system (docs/decisions/leaders.md): the system goes on, as its file says.

// all is what the system has said so far, wherever: spxrun, and the file that another host writes.
func (o *onHosts) all() string {
	text := o.running.text()
	files, _ := filepath.Glob(filepath.Join(o.dir, "spx-*.out"))
	for _, f := range files {
		more, _ := os.ReadFile(f)
		text += string(more)
	}
	return text
}

// reads waits until it has said what a pattern describes, in which %1 is the first host.
func (o *onHosts) reads(pattern string) (found []string) {
	t := o.apart.t
	t.Helper()
	pattern = o.names.Replace(pattern)
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		if found = regexp.MustCompile(pattern).FindStringSubmatch(o.all()); found != nil {
			return found
		}
		if time.Since(began) > harness.Patience(30*time.Second) {
			t.Fatalf("no %q in\n%s", pattern, o.all())
		}
	}
}

// shows waits until the state of the system, as spxctl prints it on a host, has a text in it.
func (o *onHosts) shows(host, what string) {
	t := o.apart.t
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		text := o.ctl(host, "system", "status")
		if strings.Contains(text, what) {
			return
		}
		if time.Since(began) > harness.Patience(30*time.Second) {
			t.Fatalf("no %q in\n%s", what, text)
		}
	}
}

// losesFirst loses the host of spxrun, or the agent that decides there. back undoes what can be undone.
func (o *onHosts) losesFirst(how string) (back func()) {
	t := o.apart.t
	t.Helper()
	back = func() {}
	signal := func(name string, number syscall.Signal) {
		for _, pid := range o.hosts.Pids(1) {
			if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); name == "" || strings.TrimSpace(string(comm)) == name {
				syscall.Kill(pid, number) //nolint:errcheck // it has ended then
			}
		}
	}
	switch how {
	case "killed":
		signal(service.AgentName, syscall.SIGKILL)
		signal("", syscall.SIGKILL)
	case "stopped":
		signal(service.AgentName, syscall.SIGSTOP)
		back = func() { signal(service.AgentName, syscall.SIGCONT) }
	case "unplugged":
		o.hosts.run("ip", "-n", o.hosts.prefix+"sw", "link", "set", "port1", "down")
		back = func() { o.hosts.run("ip", "-n", o.hosts.prefix+"sw", "link", "set", "port1", "up") }
	}
	return back
}

// system is what spxctl says on a host of the system.
func (o *onHosts) system(host string) *service.System {
	t := o.apart.t
	t.Helper()
	text, err := exec.Command(o.hosts.script, "on", o.names.Replace(host), filepath.Join(harness.Build(t), "bin/spxctl"), "system", "status", "apart", "--json").CombinedOutput()
	var about service.About
	if json.Unmarshal(text, &about) != nil || about.System == nil {
		t.Fatalf("spxctl on host %s: %v\n%s", host, err, text)
	}
	return about.System
}

// version is that of the table of the system.
func version(t *testing.T, s *service.System) (n uint64) {
	t.Helper()
	var of struct{ Version uint64 }
	if err := json.Unmarshal(s.Layout, &of); err != nil {
		t.Fatal(err)
	}
	return of.Version
}

// runs waits until all parts of the system run, as a host says.
func (o *onHosts) runs(host string) *service.System {
	t := o.apart.t
	t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		s, all := o.system(host), true
		for _, p := range s.Parts {
			all = all && p.State == "running"
		}
		if all {
			return s
		}
		if time.Since(began) > harness.Patience(20*time.Second) {
			t.Fatalf("%+v\n%s", s.Parts, o.all())
		}
	}
}

// leaderLost is a system of which spxrun's host has an I/O process and a cluster that is started again elsewhere; between the clusters on the other hosts messages go on.
const leaderLost = `
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 2
hosts = ["%2:2"]
[[cluster]]
name = "b"
program = "%P"
args = ["order", "b", "each"]
ranks = 2
hosts = ["%3:2"]
[[cluster]]
name = "c"
program = "%P"
args = ["share", "c", "each"]
ranks = 1
hosts = ["%1:1", "%4:3"]
failure = { cluster = "restart" }
[[link]]
from = "a"
to = ["b", "c"]
hosts = ["%1:1"]
args = ["--to", "all"]
`

// The host of spxrun is lost with an I/O process and a cluster: its agent is killed with all that is there, stands still, or the network is unplugged. Both are started again on another host by the agent that decides now, what the
// other clusters say to each other arrives in order, once, and all of it, and the system ends as it should.
func TestLeaderLost(t *testing.T) {
	for _, how := range []string{"killed", "stopped", "unplugged"} {
		t.Run(how, func(t *testing.T) {
			o := startOn(t, 4, func(*testHosts) {}, leaderLost, "SPX_HEARTBEAT_LIMIT=1000", "SPX_AGENT_LIMIT=0")
			o.flows("b")
			o.flows("c")
			o.copied(4)
			before := version(t, o.system("%2"))
			began := time.Now()
			back := o.losesFirst(how)
			o.reads(`host \S+ decides about job [0-9a-f]{16} now, in the place of host %1, which is lost`)
			led := time.Since(began)
			o.reads(`I/O process a-b\.c\.iop0 is started again \(1 of at most 3 times\) on host %4, since host %1 is lost`)
			o.flows("b")
			flowed := time.Since(began)
			o.reads(`cluster c is started again \(1 of at most 3 times\) on host %4, since host %1 is lost`)
			o.flows("c")
			t.Logf("%s: another host decides after %v, and messages come after %v", how, led, flowed)
			s := o.runs("%3")
			if now := version(t, s); now <= before {
				t.Errorf("the table of the system had version %d, and has %d", before, now)
			}
			before = version(t, s)
			o.kills(4, "spx-iop")
			o.reads(`I/O process a-b\.c\.iop0 is started again \(2 of at most 3 times\)`)
			o.flows("b")
			if now := version(t, o.runs("%2")); now <= before {
				t.Errorf("the table of the system had version %d, and has %d", before, now)
			}
			o.write("stop", "", "")
			for rank := range 2 {
				sent := o.reads(fmt.Sprintf(`\[a\.%d\] rank %[1]d sent (\d+)\n`, rank))
				o.reads(fmt.Sprintf(`\[b\.%d\] rank %[1]d received %s\n`, rank, sent[1]))
			}
			o.reads(`spxrun: job [0-9a-f]{16} has ended, exit status 0\n`)
			if how == "stopped" {
				back()
			}
			o.hosts.empty(t)
		})
	}
}

// kills kills a process of a host.
func (o *onHosts) kills(host int, name string) {
	o.apart.t.Helper()
	o.signals(host, name, syscall.SIGKILL, 1)
}

// signals sends a signal to processes of a host, most of them at most.
func (o *onHosts) signals(host int, name string, signal syscall.Signal, most int) {
	t := o.apart.t
	t.Helper()
	n := 0
	for _, pid := range o.hosts.Pids(host) {
		if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); n < most && strings.TrimSpace(string(comm)) == name && syscall.Kill(pid, signal) == nil {
			n++
		}
	}
	if n == 0 {
		t.Fatalf("host %d has no %s", host, name)
	}
}

// asItIs is a system whose text is said in full, with %T for the program of takeovers.
func asItIs(t *testing.T, hosts int, text string, env ...string) *onHosts {
	t.Helper()
	o := startOn(t, hosts, func(*testHosts) {}, strings.ReplaceAll(text, "%T", program(t, "takeover")), append(env, "SPX_AGENT_LIMIT=0")...)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("all that the system has said:\n%s\nspxctl on host 3:\n%s%s", o.all(), o.ctl("%3", "system", "status"), o.ctl("%3", "ps", "."))
		}
	})
	return o
}

// What [failure] says about hosts holds for that of spxrun, too: its ranks are taken over by standbys, which restore what their partners have; so it is with the host that decides next. Or the cluster stops, and the system with it, or the
// others of the cluster are told. A host that is cut off is the matter of network, not of host.
func TestLeaderLostWithRanks(t *testing.T) {
	for name, c := range map[string]struct {
		failure, victims string
		standbys, hosts  int
		says             []string
		with             string // preset: agent
	}{
		"standbys take over":  {`host = "replace", process = "stop"`, ",0@4,", 2, 4, []string{`rank 0 of cluster work .*a standby takes its place`, `done 12 `, `has ended, exit status 0\n`}, ""},
		"twice":               {`host = "replace", process = "stop"`, ",0@4,2@8,", 4, 5, []string{`host %1 is lost, with its processes`, `host %2 is lost, with its processes`, `done 12 `, `has ended, exit status 0\n`}, ""},
		"it is stopped":       {`host = "stop", process = "replace"`, ",0@4,", 2, 4, []string{`cluster work is ended and with it the system`, `has ended, exit status 137\n`}, ""},
		"the others are told": {`host = "degrade", process = "stop"`, ",0@4,", 2, 4, []string{`others of cluster work are told and go on`, `done 12 `, `has ended, exit status 0\n`}, ""},
		"it is cut off":       {`host = "stop", network = "replace", process = "stop"`, ",0@4,", 2, 4, []string{`rank 0 of cluster work .*a standby takes its place`, `done 12 `, `has ended, exit status 0\n`}, "cut"},
	} {
		t.Run(name, func(t *testing.T) {
			places := `"%1:2", "%2:2", "%3:2", "%4:4"`
			if c.hosts == 5 {
				places = `"%1:2", "%2:2", "%3:2", "%4:2", "%5:4"`
			}
			limit := "20000" // who is to be found out is found out by an agent's end
			if c.with != "" {
				limit = "1000"
			}
			o := asItIs(t, c.hosts, fmt.Sprintf("[[cluster]]\nname = \"work\"\nprogram = \"%%T\"\nargs = [\"6\", \"12\", %q, %q]\nranks = 6\nstandbys = %d\nhosts = [%s]\nfailure = { %s }\n", c.victims, cmp.Or(c.with, "agent"), c.standbys, places, c.failure), "SPX_HEARTBEAT_LIMIT="+limit)
			for _, pattern := range c.says {
				o.reads(pattern)
			}
			o.hosts.empty(t)
		})
	}
}

// Ranks that are started again in the place of others, and take their ranks over unnoticed, before and after the host of spxrun is lost: the agent that decides now knows who has which rank, and starts the next ones. What is killed in the same
// moment is started again, too.
func TestLeaderLostWithTakeovers(t *testing.T) {
	o := asItIs(t, 4, `
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 2
hosts = ["%2:2"]
[[cluster]]
name = "b"
program = "%P"
args = ["order", "b", "each"]
ranks = 2
hosts = ["%3:2"]
takeover = "transparent"
failure = { process = "restart", restarts = 6 }
[[link]]
from = "a"
to = "b"
iops = 1
hosts = ["%4:2"]
`)
	o.flows("b")
	o.kills(3, "apart")
	o.reads(`cluster b .*a process is started that takes its place \(1 of at most 6\)`)
	o.flows("b")
	o.copied(4)
	o.kills(3, "apart")
	o.kills(4, "spx-iop")
	o.losesFirst("killed")
	o.reads(`(?s)decides about job [0-9a-f]{16} now`)
	o.shows("%3", "running, 2 alive, 4 not started") // the first host may have decided it in its last moment, and said so to its own user alone
	o.reads(`iop0 is started again`)
	o.flows("b")
	o.kills(3, "apart")
	o.reads(`cluster b .*a process is started that takes its place \(3 of at most 6\)`)
	o.flows("b")
	o.write("stop", "", "")
	for rank := range 2 {
		sent := o.reads(fmt.Sprintf(`\[a\.%d\] rank %[1]d sent (\d+)\n`, rank))
		o.reads(fmt.Sprintf(`\] rank %d received %s\n`, rank, sent[1]))
	}
	o.reads(`spxrun: job [0-9a-f]{16} has ended, exit status 0\n`)
	o.hosts.empty(t)
}

// The host of spxrun is lost while a relay and a cluster of two hosts are being started again, at any moment of that: they are started again by the next one that decides, and what was half made is ended.
func TestLeaderLostMeanwhile(t *testing.T) {
	for _, after := range []time.Duration{0, 4, 8, 12, 20, 35} {
		t.Run(fmt.Sprint(after*time.Millisecond), func(t *testing.T) {
			third := filepath.Join(t.TempDir(), "third")
			if err := os.Symlink(program(t, "apart"), third); err != nil {
				t.Fatal(err)
			}
			o := asItIs(t, 4, strings.ReplaceAll(`
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 2
hosts = ["%2:2"]
[[cluster]]
name = "b"
program = "%P"
args = ["order", "b", "each"]
ranks = 2
hosts = ["%3:2"]
[[cluster]]
name = "c"
program = "%C"
args = ["share", "c", "each"]
ranks = 3
hosts = ["%2:1", "%3:1", "%4:1"]
failure = { cluster = "restart" }
[[link]]
from = "a"
to = ["b", "c"]
iops = 1
hosts = ["%3:1"]
args = ["--to", "all"]
`, "%C", third))
			o.flows("b")
			o.flows("c")
			o.copied(4)
			o.kills(3, "third")
			o.kills(3, "spx-iop")
			time.Sleep(after * time.Millisecond) // some moment
			o.losesFirst("killed")
			o.reads(`decides about job [0-9a-f]{16} now`)
			o.flows("b")
			o.flows("c")
			for _, k := range []int{2, 3} {
				if p := o.runs("%2").Parts[k]; p.Alive != 3-2*(k-2) || p.Restarts != 1 {
					t.Errorf("%+v", p)
				}
			}
			t.Logf("%+v", o.system("%3").Parts[2:])
			o.write("stop", "", "")
			for rank := range 2 {
				sent := o.reads(fmt.Sprintf(`\[a\.%d\] rank %[1]d sent (\d+)\n`, rank))
				o.reads(fmt.Sprintf(`\[b\.%d\] rank %[1]d received %s\n`, rank, sent[1]))
			}
			o.reads(`spxrun: job [0-9a-f]{16} has ended, exit status 0\n`)
			o.hosts.empty(t)
		})
	}
}

// agents are the processes of a host that end it: its agent, and spxrun with its own.
func (o *onHosts) agents(host int) (pids []int) {
	for _, pid := range o.hosts.Pids(host) {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		switch strings.TrimSpace(string(comm)) {
		case service.AgentName, "spx-host-agent", "spxrun":
			pids = append(pids, pid)
		}
	}
	return pids
}

// The host of spxrun is lost when some processes of a cluster that is started again are there, and others not yet: the next one that decides starts it again, as the one start that it may have, and not as a second one.
func TestLeaderLostCountsOnce(t *testing.T) {
	o := asItIs(t, 4, `
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 2
hosts = ["%2:2"]
[[cluster]]
name = "c"
program = "/bin/sh"
args = ["-c", "[ ! -e began ] || : > again; exec %P share c each"]
ranks = 26
hosts = ["%2:1", "%3:1", "%4:24"]
failure = { cluster = "restart", restarts = 1 }
[[link]]
from = "a"
to = "c"
iops = 1
hosts = ["%3:1"]
args = ["--to", "all"]
`)
	o.flows("c")
	o.copied(4)
	o.write("began", "", "")
	first, fourth := o.agents(1), o.agents(4)
	o.kills(3, "apart")
	again := filepath.Join(o.dir, "again")
	for began := time.Now(); ; {
		if _, err := os.Stat(again); err == nil {
			break
		}
		if time.Since(began) > harness.Patience(20*time.Second) {
			t.Fatalf("cluster c is not started again\n%s", o.all())
		}
	}
	for _, pid := range fourth { // so some have not been made when the one that decides is lost
		syscall.Kill(pid, syscall.SIGSTOP) //nolint:errcheck // the rest of the test says so
	}
	for _, pid := range first {
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // likewise
	}
	for _, pid := range fourth {
		syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // likewise
	}
	o.reads(`decides about job [0-9a-f]{16} now`)
	o.flows("c")
	if p := o.runs("%2").Parts[1]; p.Alive != 26 || p.Restarts != 1 {
		t.Errorf("%+v", p)
	}
	if n := strings.Count(o.all(), "cluster c is started again (1 of at most 1 times)"); n != 2 {
		t.Logf("the one that decides was lost too early or too late: the start was said %d times", n)
	}
	o.write("stop", "", "")
	o.reads(`spxrun: job [0-9a-f]{16} has ended, exit status 0\n`)
	o.hosts.empty(t)
}

// The host of spxrun is lost, and in the same moment that of the system's master, each with a cluster that is started again if a master says so: the next one that decides has one elected in time, and that one says it.
func TestMasterLostWithLeader(t *testing.T) {
	o := asItIs(t, 6, `
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 1
hosts = ["%2:4"]
[[cluster]]
name = "b"
program = "%P"
args = ["share", "b", "each"]
ranks = 1
hosts = ["%3:4"]
[[cluster]]
name = "c"
program = "%P"
args = ["share", "c", "each"]
ranks = 1
hosts = ["%1:1"]
[[link]]
from = "a"
to = ["b", "c"]
iops = 2
hosts = ["%4:4", "%5:4", "%6:4"]
args = ["--to", "all"]
[failure]
cluster = "restart"
restarts = 20
`)
	o.flows("b")
	o.flows("c")
	o.copied(6)
	var master int
	for began := time.Now(); master == 0; time.Sleep(5 * time.Millisecond) {
		for host, name := range map[int]string{2: "%2", 3: "%3", 4: "%4", 5: "%5", 6: "%6"} {
			if o.system("%2").Master == o.names.Replace(name) {
				master = host
			}
		}
		if time.Since(began) > harness.Patience(20*time.Second) {
			t.Fatal("the system has no master on another host than that of spxrun")
		}
	}
	victims := append(o.agents(1), o.agents(master)...)
	began := time.Now()
	for _, pid := range victims {
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // what is read says it
	}
	o.reads(`decides about job [0-9a-f]{16} now`)
	led := time.Since(began)
	o.reads(`cluster c is started again`)
	again := time.Since(began)
	o.flows("c")
	t.Logf("the system's master was on host %d; another host decides after %v, and cluster c is started again after %v", master, led, again)
	if strings.Contains(o.all(), "no master of the system has said") {
		t.Error("no master has decided")
	}
	if limit := harness.Patience(2 * time.Second); again > limit {
		t.Errorf("cluster c is started again after %v, which should be at most %v", again, limit)
	}
	o.write("stop", "", "")
	o.reads(`spxrun: job [0-9a-f]{16} has ended, exit status 0\n`)
	o.hosts.empty(t)
}

// Clusters wait in MPI_Init for one that is not complete yet when the host of spxrun is lost: they go on when it is, and who comes later waits for nobody.
func TestLeaderLostInInit(t *testing.T) {
	o := asItIs(t, 4, `
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 1
hosts = ["%2:1"]
[[cluster]]
name = "b"
program = "/bin/sh"
args = ["-c", "touch waits; while [ ! -e go ]; do sleep 0.02; done; exec %P order b each"]
ranks = 1
hosts = ["%3:1"]
[[link]]
from = "a"
to = "b"
iops = 1
hosts = ["%4:1"]
`)
	o.await("waits")
	o.copied(4)
	for limit := time.Now().Add(harness.Patience(10 * time.Second)); ; time.Sleep(5 * time.Millisecond) { // both wait by then
		if text := o.ctl("%2", "ps", "."); strings.Count(text, "MPI_Init") >= 2 {
			break
		} else if time.Now().After(limit) {
			t.Fatal(text)
		}
	}
	o.losesFirst("killed")
	o.reads(`decides about job [0-9a-f]{16} now`)
	o.write("go", "", "")
	o.flows("b")
	o.kills(4, "spx-iop")
	o.reads(`iop0 is started again`)
	o.flows("b")
	o.write("stop", "", "")
	o.reads(`spxrun: job [0-9a-f]{16} has ended, exit status 0\n`)
	o.hosts.empty(t)
}

// ctl is what spxctl says on a host.
func (o *onHosts) ctl(host string, args ...string) string {
	text, _ := exec.Command(o.hosts.script, append([]string{"on", o.names.Replace(host), filepath.Join(harness.Build(o.apart.t), "bin/spxctl")}, args...)...).CombinedOutput()
	return string(text)
}

// The next host that decides is lost as soon as it does, with what the first one had to do still to be done: the one after that does it.
func TestLeadersLostAtOnce(t *testing.T) {
	text := strings.NewReplacer("%1:1\", \"%4:3", "%1:1\", \"%2:3\", \"%3:3\", \"%4:1\", \"%5:1", "%2:2", "%6:2", "%3:2", "%7:2").Replace(leaderLost)
	for range 9 { // until it is one of those that can be lost
		o := asItIs(t, 7, text)
		o.flows("b")
		o.flows("c")
		o.copied(7)
		o.losesFirst("killed")
		next := o.reads(`host (\S+) decides about job [0-9a-f]{16} now`)[1]
		lost := next != o.names.Replace("%6") && next != o.names.Replace("%7")
		if lost {
			o.hosts.killAgent(t, next)
			o.reads(`(?s)decides about job [0-9a-f]{16} now.*decides about job [0-9a-f]{16} now`)
		}
		o.flows("b")
		o.flows("c")
		o.runs("%6")
		o.write("stop", "", "")
		for rank := range 2 {
			sent := o.reads(fmt.Sprintf(`\[a\.%d\] rank %[1]d sent (\d+)\n`, rank))
			o.reads(fmt.Sprintf(`\[b\.%d\] rank %[1]d received %s\n`, rank, sent[1]))
		}
		o.reads(`spxrun: job [0-9a-f]{16} has ended, exit status 0\n`)
		o.hosts.empty(t)
		if lost {
			return
		}
	}
	t.Error("the next one that decides was never one that can be lost")
}

// The host of spxrun stands still, or is unplugged; another one decides, and ends the system, as its
// file says. The first one sees its remote shells end then, which lead there by other ways: it takes
// no host for lost, and its user reads who decides now.
func TestLeaderHearsOfNext(t *testing.T) {
	for _, how := range []string{"stopped", "unplugged"} {
		t.Run(how, func(t *testing.T) {
			o := asItIs(t, 4, `
[[cluster]]
name = "w"
program = "/bin/sh"
args = ["-c", "exec sleep 1000"]
ranks = 4
hosts = ["%1:1", "%2:1", "%3:1", "%4:1"]
failure = { host = "stop", network = "stop" }
`, "SPX_HEARTBEAT_LIMIT=1000")
			o.shows("%3", "running, 4 alive")
			o.copied(4)
			back := o.losesFirst(how)
			next := o.reads(`host (\S+) decides about job [0-9a-f]{16} now, in the place of host %1, which is lost`)[1]
			o.reads(`cluster w is ended and with it the system`)
			o.reads(`has ended, exit status 137\n`)
			if how == "stopped" {
				for limit := time.Now().Add(harness.Patience(20 * time.Second)); len(o.hosts.Pids(2))+len(o.hosts.Pids(3))+len(o.hosts.Pids(4)) > 0; time.Sleep(5 * time.Millisecond) {
					if time.Now().After(limit) {
						t.Fatal("the other hosts have not ended")
					}
				}
				back()
			}
			select {
			case <-o.running.ended:
			case <-harness.After(20 * time.Second):
				t.Fatal("spxrun has not ended")
			}
			text := o.running.text()
			for _, host := range []string{"%2", "%3", "%4"} {
				if strings.Contains(text, o.names.Replace("host "+host+" is lost")) {
					t.Errorf("host %s is said to be lost", o.names.Replace(host))
				}
			}
			says := o.names.Replace("host %1: host ") + next + " decides about the job now; its processes are ended"
			if how == "stopped" && !strings.Contains(text, says) {
				t.Errorf("not said: %s", says)
			}
			o.hosts.empty(t)
		})
	}
}

// A system of two hosts says what it cannot survive, and ends with the host of spxrun.
func TestTwoHostsEnd(t *testing.T) {
	o := startOnWith(t, 2, []string{"-v"}, func(*testHosts) {}, `
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 1
hosts = ["%1:1", "%2:1"]
[[cluster]]
name = "b"
program = "%P"
args = ["order", "b", "each"]
ranks = 1
hosts = ["%2:1"]
[[link]]
from = "a"
to = "b"
hosts = ["%2:1"]
`, "SPX_AGENT_LIMIT=0")
	o.says(o.names.Replace("this job has 2 hosts, and ends when host %1 is lost, from which it was started"))
	o.flows("b")
	o.losesFirst("killed")
	o.hosts.empty(t)
}

// rolled is a system of which any one host may be lost: what runs there is started again on the others.
const rolled = `
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 2
hosts = ["%1:4"]
[[cluster]]
name = "b"
program = "%P"
args = ["share", "b", "each"]
ranks = 1
hosts = ["%2:4"]
[[link]]
from = "a"
to = "b"
iops = 2
hosts = ["%3:4"]
[failure]
cluster = "restart"
iop = "restart"
restarts = 20
`

// All hosts of a system are lost, one after another, that of spxrun among them, and come back: the system goes on, and at its end runs on none of the hosts with which it began. (What receives sees a sender that begins anew as messages that come twice,
// says so and aborts: it is started again as well.)
func TestHostsAreRolled(t *testing.T) {
	o := startOn(t, 3, func(*testHosts) {}, rolled, "SPX_HEARTBEAT_LIMIT=1000", "SPX_AGENT_LIMIT=0")
	o.flows("b")
	o.copied(3)
	for lost := 1; lost <= 3; lost++ {
		other := fmt.Sprintf("%%%d", lost%3+1)
		for _, name := range []string{service.AgentName, "spx-host-agent"} {
			for _, pid := range o.hosts.Pids(lost) {
				if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.TrimSpace(string(comm)) == name {
					syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it has ended then
				}
			}
		}
		o.reads(fmt.Sprintf(`host %%%d is lost, with its processes`, lost))
		if text := o.ctl(other, "hosts", ".", "add", o.names.Replace(fmt.Sprintf("%%%d:4", lost))); !strings.Contains(text, "4 slots") {
			t.Fatalf("host %d: %s\n%s", lost, text, o.all())
		}
		o.flows("b")
		o.runs(other)
	}
	o.write("stop", "", "")
	o.reads(`spxrun: job [0-9a-f]{16} has ended, exit status 0\n`)
	o.hosts.empty(t)
}
