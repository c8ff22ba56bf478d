package harness

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Debian is a folder into which packages of Debian's have been unpacked, with everything that they depend on and that this machine lacks, without being installed; they are
// kept in the cache. Skips the test where they cannot be had.
func Debian(t testing.TB, packages ...string) (root string) {
	t.Helper()
	root = filepath.Join(Cache(t), "debian", strings.Join(packages, "+"))
	script := filepath.Join(Root(), "scripts/debian-packages")
	if out, err := exec.Command("timeout", append([]string{"400", script, root}, packages...)...).CombinedOutput(); err != nil {
		t.Skipf("Debian's packages %v cannot be had: %v\n%s", packages, err, out)
	}
	return root
}

// Libraries is the folder of the shared libraries within a folder of Debian, for LD_LIBRARY_PATH.
func Libraries(root string) string {
	found, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu")) // none is none
	return strings.Join(found, ":")
}
