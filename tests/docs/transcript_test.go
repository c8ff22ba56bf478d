package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
	"libspx/tests/transcript"
)

// session carries out steps in one shell, where no job of others is seen, in a folder that looks like the top of a built tree.
func session(t *testing.T, list []transcript.Step) []transcript.Outcome {
	t.Helper()
	dir, build := t.TempDir(), harness.Build(t)
	for name, to := range map[string]string{"build": build, "examples": filepath.Join(harness.Root(), "examples"), "docs": filepath.Join(harness.Root(), "docs"),
		"tests": filepath.Join(harness.Root(), "tests")} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "session")
	if err := os.WriteFile(file, []byte("unset LD_LIBRARY_PATH; export LC_ALL=C\nip link set lo up\n"+transcript.Script(list)), 0o666); err != nil {
		t.Fatal(err)
	}
	alone := []string{"unshare", "-n"}
	if os.Geteuid() != 0 {
		alone = []string{"unshare", "-r", "-n"}
	}
	if out, err := exec.Command(alone[0], append(alone[1:], "ip", "link", "set", "lo", "up")...).CombinedOutput(); err != nil {
		t.Skipf("no network namespace of its own, so that other jobs would be seen: %v %s", err, out)
	}
	o := harness.Start(t, harness.Command{Args: append(alone, "bash", "--norc", file), Dir: dir, Limit: 3 * time.Minute})
	outcomes := transcript.Outcomes(o.Stdout)
	if n := len(outcomes); n < len(list) {
		t.Fatalf("%s:%d: the session ended in: %s\n%s", list[n].Page, list[n].Line, list[n].Command, o.Text())
	}
	return outcomes
}

// transcripts are pages whose commands are carried out from the first to the last, in one shell, and show what they print.
var transcripts = []string{"README.md", "docs/tutorial.md", "docs/tutorial-systems.md", "docs/cookbook.md", "docs/collectives.md"}

// Every command of these pages does what the page shows: the same lines, but for what differs from run to run, in any order. A status that is not
// zero is shown by echo $?.
func TestTranscripts(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	all := pages(t)
	for _, page := range transcripts {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			list := transcript.Steps(page, all[page])
			if len(list) < 5 {
				t.Fatalf("only %d commands", len(list))
			}
			for i, o := range session(t, list) {
				s := list[i]
				if !transcript.Allowed(list, i, o.Status) {
					t.Errorf("%s:%d: %s: exit status %d\n%s", page, s.Line, s.Command, o.Status, o.Output)
				}
				for _, want := range s.Missing(o.Output, host) {
					t.Errorf("%s:%d: %s: does not print %q\n%s", page, s.Line, s.Command, want, o.Output)
				}
			}
		})
	}
}
