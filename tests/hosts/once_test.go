package hosts

import (
	"path/filepath"
	"regexp"
	"testing"

	"libspx/tests/harness"
)

// What ranks of several hosts have to say for one cause is said once in the job.
func TestOnce(t *testing.T) {
	b := newBed(t, 3)
	alike := harness.Compile(t, "broken/alike", []string{filepath.Join(harness.Root(), "tests/broken/programs/alike.c")}, "-g", "-O1")
	count := func(pattern, text string) int { return len(regexp.MustCompile("(?m)"+pattern).FindAllString(text, -1)) }
	for _, c := range []struct {
		arg    string
		env    []string
		status int
		also   bool // those that have not spoken are named
	}{
		{arg: "early", status: 16, also: true},
		{arg: "", env: []string{"SPX_EAGER_MAX=much"}, status: 13, also: true},
		{arg: "fatal", status: 6},
		{arg: "leak", env: []string{"SPX_CHECK=1"}, also: true},
	} {
		command := b.spxrun("-host", b.list(4, 4, 4), "-n", "12", alike, c.arg)
		command.Env = append(command.Env, c.env...)
		o := harness.Run(t, command)
		if o.Late || o.Status != c.status {
			t.Errorf("%s %v: status %d, want %d; late %v\n%s", c.arg, c.env, o.Status, c.status, o.Late, o.Text())
		}
		if n := count(`^libspx: \S+ \S`, o.Stderr); n != 1 {
			t.Errorf("%s %v: %d messages, want 1\n%s", c.arg, c.env, n, o.Text())
		}
		if n := count(`^spxrun: also on ranks?`, o.Stderr); (n == 1) != c.also {
			t.Errorf("%s %v: %d lines of others\n%s", c.arg, c.env, n, o.Text())
		}
	}
}
