package systems

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/launch/service"
	"libspx/tests/harness"
)

// ruled is a system whose masters are looked at and killed: clusters that do nothing, each of which is started again when one of its processes dies.
type ruled struct {
	*running
	mark    string
	status  []string // the command
	started map[string]int
}

func rule(t *testing.T, on *testHosts) *ruled {
	t.Helper()
	const clusters = "abc"
	text := "[failure]\ncluster = \"restart\"\nrestarts = 1000\n"
	for i, c := range clusters {
		text += fmt.Sprintf("[[cluster]]\nname = \"%c\"\nprogram = \"/bin/sleep\"\nargs = [\"1000\"]\nranks = 2\n", c)
		switch {
		case on == nil:
		case c == 'c': // on two hosts
			text += fmt.Sprintf("hosts = [\"%s:1\", \"%s:1\"]\n", on.name(i), on.name(i+1))
		default:
			text += fmt.Sprintf("hosts = [\"%s:2\"]\n", on.name(i))
		}
	}
	return ruleOver(t, on, text)
}

func ruleOver(t *testing.T, on *testHosts, text string) *ruled {
	t.Helper()
	s, name := newApart(t, text), fmt.Sprintf("ruled%d", os.Getpid()) // others may run on this machine
	written, err := os.ReadFile(s.file)
	if err == nil {
		err = os.WriteFile(s.file, []byte(strings.Replace(string(written), `"apart"`, strconv.Quote(name), 1)), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	build := harness.Build(t)
	r := &ruled{mark: harness.Mark(t), started: map[string]int{}, status: []string{filepath.Join(build, "bin/spxctl"), "system", "status", name}}
	words := []string{filepath.Join(build, "bin/spxrun"), "--timeout", harness.Seconds(100 * time.Second), "--system", s.file}
	if on != nil {
		here := []string{on.script, "on", on.name(0)}
		words = append(slices.Concat(here, words), "--rsh", on.script+" rsh")
		r.status = slices.Concat(here, r.status)
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), r.mark)
	r.running = s.launch("all", cmd)
	return r
}

// await waits until the status is so.
func (r *ruled) await(t *testing.T, what string, is func(*service.System) bool) (s *service.System, took time.Duration) {
	t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		text, _ := exec.Command(r.status[0], append(r.status[1:], "--json")...).Output()
		var about service.About
		if json.Unmarshal(text, &about) == nil && about.System != nil && is(about.System) {
			return about.System, time.Since(began)
		}
		if limit := harness.Patience(time.Minute); time.Since(began) > limit {
			t.Fatalf("%s: not within %v: %s", what, limit, text)
		}
	}
}

// runs: all clusters have a master, all of their processes, and were started again as often as they had to be.
func (r *ruled) runs(s *service.System) bool {
	for i, c := range s.Parts {
		if c.State != "running" || c.Alive != 2 || c.MasterPid == 0 || c.Restarts != r.started[string(rune('a'+i))] {
			return false
		}
	}
	return s.MasterPid != 0
}

// loses kills a process of a cluster.
func (r *ruled) loses(t *testing.T, cluster string) {
	t.Helper()
	for _, pid := range harness.Marked(r.mark, "sleep\x001000") {
		if env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); err == nil && slices.Contains(strings.Split(string(env), "\x00"), "SPX_CLUSTER="+cluster) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			r.started[cluster]++
			return
		}
	}
	t.Fatalf("cluster %s has no process", cluster)
}

// The process that is the system's master dies, or stands still, and so does the one that is a cluster's: within about a second there is another master. A cluster of which a process dies in the
// same moment is decided about, once. Nothing else dies with a master, and none is left at the end.
func TestMasterProcessDies(t *testing.T) {
	for _, hosts := range []int{1, 4} {
		t.Run(fmt.Sprintf("%d hosts", hosts), func(t *testing.T) {
			var on *testHosts
			if hosts > 1 {
				on = newHosts(t, hosts)
			}
			r := rule(t, on)
			r.await(t, "the beginning", r.runs)
			for round := range 3 {
				for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
					for _, of := range []string{"the system", "cluster c"} {
						what := fmt.Sprintf("%v to the master of %s", signal, of)
						before, _ := r.await(t, what+": before it", r.runs)
						victim, pid := before.Master, before.MasterPid
						if of == "cluster c" {
							victim, pid = before.Parts[2].Master, before.Parts[2].MasterPid
						}
						one := func(host string, p int) bool { return host == victim && p == pid } // hosts have the same numbers
						here := on.here(victim, pid)
						if round == 0 {
							descriptors(t, here)
						}
						if err := syscall.Kill(here, signal); err != nil {
							t.Fatalf("%s: %v", what, err)
						}
						if round > 0 {
							r.loses(t, string("abc"[round]))
						}
						killed := time.Now()
						_, took := r.await(t, what, func(s *service.System) bool {
							was := !one(before.Master, before.MasterPid) || s.Term > before.Term && !one(s.Master, s.MasterPid)
							// Of two hosts the other one has the cluster then, unless it is too slow.
							moved := on == nil || victim != before.Parts[2].Master || s.Parts[2].Master != victim || time.Since(killed) > 5*time.Second
							return r.runs(s) && was && moved && !one(s.Parts[2].Master, s.Parts[2].MasterPid)
						})
						t.Logf("%v to process %d, the master of %s on %s: after %d ms another one is, and all run", signal, pid, of, victim, took.Milliseconds())
					}
				}
			}
			text, err := exec.Command(r.status[0], r.status[1:]...).Output()
			if err != nil || !strings.Contains(string(text), "\nmaster: ") || !strings.Contains(string(text), " (process ") {
				t.Errorf("%v\n%s", err, text)
			}
			_ = r.cmd.Process.Signal(syscall.SIGTERM)
			<-r.ended
			for _, c := range "abc" {
				if n := strings.Count(r.text(), fmt.Sprintf("cluster %c is started again", c)); n != r.started[string(c)] {
					t.Errorf("cluster %c was started again %d times, and lost processes %d times", c, n, r.started[string(c)])
				}
			}
			if strings.Contains(r.text(), "no master of the system") {
				t.Error("the masters have not decided")
			}
			if left := harness.Marked(r.mark, ""); len(left) > 0 {
				t.Errorf("processes %v are left", left)
			}
			on.empty(t)
		})
	}
}

// descriptors looks at what a master has open: nothing that is its agent's or the ranks', but the way to the agent.
func descriptors(t *testing.T, pid int) {
	t.Helper()
	list, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(list) == 0 {
		t.Fatalf("the master, process %d, is not there (%v)", pid, err)
	}
	if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.TrimSpace(string(comm)) != service.MasterName {
		t.Errorf("the master, process %d, is called %s", pid, comm)
	}
	sockets := 0
	for _, fd := range list {
		to, _ := os.Readlink(fd)
		if strings.HasPrefix(to, "socket:") {
			sockets++
		}
		if strings.Contains(to, "memfd") || sockets > 1 {
			t.Errorf("the master has inherited %s, %s", fd, to)
		}
	}
}

// A master that always dies is started again, but not without end at once.
func TestMasterAlwaysDies(t *testing.T) {
	r := rule(t, nil)
	r.await(t, "the beginning", r.runs)
	began, last := time.Now(), 0
	for n := 0; n < 8; {
		if pids := harness.Marked(r.mark, service.MasterName); len(pids) == 1 && pids[0] != last {
			last = pids[0]
			_ = syscall.Kill(last, syscall.SIGKILL)
			n++
		}
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("8 masters have been started and killed within %v", took)
	}
	r.loses(t, "a")
	r.await(t, "the end", r.runs)
	if n := strings.Count(r.text(), "the master of host "); n < 2 {
		t.Errorf("8 deaths of masters, of which %d were told\n%s", n, r.text())
	}
}

// With masters = "iop" a cluster's master is beside an I/O process that leads to it, and when that host is lost beside another one.
func TestMastersBesideIOPs(t *testing.T) {
	on := newHosts(t, 4)
	r := ruleOver(t, on, strings.NewReplacer("%1", on.name(0), "%2", on.name(1), "%3", on.name(2), "%4", on.name(3)).Replace(`masters = "iop"
[failure]
iop = "degrade"
[[cluster]]
name = "a"
program = "/bin/sleep"
args = ["1000"]
ranks = 2
hosts = ["%1:2"]
[[cluster]]
name = "b"
program = "/bin/sleep"
args = ["1000"]
ranks = 2
hosts = ["%2:2"]
[[link]]
from = "a"
to = "b"
iops = 2
hosts = ["%3:1", "%4:1"]
`))
	ruled := func(s *service.System) bool {
		return s.MasterPid != 0 && s.Parts[0].MasterPid != 0 && s.Parts[1].MasterPid != 0
	}
	s, _ := r.await(t, "the beginning", ruled)
	first := s.Parts[1].Master
	if s.Parts[0].Master != on.name(0) || first != on.name(2) && first != on.name(3) {
		t.Fatalf("the master of a is on %s, that of b on %s", s.Parts[0].Master, first)
	}
	on.killAgent(t, first)
	_, took := r.await(t, "the death of "+first, func(s *service.System) bool {
		b := s.Parts[1].Master
		return ruled(s) && b != first && (b == on.name(2) || b == on.name(3)) && s.Parts[1].State == "running"
	})
	t.Logf("another one after %v", took)
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	<-r.ended
	if left := harness.Marked(r.mark, ""); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	on.empty(t)
}
