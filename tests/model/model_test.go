// Package model has Spin check the model of the agreement (ft/model/agree.pml) exhaustively, and bugs in it, which must be found.
package model

import (
	"context"
	"flag"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// all also checks the large cases: the largest takes about 1 GB of memory and some minutes.
var all = flag.Bool("all", false, "also four members of which two or three die")

const source = "../../ft/model/agree.pml"

var (
	errorsFound = regexp.MustCompile(`errors: (\d+)`)
	states      = regexp.MustCompile(`\d+ states, stored`)
	violation   = regexp.MustCompile(`pan:1: .*`)
)

// check runs Spin on the model with some definitions, and gives what the checker has written.
func check(t *testing.T, limit time.Duration, defines ...string) string {
	t.Helper()
	for _, tool := range []string{"spin", "cc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: Debian's package spin has the model checker", tool)
		}
	}
	path, err := filepath.Abs(source)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	dir, optimize := t.TempDir(), "-O0" // the compiler takes longer than the small cases
	if *all {
		optimize = "-O2"
	}
	for _, command := range [][]string{
		append(append([]string{"spin"}, defines...), "-a", path),
		{"cc", optimize, "-w", "-DSAFETY", "-DCOLLAPSE", "-DNOREDUCE", "-o", "pan", "pan.c"},
		{"./pan", "-n", "-m200000", "-w24"},
	} {
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil || ctx.Err() != nil {
			t.Fatalf("%q: %v\n%s", command, err, out)
		}
		if command[0] == "./pan" {
			return string(out)
		}
	}
	return ""
}

// The model holds, whoever dies, and whenever.
func TestModel(t *testing.T) {
	cases := [][]string{{"-DN=3"}, {"-DN=4", "-DCRASHES=1"}}
	if *all {
		cases = append(cases, []string{"-DN=4", "-DCRASHES=2"}, []string{"-DN=4"})
	}
	for _, defines := range cases {
		out := check(t, 20*time.Minute, defines...)
		if found := errorsFound.FindStringSubmatch(out); found == nil || found[1] != "0" || states.FindString(out) == "" || regexp.MustCompile(`max search depth too small|out of memory`).MatchString(out) {
			t.Fatalf("%v:\n%s", defines, out)
		}
		t.Logf("%v: %s", defines, states.FindString(out))
	}
}

// The model can fail: each bug is found.
func TestMutants(t *testing.T) {
	for mutant, defines := range map[string][]string{
		"1": {"-DN=3"}, "2": {"-DN=3"}, "3": {"-DN=4", "-DCRASHES=1"}, "4": {"-DN=3"}, "5": {"-DN=4", "-DCRASHES=1"},
	} {
		out := check(t, 5*time.Minute, append(defines, "-DMUTANT="+mutant)...)
		if found := violation.FindString(out); found == "" {
			t.Errorf("mutant %s is not found:\n%s", mutant, out)
		} else {
			t.Logf("mutant %s: %s", mutant, found)
		}
	}
}
