package hosts

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"libspx/tests/harness"
)

// What agents of several hosts have to say alike is said once: here, that their limits forbid core files.
func TestOnceByAgents(t *testing.T) {
	b := newBed(t, 3)
	b.rsh = b.script(t, `exec "$hosts" rsh "$1" "ulimit -H -c 0; $2"`)
	c := b.spxrun("--cores", t.TempDir(), "-host", b.list(1, 1, 1), "-n", "3", program(t, "where"))
	c.Args = append([]string{"sh", "-c", `ulimit -H -c 0; exec "$0" "$@"`}, c.Args...)
	o := harness.Run(t, c)
	check(t, o, 0, nil)
	for _, pattern := range []string{`: core files may have no byte there \(ulimit -H -c is 0\): have the administrator raise it$`,
		`^spxrun: also on hosts \S+, \S+: --cores: core files may have no byte$`} {
		if n := len(regexp.MustCompile("(?m)"+pattern).FindAllString(o.Stderr, -1)); n != 1 {
			t.Errorf("%d lines like %q, want 1\n%s", n, pattern, o.Text())
		}
	}
}

// text is what a program has written so far.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (x *text) Write(p []byte) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.Write(p)
}

func (x *text) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.b.String()
}

func (x *text) count(pattern string) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(regexp.MustCompile("(?m)"+pattern).FindAll(x.b.Bytes(), -1))
}

// Two hosts cannot reach each other: of the ranks there one for each direction says so. When there is a way the job goes on, and the others are named at its end.
func TestOnceOutOfReach(t *testing.T) {
	b := newBed(t, 3)
	ways := func(verb string) {
		for _, way := range [][2]int{{2, 3}, {3, 2}} {
			if out, err := exec.Command("ip", "-n", b.host(way[0]), "route", verb, "unreachable", fmt.Sprintf("10.77.0.%d/32", way[1])).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
	}
	ways("add")
	c := b.spxrun("-host", b.list(1, 4, 4), "-n", "9", program(t, "pairs"))
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	var all text
	cmd.Env, cmd.Stdout, cmd.Stderr = append(append(os.Environ(), c.Env...), "SPX_HEARTBEAT=0"), &all, &all
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := harness.AfterFunc(150*time.Second, func() { cmd.Process.Kill() }) //nolint:errcheck // it has ended then
	defer late.Stop()
	for _, n := range []int{2, 3} {
		for began := time.Now(); all.count(fmt.Sprintf(`^libspx: .*cannot be reached at 10\.77\.0\.%d:`, n)) == 0; time.Sleep(5 * time.Millisecond) {
			if time.Since(began) > harness.Patience(time.Minute) {
				t.Fatalf("nobody complains of host %d\n%s", n, all.text())
			}
		}
	}
	time.Sleep(2 * time.Second) // in which the others try again, four times at least, and must not say so
	ways("del")
	if err := cmd.Wait(); err != nil || all.count("^9 ranks have exchanged$") != 1 {
		t.Errorf("%v\n%s", err, all.text())
	}
	for _, n := range []int{2, 3} {
		if said, also := all.count(fmt.Sprintf(`^libspx: .*cannot be reached at 10\.77\.0\.%d:`, n)), all.count(fmt.Sprintf(`^spxrun: also on ranks? .*: 10\.77\.0\.%d cannot be reached`, n)); said != 1 || also != 1 {
			t.Errorf("host %d: said %d times, %d lines of others\n%s", n, said, also, all.text())
		}
	}
}

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
		some   bool // those of them that had come so far before they were ended
	}{
		{arg: "early", status: 16, some: true},
		{arg: "", env: []string{"SPX_EAGER_MAX=much"}, status: 13, some: true},
		{arg: "fatal", status: 6, some: true},
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
		if n := count(`^spxrun: also on ranks?`, o.Stderr); n > 1 || !c.some && (n == 1) != c.also {
			t.Errorf("%s %v: %d lines of others\n%s", c.arg, c.env, n, o.Text())
		}
	}
}
