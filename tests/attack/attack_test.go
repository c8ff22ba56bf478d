// Package attack has programs that do not belong to a job call its processes, on the same host and from another one: without the key, with what was said once, of
// another time, with random bytes, and with connections that say nothing. The job goes on, and its counters tell.
package attack

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/net/tcp"
	"libspx/tests/harness"
)

// How much of each kind.
const (
	halfOpen = 1000
	keyless  = 200
	replayed = 200
	old      = 200
	frames   = 1000000
	volley   = 500 // frames in one connection
	frame    = 72  // bytes
)

// TestMain is also the attacker.
func TestMain(m *testing.M) {
	if os.Getenv("ATTACK") == "" {
		os.Exit(m.Run())
	}
	if err := attack(strings.Fields(os.Getenv("ATTACK"))); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

// target is a process of the job.
type target struct {
	job    [16]byte
	number uint32
	at     string
}

func targets(words []string) (list []target, err error) {
	for ; len(words) >= 3; words = words[3:] {
		t := target{at: words[2]}
		if _, err := hex.Decode(t.job[:], []byte(words[0])); err != nil {
			return nil, err
		}
		number, err := strconv.Atoi(words[1])
		if err != nil {
			return nil, err
		}
		t.number = uint32(number)
		list = append(list, t)
	}
	return list, nil
}

// attack knows where the processes listen and which job they are of, but not its key.
func attack(words []string) error {
	list, err := targets(words)
	if err != nil {
		return err
	}
	var held []net.Conn
	for i := range halfOpen {
		c, err := net.Dial("tcp", list[i%len(list)].at)
		if err != nil {
			return err
		}
		if i%3 == 0 {
			c.Write([]byte("SPX")) //nolint:errcheck // the beginning of something
		}
		held = append(held, c)
	}
	fmt.Println("holding")
	call := func(t target, life uint32) error {
		id := &tcp.Identity{Job: t.job, Self: tcp.Process{Number: t.number + 1, Life: 1}}
		rand.Read(id.Key[:])
		c, v, err := tcp.Dial(t.at, id, tcp.Process{Number: t.number, Life: life})
		if err == nil {
			c.Close()
			return fmt.Errorf("%v has taken a stranger: %v", t, v)
		}
		return nil
	}
	for i := range keyless {
		if err := call(list[i%len(list)], 1); err != nil {
			return err
		}
	}
	for i := range old {
		if err := call(list[i%len(list)], 7); err != nil {
			return err
		}
	}
	for i := range replayed {
		if err := replay(list[i%len(list)]); err != nil {
			return err
		}
	}
	junk := make([]byte, volley*frame)
	for i := range frames / volley {
		rand.Read(junk)
		if c, err := net.Dial("tcp", list[i%len(list)].at); err == nil {
			c.Write(junk) //nolint:errcheck // it is hung up on
			c.Close()
		}
	}
	fmt.Println("done")
	io.Copy(io.Discard, os.Stdin) //nolint:errcheck // until the test is over
	for _, c := range held {
		c.Close()
	}
	return nil
}

// replay says a hello and then what was a proof of another call.
func replay(t target) error {
	c, err := net.Dial("tcp", t.at)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second)) //nolint:errcheck // it is a TCP connection
	pipe := &recorder{}
	tcp.Call(pipe, &tcp.Identity{Job: t.job, Self: tcp.Process{Number: t.number + 1, Life: 1}}, tcp.Process{Number: t.number, Life: 1}) //nolint:errcheck // nobody answers it
	c.Write(pipe.said)                                                                                                                  //nolint:errcheck // the answer counts
	var challenge [64]byte
	if _, err := io.ReadFull(c, challenge[:]); err != nil {
		return nil // hung up on before: one of many
	}
	c.Write(challenge[32:]) //nolint:errcheck // a proof that the other end itself has given, the only one there is
	if n, _ := c.Read(challenge[:1]); n == 1 {
		return fmt.Errorf("%v answers a proof that was its own with %d", t, challenge[0])
	}
	return nil
}

// recorder keeps what is said, and answers nothing.
type recorder struct{ said []byte }

func (r *recorder) Write(b []byte) (int, error) { r.said = append(r.said, b...); return len(b), nil }
func (*recorder) Read([]byte) (int, error)      { return 0, io.EOF }

// process is a command that the test talks with.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, c harness.Command) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(c.Args[0], c.Args[1:]...)}
	p.cmd.Env = append(append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(harness.Build(t), "lib")), c.Env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = os.Stderr
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
	watchdog := time.AfterFunc(3*time.Minute, func() { syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) })
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
	return strings.TrimSpace(text)
}

// exchange has the job exchange messages, and returns how many descriptors a rank has open at most.
func (p *process) exchange() (descriptors int) {
	p.t.Helper()
	fmt.Fprintln(p.in, "go")
	wrong := -1
	if line := p.line(); len(line) > 0 {
		fmt.Sscanf(line, "wrong %d descriptors %d", &wrong, &descriptors) //nolint:errcheck // seen by what is read
		if wrong != 0 {
			p.t.Fatalf("the job says %q", line)
		}
	}
	return descriptors
}

// besiege runs a job of n ranks while it is attacked.
func besiege(t *testing.T, n int, job harness.Command, attacker ...string) {
	counters := filepath.Join(t.TempDir(), "counters")
	job.Env = append(job.Env, "SPX_COUNTERS="+counters)
	p := start(t, job)
	var where []string
	for range n {
		where = append(where, p.line())
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	enemy := start(t, harness.Command{Args: append(attacker, self), Env: []string{"ATTACK=" + strings.Join(where, " ")}})
	if got := enemy.line(); got != "holding" {
		t.Fatal(got)
	}
	before := p.exchange() // the first connections of the job are made behind those that say nothing
	if got := enemy.line(); got != "done" {
		t.Fatal(got)
	}
	after := p.exchange()
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the job: %v", err)
	}
	enemy.in.Close()
	enemy.cmd.Wait() //nolint:errcheck // its lines count
	if after > before+200 {
		t.Errorf("a rank has %d descriptors open, %d before", after, before)
	}
	text, err := os.ReadFile(counters)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]int{}
	for _, m := range regexp.MustCompile(`(strangers|old|keyless|slow) (\d+)`).FindAllStringSubmatch(string(text), -1) {
		v, _ := strconv.Atoi(m[2])
		sums[m[1]] += v
	}
	for kind, least := range map[string]int{"strangers": frames / volley, "old": old, "keyless": replayed, "slow": halfOpen - 128*n} {
		if sums[kind] < least*9/10 { // a caller may be given up for a later one before it is answered
			t.Errorf("%d %s are counted, of at least %d", sums[kind], kind, least)
		}
	}
	t.Logf("counted: %v; descriptors of a rank: %d, %d", sums, before, after)
}

func TestSameHost(t *testing.T) {
	program := harness.Compile(t, "attack/target", []string{"testdata/target.c"})
	besiege(t, 4, harness.Command{Args: harness.Spxrun(t, "4", program), Env: []string{"SPX_TRANSPORTS=tcp"}})
}

// The job is on two hosts, and the attacker on a third.
func TestNetwork(t *testing.T) {
	script := filepath.Join(harness.Root(), "scripts/hosts")
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	bed := fmt.Sprintf("x%x-", os.Getpid()%0x100000)
	if out, err := exec.Command(script, "up", bed, "3").CombinedOutput(); err != nil {
		t.Skipf("namespaces cannot be made here: %v\n%s", err, out)
	}
	t.Cleanup(func() { exec.Command(script, "down", bed).Run() }) //nolint:errcheck // what is left is seen by the next
	program := harness.Compile(t, "attack/target", []string{"testdata/target.c"})
	besiege(t, 4, harness.Command{Args: []string{script, "on", bed + "1", filepath.Join(harness.Build(t), "bin/spxrun"), "--rsh", script + " rsh",
		"-host", bed + "1:2," + bed + "2:2", "-n", "4", program}, Env: []string{"SPX_SPIN=0"}}, script, "on", bed+"3")
}
