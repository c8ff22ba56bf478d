// Conformance runs MPICH's own test programs against libspx: it fetches the suite (Debian's source package), builds it with
// our mpicc in a cache folder, runs every line of its testlists, and writes a table.
//
//	make conformance                              the folders that are listed below
//	make conformance DIRS="attr pt2pt"            these folders
//	make conformance LINES="pt2pt/sendrecv1 2"    these lines: folder/program, or with the number of ranks; commas between several
//
// A failure is accepted only when expected.tsv has a reason for it, and a line of that list that passes is a failure of
// the list. A line that needs a function whose body is not written is listed by that function. The status is 1 when
// anything failed. The output of what did not pass is in tests/conformance/out/logs.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const defaultDirs = "attr basic comm datatype errhan group info init pt2pt part coll topo errors/attr errors/comm errors/datatype errors/group errors/pt2pt errors/coll errors/topo"

func main() {
	dirs := flag.String("dirs", "", "folders of the suite, separated by blanks")
	lines := flag.String("lines", "", "lines to run, separated by commas")
	limit := flag.Duration("timeout", 60*time.Second, "time limit of a line that has none of its own")
	most := flag.Duration("most", 300*time.Second, "no line gets more than this")
	out := flag.String("out", "tests/conformance/out", "folder of the tables")
	flag.Parse()
	if *dirs == "" {
		*dirs = defaultDirs
	}
	ok, err := run(*dirs, *lines, *limit, *most, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(dirs, wanted string, limit, most time.Duration, out string) (bool, error) {
	root, err := os.Getwd()
	if err != nil {
		return false, err
	}
	spx := os.Getenv("SPX_BUILD")
	if spx == "" {
		spx = filepath.Join(root, "build")
	}
	list, err := readExpected(filepath.Join(root, "tests/conformance/expected.tsv"))
	if err != nil {
		return false, err
	}
	s := suite{root: root, spx: spx, cache: cacheFolder()}
	if err := s.prepare(); err != nil {
		return false, err
	}
	tests, err := selectLines(s, root, dirs, wanted)
	if err != nil {
		return false, err
	}
	r := &runner{spx: spx, tree: s.tree(), limit: limit, most: most}
	var results []result
	at := ""
	for _, l := range tests {
		if l.dir != at {
			at = l.dir
			fmt.Printf("%s ...\n", at)
			if wanted == "" {
				s.build(at)
			}
		}
		res := r.run(l)
		expect(&res, list)
		results = append(results, res)
		if res.verdict != passed || wanted != "" {
			fmt.Printf("%-8s %6.1f s  %s  %s\n", res.verdict, res.seconds, l.name(), res.why)
		}
		if wanted != "" && res.verdict != passed {
			fmt.Print(res.output)
		}
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return false, err
	}
	if err := writeReport(out, results); err != nil {
		return false, err
	}
	fmt.Printf("table: %s\nconformance: %s\n", filepath.Join(out, "results.md"), summary(results))
	return count(results, failed)+count(results, unexpected) == 0, nil
}

// selectLines reads the testlists of the folders, or those of the lines that the user named.
func selectLines(s suite, root, dirs, wanted string) ([]testLine, error) {
	var patterns []string
	folders := strings.Fields(dirs)
	if wanted != "" {
		folders = nil
		seen := map[string]bool{}
		for _, p := range strings.Split(wanted, ",") {
			p = strings.TrimSpace(p)
			patterns = append(patterns, p)
			dir := filepath.Dir(strings.Fields(p + " .")[0])
			if !seen[dir] {
				seen[dir] = true
				folders = append(folders, dir)
			}
		}
	}
	var tests []testLine
	for _, dir := range folders {
		roots := []string{s.tree(), s.source(), filepath.Join(root, "tests/conformance/lists")}
		in, err := readLines(dir, roots)
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
		return nil, fmt.Errorf("no line matches %q", wanted)
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
