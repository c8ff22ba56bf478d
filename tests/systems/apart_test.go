package systems

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"libspx/launch/service"
	"libspx/tests/harness"
)

// apart is a system whose clusters are started one by one.
type apart struct {
	t       *testing.T
	name    string
	dir     string
	program string
	file    string
	on      func(cluster string) []string // what stands before spxrun
}

const apartLimit = 40 * time.Second

// newApart makes the files of a system at an address of its own. %P in its text stands for the program, %A for the address.
func newApart(t *testing.T, text string) *apart {
	t.Helper()
	return newApartAt(t, freeAddress(t), text)
}

// freeAddress is a port where nobody listens now.
func freeAddress(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t))
}

func newApartAt(t *testing.T, address, text string) *apart {
	t.Helper()
	s := &apart{t: t, dir: t.TempDir(), program: program(t, "apart"), on: func(string) []string { return nil }}
	s.key("key")
	s.file = s.write("system.toml", address, text)
	return s
}

func (s *apart) key(name string) {
	s.t.Helper()
	if out, err := exec.Command(filepath.Join(harness.Build(s.t), "bin/spxctl"), "system", "key", filepath.Join(s.dir, name)).CombinedOutput(); err != nil {
		s.t.Fatalf("%v: %s", err, out)
	}
}

// write makes another file of the system.
func (s *apart) write(name, address, text string) string {
	s.t.Helper()
	file := filepath.Join(s.dir, name)
	text = strings.NewReplacer("%P", s.program, "%A", address).Replace("[system]\nname = \"" + cmp.Or(s.name, "apart") + "\"\naddress = \"%A\"\nkey = \"key\"\n" + text)
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// running is the spxrun of a cluster.
type running struct {
	t       *testing.T
	name    string
	cmd     *exec.Cmd
	ended   chan struct{}
	mu      sync.Mutex
	said    bytes.Buffer // guarded by mu
	changed sync.Cond
}

// Write takes what it says.
func (r *running) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed.Broadcast()
	return r.said.Write(b)
}

func (r *running) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.said.String()
}

// start starts a cluster.
func (s *apart) start(cluster string, options ...string) *running {
	s.t.Helper()
	return s.startFile(s.file, cluster, options...)
}

func (s *apart) startFile(file, cluster string, options ...string) *running {
	s.t.Helper()
	args := append(append(s.on(cluster), filepath.Join(harness.Build(s.t), "bin/spxrun"), "--system", file, "--cluster", cluster), options...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "SPX_SPIN=0")
	return s.launch(cluster, cmd)
}

// launch begins an spxrun, which is ended with the test.
func (s *apart) launch(name string, cmd *exec.Cmd) *running {
	s.t.Helper()
	r := &running{t: s.t, name: name, cmd: cmd, ended: make(chan struct{})}
	r.changed.L = &r.mu
	r.cmd.Stdout, r.cmd.Stderr, r.cmd.WaitDelay = r, r, time.Second
	if err := r.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		r.cmd.Wait() //nolint:errcheck // the status says it
		r.mu.Lock()
		close(r.ended)
		r.changed.Broadcast()
		r.mu.Unlock()
	}()
	s.t.Cleanup(func() {
		r.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
		select {
		case <-r.ended:
		case <-harness.After(10 * time.Second):
			r.cmd.Process.Kill() //nolint:errcheck // likewise
		}
		if s.t.Failed() {
			s.t.Logf("spxrun --cluster %s said:\n%s", r.name, r.text())
		}
	})
	return r
}

// agent is the process that is its agent, whichever of its threads has started it.
func (r *running) agent() int {
	r.t.Helper()
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", r.cmd.Process.Pid))
	for _, thread := range threads {
		text, _ := os.ReadFile(thread)
		for _, word := range strings.Fields(string(text)) {
			pid, _ := strconv.Atoi(word)
			if comm, _ := os.ReadFile("/proc/" + word + "/comm"); strings.TrimSpace(string(comm)) == service.AgentName {
				return pid
			}
		}
	}
	r.t.Fatalf("the spxrun of cluster %s has no agent", r.name)
	return 0
}

// says waits until it has said something.
func (r *running) says(text string) {
	r.t.Helper()
	r.saysTimes(text, 1)
}

// saysTimes waits until it has said something so often.
func (r *running) saysTimes(text string, times int) {
	r.t.Helper()
	late := false
	defer harness.AfterFunc(apartLimit, func() {
		r.mu.Lock()
		late = true
		r.changed.Broadcast()
		r.mu.Unlock()
	}).Stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	for strings.Count(r.said.String(), text) < times {
		select {
		case <-r.ended:
			r.t.Fatalf("cluster %s has ended, and has not said %q", r.name, text)
		default:
		}
		if late {
			r.t.Fatalf("cluster %s has not said %q within %v", r.name, text, apartLimit)
		}
		r.changed.Wait()
	}
}

// ends waits for its end.
func (r *running) ends(status int, texts ...string) {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-harness.After(apartLimit):
		r.t.Fatalf("cluster %s has not ended within %v", r.name, apartLimit)
	}
	if got := r.cmd.ProcessState.ExitCode(); got != status {
		r.t.Errorf("cluster %s ended with status %d, not %d", r.name, got, status)
	}
	for _, text := range texts {
		if !strings.Contains(r.text(), text) {
			r.t.Errorf("cluster %s has not said %q", r.name, text)
		}
	}
}

// await waits until a file is there.
func (s *apart) await(name string) {
	s.t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(s.dir, name)); err == nil {
			return
		}
		if time.Since(began) > harness.Patience(apartLimit) {
			s.t.Fatalf("%s is not there within %v", name, apartLimit)
		}
	}
}

const pair = `
[[cluster]]
name = "a"
program = "%P"
args = ["send", "200", "1"]
ranks = 2
[[cluster]]
name = "b"
program = "%P"
args = ["receive"]
ranks = 2
[[link]]
from = "a"
to = "b"
iops = 2
`

// Two spxruns build a system, in any order.
func TestApart(t *testing.T) {
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		t.Run(strings.Join(order, ","), func(t *testing.T) {
			s := newApart(t, pair)
			first := s.start(order[0], "-l")
			first.says("waiting for cluster " + order[1])
			second := s.start(order[1], "-l")
			for cluster, r := range map[string]*running{order[0]: first, order[1]: second} {
				if cluster == "a" {
					r.ends(0, "[a.0] rank 0 sent 200\n", "[a.1] rank 1 sent 200\n", "[a.0] a: 2 ranks\n")
				} else {
					r.ends(0, "[b.0] rank 0 received 200\n", "[b.1] rank 1 received 200\n", "[b.0] b: 2 ranks\n")
				}
			}
		})
	}
	t.Run("at once", func(t *testing.T) {
		s := newApart(t, pair)
		a, b := s.start("a"), s.start("b")
		a.ends(0, "rank 0 sent 200\n", "rank 1 sent 200\n")
		b.ends(0, "rank 0 received 200\n", "rank 1 received 200\n")
	})
}

// A cluster joins a system that runs: the others have not waited for it. What was sent before is kept.
func TestJoinsWhileRunning(t *testing.T) {
	s := newApart(t, "[start]\nwait = \"none\"\n"+`
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 2
[[cluster]]
name = "b"
program = "%P"
args = ["share", "b"]
ranks = 2
[[cluster]]
name = "c"
program = "%P"
args = ["share", "c"]
ranks = 1
[[link]]
from = "a"
to = "b"
[[link]]
from = "a"
to = "c"
choice = "round-robin"
`)
	a := s.start("a", "-l")
	b := s.start("b", "-l")
	s.await("b")
	c := s.start("c", "-l")
	s.await("c")
	s.write("stop", "", "")
	a.ends(0, "[a.0] rank 0 sent ", "[a.1] rank 1 sent ")
	b.ends(0, "[b.0] b: 2 ranks\n")
	c.ends(0, "[c.0] c: 1 ranks\n")
}

// A program that only sends, and whose sends never wait, learns of a cluster that comes, whenever it does: also in the middle of a send, which looks at what has happened and goes on. Then that cluster gets its part
// of the messages.
func TestComesInTheMiddleOfASend(t *testing.T) {
	s := newApart(t, "[start]\nwait = \"none\"\n[failure]\ncluster = \"degrade\"\n"+fmt.Sprintf(`
[[cluster]]
name = "a"
program = %q
args = ["90000", "stop"]
ranks = 1
[[cluster]]
name = "b"
program = "%%P"
args = ["share", "b", "each"]
ranks = 1
[[cluster]]
name = "c"
program = "%%P"
args = ["share", "c", "each"]
ranks = 1
[[link]]
from = "a"
to = "b"
[[link]]
from = "a"
to = "c"
`, program(t, "midway")))
	a := s.start("a", "-l", "--verbose")
	a.says("rank a.0 is pid")
	c := s.start("c", "-l")
	s.await("c")
	b := s.start("b", "-l")
	s.await("b")
	for lost := range 3 { // and attached again
		b.cmd.Process.Kill() //nolint:errcheck // it is there
		c.saysTimes("cluster b is gone; the others go on.", lost+1)
		os.Remove(filepath.Join(s.dir, "b")) //nolint:errcheck // it is there
		b = s.start("b", "-l")
		s.await("b")
	}
	s.write("stop", "", "")
	a.ends(0)
	b.ends(0, "[b.0] b: 1 ranks\n")
	c.ends(0, "[c.0] c: 1 ranks\n")
	var sent, looks int
	if _, rest, ok := strings.Cut(a.text(), "[a.0] rank 0 sent "); !ok {
		t.Error("a has not said how much it has sent")
	} else if _, err := fmt.Sscanf(rest, "%d, and looked at the clock %d times", &sent, &looks); err != nil || looks == 0 {
		t.Errorf("%d messages, and no send that was in the middle for long (%v): this test shows nothing", sent, err)
	}
}

// What can be wrong with a cluster that wants to be taken.
func TestApartMistakes(t *testing.T) {
	const keep = "\n[start]\nlimit = \"30s\"\n"
	s := newNamed(t, keep+pair)
	address := strings.Split(strings.SplitAfter(string(must(os.ReadFile(s.file))), "address = \"")[1], "\"")[0]
	b := s.start("b")
	b.says("waiting for cluster a")
	other := s.write("other.toml", address, keep+strings.Replace(pair, `"send", "200", "1"`, `"send", "201", "1"`, 1))
	more := s.write("more.toml", address, "others = [\"a\"]\n"+keep+"[[cluster]]\nname = \"d\"\nprogram = \"%P\"\nranks = 1\n[[link]]\nfrom = \"a\"\nto = \"d\"\nname = \"a-b\"\n")
	s.startFile(s.file, "x").ends(2, "--cluster x: the system has no such cluster; there are a, b")
	s.startFile(more, "d").ends(1, "cluster d: its file declares I/O process a-b.iop0 as spx-iop, one of 1, from a to d", "make the two the same, or give the one that comes another name")
	s.startFile(other, "a").ends(1, "cluster a: its file declares cluster a as ", "send 201 1 with 2 ranks and 0 standbys (", "; the system that runs has ", "send 200 1 with")
	s.start("b").ends(1, "cluster b: cluster b of the system "+s.name+" runs already")

	s.key("wrong")
	t.Setenv("SPX_SYSTEM_KEY", filepath.Join(s.dir, "wrong"))
	s.start("a").ends(1, "cluster a: what leads the system at "+address+" has another key than this file's")
	b.says("was refused: it has not proved to have the key of the system " + s.name)
	out, err := exec.Command(filepath.Join(harness.Build(t), "bin/spxctl"), "system", "status", s.name).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "1 calls were refused") || !strings.Contains(string(out), "awaited, 0 alive") {
		t.Errorf("%v\n%s", err, out)
	}
	open := filepath.Join(s.dir, "open")
	if err := os.WriteFile(open, []byte("0123456789abcdef\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SPX_SYSTEM_KEY", open)
	s.start("a").ends(2, "can be read or changed by others than its owner (mode 0644): chmod 600")
	t.Setenv("SPX_SYSTEM_KEY", "")
	a := s.start("a") // nothing of this has done any harm
	a.ends(0, "rank 1 sent 200\n")
	b.ends(0, "rank 1 received 200\n")
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// Nobody comes: who waits is told for whom, and ends; so does who finds nobody that leads.
func TestNobodyComes(t *testing.T) {
	s := newApart(t, "[start]\nlimit = \"700ms\"\n"+pair)
	s.start("b").ends(16, "the system is not complete in time: all of cluster a missing")
	far := s.write("far.toml", "192.0.2.1:7", "[start]\nlimit = \"700ms\"\n"+pair) // an address of nobody
	s.startFile(far, "a").ends(1, "cluster a: nobody leads the system apart at 192.0.2.1:7 within 700ms")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	strange := s.write("strange.toml", l.Addr().String(), pair)
	s.startFile(strange, "a").ends(1, fmt.Sprintf("cluster a: what answers at %v is not the system apart", l.Addr()))
}

// A cluster that dies, with its spxrun or without, or leaves, and comes again: the others wait for it, or go on without it, as the file says.
func TestApartAgain(t *testing.T) {
	for _, policy := range []string{"restart", "degrade"} {
		t.Run(policy, func(t *testing.T) {
			s := newApart(t, "[start]\nwait = \"none\"\n[failure]\ncluster = \""+policy+"\"\n"+`
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 1
[[cluster]]
name = "b"
program = "%P"
args = ["share", "b"]
ranks = 1
[[cluster]]
name = "c"
program = "%P"
args = ["share", "c"]
ranks = 1
[[link]]
from = "a"
to = "c"
[[link]]
from = "a"
to = "b"
`)
			a := s.start("a", "-l", "--verbose")
			a.says("rank a.0 is pid")
			c := s.start("c", "-l")
			s.await("c")
			b := s.start("b", "-l")
			s.await("b")
			if err := os.Remove(filepath.Join(s.dir, "b")); err != nil {
				t.Fatal(err)
			}
			b.cmd.Process.Kill() //nolint:errcheck // it is there
			word := "host b@"
			a.says(word)
			if policy == "restart" {
				a.says("cluster b is away; it may be attached again, and the others wait for it.")
			} else {
				a.says("cluster b is gone; the others go on.")
				c.says("cluster b is gone; the others go on.")
			}
			again := s.start("b", "-l")
			s.await("b") // messages come to it
			s.write("stop", "", "")
			a.ends(0, "[a.0] rank 0 sent ")
			again.ends(0, "[b.0] b: 1 ranks\n")
			c.ends(0, "[c.0] c: 1 ranks\n")
		})
	}
	t.Run("stop", func(t *testing.T) {
		s := newApart(t, strings.Replace(pair, `"200", "1"`, `"100000", "2"`, 1))
		a := s.start("a", "--verbose")
		a.says("rank a.0 is pid")
		b := s.start("b", "--verbose")
		b.says("rank 0 of cluster b is pid")
		b.cmd.Process.Signal(syscall.SIGINT) //nolint:errcheck // it is there
		b.ends(130, "cluster b is ended by its spxrun, and with it the system")
		a.ends(130)
	})
	t.Run("the leader's spxrun is ended", func(t *testing.T) {
		s := newApart(t, strings.Replace(pair, `"200", "1"`, `"100000", "2"`, 1))
		a := s.start("a", "--verbose")
		a.says("rank a.0 is pid")
		b := s.start("b", "--verbose")
		b.says("rank 0 of I/O process a-b.iop1 is pid")
		a.cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it is there
		b.ends(143, "the spxrun that leads the system, on host ", "has got signal 15 (SIGTERM), and with it the system is ended; exit status 143.")
	})
	t.Run("another cluster dies", func(t *testing.T) { // the status of all is that of which the line speaks
		s := newApart(t, strings.Replace(pair, `"200", "1"`, `"100000", "2"`, 1))
		b := s.start("b", "--verbose")
		b.says("rank b.0 is pid")
		a := s.start("a", "--verbose")
		a.says("rank 0 of cluster a is pid")
		pid := b.pid("b.1")
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it is there
		b.ends(137, "cluster b is ended and with it the system; exit status 137.")
		a.ends(137, "cluster b is ended and with it the system; exit status 137.")
	})
	t.Run("the leader dies", func(t *testing.T) {
		s := newApart(t, strings.Replace(pair, `"200", "1"`, `"100000", "2"`, 1))
		a := s.start("a", "--verbose")
		a.says("rank a.0 is pid")
		b := s.start("b", "--verbose")
		b.says("rank 0 of I/O process a-b.iop1 is pid")
		syscall.Kill(a.agent(), syscall.SIGKILL) //nolint:errcheck // it is there
		a.ends(137)
		b.ends(1, "the spxrun that led the system, at ", " is lost: its agent has ended, or the connection with it is broken; the processes of cluster b are ended")
	})
}

// The clusters are on two hosts: that which has the address leads, whoever comes first.
func TestApartHosts(t *testing.T) {
	hosts := newHosts(t, 2)
	s := newApartAt(t, "10.77.0.1:7410", pair)
	s.on = func(cluster string) []string {
		return []string{hosts.script, "on", hosts.name(map[string]int{"a": 0, "b": 1}[cluster])}
	}
	b := s.start("b", "-l")
	b.says("cluster b waits for the system apart: nobody leads it at 10.77.0.1:7410 yet")
	a := s.start("a", "-l")
	a.ends(0, "[a.0] rank 0 sent 200\n", "[a.1] rank 1 sent 200\n")
	b.ends(0, "[b.0] rank 0 received 200\n", "[b.1] rank 1 received 200\n")
}

// The spxrun of the only receiver is killed, and with it the I/O processes: nothing is started again, and the senders, from which no process would ever take a message, are told. Where a message has another way
// it takes that.
func TestApartReceiverLost(t *testing.T) {
	t.Run("all ways end", func(t *testing.T) {
		s := newApart(t, "[start]\nwait = \"none\"\n[failure]\ncluster = \"degrade\"\n"+`
[[cluster]]
name = "a"
program = "%P"
args = ["told", "90000", "2"]
ranks = 2
[[cluster]]
name = "b"
program = "%P"
args = ["share", "b", "each"]
ranks = 1
[[link]]
from = "a"
to = "b"
iops = 2
`)
		a := s.start("a", "-l", "--verbose")
		a.says("rank a.0 is pid") // it leads
		b := s.start("b", "-l")
		s.await("b")
		b.cmd.Process.Kill() //nolint:errcheck // it is there
		a.says("cluster b is gone; the others go on.")
		a.ends(0, "[a.0] rank 0 was told: MPIX_ERR_PROC_FAILED", "[a.1] rank 1 was told: MPIX_ERR_PROC_FAILED")
		if strings.Contains(a.text(), "is started again") {
			t.Error("what is not started is said to be started again")
		}
	})
	t.Run("another way remains", func(t *testing.T) {
		s := newApart(t, "[start]\nwait = \"none\"\n[failure]\ncluster = \"degrade\"\n"+`
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 2
[[cluster]]
name = "b"
program = "%P"
args = ["share", "b"]
ranks = 1
[[cluster]]
name = "c"
program = "%P"
args = ["share", "c", "each"]
ranks = 1
[[link]]
from = "a"
to = "b"
[[link]]
from = "a"
to = "c"
`)
		a := s.start("a", "-l", "--verbose")
		a.says("rank a.0 is pid")
		b, c := s.start("b", "-l"), s.start("c", "-l")
		s.await("b")
		s.await("c")
		b.cmd.Process.Kill() //nolint:errcheck // it is there
		a.says("cluster b is gone; the others go on.")
		for range 3 {
			os.Remove(filepath.Join(s.dir, "c")) //nolint:errcheck // it need not be there
			s.await("c")
		}
		s.write("stop", "", "")
		a.ends(0, "[a.0] rank 0 sent ", "[a.1] rank 1 sent ")
		c.ends(0, "[c.0] c: 1 ranks\n")
		if strings.Contains(a.text(), "is started again") {
			t.Error("what is not started is said to be started again")
		}
	})
}

// Of two clusters that the messages of a link are for, in turn, one is lost, or has had enough and leaves MPI: all go to the other one, and none is kept for that which is gone. When it comes again it gets its part.
func TestOneOfTheReceiversIsLost(t *testing.T) {
	leaves := fmt.Sprintf("program = %q\nargs = [\"receive\", \"5\", \"4000\"]", program(t, "leaves"))
	for how, program := range map[string]string{"killed": "program = \"%P\"\nargs = [\"share\", \"c\"]", "leaves": leaves, "comes again": leaves} {
		t.Run(how, func(t *testing.T) {
			s := newApart(t, "[start]\nwait = \"none\"\n[failure]\ncluster = \"degrade\"\n"+`
[[cluster]]
name = "a"
program = "%P"
args = ["send", "90000", "2", "stop"]
ranks = 1
[[cluster]]
name = "b"
program = "%P"
args = ["share", "b", "each"]
ranks = 1
[[cluster]]
name = "c"
`+program+`
ranks = 1
[[link]]
from = "a"
to = ["b", "c"]
args = ["--to", "one"]
`)
			a := s.start("a", "-l", "--verbose")
			a.says("rank a.0 is pid")
			b, c := s.start("b", "-l"), s.start("c", "-l")
			s.await("b")
			if how == "killed" {
				s.await("c")
				c.cmd.Process.Kill() //nolint:errcheck // it is there
				a.says("cluster c is gone; the others go on.")
			} else {
				c.ends(0, "[c.0] receive: 5\n")
			}
			for range 60 {
				os.Remove(filepath.Join(s.dir, "b")) //nolint:errcheck // it need not be there
				s.await("b")
			}
			if how == "comes again" {
				s.start("c", "-l").ends(0, "[c.0] receive: 5\n")
			}
			s.write("stop", "", "")
			a.ends(0, "[a.0] rank 0 sent ")
			b.ends(0, "[b.0] b: 1 ranks\n")
			var row int
			if _, rest, ok := strings.Cut(b.text(), "rank 0 received the last "); !ok {
				t.Error("b has not said how many came in a row")
			} else if _, err := fmt.Sscan(rest, &row); err != nil || (row < 25 && how != "comes again") {
				t.Errorf("of the messages that were sent last b received %d in a row (%v): every other one was for the cluster that is gone", row, err)
			}
		})
	}
}

// A receiver ends before it has taken all that was sent to it: what a relay has for it is dropped, which is said, and the senders end.
func TestReceiverLeavesEarly(t *testing.T) {
	for _, messages := range []string{"fast", "kept"} {
		for _, bytes := range []int{100, 1_000_000} {
			t.Run(fmt.Sprintf("%s,%d", messages, bytes), func(t *testing.T) {
				s := newApart(t, fmt.Sprintf(`messages = %[1]q
[[cluster]]
name = "a"
program = %[3]q
args = ["send", "60", "%[2]d"]
ranks = 1
[[cluster]]
name = "b"
program = %[3]q
args = ["receive", "3", "%[2]d"]
ranks = 1
[[link]]
from = "a"
to = "b"
`, messages, bytes, program(t, "leaves")))
				s.whole().ends(0, "send: 60\n", "receive: 3\n")
			})
		}
	}
}
