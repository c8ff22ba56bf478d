// Command walk is a newcomer: in a fresh Debian root, where there are only make and Go, it does what README.md says, and nothing else: the first of its two
// commands, then those behind "$ ". It fails when a command does not print what the page shows, or when all takes ten minutes or more. Making the root does not count:
// that is the machine that the newcomer has.
//
//	make walk                        prints commands and times (root, debootstrap, and the network)
//	make walk RECORD=docs/walk.md    writes them down, too
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"libspx/tests/fresh"
	"libspx/tests/transcript"
)

const (
	limit = 10 * time.Minute
	suite = "bookworm"
	home  = "root" // of the newcomer, below the fresh root
)

func main() {
	record := flag.String("record", "", "a file for what was done")
	mirror := flag.String("mirror", "", "where the root's packages come from (default: where this machine's do)")
	root := flag.String("root", "", "a fresh root that is there already, with make")
	flag.Parse()
	if err := walk(*record, *mirror, *root); err != nil {
		fmt.Fprintln(os.Stderr, "walk:", err)
		os.Exit(1)
	}
}

func walk(record, mirror, root string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("a fresh root needs root")
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		return err
	}
	list := stepsOf(string(readme))
	if len(list) < 5 {
		return fmt.Errorf("README.md shows only %d commands", len(list))
	}
	if root == "" {
		dir, err := os.MkdirTemp("", "spx-walk-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		root = filepath.Join(dir, "root")
		fmt.Printf("a fresh root of Debian %s, with make: %s\n", suite, root)
		if err := (fresh.Base{Suite: suite, Mirror: mirror, Include: []string{"make"}}).Unpack(root); err != nil {
			return err
		}
	}
	env, err := fresh.Connect(root)
	if err == nil {
		err = furnish(root)
	}
	if err != nil {
		return err
	}
	begin := time.Now()
	output, err := carryOut(root, env, list)
	if err != nil {
		return err
	}
	return judge(record, list, transcript.Outcomes(output), begin, output)
}

// stepsOf: the first command of the page (make demo), and those that it shows with their output.
func stepsOf(readme string) []transcript.Step {
	first := regexp.MustCompile(`(?m)^    (make \w+)`).FindStringSubmatch(readme)
	if first == nil {
		return nil
	}
	return append([]transcript.Step{{Page: "README.md", Command: first[1]}}, transcript.Steps("README.md", readme)...)
}

// furnish puts the sources, as they are here, into the root.
func furnish(root string) error {
	src := filepath.Join(root, home, "libspx")
	if err := os.RemoveAll(src); err != nil {
		return err
	}
	if err := os.MkdirAll(src, 0o755); err != nil {
		return err
	}
	out, err := exec.Command("bash", "-c", `set -o pipefail; git ls-files -z | tar -c --null -T - | tar -x -C "$1"`, "bash", src).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copying the sources: %w\n%s", err, out)
	}
	return nil
}

// carryOut runs the steps in the root, in a shell with the environment env and nothing of this machine's.
func carryOut(root string, env []string, list []transcript.Step) (string, error) {
	script := "cd ~/libspx\n" + transcript.Script(list)
	if err := os.WriteFile(filepath.Join(root, home, "walk"), []byte(script), 0o644); err != nil {
		return "", err
	}
	var output bytes.Buffer
	words := fresh.Words(root, [][2]string{fresh.Go()}, "/bin/bash", "--norc", "/"+home+"/walk")
	cmd := exec.Command(words[0], words[1:]...)
	runtime.LockOSThread() // what is started ends with its thread
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Env, cmd.Stdout, cmd.Stderr = env, io.MultiWriter(os.Stdout, &output), os.Stderr
	if err := cmd.Start(); err != nil {
		return "", err
	}
	late := time.AfterFunc(2*limit, func() { cmd.Process.Kill() }) // what it has to say about a slow machine is written before
	defer late.Stop()
	cmd.Wait() // the status of the shell is that of its last command, which is judged with the others
	return output.String(), nil
}

func judge(record string, list []transcript.Step, outcomes []transcript.Outcome, begin time.Time, output string) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	if n := len(outcomes); n < len(list) {
		return fmt.Errorf("it ended in: %s\n%s", list[n].Command, output[max(0, len(output)-2000):])
	}
	last := float64(begin.UnixMicro()) / 1e6
	var page, summary strings.Builder
	wrong, from := 0, last
	for i, o := range outcomes {
		s := list[i]
		missing := s.Missing(o.Output, host)
		if !transcript.Allowed(list, i, o.Status) || len(missing) > 0 {
			wrong++
			fmt.Fprintf(os.Stderr, "walk: %s: exit status %d, does not print %q\n", s.Command, o.Status, missing)
		}
		name, _, more := strings.Cut(s.Command, "\n")
		if more {
			name += " ..."
		}
		fmt.Fprintf(&summary, "| `%s` | %.1f |\n", strings.ReplaceAll(name, "|", `\|`), o.At-last)
		for n, line := range append(strings.Split(s.Command, "\n"), shortened(o.Output)...) {
			if n == 0 {
				line = "$ " + line
			}
			page.WriteString(strings.TrimRight("    "+line, " ") + "\n")
		}
		last = o.At
	}
	took := last - from
	fmt.Printf("%s| all | %.1f |\n", summary.String(), took)
	if wrong > 0 {
		return fmt.Errorf("%d commands did not do what README.md shows", wrong)
	}
	if took >= limit.Seconds() {
		return fmt.Errorf("it took %.0f s: %.0f s and more are too long", took, limit.Seconds())
	}
	if record == "" {
		return nil
	}
	commit, _ := exec.Command("git", "log", "-1", "--format=%h").Output()
	text := fmt.Sprintf(`# A newcomer's walk

Made by %[1]smake walk RECORD=docs/walk.md%[1]s (%s, commit %s, %d processors). In a fresh root of Debian 12 with make and Go, as the network gives it, the commands of [README.md](../README.md) were carried
out, and no others: from nothing to a program that survives the death of a process in **%.0f seconds**. Packages and Go modules are fetched within that time; the root itself (debootstrap) was there.

| command | seconds |
|---|---|
%s| all | %.1f |

What was printed, shortened:

%s`, "`", begin.UTC().Format("2006-01-02"), strings.TrimSpace(string(commit)), runtime.NumCPU(), took, summary.String(), took, page.String())
	return os.WriteFile(record, []byte(text), 0o644)
}

// shortened is an output of which the middle is left out, with the newcomer's home as the shell writes it.
func shortened(output string) []string {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(output, "/"+home+"/", "~/"), "\n"), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	for i, l := range lines {
		if len(l) > 150 {
			lines[i] = l[:147] + "..."
		}
	}
	const head, tail = 4, 8
	if len(lines) > head+tail+1 {
		lines = append(append(append([]string{}, lines[:head]...), "..."), lines[len(lines)-tail:]...)
	}
	return lines
}
