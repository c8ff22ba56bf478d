package hosts

import (
	"path/filepath"
	"regexp"
	"testing"

	"libspx/tests/harness"
)

// Why a job of three hosts stands still, asked on the first of them: a circle of sends over all hosts, where each process is in its program, and which messages wait.
func TestInspection(t *testing.T) {
	b := newBed(t, 3)
	circle := harness.Compile(t, "hosts/circle", []string{filepath.Join(harness.Root(), "tests/broken/programs/cycle5.c")}, "-g")
	b.talks(t, []string{"-host", b.list(1, 1, 1), "-n", "3"}, circle)
	ask := func(args ...string) string {
		return harness.Start(t, harness.Command{Args: append([]string{script(), "on", b.host(1), filepath.Join(harness.Build(t), "bin/spxctl")}, args...)}).Stdout
	}
	until(t, "deadlock over three hosts", func() bool { return regexp.MustCompile(`deadlock: a circle of 3: `).MatchString(ask("waits", ".")) })
	for question, list := range map[string][]string{
		"waits":  {`deadlock: a circle of 3: rank 0 waits for rank 1, rank 1 waits for rank 2, rank 2 waits for rank 0\n`, `rank 2 is in MPI_Send\(.*dest=0, .*at main \(cycle5\.c:14\)`},
		"stacks": {`rank 0 \(pid \d+ on ` + b.host(1) + `\) .*\n.*MPI_Send .*\n.*main \(cycle5\.c:14\)`, `rank 2 \(pid \d+ on ` + b.host(3) + `\) .*\n.*MPI_Send .*\n.*main \(cycle5\.c:14\)`},
		"queues": {`(?s)rank 1: 0 receives posted, 1 message unexpected, 1 send pending.*unexpected +message of 32000000 bytes from rank 0.*sent, not received +message of 32000000 bytes to rank 2`},
		"ps":     {`(?m)^ +0 .* ` + b.host(1) + ` .*MPI_Send`, `(?m)^ +1 .* ` + b.host(2) + ` .*MPI_Send`, `(?m)^ +2 .* ` + b.host(3) + ` .*MPI_Send`},
	} {
		text := ask(question, ".")
		for _, want := range list {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("spxctl %s: no %q in\n%s", question, want, text)
			}
		}
	}
	b.ctl(t, 0, `3 processes on 3 hosts from `+b.host(1)+` on, since `, "", "jobs", "--long")
	b.ctl(t, 0, `has ended, exit status 143`, "", "kill", ".")
}
