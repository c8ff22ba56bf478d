package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
	"libspx/tests/transcript"
)

const papersPage = "docs/papers.md"

// lines are the numbers that the page has a section for each: how many each paper has.
var lines = []int{13, 9, 8, 6, 9}

// A capability is a section of the page.
type capability struct {
	number  string
	state   string // Works, In part, Not yet
	seconds int    // that its commands take on a machine of 2 processors
	steps   []transcript.Step
}

var (
	capabilityHead  = regexp.MustCompile(`(?m)^### (S\d\.\d+) \S.*\n`)
	capabilityState = regexp.MustCompile(`^\*(Works|In part|Not yet)\* \((\d+) s\)\. \S`)
)

// capabilities are the sections of the page, and the commands that stand before the first of them; whatever is wrong with its form is told.
func capabilities(page, text string) (before []transcript.Step, list []capability, wrong []string) {
	heads := append(capabilityHead.FindAllStringSubmatchIndex(text, -1), []int{len(text)})
	all := transcript.Steps(page, text)
	within := func(from, to int) (steps []transcript.Step) {
		for _, s := range all {
			if at := strings.Count(text[:from], "\n"); s.Line > at && s.Line <= strings.Count(text[:to], "\n") {
				steps = append(steps, s)
			}
		}
		return steps
	}
	before = within(0, heads[0][0])
	for i, h := range heads[:len(heads)-1] {
		c := capability{number: text[h[2]:h[3]], steps: within(h[0], heads[i+1][0])}
		m := capabilityState.FindStringSubmatch(text[h[1]:])
		shown := 0
		for _, s := range c.steps {
			shown += len(slices.DeleteFunc(slices.Clone(s.Shows), func(l string) bool { return l == "..." }))
		}
		switch {
		case m == nil:
			wrong = append(wrong, c.number+": does not begin with *Works*, *In part* or *Not yet* and how long it takes")
		case m[1] != "Works" && !regexp.MustCompile(`Missing: \S`).MatchString(text[h[1]:heads[i+1][0]]):
			wrong = append(wrong, c.number+": does not say what is missing")
		case len(c.steps) == 0 || shown == 0:
			wrong = append(wrong, c.number+": no command, or none that shows what it prints")
		}
		if m != nil {
			c.state = m[1]
			c.seconds, _ = strconv.Atoi(m[2])
		}
		list = append(list, c)
	}
	var numbers []string
	for _, c := range list {
		numbers = append(numbers, c.number)
	}
	for paper, n := range lines {
		for line := range n {
			number := fmt.Sprintf("S%d.%d", paper+1, line+1)
			if count := len(slices.DeleteFunc(slices.Clone(numbers), func(s string) bool { return s != number })); count != 1 {
				wrong = append(wrong, fmt.Sprintf("%s: %d sections", number, count))
			}
		}
	}
	if len(list) != 45 {
		wrong = append(wrong, fmt.Sprintf("%d sections", len(list)))
	}
	return before, list, wrong
}

// What the page's form is looked at for is found.
func TestPapersBites(t *testing.T) {
	text := "# P\n\n    $ begin\n\n### S1.1 One\n*Works* (1 s). It does.\n\n    $ a\n    b\n\n### S1.2 Two\n*In part* (3 s). It does.\n\n    $ c\n    d\n\n### S1.3 Three\n*Works* (1 s). It does.\n\n    $ e\n    ...\n\n### S1.1 Again\nIt works.\n"
	before, list, wrong := capabilities("p", text)
	said := strings.Join(wrong, "\n")
	if len(before) != 1 || len(list) != 4 || list[1].seconds != 3 || list[0].steps[0].Command != "a" || len(list[0].steps) != 1 {
		t.Errorf("%+v", list)
	}
	for _, want := range []string{"S1.2: does not say what is missing", "S1.3: no command, or none that shows", "S1.1: does not begin with", "S1.1: 2 sections", "S1.4: 0 sections", "S5.9: 0 sections", "4 sections"} {
		if !strings.Contains(said, want) {
			t.Errorf("does not say %q:\n%s", want, said)
		}
	}
}

var lab = regexp.MustCompile(`\blab(\d*|sw)\b`)

// TestPapers carries out the commands of each line of the five papers, in a shell and a folder of their own, and compares with what the page shows. Those that take long are for SPX_TESTS=full.
func TestPapers(t *testing.T) {
	before, list, wrong := capabilities(papersPage, pages(t)[papersPage])
	for _, w := range wrong {
		t.Errorf("%s: %s", papersPage, w)
	}
	if len(before) != 2 {
		t.Fatalf("%d commands before the first line", len(before))
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	top := harness.SharedDir(t)
	build := harness.Build(t)
	for name, to := range map[string]string{"build": build, "examples": "examples", "scripts": "scripts", "tests": "tests"} {
		if !filepath.IsAbs(to) {
			to = filepath.Join(harness.Root(), to)
		}
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	papersShell(t, top, "papers", before)
	hosts := fmt.Sprintf("p%x", os.Getpid()%0x1000000) // their names belong to the whole machine
	for _, c := range list {
		t.Run(c.number, func(t *testing.T) {
			text := fmt.Sprint(c.steps)
			switch {
			case c.seconds > 2 && !harness.Full():
				t.Skip("takes longer: SPX_TESTS=full")
			case strings.Contains(text, "scripts/hosts") && os.Geteuid() != 0:
				t.Skip("hosts of scripts/hosts need root")
			}
			if out, err := exec.Command("cp", "-r", filepath.Join(top, "papers"), filepath.Join(top, c.number)).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			names, _ := filepath.Glob(filepath.Join(top, c.number, "*.toml"))
			for _, name := range names {
				file, err := os.ReadFile(name)
				if err == nil {
					err = os.WriteFile(name, lab.ReplaceAll(file, []byte(hosts+"$1")), 0o666)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			steps := slices.Clone(c.steps)
			for i := range steps {
				steps[i].Command = strings.ReplaceAll(lab.ReplaceAllString(steps[i].Command, hosts+"$1"), "-f lab%g", "-f "+hosts+"%g")
			}
			if strings.Contains(text, "scripts/hosts") {
				defer exec.Command(harness.HostsScript(), "down", hosts).Run() //nolint:errcheck // as a rule the commands have done so
			}
			for i, o := range papersShell(t, top, c.number, steps) {
				s, output := c.steps[i], strings.ReplaceAll(o.Output, hosts, "lab")
				if !transcript.Allowed(steps, i, o.Status) {
					t.Errorf("%s:%d: %s: exit status %d\n%s", papersPage, s.Line, s.Command, o.Status, output)
				}
				for _, want := range s.Missing(output, host) {
					t.Errorf("%s:%d: %s: does not print %q\n%s", papersPage, s.Line, s.Command, want, output)
				}
			}
		})
	}
}

// papersShell carries out steps in one shell, beside no other job, in a folder below top; "papers" is made by them.
func papersShell(t *testing.T, top, folder string, steps []transcript.Step) []transcript.Outcome {
	t.Helper()
	script := filepath.Join(top, folder+".sh")
	begin := "unset LD_LIBRARY_PATH; export LC_ALL=C PATH=$PWD/build/bin:$PATH XDG_CACHE_HOME=$PWD/cache-" + folder + "\nip link set lo up\n"
	if folder != "papers" {
		begin += "cd " + folder + "\n"
	}
	if err := os.WriteFile(script, []byte(begin+transcript.Script(steps)), 0o666); err != nil {
		t.Fatal(err)
	}
	alone := []string{"unshare", "-n", "bash", "--norc", script}
	if os.Geteuid() != 0 {
		alone = append([]string{"unshare", "-r"}, alone[1:]...)
	}
	o := harness.Start(t, harness.Command{Args: alone, Dir: top, Limit: 100 * time.Second, Env: []string{fmt.Sprintf("HOSTS_OWNER=%d", os.Getpid()), "HOSTS_SHARED=" + harness.Build(t) + ":" + top}})
	outcomes := transcript.Outcomes(o.Stdout)
	if n := len(outcomes); n < len(steps) {
		t.Fatalf("%s:%d: the commands ended in: %s\n%s", papersPage, steps[n].Line, steps[n].Command, o.Text())
	}
	return outcomes
}
