// Package deb installs the Debian packages of `make deb` in a clean root, and compiles and runs programs there with what they bring along.
package deb

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"libspx/tests/fresh"
	"libspx/tests/harness"
)

// A clean root takes minutes and the network: `make test-deb` asks for it.
func wanted(t *testing.T) {
	t.Helper()
	if os.Getenv("SPX_DEB") == "" {
		t.Skip("takes minutes, root and the network: make test-deb")
	}
	if os.Geteuid() != 0 {
		t.Skip("a clean root needs root")
	}
	harness.Need(t, "deb", "debootstrap", "unshare", "objdump")
}

func packages(t *testing.T) string {
	t.Helper()
	out := t.TempDir()
	cmd := exec.Command(filepath.Join(harness.Root(), "packaging/debian/build"), harness.Build(t), out)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// script is run in the clean root.
const script = `set -e
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
cd /root
dpkg -i /packages/*.deb
echo "--- alternatives"
update-alternatives --query libmpi_abi.so.1-TRIPLET | grep -e Status -e Value
readlink -f /usr/bin/mpicc /usr/bin/mpirun
echo "--- C"
mpicc hello.c -o hello_c
spxrun -n 2 ./hello_c
echo "--- Fortran"
mpifort hello.f90 -o hello_f
mpirun -n 2 ./hello_f
echo "--- without a run path"
gcc hello.c -I/usr/lib/TRIPLET/libspx/include -L/usr/lib/TRIPLET/libspx/lib -lmpi_abi -o hello_plain
mpiexec -n 2 ./hello_plain
ldd ./hello_plain | grep libmpi_abi
echo "--- another library with the ABI is installed: it is offered, and this one can be chosen"
echo 'int MPI_Init(int *a, char ***b) { (void)a, (void)b; return 0; }' >other.c
gcc -shared -fPIC other.c -Wl,-soname,libmpi_abi.so.1 -o /usr/lib/TRIPLET/libmpi_abi_mpich.so.1.0.0
dpkg-trigger --by-package=base-files /usr/lib/TRIPLET/libmpi_abi_mpich.so.1.0.0
dpkg --configure --pending
update-alternatives --query libmpi_abi.so.1-TRIPLET | grep -e Value
update-alternatives --set libmpi_abi.so.1-TRIPLET /usr/lib/TRIPLET/libspx/lib/libmpi_abi.so.1
ldconfig
mpiexec -n 2 ./hello_plain
echo "--- removed"
rm /usr/lib/TRIPLET/libmpi_abi_mpich.so.1.0.0
dpkg --purge libspx-dev libspx-bin libspx1
find / -xdev \( -path /proc -o -path /packages -o -path /var/lib/dpkg -o -path /var/log \) -prune -o -name '*spx*' -print -o -name '*mpi_abi*' -print -o -name 'mpicc*' -print -o -name 'mpirun*' -print
echo "--- end"
`

func TestInCleanRoot(t *testing.T) {
	wanted(t)
	if _, err := os.Stat("/etc/debian_version"); err != nil { // the packages are made for this machine's release
		t.Skip("this is no Debian")
	}
	debs := packages(t)
	root := filepath.Join(t.TempDir(), "root")
	if err := (fresh.Base{Include: []string{"gcc", "gfortran", "libc6-dev"}}).Unpack(root); err != nil {
		t.Skipf("no clean root: %v", err)
	}
	if err := os.Mkdir(filepath.Join(root, "packages"), 0o777); err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(debs + "/*.deb")
	if len(found) != 3 {
		t.Fatalf("%d packages: %v", len(found), found)
	}
	for _, file := range append(found, filepath.Join(harness.Root(), "examples/hello.c"), filepath.Join(harness.Root(), "tests/install/testdata/hello.f90")) {
		to := filepath.Join(root, "root")
		if strings.HasSuffix(file, ".deb") {
			to = filepath.Join(root, "packages")
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(filepath.Join(to, filepath.Base(file)), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	triplet, err := exec.Command("gcc", "-dumpmachine").Output()
	if err != nil {
		t.Fatal(err)
	}
	inside := strings.ReplaceAll(script, "TRIPLET", strings.TrimSpace(string(triplet)))
	plain := []string{"env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"}
	o := harness.Start(t, harness.Command{Args: append(plain, fresh.Words(root, nil, "/bin/bash", "-c", inside)...), Limit: 5 * time.Minute})
	if o.Status != 0 || !strings.HasSuffix(o.Stdout, "--- removed\n"+purged(o.Stdout)+"--- end\n") {
		t.Fatalf("exit status %d\n%s", o.Status, o.Text())
	}
	part := parts(o.Stdout)
	for name, wants := range map[string][]string{
		"alternatives":       {"Status: auto", "libspx/lib/libmpi_abi.so.1", "libspx/bin/mpicc", "libspx/bin/spxrun"},
		"C":                  {"rank 0 of 2", "rank 1 of 2", "libspx 0."},
		"Fortran":            {"rank 0 of 2", "rank 1 of 2"},
		"without a run path": {"rank 0 of 2", "rank 1 of 2", "/mpi-abi/libmpi_abi.so.1"},
		"another library with the ABI is installed: it is offered, and this one can be chosen": {"Value: /usr/lib/" + strings.TrimSpace(string(triplet)) + "/libmpi_abi_mpich.so.1.0.0", "rank 1 of 2"},
	} {
		for _, want := range wants {
			if !strings.Contains(part[name], want) {
				t.Errorf("%s: no %q\n%s", name, want, part[name])
			}
		}
	}
	for _, line := range strings.Split(part["removed"], "\n") {
		if strings.HasPrefix(line, "/") && !strings.HasPrefix(line, "/root/") {
			t.Errorf("left behind by the packages: %s", line)
		}
	}
}

// purged is what is printed between the last two headings.
func purged(text string) string {
	_, rest, _ := strings.Cut(text, "--- removed\n")
	body, _, _ := strings.Cut(rest, "--- end\n")
	return body
}

func parts(text string) map[string]string {
	out := map[string]string{}
	for _, p := range strings.Split(text, "--- ")[1:] {
		name, body, _ := strings.Cut(p, "\n")
		out[name] = body
	}
	return out
}

// The packages are the same, bit for bit, when they are made again.
func TestSameAgain(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is missing")
	}
	if os.Getenv("SPX_DEB") == "" {
		t.Skip("make test-deb")
	}
	first, second := packages(t), packages(t)
	found, _ := filepath.Glob(first + "/*.deb")
	for _, file := range found {
		if out, err := exec.Command("cmp", file, filepath.Join(second, filepath.Base(file))).CombinedOutput(); err != nil {
			t.Errorf("%s", out)
		}
	}
}
