// Package docs holds what documents say to what is there: links, commands and their output, and the site that is made of them.
package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"libspx/tests/harness"
	"libspx/tests/transcript"
)

// A command of a page: an indented line that begins with the name of a program, or such a text with arguments in backquotes.
type command struct {
	page string
	line int
	text string
}

// programs that a line of a page may begin with, to be a command.
const programs = `make|go|spxrun|spxctl|mpicc|mpicxx|mpifort|mpirun|mpiexec|mpiexec\.hydra|srun|sbatch|salloc|qsub|qconf|bsub|kubectl|prterun|prte|prun|flux|gdb|module|ssh|scripts/hosts|build/bin/\w+|` +
	`pkg-config|cmake|update-alternatives|ldd|grep|until|man|export|apt-get|echo|cat|mkdir|cd|ls`

var (
	begins = regexp.MustCompile(`^(?:[A-Z_]+=\S+ )*(?:` + programs + `)(?: |$)`)
	quoted = regexp.MustCompile("`([^`]+)`")
	remark = regexp.MustCompile(` {2,}.*$| +# .*$`)
	others = regexp.MustCompile(`^prterun has exited`) // what another program prints
)

// commandsOf are the commands of a page, each once.
func commandsOf(page, text string) (list []command) {
	add := func(n int, c string) {
		c = strings.ReplaceAll(c, `\|`, "|")
		if begins.MatchString(c) && !others.MatchString(c) && !slices.ContainsFunc(list, func(o command) bool { return o.text == c }) {
			list = append(list, command{page, n + 1, c})
		}
	}
	for n, line := range strings.Split(text, "\n") {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			code = strings.TrimPrefix(strings.TrimSpace(code), "$ ")
			add(n, remark.ReplaceAllString(code, ""))
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			if strings.Contains(m[1], " ") {
				add(n, m[1])
			}
		}
	}
	return list
}

type row struct {
	line                int
	pattern             *regexp.Regexp
	how, what, evidence string
	used                bool
}

func table(t *testing.T) (rows []*row) {
	t.Helper()
	text, err := os.ReadFile("commands.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for n, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := append(strings.Split(line, "\t"), "", "", "")
		rows = append(rows, &row{line: n + 1, pattern: regexp.MustCompile(`^(?:` + f[0] + `)$`), how: f[1], what: f[2], evidence: f[3]})
	}
	return rows
}

// recorded is what tests/walk has written: all of its commands were executed when it was, and are those of README.
const recorded = "docs/walk.md"

// Every command of every page has a row, and what the row says of it is true. Those that are executed here succeed.
func TestCommands(t *testing.T) {
	rows := table(t)
	c := &checker{t: t}
	var here, beside []command
	status := map[string]string{}
	for page, text := range pages(t) {
		if page == recorded {
			continue
		}
		inSteps := map[string]bool{}
		if slices.Contains(transcripts, page) || page == papersPage {
			for _, s := range transcript.Steps(page, text) {
				inSteps[strings.Split(s.Command, "\n")[0]] = true
			}
		}
		for _, cmd := range commandsOf(page, text) {
			if inSteps[cmd.text] || inSteps[remark.ReplaceAllString(cmd.text, "")] {
				continue
			}
			at := slices.IndexFunc(rows, func(r *row) bool { return r.pattern.MatchString(cmd.text) })
			if at < 0 {
				t.Errorf("%s:%d: no row of tests/docs/commands.tsv says which test executes: %s", cmd.page, cmd.line, cmd.text)
				continue
			}
			r := rows[at]
			r.used = true
			if (r.how == "here" || r.how == "job") && r.evidence != "" {
				cmd.text = strings.Replace(r.evidence, "$0", cmd.text, 1)
			}
			switch r.how {
			case "here":
				here = append(here, cmd)
				status[cmd.text] = r.what
			case "job":
				beside = append(beside, cmd)
			default:
				if wrong := c.check(r, cmd.text); wrong != "" {
					t.Errorf("%s:%d: %s: %s", cmd.page, cmd.line, cmd.text, wrong)
				}
			}
		}
	}
	for _, r := range rows {
		if !r.used {
			t.Errorf("commands.tsv:%d: no page has such a command", r.line)
		}
	}
	here, beside = each(here), each(beside)
	if len(here) < 40 {
		t.Errorf("only %d commands are executed here", len(here))
	}
	execute(t, here, beside, status)
}

// each command once.
func each(list []command) []command {
	slices.SortFunc(list, func(a, b command) int { return strings.Compare(a.text+"\x00"+a.page, b.text+"\x00"+b.page) })
	return slices.CompactFunc(list, func(a, b command) bool { return a.text == b.text })
}

// prepare makes the files that commands of pages name: programs (examples/hello.c), sources, a file of hosts, a timeline.
const prepare = `export PATH=$PWD/build/bin:$PATH
mkdir scratch && cd scratch && ln -s .. try && ln -s ../build ../examples .
cp examples/hello.c hello.c; cp hello.c hello.cc; cp hello.c program.c; cp ../tests/install/testdata/hello.f90 .
mpicc hello.c -o a.out && for name in master worker program survivor hello; do cp a.out $name; done
echo 'localhost slots=4' >hosts;
printf '[[cluster]]\nname = "input"\nprogram = "./a.out"\nranks = 2\n\n[[cluster]]\nname = "detection"\nprogram = "./a.out"\nranks = 4\n\n[[link]]\nfrom = "input"\nto = "detection"\niops = 2\n' >system.toml
spxrun --trace FILE -n 2 ./a.out`

// stands is a program that waits for ever.
const stands = `cat >stands.c <<'END'
#include <mpi.h>
int main(void) { int n; MPI_Init(0, 0); MPI_Recv(&n, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); return 0; }
END
mpicc -g stands.c -o stands && spxrun --detach -n 2 ./stands`

func execute(t *testing.T, here, beside []command, status map[string]string) {
	list := []transcript.Step{{Command: prepare}}
	for _, c := range here {
		text := strings.Replace(c.text, " ...", " -n 2 ./a.out", 1)
		if strings.HasPrefix(text, "spxrun -n 64 hello") {
			text = "PATH=$PATH:. " + text
		}
		list = append(list, transcript.Step{Page: c.page, Line: c.line, Command: text})
	}
	list = append(list, transcript.Step{Command: stands})
	for _, c := range beside {
		list = append(list, transcript.Step{Page: c.page, Line: c.line, Command: strings.Replace(c.text, "JOB", ".", 1)})
	}
	list = append(list, transcript.Step{Command: "spxctl end ."})
	for i, o := range session(t, list) {
		s, want := list[i], "0"
		if i > 0 && i <= len(here) && status[here[i-1].text] != "" {
			want = status[here[i-1].text]
		}
		if !slices.Contains(strings.Split(want, ","), strconv.Itoa(o.Status)) {
			t.Errorf("%s:%d: %s: exit status %d instead of %s\n%s", s.Page, s.Line, s.Command, o.Status, want, o.Output)
		}
		if i <= len(here) && saysHello(s.Command) && !strings.Contains(o.Output, "hello from rank 1 of") {
			t.Errorf("%s:%d: %s: no rank 1\n%s", s.Page, s.Line, s.Command, o.Output)
		}
	}
}

// saysHello: the command runs hello on several ranks, and shows their output.
func saysHello(c string) bool {
	return strings.HasPrefix(c, "spxrun") && strings.Contains(c, " -n ") && strings.Contains(c, "./a.out") && !strings.Contains(c, "--output") && !strings.Contains(c, "--detach")
}

// A checker looks whether what a row says is true.
type checker struct{ t *testing.T }

func (c *checker) check(r *row, text string) string {
	switch r.how {
	case "make":
		return c.target(text)
	case "go":
		return c.packages(text)
	case "test":
		dir, name, _ := strings.Cut(r.what, " ")
		if wrong := c.named(dir, name, r.evidence); wrong != "" {
			return wrong
		}
		return c.parses(text)
	case "outside":
		if r.what == "" {
			return "the row gives no reason"
		}
		return ""
	}
	return "commands.tsv:" + strconv.Itoa(r.line) + ": no such way: " + r.how
}

var (
	makeWord = regexp.MustCompile(`(?:^|[ ;])make((?: [^;\s"]+(?:"[^"]*")?)*)`)
	target   = regexp.MustCompile(`^[a-z-]+$`)
	goPart   = regexp.MustCompile(`\./[\w./-]+`)
	goOption = regexp.MustCompile(` -([a-z]+)\b`)
	goRun    = regexp.MustCompile(`-run '?([\w|/=^-]+)`)
)

// target: targets, and variables that are set on the command line, stand in the Makefile.
func (c *checker) target(text string) string {
	makefile := string(c.read("Makefile"))
	for _, m := range makeWord.FindAllStringSubmatch(text, -1) {
		for _, word := range strings.Fields(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(m[1], "x")) {
			if name, _, set := strings.Cut(word, "="); set {
				if !regexp.MustCompile(`\b` + name + `\b`).MatchString(makefile) {
					return "the Makefile has no variable " + name
				}
			} else if target.MatchString(word) && !regexp.MustCompile(`(?m)^`+word+`:|^all `+word+`:|: \S* ?`+word+`$`).MatchString(makefile) {
				return "the Makefile has no target " + word
			}
		}
	}
	return ""
}

// Options of go test, and of the package datadriven.
var ofGoTest = []string{"run", "v", "count", "timeout", "race", "args", "rewrite"}

// packages: those that go test and go run name are there, with the tests and options that are named.
func (c *checker) packages(text string) string {
	for _, part := range goPart.FindAllString(text, -1) {
		dir := strings.TrimSuffix(part, "/...")
		if st, err := os.Stat(filepath.Join(harness.Root(), dir)); err != nil || !st.IsDir() {
			return "no folder " + dir
		}
	}
	dirs := goPart.FindAllString(text, -1)
	if len(dirs) == 0 {
		return "no package"
	}
	sources := c.sources(strings.TrimSuffix(dirs[len(dirs)-1], "/..."), ".go")
	for _, d := range dirs[:len(dirs)-1] {
		sources += c.sources(strings.TrimSuffix(d, "/..."), ".go")
	}
	if m := goRun.FindStringSubmatch(text); m != nil {
		for _, name := range strings.Split(m[1], "|") {
			if name, _, _ = strings.Cut(name, "/"); !strings.Contains(sources, "func "+strings.TrimPrefix(name, "^")) && !strings.Contains(sources, "func Test"+name) {
				return "no test " + name
			}
		}
	}
	for _, m := range goOption.FindAllStringSubmatch(regexp.MustCompile(`'[^']*'|"[^"]*"`).ReplaceAllString(text, "x"), -1) {
		if !slices.Contains(ofGoTest, m[1]) && !strings.Contains(sources, `"`+m[1]+`"`) {
			return "no option -" + m[1]
		}
	}
	return ""
}

// named: the test is there, and its folder's tests contain the evidence.
func (c *checker) named(dir, name, evidence string) string {
	tests := withoutComments.ReplaceAllString(c.sources(dir, "_test.go"), "")
	switch {
	case !strings.Contains(tests, "func "+name+"("):
		return "there is no test " + name + " in " + dir
	case evidence == "" || !strings.Contains(tests, evidence):
		return "the tests of " + dir + " do not contain " + evidence
	}
	return ""
}

// withoutComments: what a comment says is executed by nothing.
var withoutComments = regexp.MustCompile(`(?m)^\s*//.*$|\s// .*$`)

func (c *checker) sources(dir, suffix string) string {
	all := ""
	found, _ := filepath.Glob(filepath.Join(harness.Root(), dir, "*"+suffix))
	deeper, _ := filepath.Glob(filepath.Join(harness.Root(), dir, "*/*"+suffix))
	for _, file := range append(found, deeper...) {
		text, _ := os.ReadFile(file)
		all += string(text)
	}
	return all
}

func (c *checker) read(name string) []byte {
	text, err := os.ReadFile(filepath.Join(harness.Root(), name))
	if err != nil {
		c.t.Fatal(err)
	}
	return text
}

// What TestCommands is for is found.
func TestCommandsBite(t *testing.T) {
	c := &checker{t: t}
	for _, test := range []struct{ how, what, evidence, text string }{
		{"make", "", "", "make everything-else"}, {"make", "", "", "make test NOSUCH=1"},
		{"go", "", "", "go test ./tests/nowhere"}, {"go", "", "", "go test ./tests/docs -run TestNothingOfIt"}, {"go", "", "", "go run ./bench -nonsense"},
		{"known", "", "", "spxctl ps"},
		{"test", "tests/docs TestNowhere", "x", "x"}, {"test", "tests/docs TestSite", "no" + "where to be found", "x"}, {"outside", "", "", "x"}, {"elsewhere", "", "", "x"},
	} {
		if c.check(&row{how: test.how, what: test.what, evidence: test.evidence}, test.text) == "" {
			t.Errorf("nothing found wrong in %v", test)
		}
	}
	if list := commandsOf("p", "`make x` and `a b`\n\n    $ spxrun -n 2 ./a   says what\n    output\n    SPX_A=1 spxctl ps\n"); len(list) != 3 || list[1].text != "spxrun -n 2 ./a" {
		t.Errorf("%v", list)
	}
}

// The variables that are named as libspx's are set, with the right values.
func TestVariablesOfMigrating(t *testing.T) {
	o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, "2", "sh", "-c", "echo $SPX_RANK $OMPI_COMM_WORLD_RANK of $SPX_SIZE $OMPI_COMM_WORLD_SIZE, $SPX_LOCAL_RANK $OMPI_COMM_WORLD_LOCAL_RANK")})
	lines := strings.Split(strings.TrimSpace(o.Stdout), "\n")
	slices.Sort(lines)
	if !slices.Equal(lines, []string{"0 0 of 2 2, 0 0", "1 1 of 2 2, 1 1"}) {
		t.Errorf("%q", lines)
	}
}
