package hosts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/net/topo"
	"libspx/tests/harness"

	"github.com/google/go-cmp/cmp"
)

// network is what spxctl topology --json prints.
type network struct {
	Hosts    []string `json:"hosts"`
	Of       []int    `json:"switch"`
	Links    [][2]int `json:"links"`
	Switches int      `json:"switches"`
	Measured time.Time
	Cost     struct{ Pings, Streams int }
}

// splits names the network by what can be observed of it, with the hosts in the order of their numbers.
func (n *network) splits(b *bed) []string {
	t := &topo.Tree{N: n.Switches, Links: n.Links}
	for i := range n.Hosts {
		at := slices.Index(n.Hosts, b.host(i+1))
		if at < 0 {
			b.t.Fatalf("host %s is not in %v", b.host(i+1), n.Hosts)
		}
		t.Of = append(t.Of, n.Of[at])
	}
	return t.Splits()
}

// newNetwork makes 8 hosts on 3 switches, in an order and with a middle that the seed says: one of the three, or a switch without hosts.
// Links between switches carry 20 Mbit/s and take 2 ms.
func newNetwork(t *testing.T, seed uint64) (*bed, *topo.Tree) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	truth := &topo.Tree{Of: []int{0, 0, 0, 1, 1, 1, 2, 2}, N: 3, Links: [][2]int{{0, 1}, {1, 2}}}
	if seed%4 == 3 {
		truth.N, truth.Links = 4, [][2]int{{0, 3}, {1, 3}, {2, 3}}
	}
	r.Shuffle(8, func(i, j int) { truth.Of[i], truth.Of[j] = truth.Of[j], truth.Of[i] })
	name := r.Perm(3)
	for i, s := range truth.Of {
		truth.Of[i] = name[s]
	}
	return newLinked(t, truth.Of, truth.Links, 20, 2000), truth
}

// newLinked makes hosts, each on the switch that `of` says, and links between switches, which carry so many Mbit/s and take so many microseconds.
func newLinked(t *testing.T, of []int, links [][2]int, mbit, us int) *bed {
	t.Helper()
	var switches, pairs []string
	for _, s := range of {
		switches = append(switches, strconv.Itoa(s))
	}
	for _, l := range links {
		pairs = append(pairs, fmt.Sprintf("%d-%d", l[0], l[1]))
	}
	return newBedBy(t, len(of), func(name string) []string {
		return []string{"net", name, program(t, "links"), strconv.Itoa(mbit), strconv.Itoa(us), strings.Join(switches, " "), strings.Join(pairs, " ")}
	})
}

// topology runs spxctl topology on host 1.
func (b *bed) topology(cache string, args ...string) harness.Outcome {
	b.t.Helper()
	words := append([]string{script(), "on", b.host(1), filepath.Join(harness.Build(b.t), "bin/spxctl"), "topology", "--rsh", script() + " rsh"}, args...)
	return harness.Run(b.t, harness.Command{Args: words, Env: []string{"XDG_CACHE_HOME=" + cache}, Limit: 200 * time.Second})
}

func (b *bed) names(n int) string {
	var list []string
	for i := range n {
		list = append(list, b.host(i+1))
	}
	return strings.Join(list, ",")
}

func (b *bed) measured(cache string, args ...string) (n network) {
	b.t.Helper()
	o := b.topology(cache, append(args, "--json")...)
	if o.Status != 0 || json.Unmarshal([]byte(o.Stdout), &n) != nil {
		b.t.Fatalf("spxctl topology: exit status %d (late: %v)\n%s", o.Status, o.Late, o.Text())
	}
	return n
}

// idleTime begins to look what share of the time the processors of this machine have nothing to do.
func idleTime() (since func() float64) {
	read := func() (idle, all float64) {
		text, err := os.ReadFile("/proc/stat")
		if err != nil {
			return 0, 1
		}
		first, _, _ := strings.Cut(string(text), "\n")
		for i, word := range strings.Fields(first)[1:] {
			n, _ := strconv.ParseFloat(word, 64) // the kernel's
			if all += n; i == 3 || i == 4 {      // idle, and waiting for a disk
				idle += n
			}
		}
		return idle, all
	}
	idle, all := read()
	return func() float64 {
		i, a := read()
		return (i - idle) / max(a-all, 1)
	}
}

// The network is found from measured times alone: once in each run of the tests, 20 times by make topology.
func TestTopologyIsFound(t *testing.T) {
	runs := 1
	if text := os.Getenv("SPX_TOPOLOGY_RUNS"); text != "" {
		var err error
		if runs, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for seed := range runs {
		t.Run(fmt.Sprintf("seed%d", seed), func(t *testing.T) {
			b, truth := newNetwork(t, uint64(seed))
			for try := 1; ; try++ {
				idle := idleTime()
				got := b.measured(b.Dir(), "--host", b.names(8))
				rest := idle()
				diff := cmp.Diff(truth.Splits(), got.splits(b))
				if diff != "" && rest < 0.5 && try < 5 {
					t.Logf("wrong, but the processors had only %.0f %% of the time to spare for what takes hardly any: measured again", 100*rest)
					continue
				}
				if diff != "" {
					t.Errorf("want\n%sgot\n%v %v\n%s", truth, got.Of, got.Links, diff)
				}
				t.Logf("%d round-trip times, %d throughputs", got.Cost.Pings, got.Cost.Streams)
				break
			}
		})
	}
}

// What is known is used: by the next look, by a look at more hosts, and by jobs.
func TestTopologyIsKept(t *testing.T) {
	b, truth := newNetwork(t, 3)
	cache := t.TempDir()
	if o := b.topology(cache); o.Status != 1 || !strings.Contains(o.Stderr, "no network is known") {
		t.Errorf("nothing is known yet: %s", o.Text())
	}
	first := b.measured(cache, "--host", b.names(7))
	again := b.measured(cache, "--host", b.names(6))
	if !again.Measured.Equal(first.Measured) || len(again.Hosts) != 6 {
		t.Errorf("6 of 7 hosts: %+v after %+v", again, first)
	}
	more := b.measured(cache, "--host", b.names(8))
	if more.Cost.Streams >= first.Cost.Streams && first.Cost.Streams > 2 || more.Cost.Pings >= 8*7/2 {
		t.Errorf("one more host took %+v, 7 hosts %+v", more.Cost, first.Cost)
	}
	if diff := cmp.Diff(truth.Splits(), more.splits(b)); diff != "" {
		t.Errorf("want\n%sgot\n%v %v\n%s", truth, more.Of, more.Links, diff)
	}

	c := b.spxrun("-host", b.names(8), "-n", "8", "sh", "-c", "echo $SPX_TOPOLOGY")
	c.Env = append(c.Env, "XDG_CACHE_HOME="+cache)
	o := harness.Run(t, c)
	lines := strings.Fields(o.Stdout)
	told := &topo.Tree{N: truth.N}
	if o.Status != 0 || len(lines) != 8 {
		t.Fatalf("a job: %s", o.Text())
	}
	for _, word := range strings.Split(lines[0], ",") {
		s, err := strconv.Atoi(word)
		if err != nil {
			t.Fatalf("SPX_TOPOLOGY is %q", lines[0])
		}
		told.Of = append(told.Of, s)
	}
	want := &topo.Tree{N: truth.N, Of: truth.Of}
	if diff := cmp.Diff(want.Splits(), told.Splits()); diff != "" {
		t.Errorf("a job was told %s: %s", lines[0], diff)
	}

	svg := filepath.Join(cache, "net.svg")
	if o := b.topology(cache, "--host", b.names(8), "--svg", svg); o.Status != 0 || strings.Count(o.Stdout, "switch ") != truth.N {
		t.Errorf("as a tree: %s", o.Text())
	}
	picture, err := os.ReadFile(svg)
	if err != nil || bytes.Count(picture, []byte("<rect")) != truth.N+1 || bytes.Count(picture, []byte(b.Name)) != 8 || bytes.Count(picture, []byte("<path")) != len(truth.Links) {
		t.Errorf("the picture (%v) is\n%s", err, picture)
	}
}

// A job can ask for it. Hosts that cannot be reached are told, and nothing is kept of what is not complete; nor where Slurm tells the switches is anything measured.
func TestTopologyForAJob(t *testing.T) {
	b := newBed(t, 3)
	cache := t.TempDir()
	c := b.spxrun("--probe", "-host", b.names(3), "-n", "3", program(t, "where"))
	c.Env = append(c.Env, "XDG_CACHE_HOME="+cache, "SPX_CONNECTIONS=topology:0")
	if o := harness.Run(t, c); o.Status != 0 || strings.Count(o.Stdout, "sum 3") != 3 {
		t.Errorf("spxrun --probe: %s", o.Text())
	}
	if n := b.measured(cache); len(n.Hosts) != 3 {
		t.Errorf("kept by spxrun --probe: %+v", n)
	}
	cache = t.TempDir()
	if o := b.topology(cache, "--host", b.names(2)+",nobody"); o.Status != 0 || !strings.Contains(o.Stderr, "host nobody: it cannot be reached") ||
		!strings.Contains(o.Stdout, "not reached: nobody") {
		t.Errorf("a host that is not there: %s", o.Text())
	}
	if o := b.topology(cache); o.Status != 1 {
		t.Errorf("what is not complete was kept: %s", o.Text())
	}
	slurm := b.script(t, `exec "$hosts" rsh "$1" "export SLURM_TOPOLOGY_ADDR=top.leaf$((${#1} % 2)).$1 SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node; $2"`)
	o := b.topology(cache, "--host", b.host(2)+","+b.host(3), "--rsh", slurm)
	if o.Status != 0 || !strings.Contains(o.Stdout, "told by Slurm") || strings.Count(o.Stdout, "switch ") != 1 {
		t.Errorf("Slurm's switches: %s", o.Text())
	}
}

// crossed is how many bytes the links between switches have carried since they were made, by link.
func (b *bed) crossed() map[string]int64 {
	b.t.Helper()
	out, err := exec.Command("ip", "-n", b.Name+"sw", "-j", "-s", "link").Output()
	var links []struct {
		Name  string `json:"ifname"`
		Stats struct {
			Rx struct{ Bytes int64 } `json:"rx"`
		} `json:"stats64"`
	}
	if err == nil {
		err = json.Unmarshal(out, &links)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	ends := map[string]int64{}
	for _, l := range links {
		if strings.HasPrefix(l.Name, "t") {
			ends[l.Name] = l.Stats.Rx.Bytes
		}
	}
	return ends
}

// A long broadcast crosses each link between switches once where they are known, in whatever order the hosts stand.
func TestBroadcastCrossesOnce(t *testing.T) {
	const n = 2 << 20
	b, truth := newNetwork(t, 1)
	bcast := program(t, "bcast")
	most := func(topology string) (most int64) {
		before := b.crossed()
		c := b.spxrun("-host", b.names(8), "-n", "8", bcast)
		c.Env = append(c.Env, "SPX_TOPOLOGY="+topology)
		check(t, harness.Run(t, c), 0, nil)
		for name, bytes := range b.crossed() {
			most = max(most, bytes-before[name])
		}
		return most
	}
	var of []string
	for _, s := range truth.Of {
		of = append(of, strconv.Itoa(s))
	}
	known, unknown := most(strings.Join(of, ",")), most("")
	t.Logf("one direction of a link: %d bytes, %d where switches are not known (%v)", known, unknown, truth.Of)
	if known > n*5/4 || unknown < n*3/2 {
		t.Errorf("a broadcast of %d bytes: %d crossed a link in one direction where switches are known, %d where they are not", n, known, unknown)
	}
}
