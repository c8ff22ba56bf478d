package systems

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// Systems of many clusters on many hosts: what the busiest master uses of a processor does not grow with the clusters, and a system of which all hosts of one cluster, behind one switch, are lost goes on by its
// policy. In make test with 16 hosts, and with 64 by make scale-hosts, which prints the table of docs/bench/masters.md.
func TestManyClusters(t *testing.T) {
	hosts, list, seconds := 16, []int{4}, 4
	if os.Getenv("SPX_SCALE") != "" {
		hosts, list, seconds = 64, []int{2, 4, 8, 16}, 15
	}
	h := newHosts(t, hosts)
	dir := papers(t)
	for _, clusters := range list {
		used, took := h.busiest(t, dir, clusters, hosts/clusters, seconds)
		t.Logf("| %d | %d | %d | %.2f | %.1f | %.1f %% |", hosts, clusters, hosts/clusters, used, took.Seconds(), 100*used/took.Seconds())
		if used > took.Seconds()/5 {
			t.Errorf("%d clusters of %d hosts: the busiest master has used %.2f s of a processor in %v", clusters, hosts/clusters, used, took)
		}
	}
	h.losesCluster(t, hosts/4)
}

// papers is a folder with the programs of docs/papers.md, which the hosts see.
func papers(t *testing.T) string {
	t.Helper()
	dir := harness.SharedDir(t)
	cmd := exec.Command("make", "-C", filepath.Join(harness.Root(), "examples/papers"), "OUT="+dir)
	for _, name := range []string{"numbers", "square", "total", "masters"} {
		cmd.Args = append(cmd.Args, filepath.Join(dir, name))
	}
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(harness.Build(t), "bin")+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

var busiestMaster = regexp.MustCompile(`(?m)^\d+ clusters: the busiest master has used (\S+) s of a processor`)

// busiest is what the busiest master of a chain of clusters uses of a processor, in seconds, and how long the system has run.
func (h *testHosts) busiest(t *testing.T, dir string, clusters, each, seconds int) (used float64, took time.Duration) {
	t.Helper()
	began := time.Now()
	o := harness.Run(t, harness.Command{Args: []string{"bash", filepath.Join(dir, "masters"), h.prefix, strconv.Itoa(clusters), strconv.Itoa(seconds), strconv.Itoa(each)}, Dir: dir,
		Env: h.env(t), Limit: time.Duration(seconds)*time.Second + 2*time.Minute})
	m := busiestMaster.FindStringSubmatch(o.Stdout)
	if want := fmt.Sprintf("%d ranks have sent %d numbers", each, seconds*100*each); o.Status != 0 || m == nil || !strings.Contains(o.Stdout, want) || !strings.Contains(o.Stdout, fmt.Sprintf("%d ranks have received %d numbers", each, seconds*100*each)) {
		t.Fatalf("a chain of %d clusters of %d hosts: exit status %d\n%s", clusters, each, o.Status, o.Text())
	}
	used, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return used, time.Since(began)
}

// env is for scripts that start systems on these hosts.
func (h *testHosts) env(t *testing.T) []string {
	return []string{"PATH=" + filepath.Join(harness.Build(t), "bin") + ":" + os.Getenv("PATH"), "HOSTS=" + h.script, "SPX_SPIN=0", "SPX_HEARTBEAT_LIMIT=20000"}
}

// losesCluster starts four clusters of so many hosts, of which the first sends to the others, and cuts the last one off, with all of its hosts: the others go on without it, by the system's policy.
func (h *testHosts) losesCluster(t *testing.T, each int) {
	t.Helper()
	const limit = 5000 // ms
	var text strings.Builder
	text.WriteString("[failure]\ncluster = \"degrade\"\nnetwork = \"degrade\"\niop = \"degrade\"\n")
	for c, args := range []string{`"send", "90000", "20", "stop"`, `"share", "b"`, `"share", "c"`, `"share", "d"`} {
		var on []string
		for i := range each {
			on = append(on, strconv.Quote(h.name(c*each+i)))
		}
		fmt.Fprintf(&text, "[[cluster]]\nname = \"%c\"\nprogram = \"%%P\"\nargs = [%s]\nranks = %d\nhosts = [%s]\n", 'a'+c, args, each, strings.Join(on, ", "))
	}
	fmt.Fprintf(&text, "[[link]]\nfrom = \"a\"\nto = [\"b\", \"c\", \"d\"]\niops = 2\nhosts = [%q, %q]\nargs = [\"--route\", \"spread\", \"--to\", \"all\"]\n", h.name(0), h.name(1))
	s := newApart(t, text.String())
	cmd := exec.Command(h.script, "on", h.name(0), filepath.Join(harness.Build(t), "bin/spxrun"), "--rsh", h.script+" rsh", "-l", "--system", s.file)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "SPX_SPIN=0", fmt.Sprintf("SPX_HEARTBEAT_LIMIT=%d", limit))
	o := &onHosts{apart: s, running: s.launch("all", cmd), hosts: h}
	for _, file := range []string{"b", "c", "d"} {
		s.await(file)
	}
	began := time.Now()
	for i := range each {
		h.run("ip", "-n", h.prefix+"sw", "link", "set", fmt.Sprintf("port%d", 3*each+i+1), "down")
	}
	o.says("cluster d is gone; the others go on.")
	t.Logf("4 clusters of %d hosts: that one is gone is known %.1f s after it was cut off (silence: %.1f s)", each, time.Since(began).Seconds(), limit/1000.)
	o.finishes(fmt.Sprintf("[b.0] b: %d ranks\n", each), fmt.Sprintf("[c.0] c: %d ranks\n", each))
}
