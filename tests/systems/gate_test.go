package systems

import (
	"bufio"
	"fmt"
	"io"
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

	"libspx/tests/harness"
)

// crew is who has which rank of the radar, as its programs tell.
type crew struct {
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
	c.killed[name] = monotonic()
	return syscall.Kill(c.at[name], syscall.SIGKILL) == nil
}

// flight is a radar with standbys that runs.
type flight struct {
	crew
	dir, mark  string
	cmd        *exec.Cmd
	rest, said strings.Builder
	ended      chan struct{}
}

// takeOff starts examples/radar/standby.toml with so many frames, one every 20 ms, and standbys for each stage, and computes what is to come of it.
func takeOff(t *testing.T, frames, standbys, limit int) *flight {
	t.Helper()
	f := &flight{crew: crew{at: map[string]int{}, killed: map[string]time.Duration{}}, dir: radar(t), mark: harness.Mark(t), ended: make(chan struct{})}
	text, err := os.ReadFile(filepath.Join(harness.Root(), "examples/radar/standby.toml"))
	if err != nil {
		t.Fatal(err)
	}
	file := strings.ReplaceAll(strings.ReplaceAll(string(text), `args = ["200"]`, fmt.Sprintf(`args = ["%d", "20"]`, frames)), "standbys = 2", fmt.Sprintf("standbys = %d", standbys))
	if err := os.WriteFile(filepath.Join(f.dir, "gate.toml"), []byte(file), 0o666); err != nil {
		t.Fatal(err)
	}
	in(t, f.dir, "./alone", strconv.Itoa(frames), "expected.txt", "expected.png")
	f.cmd = exec.Command(filepath.Join(harness.Build(t), "bin/spxrun"), "--timeout", strconv.Itoa(limit), "--system", "gate.toml")
	f.cmd.Dir, f.cmd.Stderr = f.dir, &f.said
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

// land waits for the end, and looks at what came of it: complete, in order, nothing twice.
func (f *flight) land(t *testing.T, frames int) {
	t.Helper()
	<-f.ended
	if err := f.cmd.Wait(); err != nil || !strings.Contains(f.rest.String(), fmt.Sprintf("%d frames, ", frames)) {
		t.Fatalf("%v\n%s\n%s", err, f.rest.String(), f.said.String())
	}
	same(t, f.dir, "report.txt", "expected.txt")
	same(t, f.dir, "radar.png", "expected.png")
}

// times says what takeovers took: median and worst.
func (f *flight) times() string {
	slices.Sort(f.took)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return fmt.Sprintf("%d takeovers: median %.1f ms, worst %.1f ms", len(f.took), ms(f.took[len(f.took)/2]), ms(f.took[len(f.took)-1]))
}

// Each rank of the radar dies, one after another, each as soon as the one before was taken over and some frames have gone by. Nobody sends anything again after a time: what is lost on the way to an
// I/O process that has not heard yet who has the rank, or on its way back, is waited for in vain.
func TestRadarLosesEachRank(t *testing.T) {
	const frames = 200
	f := takeOff(t, frames, 2, 40)
	for _, stage := range []string{"input", "compress", "doppler", "detect"} {
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
	}
	f.land(t, frames)
	if len(f.took) < 8 {
		t.Fatalf("%d ranks were taken over\n%s", len(f.took), f.said.String())
	}
	t.Log(f.times())
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

// The radar while random ranks and I/O processes are killed: what it reports is complete, in order, and nothing twice. SPX_GATE_SECONDS says for how long: without it
// nothing is done. SPX_GATE_SEED says which are killed.
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
	frames := seconds * 80
	f := takeOff(t, frames, 4+seconds/6, 2*seconds+20)
	iops, ranks := strike(f, rand.New(rand.NewSource(seed)), seconds)
	f.land(t, frames)
	if ranks == 0 || iops == 0 || len(f.took) < ranks/2 {
		t.Fatalf("%d ranks and %d I/O processes were killed, and %d taken over\n%s", ranks, iops, len(f.took), f.said.String())
	}
	t.Logf("%d frames; %d ranks and %d I/O processes killed; %s", frames, ranks, iops, f.times())
}

// strike kills until the time is over or the system has ended: mostly ranks; of the I/O processes at most half.
func strike(f *flight, random *rand.Rand, seconds int) (iops, ranks int) {
	const links, each = 3, 4
	over := time.After(time.Duration(seconds) * time.Second)
	for {
		pause := time.Duration(500+random.Intn(1000)) * time.Millisecond
		if seconds > 60 {
			pause = time.Duration(2000+random.Intn(2500)) * time.Millisecond
		}
		select {
		case <-f.ended:
			return iops, ranks
		case <-over:
			return iops, ranks
		case <-time.After(pause):
		}
		relays, names := harness.Marked(f.mark, "spx-iop"), f.names()
		if random.Intn(4) == 0 && len(relays) > links*each/2 || iops == 0 && ranks > 2 && len(relays) > 0 {
			if syscall.Kill(relays[random.Intn(len(relays))], syscall.SIGKILL) == nil {
				iops++
			}
		} else if len(names) > 0 && f.kill(names[random.Intn(len(names))]) {
			ranks++
		}
	}
}
