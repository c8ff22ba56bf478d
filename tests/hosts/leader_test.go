package hosts

import (
	"bytes"
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

	"libspx/ft/replica"
	"libspx/launch/service"
	"libspx/tests/harness"
)

// The host is lost whose agent decides about a job (docs/decisions/leaders.md): another one goes on.

// left is a job whose spxrun's host is lost, as the file shows that another one writes.
type left struct {
	*running
	dir string
}

// leads starts shrink.c on n hosts, in a folder of its own, until all are there. Its arguments: how often ranks will be lost, and the exit status.
func (b *bed) leads(t *testing.T, n int, options []string, args ...string) *left {
	t.Helper()
	return b.leadsOf(t, n, "shrink", options, args...)
}

// leadsOf is leads for another program.
func (b *bed) leadsOf(t *testing.T, n int, name string, options []string, args ...string) *left {
	t.Helper()
	slots := make([]int, n)
	for i := range slots {
		slots[i] = 1
	}
	options = append(append([]string{"--with-ft"}, options...), "-host", b.list(slots...), "-n", fmt.Sprint(n), program(t, name))
	r := b.startsLeft(t, b.spxrunOver(b.remotely(n), append(options, args...)...))
	r.reads("all are there")
	return r
}

// startsLeft starts what outlives the host on which it is started.
func (b *bed) startsLeft(t *testing.T, c harness.Command) *left {
	t.Helper()
	dir := filepath.Join(b.Dir(), t.Name()[strings.LastIndex(t.Name(), "/")+1:])
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	r := &left{&running{t: t, b: b, cmd: exec.Command(c.Args[0], c.Args[1:]...), lines: make(chan string, 100)}, dir}
	r.cmd.Env, r.cmd.Stderr, r.cmd.Dir = append(append(os.Environ(), c.Env...), "SPX_AGENT_LIMIT=0"), &r.stderr, dir
	out, err := os.Create(filepath.Join(dir, "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r.cmd.Stdout = out
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.cmd.Process.Kill(); r.cmd.Wait() }) //nolint:errcheck // it has ended then
	return r
}

// text is all that the job has written so far, wherever.
func (r *left) text() string {
	out, _ := os.ReadFile(filepath.Join(r.dir, "stdout"))
	files, _ := filepath.Glob(filepath.Join(r.dir, "spx-*.out"))
	for _, f := range files {
		more, _ := os.ReadFile(f)
		out = append(out, more...)
	}
	return string(out)
}

// reads waits until the job has written what a pattern describes.
func (r *left) reads(pattern string) (found []string) {
	r.t.Helper()
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		if found = regexp.MustCompile(pattern).FindStringSubmatch(r.text()); found != nil {
			return found
		}
		if time.Since(began) > harness.Patience(30*time.Second) {
			r.t.Fatalf("no %q in\n%s\nstandard error of spxrun:\n%s", pattern, r.text(), &r.stderr)
		}
	}
}

// met waits until n ranks have met again without the others, and returns when they had.
func (r *left) met(n int) (at time.Duration) {
	r.t.Helper()
	line := fmt.Sprintf(`(?m:^rank \d+ of %d at (\d+)$)`, n)
	r.reads(`(?s)` + strings.Repeat(line+".*", n))
	for _, found := range regexp.MustCompile(line).FindAllStringSubmatch(r.text(), -1) {
		var ms int
		fmt.Sscan(found[1], &ms) //nolint:errcheck // digits
		at = max(at, time.Duration(ms)*time.Millisecond)
	}
	return at
}

// ctlOn is what spxctl says on a host, and with which exit status it ends.
func (b *bed) ctlOn(t *testing.T, host int, args ...string) string {
	t.Helper()
	cmd := exec.Command(script(), append([]string{"on", b.host(host), filepath.Join(harness.Build(t), "bin/spxctl")}, args...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	late := harness.AfterFunc(time.Minute, func() { cmd.Process.Kill() }) //nolint:errcheck // it has ended then
	cmd.Run()                                                             //nolint:errcheck // what it says is looked at
	late.Stop()
	return fmt.Sprintf("%sexit status %d\n", &out, cmd.ProcessState.ExitCode())
}

// decides waits until hosts are there or lost as is said of them, by number from 1, with copies of all that happened where they are there, and as many votes as they can have; asked is asked.
func (r *left) decides(asked int, lost ...int) (list []service.Host) {
	r.t.Helper()
	text := ""
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		text = r.b.ctlOn(r.t, asked, "hosts", ".", "--json")
		list = nil
		if json.NewDecoder(strings.NewReader(text)).Decode(&list) == nil {
			ok, gone, originals, votes := true, map[int]bool{}, 0, 0
			for _, n := range lost {
				gone[n] = true
			}
			for i, h := range list {
				ok = ok && gone[i+1] == (h.State == "lost") && (gone[i+1] || h.Copy != nil && h.Copy.Digest != "")
				if h.Copy != nil && h.Copy.Votes {
					votes++
				}
				if h.Copy != nil && h.Copy.Original != "" {
					originals++
					ok = ok && h.Copy.Original == h.Copy.Digest
				}
			}
			if there := len(list) - len(lost); ok && originals == 1 && votes == min(there-1+there%2, replica.MostVoters) {
				return list
			}
		}
		if time.Since(began) > harness.Patience(30*time.Second) {
			r.t.Fatalf("hosts %v are to be lost, says host %d:\n%s\n%s", lost, asked, text, r.text())
		}
	}
}

// kill ends all that is on a host, the agent first, as the end of a machine does.
func (b *bed) kill(t *testing.T, host int) {
	t.Helper()
	for _, name := range []string{"spx-agent", "spx-host-agent", ""} {
		for _, pid := range b.findOn(host, name) {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it has ended then
		}
	}
}

// One host of four is lost, with spxrun: its agent is killed with all that is there, its network is unplugged, or its agent stands still for long, and then goes on. The ranks elsewhere are told, go on and end as they
// should, on no host anything is left, and spxctl answers on the others. A host that comes back ends its processes.
func TestLeaderLost(t *testing.T) {
	b := newBed(t, 4)
	lose := map[string]func(){
		"killed": func() { b.kill(t, 1) },
		"agent": func() {
			for _, pid := range b.findOn(1, "spx-agent") {
				syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // seen by the others
			}
		},
		"unplugged": func() { b.ip(unplug(1)) },
		"stopped": func() {
			for _, pid := range b.findOn(1, "spx-agent") {
				syscall.Kill(pid, syscall.SIGSTOP) //nolint:errcheck // seen by the others
			}
		},
	}
	for _, c := range []struct {
		how     string
		options []string
	}{{"killed", nil}, {"killed", []string{"--detach"}}, {"agent", nil}, {"stopped", nil}, {"unplugged", nil}} {
		t.Run(strings.Join(append([]string{c.how}, c.options...), ""), func(t *testing.T) {
			r := b.leads(t, 4, c.options, "2", "7")
			r.decides(1)
			awaited := make(chan string, 1)
			go func() { awaited <- b.ctlOn(t, 2, "wait", ".") }()
			began := clock()
			lose[c.how]()
			t.Logf("%s: after %v the others had met again", c.how, r.met(3)-began)
			r.reads(`host ` + b.host(1) + ` is lost, with its processes`)
			r.decides(2, 1)
			r.decides(4, 1)
			if text := b.ctlOn(t, 3, "jobs"); !strings.Contains(text, "3 processes") {
				t.Errorf("spxctl jobs on host 3:\n%s", text)
			}
			if text := b.ctlOn(t, 4, "ps", "."); !strings.Contains(text, b.host(2)) || !strings.Contains(text, b.host(4)) {
				t.Errorf("spxctl ps on host 4:\n%s", text)
			}
			if text := b.ctlOn(t, 3, "hosts", ".", "add", "another"); !strings.Contains(text, "host another: it cannot be reached") {
				t.Errorf("a host that is not there is to be added:\n%s", text)
			}
			for _, pid := range b.findOn(3, "shrink") {
				syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // seen below
			}
			r.met(2)
			r.reads(`spxrun: job [0-9a-f]{16} has ended, exit status 7\n`)
			if text := <-awaited; !strings.Contains(text, "exit status 7") {
				t.Errorf("spxctl wait on host 2, from before the loss:\n%s", text)
			}
			b.deserted(t, 2, 3, 4)
			switch c.how {
			case "stopped":
				if len(b.findOn(1, "shrink")) == 0 {
					t.Error("the rank of host 1 has ended although its agent is stopped: this test shows nothing")
				}
				for _, pid := range b.findOn(1, "spx-agent") {
					syscall.Kill(pid, syscall.SIGCONT) //nolint:errcheck // seen below
				}
			case "unplugged":
				defer b.ip("link set port1 up")
			}
			b.deserted(t, 1)
			if c.how == "killed" {
				return
			}
			r.cmd.Wait() //nolint:errcheck // what it has said is looked at
			if text := r.stderr.String(); !strings.Contains(text, "the job goes on at other hosts if these can") {
				t.Errorf("spxrun has said\n%s", text)
			}
		})
	}
}

// The host that decides is lost, and then the one that has come to decide: the next one does, though agents were started by others that are lost.
func TestLeadersLostInTurn(t *testing.T) {
	b := newBed(t, 5)
	r := b.leads(t, 5, []string{"--fanout", "2"}, "3", "5")
	r.decides(1)
	b.kill(t, 1)
	r.met(4)
	second := 0
	for i, h := range r.decides(3, 1) {
		if h.Copy != nil && h.Copy.Original != "" {
			second = i + 1
		}
	}
	b.kill(t, second)
	r.met(3)
	asked := 2
	if second == asked {
		asked = 3
	}
	r.decides(asked, 1, second)
	text := b.ctlOn(t, asked, "end", ".")
	if !strings.Contains(text, "exit status 143") {
		t.Errorf("spxctl end says\n%s", text)
	}
	r.reads(`spxrun: job [0-9a-f]{16} has ended, exit status 143\n`)
	b.deserted(t, 1, 2, 3, 4, 5)
}

// The host that decides is cut off with fewer others: nothing is left there, and the others go on. One of them falls silent then, which may be the one that decides now. Processes can be spawned then, on all hosts that are left, and meet with the others; what only the first one could do is refused.
func TestLeaderCutOff(t *testing.T) {
	b := newBed(t, 5)
	r := b.leads(t, 5, nil, "2", "3", "3")
	r.decides(1)
	b.part(1, 2)
	r.met(3)
	b.deserted(t, 1, 2)
	r.decides(3, 1, 2)
	b.ip(unplug(5))
	r.met(2)
	b.deserted(t, 5)
	r.reads(`(?s)(parent of 5 together.*|child of 5 together.*){5}`)
	r.reads(`(?s)(port: MPI_SUCCESS.*){2}`)
	r.reads(`spxrun: job [0-9a-f]{16} has ended, exit status 3\n`)
	b.deserted(t, 3, 4)
}

// Ports that were opened and names that were published by processes that are left are there when another host decides, and so is what is opened since. Two are lost, one after the other.
func TestLeaderLostWithPorts(t *testing.T) {
	b := newBed(t, 4)
	r := b.leadsOf(t, 4, "ports_left", nil, "6")
	r.decides(1)
	b.kill(t, 1)
	r.reads(`from before: 4711\n(?s:.*)from after: 4711\n(?s:.*)then it is gone\n`)
	r.reads(`spxrun: job [0-9a-f]{16} has ended, exit status 6\n`)
	b.deserted(t, 1, 2, 3, 4)
}

// takesCommands waits until spxctl says so on a host, of a program of n processes.
func (r *left) takesCommands(host, n int) {
	r.t.Helper()
	text := ""
	for began := time.Now(); !strings.Contains(text, fmt.Sprintf("  %d processes, takes", n)); time.Sleep(20 * time.Millisecond) {
		if text = r.b.ctlOn(r.t, host, "jobs"); time.Since(began) > harness.Patience(30*time.Second) {
			r.t.Fatalf("no program of %d processes that takes commands:\n%s\n%s", n, text, r.text())
		}
	}
}

// A program that changes its number of processes takes commands when another host decides, and grows onto hosts that are added then, the one that was lost among them; and again, when that one is lost.
func TestLeaderLostAndGrown(t *testing.T) {
	b := newBed(t, 4)
	stop := filepath.Join(b.Dir(), "stop")
	jacobi := harness.Compile(t, "hosts/jacobi", []string{filepath.Join(harness.Root(), "tests/c/dyprc/jacobi.c")})
	r := b.startsLeft(t, b.spxrun("--with-ft", "-host", b.list(1, 1, 1), "-n", "3", jacobi, "stop", stop))
	r.takesCommands(1, 3)
	r.decides(1)
	lost, stays := 1, 3
	for round := range 2 {
		if round == 1 {
			r.decides(stays, 1) // the one that was added can decide, too
		}
		b.kill(t, lost)
		next := r.reads(fmt.Sprintf(`host (\S+) decides about job [0-9a-f]{16} now, in the place of host %s, which is lost`, b.host(lost)))[1]
		if round == 0 { // of the two that are left one decides, and is lost next
			if lost = 2; next == b.host(3) {
				lost, stays = 3, 2
			}
		}
		r.takesCommands(stays, 2-round)
		if text := b.ctlOn(t, stays, "hosts", ".", "add", b.host(4-3*round)+":2"); !strings.Contains(text, "exit status 0") {
			t.Fatalf("round %d: %s\n%s", round, text, r.text())
		}
		if text := b.ctlOn(t, stays, "resize", ".", "4"); !strings.Contains(text, fmt.Sprintf("%d -> 4 processes", 2-round)) {
			t.Fatalf("round %d: %s\n%s", round, text, r.text())
		}
		if round == 0 {
			if text := b.ctlOn(t, stays, "resize", ".", "2"); !strings.Contains(text, "4 -> 2 processes") {
				t.Fatal(text)
			}
		}
	}
	if err := os.WriteFile(stop, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	r.reads(`right after`)
	r.reads(`spxrun: job [0-9a-f]{16} has ended, exit status 0\n`)
	b.deserted(t, 1, 2, 3, 4)
}

// Processes have been spawned on all hosts before the one is lost that decides: those that are left, of both worlds, are told, meet again, spawn two more, and end as they should.
func TestLeaderLostWithSpawned(t *testing.T) {
	b := newBed(t, 3)
	r := b.leadsOf(t, 3, "spawned", nil, "4")
	there := make([]int, 3)
	for i := range there {
		there[i] = len(b.findOn(i+1, "spawned"))
	}
	if there[0] == 0 || there[0]+there[1]+there[2] != 6 {
		t.Fatalf("%v processes on the hosts", there)
	}
	r.decides(1)
	b.kill(t, 1)
	r.met(6 - there[0])
	r.reads(fmt.Sprintf(`(?s)(%d with those that came late.*){%d}`, 8-there[0], 6-there[0]))
	r.reads(`spxrun: job [0-9a-f]{16} has ended, exit status 4\n`)
	b.deserted(t, 1, 2, 3)
}
