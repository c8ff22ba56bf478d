package systems

import (
	"fmt"
	"os"
	"path/filepath"
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
