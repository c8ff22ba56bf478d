package install

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"libspx/tests/harness"
)

// project is a folder with the sources and the files of one build system.
func project(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	files := []string{filepath.Join(harness.Root(), "examples/hello.c"), "testdata/hello.cc", "testdata/hello.f90"}
	if name != "" {
		more, _ := filepath.Glob("testdata/" + name + "/*")
		files = append(files, more...)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(f)), text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var hellos = []string{"hello_c", "hello_cc", "hello_f"}

func runAll(t *testing.T, home, dir string) {
	t.Helper()
	for _, name := range hellos {
		runHello(t, home, filepath.Join(dir, name))
	}
}

func TestByCompilerWrappers(t *testing.T) {
	home, dir := installed(t), project(t, "")
	command(t, home, dir, nil, "mpicc", "hello.c", "-o", "hello_c")
	command(t, home, dir, nil, "mpicxx", "hello.cc", "-o", "hello_cc")
	command(t, home, dir, nil, "mpifort", "hello.f90", "-o", "hello_f")
	runAll(t, home, dir)
}

func TestByPkgConfig(t *testing.T) {
	home, dir := installed(t), project(t, "")
	env := []string{"PKG_CONFIG_PATH=" + filepath.Join(home, "lib/pkgconfig")}
	for _, w := range [][]string{{"mpi-c", "gcc", "hello.c", "hello_c"}, {"mpi-cxx", "g++", "hello.cc", "hello_cc"}, {"mpi-fort", "gfortran", "hello.f90", "hello_f"}, {"libspx", "gcc", "hello.c", "hello_c2"}} {
		flags := command(t, home, dir, env, "pkg-config", "--cflags", "--libs", w[0]) // for a shell: paths are quoted
		command(t, home, dir, nil, "sh", "-c", fmt.Sprintf("%s %s -o %s %s", w[1], w[2], w[3], flags))
	}
	runAll(t, home, dir)
	runHello(t, home, filepath.Join(dir, "hello_c2"))
	if got, want := strings.TrimSpace(command(t, home, dir, env, "pkg-config", "--modversion", "libspx")), version(t); got != want {
		t.Errorf("version %q, not %q", got, want)
	}
}

func TestByCMake(t *testing.T) {
	harness.Need(t, "test", "cmake")
	for _, how := range []string{"cmake-mpi", "cmake-libspx"} {
		t.Run(how, func(t *testing.T) {
			home, dir := installed(t), project(t, how)
			args := []string{"cmake", "-S", ".", "-B", "build", "-DSOURCES=" + dir}
			if how == "cmake-libspx" {
				args = append(args, "-DCMAKE_PREFIX_PATH="+home)
			}
			if out := command(t, home, dir, nil, args...); how == "cmake-mpi" && !strings.Contains(out, "MPI 5.0: "+home+"/lib/libmpi_abi.so") {
				t.Errorf("FindMPI has found something else:\n%s", out)
			}
			command(t, home, dir, nil, "cmake", "--build", "build")
			runAll(t, home, filepath.Join(dir, "build"))
		})
	}
}

func TestByAutoconf(t *testing.T) {
	harness.Need(t, "packaging", "autoreconf", "automake", "/usr/share/aclocal/ax_mpi.m4")
	home, dir := installed(t), project(t, "autoconf")
	command(t, home, dir, nil, "autoreconf", "-i")
	command(t, home, dir, nil, "./configure")
	command(t, home, dir, nil, "make")
	runAll(t, home, dir)
}

func TestByMeson(t *testing.T) {
	harness.Need(t, "packaging", "meson", "ninja")
	home, dir := installed(t), project(t, "meson")
	// Its own search would take another MPI's pkg-config file first, where one is installed.
	command(t, home, dir, []string{"PKG_CONFIG_LIBDIR=" + filepath.Join(home, "lib/pkgconfig"), "MPICC=mpicc", "MPICXX=mpicxx", "MPIFC=mpifort"}, "meson", "setup", "build")
	command(t, home, dir, nil, "ninja", "-C", "build")
	runAll(t, home, filepath.Join(dir, "build"))
}
