package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A Related is one process of tests/attack/testdata/related.c, run as if Yama were active (yama.c): what it says of itself, and whom it has named as the one whose descendants may trace it; -1: everybody.
type Related struct{ Pid, Agent, Parent, Gets, Named int }

// RelatedProgram is the words that run that program so, and the variables that it needs: names of processes are kept in dir.
func RelatedProgram(t testing.TB, dir string) (words, env []string) {
	t.Helper()
	from := filepath.Join(Root(), "tests/attack/testdata")
	preload := Compile(t, "attack/yama.so", []string{filepath.Join(from, "yama.c")}, "-shared", "-fPIC")
	program := Compile(t, "attack/related", []string{filepath.Join(from, "related.c")})
	return []string{"env", "LD_PRELOAD=" + preload, program}, []string{"YAMA=" + dir, "SPX_STREAM_MAX=0", "SPX_STREAM_BOTH=0"} // no long message is streamed but where it cannot be read
}

// RelatedOf reads what processes have said, n of them, and fails the test where one has got something wrong.
func RelatedOf(t testing.TB, o Outcome, n int, dir string) (list []Related) {
	t.Helper()
	for _, m := range regexp.MustCompile(`pid (\d+) agent (\d+) parent (\d+) gets (\d+) wrong 0\n`).FindAllStringSubmatch(o.Stdout, -1) {
		var v [4]int
		for i := range v {
			v[i], _ = strconv.Atoi(m[1+i])
		}
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(v[0])))
		named, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Errorf("process %d has named nobody: %v", v[0], err)
		}
		list = append(list, Related{v[0], v[1], v[2], v[3], named})
	}
	if o.Status != 0 || o.Late || len(list) != n {
		t.Fatalf("exit status %d, late %v, %d processes of %d\n%s", o.Status, o.Late, len(list), n, o.Text())
	}
	return list
}
