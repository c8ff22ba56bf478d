package systems

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"libspx/launch/service"
	"libspx/tests/harness"
)

// crew is who has which rank of the radar, as its programs tell.
type crew struct {
	here   func(stage string, pid int) int // the number that a process of a stage has on this host
	mu     sync.Mutex
	at     map[string]int           // process by stage and rank
	killed map[string]time.Duration // CLOCK_MONOTONIC
	took   []time.Duration
}

func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

// read follows what the programs print: "here STAGE RANK PID AGAIN NANOSECONDS".
func (c *crew) read(out io.Reader, rest *strings.Builder) {
	for s := bufio.NewScanner(out); s.Scan(); {
		var stage, rank string
		var pid, again int
		var now int64
		if n, _ := fmt.Sscanf(s.Text(), "here %s %s %d %d %d", &stage, &rank, &pid, &again, &now); n != 5 {
			fmt.Fprintln(rest, s.Text())
			continue
		}
		c.mu.Lock()
		name := stage + " " + rank
		if died, ok := c.killed[name]; ok && again == 1 {
			c.took = append(c.took, time.Duration(now)-died)
			delete(c.killed, name)
		}
		c.at[name] = pid
		c.mu.Unlock()
	}
}

// names lists the ranks that nobody takes over just now.
func (c *crew) names() (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name := range c.at {
		if _, down := c.killed[name]; !down {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// kill ends the process that has a rank.
func (c *crew) kill(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	pid := c.here(stage(name), c.at[name])
	c.killed[name] = monotonic()
	return pid > 0 && syscall.Kill(pid, syscall.SIGKILL) == nil
}

// flight is a system with standbys that runs, and whose programs tell who has which rank.
type flight struct {
	crew
	dir, mark  string
	cmd        *exec.Cmd
	rest, said strings.Builder
	ended      chan struct{}
	hosts      *testHosts
	status     []string // the command that tells who the masters are
}

// testHosts are hosts of scripts/hosts; nil: all runs on this host.
type testHosts struct {
	*harness.Bed
	t              *testing.T
	script, prefix string
	n              int
}

func newHosts(t *testing.T, n int) *testHosts {
	t.Helper()
	b := harness.NewBed(t, "g", n, nil)
	return &testHosts{Bed: b, t: t, script: harness.HostsScript(), prefix: b.Name, n: n}
}

// here is the number that a process of a host, by its name, has on this one; 0: it has ended.
func (h *testHosts) here(host string, pid int) int {
	if h == nil {
		return pid
	}
	for i := range h.n {
		if h.name(i) == host {
			return h.Outside(i+1, pid)
		}
	}
	h.t.Fatalf("there is no host %q", host)
	return 0
}

func (h *testHosts) run(args ...string) {
	h.t.Helper()
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		h.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

func (h *testHosts) name(i int) string { return h.prefix + strconv.Itoa(i%h.n+1) }

// empty waits until nothing runs on the hosts.
func (h *testHosts) empty(t *testing.T) {
	t.Helper()
	if h == nil {
		return
	}
	for i := range h.n {
		for until := time.Now().Add(10 * time.Second); len(h.Pids(i+1)) > 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Errorf("on host %d there are still the processes %v", i+1, h.Pids(i+1))
				return
			}
		}
	}
}

// cut takes a host off the network for a while: its port of the switch lets nothing through (state 0), and then everything again (3).
func (h *testHosts) cut(i int, pause time.Duration) error {
	for _, state := range []string{"0", "3"} {
		if err := exec.Command("ip", "netns", "exec", h.prefix+"sw", "bridge", "link", "set", "dev", fmt.Sprintf("port%d", i%h.n+1), "state", state).Run(); err != nil {
			return err
		}
		if state == "0" {
			time.Sleep(pause)
		}
	}
	return nil
}

// gateName is what the systems of this test are called: others may run on this machine.
func gateName() string { return fmt.Sprintf("gate%d", os.Getpid()) }

// launch starts a system in a folder, where its file is written to.
func launch(t *testing.T, dir, text string, limit int, on *testHosts) *flight {
	t.Helper()
	f := &flight{hosts: on, crew: crew{here: func(_ string, pid int) int { return pid }, at: map[string]int{}, killed: map[string]time.Duration{}}, dir: dir, mark: harness.Mark(t), ended: make(chan struct{})}
	if err := os.WriteFile(filepath.Join(dir, "gate.toml"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(harness.Build(t), "bin")
	words := []string{filepath.Join(bin, "spxrun"), "--timeout", strconv.Itoa(limit), "--system", "gate.toml"}
	f.status = []string{filepath.Join(bin, "spxctl"), "system", "status", gateName(), "--json"}
	if on != nil {
		here := []string{on.script, "on", on.name(0)}
		words = slices.Concat(here, words, []string{"--rsh", on.script + " rsh"})
		f.status = slices.Concat(here, f.status)
	}
	f.cmd = exec.Command(words[0], words[1:]...)
	f.cmd.Dir, f.cmd.Stderr = dir, &f.said
	f.cmd.Env = append(os.Environ(), "RADAR_TIMES=1", f.mark)
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		f.read(out, &f.rest)
		close(f.ended)
	}()
	return f
}

// wait waits for the end, which is to be a good one.
func (f *flight) wait(t *testing.T, words string) {
	t.Helper()
	<-f.ended
	if err := f.cmd.Wait(); err != nil || !strings.Contains(f.rest.String(), words) {
		t.Fatalf("%v\n%s\n%s", err, f.rest.String(), f.said.String())
	}
}

var stages = []string{"input", "compress", "doppler", "detect"}

// takeOff starts examples/radar/standby.toml with so many frames, one every 20 ms, standbys for each stage, and I/O processes that are started again, and computes what is to come of it.
// With hosts each stage is on another one.
func takeOff(t *testing.T, frames, standbys, limit int, on *testHosts) *flight {
	t.Helper()
	dir := radar(t)
	text, err := os.ReadFile(filepath.Join(harness.Root(), "examples/radar/standby.toml"))
	if err != nil {
		t.Fatal(err)
	}
	within(t, 50*time.Second+time.Duration(frames)*10*time.Millisecond, dir, "./alone", strconv.Itoa(frames), "expected.txt", "expected.png")
	file := strings.NewReplacer(`args = ["200"]`, fmt.Sprintf(`args = ["%d", "20"]`, frames), "standbys = 2", fmt.Sprintf("standbys = %d", standbys),
		`iop = "degrade"`, "iop = \"restart\"\nrestarts = 1000").Replace(string(text))
	for i, c := range stages {
		if on != nil {
			file = strings.Replace(file, fmt.Sprintf("name = %q\n", c), fmt.Sprintf("name = %q\nhosts = [\"%s:%d\"]\n", c, on.name(i), 2+standbys), 1)
		}
	}
	f := launch(t, dir, fmt.Sprintf("[system]\nname = %q\n", gateName())+file, limit, on)
	if on != nil {
		f.here = func(stage string, pid int) int { return on.here(on.name(slices.Index(stages, stage)), pid) }
	}
	return f
}

// land waits for the end, and looks at what came of it: complete, in order, nothing twice.
func (f *flight) land(t *testing.T, frames int) {
	t.Helper()
	f.wait(t, fmt.Sprintf("%d frames, ", frames))
	same(t, f.dir, "report.txt", "expected.txt")
	same(t, f.dir, "radar.png", "expected.png")
}

// times says what takeovers took: median and worst.
func (f *flight) times() string {
	slices.Sort(f.took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return fmt.Sprintf("%d takeovers: median %.1f ms, worst %.1f ms", len(f.took), ms(f.took[len(f.took)/2]), ms(f.took[len(f.took)-1]))
}

// I/O processes of a system die on every host, are started again, and die again.
func TestStartedAgainDiesAgain(t *testing.T) {
	const frames = 200
	t.Setenv("SPX_HEARTBEAT_LIMIT", "10000") // that processors are busy is not the end of a host
	f := takeOff(t, frames, 1, 40, newHosts(t, 3))
	f.until(func() bool { return len(f.names()) == 8 && len(harness.Marked(f.mark, "spx-iop")) == 12 })
	known := harness.Marked(f.mark, "spx-iop")
	victims := map[string]int{} // by network namespace
	for _, pid := range known {
		if host, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil {
			victims[host] = pid
		}
	}
	if len(victims) != 3 {
		t.Errorf("I/O processes are on %d hosts", len(victims))
	}
	next := slices.Collect(maps.Values(victims))
	for range 2 {
		for _, pid := range next {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		next = nil
		f.until(func() bool {
			for _, pid := range harness.Marked(f.mark, "spx-iop") {
				if !slices.Contains(known, pid) {
					known, next = append(known, pid), append(next, pid)
				}
			}
			return len(next) == len(victims)
		})
	}
	f.land(t, frames)
	if n := strings.Count(f.said.String(), "is started again (2 of"); n != len(victims) {
		t.Errorf("%d I/O processes were started again twice\n%s", n, f.said.String())
	}
}

// Each rank of the radar dies, one after another, each as soon as the one before was taken over and some frames have gone by. Nobody sends anything again after a time: what is lost on the way to an
// I/O process that has not heard yet who has the rank, or on its way back, is waited for in vain. On several hosts one is off the network now and then, too, for less time than it takes to give it up.
func TestRadarLosesEachRank(t *testing.T) {
	for _, hosts := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d hosts", hosts), func(t *testing.T) {
			frames := 350 + 100*hosts // beside other tests a cut takes as long as 100
			var on *testHosts
			if hosts > 1 {
				on = newHosts(t, hosts)
				t.Setenv("SPX_HEARTBEAT_LIMIT", "10000") // beside other tests it takes up to a second until a host is back
			}
			f := takeOff(t, frames, 2, 120, on)
			for i, stage := range stages {
				for _, rank := range []string{"0", "1"} {
					name, before := stage+" "+rank, f.size("report.txt")
					f.until(func() bool {
						return slices.Contains(f.names(), name) && len(f.names()) == 8 && f.size("report.txt") > before
					})
					if f.over() {
						break
					}
					f.kill(name)
				}
				if on == nil {
					continue
				}
				if err := on.cut(i, 200*time.Millisecond); err != nil {
					t.Fatal(err)
				}
			}
			f.land(t, frames)
			if len(f.took) < 8 {
				t.Fatalf("%d ranks were taken over\n%s", len(f.took), f.said.String())
			}
			t.Log(f.times())
		})
	}
}

func (f *flight) over() bool {
	select {
	case <-f.ended:
		return true
	default:
		return false
	}
}

// until waits for something that the programs do, or until they have ended.
func (f *flight) until(done func() bool) {
	for !f.over() && !done() {
		time.Sleep(time.Millisecond)
	}
}

func (f *flight) size(file string) int64 {
	info, err := os.Stat(filepath.Join(f.dir, file))
	if err != nil {
		return 0
	}
	return info.Size()
}

// I/O processes die and are started again, one after another, while another one stands still, and ranks are taken over meanwhile. What a rank sends keeps its order where the policy gives it one: by tag, or all of it; nothing is missing,
// and nothing comes twice.
func TestOrderSurvives(t *testing.T) {
	const messages = 2500
	order := program(t, "order")
	for _, policy := range []string{"tag", "key"} {
		t.Run(policy, func(t *testing.T) {
			text := "[failure]\niop = \"restart\"\nrestarts = 1000\n"
			for _, what := range []string{"send", "receive"} {
				text += fmt.Sprintf("[[cluster]]\nname = %[1]q\nprogram = %[2]q\nargs = [%[1]q, \"%[3]d\"]\nranks = 2\nstandbys = 6\ntakeover = \"transparent\"\n", what, order, messages)
			}
			f := launch(t, t.TempDir(), text+fmt.Sprintf("[[link]]\nfrom = \"send\"\nto = \"receive\"\niops = 3\nchoice = %q\n", policy), 60, nil)
			f.until(func() bool { return len(f.names()) == 4 })
			random, iops, ranks := rand.New(rand.NewSource(1)), 0, 0
			for turn := 0; turn < 18 && !f.over(); turn++ {
				select {
				case <-f.ended:
				case <-time.After(100 * time.Millisecond):
				}
				relays, names := harness.Marked(f.mark, "spx-iop"), f.names()
				random.Shuffle(len(relays), func(i, k int) { relays[i], relays[k] = relays[k], relays[i] })
				for _, r := range relays {
					_ = syscall.Kill(r, syscall.SIGCONT)
				}
				if turn%4 == 3 && len(names) > 0 && f.kill(names[random.Intn(len(names))]) {
					ranks++
				} else if len(relays) > 1 && syscall.Kill(relays[1], syscall.SIGSTOP) == nil && syscall.Kill(relays[0], syscall.SIGKILL) == nil {
					iops++
				}
			}
			for _, r := range harness.Marked(f.mark, "spx-iop") {
				_ = syscall.Kill(r, syscall.SIGCONT)
			}
			f.wait(t, fmt.Sprintf("%d messages, all of 1 senders\n", messages))
			if n := strings.Count(f.rest.String(), " messages, all of 1 senders"); n != 2 || iops < 8 || ranks < 3 {
				t.Fatalf("%d receivers have all; %d I/O processes and %d ranks were killed\n%s\n%s", n, iops, ranks, f.rest.String(), f.said.String())
			}
			t.Logf("%d I/O processes killed; %s", iops, f.times())
		})
	}
}

// The radar while random ranks and I/O processes, the system's master and those of clusters are killed, on one host, and on three, which are off the network for moments as well: what it reports is complete, in order, and
// nothing twice. SPX_GATE_SECONDS says for how long: without it nothing is done. SPX_GATE_SEED says what is done when.
func TestRadarSurvives(t *testing.T) {
	if os.Getenv("SPX_GATE_SECONDS") == "" {
		t.Skip("SPX_GATE_SECONDS says for how long")
	}
	seconds, seed := 8, time.Now().UnixNano()
	for name, v := range map[string]any{"SPX_GATE_SECONDS": &seconds, "SPX_GATE_SEED": &seed} {
		if text := os.Getenv(name); text != "" {
			if _, err := fmt.Sscan(text, v); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	t.Logf("SPX_GATE_SEED=%d", seed)
	t.Run("one host", func(t *testing.T) { survives(t, seconds, seed, nil) })
	t.Run("three hosts", func(t *testing.T) { survives(t, seconds, seed, newHosts(t, 3)) })
}

func survives(t *testing.T, seconds int, seed int64, on *testHosts) {
	standbys, frames := 4+seconds/12, seconds*100
	f := takeOff(t, frames, standbys, 3*seconds+20, on)
	h := f.strike(t, rand.New(rand.NewSource(seed)), seconds, standbys)
	f.land(t, frames)
	if h.ranks == 0 || h.iops == 0 || h.masters == 0 || h.clusters == 0 || len(f.took) < h.ranks-1 || on != nil && h.cuts == 0 {
		t.Fatalf("%v, and %d ranks taken over\n%s", h, len(f.took), f.said.String())
	}
	if n := strings.Count(f.said.String(), "the master of host "); n == 0 || strings.Contains(f.said.String(), "no master of the system") {
		t.Errorf("%d deaths of masters were told\n%s", n, f.said.String())
	}
	if left := harness.Marked(f.mark, ""); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	on.empty(t)
	t.Logf("%d frames; %v; %s", frames, h, f.times())
}

// harm is what was done.
type harm struct{ ranks, iops, masters, clusters, cuts int }

func (h harm) String() string {
	return fmt.Sprintf("killed: %d ranks, %d I/O processes, %d times the system's master, %d times a cluster's; %d times a host was off the network", h.ranks, h.iops, h.masters, h.clusters, h.cuts)
}

// strike does harm until the time is over or the system has ended, every few seconds, mostly several things at once: to ranks as long as their stage has standbys.
func (f *flight) strike(t *testing.T, random *rand.Rand, seconds, standbys int) (h harm) {
	died := map[string]int{}
	over := time.After(time.Duration(seconds) * time.Second)
	for turn := 0; ; turn++ {
		pause := time.Duration(500+random.Intn(1000)) * time.Millisecond
		if seconds > 60 {
			pause = time.Duration(2000+random.Intn(2000)) * time.Millisecond
		}
		select {
		case <-f.ended:
			return h
		case <-over:
			return h
		case <-time.After(pause):
		}
		now := func(often, so int) bool { return random.Intn(often) == 0 || turn > 1 && so == 0 }
		cut := make(chan error, 1)
		if f.hosts != nil && now(2, h.cuts) {
			h.cuts++
			host, pause := random.Intn(f.hosts.n), time.Duration(100+random.Intn(300))*time.Millisecond
			go func() { cut <- f.hosts.cut(host, pause) }()
		} else {
			cut <- nil
		}
		if now(2, h.masters) && f.killMaster(t, -1) {
			h.masters++
		}
		if now(2, h.clusters) && f.killMaster(t, random.Intn(4)) {
			h.clusters++
		}
		if relays := harness.Marked(f.mark, "spx-iop"); now(2, h.iops) && len(relays) > 0 && syscall.Kill(relays[random.Intn(len(relays))], syscall.SIGKILL) == nil {
			h.iops++
		}
		names := slices.DeleteFunc(f.names(), func(name string) bool { return died[stage(name)] == standbys })
		if random.Intn(3) > 0 && len(names) > 0 {
			name := names[random.Intn(len(names))]
			if died[stage(name)]++; f.kill(name) {
				h.ranks++
			}
		}
		if err := <-cut; err != nil {
			t.Fatal(err)
		}
	}
}

// killMaster kills the process that is the master of a cluster, or of the system (-1); false: there is none now.
func (f *flight) killMaster(t *testing.T, cluster int) bool {
	text, err := exec.Command(f.status[0], f.status[1:]...).Output()
	var about service.About
	if err != nil || json.Unmarshal(text, &about) != nil || about.System == nil {
		if !f.over() {
			t.Errorf("who the masters are is not known: %v\n%s", err, text)
		}
		return false
	}
	host, pid := about.System.Master, about.System.MasterPid
	if cluster >= 0 {
		host, pid = about.System.Parts[cluster].Master, about.System.Parts[cluster].MasterPid
	}
	if pid > 0 {
		pid = f.hosts.here(host, pid)
	}
	return pid > 0 && syscall.Kill(pid, syscall.SIGKILL) == nil
}

func stage(name string) string {
	before, _, _ := strings.Cut(name, " ")
	return before
}
