// Conformance runs MPICH's own test programs against libspx: it fetches the suite (Debian's source package), builds it with
// our mpicc in a cache folder, runs every line of its testlists, and writes a table.
//
//	make conformance                              every folder
//	make conformance CMA=0                        the same where no process may read another's memory, as in a container
//	make conformance HOSTS=4                      with the ranks on 4 hosts (network namespaces)
//	make conformance TRANSPORTS=tcp               on one host, but without shared memory
//	make conformance RESUME=1                     goes on where the last run was interrupted
//	make conformance DIRS="attr pt2pt"            these folders
//	make conformance DIRS=threads REPEAT=20       twenty times over
//	make conformance LINES="pt2pt/sendrecv1 2"    these lines: folder/program, or with the number of ranks; commas between several
//
// A failure is accepted only when expected.tsv has a reason for it, and a line of that list that passes is a failure of
// the list. A line that needs a function whose body is not written is listed by that function. The status is 1 when
// anything failed. The output of what did not pass is in tests/conformance/out/logs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The folders with programs in Fortran; what configure makes for them is in a tree of its own.
const fortranDirs = "f77 f90 f08"

// The folders of the suite. The list of "threads" leaves its perf folder out. Sessions have no folder in
// this version: their programs are in init.
const defaultDirs = "attr basic comm datatype errhan group info init pt2pt coll topo errors io rma part mpi_t perf spawn threads threads/perf ft " + fortranDirs

// options are the user's.
type options struct {
	dirs, lines string
	lists       string        // names of the lists of each folder
	limit, most time.Duration // time limits of a line
	jobs        int           // processors to keep busy
	repeat      int
	cma         bool
	hosts       int
	transports  string // SPX_TRANSPORTS; empty: preset
	resume      bool
	piece       time.Duration // no line begins later than this; 0: no end
	out         string
}

func main() {
	var o options
	flag.StringVar(&o.dirs, "dirs", "", "folders of the suite, separated by blanks")
	flag.StringVar(&o.lines, "lines", "", "lines to run, separated by commas")
	flag.StringVar(&o.lists, "lists", "testlist testlist.dtp", "lists of each folder; testlist.cvar repeats lines of coll for each of MPICH's own algorithms")
	flag.DurationVar(&o.limit, "timeout", 120*time.Second, "time limit of a line that has none of its own; more when the machine is busy")
	flag.DurationVar(&o.most, "most", 600*time.Second, "no line gets more than this")
	flag.IntVar(&o.jobs, "j", 1, "lines at the same time, as long as their ranks are not more")
	flag.IntVar(&o.repeat, "repeat", 1, "runs of each line")
	flag.BoolVar(&o.cma, "cma", true, "whether processes may read each other's memory")
	flag.IntVar(&o.hosts, "hosts", 0, "hosts to run on: those of scripts/hosts, which takes root; 0: this one alone")
	flag.StringVar(&o.transports, "transports", "", "how processes of a host talk, as in SPX_TRANSPORTS: tcp")
	flag.BoolVar(&o.resume, "resume", false, "go on where a run that was interrupted stopped")
	flag.DurationVar(&o.piece, "for", 0, "begin no line after this time: a piece, and -resume goes on; 0: until all are done")
	flag.StringVar(&o.out, "out", "tests/conformance/out", "folder of the tables")
	flag.Parse()
	if o.dirs == "" {
		o.dirs = defaultDirs
	}
	ok, err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// ways are those of this run that lines may have expectations of their own for.
func (o *options) ways() (w []string) {
	if o.hosts > 0 {
		w = append(w, "hosts")
	}
	if o.transports == "tcp" {
		w = append(w, "tcp")
	}
	return w
}

func run(o options) (bool, error) {
	root, err := os.Getwd()
	if err != nil {
		return false, err
	}
	spx := os.Getenv("SPX_BUILD")
	if spx == "" {
		spx = filepath.Join(root, "build")
	}
	list, err := readExpected(filepath.Join(root, "tests/conformance/expected.tsv"), o.ways()...)
	if err != nil {
		return false, err
	}
	s := suite{root: root, spx: spx, cache: cacheFolder()}
	folders, patterns := selection(o)
	if err := s.prepare(folders); err != nil {
		return false, err
	}
	tests, err := selectLines(s, o, folders, patterns)
	if err != nil {
		return false, err
	}
	if o.lines == "" {
		s.build(tests)
	}
	if err := os.MkdirAll(o.out, 0o777); err != nil {
		return false, err
	}
	so, err := openProgress(filepath.Join(o.out, "progress.tsv"), o.resume)
	if err != nil {
		return false, err
	}
	on, err := newHosts(root, o.hosts, spx, s.cache)
	if err != nil {
		return false, err
	}
	defer on.remove()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	start := time.Now()
	r := &runner{ctx: ctx, spx: spx, tree: s.treeOf, limit: o.limit, most: o.most, cma: o.cma, hosts: on, transports: o.transports, progress: so}
	if o.piece > 0 {
		r.until = start.Add(o.piece)
	}
	var results []result
	for range o.repeat {
		results = append(results, r.runAll(tests, o.jobs, func(res *result) {
			expect(res, list)
			if res.verdict == notRun {
				return
			}
			if res.verdict != passed || o.lines != "" {
				fmt.Printf("%-8s %6.1f s  %s  %s\n", res.verdict, res.seconds, res.line.name(), res.why)
			}
			if o.lines != "" && res.verdict != passed {
				fmt.Print(res.output)
			}
		})...)
	}
	if count(results, notRun) > 0 {
		return false, errors.New("interrupted; -resume (make conformance RESUME=1) goes on")
	}
	if err := writeReport(o.out, results); err != nil {
		return false, err
	}
	fmt.Printf("table: %s\nconformance: %s; %.0f s in all\n", filepath.Join(o.out, "results.md"), summary(results), time.Since(start).Seconds())
	return count(results, failed)+count(results, unexpected)+count(results, missing) == 0, nil
}

// selection is what the user asked for: folders, and patterns that lines must match, if there are any.
func selection(o options) (folders, patterns []string) {
	if o.lines == "" {
		return strings.Fields(o.dirs), nil
	}
	seen := map[string]bool{}
	for _, p := range strings.Split(o.lines, ",") {
		p = strings.TrimSpace(p)
		patterns = append(patterns, p)
		dir := filepath.Dir(strings.Fields(p + " .")[0])
		if !seen[dir] {
			seen[dir] = true
			folders = append(folders, dir)
		}
	}
	return folders, patterns
}

// selectLines reads the testlists of the folders, and keeps the lines that match.
func selectLines(s suite, o options, folders, patterns []string) ([]testLine, error) {
	var tests []testLine
	for _, dir := range folders {
		roots := []string{s.treeOf(dir), s.source(), filepath.Join(s.root, "tests/conformance/lists")}
		in, err := readLines(dir, roots, strings.Fields(o.lists))
		if err != nil {
			return nil, err
		}
		for _, l := range in {
			if keep(l, patterns) {
				tests = append(tests, l)
			}
		}
	}
	if len(tests) == 0 {
		return nil, fmt.Errorf("no line matches %q", o.lines)
	}
	return tests, nil
}

func keep(l testLine, patterns []string) bool {
	for _, p := range patterns {
		if l.matches(p) {
			return true
		}
	}
	return len(patterns) == 0
}
