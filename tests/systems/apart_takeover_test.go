package systems

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Ranks of clusters that were started one by one die, in each cluster each rank, while messages go from one to the other: standbys, or processes that are started in their place, by the agent of their own cluster,
// go on transparently. All messages come, in order, none twice, whichever of the clusters leads.
func TestApartTakenOver(t *testing.T) {
	const messages = 2500
	how := map[string][2]string{
		"standbys": {"standbys = 2\n", "a standby takes its place"},
		"restart":  {"failure = { process = \"restart\", restarts = 2 }\n", "a process is started that takes its place ("},
	}
	for name, h := range how {
		for _, order := range [][]string{{"send", "receive"}, {"receive", "send"}} {
			t.Run(name+", "+order[0]+" leads", func(t *testing.T) {
				text := ""
				for _, what := range []string{"send", "receive"} {
					text += fmt.Sprintf("[[cluster]]\nname = %[1]q\nprogram = %[2]q\nargs = [%[1]q, \"%[3]d\"]\nranks = 2\ntakeover = \"transparent\"\n%[4]s", what, program(t, "order"), messages, h[0])
				}
				s := newApart(t, text+"[[link]]\nfrom = \"send\"\nto = \"receive\"\niops = 2\nchoice = \"key\"\n")
				run := map[string]*running{}
				for i, cluster := range order {
					if run[cluster] = s.start(cluster); i == 0 {
						run[cluster].says("waiting for cluster " + order[1])
					}
				}
				for _, cluster := range order {
					for rank := range 2 {
						run[cluster].replaces(cluster, rank)
					}
				}
				run["send"].ends(0)
				run["receive"].ends(0)
				if n := strings.Count(run["receive"].text(), fmt.Sprintf("%d messages, all of 1 senders\n", messages)); n != 2 {
					t.Errorf("%d receivers have all messages", n)
				}
				for cluster, r := range run { // what is said of deaths is said to all
					if n := strings.Count(r.text(), h[1]); n != 4 {
						t.Errorf("cluster %s has said %d times, not 4 times, that %s", cluster, n, h[1])
					}
				}
			})
		}
	}
}

// Messages go from a cluster on one host to one on three, with copies of what its ranks need, and a host of that is lost: who takes the rank over on another one gets what that had not accepted. A rank of the other cluster dies, too.
func TestApartTakenOverHosts(t *testing.T) {
	const messages = 2500
	s := newApartOn(t, 5, func(*testHosts) {}, fmt.Sprintf(`
[[cluster]]
name = "send"
program = %[1]q
args = ["send", "%[2]d"]
ranks = 2
standbys = 1
takeover = "transparent"
hosts = ["%%1:3"]
[[cluster]]
name = "receive"
program = %[1]q
args = ["receive", "%[2]d"]
ranks = 2
standbys = 2
takeover = "transparent"
copies = "other host"
hosts = ["%%3:1", "%%4:1", "%%5:2"]
[[link]]
from = "send"
to = "receive"
iops = 2
choice = "key"
hosts = ["%%2"]
`, program(t, "order"), messages))
	receive := s.startOn(3, "receive")
	receive.says("cluster receive waits for the system apart")
	send := s.startOn(1, "send")
	receive.says("here receive 1 ")
	s.hosts.killAgent(t, s.names.Replace("%4"))
	receive.saysTimes("here receive 1 ", 2)
	send.says("here send 0 ")
	pid, err := strconv.Atoi(regexp.MustCompile(`here send 0 (\d+) `).FindStringSubmatch(send.text())[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(s.hosts.Outside(1, pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	send.saysTimes("here send 0 ", 2)
	send.ends(0)
	receive.ends(0)
	if n := strings.Count(receive.text(), fmt.Sprintf("%d messages, all of 1 senders\n", messages)); n != 2 {
		t.Errorf("%d receivers have all messages", n)
	}
	s.hosts.empty(t)
}

// replaces kills the process that has a rank, as it says itself, and waits until another one has it.
func (r *running) replaces(cluster string, rank int) {
	r.t.Helper()
	word := fmt.Sprintf("here %s %d ", cluster, rank)
	r.says(word)
	pid, err := strconv.Atoi(regexp.MustCompile(regexp.QuoteMeta(word) + `(\d+) `).FindStringSubmatch(r.text())[1])
	if err != nil {
		r.t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		r.t.Fatal(err)
	}
	r.saysTimes(word, 2)
}

// beside is a cluster that runs until a file is there, and one that has a text.
const beside = `
[start]
wait = "none"
[failure]
cluster = "degrade"
[[cluster]]
name = "a"
program = "/bin/sh"
args = ["-c", "while [ ! -e stop ]; do sleep 0.05; done"]
ranks = 1
`

// Processes are started in the place of ranks of a cluster that was attached, and of one that leads: the program is told, and restores. No more are started than the file says; then the cluster stops. Attached again, it has
// all its places again: deaths of the time before that are forgotten there.
func TestApartRestart(t *testing.T) {
	for name, c := range map[string]struct {
		restarts string
		victims  string
		started  int
		status   int
		again    bool // it is attached once more
	}{
		"nobody":            {"restarts = 1", ",", 0, 0, true},
		"one after another": {"restarts = 3, places = 3, within = \"10ms\"", ",1@2,0@5,3@9,", 3, 0, true},
		"two at once":       {"restarts = 2", ",1@4,3@4,", 2, 0, false},
		"used up":           {"restarts = 1", ",1@3,2@7,", 1, 137, false},
	} {
		for _, first := range []string{"a", "b"} {
			t.Run(name+", "+first+" leads", func(t *testing.T) {
				s := newApart(t, strings.Replace(beside, "degrade", map[string]string{"a": "degrade", "b": "stop"}[first], 1)+
					fmt.Sprintf("[[cluster]]\nname = \"b\"\nprogram = %q\nargs = [\"4\", \"12\", %q]\nranks = 4\nfailure = { process = \"restart\", %s }\n%s", program(t, "takeover"), c.victims, c.restarts, untilCome(first)))
				var a, b *running
				if first == "a" {
					a = s.start("a", "--verbose")
					a.says("rank a.0 is pid")
					b = s.start("b")
				} else {
					b = s.start("b", "--verbose")
					b.says("rank b.0 is pid")
					a = s.start("a", "--verbose")
				}
				said := func(r *running) int { return strings.Count(r.text(), "a process is started that takes its place (") }
				b.endsOrLeads(c.status, first == "b", a, s)
				if n := said(b); n != c.started {
					t.Errorf("%d processes were started in the place of ranks, there should be %d", n, c.started)
				}
				if done := strings.Contains(b.text(), "done 12 "); done != (c.status == 0) {
					t.Errorf("the cluster has done all: %v", done)
				}
				if c.again && first == "a" {
					again := s.start("b")
					again.ends(0, "done 12 ")
					if n := said(again); n != c.started {
						t.Errorf("attached again, %d processes were started in the place of ranks, there should be %d", n, c.started)
					}
				}
				s.write("stop", "", "")
				if c.status == 0 || first == "a" {
					a.ends(0)
				}
			})
		}
	}
}

// untilCome has cluster b, which runs "takeover", do its last step when cluster a has been attached, if b leads: else it might have ended, and with it the system, before a calls.
func untilCome(first string) string {
	return map[string]string{"b": "environment = { AWAIT = \"come\" }\n"}[first]
}

// A standby is about to end, as its cluster has, when it is ended: what it has ended with is nothing of the cluster's.
func TestApartStandbyEnds(t *testing.T) {
	s := newApart(t, beside+fmt.Sprintf("[[cluster]]\nname = \"b\"\nprogram = %q\nranks = 2\nstandbys = 1\ntakeover = \"transparent\"\n", program(t, "rests")))
	a := s.start("a", "--verbose")
	a.says("rank a.0 is pid")
	s.start("b").ends(0, "a standby was told to end")
	s.write("stop", "", "")
	a.ends(0)
}

// endsOrLeads waits for the end of what a cluster does: one that leads waits for the other one (untilCome), and stays until that has ended.
func (r *running) endsOrLeads(status int, leads bool, other *running, s *apart) {
	r.t.Helper()
	if leads && status == 0 {
		other.says("rank 0 of cluster a is pid")
		s.write("come", "", "")
		r.says("done 12 ")
		s.write("stop", "", "")
	}
	r.ends(status)
}

// Transparent takeover in a cluster that was started by itself, on hosts of its own: processes die, and hosts are lost with all that runs there, by the end of their agents or by the network. Who takes a rank over goes on from what
// the host has, or from copies on another host of the same cluster; all numbers come out as without a death.
func TestApartTransparentHosts(t *testing.T) {
	const one, two, three = "hosts = [\"%4:8\"]\nstandbys = 2\n", "copies = \"other host\"\nhosts = [\"%3:2\", \"%4:2\", \"%5:4\"]\nstandbys = 4\n", "copies = \"other host\"\nhosts = [\"%3:1\", \"%4:3\", \"%5:4\", \"%2:4\"]\nstandbys = 8\n"
	for name, c := range map[string]struct {
		fault, victims, text string
		lost                 int
	}{
		"a process, on one host":    {"9", ",1@3.1,2@7.2,", one, 0},
		"started on another host":   {"agent", ",2@3.1,", "copies = \"other host\"\nhosts = [\"%3:2\", \"%4:2\", \"%5:4\"]\nfailure = { process = \"restart\", restarts = 6 }\n", 1},
		"started on that host":      {"9", ",1@3.1,2@7.2,", "hosts = [\"%4:12\"]\nfailure = { process = \"restart\", restarts = 2 }\n", 0},
		"a process, with copies":    {"9", ",1@3.1,", two, 0},
		"no death":                  {"agent", ",", two, 0},
		"a host":                    {"agent", ",2@3.1,", two, 1},
		"with long messages":        {"agent", ",2@4.3,", two, 1},
		"most ranks":                {"agent", ",1@2.2,", three, 1},
		"cut off":                   {"cut", ",2@3.2,", two, 1},
		"off for a moment":          {"blink", ",2@3.2,", two, 0},
		"hosts, one after another":  {"agent", ",1@2.2,1@7.4,", three, 2},
		"in the first of its steps": {"agent", ",3@0.1,", two, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newApartOn(t, 5, func(*testHosts) {}, strings.Replace(beside, "ranks = 1\n", "ranks = 1\nhosts = [\"%1:1\"]\n", 1)+
				fmt.Sprintf("[[cluster]]\nname = \"b\"\nprogram = %q\nargs = [\"4\", \"12\", %q]\nranks = 4\ntakeover = \"transparent\"\nenvironment = { FAULT = %q }\n", program(t, "transparent"), c.victims, c.fault)+c.text)
			limit := "20000"
			if c.fault == "cut" {
				limit = "1000"
			}
			a := s.startOn(1, "a", "-x", "SPX_HEARTBEAT_LIMIT="+limit)
			a.says("rank a.0 is pid")
			b := s.startOn(3, "b")
			b.ends(0)
			if !strings.Contains(b.text(), "done 12\n") {
				t.Error("the cluster has not done all")
			}
			if n := strings.Count(a.text(), "is lost, with its processes"); n != c.lost {
				t.Errorf("%d hosts were lost, there should be %d", n, c.lost)
			}
			s.write("stop", "", "")
			a.ends(0)
			s.hosts.empty(t)
		})
	}
}

// Processes are started in the place of ranks of a cluster on several hosts: where the rank was and, when its host is lost, on another one of the cluster, whichever of the clusters leads.
func TestApartRestartHosts(t *testing.T) {
	for name, c := range map[string]struct {
		victims, with string
		on            string // where they are started
		lost          int
	}{
		"where they were": {",1@4,0@8,", "", `[13]`, 0},
		"on others":       {",1@4,", "agent", `[14]`, 1},
	} {
		for _, first := range []string{"a", "b"} {
			t.Run(name+", "+first+" leads", func(t *testing.T) {
				s := newApartOn(t, 4, func(*testHosts) {}, strings.Replace(beside, "ranks = 1\n", "ranks = 1\nhosts = [\"%2:1\"]\n", 1)+fmt.Sprintf(`
[[cluster]]
name = "b"
program = %q
args = ["2", "12", %q, %q]
ranks = 2
hosts = ["%%1:1", "%%3:1", "%%4:1"]
failure = { process = "restart", restarts = 3 }
%s`, program(t, "takeover"), c.victims, c.with, untilCome(first)))
				var a, b *running
				if first == "a" {
					a = s.startOn(1, "a")
					a.says("rank a.0 is pid")
					b = s.startOn(1, "b")
				} else {
					b = s.startOn(1, "b")
					a = s.startOn(2, "a")
				}
				b.endsOrLeads(0, first == "b", a, s.apart)
				s.write("stop", "", "")
				a.ends(0)
				<-b.ended
				if !strings.Contains(b.text(), "done 12 ") {
					t.Error("the cluster has not done all")
				}
				if n := strings.Count(a.text()+b.text(), "is lost, with its processes"); n < c.lost || n > 2*c.lost {
					t.Errorf("%d times was said that a host is lost, of which there should be %d", n, c.lost)
				}
				if !regexp.MustCompile(`standby ?\d+( of cluster b)? is pid \d+ on (b@)?` + s.hosts.prefix + c.on + `: `).MatchString(b.text()) {
					t.Error("no process was started in the place of a rank where it should have been")
				}
				s.hosts.empty(t)
			})
		}
	}
}

// Files that say otherwise how who dies is replaced do not fit, and nothing is added to a system in which ranks are taken over transparently.
func TestApartTakeoverDiffers(t *testing.T) {
	cluster := func(more string) string {
		return beside + "[[cluster]]\nname = \"b\"\nprogram = \"/bin/true\"\nranks = 1\n" + more
	}
	s := newApart(t, cluster("standbys = 1\ntakeover = \"transparent\"\n"))
	a := s.start("a", "--verbose")
	a.says("rank a.0 is pid")
	address := s.addressOf()
	for more, want := range map[string]string{
		"standbys = 1\n": "with 1 ranks and 1 standbys (",
		"takeover = \"transparent\"\nfailure = { process = \"restart\", restarts = 2, places = 2 }\n":               "places for 2 processes that are started later, taken over transparently",
		"standbys = 1\ntakeover = \"transparent\"\n[[cluster]]\nname = \"c\"\nprogram = \"/bin/true\"\nranks = 1\n": "cluster b is taken over transparently cannot get more",
	} {
		r := s.startFile(s.write("other.toml", address, cluster(more)), map[bool]string{true: "c", false: "b"}[strings.Contains(more, "\"c\"")])
		r.ends(1, want)
	}
	s.write("stop", "", "")
	a.ends(0)
}
