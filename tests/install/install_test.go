// Package install proves that `make install` gives a tree that works wherever it stands: programs, libraries with their version, compiler
// wrappers; projects find it by pkg-config, CMake, autoconf and Meson; manual pages, module files and completion are right.
package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"libspx/tests/harness"
)

var once sync.Once
var tree string

func TestMain(m *testing.M) {
	status := m.Run()
	if tree != "" {
		os.RemoveAll(filepath.Dir(tree))
	}
	os.Exit(status)
}

// installed returns a tree that was moved after it was installed: nothing may remember where it was built or put. The folder's name has blanks. All tests
// share it.
func installed(t *testing.T) string {
	t.Helper()
	build := harness.Build(t)
	once.Do(func() {
		dir, err := os.MkdirTemp("", "libspx-install")
		if err != nil {
			t.Fatal(err)
		}
		home := filepath.Join(dir, "moved to here")
		tree = home
		out, err := exec.Command(filepath.Join(harness.Root(), "scripts/install"), build, filepath.Join(dir, "dest"), "/opt/spx").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if err := os.Rename(filepath.Join(dir, "dest/opt/spx"), home); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := os.Stat(tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func version(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root(), "capi/abi/version.h"))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`SPX_VERSION +"(.*)"`).FindSubmatch(text)
	if m == nil {
		t.Fatal("version.h states no version")
	}
	v := string(m[1])
	if strings.Count(v, ".") != 2 {
		t.Fatalf("the version %q is not of three numbers", v)
	}
	return v
}

func TestInstalledTree(t *testing.T) {
	home, v := installed(t), version(t)
	for _, name := range []string{"bin/spxrun", "bin/mpiexec", "bin/mpirun", "bin/mpicc", "bin/mpicxx", "bin/mpif90", "bin/mpifort", "bin/mpif77",
		"lib/libspx.so", "lib/libmpi_abi.so.1", "lib/libmpi_abi.so", "lib/libmpifort_abi.so.1", "lib/pkgconfig/libspx.pc", "lib/pkgconfig/mpi-c.pc",
		"include/mpi.h", "include/mpi-ext.h", "include/mpi_f08.mod", "libexec/libspx/rows"} {
		if _, err := os.Stat(filepath.Join(home, name)); err != nil {
			t.Errorf("missing: %v", err)
		}
	}
	for name, want := range map[string]string{"libspx.so": "libspx.so." + v, "libmpi_abi.so.1": "libspx.so." + v, "libmpi_abi.so": "libmpi_abi.so.1",
		"libmpifort_abi.so.1": "libspxf.so." + v, "libmpifort_abi.so": "libmpifort_abi.so.1"} {
		if got, err := os.Readlink(filepath.Join(home, "lib", name)); err != nil || got != want {
			t.Errorf("lib/%s leads to %q, not %q (%v)", name, got, want, err)
		}
	}
	// No link leads out of the tree, or to nothing.
	filepath.WalkDir(home, func(p string, d os.DirEntry, err error) error { //nolint:errcheck // reported below
		if err == nil && d.Type()&os.ModeSymlink != 0 {
			to, _ := os.Readlink(p)
			if _, err := os.Stat(p); err != nil || filepath.IsAbs(to) {
				t.Errorf("%s leads to %s (%v)", p, to, err)
			}
		}
		return err
	})
}

// Installing twice, and over another version, leaves one version.
func TestInstallingAgain(t *testing.T) {
	dest := t.TempDir()
	lib := filepath.Join(dest, "opt/spx/lib")
	if err := os.MkdirAll(lib, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, old := range []string{"libspx.so.0.0.9", "libspx.so"} {
		if err := os.WriteFile(filepath.Join(lib, old), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if out, err := exec.Command(filepath.Join(harness.Root(), "scripts/install"), harness.Build(t), dest, "/opt/spx").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	found, _ := filepath.Glob(filepath.Join(lib, "libspx.so*"))
	if len(found) != 2 || filepath.Base(found[1]) != "libspx.so."+version(t) {
		t.Errorf("lib has %v", found)
	}
	if out, err := exec.Command(filepath.Join(harness.Root(), "scripts/install"), harness.Build(t), dest, "relative").CombinedOutput(); err == nil || !strings.Contains(string(out), "absolute") {
		t.Errorf("a relative prefix: %v\n%s", err, out)
	}
}

// command runs a command of a build, which may need the tree's programs, and nothing else of libspx.
func command(t *testing.T, home, dir string, env []string, args ...string) string {
	t.Helper()
	path := "PATH=" + filepath.Join(home, "bin") + ":" + os.Getenv("PATH")
	o := harness.Start(t, harness.Command{Args: append([]string{"env", "-u", "LD_LIBRARY_PATH", "-u", "MAKEFLAGS"}, args...), Dir: dir, Env: append([]string{path}, env...), Limit: 4 * time.Minute})
	if o.Status != 0 || o.Late {
		t.Fatalf("%s: exit status %d\n%s", strings.Join(args, " "), o.Status, o.Text())
	}
	return o.Stdout
}

// runHello starts programs by the installed spxrun, without help from the environment.
func runHello(t *testing.T, home string, programs ...string) {
	t.Helper()
	for _, program := range programs {
		o := harness.Start(t, harness.Command{Args: []string{"env", "-u", "LD_LIBRARY_PATH", filepath.Join(home, "bin/mpiexec"), "-n", "2", program}})
		if o.Status != 0 || !strings.Contains(o.Stdout, "rank 1 of 2") {
			t.Errorf("%s: exit status %d\n%s", program, o.Status, o.Text())
		}
	}
}
