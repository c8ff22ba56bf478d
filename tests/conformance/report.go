package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// expectation is a row of expected.tsv: lines that begin with this name fail, and why.
type expectation struct {
	name, reason string
	timed        bool // the program judges by times that it took: it may pass, too
}

// readExpected reads expected.tsv: name, tab, reason; '#' begins a remark. '~' before a name: judged by the clock. A word and a colon before it: of
// runs of this way (HOSTS=4: hosts, TRANSPORTS=tcp: tcp) alone.
func readExpected(path string, ways ...string) ([]expectation, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []expectation
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		text := strings.TrimSpace(sc.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		name, reason, found := strings.Cut(text, "\t")
		if !found || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s:%d: a row is a line's name, a tab and the reason", path, n)
		}
		name, timed := strings.CutPrefix(strings.TrimSpace(name), "~")
		if way, rest, some := strings.Cut(name, ":"); some {
			if way != "hosts" && way != "tcp" {
				return nil, fmt.Errorf("%s:%d: %q is none of hosts and tcp", path, n, way)
			}
			if name = rest; !slices.Contains(ways, way) {
				continue
			}
		}
		list = append(list, expectation{name, strings.TrimSpace(reason), timed})
	}
	return list, sc.Err()
}

// expect turns failures that the list explains into expected ones, and passes that it does not foresee into failures of
// the list.
func expect(res *result, list []expectation) {
	i := slices.IndexFunc(list, func(e expectation) bool { return res.line.matches(e.name) })
	switch {
	case i < 0:
	case res.verdict == failed:
		res.verdict, res.why = expected, list[i].reason
	case res.verdict == passed && !list[i].timed:
		res.verdict, res.why = unexpected, "passes, but expected.tsv says: "+list[i].reason
	}
}

var order = []verdict{passed, failed, unexpected, missing, expected, skipped}

func count(results []result, v verdict) (n int) {
	for _, r := range results {
		if r.verdict == v {
			n++
		}
	}
	return n
}

func seconds(results []result) (s float64) {
	for _, r := range results {
		s += r.seconds
	}
	return s
}

func summary(results []result) string {
	return fmt.Sprintf("%d passed, %d failed, %d need functions that are not written, %d fail as expected, %d skipped, %.0f s",
		count(results, passed), count(results, failed)+count(results, unexpected), count(results, missing),
		count(results, expected), count(results, skipped), seconds(results))
}

// writeReport writes results.tsv, results.md and the output of each line that did not pass.
func writeReport(dir string, results []result) error {
	logs := filepath.Join(dir, "logs")
	if err := os.RemoveAll(logs); err != nil {
		return err
	}
	if err := os.MkdirAll(logs, 0o777); err != nil {
		return err
	}
	var tsv, md strings.Builder
	tsv.WriteString("line\tverdict\tseconds\twhy\n")
	for _, r := range results {
		fmt.Fprintf(&tsv, "%s\t%s\t%.2f\t%s\n", r.line.name(), r.verdict, r.seconds, strings.ReplaceAll(r.why, "\t", " "))
		if r.verdict != passed && r.output != "" {
			name := regexp.MustCompile(`[^\w.=-]+`).ReplaceAllString(r.line.name(), "_")
			if err := os.WriteFile(filepath.Join(logs, name[:min(len(name), 120)]+".txt"), []byte(r.output), 0o666); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(&md, "# MPICH %s test programs on libspx\n\n%s\n\n| folder | pass | FAIL | missing | expected | skip | s |\n|---|---|---|---|---|---|---|\n",
		suiteVersion, summary(results))
	for _, dir := range folders(results) {
		in := inFolder(results, dir)
		fmt.Fprintf(&md, "| %s | %d | %d | %d | %d | %d | %.0f |\n", dir, count(in, passed), count(in, failed)+count(in, unexpected),
			count(in, missing), count(in, expected), count(in, skipped), seconds(in))
	}
	for _, v := range order[1:] {
		if count(results, v) == 0 {
			continue
		}
		fmt.Fprintf(&md, "\n## %s\n\n| line | s | why |\n|---|---|---|\n", v)
		for _, r := range results {
			if r.verdict == v {
				fmt.Fprintf(&md, "| %s | %.1f | %s |\n", r.line.name(), r.seconds, strings.ReplaceAll(r.why, "|", "\\|"))
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "results.tsv"), []byte(tsv.String()), 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "results.md"), []byte(md.String()), 0o666)
}

func folders(results []result) (dirs []string) {
	for _, r := range results {
		if !slices.Contains(dirs, r.line.dir) {
			dirs = append(dirs, r.line.dir)
		}
	}
	return dirs
}

func inFolder(results []result, dir string) (in []result) {
	for _, r := range results {
		if r.line.dir == dir {
			in = append(in, r)
		}
	}
	return in
}
