package systems

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/launch/service"
	"libspx/tests/harness"
)

// onHosts is a system on hosts that one spxrun starts, on the first. In its text %1 stands for the first host, and so on.
type onHosts struct {
	*apart
	*running
	hosts *testHosts
	names *strings.Replacer
}

func startOnHosts(t *testing.T, n int, text string) *onHosts {
	t.Helper()
	return startOn(t, n, func(*testHosts) {}, text)
}

// startOn starts it when the hosts have been prepared. The environment may have more.
func startOn(t *testing.T, n int, prepare func(*testHosts), text string, env ...string) *onHosts {
	t.Helper()
	return startOnWith(t, n, nil, prepare, text, env...)
}

// startOnWith is startOn with more options.
func startOnWith(t *testing.T, n int, options []string, prepare func(*testHosts), text string, env ...string) *onHosts {
	t.Helper()
	hosts := newHosts(t, n)
	prepare(hosts)
	var pairs []string
	for i := range n {
		pairs = append(pairs, "%"+string(rune('1'+i)), hosts.name(i))
	}
	names := strings.NewReplacer(pairs...)
	s := newApart(t, names.Replace(text))
	args := append([]string{"on", hosts.name(0), filepath.Join(harness.Build(t), "bin/spxrun"), "--timeout", harness.Seconds(50 * time.Second), "--rsh", hosts.script + " rsh", "-l", "--system", s.file}, options...)
	cmd := exec.Command(hosts.script, args...)
	cmd.Dir = s.dir
	cmd.Env = append(append(os.Environ(), "SPX_SPIN=0", "SPX_HEARTBEAT_LIMIT=20000"), env...) // preset: who is to be found out is found out by an agent's end
	return &onHosts{s, s.launch("all", cmd), hosts, names}
}

// loses kills the agent of a host, and with it all that runs there.
func (o *onHosts) loses(host string, says ...string) {
	o.apart.t.Helper()
	o.hosts.killAgent(o.apart.t, o.names.Replace(host))
	for _, text := range says {
		o.says(o.names.Replace(text))
	}
}

// copied waits until the hosts that are left have the same copy of what decides about the system, and that is what the first one decides by (docs/decisions/leaders.md).
func (o *onHosts) copied(hosts int) {
	t := o.apart.t
	t.Helper()
	var list []service.Host
	same := func() (n int) {
		out, err := exec.Command(o.hosts.script, "on", o.hosts.name(0), filepath.Join(harness.Build(t), "bin/spxctl"), "hosts", ".", "--json").Output()
		if list = nil; err != nil || json.Unmarshal(out, &list) != nil || list[0].Copy == nil {
			return 0
		}
		for _, h := range list {
			if h.Copy != nil && h.Copy.Events > 0 && h.Copy.Digest == list[0].Copy.Original {
				n++
			}
		}
		return n
	}
	for limit := time.Now().Add(harness.Patience(time.Minute)); same() != hosts; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("not %d hosts with the same copy: %+v", hosts, list)
		}
	}
}

// flows waits until messages come to a cluster that makes this file.
func (o *onHosts) flows(file string) {
	o.apart.t.Helper()
	for range 3 {
		os.Remove(filepath.Join(o.dir, file)) //nolint:errcheck // it need not be there
		o.await(file)
	}
}

// finishes has the senders end, and all others with them.
func (o *onHosts) finishes(texts ...string) {
	o.apart.t.Helper()
	o.write("stop", "", "")
	o.ends(0, append(texts, "[a.0] rank 0 sent ")...)
	o.hosts.empty(o.apart.t)
}

// Hosts are lost on which I/O processes run. Each is started again on a host that has room; without room the others of the link go on; and the last of a link is started where there is none, too.
func TestHostOfIOPLost(t *testing.T) {
	const text = `
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 2
hosts = ["%1:2"]
[[cluster]]
name = "b"
program = "%P"
args = ["share", "b", "each"]
ranks = 2
hosts = ["%2:2"]
[[link]]
from = "a"
to = "b"
iops = 2
`
	t.Run("there is room", func(t *testing.T) {
		o := startOnHosts(t, 4, text+`hosts = ["%3:1", "%4:2"]`+"\n")
		o.flows("b")
		o.loses("%3", "host %3 is lost, with its processes", "I/O process a-b.iop0 is started again (1 of at most 3 times) on host %4, since host %3 is lost.")
		o.flows("b")
		o.copied(3)
		o.loses("%4", "since host %4 is lost.") // one of the two, and then it carries the link
		o.flows("b")
		o.copied(2)
		o.finishes("[b.0] b: 2 ranks\n")
	})
	t.Run("no room", func(t *testing.T) {
		o := startOnHosts(t, 4, text+`hosts = ["%3", "%4"]`+"\n")
		o.flows("b")
		o.loses("%3", "I/O process a-b.iop0 cannot be started again: host %3 is lost, and the other hosts of the system have too few free slots.", "I/O process a-b.iop0 is gone; the others go on.")
		o.flows("b")
		o.loses("%4", "I/O process a-b.iop1 is started again (1 of at most 3 times) on host ")
		o.flows("b")
		o.finishes("[b.0] b: 2 ranks\n")
	})
}

// A host of a cluster is lost that is to be started again: it is, on the hosts that are left, where they have room. Where not, the others go on without it.
func TestHostOfClusterLost(t *testing.T) {
	const text = "[failure]\ncluster = \"restart\"\n" + `
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 1
hosts = ["%1:2"]
[[cluster]]
name = "b"
program = "%P"
args = ["share", "b", "each"]
ranks = 2
hosts = [%HOSTS]
[[cluster]]
name = "c"
program = "%P"
args = ["share", "c", "each"]
ranks = 1
hosts = ["%1:2"]
[[link]]
from = "a"
to = ["b", "c"]
hosts = ["%1:2"]
args = ["--to", "all"]
`
	t.Run("there is room", func(t *testing.T) {
		o := startOnHosts(t, 4, strings.Replace(text, "%HOSTS", `"%2", "%3", "%4:2"`, 1))
		o.flows("b")
		o.copied(4)
		o.loses("%3", "host %3 is lost, with its processes", "cluster b is started again (1 of at most 3 times) on host %4, since host %3 is lost.")
		o.flows("b")
		o.copied(3)
		o.loses("%2", "cluster b is started again (2 of at most 3 times) on host %4, since host %2 is lost.")
		o.flows("b")
		o.flows("c")
		o.finishes("[b.0] b: 2 ranks\n", "[c.0] c: 1 ranks\n")
	})
	t.Run("no room", func(t *testing.T) {
		o := startOnHosts(t, 3, strings.Replace(text, "%HOSTS", `"%2", "%3"`, 1))
		o.flows("b")
		o.loses("%3", "cluster b cannot be started again: host %3 is lost, and the other hosts of the system have too few free slots.", "cluster b is gone; the others go on.")
		o.flows("c")
		o.finishes("[c.0] c: 1 ranks\n")
	})
}

// The receivers stand still until all before them wait for room, the relay of the link for what it has sent to be accepted; then they go on, and so do all: the relay hears of what was accepted although more has come than it takes in.
// Or the relay dies first, and who comes in its place gets all that at once.
func TestReceiversStandStill(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(map[bool]string{false: "for a while", true: "and the relay dies"}[dies], func(t *testing.T) {
			o := asItIs(t, 3, `
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "1", "stop"]
ranks = 2
hosts = ["%1:2"]
[[cluster]]
name = "b"
program = "%P"
args = ["order", "b", "each"]
ranks = 2
hosts = ["%3:2"]
[[link]]
from = "a"
to = "b"
hosts = ["%2:1"]
args = ["--to", "all"]
`)
			o.flows("b")
			o.signals(3, "apart", syscall.SIGSTOP, 2)
			o.sendersWait()
			if dies {
				o.kills(2, "spx-iop")
				o.reads(`I/O process a-b.iop0 is started again`)
				o.sendersWait()
			}
			o.signals(3, "apart", syscall.SIGCONT, 2)
			o.flows("b")
			o.finishes()
		})
	}
}

// sendersWait waits until both ranks of cluster a have been in MPI_Send for a while.
func (o *onHosts) sendersWait() {
	t := o.apart.t
	t.Helper()
	waits := regexp.MustCompile(`a\.[01] .* ([\d.]+) s +MPI_Send\(`)
	for limit := time.Now().Add(harness.Patience(30 * time.Second)); ; time.Sleep(20 * time.Millisecond) {
		text, n := o.ctl("%1", "ps", "."), 0
		for _, m := range waits.FindAllStringSubmatch(text, -1) {
			if since, err := strconv.ParseFloat(m[1], 64); err == nil && since >= 0.5 {
				n++
			}
		}
		if n == 2 {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("the senders do not wait:\n%s", text)
		}
	}
}
