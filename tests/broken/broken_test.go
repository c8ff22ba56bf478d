// Package broken runs programs that are wrong, and proves that libspx names the cause within the first five lines that a user sees. What other
// implementations say of the same programs is in docs/diagnosis.md: TestPeers makes that table.
package broken

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// A wrong program: how it is run, and what has to be said of it.
type wrong struct {
	name    string // programs/NAME.c
	what    string // for the table
	n       string
	options []string // of spxrun
	env     []string
	args    []string
	says    string // a pattern, within one of the first five lines
	status  int
}

var all = []wrong{
	{name: "deadlock2", what: "two ranks receive before they send", n: "2", options: []string{"--hang-after", "1"}, status: 124,
		says: `deadlock: rank 0 and rank 1 wait for each other`},
	{name: "cycle5", what: "five ranks send in a circle", n: "5", options: []string{"--hang-after", "1"}, status: 124,
		says: `deadlock: a circle of 5: rank 0 waits for rank 1, .* rank 4 waits for rank 0`},
	{name: "missing", what: "rank 2 is not in the barrier", n: "4", options: []string{"--hang-after", "1"}, status: 124,
		says: `rank 2 is missing in MPI_Barrier on MPI_COMM_WORLD: ranks 0-1,3 are in it`},
	{name: "root", what: "rank 1 gives another root", n: "3", env: []string{"SPX_CHECK=1"}, status: 8,
		says: `mismatched root: root = (1 here \(rank 1\), but root = 0 on rank [02]|0 here \(rank [02]\), but root = 1 on rank 1)`},
	{name: "type", what: "doubles are broadcast, ints expected", n: "2", env: []string{"SPX_CHECK=1"}, status: 3,
		says: `mismatched datatypes: 10 of MPI_(INT|DOUBLE) here .*, but 10 of MPI_(DOUBLE|INT) on rank`},
	{name: "truncation", what: "the message is longer than the buffer", n: "2", status: 15,
		says: `MPI_ERR_TRUNCATE.* the message from rank 0 \(tag 5\) has 400 bytes, the receive buffer 200`},
	{name: "nobody", what: "nobody receives a large message", n: "2", options: []string{"--hang-after", "1"}, status: 124,
		says: `unmatched send: the message of rank 0 to rank 1 \(tag 3, 8000000 bytes, on MPI_COMM_WORLD\) is not received: rank 1 is in MPI_Barrier`},
	{name: "tag", what: "the receive has another tag", n: "2", options: []string{"--hang-after", "1"}, status: 124,
		says: `wrong tag: rank 1 waits for a message with tag 8, but rank 0 of MPI_COMM_WORLD has sent it one with tag 9`},
	{name: "freed", what: "a communicator is used after MPI_Comm_free", n: "2", status: 5,
		says: `MPI_Barrier.* failed: MPI_ERR_COMM.*freed`},
	{name: "spins", what: "rank 1 computes for ever", n: "3", options: []string{"--timeout", "3", "--report-on-timeout"}, status: 124,
		says: `ranks 0,2 wait for rank 1, which is in no MPI call that waits: it is in iterate \(spins\.c:\d+\)`},
	{name: "dies", what: "rank 1 ends with status 0, without MPI_Finalize", n: "3", status: 1,
		says: `rank 1 \(pid \d+ on .*\) exited with status 0 .*without calling MPI_Finalize`},
	{name: "disk", what: "a file is written to a full disk", n: "2", args: []string{"/dev/full"}, status: 3,
		says: `MPI_ERR_NO_SPACE.*/dev/full`},
}

// first are the first lines of what a user sees.
func first(text string, n int) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return lines[:min(n, len(lines))]
}

func (w wrong) compile(t *testing.T) string {
	return harness.Compile(t, "broken/"+w.name, []string{filepath.Join(harness.Root(), "tests/broken/programs", w.name+".c")}, "-g", "-O1")
}

// command is what a user types.
func (w wrong) command(program string) string {
	words := append(append([]string{}, w.env...), append([]string{"spxrun"}, w.options...)...)
	return strings.Join(append(append(words, "-n", w.n, program), w.args...), " ")
}

func TestCauseIsNamed(t *testing.T) {
	for _, w := range all {
		t.Run(w.name, func(t *testing.T) {
			program := w.compile(t)
			args := harness.Spxrun(t, w.n, program, w.args...)
			args = append(append([]string{args[0]}, w.options...), args[1:]...)
			o := harness.Run(t, harness.Command{Args: args, Env: w.env, Limit: 60 * time.Second})
			if o.Late || o.Status != w.status {
				t.Errorf("status %d, want %d; late %v", o.Status, w.status, o.Late)
			}
			lines := first(o.Stderr, 5)
			if re := regexp.MustCompile(w.says); !re.MatchString(strings.Join(lines, "\n")) {
				t.Errorf("%s: the cause is not in the first five lines (%s):\n%s", w.command(w.name), w.says, o.Text())
			}
		})
	}
}

var table = flag.String("table", "", "file to which TestPeers writes the table of docs/diagnosis.md")

// TestPeers runs the same programs under MPICH and Open MPI, for 10 seconds each, and prints what they say:
//
//	go test ./tests/broken -run TestPeers -table FILE
func TestPeers(t *testing.T) {
	if *table == "" {
		t.Skip("without -table there is nothing to be written")
	}
	script := filepath.Join(harness.Root(), "scripts/peers")
	if out, err := exec.Command(script, "check").CombinedOutput(); err != nil {
		t.Skip(strings.TrimSpace(string(out)))
	}
	var b strings.Builder
	for _, w := range all {
		program := w.compile(t)
		fmt.Fprintf(&b, "### %s: %s\n\n", w.name, w.what)
		args := harness.Spxrun(t, w.n, program, w.args...)
		o := harness.Run(t, harness.Command{Args: append(append([]string{args[0]}, w.options...), args[1:]...), Env: w.env, Limit: 60 * time.Second})
		shown(&b, "libspx: `"+w.command("./"+w.name)+"`", o, program)
		for _, impl := range []string{"mpich", "openmpi"} {
			o := harness.Start(t, harness.Command{Args: append([]string{"timeout", "-k", "2", "10", script, "run", impl, "-n", w.n, program}, w.args...), Limit: time.Minute, Dir: filepath.Dir(program)})
			shown(&b, map[string]string{"mpich": "MPICH 5", "openmpi": "Open MPI 6"}[impl], o, program)
		}
	}
	if err := os.WriteFile(*table, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

const timedOut = 124 // of timeout(1)

func shown(b *strings.Builder, who string, o harness.Outcome, program string) {
	text := strings.ReplaceAll(strings.TrimSpace(o.Stderr+o.Stdout), filepath.Dir(program)+"/", "./")
	lines := first(text, 5)
	how := fmt.Sprintf("status %d", o.Status)
	if o.Status == timedOut && !strings.HasPrefix(who, "libspx") || o.Late {
		how = "ended after 10 s"
	}
	if text == "" {
		fmt.Fprintf(b, "%s: nothing (%s)\n\n", who, how)
		return
	}
	for i, l := range lines {
		if len(l) > 180 {
			lines[i] = l[:180] + " ..."
		}
	}
	fmt.Fprintf(b, "%s (%s):\n\n    %s\n\n", who, how, strings.Join(lines, "\n    "))
}
