package systems

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/launch/service"
	"libspx/tests/harness"
)

// Systems of which each cluster has the hosts of a switch. All switches are joined in the middle.

// A network is so many switches with so many hosts on each.
type network struct {
	switches, each int
	limit          int // SPX_HEARTBEAT_LIMIT, in ms: many hosts share these processors
	ms             int // between two messages of a rank
}

// The hosts of all switches but the last are clusters, of which the first sends to all others. Those of the last are added while the system runs. All that are behind another switch are lost, and their cluster is started again on
// the added ones; they come back and are added, too; then half of the hosts of another switch are lost, and their cluster goes on with the other half and those. What is sent to the clusters that have lost nothing arrives there, each message once.
func TestSwitchOfSystemIsLost(t *testing.T) {
	network{switches: 4, each: 2, limit: 3000, ms: 20}.loses(t)
}

// The same with 112 hosts on 8 switches: make scale-hosts.
func TestSwitchOfManyIsLost(t *testing.T) {
	if os.Getenv("SPX_SCALE") == "" {
		t.Skip("make scale-hosts runs a system on 112 hosts")
	}
	network{switches: 8, each: 14, limit: 20000, ms: 200}.loses(t)
}

func (n network) loses(t *testing.T) {
	began := time.Now()
	h := n.hosts(t)
	clusters := n.switches - 1
	wholly, partly := clusters-1, clusters-2 // those that lose all of their hosts, and half
	o := n.starts(t, h, wholly)
	lap := func(what string) {
		t.Logf("%d hosts on %d switches, %6.2f s: %s; %s", n.switches*n.each, n.switches, time.Since(began).Seconds(), what, h.memory(n.switches*n.each))
		began = time.Now()
	}
	all := o.files(clusters)
	o.flowTo(all...)
	lap("messages come to all clusters")

	o.adds(n, clusters)
	lap("the hosts of another switch are added")

	n.plug(h, wholly, 0, n.each, "down")
	o.reads(fmt.Sprintf(`cluster %s is started again \(1 of at most`, name(wholly)))
	lap(fmt.Sprintf("cluster %s is started again: all its hosts were cut off (silence: %.1f s)", name(wholly), float64(n.limit)/1000))
	o.flowTo(all...)
	lap("messages come to all clusters")
	o.at(n, clusters, n.each)

	n.plug(h, wholly, 0, n.each, "up")
	h.leftTo(t, wholly*n.each, n.each)
	o.adds(n, wholly)
	lap("the hosts that were cut off are added again")

	n.plug(h, partly, 0, n.each/2, "down")
	o.reads(fmt.Sprintf(`cluster %s is started again \(1 of at most`, name(partly)))
	lap(fmt.Sprintf("cluster %s is started again: half of its hosts were cut off", name(partly)))
	o.flowTo(all...)
	lap("messages come to all clusters")
	o.at(n, partly, n.each-n.each/2)
	o.at(n, wholly, n.each/2)

	o.write("stop", "", "")
	o.reads(`(?m)^\[a\.0\] a: \d+ ranks$`)
	o.ends(0)
	sent := o.sum("a", `sent (\d+)`)
	for c := 1; c < partly; c++ {
		if got := o.sum(name(c), `received (\d+)`); got != sent || sent == 0 {
			t.Errorf("cluster %s: %d of %d messages came", name(c), got, sent)
		}
	}
	lap(fmt.Sprintf("the end, after %d messages to each cluster", sent))
}

func name(cluster int) string { return string(rune('a' + cluster)) }

// hosts makes them, in the order of their switches.
func (n network) hosts(t *testing.T) *testHosts {
	t.Helper()
	var of, links []string
	for s := range n.switches {
		links = append(links, fmt.Sprintf("%d-%d", s, n.switches))
		for range n.each {
			of = append(of, strconv.Itoa(s))
		}
	}
	b := harness.NewBed(t, "g", n.switches*n.each, func(name string) []string {
		return []string{"net", name, "-", "0", "0", strings.Join(of, " "), strings.Join(links, " ")}
	})
	return &testHosts{Bed: b, t: t, script: harness.HostsScript(), prefix: b.Name, n: n.switches * n.each}
}

// starts starts the system. The cluster that will lose all hosts has a standby on the last of them.
func (n network) starts(t *testing.T, h *testHosts, wholly int) *onHosts {
	t.Helper()
	var text, receivers strings.Builder
	text.WriteString("[failure]\ncluster = \"restart\"\niop = \"restart\"\n")
	for c := range n.switches - 1 {
		args, ranks, standbys := fmt.Sprintf(`"send", "90000", "%d", "stop"`, n.ms), n.each, 0
		if c > 0 {
			args = fmt.Sprintf(`"share", %q, "each"`, name(c))
			fmt.Fprintf(&receivers, "%q, ", name(c))
		}
		if c == wholly {
			ranks, standbys = n.each-1, 1
		}
		fmt.Fprintf(&text, "[[cluster]]\nname = %q\nprogram = \"%%P\"\nargs = [%s]\nranks = %d\nstandbys = %d\nhosts = [%s]\n", name(c), args, ranks, standbys, h.list(c*n.each, n.each))
	}
	fmt.Fprintf(&text, "[[link]]\nfrom = \"a\"\nto = [%s]\niops = 2\nhosts = [%s]\nargs = [\"--to\", \"all\"]\n", receivers.String(), h.list(0, 2))
	s := newApart(t, text.String())
	cmd := exec.Command(h.script, "on", h.name(0), filepath.Join(harness.Build(t), "bin/spxrun"), "--rsh", h.script+" rsh", "-l", "--system", s.file)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "SPX_SPIN=0", "SPX_YIELD=0", fmt.Sprintf("SPX_HEARTBEAT_LIMIT=%d", n.limit))
	return &onHosts{apart: s, running: s.launch("all", cmd), hosts: h, names: strings.NewReplacer()}
}

// list names so many hosts from one on, as a system file does.
func (h *testHosts) list(first, n int) string {
	var list []string
	for i := range n {
		list = append(list, strconv.Quote(h.name(first+i)))
	}
	return strings.Join(list, ", ")
}

func (o *onHosts) files(clusters int) (list []string) {
	for c := 1; c < clusters; c++ {
		list = append(list, name(c))
	}
	return list
}

// flowTo waits until messages come to all these clusters.
func (o *onHosts) flowTo(files ...string) {
	o.apart.t.Helper()
	for range 2 {
		for _, f := range files {
			os.Remove(filepath.Join(o.dir, f)) //nolint:errcheck // it need not be there
		}
		for _, f := range files {
			o.await(f)
		}
	}
}

// adds adds the hosts of a switch to the system, with a slot each.
func (o *onHosts) adds(n network, which int) {
	t := o.apart.t
	t.Helper()
	args := []string{"hosts", "--limit", fmt.Sprint(time.Duration(n.limit) * 20 * time.Millisecond), ".", "add"}
	for i := range n.each {
		args = append(args, o.hosts.name(which*n.each+i)+":1")
	}
	if text := o.ctl(o.hosts.name(0), args...); !strings.Contains(text, "done in ") {
		t.Fatalf("spxctl %v: %s\n%s", args, text, o.all())
	}
}

// plug cuts so many hosts of a switch off, from one on, or brings them back.
func (n network) plug(h *testHosts, which, first, hosts int, how string) {
	for i := range hosts {
		h.run("ip", "-n", h.prefix+"sw", "link", "set", fmt.Sprintf("port%d", which*n.each+first+i+1), how)
	}
}

// at checks that so many hosts of a switch have a process each.
func (o *onHosts) at(n network, which, hosts int) {
	t := o.apart.t
	t.Helper()
	var list []service.Host
	if err := json.Unmarshal([]byte(o.ctl(o.hosts.name(0), "hosts", ".", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	used := 0
	for _, host := range list {
		for i := range n.each {
			if host.Name == o.hosts.name(which*n.each+i) && host.State == "" && host.Procs == 1 {
				used++
			}
		}
	}
	if used != hosts {
		t.Errorf("%d hosts of switch %d have a process, not %d: %+v", used, which, hosts, list)
	}
}

// sum adds the numbers that the ranks of a cluster have said.
func (o *onHosts) sum(cluster, pattern string) (sum int) {
	for _, m := range regexp.MustCompile(`(?m)^\[`+cluster+`\.\d+\] rank \d+ `+pattern+`$`).FindAllStringSubmatch(o.all(), -1) {
		n, _ := strconv.Atoi(m[1]) // digits
		sum += n
	}
	return sum
}

// leftTo waits until nothing runs on so many hosts, from one on.
func (h *testHosts) leftTo(t *testing.T, first, n int) {
	t.Helper()
	for late := time.Now().Add(harness.Patience(30 * time.Second)); n > 0; time.Sleep(10 * time.Millisecond) {
		if len(h.Pids(first+n)) == 0 {
			n--
		} else if time.Now().After(late) {
			t.Fatalf("on %s there are still the processes %v", h.name(first+n-1), h.Pids(first+n))
		}
	}
}

// memory is what all processes on so many hosts have together.
func (h *testHosts) memory(n int) string {
	kib, processes := 0, 0
	for i := range n {
		for _, pid := range h.Pids(i + 1) {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
			if m := pss.FindSubmatch(text); m != nil {
				k, _ := strconv.Atoi(string(m[1])) // digits
				kib, processes = kib+k, processes+1
			}
		}
	}
	return fmt.Sprintf("%d processes with %d MiB", processes, kib>>10)
}

var pss = regexp.MustCompile(`(?m)^Pss: +(\d+) kB$`)
