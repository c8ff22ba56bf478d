package hosts

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"libspx/tests/harness"
)

// Hosts that are added to a running job, and removed (docs/malleability.md, "Hosts").

// A talk is a job to which hosts are added, and whose rank 0 is told what to do.
type talk struct {
	*running
	in *os.File
}

// talks starts a program on host 1, and waits for its first line.
func (b *bed) talks(t *testing.T, options []string, program ...string) *talk {
	t.Helper()
	c := b.spxrun(append(options, program...)...)
	r := &running{t: t, b: b, cmd: exec.Command(c.Args[0], c.Args[1:]...), lines: make(chan string, 100)}
	r.cmd.Env, r.cmd.Stderr = append(os.Environ(), c.Env...), &r.stderr
	r.cmd.WaitDelay = 5 * time.Second
	in, mine, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Stdin = in
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.cmd.Process.Kill(); mine.Close() }) //nolint:errcheck // it has ended then
	go func() {
		defer close(r.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			r.lines <- s.Text()
		}
	}()
	return &talk{r, mine}
}

// tell says a line to rank 0, whose answers are as wanted.
func (r *talk) tell(line string, want ...string) {
	r.t.Helper()
	fmt.Fprintln(r.in, line)
	r.hears(want...)
}

func (r *talk) hears(want ...string) {
	r.t.Helper()
	for _, w := range want {
		if got := r.line(); !strings.Contains(got, w) {
			r.t.Fatalf("%q, want %q\n%s", got, w, &r.stderr)
		}
	}
}

// misses tells rank 0 to look, and waits until n processes go on; deaths may be seen one after another.
func (r *talk) misses(n int) {
	r.t.Helper()
	fmt.Fprintln(r.in, "where")
	for line := ""; line != fmt.Sprintf("left %d", n); {
		if line = r.line(); !strings.HasPrefix(line, "left ") {
			r.t.Fatalf("%q, want the word that %d are left\n%s", line, n, &r.stderr)
		}
	}
}

// at is the line of processes on these hosts.
func (r *talk) at(hosts ...int) string {
	text := fmt.Sprintf("%d, sum right:", len(hosts))
	for _, n := range hosts {
		text += " " + r.b.host(n)
	}
	return text
}

// ctl runs spxctl on host 1, with some input; its output matches.
func (b *bed) ctl(t *testing.T, status int, pattern, in string, args ...string) string {
	t.Helper()
	cmd := exec.Command(script(), append([]string{"on", b.host(1), filepath.Join(harness.Build(t), "bin/spxctl")}, args...)...)
	cmd.Stdin = strings.NewReader(in)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	late := harness.AfterFunc(time.Minute, func() { cmd.Process.Kill() }) //nolint:errcheck // it has ended then
	cmd.Run()                                                             //nolint:errcheck // its status is looked at
	late.Stop()
	if got := cmd.ProcessState.ExitCode(); got != status || !regexp.MustCompile(pattern).MatchString(out.String()) {
		t.Fatalf("spxctl %v: exit status %d, want %d and %q\n%s", args, got, status, pattern, &out)
	}
	return out.String()
}

// A job of one host gets others; what is spawned there talks with the first processes, and these survive its death. Idle hosts leave.
func TestHostsAreAdded(t *testing.T) { hostsAreAdded(t) }

// With few connections each of them is a switch of its own, which joins the routes and leaves them.
func TestHostsAreAddedToRoutes(t *testing.T) {
	t.Setenv("SPX_CONNECTIONS", "topology:0")
	hostsAreAdded(t)
}

func hostsAreAdded(t *testing.T) {
	t.Setenv("SPX_HEARTBEAT_LIMIT", "1000")
	b := newBed(t, 3)
	h1, h2, h3 := b.host(1), b.host(2), b.host(3)
	r := b.talks(t, []string{"--more-hosts", "-n", "2"}, program(t, "grow"))
	r.hears(r.at(1, 1))
	r.tell("spawn 1 "+h2, "host "+h2+" is none of this job's hosts")
	b.ctl(t, 1, "host nobody: .*", "", "hosts", ".", "add", "nobody")
	b.ctl(t, 1, "host localhost: it is one of the job's hosts already", "", "hosts", ".", "add", "localhost")
	b.ctl(t, 1, `"0" is not a number of slots`, "", "hosts", ".", "add", h2+":0")
	b.ctl(t, 1, "host "+h2+": it is none of the job's hosts now", "", "hosts", ".", "remove", h2)
	b.ctl(t, 0, "(?s)"+h1+" .*2 processes.*"+h2+" +2 slots, +0 processes.*done in", "", "hosts", ".", "add", h2+":2")
	b.ctl(t, 1, "host "+h2+": it is one of the job's hosts already", "", "hosts", ".", "add", h2)
	r.tell("spawn 2 "+h2, r.at(1, 1, 2, 2))
	b.ctl(t, 1, "host "+h2+": 2 processes of the job run there", "", "hosts", ".", "remove", h2)
	b.ctl(t, 1, "host "+h1+": it is the one on which spxrun was started", "", "hosts", ".", "remove", h1)

	// The host dies, and comes back; another one comes with it.
	agents := b.findOn(2, "spx-host-agent")
	if len(agents) != 1 {
		t.Fatalf("agents of host 2: %v", agents)
	}
	syscall.Kill(agents[0], syscall.SIGKILL) //nolint:errcheck // seen below
	r.misses(2)
	r.hears(r.at(1, 1))
	b.ctl(t, 0, h2+" .*lost", "", "hosts", ".")
	b.ctl(t, 0, `(?s)"ok":true.*"name":"`+h3+`","slots":2`, `{"id":1,"op":"add-hosts","job":".","hosts":["`+h2+`","`+h3+`:2"]}`, "hook", "-")
	r.tell("spawn 3 "+h2+","+h3+":2", r.at(1, 1, 2, 3, 3))
	r.tell("spawn 1 "+h2, r.at(1, 1, 2, 3, 3, 2))

	// One is cut off, from the network alone: its agent is still connected with spxrun's by the pipes of its remote shell. The heartbeats notice.
	b.ip(unplug(3))
	r.misses(4)
	r.hears(r.at(1, 1, 2, 2))
	b.deserted(t, 3)

	// Idle again, a host leaves. It is none of the job's then.
	r.tell("leave", r.at(1, 1))
	idle := regexp.MustCompile("(?m)^" + h2 + " .* 0 processes$") // the one that has not died, as spxrun knows it: their end is known here a little later than it can be seen there
	until(t, "end of those that were spawned", func() bool { return idle.MatchString(b.ctl(t, 0, h2, "", "hosts", ".")) })
	b.ctl(t, 0, h2+" .*removed", "", "hosts", ".", "remove", h2)
	b.deserted(t, 2)
	r.tell("spawn 1 "+h2, "is lost, or was removed")
	b.ctl(t, 0, h2+" +1 slots", "", "hosts", ".", "add", h2)
	r.tell("spawn 1 "+h2, r.at(1, 1, 2))
	r.tell("end")
	r.ends(0, "host "+h3+" is lost, with its processes")
	b.deserted(t, 1, 2, 3)
}

// A program that changes its number of processes grows onto a host that was added, goes on when that dies, and grows again.
func TestResizeOntoAddedHost(t *testing.T) {
	b := newBed(t, 2)
	jacobi := harness.Compile(t, "hosts/jacobi", []string{filepath.Join(harness.Root(), "tests/c/dyprc/jacobi.c")})
	stop := filepath.Join(t.TempDir(), "stop")
	r := b.talks(t, []string{"--more-hosts", "-host", b.host(1) + ":2", "-n", "2"}, jacobi, "stop", stop)
	until(t, "program that takes commands", func() bool {
		return strings.Contains(b.ctl(t, 0, "", "", "jobs"), "takes commands")
	})
	b.ctl(t, 0, "done in", "", "hosts", ".", "add", b.host(2)+":4")
	b.ctl(t, 0, "^2 -> 5 processes", "", "resize", ".", "5")
	b.ctl(t, 0, b.host(2)+" +4 slots, +3 processes", "", "hosts", ".")
	for _, pid := range b.findOn(2, "spx-host-agent") {
		syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // seen below
	}
	until(t, "recovery", func() bool { return strings.Contains(b.ctl(t, 0, "", "", "jobs"), "  2 processes, takes") })
	b.ctl(t, 0, "done in", "", "hosts", ".", "add", b.host(2)+":1")
	b.ctl(t, 0, "^2 -> 3 processes", "", "resize", ".", "3")
	b.ctl(t, 0, b.host(2)+" +1 slots, +1 processes", "", "hosts", ".")
	b.ctl(t, 0, "^3 -> 2 processes", "", "resize", ".", "2")
	if err := os.WriteFile(stop, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	r.hears("right after")
	r.ends(0)
	b.deserted(t, 1, 2)
}

// Whose hosts cannot change says so.
func TestFixedHosts(t *testing.T) {
	b := newBed(t, 2)
	r := b.talks(t, []string{"-n", "1"}, program(t, "grow"))
	r.hears(r.at(1))
	b.ctl(t, 1, "start it with spxrun --more-hosts", "", "hosts", ".", "add", b.host(2))
	b.ctl(t, 0, "^"+b.host(1)+" .* 1 processes", "", "hosts", ".")
	r.tell("end")
	r.ends(0)
}

// Hosts are added, lose their agents, and are removed in an order that nobody has chosen, while a program changes its number of processes: two things at a time, and
// with some kind of connections. It goes on, computes what it should, and nothing stays.
func TestHostsComeAndGo(t *testing.T) {
	b := newBed(t, 4)
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 1))
	connections := []string{"demand", "topology:0", "topology:1"}[random.IntN(3)]
	t.Setenv("SPX_CONNECTIONS", connections)
	t.Logf("seed %d, SPX_CONNECTIONS=%s", seed, connections)
	jacobi := harness.Compile(t, "hosts/jacobi", []string{filepath.Join(harness.Root(), "tests/c/dyprc/jacobi.c")})
	stop := filepath.Join(t.TempDir(), "stop")
	r := b.talks(t, []string{"--more-hosts", "-host", b.host(1) + ":2", "-n", "2"}, jacobi, "stop", stop)
	until(t, "program that takes commands", func() bool { return strings.Contains(b.ctl(t, 0, "", "", "jobs"), "takes commands") })
	var done sync.Map
	spxctl := func(args ...string) { // it may fail: a host may be there, be lost on the way, or not be idle
		cmd := exec.Command(script(), append([]string{"on", b.host(1), filepath.Join(harness.Build(t), "bin/spxctl")}, args...)...)
		late := harness.AfterFunc(time.Minute, func() {
			t.Errorf("spxctl %v hangs", args)
			cmd.Process.Kill() //nolint:errcheck // it has ended then
		})
		if cmd.Run() == nil {
			done.Store(args[0]+args[len(args)-2], true)
		}
		late.Stop()
	}
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); {
		var both sync.WaitGroup
		for range 2 {
			host, wait := 2+random.IntN(3), time.Duration(random.IntN(50))*time.Millisecond
			slots, procs := 1+random.IntN(3), 1+random.IntN(8)
			switch random.IntN(8) {
			case 0, 1, 2:
				both.Go(func() { spxctl("hosts", ".", "add", fmt.Sprintf("%s:%d", b.host(host), slots)) })
			case 3:
				both.Go(func() { spxctl("hosts", ".", "remove", b.host(host)) })
			case 4:
				both.Go(func() {
					time.Sleep(wait) // any moment of what happens meanwhile
					for _, pid := range b.findOn(host, "spx-host-agent") {
						syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
					}
				})
			default:
				both.Go(func() { spxctl("resize", ".", fmt.Sprint(procs)) })
			}
		}
		both.Wait()
	}
	for _, what := range []string{"hostsadd", "hostsremove", "resize."} {
		if _, ok := done.Load(what); !ok {
			t.Logf("%s has never come about", what)
		}
	}
	if err := os.WriteFile(stop, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	r.hears("right after")
	r.ends(0)
	b.deserted(t, 1, 2, 3, 4)
}
