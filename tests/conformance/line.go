package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// check says how the outcome of a test program is judged.
type check int

const (
	// wantNoErrors: exit status 0, the line "No Errors", and no other output.
	wantNoErrors check = iota
	// wantFailure: any exit status but 0, whatever is printed.
	wantFailure
	// wantFailureNoErrors: any exit status but 0, and the line "No Errors" with nothing else.
	wantFailureNoErrors
	// wantExitZero: exit status 0, whatever is printed (programs of the suite that have no verdict of their own).
	wantExitZero
)

// testLine is one line of a testlist: a program, a number of ranks, and how to run and to judge it.
type testLine struct {
	dir     string // folder of the suite, for example "errors/coll"
	program string
	ranks   int
	args    []string
	env     []string
	limit   time.Duration // the line's own time limit; 0: none given
	memory  float64       // GB that it needs
	check   check
	launch  []string // options of mpiexec
	strict  bool     // false: the suite itself says that the program uses more than the standard
}

// name identifies the line in tables, in expected.tsv and on the command line.
func (l testLine) name() string {
	parts := []string{l.dir + "/" + l.program, strconv.Itoa(l.ranks)}
	parts = append(parts, l.args...)
	for _, e := range l.env {
		parts = append(parts, "env="+e)
	}
	return strings.Join(parts, " ")
}

// short is the name without arguments and environment.
func (l testLine) short() string { return fmt.Sprintf("%s/%s %d", l.dir, l.program, l.ranks) }

// matches reports whether a pattern of the user names this line: the whole name, or its beginning up to a blank.
func (l testLine) matches(pattern string) bool {
	return l.name() == pattern || strings.HasPrefix(l.name(), pattern+" ")
}

// parseLine reads one line of a testlist. ok is false for lines without a test.
func parseLine(dir, text string) (l testLine, ok bool, err error) {
	text, _, _ = strings.Cut(text, "#")
	words := strings.Fields(text)
	if len(words) == 0 || strings.HasPrefix(words[0], "!") {
		return l, false, nil
	}
	l = testLine{dir: dir, program: words[0], ranks: 2, strict: true}
	if len(words) > 1 {
		if l.ranks, err = strconv.Atoi(words[1]); err != nil {
			return l, false, fmt.Errorf("%s: %q: the number of ranks is %q", dir, text, words[1])
		}
	}
	for i, w := range words[min(2, len(words)):] {
		key, value, found := strings.Cut(w, "=")
		if !found && i == 0 {
			continue // sendself has its path as a third word
		}
		if err = l.set(key, value); err != nil {
			return l, false, fmt.Errorf("%s: %q: %w", dir, text, err)
		}
	}
	return l, true, nil
}

func (l *testLine) set(key, value string) (err error) {
	switch key {
	case "arg":
		l.args = append(l.args, value)
	case "env":
		l.env = append(l.env, value)
	case "timeLimit":
		var s int
		s, err = strconv.Atoi(value)
		l.limit = time.Duration(s) * time.Second
	case "mem":
		l.memory, err = strconv.ParseFloat(value, 64)
	case "strict":
		l.strict = !strings.EqualFold(value, "false")
	case "resultTest":
		switch value {
		case "TestStatus", "TestErrFatal":
			l.check = wantFailure
		case "TestStatusNoErrors":
			l.check = wantFailureNoErrors
		case "ExitZero":
			l.check = wantExitZero
		default:
			return fmt.Errorf("unknown resultTest %q", value)
		}
	case "mpiexecarg":
		l.launch = append(l.launch, value)
	case "xfail", "init", "lock", "mpix", "mpiversion":
		// xfail is MPICH's own list of defects; the others steer MPICH's launcher or its build.
	default:
		return fmt.Errorf("unknown key %q", key)
	}
	return err
}

// readLines collects the lines of a folder of the suite and of the folders below that its testlists name. Each of lists is
// taken from the first of roots that has it: the build folder before the sources. A folder needs the first list only.
func readLines(dir string, roots, lists []string) ([]testLine, error) {
	var lines []testLine
	seen := map[string]bool{}
	for i, name := range lists {
		path := firstFile(roots, filepath.Join(dir, name))
		if path == "" {
			if i == 0 {
				return nil, fmt.Errorf("%s has no %s (in %s)", dir, name, strings.Join(roots, ", "))
			}
			continue
		}
		in, err := readList(dir, path, roots, lists)
		if err != nil {
			return nil, err
		}
		for _, l := range in {
			if !seen[l.name()] { // what stands in several lists is one line
				seen[l.name()] = true
				lines = append(lines, l)
			}
		}
	}
	return lines, nil
}

func readList(dir, path string, roots, lists []string) ([]testLine, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lines []testLine
	sc := bufio.NewScanner(f)
	for sc.Scan() {
		l, ok, err := parseLine(dir, sc.Text())
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if isDir(filepath.Join(roots[0], dir, l.program)) {
			below, err := readLines(dir+"/"+l.program, roots, lists)
			if err != nil {
				return nil, err
			}
			lines = append(lines, below...)
			continue
		}
		// A program may stand in a folder below: "../errhan/x".
		if at := strings.LastIndex(l.program, "/"); at >= 0 {
			l.dir, l.program = filepath.Join(l.dir, l.program[:at]), l.program[at+1:]
		}
		lines = append(lines, l)
	}
	return lines, sc.Err()
}

// firstFile is the path of name in the first of roots that has it, or "".
func firstFile(roots []string, name string) string {
	for _, root := range roots {
		p := filepath.Join(root, name)
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	return ""
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
