package systems

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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

var (
	_ = syscall.Kill
	_ = time.Now
)
