package systems

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"libspx/tests/harness"
)

// restarting is a cluster in whose ranks' places processes are started, at most restarts of them.
func restarting(t *testing.T, name, takeover string, ranks, standbys, restarts, steps int, victims string, env ...string) harness.Outcome {
	t.Helper()
	text := fmt.Sprintf("[failure]\nprocess = \"restart\"\nrestarts = %d\n\n[[cluster]]\nname = \"work\"\nprogram = %q\nargs = [\"%d\", \"%d\", %q]\nranks = %[3]d\nstandbys = %[6]d\ntakeover = %[7]q\n",
		restarts, program(t, name), ranks, steps, victims, standbys, takeover)
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		text += fmt.Sprintf("environment = { %s = %q }\n", name, value)
	}
	return file(t, text)
}

// started counts the processes that were started in the place of others. Of one that dies at once after it took a rank the agent may not have heard that it had: it is a standby's death then.
func started(o harness.Outcome) int {
	return strings.Count(o.Stderr, "a process is started that takes its place (") + strings.Count(o.Stderr, "another one is started (")
}

// Ranks die, one after another, at once, all of them, the only one, and those that have been started in their place; standbys that wait come first. Nobody notices, and no process more is
// started than is needed.
func TestRestartTransparent(t *testing.T) {
	for name, c := range map[string]struct {
		ranks, standbys, restarts int
		victims                   string
		started                   int
	}{
		"nobody":            {4, 0, 2, ",", 0},
		"rank 0":            {4, 0, 3, ",0@3.1,", 1},
		"at the beginning":  {4, 0, 3, ",2@0.1,", 1},
		"one after another": {4, 0, 4, ",0@2.5,0@3.0,1@5.1,1@6.2,", 4},
		"two":               {3, 0, 2, ",1@2.1,2@6.3,", 2},
		"at the same time":  {4, 0, 2, ",1@4.1,3@4.1,", 2},
		"all":               {4, 0, 4, ",0@1.1,1@1.2,2@1.3,3@1.4,", 4},
		"standby first":     {3, 1, 2, ",1@2.1,2@6.3,", 1},
	} {
		for _, transport := range []string{"all", "tcp"} {
			t.Run(name+"/"+transport, func(t *testing.T) {
				var env []string
				if transport == "tcp" {
					env = []string{"SPX_TRANSPORTS=tcp"}
				}
				o := restarting(t, "transparent", "transparent", c.ranks, c.standbys, c.restarts, 12, c.victims, env...)
				if o.Status != 0 || !strings.Contains(o.Stdout, "done 12\n") {
					t.Fatalf("exit status %d\n%s", o.Status, o.Text())
				}
				if n := started(o); n != c.started {
					t.Errorf("%d processes were started in the place of ranks, there should be %d\n%s", n, c.started, o.Text())
				}
				t.Logf("takeovers in %.1f ms", takeovers(t, o.Stdout))
			})
		}
	}
}

// The same in notified mode: the program is told, and restores.
func TestRestartNotified(t *testing.T) {
	for name, c := range map[string]struct {
		ranks, restarts int
		victims         string
		started         int
		env             []string
	}{
		"nobody":            {3, 1, ",", 0, nil},
		"rank 0":            {4, 1, ",0@3,", 1, nil},
		"two at once":       {4, 2, ",1@4,3@4,", 2, nil},
		"one after another": {4, 3, ",1@2,0@5,3@9,", 3, nil},
		"tcp":               {4, 2, ",0@2,2@6,", 2, []string{"SPX_TRANSPORTS=tcp"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := restarting(t, "takeover", "notified", c.ranks, 0, c.restarts, 12, c.victims, c.env...)
			t.Logf("takeovers in %.1f ms", worked(t, o, 12))
			if n := started(o); n != c.started {
				t.Errorf("%d processes were started in the place of ranks, there should be %d\n%s", n, c.started, o.Text())
			}
		})
	}
}

// When as many have been started as may be, the next death stops the cluster, as one without a standby left does.
func TestRestartsUsedUp(t *testing.T) {
	for _, o := range []harness.Outcome{restarting(t, "transparent", "transparent", 3, 0, 1, 12, ",1@3.1,2@7.2,"), restarting(t, "takeover", "notified", 3, 0, 1, 12, ",1@3,2@7,")} {
		if o.Status == 0 || started(o) != 1 || !strings.Contains(o.Stderr, "(1 of at most 1)") || !strings.Contains(o.Stderr, "cluster work is ended") {
			t.Errorf("exit status %d\n%s", o.Status, o.Text())
		}
	}
}

// Nobody dies: of those that could be started none ever is, and nobody waits for them at the end.
func TestNobodyIsStarted(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "begun")
	script := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(script, []byte(fmt.Sprintf("#!/bin/sh\necho x >> %s\nexec %s \"$@\"\n", mark, program(t, "transparent"))), 0o755); err != nil {
		t.Fatal(err)
	}
	o := file(t, fmt.Sprintf("[[cluster]]\nname = \"work\"\nprogram = %q\nargs = [\"3\", \"12\", \",\"]\nranks = 3\ntakeover = \"transparent\"\nfailure = { process = \"restart\", restarts = 5 }\n", script))
	if o.Status != 0 || !strings.Contains(o.Stdout, "done 12\n") || started(o) != 0 {
		t.Errorf("exit status %d\n%s", o.Status, o.Text())
	}
	if text, _ := os.ReadFile(mark); len(text) != 2*3 {
		t.Errorf("%d processes were started, there should be 3", len(text)/2)
	}
}

// Who is started in the place of a rank, and dies before it has that rank, counts; another one is started, as long as there may be one.
func TestStartedDiesBeforeItHasARank(t *testing.T) {
	for name, c := range map[string]struct {
		takeover, program, victims string
		dying, restarts            int // so many of those that are started die at once; of at most so many
		done                       bool
	}{
		"notified":             {"notified", "takeover", ",1@3,", 2, 3, true},
		"transparent":          {"transparent", "transparent", ",1@3.1,", 2, 3, true},
		"notified, used up":    {"notified", "takeover", ",1@3,", 2, 2, false},
		"transparent, used up": {"transparent", "transparent", ",1@3.1,", 2, 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			script := filepath.Join(dir, "program") // each that is started takes the next number
			text := fmt.Sprintf("#!/bin/sh\nn=0\nwhile ! mkdir %s/$n 2>/dev/null; do n=$((n + 1)); done\nif [ $n -ge 3 ] && [ $n -lt %d ]; then kill -9 $$; fi\nexec %s \"$@\"\n", dir, 3+c.dying, program(t, c.program))
			if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
			o := file(t, fmt.Sprintf("[[cluster]]\nname = \"work\"\nprogram = %q\nargs = [\"3\", \"12\", %q]\nranks = 3\ntakeover = %q\nfailure = { process = \"restart\", restarts = %d }\n", script, c.victims, c.takeover, c.restarts))
			if done := o.Status == 0 && strings.Contains(o.Stdout, "done 12"); done != c.done || !c.done && o.Status == 0 {
				t.Errorf("exit status %d\n%s", o.Status, o.Text())
			}
			if want := fmt.Sprintf("(2 of at most %d)", c.restarts); !strings.Contains(o.Stderr, want) || !c.done && !strings.Contains(o.Stderr, "cluster work is ended") {
				t.Errorf("no %q in\n%s", want, o.Text())
			}
		})
	}
}

// A cluster that has used up its restarts is started again as a whole, where the file says so; then all its processes are there, and those beyond the ranks wait.
func TestRestartOfRanksAndCluster(t *testing.T) {
	o := file(t, fmt.Sprintf("[[cluster]]\nname = \"work\"\nprogram = %q\nargs = [\"3\", \"12\", \",1@3,2@7,\"]\nranks = 3\nfailure = { process = \"restart\", cluster = \"restart\", restarts = 1 }\n", program(t, "takeover")))
	for _, want := range []string{"a process is started that takes its place (1 of at most 1)", "cluster work is started again (1 of at most 1 times)", "a standby takes its place", "it has been started again 1 times"} {
		if o.Status == 0 || !strings.Contains(o.Stderr, want) {
			t.Errorf("exit status %d, or no %q in\n%s", o.Status, want, o.Text())
		}
	}
}
