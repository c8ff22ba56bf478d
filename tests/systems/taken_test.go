package systems

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A rank commits while an I/O process that stands still has messages of it; the I/O process dies, and then the rank, which has not seen that. Who takes the rank over, and has heard of all that before it restores the commit, sends by the other I/O process
// what was kept for the dead one, and what follows, in its order.
func TestTakenOverWithoutItsIOP(t *testing.T) {
	for iop := range 2 { // one of them is that of the rank
		t.Run(fmt.Sprint(iop), func(t *testing.T) { takenOverWithout(t, iop) })
	}
}

func takenOverWithout(t *testing.T, dead int) {
	storm := program(t, "storm")
	s := newApart(t, "")
	folder := filepath.Join(s.dir, "said")
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`
[system]
name = "taken"
messages = "kept"
[failure]
hang_limit = "60s"
iop = "degrade"
[[cluster]]
name = "a"
program = %[1]q
args = ["send", "transparent", "0", %[2]q, "1000", "32", "sender", "0:1", "50"]
ranks = 1
standbys = 1
takeover = "transparent"
failure = { process = "replace" }
[[cluster]]
name = "b"
program = %[1]q
args = ["take", "plain", "1", %[2]q, "1000", "32", "sender", "0:1"]
ranks = 1
[[link]]
from = "a"
to = "b"
iops = 2
choice = "key"
`, storm, folder)
	if err := os.WriteFile(s.file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	r := s.whole()
	goesOn := func(file string, messages int) {
		t.Helper()
		was := said(folder, file)
		until(t, fmt.Sprintf("%s goes on by %d messages", file, messages), func() bool { return said(folder, file) >= was+messages })
	}
	rank, iop := r.pid("a.0"), r.pid(fmt.Sprintf("a-b.iop%d.0", dead))
	goesOn("at.1.0.0", 50)
	for _, step := range []struct {
		pid    int
		signal syscall.Signal
		after  func()
	}{
		{iop, syscall.SIGSTOP, func() { goesOn("at.0.0.0", 100) }},
		{rank, syscall.SIGSTOP, func() { until(t, "the rank stands still", func() bool { return state(rank) == "T" }) }},
		{iop, syscall.SIGKILL, func() { r.says(fmt.Sprintf("I/O process a-b.iop%d is gone; the others go on.", dead)) }},
		{rank, syscall.SIGKILL, func() { r.says("a standby takes its place") }},
	} {
		if err := syscall.Kill(step.pid, step.signal); err != nil {
			t.Fatal(err)
		}
		step.after()
	}
	goesOn("at.1.0.0", 300)
	if err := os.WriteFile(filepath.Join(folder, "stop"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	r.ends(0)
	var sent, first, last, error, generation int
	ended, _ := os.ReadFile(filepath.Join(folder, "end.0.0.1"))
	fmt.Sscanf(string(ended), "sent %d %d %d", &generation, &sent, &error) //nolint:errcheck // seen below
	ended, _ = os.ReadFile(filepath.Join(folder, "end.1.0.0"))
	n, _ := fmt.Sscanf(string(ended), "from 0 0 0 %d-%d\nbad 0 0 0 0", &first, &last)
	if n != 2 || error != 0 || first != 0 || last != sent-1 {
		t.Errorf("of %d messages there came, and how:\n%s", sent, ended)
	}
}

// said is how many messages a process of the storm's has sent, or has got; 0: it has not come so far.
func said(folder, file string) (n int) {
	text, _ := os.ReadFile(filepath.Join(folder, file))
	var host string
	var pid, generation int
	fmt.Sscan(string(text), &host, &pid, &generation, &n) //nolint:errcheck // it is not there yet
	return n
}

// until waits for something that must come.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for limit := time.Now().Add(apartLimit); !done(); time.Sleep(3 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("not so: %s", what)
		}
	}
}

// The last I/O process of a cluster that is taken over transparently has ended, and its ranks go on: that no message leaves any more is no error, which calls that are made again would not see at the
// same place, but is counted, and said. So a rank can be taken over before and after.
func TestTakenOverWithoutAWay(t *testing.T) {
	storm := program(t, "storm")
	s := newApart(t, "")
	folder := filepath.Join(s.dir, "said")
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`
[system]
name = "taken"
messages = "kept"
[failure]
iop = "degrade"
[[cluster]]
name = "a"
program = %[1]q
args = ["send", "transparent", "0", %[2]q, "1000", "32", "sender", "0:2"]
ranks = 2
standbys = 2
takeover = "transparent"
failure = { process = "replace" }
[[cluster]]
name = "b"
program = %[1]q
args = ["take", "plain", "1", %[2]q, "1000", "32", "sender", "0:2"]
ranks = 1
[[link]]
from = "a"
to = "b"
iops = 1
`, storm, folder)
	if err := os.WriteFile(s.file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	r := s.whole()
	there := func(file string) bool { _, err := os.Stat(filepath.Join(folder, file)); return err == nil }
	for _, file := range []string{"at.0.0.0", "at.0.1.0", "at.1.0.0"} { // who ends before would have no file
		until(t, "messages are sent, and come", func() bool { return said(folder, file) > 0 })
	}
	iop, ranks := r.pid("a-b.iop0.0"), []int{r.pid("a.0"), r.pid("a.1")}
	for _, pid := range []int{iop, ranks[0], ranks[1]} {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if pid == iop {
			r.says("I/O process a-b.iop0 is gone; the others go on.")
		}
	}
	for rank := range 2 {
		until(t, "a standby goes on", func() bool { return there(fmt.Sprintf("at.0.%d.1", rank)) })
	}
	if err := os.WriteFile(filepath.Join(folder, "stop"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	r.ends(0, "messages to another cluster are lost")
	for rank := range 2 {
		var generation, sent, class int
		ended, _ := os.ReadFile(filepath.Join(folder, fmt.Sprintf("end.0.%d.1", rank)))
		if n, _ := fmt.Sscanf(string(ended), "sent %d %d %d", &generation, &sent, &class); n != 3 || class != 0 || sent == 0 {
			t.Errorf("rank %d: %s", rank, ended)
		}
		var before, after int // MPI_Finalize: the counters of MPI_T are there behind it, too
		_, counts, _ := strings.Cut(string(ended), "lost ")
		if n, _ := fmt.Sscanf(counts, "%d\nlost %d", &before, &after); n != 2 || before == 0 || after < before {
			t.Errorf("rank %d has counted as lost %d messages, and in the end %d:\n%s", rank, before, after, ended)
		}
	}
}

// A cluster was started again, and a receiver to which no communicator of its own leads from there has noted the deaths of those that had the numbers of its ranks before. When an I/O process dies that has announced long messages to it, it waits
// for them to be announced again: their sender lives.
func TestAnnouncedByWhoWasStartedAgain(t *testing.T) {
	storm := program(t, "storm")
	s := newApart(t, "")
	folder := filepath.Join(s.dir, "said")
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`
[system]
name = "again"
messages = "kept"
[failure]
restarts = 40
[[cluster]]
name = "a"
program = %[1]q
args = ["send", "plain", "0", %[2]q, "5000", "300000", "sender", "0:1"]
ranks = 1
failure = { process = "stop", cluster = "restart", iop = "restart" }
[[cluster]]
name = "b"
program = %[1]q
args = ["take", "plain", "1", %[2]q, "5000", "300000", "sender", "0:1"]
ranks = 1
[[link]]
from = "a"
to = "b"
iops = 1
`, storm, folder)
	if err := os.WriteFile(s.file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	r := s.whole()
	until(t, "messages come", func() bool { return said(folder, "at.1.0.0") > 5 })
	signal := func(pid int, number syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(pid, number); err != nil {
			t.Fatal(err)
		}
	}
	nth := func(n int, names string) (pid int) { // the n-th process that has a name
		t.Helper()
		pattern := regexp.MustCompile("rank (?:" + names + `) is pid (\d+)`)
		until(t, fmt.Sprintf("it is said which process is the %d. %s", n, names), func() bool {
			all := pattern.FindAllStringSubmatch(r.text(), -1)
			if len(all) >= n {
				pid, _ = strconv.Atoi(all[n-1][1])
			}
			return pid > 0
		})
		return pid
	}
	const again = 8 // then numbers of processes are given once more
	sender := fmt.Sprintf("at.0.0.%d", again)
	for n := 1; n <= again; n++ {
		signal(nth(n, `a\.0|0 of cluster a`), syscall.SIGKILL)
		until(t, "the cluster sends again", func() bool { return said(folder, fmt.Sprintf("at.0.0.%d", n)) > 5 })
	}
	takes := r.pid("b.0")
	for n := 1; n <= 3; n++ {
		was := said(folder, "at.1.0.0")
		until(t, "messages come again", func() bool { return said(folder, "at.1.0.0") > was })
		signal(takes, syscall.SIGSTOP) // what is announced now it does not fetch
		sent, since := 0, time.Now()
		until(t, "the sender waits", func() bool {
			if now := said(folder, sender); now != sent {
				sent, since = now, time.Now()
			}
			return time.Since(since) > 100*time.Millisecond
		})
		signal(nth(n, `a-b\.iop0\.0|0 of I/O process a-b\.iop0`), syscall.SIGKILL)
		r.says(fmt.Sprintf("is started again (%d of at most 40 times)", n))
		signal(takes, syscall.SIGCONT)
	}
	was := said(folder, "at.1.0.0")
	until(t, "messages come again", func() bool { return said(folder, "at.1.0.0") > was })
	if err := os.WriteFile(filepath.Join(folder, "stop"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	r.ends(0)
	var generation, sent, class, last int
	ended, _ := os.ReadFile(filepath.Join(folder, fmt.Sprint("end.0.0.", again)))
	fmt.Sscanf(string(ended), "sent %d %d %d", &generation, &sent, &class) //nolint:errcheck // seen below
	ended, _ = os.ReadFile(filepath.Join(folder, "end.1.0.0"))
	_, spans, _ := strings.Cut(string(ended), fmt.Sprintf("from 0 0 %d 0-", again))
	if n, _ := fmt.Sscanf(spans, "%d\n", &last); n != 1 || last != sent-1 {
		t.Errorf("of %d messages there came, and how:\n%s", sent, ended)
	}
}
