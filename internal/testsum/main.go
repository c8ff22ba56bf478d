// Testsum runs go vet and all Go tests (which build and run the C tests, the linters and the gates too), prints what fails as it
// fails, with the command that repeats it, and ends with one line: "412 passed, 0 failed, 3 skipped". A test with subtests
// is not counted itself unless it fails on its own. The exit status is 1 when anything failed. Before that line it names what took most time, and most time of a processor.
//
//	go run ./internal/testsum [-v] [PACKAGE ...]        (default: ./...)
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// event is one line of go test -json (see `go doc test2json`).
type event struct {
	Action, Package, Test, Output, ImportPath, FailedBuild string

	Elapsed float64
}

func main() {
	verbose := flag.Bool("v", false, "print every test as it ends")
	keep := flag.String("o", "", "file that gets the last line too")
	timeout := flag.Duration("timeout", time.Hour, "time limit of one package, for a machine that is slow: each test has a limit of its own")
	flag.Parse()
	if file := os.Getenv(accounts); file != "" && flag.NArg() > 0 && strings.HasSuffix(flag.Arg(0), ".test") {
		os.Exit(account(file, flag.Args()))
	}
	packages := flag.Args()
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	start, before := time.Now(), usage()
	s := newSummary(os.Stdout, *verbose)
	for _, b := range split(packages) {
		s.vet(b)
		s.test(b, *timeout)
	}
	s.end(time.Since(start), usage()-before)
	if *keep != "" {
		if err := os.WriteFile(*keep, []byte(s.line()), 0o666); err != nil {
			fmt.Fprintln(os.Stderr, "testsum:", err)
			os.Exit(1)
		}
	}
	if s.failed > 0 {
		os.Exit(1)
	}
}

// summary counts outcomes and keeps the output of tests that may yet fail.
type summary struct {
	out                     io.Writer
	verbose                 bool
	passed, failed, skipped int
	output                  map[string]*strings.Builder // by package and test
	parent                  map[string]bool             // tests that have subtests
	childFailed             map[string]bool
	failures, skips         []string
	took                    []timed // packages, and tests that stand by themselves
	busy                    []timed // packages, by the time of processors
}

// timed is what took some seconds.
type timed struct {
	what    string
	seconds float64
	orphans float64 // of the seconds of a processor: those of processes that the tests did not wait for, as hosts are
}

func newSummary(out io.Writer, verbose bool) *summary {
	return &summary{out: out, verbose: verbose, output: map[string]*strings.Builder{}, parent: map[string]bool{}, childFailed: map[string]bool{}}
}

// vet counts as one test.
func (s *summary) vet(b batch) {
	cmd := b.command("vet")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(s.out, "FAIL go vet\n%s", out)
		s.failed++
		s.failures = append(s.failures, "go vet "+strings.Join(b.packages, " "))
		return
	}
	s.passed++
}

func (s *summary) test(b batch, timeout time.Duration) {
	// Without DWARF the tests are linked in less time; traces of their calls are as good.
	cmd := b.command("test", "-json", "-count=1", "-vet=off", "-ldflags=-w", "-p", strconv.Itoa(atOnce()),
		"-timeout", timeout.String())
	cmd.Stderr = os.Stderr
	if file, err := os.CreateTemp("", "testsum-"); err == nil {
		file.Close()
		defer os.Remove(file.Name())
		defer func() { s.busy = append(s.busy, readAccounts(file.Name())...) }()
		if self, err := os.Executable(); err == nil {
			cmd.Env = append(cmd.Env, accounts+"="+file.Name())
			cmd.Args = slices.Insert(cmd.Args, 2, "-exec", self)
		}
	}
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(s.out, "testsum:", err)
		s.failed++
		return
	}
	s.read(pipe)
	if err := cmd.Wait(); err != nil && s.failed == 0 {
		fmt.Fprintln(s.out, "testsum: go test failed without a failed test:", err)
		s.failed++
	}
}

func (s *summary) read(r io.Reader) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var e event
		if json.Unmarshal(sc.Bytes(), &e) != nil {
			fmt.Fprintln(s.out, sc.Text())
			continue
		}
		s.take(e)
	}
}

// take is one event's effect.
func (s *summary) take(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "run":
		if up := parentOf(e.Test); up != "" {
			s.parent[e.Package+" "+up] = true
		}
	case "output", "build-output":
		if e.Action == "build-output" {
			key = e.ImportPath + " "
		}
		if s.output[key] == nil {
			s.output[key] = &strings.Builder{}
		}
		s.output[key].WriteString(e.Output)
	case "pass", "skip", "fail":
		s.ended(e, key)
		delete(s.output, key)
	case "build-fail":
		s.fail(e.ImportPath, "", s.text(e.ImportPath+" "))
	}
}

func (s *summary) ended(e event, key string) {
	if s.verbose && e.Test != "" {
		fmt.Fprintf(s.out, "%-4s %s %s (%.2f s)\n", e.Action, short(e.Package), e.Test, e.Elapsed)
	}
	if !strings.Contains(e.Test, "/") {
		s.took = append(s.took, timed{what: strings.TrimSpace(short(e.Package) + " " + e.Test), seconds: e.Elapsed})
	}
	if e.Action == "fail" {
		for up := parentOf(e.Test); up != ""; up = parentOf(up) {
			s.childFailed[e.Package+" "+up] = true
		}
		if e.Test != "" {
			s.childFailed[e.Package+" "] = true
		}
	}
	switch {
	case e.Action == "fail" && (s.childFailed[key] || e.FailedBuild != ""): // counted there
	case e.Action == "fail":
		s.fail(e.Package, e.Test, s.text(key))
	case e.Test == "" || s.parent[key]: // a package, or a test that only holds others
	case e.Action == "pass":
		s.passed++
	default:
		s.skipped++
		s.skips = append(s.skips, fmt.Sprintf("skip %s %s: %s", short(e.Package), e.Test, skipReason(s.text(key))))
	}
}

func (s *summary) fail(pkg, test, text string) {
	s.failed++
	again := "go test -count=1 " + short(pkg)
	if test != "" {
		again += " -run '^" + strings.ReplaceAll(regexp.QuoteMeta(test), "/", "$/^") + "$'"
	}
	s.failures = append(s.failures, again)
	fmt.Fprintf(s.out, "FAIL %s %s\n%s", short(pkg), test, text)
}

func (s *summary) text(key string) string {
	if b := s.output[key]; b != nil {
		return b.String()
	}
	return ""
}

// end prints what to look at, and the last line: all took this long, and this much time of processors.
func (s *summary) end(took, busy time.Duration) {
	for _, line := range s.skips {
		fmt.Fprintln(s.out, line)
	}
	if len(s.failures) > 0 {
		fmt.Fprintln(s.out, "\nWhat failed, again:")
		for _, f := range s.failures {
			fmt.Fprintln(s.out, "  "+f)
		}
	}
	fmt.Fprintln(s.out, s.longest())
	fmt.Fprintln(s.out, s.busiest(busy))
	fmt.Fprintf(s.out, "took %v, of processors %v, with %v of hosts and other orphans\n%s", took.Round(time.Second),
		busy.Round(time.Second), s.orphans().Round(time.Second), s.line())
}

// longest names what took most of the time: some packages, and some of their tests. atOnce says how many packages run at a time.
func (s *summary) longest() string {
	slices.SortStableFunc(s.took, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
	lines, left := [2]string{"the longest:", "  of which:"}, [2]int{12, 12}
	for _, t := range s.took {
		k := strings.Count(t.what, " ")
		if left[k]--; left[k] >= 0 {
			lines[k] += fmt.Sprintf(" %s %.0f s,", t.what, t.seconds)
		}
	}
	return strings.TrimSuffix(lines[0], ",") + "\n" + strings.TrimSuffix(lines[1], ",")
}

func (s *summary) line() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped\n", s.passed, s.failed, s.skipped)
}

func parentOf(test string) string {
	if i := strings.LastIndex(test, "/"); i >= 0 {
		return test[:i]
	}
	return ""
}

func short(pkg string) string {
	return "./" + strings.TrimPrefix(strings.TrimPrefix(pkg, "libspx"), "/")
}

// skipReason is the text of t.Skip: what a test says last, from the indented line that names a source position on.
var skipText = regexp.MustCompile(`(?m)^\s+\S+\.go:\d+: (.*(?:\n {8,}.*)*)$`)

func skipReason(text string) string {
	all := skipText.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return "no reason given"
	}
	return strings.Join(strings.Fields(all[len(all)-1][1]), " ")
}
