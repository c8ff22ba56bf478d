package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Events as go test -json prints them: two packages, subtests, a skip, a failure below a parent, a build failure.
const events = `
{"Action":"start","Package":"libspx/a"}
{"Action":"run","Package":"libspx/a","Test":"TestOne"}
{"Action":"pass","Package":"libspx/a","Test":"TestOne","Elapsed":0}
{"Action":"run","Package":"libspx/a","Test":"TestMany"}
{"Action":"run","Package":"libspx/a","Test":"TestMany/x"}
{"Action":"run","Package":"libspx/a","Test":"TestMany/y.z"}
{"Action":"output","Package":"libspx/a","Test":"TestMany/y.z","Output":"    a_test.go:9: wrong\n"}
{"Action":"pass","Package":"libspx/a","Test":"TestMany/x","Elapsed":0}
{"Action":"fail","Package":"libspx/a","Test":"TestMany/y.z","Elapsed":0}
{"Action":"fail","Package":"libspx/a","Test":"TestMany","Elapsed":0}
{"Action":"fail","Package":"libspx/a","Elapsed":1}
{"Action":"run","Package":"libspx/b","Test":"TestPeers"}
{"Action":"output","Package":"libspx/b","Test":"TestPeers","Output":"    b_test.go:3: no peers here\n"}
{"Action":"skip","Package":"libspx/b","Test":"TestPeers","Elapsed":2}
{"Action":"pass","Package":"libspx/b","Elapsed":2}
{"ImportPath":"libspx/c","Action":"build-output","Output":"c.go:1: syntax error\n"}
{"ImportPath":"libspx/c","Action":"build-fail"}
{"Action":"fail","Package":"libspx/c","Elapsed":0,"FailedBuild":"libspx/c"}
`

func TestSummary(t *testing.T) {
	var out strings.Builder
	s := newSummary(&out, false)
	s.read(strings.NewReader(strings.TrimSpace(events)))
	s.busy = []timed{{what: "./b", seconds: 1}, {what: "./a", seconds: 7, orphans: 3}}
	s.end(0, 10*time.Second)
	if s.passed != 2 || s.failed != 2 || s.skipped != 1 {
		t.Errorf("%d passed, %d failed, %d skipped; want 2, 2, 1\n%s", s.passed, s.failed, s.skipped, out.String())
	}
	for _, want := range []string{"a_test.go:9: wrong", "c.go:1: syntax error", "no peers here",
		`go test -count=1 ./a -run '^TestMany$/^y\.z$'`, "the longest: ./b 2 s, ./a 1 s,", "of which: ./b TestPeers 2 s,", "the busiest: ./a 7 s, ./b 1 s, building and go vet 2 s\ntook 0s, of processors 10s, with 3s of hosts and other orphans\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output has no %q:\n%s", want, out.String())
		}
	}
	if !strings.HasSuffix(out.String(), "\n2 passed, 2 failed, 1 skipped\n") {
		t.Errorf("the last line is not the summary:\n%s", out.String())
	}
}

// A package's tests run under this program as they do without it, and their time of processors is written down.
func TestAccounts(t *testing.T) {
	dir := t.TempDir()
	file, program := filepath.Join(dir, "accounts"), filepath.Join(dir, "x.test")
	for name, text := range map[string]string{file: "", program: "#!/bin/sh\ni=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done\nexit $1\n"} {
		if err := os.WriteFile(name, []byte(text), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if status := account(file, []string{program, "3"}); status != 3 {
		t.Errorf("exit status %d, want 3", status)
	}
	if list := readAccounts(file); len(list) != 1 || list[0].what != "./." || list[0].seconds <= 0 {
		t.Errorf("accounts %v", list)
	}
}

// What a package's tests have left to itself, as the hosts of scripts/hosts, counts too: it computes, and the shell
// that started it does not wait for it.
func TestAccountsOfOrphans(t *testing.T) {
	dir := t.TempDir()
	file, program, testsum := filepath.Join(dir, "accounts"), filepath.Join(dir, "x.test"), filepath.Join(dir, "testsum")
	script := `#!/bin/sh
(sh -c 'echo $$ >pid; i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done' &)
while ! [ -s pid ]; do sleep 0.01; done
while kill -0 $(cat pid) 2>/dev/null; do sleep 0.01; done
exit 3
`
	for name, text := range map[string]string{file: "", program: script} {
		if err := os.WriteFile(name, []byte(text), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "build", "-o", testsum, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(testsum, program)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), accounts+"="+file)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("%v, want exit status 3\n%s", err, out)
	}
	text, _ := os.ReadFile(file)
	var where string
	var all, orphans float64
	fmt.Sscan(string(text), &where, &all, &orphans) //nolint:errcheck // seen below
	if orphans < 0.05 || all < orphans {
		t.Errorf("accounts %q: without what the loop of 300,000 took", text)
	}
}

func TestSkipReason(t *testing.T) {
	for text, want := range map[string]string{
		"=== RUN   TestFar\n    bed.go:50: LINKS_SEED=17\n    bed.go:53: hosts cannot be made here: exit status 1\n        open /dev/net/tun:\n          no such file\n--- SKIP: TestFar (0.10s)\n": "hosts cannot be made here: exit status 1 open /dev/net/tun: no such file",
		"=== RUN   TestFar\n--- SKIP: TestFar (0.10s)\n": "no reason given",
	} {
		if got := skipReason(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
