package boundary

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"libspx/tests/harness"
)

// mostChecks is how many instructions a short message may spend on the question whether something has failed, its sender and its receiver together.
const mostChecks = 10

// While nobody dies, a short message costs no more than a few instructions for the case that somebody did: they are counted in the library's objects, at the lines
// that say SPX_FAILED, along the way of a message that is there at the first look.
func TestChecksForFailures(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("other processors have other instructions")
	}
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Skip("there is no objdump (Debian: binutils)")
	}
	total := 0
	for _, part := range []struct{ object, function string }{{"pt2pt/p2p", "spx_send"}, {"pt2pt/p2p", "spx_recv_start"}, {"pt2pt/poll", "spx_poll"}} {
		list := checks(t, part.object, part.function)
		t.Logf("%s: %d\n%s", part.function, len(list), strings.Join(list, "\n"))
		if len(list) < 2 {
			t.Errorf("%s: %d instructions look whether something has failed: is SPX_FAILED not there any more?", part.function, len(list))
		}
		total += len(list)
	}
	if total > mostChecks {
		t.Errorf("%d instructions for each message, at most %d are allowed", total, mostChecks)
	}
}

var (
	place       = regexp.MustCompile(`^(?:.*\blibspx/)?([^ ]*\.[ch]):(\d+)`)
	instruction = regexp.MustCompile(`^ +[0-9a-f]+:\t(.*)`)
)

// checks lists the instructions of a function that belong to lines with SPX_FAILED, but for those that run when it is true.
func checks(t *testing.T, object, function string) (list []string) {
	t.Helper()
	file := filepath.Join(harness.Build(t), "obj/dataplane", object+".o")
	out, err := exec.Command("objdump", "-dl", "--no-show-raw-insn", "--disassemble="+function, file).Output()
	if err != nil {
		t.Fatalf("objdump %s: %v", file, err)
	}
	sources := map[string][]string{}
	there := false
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		if m := place.FindStringSubmatch(lines.Text()); m != nil {
			if sources[m[1]] == nil {
				name := m[1]
				if !filepath.IsAbs(name) { // the objects do not say where they were built
					name = filepath.Join(harness.Root(), name)
				}
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				sources[m[1]] = strings.Split(string(text), "\n")
			}
			n, _ := strconv.Atoi(m[2])
			there = n >= 1 && n <= len(sources[m[1]]) && strings.Contains(sources[m[1]][n-1], "SPX_FAILED(")
		} else if m := instruction.FindStringSubmatch(lines.Text()); m != nil && there {
			list = append(list, m[1])
		}
	}
	return list
}
