package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// step is a command of a page (a line of code that begins with "$ ") and what the page shows as its output.
type step struct {
	page    string
	line    int
	command string
	shows   []string
}

var here = regexp.MustCompile(`<<'(\w+)'`)

// steps are the commands of a page in their order. What follows a command in its block is its output, or the text that the command reads.
func steps(page, text string) (list []step) {
	open, until := false, ""
	for n, line := range strings.Split(text, "\n") {
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case !indented && strings.TrimSpace(line) != "":
			open, until = false, ""
		case until != "":
			last := &list[len(list)-1]
			last.command += "\n" + code
			if code == until {
				until = ""
			}
		case strings.HasPrefix(code, "$ ") && indented:
			list, open = append(list, step{page: page, line: n + 1, command: code[2:]}), true
			if m := here.FindStringSubmatch(code); m != nil {
				until = m[1]
			}
		case open && code != "":
			last := &list[len(list)-1]
			last.shows = append(last.shows, code)
		}
	}
	return list
}

// What differs from run to run: it is taken as equal.
var varies = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`\bpid \d+`), "pid N"},
	{regexp.MustCompile(`\b[0-9a-f]{16}\b`), "JOB"},
	{regexp.MustCompile(`\bjob [0-9a-f]{8}\b`), "job JOB"},
	{regexp.MustCompile(`\b\d+\.\d+\b`), "0.0"},
	{regexp.MustCompile(`\(SIGKILL\) in \w+`), "(SIGKILL)"},
	{regexp.MustCompile(`\s+`), " "},
}

func even(line, host string) string {
	line = regexp.MustCompile(`\b`+regexp.QuoteMeta(host)+`\b`).ReplaceAllString(strings.TrimSpace(line), "node1")
	for _, v := range varies {
		line = v.what.ReplaceAllString(line, v.as)
	}
	return line
}

const mark = "@@@@ end of step "

// session is a shell that carries out steps one after another, where no job of others is seen, in a folder that looks like the top of a built tree.
func session(t *testing.T, list []step) (outputs []string, statuses []int) {
	t.Helper()
	dir, build := t.TempDir(), harness.Build(t)
	for name, to := range map[string]string{"build": build, "examples": filepath.Join(harness.Root(), "examples"), "docs": filepath.Join(harness.Root(), "docs"),
		"tests": filepath.Join(harness.Root(), "tests")} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	script := "exec 2>&1\nunset LD_LIBRARY_PATH\nip link set lo up\n"
	for i, s := range list {
		script += fmt.Sprintf("%s\nspx_status=$?; echo; echo '%s%d' $spx_status; (exit $spx_status)\n", s.command, mark, i)
	}
	file := filepath.Join(t.TempDir(), "session")
	if err := os.WriteFile(file, []byte(script), 0o666); err != nil {
		t.Fatal(err)
	}
	alone := []string{"unshare", "-n"}
	if os.Geteuid() != 0 {
		alone = []string{"unshare", "-r", "-n"}
	}
	if out, err := exec.Command(alone[0], append(alone[1:], "ip", "link", "set", "lo", "up")...).CombinedOutput(); err != nil {
		t.Skipf("no network namespace of its own, so that other jobs would be seen: %v %s", err, out)
	}
	o := harness.Start(t, harness.Command{Args: append(alone, "bash", "--norc", file), Dir: dir, Limit: 3 * time.Minute, Env: []string{"PATH=" + os.Getenv("PATH")}})
	rest := o.Stdout
	for i := range list {
		out, after, found := strings.Cut(rest, "\n"+mark+strconv.Itoa(i)+" ")
		status, tail, _ := strings.Cut(after, "\n")
		n, err := strconv.Atoi(status)
		if !found || err != nil {
			t.Fatalf("%s:%d: the session ended in: %s\n%s", list[i].page, list[i].line, list[i].command, o.Text())
		}
		outputs, statuses, rest = append(outputs, out), append(statuses, n), tail
	}
	return outputs, statuses
}

// transcripts are pages whose commands are carried out from the first to the last, in one shell, and show what they print.
var transcripts = []string{"docs/tutorial.md", "docs/cookbook.md"}

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
			list := steps(page, all[page])
			if len(list) < 8 {
				t.Fatalf("only %d commands", len(list))
			}
			outputs, statuses := session(t, list)
			for i, s := range list {
				seen := map[string]bool{}
				for _, line := range strings.Split(outputs[i], "\n") {
					seen[even(line, host)] = true
				}
				shown := i+1 < len(list) && list[i+1].command == "echo $?"
				if statuses[i] != 0 && !shown {
					t.Errorf("%s:%d: %s: exit status %d\n%s", page, s.line, s.command, statuses[i], outputs[i])
				}
				for _, want := range s.shows {
					if want != "..." && !seen[even(want, host)] {
						t.Errorf("%s:%d: %s: does not print %q\n%s", page, s.line, s.command, want, outputs[i])
					}
				}
			}
		})
	}
}
