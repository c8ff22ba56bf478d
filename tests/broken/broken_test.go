// Package broken runs programs that are wrong, and proves that libspx names the cause within the first five lines that a user sees. What other
// implementations say of the same programs is in docs/broken-programs.md, which TestRecord makes.
package broken

import (
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
	wrong   string // for its section: the mistake, and what comes of it
	n       string
	options []string // of spxrun
	env     []string
	args    []string
	says    string // a pattern, within one of the first five lines
	status  int
}

var all = []wrong{
	{name: "deadlock2", what: "two ranks receive before they send",
		wrong: "Each of two ranks waits in MPI_Recv for the other's message, which the other sends only after its own MPI_Recv. One of them has to send first, or both call MPI_Sendrecv.",
		n:     "2", options: []string{"--hang-after", "1"}, status: 124,
		says: `deadlock: rank 0 and rank 1 wait for each other`},
	{name: "cycle5", what: "five ranks send in a circle",
		wrong: "Each of five ranks sends 32 MB to the next one before it receives. A send of that size ends when its receive is there, so all wait. Short messages would have gone through: the program only works as long as they are short.",
		n:     "5", options: []string{"--hang-after", "1"}, status: 124,
		says: `deadlock: a circle of 5: rank 0 waits for rank 1, .* rank 4 waits for rank 0`},
	{name: "missing", what: "rank 2 is not in the barrier",
		wrong: "Three of four ranks are in MPI_Barrier; rank 2 has taken another branch of an `if`, and waits for a message that nobody sends.",
		n:     "4", options: []string{"--hang-after", "1"}, status: 124,
		says: `rank 2 is missing in MPI_Barrier on MPI_COMM_WORLD: ranks 0-1,3 are in it`},
	{name: "root", what: "rank 1 gives another root",
		wrong: "In MPI_Reduce rank 1 gives itself as the root, the others give 0. The data of some never arrive, or arrive where nobody looks.",
		n:     "3", env: []string{"SPX_CHECK=1"}, status: 8,
		says: `mismatched root: root = (1 here \(rank 1\), but root = 0 on rank [02]|0 here \(rank [02]\), but root = 1 on rank 1)`},
	{name: "type", what: "doubles are broadcast, ints expected",
		wrong: "Rank 0 broadcasts 10 doubles, the others expect 10 ints: half of the bytes have no place.",
		n:     "2", env: []string{"SPX_CHECK=1"}, status: 3,
		says: `mismatched datatypes: 10 of MPI_(INT|DOUBLE) here .*, but 10 of MPI_(DOUBLE|INT) on rank`},
	{name: "truncation", what: "the message is longer than the buffer",
		wrong: "Rank 0 sends 100 ints, rank 1 has room for 50.",
		n:     "2", status: 15,
		says: `MPI_ERR_TRUNCATE.* the message from rank 0 \(tag 5\) has 400 bytes, the receive buffer 200`},
	{name: "nobody", what: "nobody receives a large message",
		wrong: "Rank 0 sends 8 MB to rank 1, which calls MPI_Barrier without receiving them.",
		n:     "2", options: []string{"--hang-after", "1"}, status: 124,
		says: `unmatched send: the message of rank 0 to rank 1 \(tag 3, 8000000 bytes, on MPI_COMM_WORLD\) is not received: rank 1 is in MPI_Barrier`},
	{name: "tag", what: "the receive has another tag",
		wrong: "Rank 0 sends with tag 9, rank 1 receives tag 8.",
		n:     "2", options: []string{"--hang-after", "1"}, status: 124,
		says: `wrong tag: rank 1 waits for a message with tag 8, but rank 0 of MPI_COMM_WORLD has sent it one with tag 9`},
	{name: "freed", what: "a communicator is used after MPI_Comm_free",
		wrong: "A copy of a communicator's handle is used after MPI_Comm_free of the communicator.",
		n:     "2", status: 5,
		says: `MPI_Barrier.* failed: MPI_ERR_COMM.*freed`},
	{name: "spins", what: "rank 1 computes for ever",
		wrong: "The iteration of rank 1 does not converge: it computes for ever, while the others wait in MPI_Allreduce.",
		n:     "3", options: []string{"--timeout", "3", "--report-on-timeout"}, status: 124,
		says: `ranks 0,2 wait for rank 1, which is in no MPI call that waits: it is in iterate \(spins\.c:\d+\)`},
	{name: "dies", what: "rank 1 ends with status 0, without MPI_Finalize",
		wrong: "Rank 1 ends by `_exit(0)` between MPI_Init and MPI_Finalize, as a library does that gives up quietly.",
		n:     "3", status: 1,
		says: `rank 1 \(pid \d+ on .*\) exited with status 0 .*without calling MPI_Finalize`},
	{name: "disk", what: "a file is written to a full disk",
		wrong: "Both ranks write 4 MB to a file for which there is no room (`/dev/full` stands for it). Errors of files are returned; the program asks MPI_Error_string, prints what it gets, and calls MPI_Abort.",
		n:     "2", args: []string{"/dev/full"}, status: 3,
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
