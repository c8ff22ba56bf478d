package broken

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/tests/harness"
)

const (
	page    = "docs/broken-programs.md"
	refresh = "go test ./tests/broken -run TestRecord -record -timeout 20m"
	// How long a program runs under the other implementations, which have no bound of their own, before it is said to hang.
	patience = 6 * time.Second
	widest   = 180 // of a line that is shown
)

var record = flag.Bool("record", false, "TestRecord writes "+page)

var peers = []struct{ name, title string }{{"mpich", "MPICH 5"}, {"openmpi", "Open MPI 6"}}

// TestRecord runs the programs under libspx, MPICH and Open MPI, the same binaries, and writes docs/broken-programs.md.
func TestRecord(t *testing.T) {
	if !*record {
		t.Skip("without -record there is nothing to be written")
	}
	script := filepath.Join(harness.Root(), "scripts/peers")
	if out, err := exec.Command(script, "check").CombinedOutput(); err != nil {
		t.Fatal(strings.TrimSpace(string(out)))
	}
	versions, err := exec.Command(script, "versions").Output()
	if err != nil {
		t.Fatal(err)
	}
	var rows, sections strings.Builder
	for _, w := range all {
		program := w.compile(t)
		args := harness.Spxrun(t, w.n, program, w.args...)
		o := harness.Run(t, harness.Command{Args: append(append([]string{args[0]}, w.options...), args[1:]...), Env: w.env, Limit: time.Minute})
		ours := said(o.Stderr+o.Stdout, program)
		fmt.Fprintf(&rows, "| [%s](#%s) | %s |", w.what, w.name, cell(naming(ours, w.says)))
		fmt.Fprintf(&sections, "\n## %s\n%s ([%s.c](../tests/broken/programs/%s.c))\n\n    %s\n\nlibspx (status %d):\n\n%s", w.name, w.wrong, w.name, w.name, w.command("./"+w.name), o.Status, block(ours))
		for _, p := range peers {
			text, how := bounded(t, filepath.Dir(program), append([]string{script, "run", p.name, "-n", w.n, program}, w.args...))
			lines := said(text, program)
			switch {
			case len(lines) == 0:
				fmt.Fprintf(&rows, " %s, says nothing |", how)
				fmt.Fprintf(&sections, "\n%s: nothing (%s)\n", p.title, how)
			default:
				fmt.Fprintf(&rows, " %s |", cell(telling(lines)))
				fmt.Fprintf(&sections, "\n%s (%s):\n\n%s", p.title, how, block(lines))
			}
		}
		rows.WriteString("\n")
	}
	text := fmt.Sprintf(`# Twelve broken programs

What a user sees of twelve common mistakes: the command, and the first five lines that come of it, under libspx and, the same binary
without options, under MPICH and Open MPI (%s). A program that had not ended after %g s there hangs.
That libspx names the cause within those lines is held by `+"`go test ./tests/broken`"+`; this page is made by

    %s

Before `+"`spxrun`"+` stands what is set; `+"`--hang-after`"+`, `+"`--timeout`"+` and `+"`SPX_CHECK`"+` are explained in [diagnosis](diagnosis.md).

| mistake | libspx | %s | %s |
|---|---|---|---|
%s%s`, strings.Join(strings.Split(strings.TrimSpace(string(versions)), "\n"), ", "), patience.Seconds(), refresh, peers[0].title, peers[1].title, rows.String(), sections.String())
	if err := os.WriteFile(filepath.Join(harness.Root(), page), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// The page has a section for each program, with its command as the test runs it and the mistake as it is described here, and its
// five lines from libspx still fit what the test expects.
func TestPageIsCurrent(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(harness.Root(), page))
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(text), "\n## ")[1:]
	if len(sections) != len(all) {
		t.Fatalf("%s has %d sections for %d programs: %s", page, len(sections), len(all), refresh)
	}
	for i, w := range all {
		ours, _, _ := strings.Cut(sections[i], "\n"+peers[0].title)
		for _, want := range []string{w.name + "\n", w.wrong, "\n    " + w.command("./"+w.name) + "\n"} {
			if !strings.Contains(ours, want) {
				t.Errorf("%s, %s: there is no %q: %s", page, w.name, want, refresh)
			}
		}
		if !regexp.MustCompile(w.says).MatchString(ours) {
			t.Errorf("%s, %s: libspx's lines do not have %q: %s", page, w.name, w.says, refresh)
		}
	}
}

var (
	hostname, _ = os.Hostname()
	// The folders of a build tell nothing.
	pathOf = regexp.MustCompile(`(/[\w.+-]+)+/([\w.+-]+)`)
)

// said are the first lines of what a program and its launcher have printed, as a user on a host node7 would see them.
func said(text, program string) []string {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	text = strings.ReplaceAll(text, filepath.Dir(program)+"/", "./")
	text = regexp.MustCompile(`\b`+regexp.QuoteMeta(hostname)+`\b`).ReplaceAllString(text, "node7")
	lines := first(text, 5)
	for i, l := range lines {
		l = strings.TrimRight(pathOf.ReplaceAllStringFunc(l, func(p string) string {
			if strings.HasPrefix(p, "/dev/") {
				return p
			}
			return filepath.Base(p)
		}), " \t")
		if len(l) > widest {
			l = l[:widest] + " ..."
		}
		lines[i] = l
	}
	return lines
}

func block(lines []string) string {
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight("    "+l, " ") + "\n")
	}
	return b.String()
}

// naming is the line that a pattern is in.
func naming(lines []string, says string) string {
	for _, l := range lines {
		if regexp.MustCompile(says).MatchString(l) {
			return l
		}
	}
	return strings.Join(lines, " ")
}

var cause = regexp.MustCompile(`MPI_ERR_|[Ii]nvalid|fault|No space|exited due`)

// telling is the line that names a cause, as those launchers do, else the first one with words.
func telling(lines []string) string {
	for _, of := range []*regexp.Regexp{cause, regexp.MustCompile("[A-Za-z]")} {
		for _, l := range lines {
			if of.MatchString(l) {
				return l
			}
		}
	}
	return lines[0]
}

// bounded runs a command for as long as there is patience, and returns what it has said until then, and how it has ended. What it says
// when it is ended is not its own word.
func bounded(t *testing.T, dir string, args []string) (text, how string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	c := exec.Command(args[0], args[1:]...)
	c.Dir, c.Stdout, c.Stderr = dir, file, file
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case <-ended:
		how = fmt.Sprintf("status %d", c.ProcessState.ExitCode())
	case <-time.After(patience):
		how = "hangs"
	}
	all, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	if how == "hangs" {
		for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			syscall.Kill(-c.Process.Pid, s) //nolint:errcheck // it may have ended meanwhile
			select {
			case <-ended:
				return string(all), how
			case <-time.After(patience):
			}
		}
		t.Fatalf("%q does not end", args)
	}
	return string(all), how
}

func cell(line string) string { return strings.ReplaceAll(strings.TrimSpace(line), "|", "\\|") }
