// Package trace runs programs under spxrun --trace and --profile, and holds what comes out of them: that the file is what viewers of Chrome's format read, that
// every message is an arrow, that times go forward, that a rank which was killed leaves a mark, and that the sums are right. docs/tracing.md.
package trace

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"libspx/launch/trace"
	"libspx/tests/harness"
)

func compile(t *testing.T, name string) string {
	t.Helper()
	source, err := filepath.Abs("programs/" + name + ".c")
	if err != nil {
		t.Fatal(err)
	}
	return harness.Compile(t, "trace/"+name, []string{source}, "-g")
}

// timeline is the file.
type timeline struct {
	Unit   string        `json:"displayTimeUnit"`
	Job    trace.Job     `json:"libspx"`
	Events []trace.Event `json:"traceEvents"`
}

// run traces a program. The job ends with that status.
func run(t *testing.T, status int, options []string, n, program string, args ...string) (*timeline, harness.Outcome) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace.json")
	words := harness.Spxrun(t, n, program, args...)
	words = slices.Insert(words, 1, append([]string{"--trace", file}, options...)...)
	o := harness.Run(t, harness.Command{Args: words, Limit: time.Minute})
	if o.Status != status {
		t.Fatalf("%s: status %d, want %d\n%s", strings.Join(words, " "), o.Status, status, o.Text())
	}
	return read(t, file), o
}

func read(t *testing.T, file string) *timeline {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	tl := &timeline{}
	if err := d.Decode(tl); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	check(t, tl)
	return tl
}

// check holds the file to the format, and to what is true of every timeline.
func check(t *testing.T, tl *timeline) {
	t.Helper()
	type end struct {
		process, thread int
		at              float64
	}
	from, to := map[int]end{}, map[int]end{}
	last := map[int]float64{}           // by process
	calls := map[[2]int][]trace.Event{} // by process and thread
	named := map[int]bool{}
	for i, e := range tl.Events {
		bad := func(format string, args ...any) { t.Errorf("event %d, %+v: %s", i, e, fmt.Sprintf(format, args...)) }
		if e.Name == "" || e.Time < 0 || math.IsNaN(e.Time) || e.Duration < 0 {
			bad("no name, or no time")
		}
		if (e.Duration != 0 && e.Phase != "X") || (e.ID != 0) != (e.Phase == "s" || e.Phase == "f") || (e.Scope != "") != (e.Phase == "i") || (e.BindingTo == "e") != (e.Phase == "f") {
			bad("has fields that its phase does not have, or lacks some")
		}
		switch e.Phase {
		case "M":
			named[e.Process] = named[e.Process] || e.Name == "process_name" && e.Args["name"] != ""
			continue
		case "X":
			k := [2]int{e.Process, e.Thread}
			calls[k] = append(calls[k], e)
		case "s", "f":
			ends := from
			if e.Phase == "f" {
				ends = to
			}
			if _, twice := ends[e.ID]; twice {
				bad("a second one of this id")
			}
			ends[e.ID] = end{e.Process, e.Thread, e.Time}
		case "i":
			if !strings.Contains("gpt", e.Scope) {
				bad("scope")
			}
		default:
			bad("phase")
		}
		if e.Time < last[e.Process] {
			bad("earlier than the one before of its process, %v us", last[e.Process])
		}
		last[e.Process] = e.Time
		if !named[e.Process] {
			bad("its process has no name")
		}
	}
	for k, list := range calls {
		for i := 1; i < len(list); i++ {
			if before := list[i-1]; before.Time+before.Duration > list[i].Time+0.0011 {
				t.Errorf("process %d: %s at %v overlaps %s, which ends at %v", k[0], list[i].Name, list[i].Time, before.Name, before.Time+before.Duration)
			}
		}
	}
	if len(from) != len(to) || len(from) != tl.Job.Messages {
		t.Errorf("%d beginnings of arrows, %d ends, %d messages", len(from), len(to), tl.Job.Messages)
	}
	inCall := func(e end) bool {
		return slices.ContainsFunc(calls[[2]int{e.process, e.thread}], func(c trace.Event) bool { return c.Time <= e.at+0.0011 && e.at <= c.Time+c.Duration+0.0011 })
	}
	for id, f := range from {
		g, there := to[id]
		if !there || g.at < f.at {
			t.Errorf("arrow %d leaves at %v and arrives at %v (%v)", id, f.at, g.at, there)
		}
		if !inCall(f) || !inCall(g) {
			t.Errorf("arrow %d from %+v to %+v: one end is in no call", id, f, g)
		}
	}
}

func (tl *timeline) count(phase, name string, process int) (n int) {
	for _, e := range tl.Events {
		if e.Phase == phase && e.Name == name && (process < 0 || e.Process == process) {
			n++
		}
	}
	return n
}

func TestRing(t *testing.T) {
	const ranks, rounds = 4, 3
	tl, o := run(t, 0, []string{"--profile"}, "4", compile(t, "ring"), "3")
	messages := ranks * rounds * 2 * 3
	if tl.Job.Messages != messages || tl.Job.Lost != 0 {
		t.Errorf("%d arrows and %d messages without the other side, want %d and none", tl.Job.Messages, tl.Job.Lost, messages)
	}
	for call, n := range map[string]int{"MPI_Init": 1, "MPI_Isend": 6, "MPI_Irecv": 6, "MPI_Waitall": 6, "MPI_Sendrecv": 6, "MPI_Send": 6, "MPI_Recv": 6, "MPI_Allreduce": 3, "MPI_Barrier": 3, "MPI_Finalize": 1} {
		for rank := range ranks {
			if got := tl.count("X", call, rank); got != n {
				t.Errorf("rank %d: %d calls of %s, want %d", rank, got, call, n)
			}
		}
	}
	bytes := map[[2]int]float64{} // by process and receiver, of the arrows
	to := map[int]trace.Event{}
	for _, e := range tl.Events {
		if e.Phase == "f" {
			to[e.ID] = e
		}
	}
	for _, e := range tl.Events {
		if e.Phase == "X" && e.Name == "MPI_Sendrecv" {
			next := float64((e.Process + 1) % ranks)
			want := map[string]any{"sendtype": "MPI_BYTE", "dest": next, "source": "MPI_ANY_SOURCE", "comm": "MPI_COMM_WORLD"}
			for k, v := range want {
				if e.Args[k] != v {
					t.Errorf("MPI_Sendrecv: %s is %v, want %v", k, e.Args[k], v)
				}
			}
			if at, _ := e.Args["at"].(string); !strings.Contains(at, "once (") || !strings.Contains(at, "ring.c:") {
				t.Errorf("MPI_Sendrecv was called at %q", at)
			}
		}
		if e.Phase == "s" {
			bytes[[2]int{e.Process, to[e.ID].Process}] += e.Args["bytes"].(float64)
			if to[e.ID].Args["tag"] != e.Args["tag"] || to[e.ID].Args["bytes"] != e.Args["bytes"] {
				t.Errorf("an arrow from %+v to %+v", e, to[e.ID])
			}
		}
	}
	for rank, r := range tl.Job.Ranks {
		next := (rank + 1) % ranks
		want := float64(rounds * 3 * (8 + 1000000))
		if len(r.Sent) != 1 || r.Sent[0].To != next || r.Sent[0].Messages != rounds*6 || float64(r.Sent[0].Bytes) != want || bytes[[2]int{rank, next}] != want {
			t.Errorf("rank %d has sent %+v, by arrows %v", rank, r.Sent, bytes)
		}
		if r.MPI <= 0 || r.MPI > r.Ended-r.Began+0.001 || r.Dropped != 0 || r.End != "" || r.Got != rounds*6 {
			t.Errorf("rank %d: %+v", rank, r)
		}
		var in float64
		for _, c := range r.Calls {
			in += c.Seconds
		}
		if math.Abs(in-r.MPI) > 1e-6 {
			t.Errorf("rank %d: %v s by place, %v s in all", rank, in, r.MPI)
		}
	}
	for _, want := range []string{"Time by rank", "Calls that took the most time", "once ring.c:", "MPI_Sendrecv"} {
		if !strings.Contains(o.Stderr, want) {
			t.Errorf("the profile does not say %q:\n%s", want, o.Stderr)
		}
	}
}

// A rank that is killed leaves a mark, and so does what it was in, in its survivors' timelines too.
func TestDeath(t *testing.T) {
	tl, _ := run(t, 137, nil, "3", compile(t, "dies"))
	if n := tl.count("i", "rank 1 was killed by signal 9 (killed)", 1); n != 1 {
		t.Errorf("%d marks of the death", n)
	}
	open := 0
	for _, e := range tl.Events {
		if e.Phase == "X" && e.Name == "MPI_Sendrecv" && e.Args["unfinished"] == true {
			open++
		}
	}
	if open != 2 {
		t.Errorf("%d calls of MPI_Sendrecv that are not over, want 2", open)
	}
	tl, _ = run(t, 0, []string{"--with-ft"}, "3", compile(t, "dies"), "on")
	for _, rank := range []int{0, 2} {
		if tl.count("i", "notices the end of rank 1", rank) != 1 {
			t.Errorf("rank %d has not noticed the death", rank)
		}
	}
	errors := 0
	for _, e := range tl.Events {
		if e.Phase == "X" && e.Name == "MPI_Sendrecv" && e.Args["error"] == "MPIX_ERR_PROC_FAILED" {
			errors++
		}
	}
	if errors != 2 {
		t.Errorf("%d calls of MPI_Sendrecv that failed, want 2", errors)
	}
}

// What was waited for has its name and its length.
func TestWaits(t *testing.T) {
	program := compile(t, "late")
	for try := 1; ; try++ {
		tl, o := run(t, 0, nil, "2", program)
		var want [3]float64
		if _, err := fmt.Sscan(o.Stdout, &want[0], &want[1], &want[2]); err != nil {
			t.Fatalf("%v: %s", err, o.Text())
		}
		var wrong []string
		for i, c := range []struct {
			rank int
			kind string
		}{{1, trace.LateSender}, {0, trace.LateReceiver}, {1, trace.AtBarrier}} {
			if s := tl.Job.Ranks[c.rank].Waits[c.kind]; s <= 0 || s < want[i]-0.01 || s > want[i]+0.01 {
				wrong = append(wrong, fmt.Sprintf("rank %d: %s %v s, it should be about %v", c.rank, c.kind, s, want[i]))
			}
		}
		if wrong == nil {
			return
		}
		if try == 8 { // a rank may lose its processor between its look at the clock and the call
			t.Fatal(strings.Join(wrong, "\n"))
		}
	}
}

// Calls that poll are one event, and messages of every kind are arrows.
func TestPolls(t *testing.T) {
	tl, _ := run(t, 0, nil, "4", compile(t, "polls"))
	if n := tl.count("X", "MPI_Test", 0); n != 1 && n != 2 { // a message between two of them ends one
		t.Errorf("%d events of MPI_Test", n)
	}
	if tl.count("s", "message", 1) != 2 || tl.count("f", "message", 0) != 2 {
		t.Errorf("%d messages sent by rank 1, %d received by rank 0, want 2", tl.count("s", "message", 1), tl.count("f", "message", 0))
	}
	if tl.count("s", "multicast", 0) != 3 || tl.count("f", "multicast", -1) != 3 {
		t.Errorf("%d multicasts sent, %d received, want 3", tl.count("s", "multicast", 0), tl.count("f", "multicast", -1))
	}
}

// What has no room is dropped, and said.
func TestLimit(t *testing.T) {
	tl, o := run(t, 0, []string{"--trace-limit", "1"}, "2", compile(t, "ring"), "400", "1000")
	const kept = 1 << 20 / trace.RecordBytes
	for _, r := range tl.Job.Ranks {
		if r.Records <= kept || r.Dropped != r.Records-kept {
			t.Errorf("%s: %d records, %d dropped; %d have room", r.Name, r.Records, r.Dropped, kept)
		}
		if tl.count("X", "MPI_Init", r.Proc) != 0 || tl.count("X", "MPI_Finalize", r.Proc) != 1 {
			t.Errorf("%s: not the last records are there", r.Name)
		}
		if r.Sent[0].Messages != 400*6 {
			t.Errorf("%s: the sums count %d messages, not %d", r.Name, r.Sent[0].Messages, 400*6)
		}
	}
	if !strings.Contains(o.Stderr, "records were dropped, of 2 ranks") {
		t.Errorf("not said:\n%s", o.Stderr)
	}
}

// Programs in Fortran are shown where they call MPI, not where libspx's Fortran library does.
func TestFortran(t *testing.T) {
	compiler := filepath.Join(harness.Build(t), "bin/mpifort")
	program := filepath.Join(t.TempDir(), "pair")
	if out, err := exec.Command(compiler, "-g", "-o", program, "programs/pair.f90").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	tl, _ := run(t, 0, nil, "2", program)
	if tl.Job.Messages != 2 {
		t.Errorf("%d arrows, want 2", tl.Job.Messages)
	}
	places := map[string]string{}
	for _, e := range tl.Events {
		if at, _ := e.Args["at"].(string); e.Phase == "X" && e.Name == "MPI_Send" {
			places[at[:strings.Index(at+" ", " ")]] = at
			if e.Args["datatype"] != "MPI_INTEGER" {
				t.Errorf("datatype %v", e.Args["datatype"])
			}
		}
	}
	if len(places) != 2 || !strings.Contains(places["old"], "pair.f90:7") || !strings.Contains(places["pair"]+places["MAIN__"], "pair.f90:18") {
		t.Errorf("the calls of MPI_Send are at %v", places)
	}
}

// Sums for programs, and a compressed timeline. Nothing is left behind.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	sums, file := filepath.Join(dir, "sums.json"), filepath.Join(dir, "trace.json.gz")
	words := slices.Insert(harness.Spxrun(t, "2", compile(t, "ring"), "1"), 1, "--profile-json", sums, "--trace", file)
	if o := harness.Run(t, harness.Command{Args: words, Env: []string{"TMPDIR=" + dir}}); o.Status != 0 || o.Stderr != "" {
		t.Fatalf("status %d\n%s", o.Status, o.Text())
	}
	text, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	var j trace.Job
	if err := json.Unmarshal(text, &j); err != nil || len(j.Ranks) != 2 || j.Messages != 12 {
		t.Errorf("%v: %s", err, text)
	}
	if out, err := exec.Command("gzip", "-t", file).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
	for _, c := range []struct{ options, want string }{{"--trace /nonexistent/x", "/nonexistent/x"}, {"--trace-limit 5", "there is no --trace"}} {
		words := slices.Insert(harness.Spxrun(t, "1", compile(t, "ring")), 1, strings.Fields(c.options)...)
		if o := harness.Run(t, harness.Command{Args: words}); o.Status != 2 || !strings.Contains(o.Stderr, c.want) {
			t.Errorf("%s: status %d\n%s", c.options, o.Status, o.Text())
		}
	}
}
