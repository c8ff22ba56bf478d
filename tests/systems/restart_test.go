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

func started(o harness.Outcome) int {
	return strings.Count(o.Stderr, "a process is started that takes its place")
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
