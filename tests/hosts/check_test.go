package hosts

import (
	"path/filepath"
	"regexp"
	"testing"

	"libspx/tests/harness"
)

// SPX_CHECK=1 compares collectives between hosts too: the members of the lowest ranks tell each other. With a rank for each host nothing can be seen
// within one.
func TestMismatchBetweenHosts(t *testing.T) {
	b := newBed(t, 3)
	for _, c := range []struct{ name, says string }{
		{"root", `mismatched root: root = (1 here \(rank 1\), but root = 0 on rank [02]|0 here \(rank [02]\), but root = 1 on rank 1)`},
		{"type", `mismatched datatypes: 10 of MPI_(INT|DOUBLE) here .*, but 10 of MPI_(DOUBLE|INT) on rank`},
	} {
		program := harness.Compile(t, "broken/"+c.name, []string{filepath.Join(harness.Root(), "tests/broken/programs", c.name+".c")}, "-g", "-O1")
		command := b.spxrun("-host", b.list(1, 1, 1), "-n", "3", program)
		command.Env = append(command.Env, "SPX_CHECK=1")
		o := harness.Run(t, command)
		if o.Late || o.Status == 0 || !regexp.MustCompile(c.says).MatchString(o.Stderr) {
			t.Errorf("%s: status %d, late %v; want %s\n%s", c.name, o.Status, o.Late, c.says, o.Text())
		}
	}
}

// A program that is right runs with SPX_CHECK=1 on several hosts as without it.
func TestCheckOfSeveralHosts(t *testing.T) {
	b := newBed(t, 3)
	program := harness.Compile(t, "c/coll/every", []string{filepath.Join(harness.Root(), "tests/c/coll/every.c")}, "-g", "-O1")
	command := b.spxrun("-host", b.list(2, 2, 2), "-n", "6", program)
	command.Env = append(command.Env, "SPX_CHECK=1")
	if o := harness.Run(t, command); o.Late || o.Status != 0 {
		t.Errorf("status %d, late %v\n%s", o.Status, o.Late, o.Text())
	}
}
