package hosts

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"libspx/net/topo"
	"libspx/tests/harness"
)

// newCluster makes so many hosts on 8 switches, joined hierarchically like those of the paper's figure 3, in an order that the seed says.
func newCluster(t *testing.T, hosts int, seed uint64) (*bed, *topo.Tree) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 8))
	truth := &topo.Tree{N: 8, Links: [][2]int{{0, 1}, {0, 2}, {0, 3}, {3, 4}, {3, 5}, {5, 6}, {5, 7}}}
	for h := range hosts {
		truth.Of = append(truth.Of, h%truth.N)
	}
	r.Shuffle(hosts, func(i, j int) { truth.Of[i], truth.Of[j] = truth.Of[j], truth.Of[i] })
	return newLinked(t, truth.Of, truth.Links, 20, 2000), truth
}

// busy keeps each processor busy until the test ends.
func busy(t *testing.T) {
	t.Helper()
	for range runtime.NumCPU() {
		c := exec.Command("sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill(); c.Wait() }) //nolint:errcheck // it was killed
	}
}

// fromEnv is a number of the environment.
func fromEnv(t *testing.T, name string, preset int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return preset
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// perNetwork is how often a network is measured before another one is made.
const perNetwork = 10

// On hosts whose processors are busy with other work the answer is right, or that it is not sure; in most cases it is right. SPX_TOPOLOGY_RUNS says how often it is measured, SPX_TOPOLOGY_HOSTS between how
// many hosts, SPX_TOPOLOGY_SEED which network is the first.
func TestTopologyUnderLoad(t *testing.T) {
	preset := 0
	if harness.Full() {
		preset = 1
	}
	runs, hosts, seed := fromEnv(t, "SPX_TOPOLOGY_RUNS", preset), fromEnv(t, "SPX_TOPOLOGY_HOSTS", 32), fromEnv(t, "SPX_TOPOLOGY_SEED", 1)
	if runs == 0 {
		t.Skip("in the full tests, and by make topology")
	}
	busy(t)
	groups, links := 0, 0
	for done := 0; done < runs; done += perNetwork {
		t.Run(fmt.Sprintf("seed%d", seed), func(t *testing.T) {
			b, truth := newCluster(t, hosts, uint64(seed))
			for range min(perNetwork, runs-done) {
				g, l := b.looks(truth)
				if g {
					groups++
				}
				if l {
					links++
				}
			}
		})
		seed++
	}
	t.Logf("%d hosts, %d runs: groups sure and right in %d, links in %d", hosts, runs, groups, links)
	if runs >= 4 && groups < runs/2 {
		t.Errorf("groups are sure in %d of %d runs", groups, runs)
	}
}

// looks measures once, and says of what it is sure: that has to be right, and groups are kept if they are sure.
func (b *bed) looks(truth *topo.Tree) (groups, links bool) {
	b.t.Helper()
	cache, began := b.t.TempDir(), time.Now()
	n := b.measured(cache, "--host", b.names(b.N))
	b.compare(truth, n)
	groups, links = n.sure()
	if _, err := os.Stat(filepath.Join(cache, "libspx/networks.json")); groups != (err == nil) {
		b.t.Errorf("groups are %s, and kept: %v", n.GroupsAre, err)
	}
	b.t.Logf("groups are %s, links %s, in %.0f s: %+v", n.GroupsAre, n.LinksAre, time.Since(began).Seconds(), n.Cost)
	return groups, links
}

// 112 hosts on 8 switches, as in the paper, are found from measured times alone: another network each time, SPX_TOPOLOGY_RUNS of them.
func TestTopologyOfManyHosts(t *testing.T) {
	runs, seed := fromEnv(t, "SPX_TOPOLOGY_RUNS", 0), fromEnv(t, "SPX_TOPOLOGY_SEED", 1)
	if runs == 0 {
		t.Skip("make topology makes 112 hosts")
	}
	for range runs {
		t.Run(fmt.Sprintf("seed%d", seed), func(t *testing.T) {
			b, truth := newCluster(t, 112, uint64(seed))
			began := time.Now()
			got := b.found(b.Dir(), "--host", b.names(b.N))
			b.compare(truth, got)
			t.Logf("right, in %.0f s: %d round-trip times, %d throughputs", time.Since(began).Seconds(), got.Cost.Pings, got.Cost.Streams)
		})
		seed++
	}
}
