package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

var installOnce sync.Map // set of scripts/deps -> func() string

// Need skips the test when a tool is missing: a command, or a file by its path, in which * may stand. As root the set of scripts/deps that has it is installed first.
func Need(t testing.TB, set string, tools ...string) {
	t.Helper()
	if missing(tools) == "" {
		return
	}
	install, _ := installOnce.LoadOrStore(set, sync.OnceValue(func() string { return installSet(set) }))
	why := install.(func() string)()
	if tool := missing(tools); tool != "" {
		t.Skipf("%s is missing (scripts/deps %s installs it)%s", tool, set, why)
	}
}

func missing(tools []string) string {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); !filepath.IsAbs(tool) && err != nil {
			return tool
		}
		if found, _ := filepath.Glob(tool); filepath.IsAbs(tool) && len(found) == 0 {
			return tool
		}
	}
	return ""
}

// installSet runs scripts/deps, one at a time on this machine, and returns why that did not work.
func installSet(set string) string {
	script := filepath.Join(Root(), "scripts/deps")
	if os.Geteuid() != 0 {
		return ", as root"
	}
	lock, err := os.Open(script)
	if err != nil {
		return ": " + err.Error()
	}
	defer lock.Close()
	syscall.Flock(int(lock.Fd()), syscall.LOCK_EX) //nolint:errcheck // apt has locks of its own
	cmd := exec.Command(script, set)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what ends the test does not leave a package half installed
	if out, err := cmd.CombinedOutput(); err != nil {
		return ": " + strings.TrimSpace(string(out))
	}
	return ""
}
