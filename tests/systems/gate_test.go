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

// kill ends a rank that nobody takes over just now; false: there is none.
func (c *crew) kill(random *rand.Rand) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for name := range c.at {
		if _, down := c.killed[name]; !down {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return false
	}
	slices.Sort(names)
	name := names[random.Intn(len(names))]
	c.killed[name] = monotonic()
	return syscall.Kill(c.at[name], syscall.SIGKILL) == nil
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
	random := rand.New(rand.NewSource(seed))
	dir, mark := radar(t), harness.Mark(t)
	frames := strconv.Itoa(seconds * 80)
	text, err := os.ReadFile(filepath.Join(harness.Root(), "examples/radar/standby.toml"))
	if err != nil {
		t.Fatal(err)
	}
	standbys := strconv.Itoa(4 + seconds/6)
	file := strings.ReplaceAll(strings.ReplaceAll(string(text), `args = ["200"]`, `args = ["`+frames+`", "20"]`), "standbys = 2", "standbys = "+standbys)
	if err := os.WriteFile(filepath.Join(dir, "gate.toml"), []byte(file), 0o666); err != nil {
		t.Fatal(err)
	}
	in(t, dir, "./alone", frames, "expected.txt", "expected.png")
	limit := strconv.Itoa(2*seconds + 20)
	cmd := exec.Command(filepath.Join(harness.Build(t), "bin/spxrun"), "--timeout", limit, "--system", "gate.toml")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "RADAR_TIMES=1", mark)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var rest, said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &crew{at: map[string]int{}, killed: map[string]time.Duration{}}
	ended := make(chan struct{})
	go func() {
		c.read(out, &rest)
		close(ended)
	}()
	iops, ranks := strike(c, random, mark, seconds, ended)
	<-ended
	if err := cmd.Wait(); err != nil || !strings.Contains(rest.String(), frames+" frames, ") {
		t.Fatalf("%v\n%s\n%s", err, rest.String(), said.String())
	}
	same(t, dir, "report.txt", "expected.txt")
	same(t, dir, "radar.png", "expected.png")
	slices.Sort(c.took)
	if ranks == 0 || iops == 0 || len(c.took) < ranks/2 {
		t.Fatalf("%d ranks and %d I/O processes were killed, and %d taken over\n%s", ranks, iops, len(c.took), said.String())
	}
	t.Logf("%s frames; %d ranks and %d I/O processes killed; takeovers: median %.1f ms, worst %.1f ms", frames, ranks, iops, float64(c.took[len(c.took)/2].Microseconds())/1000,
		float64(c.took[len(c.took)-1].Microseconds())/1000)
}

// strike kills until the time is over or the system has ended: mostly ranks; of the I/O processes at most half.
func strike(c *crew, random *rand.Rand, mark string, seconds int, ended chan struct{}) (iops, ranks int) {
	const links, each = 3, 4
	over := time.After(time.Duration(seconds) * time.Second)
	for {
		pause := time.Duration(500+random.Intn(1000)) * time.Millisecond
		if seconds > 60 {
			pause = time.Duration(2000+random.Intn(2500)) * time.Millisecond
		}
		select {
		case <-ended:
			return iops, ranks
		case <-over:
			return iops, ranks
		case <-time.After(pause):
		}
		relays := harness.Marked(mark, "spx-iop")
		if random.Intn(4) == 0 && len(relays) > links*each/2 || iops == 0 && ranks > 2 && len(relays) > 0 {
			if syscall.Kill(relays[random.Intn(len(relays))], syscall.SIGKILL) == nil {
				iops++
			}
		} else if c.kill(random) {
			ranks++
		}
	}
}
