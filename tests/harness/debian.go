package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Debian is a folder into which packages of Debian's have been unpacked, without being installed; they are kept in the cache. Skips the test where they
// cannot be had.
func Debian(t testing.TB, packages ...string) (root string) {
	t.Helper()
	root = filepath.Join(Cache(t), "debian", strings.Join(packages, "+"))
	if _, err := os.Stat(root); err == nil {
		return root
	}
	if err := os.MkdirAll(filepath.Dir(root), 0o777); err != nil {
		t.Fatal(err)
	}
	work, err := os.MkdirTemp(filepath.Dir(root), "new-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(work)
	fetch := exec.Command("timeout", append([]string{"120", "apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root"}, packages...)...)
	fetch.Dir = work
	if out, err := fetch.CombinedOutput(); err != nil {
		t.Skipf("Debian's packages %v cannot be fetched: %v %s", packages, err, out)
	}
	unpack := exec.Command("sh", "-c", `for package in *.deb; do dpkg -x "$package" root || exit; done`)
	unpack.Dir = work
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	os.Rename(filepath.Join(work, "root"), root) //nolint:errcheck // another test may have made it meanwhile
	return root
}
