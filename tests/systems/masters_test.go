package systems

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/launch/service"
	"libspx/tests/harness"
)

// The system's master dies, and then the next one: each time the agents of the hosts that are left have another one within about a second, it decides by the system's policy
// that the others go on without the dead cluster, and they do. The agent of spxrun's host is master when nobody else is left.
func TestMastersDie(t *testing.T) {
	hosts := newHosts(t, 4)
	script, host := hosts.script, func(i int) string { return hosts.name(i - 1) }
	s := newApart(t, "[failure]\ncluster = \"degrade\"\niop = \"degrade\"\n"+strings.NewReplacer("%1", host(1), "%2", host(2), "%3", host(3), "%4", host(4)).Replace(`
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 1
hosts = ["%1"]
[[cluster]]
name = "b"
program = "%P"
args = ["share", "b"]
ranks = 1
hosts = ["%2"]
[[cluster]]
name = "c"
program = "%P"
args = ["share", "c"]
ranks = 2
hosts = ["%3:1", "%4:1"]
[[cluster]]
name = "d"
program = "%P"
args = ["share", "d"]
ranks = 1
hosts = ["%1"]
[[link]]
from = "a"
to = ["b", "c", "d"]
hosts = ["%1"]
args = ["--route", "spread", "--to", "all"]
`))
	build := harness.Build(t)
	cmd := exec.Command(script, "on", host(1), filepath.Join(build, "bin/spxrun"), "--timeout", harness.Seconds(50*time.Second), "--rsh", script+" rsh", "-l", "--system", s.file)
	cmd.Env = append(os.Environ(), "SPX_SPIN=0")
	r := s.launch("all", cmd)
	s.await("b")
	s.await("c")

	status := func(limit time.Duration, what string, is func(*service.System) bool) time.Duration {
		t.Helper()
		var text []byte
		for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			text, _ = exec.Command(script, "on", host(1), filepath.Join(build, "bin/spxctl"), "system", "status", "apart", "--json").Output()
			var about service.About
			if json.Unmarshal(text, &about) == nil && about.System != nil && is(about.System) {
				return time.Since(began)
			}
			if limit := harness.Patience(limit); time.Since(began) > limit {
				t.Fatalf("%s: not within %v: %s", what, limit, text)
			}
		}
	}
	// The agent of spxrun's host is the system's master only when there is no other.
	var master string
	var term uint64
	mastered := func(s *service.System) bool {
		master, term = s.Master, s.Term
		return master != "" && master != host(1)
	}
	status(10*time.Second, "the beginning", func(s *service.System) bool {
		return mastered(s) && s.Parts[0].Master != "" && s.Parts[1].Master != "" && s.Parts[2].Master != ""
	})
	out, err := exec.Command(script, "on", host(1), filepath.Join(build, "bin/spxctl"), "system", "status").CombinedOutput()
	for _, want := range []string{"\nmaster: " + hosts.prefix, "\nmaster of b: " + host(2) + " (process ", "\nmaster of c: " + hosts.prefix} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("no %q (%v) in\n%s", want, err, out)
		}
	}
	// The system's master dies, twice, and with its host a cluster that cannot go on without it.
	gone := map[int]bool{}
	clusterOf := map[string]int{host(2): 1, host(3): 2, host(4): 2}
	for range 2 {
		status(10*time.Second, "a master", mastered)
		cluster, ok := clusterOf[master]
		if !ok {
			t.Fatalf("the system's master is %q", master)
		}
		had := !gone[cluster] // else nothing runs any more on the master's host, and its loss is not said
		gone[cluster] = true
		hosts.killAgent(t, master)
		took := status(10*time.Second, "the death of "+master, func(s *service.System) bool {
			return s.Master != "" && s.Master != master && s.Term > term && s.Parts[cluster].State == "gone" && s.Parts[cluster].Alive == 0
		})
		if had {
			r.says("host " + master + " is lost, with its processes")
		}
		t.Logf("%s was the master; another one, which has decided: after %d ms", master, took.Milliseconds())
	}
	s.write("stop", "", "")
	end := []string{"[a.0] rank 0 sent ", "[d.0] d: 1 ranks"}
	for cluster := range gone {
		end = append(end, "cluster "+string(rune('a'+cluster))+" is gone; the others go on.")
	}
	r.ends(0, end...)
	if strings.Contains(r.text(), "no master of the system") {
		t.Error("the masters have not decided")
	}
	hosts.empty(t)
}

// killAgent kills the agent of a host.
func (h *testHosts) killAgent(t *testing.T, host string) {
	t.Helper()
	for i := range h.n {
		for _, pid := range h.Pids(i + 1) {
			if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); h.name(i) == host && strings.TrimSpace(string(comm)) == service.AgentName {
				syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it was there
				return
			}
		}
	}
	t.Fatalf("host %s has no agent", host)
}
