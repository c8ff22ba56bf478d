package main

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// batch is a set of packages that are built in one way.
type batch struct {
	packages []string
	cgo      bool
}

// longest are the packages that take longest: they begin first, so that none of them is left alone at the end. Those
// that wait stand beside those that compute.
var longest = []string{"tests/c", "tests/hosts", "tests/csan", "tests/systems", "tests/live", "tests/slurm", "tests/sge",
	"tests/prrte", "tests/docs", "tests/hydra", "tests/attack", "tests/args", "tests/dyprc", "tests/install"}

// split parts the packages that hold C code from the others. Those are built without cgo, as the programs of cmd/ are,
// and with -trimpath, as all that make builds is: every package, and Go's own, is compiled once for all of that.
func split(patterns []string) []batch {
	list := exec.Command("go", append([]string{"list", "-f", "{{.ImportPath}} {{len .CgoFiles}}"}, patterns...)...)
	list.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := list.Output()
	if err != nil {
		return []batch{{packages: patterns, cgo: true}} // go vet says what is wrong with them
	}
	var plain, c []string
	for line := range strings.Lines(string(out)) {
		name, files, _ := strings.Cut(strings.TrimSpace(line), " ")
		if files == "0" {
			plain = append(plain, name)
		} else {
			c = append(c, name)
		}
	}
	slices.SortStableFunc(plain, func(a, b string) int { return turn(a) - turn(b) })
	var batches []batch
	if len(c) > 0 {
		batches = append(batches, batch{c, true})
	}
	if len(plain) > 0 {
		batches = append(batches, batch{plain, false})
	}
	return batches
}

// turn is a package's place among the longest, or behind them.
func turn(name string) int {
	i := slices.Index(longest, strings.TrimPrefix(name, "libspx/"))
	if i < 0 {
		return len(longest)
	}
	return i
}

// atOnce is how many packages are built or tested at the same time: one more than there are processors, since there is
// always one that waits.
func atOnce() int { return runtime.NumCPU() + 1 }

// command is a command of go for the packages. What the tests have go build is built in the same way.
func (b batch) command(words ...string) *exec.Cmd {
	cmd := exec.Command("go", append(words, b.packages...)...)
	cgo := "CGO_ENABLED=0"
	if b.cgo {
		cgo = "CGO_ENABLED=1"
	}
	cmd.Env = append(os.Environ(), cgo, "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -trimpath"))
	return cmd
}
