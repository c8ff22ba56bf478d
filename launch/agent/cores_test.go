package agent

import (
	"os"
	"strings"
	"testing"
)

func TestCorePattern(t *testing.T) {
	uses, _ := os.ReadFile("/proc/sys/kernel/core_uses_pid")
	more := ""
	if strings.TrimSpace(string(uses)) != "0" {
		more = ".77"
	}
	for _, c := range []struct{ pattern, want string }{
		{"core", "/there/core" + more},
		{"core.%p", "/there/core.77"},
		{"/var/cores/%e-%t.%P", "/var/cores/*-*.77"},
		{"100%%[x]%", `/there/100%\[x]` + more},
	} {
		if got := corePattern(c.pattern, "/there", 77); got != c.want {
			t.Errorf("%s: %s, want %s", c.pattern, got, c.want)
		}
	}
}

// Files that are no core files have no pid, and no program.
func TestNoCore(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{self, "cores_test.go", "/nonexistent"} {
		if pidOfCore(f) != 0 || programOfCore(f) != "" {
			t.Errorf("%s is taken for a core file", f)
		}
	}
}
