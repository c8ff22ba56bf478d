// Package chosen compares what is said of the algorithms of collectives in three ways: by spxctl explain, which starts nothing;
// by the states and events of MPI_T in a job that runs; and by spxrun --trace of the same job. docs/collectives.md.
package chosen

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/core/coll"
	"libspx/launch/trace"
	"libspx/tests/harness"
)

// said is a call and what was chosen for it.
type said struct{ kind, form, bytes, comm, function, algorithm, reason string }

// job runs the program, and returns what it has read by MPI_T: calls in their order, events, and further lines.
func job(t *testing.T, options []string, n string, env []string, args ...string) (calls []said, events, more []string) {
	t.Helper()
	program := harness.Compile(t, "chosen/chosen", []string{filepath.Join(harness.Root(), "tests/chosen/testdata/chosen.c")})
	words := slices.Insert(harness.Spxrun(t, n, program, args...), 1, options...)
	o := harness.Run(t, harness.Command{Args: words, Env: env, Limit: 2 * time.Minute})
	if o.Status != 0 || o.Stderr != "" {
		t.Fatalf("%s: status %d\n%s", strings.Join(words, " "), o.Status, o.Text())
	}
	return parse(t, o.Stdout)
}

func parse(t *testing.T, text string) (calls []said, events, more []string) {
	t.Helper()
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		part := strings.Split(line, " | ")
		word := strings.Fields(part[0])
		switch {
		case word[0] == "call" && len(word) == 6 && len(part) == 3:
			calls = append(calls, said{word[1], word[2], word[3], word[4], word[5], part[1], part[2]})
		case word[0] == "event" && len(part) == 3:
			events = append(events, strings.TrimPrefix(line, "event "))
		default:
			more = append(more, line)
		}
	}
	return calls, events, more
}

// explained is what spxctl says of a call; options say where the ranks are.
func explained(t *testing.T, c *said, n int, env, options []string) *coll.Explanation {
	t.Helper()
	words := []string{filepath.Join(harness.Build(t), "bin/spxctl"), "explain", c.kind, c.bytes, "--json", "-n", strconv.Itoa(n)}
	words = append(words, options...)
	if c.form == "persistent" {
		words = append(words, "--persistent")
	}
	switch c.comm {
	case "half":
		words = append(words, "--ranks", fmt.Sprintf("0-%d", n/2-1))
	case "inter":
		words = append(words, "--ranks", fmt.Sprintf("0-%d", n/2-1), "--remote", strconv.Itoa(n-n/2))
	}
	o := harness.Run(t, harness.Command{Args: words, Env: env})
	e := &coll.Explanation{}
	if err := json.Unmarshal([]byte(o.Stdout), e); err != nil || o.Status != 0 {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, o.Text())
	}
	return e
}

// compare holds what spxctl says against the calls.
func compare(t *testing.T, calls []said, n int, env, options []string) {
	t.Helper()
	known := map[said]*coll.Explanation{}
	for i := range calls {
		c := calls[i]
		key := said{kind: c.kind, form: c.form, bytes: c.bytes, comm: c.comm}
		if key.form == "nonblocking" {
			key.form = "blocking"
		}
		if known[key] == nil {
			known[key] = explained(t, &key, n, env, options)
		}
		if e := known[key]; e.Algorithm != c.algorithm || e.Reason != c.reason {
			t.Errorf("%s %s of %s bytes on %s: the job has %s (%s), spxctl says %s (%s)", c.form, c.kind, c.bytes, c.comm, c.algorithm, c.reason, e.Algorithm, e.Reason)
		}
	}
}

// traced holds the timeline of rank 0 against the calls.
func traced(t *testing.T, file string, calls []said) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var tl struct {
		Events []trace.Event `json:"traceEvents"`
	}
	if err := json.Unmarshal(text, &tl); err != nil {
		t.Fatal(err)
	}
	var found []said
	for _, e := range tl.Events {
		if _, is := coll.KindOfCall(e.Name); !is || e.Phase != "X" {
			continue
		}
		algorithm, _ := e.Args["algorithm"].(string)
		why, _ := e.Args["why"].(string)
		if algorithm == "" || why == "" {
			t.Errorf("process %d: %s without its algorithm: %v", e.Process, e.Name, e.Args)
		}
		if e.Process == 0 {
			found = append(found, said{function: e.Name, algorithm: algorithm, reason: why})
		}
	}
	if len(found) != len(calls)+1 || found[len(found)-1].function != "MPI_Barrier" {
		t.Fatalf("%d collectives in the trace, %d and a barrier were made", len(found), len(calls))
	}
	for i := range calls {
		c := calls[i]
		if f := found[i]; f.function != c.function || f.algorithm != c.algorithm || f.reason != c.reason {
			t.Errorf("call %d: %s is %s (%s) in the trace, %s, %s (%s) by MPI_T", i, f.function, f.algorithm, f.reason, c.function, c.algorithm, c.reason)
		}
	}
}

// noticed holds the events against the calls: what was called was chosen once for each plan.
func noticed(t *testing.T, calls []said, events []string) {
	t.Helper()
	told := map[string]bool{}
	for _, e := range events {
		at := strings.LastIndex(e, " | ")
		told[e[:at]] = true
	}
	for i := range calls {
		c := &calls[i]
		if what := c.kind + " " + c.algorithm + " | " + c.reason; !told[what] {
			t.Errorf("no event for: %s", what)
		}
	}
}

// scene is a job in which all collectives are looked at.
type scene struct {
	name    string
	ranks   int
	env     []string
	table   string   // of the machine
	options []string // of spxrun and of spxctl explain
	want    []string // algorithms that must occur, as "bcast chain", so that the scene shows what it is there for
}

var scenes = []scene{
	{name: "two ranks", ranks: 2, want: []string{"bcast binomial", "allreduce recursive_doubling", "allreduce shared", "barrier shared"}},
	{name: "more ranks than processors", ranks: 2*runtime.NumCPU() + 1, want: []string{"bcast shared", "alltoallv shared", "neighbor_alltoall direct", "gather inter", "bcast nothing"}},
	{name: "settings", ranks: 6, env: []string{"SPX_COLL_BCAST=chain", "SPX_COLL_ALLGATHER=recursive_doubling", "SPX_COLL_ALLREDUCE=rabenseifner", "SPX_COLL_REDUCE=auto",
		"SPX_COLL_ALLTOALL=pairwise", "SPX_COLL_NEIGHBOR_ALLTOALL=direct"}, want: []string{"bcast chain", "allreduce rabenseifner", "alltoall pairwise"}},
	{name: "a table", ranks: 6, table: "always SPX_COLL_BCAST fan\nfree SPX_COLL_GATHER binomial\ncrowded SPX_COLL_GATHER linear\nalways SPX_COLL_SCAN linear # none\n",
		env: []string{"SPX_COLL_SCAN=fan"}, want: []string{"bcast fan", "scan fan"}},
	{name: "over the network", ranks: 16, env: []string{"SPX_TRANSPORTS=tcp", "SPX_CONNECTIONS=topology:1", "SPX_TOPOLOGY=groups:4", "SPX_COLL_ALLTOALL=by_switch"},
		want: []string{"alltoall by_switch", "alltoallv by_switch", "bcast binomial"}},
	{name: "bound", ranks: min(runtime.NumCPU(), 8), options: []string{"--bind-to", "core"}},
}

// Every collective, in every form, on a world, a part of it, a grid and an intercommunicator, has one answer in all three places.
func TestAlike(t *testing.T) {
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			dir := t.TempDir()
			env := append([]string{"HOME=" + dir, "SPX_TUNING="}, s.env...)
			if s.table != "" {
				if err := os.MkdirAll(filepath.Join(dir, ".config/libspx"), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, ".config/libspx/tuning"), []byte(s.table), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			file := filepath.Join(dir, "trace.json")
			calls, events, more := job(t, append([]string{"--trace", file}, s.options...), strconv.Itoa(s.ranks), env)
			if len(more) > 0 {
				t.Errorf("further output: %q", more)
			}
			if len(calls) < 400 {
				t.Errorf("only %d calls", len(calls))
			}
			for _, want := range s.want {
				if !slices.ContainsFunc(calls, func(c said) bool { return c.kind+" "+c.algorithm == want }) {
					t.Errorf("no %s", want)
				}
			}
			traced(t, file, calls)
			noticed(t, calls, events)
			compare(t, calls, s.ranks, env, s.options)
		})
	}
}

// A setting that a tool writes is told as such.
func TestWrittenByATool(t *testing.T) {
	calls, _, _ := job(t, nil, "2", []string{"SPX_COLL_BCAST=fan"}, "SPX_COLL_BCAST", "4") // the fourth choice: chain
	for i := range calls {
		c := &calls[i]
		if c.kind == "bcast" && c.bytes != "0" && (c.algorithm != "chain" || c.reason != "SPX_COLL_BCAST, written by a tool (MPI_T)") {
			t.Errorf("%+v", c)
		}
	}
}

// spxctl explain JOB says of a running job what that does.
func TestRunningJob(t *testing.T) {
	spxctl := filepath.Join(harness.Build(t), "bin/spxctl")
	for _, env := range [][]string{nil, {"SPX_COLL_BCAST=binomial", "SPX_COLL_SCAN=recursive_doubling"}} {
		calls, _, more := job(t, nil, "5", env, spxctl)
		asked := map[string]string{}
		for _, line := range more {
			if w := strings.Fields(line); len(w) == 3 && w[0] == "job" {
				asked[w[1]] = w[2]
			}
		}
		n := 0
		for i := range calls {
			c := &calls[i]
			if c.form != "blocking" || c.comm != "world" && c.comm != "ring" || c.bytes != "8200" && c.bytes != "64" {
				continue
			}
			n++
			if asked[c.kind] != c.algorithm {
				t.Errorf("%v: %s is %s, spxctl explain says of the job %s", env, c.kind, c.algorithm, asked[c.kind])
			}
		}
		if n != int(coll.Kinds) {
			t.Errorf("%d of %d operations were compared", n, coll.Kinds)
		}
	}
}
