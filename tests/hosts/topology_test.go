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

	"libspx/launch/probe"
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

	GroupsAre string `json:"groups_are"`
	LinksAre  string `json:"links_are"`
}

// sure says of what the network is told: which hosts share a switch, and which switches are linked.
func (n *network) sure() (groups, links bool) {
	return n.GroupsAre == probe.Sure, n.LinksAre == probe.Sure
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
	return harness.Run(b.t, harness.Command{Args: words, Env: []string{"XDG_CACHE_HOME=" + cache}, Limit: 10 * time.Minute})
}

func (b *bed) names(n int) string {
	var list []string
	for i := range n {
		list = append(list, b.host(i+1))
	}
	return strings.Join(list, ",")
}

// measured is what spxctl topology says. On busy processors it may be unsure, which it says by its exit status.
func (b *bed) measured(cache string, args ...string) (n network) {
	b.t.Helper()
	o := b.topology(cache, append(args, "--json")...)
	if o.Late || json.Unmarshal([]byte(o.Stdout), &n) != nil {
		b.t.Fatalf("spxctl topology: exit status %d (late: %v)\n%s", o.Status, o.Late, o.Text())
	}
	groups, links := n.sure()
	if want := map[bool]int{true: 0, false: 3}[groups && links]; o.Status != want {
		b.t.Errorf("groups are %q, links %q: exit status %d, want %d", n.GroupsAre, n.LinksAre, o.Status, want)
	}
	if !groups && (n.Switches != 0 || slices.ContainsFunc(n.Of, func(s int) bool { return s >= 0 })) {
		b.t.Errorf("groups that are not sure are told: %v", n.Of)
	}
	return n
}

// tries are how often it is measured where other work leaves too little of the processors for a sure answer.
const tries = 5

// found measures until all is sure. With processors that are busy with other work the links may stay unsure; groups must be found in any case.
func (b *bed) found(cache string, args ...string) (n network) {
	b.t.Helper()
	for try := range tries {
		idle := idleTime()
		if try > 0 && n.GroupsAre == probe.Sure { // it is known, and must be asked for
			n = b.measured(cache, append(args, "--again")...)
		} else {
			n = b.measured(cache, args...)
		}
		rest := idle()
		groups, links := n.sure()
		if groups && links {
			return n
		}
		b.t.Logf("groups are %s, links %s, and the processors had %.0f %% of the time to spare", n.GroupsAre, n.LinksAre, 100*rest)
		if rest >= 0.5 && try > 0 || !groups && try == tries-1 {
			b.t.Fatalf("it is not sure: %+v", n)
		}
	}
	return n
}

// compare holds what is said to the truth.
func (b *bed) compare(truth *topo.Tree, n network) {
	b.t.Helper()
	groups, links := n.sure()
	want := truth
	if !groups {
		return
	}
	if !links {
		want = &topo.Tree{N: truth.N, Of: truth.Of}
	}
	if diff := cmp.Diff(want.Splits(), n.splits(b)); diff != "" {
		b.t.Errorf("want\n%sgot\n%v %v\n%s", truth, n.Of, n.Links, diff)
	}
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
	runs := fromEnv(t, "SPX_TOPOLOGY_RUNS", 1)
	for seed := range runs {
		t.Run(fmt.Sprintf("seed%d", seed), func(t *testing.T) {
			b, truth := newNetwork(t, uint64(seed))
			got := b.found(b.Dir(), "--host", b.names(8))
			b.compare(truth, got)
			t.Logf("%d round-trip times, %d throughputs", got.Cost.Pings, got.Cost.Streams)
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
	idle := idleTime()
	first := b.found(cache, "--host", b.names(7))
	again := b.measured(cache, "--host", b.names(6))
	if !again.Measured.Equal(first.Measured) || len(again.Hosts) != 6 {
		t.Errorf("6 of 7 hosts: %+v after %+v", again, first)
	}
	more := b.found(cache, "--host", b.names(8))
	if rest := idle(); rest >= 0.5 && (more.Cost.Streams >= first.Cost.Streams && first.Cost.Streams > 2 || more.Cost.Pings >= first.Cost.Pings) { // beside other work it is measured again
		t.Errorf("one more host took %+v, 7 hosts %+v", more.Cost, first.Cost)
	}
	b.compare(truth, more)
	_, linked := more.sure()

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
	o = b.topology(cache, "--host", b.names(8), "--svg", svg)
	picture, err := os.ReadFile(svg)
	if !linked {
		if o.Status != 3 || strings.Count(o.Stdout, "switch ") != 3 || !strings.Contains(o.Stdout, "unsure: which switches are linked") || err != nil || bytes.Count(picture, []byte("<path")) != 0 {
			t.Errorf("without sure links: %s\n%s", o.Text(), picture)
		}
		return
	}
	if o.Status != 0 || strings.Count(o.Stdout, "switch ") != truth.N {
		t.Errorf("as a tree: %s", o.Text())
	}
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
	o := harness.Run(t, c)
	if o.Status != 0 || strings.Count(o.Stdout, "sum 3") != 3 {
		t.Errorf("spxrun --probe: %s", o.Text())
	}
	if strings.Contains(o.Stderr, "it is not sure which hosts share a switch") { // beside other load: then nothing is kept
		if o := b.topology(cache); o.Status != 1 {
			t.Errorf("what is not sure was kept: %s", o.Text())
		}
	} else if n := b.measured(cache); len(n.Hosts) != 3 {
		t.Errorf("kept by spxrun --probe: %+v", n)
	}
	cache = t.TempDir()
	if o := b.topology(cache, "--host", b.names(2)+",nobody"); o.Status != 0 && o.Status != 3 || !strings.Contains(o.Stderr, "host nobody: it cannot be reached") ||
		!strings.Contains(o.Stdout, "not reached: nobody") && o.Status == 0 {
		t.Errorf("a host that is not there: %s", o.Text())
	}
	if o := b.topology(cache); o.Status != 1 {
		t.Errorf("what is not complete was kept: %s", o.Text())
	}
	slurm := b.script(t, `exec "$hosts" rsh "$1" "export SLURM_TOPOLOGY_ADDR=top.leaf$((${#1} % 2)).$1 SLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node; $2"`)
	o = b.topology(cache, "--host", b.host(2)+","+b.host(3), "--rsh", slurm)
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
