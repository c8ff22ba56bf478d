// Package systems runs systems of clusters (MPI/SPx): independent MPI programs, joined by I/O processes, each of which is built once and knows nothing of the
// others. The programs verify what they send and receive.
package systems

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"libspx/cluster/layout"
	"libspx/tests/harness"
)

// part is a cluster, or one or more I/O processes, with its program.
type part struct {
	cluster string // empty: I/O processes
	n       int
	program []string
	link    string // of I/O processes: a link of the layout
}

// system is a layout that is made of its parts, in their order.
type system struct {
	parts []part
	links []layout.Link // From and To are indices among the clusters
	env   []string
}

// command writes the layout and returns the command line.
func (s system) command(t *testing.T) []string {
	t.Helper()
	l := &layout.Layout{Version: 1, System: "test", Links: s.links}
	args := []string{filepath.Join(harness.Build(t), "bin/spxrun"), "--timeout", harness.Seconds(40 * time.Second)}
	next := 0
	var programs []string
	for _, p := range s.parts {
		if p.cluster != "" {
			c := layout.Cluster{Name: p.cluster, World: uint32(100 + next)}
			for i := range p.n {
				c.Procs = append(c.Procs, next+i)
			}
			l.Clusters = append(l.Clusters, c)
		}
		for i := 0; p.cluster == "" && i < p.n; i++ {
			iop := layout.IOP{Proc: next + i, World: uint32(100 + next + i)}
			for k, link := range s.links {
				if link.Name == p.link {
					iop.Links, iop.In, iop.Out = []int{k}, link.From, link.To
				}
			}
			l.IOPs = append(l.IOPs, iop)
		}
		for n := p.n; n > 0; n-- { // every I/O process is a program
			size := p.n
			if p.cluster == "" {
				size = 1
			}
			if len(programs) > 0 {
				programs = append(programs, ":")
			}
			programs = append(append(programs, "-n", strconv.Itoa(size)), p.program...)
			if p.cluster != "" {
				break
			}
		}
		next += p.n
	}
	text, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "layout.json")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return append(append(args, "--layout", file), programs...)
}

func (s system) run(t *testing.T) harness.Outcome {
	t.Helper()
	o := harness.Run(t, harness.Command{Args: s.command(t), Env: s.env, Limit: 50 * time.Second})
	if o.Status != 0 || o.Late {
		t.Fatalf("exit status %d, late: %v\n%s", o.Status, o.Late, o.Text())
	}
	return o
}

func program(t *testing.T, name string) string {
	t.Helper()
	source, err := filepath.Abs("programs/" + name + ".c")
	if err != nil {
		t.Fatal(err)
	}
	return harness.Compile(t, "systems/"+name, []string{source})
}

// fortran builds a program with mpifort; without a compiler the test is over.
func fortran(t *testing.T, name string) string {
	t.Helper()
	wrapper := filepath.Join(harness.Build(t), "bin/mpifort")
	if _, err := os.Stat(wrapper); err != nil {
		t.Skip("libspx was built without a Fortran compiler")
	}
	source, err := filepath.Abs("programs/" + name + ".f90")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), name)
	build := exec.Command(wrapper, "-g", "-Wall", "-o", program, source)
	build.Dir = filepath.Dir(program)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// Every way of sending to MPISP_CLUSTER_OUT and of receiving from MPISP_CLUSTER_IN, through I/O processes of the user's; also over TCP alone, and with each
// policy.
func TestSpecialRanks(t *testing.T) {
	source, drain, iop := program(t, "source"), program(t, "drain"), program(t, "iop")
	for name, c := range map[string]struct {
		from, to, iops int
		choice         string
		env            []string
	}{
		"one":            {2, 2, 1, "", nil},
		"three":          {3, 2, 3, "", nil},
		"tcp":            {2, 1, 2, "", []string{"SPX_TRANSPORTS=tcp"}},
		"least-loaded":   {2, 2, 2, "least-loaded", nil},
		"shortest-queue": {2, 2, 2, "shortest-queue", nil},
		"tag":            {2, 2, 2, "tag", nil},
		"key":            {2, 2, 2, "key", nil},
		"weighted":       {2, 2, 2, "weighted", nil},
		"by setting":     {1, 1, 2, "tag", []string{"SPX_IOP_CHOICE=key"}},
	} {
		t.Run(name, func(t *testing.T) {
			system{
				parts: []part{
					{cluster: "from", n: c.from, program: []string{source, strconv.Itoa(c.from)}},
					{n: c.iops, program: []string{iop}, link: "link"},
					{cluster: "to", n: c.to, program: []string{drain, strconv.Itoa(c.to), strconv.Itoa(c.from)}},
				},
				links: []layout.Link{{Name: "link", From: []int{0}, To: []int{1}, Choice: c.choice}},
				env:   c.env,
			}.run(t)
		})
	}
}

// The same program, never built again, alone, with one neighbour, and with three: its own ranks and their number are the same, whatever is attached.
func TestNeverRebuilt(t *testing.T) {
	stage := program(t, "stage")
	work := []string{stage, "2", "emit", "60"}
	pass := []string{stage, "2", "pass", "0"}
	relay := []string{filepath.Join(harness.Build(t), "bin/spx-iop")}
	built, err := os.Stat(stage)
	if err != nil {
		t.Fatal(err)
	}
	o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, "2", stage, work[1:]...), Limit: 40 * time.Second})
	if o.Status != 0 || o.Stdout != "alone\nalone\n" {
		t.Fatalf("alone: status %d\n%s", o.Status, o.Text())
	}
	o = system{parts: []part{{cluster: "a", n: 2, program: work}}}.run(t)
	if o.Stdout != "alone\nalone\n" {
		t.Errorf("a system of one cluster: %s", o.Text())
	}
	system{
		parts: []part{{cluster: "a", n: 2, program: work}, {n: 1, program: relay, link: "ab"}, {cluster: "b", n: 2, program: pass}, {n: 1, program: relay, link: "ba"}},
		links: []layout.Link{{Name: "ab", From: []int{0}, To: []int{1}}, {Name: "ba", From: []int{1}, To: []int{0}}},
	}.run(t)
	system{
		parts: []part{{cluster: "a", n: 2, program: work}, {n: 2, program: relay, link: "out"}, {cluster: "b", n: 2, program: pass}, {cluster: "c", n: 2, program: pass},
			{cluster: "d", n: 2, program: pass}, {n: 2, program: relay, link: "back"}},
		links: []layout.Link{{Name: "out", From: []int{0}, To: []int{1, 2, 3}}, {Name: "back", From: []int{1, 2, 3}, To: []int{0}}},
	}.run(t)
	if again, err := os.Stat(stage); err != nil || again.ModTime() != built.ModTime() {
		t.Error("the program was built again")
	}
}

// Clusters in a ring, with two relays between any two, over shared memory and over TCP; and a relay that may hold almost nothing.
func TestRing(t *testing.T) {
	stage := program(t, "stage")
	relay := filepath.Join(harness.Build(t), "bin/spx-iop")
	for name, c := range map[string]struct {
		options []string
		env     []string
	}{
		"shared memory": {nil, nil},
		"tcp":           {nil, []string{"SPX_TRANSPORTS=tcp"}},
		"small queue":   {[]string{"--queue", "1"}, nil},
		"by key":        {nil, []string{"SPX_IOP_CHOICE=key"}},
	} {
		t.Run(name, func(t *testing.T) {
			program := append([]string{relay}, c.options...)
			system{
				parts: []part{{cluster: "a", n: 2, program: []string{stage, "2", "emit", "80"}}, {n: 2, program: program, link: "ab"},
					{cluster: "b", n: 2, program: []string{stage, "2", "pass", "0"}}, {n: 2, program: program, link: "bc"},
					{cluster: "c", n: 2, program: []string{stage, "2", "pass", "0"}}, {n: 2, program: program, link: "ca"}},
				links: []layout.Link{{Name: "ab", From: []int{0}, To: []int{1}}, {Name: "bc", From: []int{1}, To: []int{2}}, {Name: "ca", From: []int{2}, To: []int{0}}},
				env:   c.env,
			}.run(t)
		})
	}
}

// Who waits for a message of another cluster sleeps until there is one, or nobody who could send one.
func TestWaitingSleeps(t *testing.T) {
	quiet, waits := program(t, "quiet"), filepath.Join(t.TempDir(), "waits")
	o := system{
		parts: []part{{cluster: "a", n: 1, program: []string{quiet, "send", waits}}, {n: 1, program: []string{filepath.Join(harness.Build(t), "bin/spx-iop")}, link: "ab"},
			{cluster: "b", n: 1, program: []string{quiet, "receive", waits}}},
		links: []layout.Link{{Name: "ab", From: []int{0}, To: []int{1}}},
		env:   []string{"SPX_SPIN=0"},
	}.run(t)
	t.Log(o.Stdout)
}

// A cluster in Fortran between two ends of one in C.
func TestFortran(t *testing.T) {
	pass, stage := fortran(t, "pass"), program(t, "stage")
	relay := []string{filepath.Join(harness.Build(t), "bin/spx-iop")}
	system{
		parts: []part{{cluster: "a", n: 2, program: []string{stage, "2", "emit", "40"}}, {n: 1, program: relay, link: "ab"}, {cluster: "b", n: 2, program: []string{pass}},
			{n: 1, program: relay, link: "ba"}},
		links: []layout.Link{{Name: "ab", From: []int{0}, To: []int{1}}, {Name: "ba", From: []int{1}, To: []int{0}}},
	}.run(t)
}

// A system file, as a user writes it: two clusters that send each other data through relays of libspx, and one that knows nothing of MPI.
func TestSystemFile(t *testing.T) {
	o := file(t, fmt.Sprintf(`
[start]
wait = "part"
clusters = ["a", "b"]

[[cluster]]
name = "a"
program = %q
args = ["2", "emit", "60"]
ranks = 2

[[cluster]]
name = "b"
program = %[1]q
args = ["2", "pass", "0"]
ranks = 2

[[cluster]]
name = "plain"
program = "/bin/sleep"
args = ["1"] # ends after the others
ranks = 1

[[link]]
from = "a"
to = "b"
iops = 2

[[link]]
from = "b"
to = "a"
`, program(t, "stage")))
	if o.Status != 0 || o.Stderr != "" {
		t.Errorf("exit status %d\n%s", o.Status, o.Text())
	}
}
