package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Family checks what parents and children of tests/hosts/testdata/spawn.c have said: each where it is, and that all of them have added up. The hosts are those of each, by rank.
func Family(t testing.TB, o Outcome, parents, children []string) {
	t.Helper()
	var want []string
	for what, on := range map[string][]string{"parent": parents, "child": children} {
		for rank, host := range on {
			want = append(want, fmt.Sprintf("%s %d of %d on %s: sum right", what, rank, len(on), host))
		}
	}
	got := Lines(o.Stdout) // of a batch job standard error is there, too
	slices.Sort(want)
	if o.Status != 0 || o.Late || !slices.Equal(got, want) {
		t.Errorf("exit status %d, late %v, want 0 and\n%s\n%s", o.Status, o.Late, strings.Join(want, "\n"), o.Text())
	}
}

// NeedNamespaces skips the test where scripts/hosts cannot make hosts.
func NeedNamespaces(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("hosts of scripts/hosts need root")
	}
	Need(t, "test", "ip")
	script, bed := filepath.Join(Root(), "scripts/hosts"), fmt.Sprintf("p%x-", os.Getpid()%0x100000)
	defer exec.Command(script, "down", bed).Run() //nolint:errcheck // there may be none
	if out, err := exec.Command(script, "up", bed, "1").CombinedOutput(); err != nil {
		t.Skipf("namespaces cannot be made here: %v\n%s", err, out)
	}
}
