package attack

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/shm"
	"libspx/tests/harness"
)

// process is a command that the test talks with.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, c harness.Command, log ...io.Writer) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(c.Args[0], c.Args[1:]...)}
	p.cmd.Env = append(append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(harness.Build(t), "lib")), c.Env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if p.cmd.Stderr = os.Stderr; len(log) > 0 {
		p.cmd.Stderr = log[0]
	}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	frames, _ := strconv.Atoi(os.Getenv("SPX_ATTACK_FRAMES"))
	limit := 3*time.Minute + time.Duration(frames)*2*time.Millisecond // a call takes less than that by far
	watchdog := harness.AfterFunc(limit, func() { syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })
	t.Cleanup(func() {
		watchdog.Stop()
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it has ended, as a rule
	})
	return p
}

func (p *process) line() string {
	p.t.Helper()
	text, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%s: %q, %v", p.cmd.Args[0], text, err)
	}
	if strings.HasPrefix(text, "error:") {
		p.t.Fatal(text)
	}
	return strings.TrimSpace(text)
}

// report is what the job says of itself after an exchange.
type report struct {
	descriptors, memory int // of a rank, at most; memory in KiB
	barrier             time.Duration
	refused             map[string]int // by all ranks
}

var refusals = regexp.MustCompile(`(strangers|version|old|keyless|slow) (\d+)`)

// add takes in what a line says of calls that were refused.
func (r *report) add(line string) {
	for _, m := range refusals.FindAllStringSubmatch(line, -1) {
		v, _ := strconv.Atoi(m[2])
		r.refused[m[1]] += v
	}
}

// exchange has the job exchange messages, none of which may be wrong.
func (p *process) exchange() report {
	p.t.Helper()
	r := report{refused: map[string]int{}}
	wrong, us := -1, 0
	fmt.Fprintln(p.in, "go")
	line := p.line()
	fmt.Sscanf(line, "wrong %d descriptors %d memory %d barrier %d", &wrong, &r.descriptors, &r.memory, &us) //nolint:errcheck // seen by what is read
	if r.barrier = time.Duration(us) * time.Microsecond; wrong != 0 {
		p.t.Fatalf("the job says %q", line)
	}
	r.add(line)
	return r
}

// await has the job exchange messages until it has counted what is expected, and no more.
func (p *process) await(want map[string]int) (r report) {
	p.t.Helper()
	for range 20 {
		if r = p.exchange(); maps.Equal(r.refused, want) {
			return r
		}
	}
	p.t.Errorf("counted: %v, want %v", r.refused, want)
	return r
}

// finish ends the job, and returns what its ranks have counted, as SPX_COUNTERS has it.
func (p *process) finish(counters string) report {
	p.t.Helper()
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the job: %v", err)
	}
	text, err := os.ReadFile(counters)
	if err != nil {
		p.t.Fatal(err)
	}
	r := report{refused: map[string]int{}}
	r.add(string(text))
	return r
}

// A scene is where a job runs, and where its enemy does.
type scene struct {
	job   harness.Command
	enemy []string     // before the enemy's program
	at    string       // where the enemy can listen
	bed   *harness.Bed // nil: all is on this host
}

const ranks = 4

// scenes runs a test on one host, with the enemy on it, as another user where that is possible, and on two, with the enemy on a third, by IPv4 and by IPv6.
func scenes(t *testing.T, test func(t *testing.T, s scene)) {
	program := harness.Compile(t, "attack/target", []string{"testdata/target.c"})
	t.Run("host", func(t *testing.T) {
		test(t, scene{harness.Command{Args: harness.Spxrun(t, strconv.Itoa(ranks), program), Env: []string{"SPX_TRANSPORTS=tcp"}}, nil, "127.0.0.1", nil})
	})
	for name, net := range map[string]struct{ iface, at string }{"network": {"10.77.0.0/24", "10.77.0.3"}, "ipv6": {"fd77::/64", "fd77::3"}} {
		t.Run(name, func(t *testing.T) {
			bed := harness.NewBed(t, "x", 3, nil)
			for i := 1; i <= 3 && name == "ipv6"; i++ {
				if out, err := exec.Command("ip", "-n", bed.Host(i), "addr", "add", fmt.Sprintf("fd77::%d/64", i), "dev", "eth0", "nodad").CombinedOutput(); err != nil {
					t.Skipf("no IPv6 here: %v\n%s", err, out)
				}
			}
			job := bed.On(1, filepath.Join(harness.Build(t), "bin/spxrun"), "--rsh", harness.HostsScript()+" rsh", "--iface", net.iface,
				"-host", bed.Host(1)+":2,"+bed.Host(2)+":2", "-n", strconv.Itoa(ranks), program)
			test(t, scene{harness.Command{Args: job, Env: []string{"SPX_SPIN=0", "SPX_TRANSPORTS=tcp"}}, bed.On(3), net.at, bed})
		})
	}
}

// begin starts the job of a scene, and returns where its ranks listen, and the file of its counters. log: where what it says of itself goes.
func (s scene) begin(t *testing.T, log ...io.Writer) (p *process, list []target, counters string) {
	t.Helper()
	return s.beginWith(t, ranks, log...)
}

// beginWith is begin for a job of n ranks.
func (s scene) beginWith(t *testing.T, n int, log ...io.Writer) (p *process, list []target, counters string) {
	t.Helper()
	counters = filepath.Join(t.TempDir(), "counters")
	s.job.Env = append(s.job.Env, "SPX_COUNTERS="+counters)
	p = start(t, s.job, log...)
	var words []string
	for range n {
		words = append(words, strings.Fields(p.line())...)
	}
	list, err := targets(words)
	if err != nil {
		t.Fatal(err)
	}
	for i, of := range list {
		if at, err := netip.ParseAddrPort(of.at); err == nil && s.bed != nil {
			host := at.Addr().As16()
			list[i].pid = s.bed.Outside(int(host[15]), of.pid)
		}
	}
	return p, list, counters
}

// attack starts the enemy: who it is, and what it knows.
func (s scene) attack(t *testing.T, who string, list []target, knows ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	before := s.enemy
	switch {
	case s.bed != nil:
		self = s.bed.Self()
	case os.Getuid() == 0:
		before, self = asOther(t, self)
	}
	words := append([]string{who}, knows...)
	words = append(words, "of")
	for _, of := range list {
		words = append(words, of.words()...)
	}
	return start(t, harness.Command{Args: append(slices.Clone(before), self), Env: []string{"ATTACK=" + strings.Join(words, " ")}})
}

// asOther is what stands before a program that another user runs, and a copy of it which that one can read.
func asOther(t *testing.T, program string) (before []string, copied string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "spx-attack-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	copied = filepath.Join(dir, "enemy")
	copyFile(t, program, copied, 0o755)
	user := strconv.Itoa(stranger)
	return []string{"setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--"}, copied
}

// segments are the memory files of the hosts of a job, as every process of its user can have them.
func segments(t *testing.T, list []target) (found []*shm.Segment) {
	t.Helper()
	seen := map[uint64]bool{}
	for _, of := range list {
		paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", of.pid))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no descriptors of process %d: %v", of.pid, err)
		}
		for _, path := range paths {
			var about syscall.Stat_t
			if to, _ := os.Readlink(path); !strings.HasPrefix(to, "/memfd:") || syscall.Stat(path, &about) != nil || seen[about.Ino] {
				continue
			}
			seen[about.Ino] = true
			file, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if s, err := shm.Open(file); err == nil && s.JobID() == of.job {
				t.Cleanup(func() { s.Close() })
				found = append(found, s)
			}
		}
	}
	if len(found) == 0 {
		t.Fatal("no memory file of the job is found")
	}
	return found
}
