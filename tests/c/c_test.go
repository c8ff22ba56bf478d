// Package c runs the C test programs of this folder and of the folders below it. Each says in its comments how it is run:
// see harness.RunLine. A program fails by its exit status.
package c

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"libspx/tests/harness"
)

// atTheEnd are programs that are run once more with counters that begin just before their end (SPX_WRAP). The full tests do that with all.
var atTheEnd = []string{"coll/every", "coll/parted", "comm/create", "mcast/chain_death", "mcast/ordered", "mcast/random", "net/bursts",
	"net/routes", "net/tcp", "part/exchange", "pt2pt/many_modes", "pt2pt/requests", "rma/basics", "rma/many"}

// TestC has one subtest for every program, run line and number of ranks, and some with counters at their end:
//
//	go test ./tests/c -run 'TestC/pt2pt/order/n=4'
//	go test ./tests/c -run 'TestC/pt2pt/requests/wrap'
func TestC(t *testing.T) {
	var alone sync.RWMutex // tests that measure or kill have the machine to themselves
	for _, source := range sources(t) {
		name := strings.TrimSuffix(strings.TrimSuffix(source, ".c"), ".cc")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines, err := harness.ReadRunLines(source)
			if err != nil {
				t.Fatal(err)
			}
			path, err := filepath.Abs(source)
			if err != nil {
				t.Fatal(err)
			}
			program := harness.Compile(t, filepath.Join("c", name), []string{path}, lines[0].CFlags...)
			for i, line := range lines {
				if line.Full && !harness.Full() {
					continue
				}
				for _, n := range line.Ranks {
					t.Run(testName(i, n), func(t *testing.T) {
						if line.Alone {
							alone.Lock()
							defer alone.Unlock()
						} else {
							alone.RLock()
							defer alone.RUnlock()
						}
						runOne(t, program, line, n)
					})
				}
				if !harness.Full() && (i > 0 || !slices.Contains(atTheEnd, name)) {
					continue
				}
				line.Env = append(slices.Clone(line.Env), "SPX_WRAP=1")
				n := slices.Max(line.Ranks)
				t.Run("wrap,"+testName(i, n), func(t *testing.T) {
					alone.RLock()
					defer alone.RUnlock()
					runOne(t, program, line, n)
				})
			}
		})
	}
}

func testName(line, n int) string {
	if line == 0 {
		return fmt.Sprintf("n=%d", n)
	}
	return fmt.Sprintf("line%d,n=%d", line+1, n)
}

func runOne(t *testing.T, program string, line harness.RunLine, n int) {
	args := []string{filepath.Join(harness.Build(t), "bin/spxrun")}
	args = append(args, line.Spxrun...)
	args = append(args, "-n", fmt.Sprint(n), program)
	args = append(args, line.Args...)
	o := harness.Run(t, harness.Command{Args: args, Env: line.Env, Stdin: line.Stdin, Limit: line.Limit, Dir: t.TempDir()})
	t.Logf("%.2f s of processors", o.Busy.Seconds())
	if why := line.Check(o); why != "" {
		t.Errorf("%s\n%s--- again: go test ./tests/c -count=1 -run '%s'\n---    or: %s %s", why, o.Text(),
			pattern(t.Name()), strings.Join(line.Env, " "), strings.Join(args, " "))
	}
}

// pattern anchors every part of a subtest's name.
func pattern(name string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		parts[i] = "^" + parts[i] + "$"
	}
	return strings.Join(parts, "/")
}

func sources(t *testing.T) (list []string) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (strings.HasSuffix(path, ".c") || strings.HasSuffix(path, ".cc")) {
			list = append(list, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}
