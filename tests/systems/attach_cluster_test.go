package systems

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/tests/harness"
)

// The running system to which clusters are attached: a sends to b until there is a file stop.
const runningPair = `
[start]
wait = "none"
[failure]
cluster = "restart"
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
`

// newNamed is newApart with a name of its own: other systems of that name may run on the machine.
func newNamed(t *testing.T, text string) *apart { return named(newApart(t, text)) }

var systems int

func named(s *apart) *apart {
	systems++
	s.name = fmt.Sprintf("apart%d-%d", os.Getpid(), systems)
	if err := os.WriteFile(s.file, []byte(strings.Replace(string(must(os.ReadFile(s.file))), "\"apart\"", strconv.Quote(s.name), 1)), 0o666); err != nil {
		s.t.Fatal(err)
	}
	return s
}

// addressOf is where a system meets.
func (s *apart) addressOf() string {
	return strings.Split(strings.SplitAfter(string(must(os.ReadFile(s.file))), "address = \"")[1], "\"")[0]
}

// writeOther makes a file without an address, as one that comes has it.
func (s *apart) writeOther(name, text string) string {
	s.t.Helper()
	file := filepath.Join(s.dir, name)
	text = strings.ReplaceAll("[system]\nname = \""+s.name+"\"\nkey = \"key\"\n"+text, "%P", s.program)
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		s.t.Fatal(err)
	}
	return file
}

func (s *apart) status() string {
	out, err := exec.Command(filepath.Join(harness.Build(s.t), "bin/spxctl"), "system", "status", s.name).CombinedOutput()
	if err != nil {
		s.t.Errorf("%v\n%s", err, out)
	}
	return string(out)
}

// again waits until a file is made once more.
func (s *apart) again(name string, times int) {
	s.t.Helper()
	for range times {
		os.Remove(filepath.Join(s.dir, name)) //nolint:errcheck // it need not be there
		s.await(name)
	}
}

// total adds up the numbers behind a text in what some have said.
func total(text string, all ...*running) (sum int) {
	for _, r := range all {
		for rest := r.text(); ; {
			_, after, ok := strings.Cut(rest, text)
			if !ok {
				break
			}
			n := 0
			fmt.Sscan(after, &n) //nolint:errcheck // 0 then
			sum += n
			rest = after
		}
	}
	return sum
}

// A cluster that the file of the running system does not name is attached while data flows, with links in both directions: it gets its part of what a sends, and b gets what it sends. Nothing is lost, and nothing comes twice.
func TestAttachUnknown(t *testing.T) {
	for _, c := range []struct{ name, file string }{
		{"links alone", "others = [\"a\", \"b\"]\n"},
		{"the others described", runningPair},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newNamed(t, runningPair)
			a := s.start("a", "-l")
			b := s.start("b", "-l")
			s.await("b")
			file := s.writeOther("more.toml", c.file+`
[[cluster]]
name = "n"
program = "%P"
args = ["share", "n", "each"]
ranks = 2
start = { wait = "part", clusters = ["a", "b"] }
[[cluster]]
name = "m"
program = "%P"
args = ["send", "300", "1", "never", "10"]
ranks = 1
start = { wait = "part", clusters = ["a"] }
[[link]]
from = "a"
to = "n"
iops = 2
[[link]]
from = "m"
to = ["b"]
`)
			n := s.startFile(file, "n", "--join", s.addressOf(), "-l")
			s.await("n")
			s.again("n", 5)
			if text := s.status(); !strings.Contains(text, "a-n: 2 IOPs") || !strings.Contains(text, "| n: 2 ranks") || !strings.Contains(text, "| m: 1 rank") || !strings.Contains(text, "awaited") {
				t.Errorf("status:\n%s", text)
			}
			m := s.startFile(file, "m", "--join", s.addressOf(), "-l")
			m.ends(0, "[m.0] rank 0 sent 300\n")
			s.write("stop", "", "")
			a.ends(0, "[a.0] rank 0 sent ", "[a.1] rank 1 sent ")
			b.ends(0, "[b.0] b: 2 ranks\n")
			n.ends(0, "[n.0] n: 2 ranks\n")
			balance(t, []*running{a, m}, []*running{b, n})
		})
	}
}

// What the files of both describe must agree: if it does not, the one that comes is refused with both places, and the others notice nothing.
func TestAttachConflicts(t *testing.T) {
	s := newNamed(t, runningPair)
	a := s.start("a", "-l")
	s.start("b", "-l")
	s.await("b")
	const n = "[[cluster]]\nname = \"n\"\nprogram = \"%P\"\nranks = 1\n"
	host := must2(os.Hostname())
	for name, c := range map[string]struct {
		text string
		says []string
	}{
		"differs": {strings.Replace(runningPair, "ranks = 2", "ranks = 3", 1) + n, []string{"cluster n: its file declares cluster a as ", "with 3 ranks and 0 standbys (", "differs.toml:9, host " + host + "); the system that runs has ", "system.toml:10, host " + host + "): make the two the same"}},
		"nobody":  {"others = [\"x\"]\n[start]\nwait = \"none\"\n" + n + "[[link]]\nfrom = \"x\"\nto = \"n\"\n", []string{"link x-n of its file joins cluster x, which neither that file describes nor the system that runs has; there are a, b, n"}},
		"fast":    {"messages = \"fast\"\n" + n, []string{`its file declares the system as messages = "fast" and security = "key" (`, `the system that runs has messages = "kept"`}},
		"large":   {strings.Replace(n, "ranks = 1", "ranks = 5000", 1), []string{"it has 5000 processes that the system does not know, and there is room for ", "spxrun --usize N"}},
	} {
		file := s.writeOther(name+".toml", c.text)
		s.startFile(file, "n", "--join", s.addressOf()).ends(1, c.says...)
	}
	other := s.writeOther("other.toml", n)
	s.startFile(other, "n").ends(2, "or --join names the address of the system that runs")
	if err := os.WriteFile(other, []byte(strings.Replace(string(must(os.ReadFile(other))), strconv.Quote(s.name), "\"other\"", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	s.startFile(other, "n", "--join", s.addressOf()).ends(1, "is not the system other (", "need the same name ([system] name; without it that of the file)")
	nobody := s.writeOther("late.toml", "[start]\nlimit = \"600ms\"\n"+n)
	s.startFile(nobody, "n", "--join", freeAddress(t)).ends(1, "no answer for the system "+s.name+" at ", "--join, or address in [system], is to name where the system that runs is led")
	if text := s.status(); strings.Contains(text, "n:") {
		t.Errorf("something of what was refused is there:\n%s", text)
	}
	s.again("b", 3)
	s.write("stop", "", "")
	a.ends(0)
}

func must2(text string, err error) string {
	if err != nil {
		panic(err)
	}
	return text
}

// The spxrun of a cluster that is being attached is killed at any moment: nothing else ends, and the cluster can be attached again.
func TestAttachKilled(t *testing.T) {
	s := newNamed(t, strings.Replace(runningPair, `cluster = "restart"`, `cluster = "degrade"`, 1))
	a := s.start("a", "-l")
	b := s.start("b", "-l")
	s.await("b")
	file := s.writeOther("more.toml", strings.Replace(more, "[[cluster]]", "[failure]\ncluster = \"degrade\"\n[[cluster]]", 1))
	for k := range 12 {
		n := s.startFile(file, "n", "--join", s.addressOf(), "-l")
		select {
		case <-time.After(time.Duration(k) * 15 * time.Millisecond):
		case <-n.ended: // that which was killed is not gone yet
			if !strings.Contains(n.text(), "runs already") {
				t.Fatalf("it has ended by itself:\n%s", n.text())
			}
		}
		n.cmd.Process.Signal(syscall.SIGKILL) //nolint:errcheck // it is there
		<-n.ended
	}
	s.again("b", 3)
	var n *running
	for range 100 {
		n = s.startFile(file, "n", "--join", s.addressOf(), "-l")
		select {
		case <-time.After(300 * time.Millisecond):
		case <-n.ended:
			continue
		}
		break
	}
	s.again("n", 3)
	s.write("stop", "", "")
	a.ends(0, "[a.0] rank 0 sent ", "[a.1] rank 1 sent ")
	b.ends(0, "[b.0] b: 2 ranks\n")
	n.ends(0, "[n.0] n: 2 ranks\n")
}

// detach has a cluster leave.
func (s *apart) detach(cluster string, options ...string) {
	s.t.Helper()
	o := harness.Run(s.t, harness.Command{Args: append([]string{filepath.Join(harness.Build(s.t), "bin/spxctl"), "system", "detach", cluster, s.name}, options...), Limit: apartLimit})
	if o.Status != 0 || !strings.Contains(o.Stdout, "cluster "+cluster+" has left") {
		s.t.Fatalf("detach %s: status %d\n%s", cluster, o.Status, o.Text())
	}
}

// more is the file of a cluster n to which a sends.
const more = "others = [\"a\"]\n[start]\nwait = \"none\"\n" + `
[[cluster]]
name = "n"
program = "%P"
args = ["share", "n", "each"]
ranks = 2
[[link]]
from = "a"
to = "n"
iops = 2
`

// balance compares what was sent with what has come.
func balance(t *testing.T, senders, receivers []*running) {
	t.Helper()
	sent, received := total("sent ", senders...), total(" received ", receivers...) // that of "received the last 7 of rank 1" is no number
	if sent == 0 || sent != received {
		t.Errorf("%d messages were sent, and %d have come", sent, received)
	}
}

// A cluster leaves while data flows to it, and comes again, twice: the only one that receives it, for which all waits meanwhile, and in its order; and one that no file knew, beside another one. All comes once.
func TestDetach(t *testing.T) {
	t.Run("the only receiver", func(t *testing.T) {
		s := newNamed(t, strings.Replace(strings.Replace(runningPair, `"share", "b", "each"`, `"order", "b", "each"`, 1), "iops = 2", "iops = 2\nchoice = \"key\"", 1))
		a := s.start("a", "-l", "--verbose")
		a.says("rank a.0 is pid") // it leads: the spxrun of the one that leaves is to end
		var runs []*running
		for k := range 3 {
			runs = append(runs, s.start("b", "-l"))
			s.again("b", 4)
			if k < 2 {
				s.detach("b")
				runs[k].ends(0, "[b.0] b: 2 ranks\n")
				if text := s.status(); !strings.Contains(text, "awaited") {
					t.Errorf("status:\n%s", text)
				}
			}
		}
		s.write("stop", "", "")
		a.ends(0, "[a.0] rank 0 sent ", "[a.1] rank 1 sent ")
		runs[2].ends(0, "[b.0] b: 2 ranks\n")
		balance(t, []*running{a}, runs)
	})
	t.Run("one that was attached", func(t *testing.T) {
		s := newNamed(t, runningPair)
		a := s.start("a", "-l")
		runs := []*running{s.start("b", "-l")}
		s.await("b")
		for k := range 3 {
			n := s.startFile(s.writeOther("n.toml", more), "n", "--join", s.addressOf(), "-l")
			runs = append(runs, n)
			s.again("n", 4)
			if k < 2 {
				s.detach("n")
				n.ends(0, "[n.0] n: 2 ranks\n")
				s.again("b", 2)
			}
		}
		s.write("stop", "", "")
		a.ends(0, "[a.0] rank 0 sent ", "[a.1] rank 1 sent ")
		for _, r := range []*running{runs[0], runs[3]} {
			r.ends(0)
		}
		balance(t, []*running{a}, runs)
	})
}

// A cluster that no file knew is attached on one host, leaves, and is attached on another one: what was sent comes once.
func TestDetachMoves(t *testing.T) {
	hosts := newHosts(t, 3)
	s := named(newApartAt(t, "10.77.0.1:7411", runningPair))
	at := 0
	s.on = func(string) []string { return []string{hosts.script, "on", hosts.name(at)} }
	a := s.start("a", "-l", "--verbose")
	a.says("rank a.0 is pid")
	runs := []*running{s.start("b", "-l")}
	file := s.writeOther("n.toml", more)
	for at = 1; at < 3; at++ {
		n := s.startFile(file, "n", "--join", "10.77.0.1:7411", "-l")
		runs = append(runs, n)
		s.again("n", 4)
		if at == 1 {
			out, err := exec.Command(hosts.script, "on", hosts.name(0), filepath.Join(harness.Build(t), "bin/spxctl"), "system", "detach", "n", s.name).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "cluster n has left") {
				t.Fatalf("%v\n%s", err, out)
			}
			n.ends(0, "[n.0] n: 2 ranks\n")
		}
	}
	s.write("stop", "", "")
	a.ends(0, "[a.0] rank 0 sent ", "[a.1] rank 1 sent ")
	runs[0].ends(0)
	runs[2].ends(0, "[n.0] n: 2 ranks\n")
	balance(t, []*running{a}, runs)
}

// The cluster that leaves is where data comes from: who receives it waits until it comes again, or learns that nothing more comes when it is given up.
func TestDetachSource(t *testing.T) {
	s := newNamed(t, strings.Replace(runningPair, `args = ["share", "b", "each"]`, `args = ["receive", "b", "each"]`, 1))
	b := s.start("b", "-l", "--verbose") // it leads
	b.says("rank b.0 is pid")
	file := s.writeOther("m.toml", "others = [\"b\"]\n[start]\nwait = \"none\"\n"+`
[[cluster]]
name = "m"
program = "%P"
args = ["send", "90000", "1", "pause"]
ranks = 1
[[link]]
from = "m"
to = "b"
`)
	var all []*running
	for k, options := range [][]string{nil, nil, nil, nil, {"--gone"}} { // it goes on sending until it ends, while its I/O process is told that it leaves
		m := s.startFile(file, "m", "--join", s.addressOf(), "-l", "-x", fmt.Sprintf("APART_FROM=%d", 10*k))
		s.again("b", 3)
		left := make(chan bool)
		go func() {
			defer close(left)
			s.detach("m", options...)
		}()
		m.says("cluster m is to leave the system")
		s.write("pause", "", "")
		<-left
		m.ends(0, "[m.0] rank 0 sent ")
		all = append(all, m)
		os.Remove(filepath.Join(s.dir, "pause")) //nolint:errcheck // it is there
	}
	s.detach("a", "--gone") // which never came
	b.ends(0, "[b.0] b: 2 ranks\n")
	balance(t, all, []*running{b})
}

// What cannot leave is told so.
func TestDetachMistakes(t *testing.T) {
	s := newNamed(t, strings.Replace(runningPair, `"send", "90000", "2", "stop"`, `"told", "90000", "2"`, 1))
	a := s.start("a", "-l")
	b := s.start("b", "-l")
	s.await("b")
	for cluster, says := range map[string]string{"x": "the system has no cluster x; spxctl system status shows which there are"} {
		o := harness.Run(t, harness.Command{Args: []string{filepath.Join(harness.Build(t), "bin/spxctl"), "system", "detach", cluster, s.name}, Limit: apartLimit})
		if o.Status == 0 || !strings.Contains(o.Text(), says) {
			t.Errorf("%s: status %d\n%s", cluster, o.Status, o.Text())
		}
	}
	s.detach("b", "--gone")
	a.ends(0, "[a.0] rank 0 was told: MPIX_ERR_PROC_FAILED", "[a.1] rank 1 was told: MPIX_ERR_PROC_FAILED")
	b.ends(0)
}
