package abi

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"libspx/tests/harness"

	"github.com/google/go-cmp/cmp"
)

// wrapper runs a compiler wrapper with an environment of its own and returns what it prints.
func wrapper(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(harness.Build(t), "bin", name), args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func TestWrapperPrints(t *testing.T) {
	home, err := filepath.EvalSymlinks(harness.Build(t))
	if err != nil {
		t.Fatal(err)
	}
	inc, lib := home+"/include", home+"/lib"
	link := "-L" + lib + " -Wl,--enable-new-dtags -Wl,-rpath," + lib + " -lmpi_abi"
	for _, c := range []struct {
		name string
		args []string
		env  []string
		want string
	}{
		{name: "mpicc", args: []string{"-show"}, want: "gcc -I" + inc + " " + link},
		{name: "mpicc", args: []string{"-showme", "-c", "x.c"}, want: "gcc -I" + inc + " -c x.c"},
		{name: "mpicc", args: []string{"-show", "-E", "x.c"}, want: "gcc -I" + inc + " -E x.c"},
		{name: "mpicc", args: []string{"-show", "x.c", "-o", "x", "-lm"}, want: "gcc -I" + inc + " x.c -o x -lm " + link},
		{name: "mpicc", args: []string{"-showme:compile"}, want: "-I" + inc},
		{name: "mpicc", args: []string{"--showme:link"}, want: link},
		{name: "mpicc", args: []string{"-showme:incdirs"}, want: inc},
		{name: "mpicc", args: []string{"-showme:libdirs"}, want: lib},
		{name: "mpicc", args: []string{"-showme:libs"}, want: "mpi_abi"},
		{name: "mpicc", args: []string{"-showme:command"}, want: "gcc"},
		{name: "mpicc", args: []string{"-compile-info"}, want: "gcc -I" + inc},
		{name: "mpicc", args: []string{"-link-info"}, want: "gcc " + link},
		{name: "mpicxx", args: []string{"-show"}, want: "g++ -I" + inc + " " + link},
		{name: "mpic++", args: []string{"-showme:command"}, want: "g++"},
		{name: "mpif77", args: []string{"-showme:command"}, want: "gfortran"},
		{name: "mpif90", args: []string{"-showme:command"}, want: "gfortran"},
		{name: "mpifort", args: []string{"-show"}, want: "gfortran -I" + inc + " -fallow-argument-mismatch " + strings.Replace(link, "-lmpi_abi", "-lmpifort_abi -lmpi_abi", 1)},
		{name: "mpifort", args: []string{"-show", "-fc=ifx"}, want: "ifx -I" + inc + " " + strings.Replace(link, "-lmpi_abi", "-lmpifort_abi -lmpi_abi", 1)},
		{name: "mpifort", args: []string{"-showme:libs"}, want: "mpifort_abi mpi_abi"},
		{name: "mpicc", args: []string{"-showme:command"}, env: []string{"MPICH_CC=a"}, want: "a"},
		{name: "mpicc", args: []string{"-showme:command"}, env: []string{"OMPI_CC=b"}, want: "b"},
		{name: "mpicc", args: []string{"-showme:command"}, env: []string{"SPX_CC=c d", "MPICH_CC=a"}, want: "c d"},
		{name: "mpicxx", args: []string{"-showme:command"}, env: []string{"OMPI_CXX=e"}, want: "e"},
		{name: "mpifort", args: []string{"-showme:command"}, env: []string{"OMPI_FC=f"}, want: "f"},
		{name: "mpif77", args: []string{"-showme:command"}, env: []string{"MPICH_F77=g"}, want: "g"},
		{name: "mpicc", args: []string{"-cc=h", "-showme:command"}, want: "h"},
	} {
		if diff := cmp.Diff(c.want, wrapper(t, c.env, c.name, c.args...)); diff != "" {
			t.Errorf("%v %s %v (-want +got):\n%s", c.env, c.name, c.args, diff)
		}
	}
	if got := wrapper(t, nil, "mpicc", "-showme:version"); !strings.Contains(got, "libspx") {
		t.Errorf("-showme:version prints %q", got)
	}
	if got := wrapper(t, nil, "mpicc", "--version"); !strings.Contains(got, "gcc") {
		t.Errorf("--version prints %q, not the compiler's", got)
	}
	if got := wrapper(t, nil, "mpicc", "-showme:help"); !strings.Contains(got, "-showme:compile") {
		t.Errorf("-showme:help prints %q", got)
	}
}

func TestWrapperRefusesUnknownOption(t *testing.T) {
	out, err := exec.Command(filepath.Join(harness.Build(t), "bin/mpicc"), "-showme:nonsense").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "-showme:nonsense") {
		t.Errorf("err %v, output %q", err, out)
	}
}

// Quoting survives, also from a folder with a blank in its name and through a link from elsewhere.
func TestWrapperFromAnyFolder(t *testing.T) {
	home := filepath.Join(t.TempDir(), "a folder")
	if err := os.MkdirAll(filepath.Join(home, "bin"), 0o777); err != nil {
		t.Fatal(err)
	}
	build := harness.Build(t)
	for _, part := range []string{"include", "lib"} {
		if err := os.Symlink(filepath.Join(build, part), filepath.Join(home, part)); err != nil {
			t.Fatal(err)
		}
	}
	script, err := os.ReadFile(filepath.Join(build, "bin/mpicc"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "bin/mpicc"), script, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "mpicc")
	if err := os.Symlink(filepath.Join(home, "bin/mpicc"), link); err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(home, "x.c")
	if err := os.WriteFile(source, []byte("#include <mpi.h>\n#include <string.h>\nint main(void) { return strcmp(TEXT, \"two words\") || MPI_Wtime() < 0; }\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(home, "x")
	if out, err := exec.Command(link, "-DTEXT=\"two words\"", source, "-o", program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A program names the ABI's library, and looks for it where LD_LIBRARY_PATH says before it looks where it was built.
func TestProgramIsInterchangeable(t *testing.T) {
	program := harness.Compile(t, "abi/wtime", []string{filepath.Join(harness.Root(), "tests/abi/testdata/wtime.c")})
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil || !strings.Contains(strings.Join(needed, " "), "libmpi_abi.so.1") {
		t.Errorf("needs %v (%v), not libmpi_abi.so.1", needed, err)
	}
	if rpath, _ := f.DynString(elf.DT_RPATH); len(rpath) > 0 {
		t.Errorf("has an RPATH %v, which comes before LD_LIBRARY_PATH", rpath)
	}
	if runpath, _ := f.DynString(elf.DT_RUNPATH); len(runpath) != 1 || !strings.HasSuffix(runpath[0], "/lib") {
		t.Errorf("RUNPATH is %v", runpath)
	}
	cmd := exec.Command(program)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("without LD_LIBRARY_PATH: %v\n%s", err, out)
	}
}

func TestPkgConfig(t *testing.T) {
	for _, name := range []string{"libspx", "mpi-c", "mpi-cxx", "mpi-fort"} {
		cmd := exec.Command("pkg-config", "--cflags", "--libs", name)
		cmd.Env = append(os.Environ(), "PKG_CONFIG_PATH="+filepath.Join(harness.Build(t), "lib/pkgconfig"))
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "-lmpi_abi") || !strings.Contains(string(out), "-I") {
			t.Errorf("pkg-config %s: %v\n%s", name, err, out)
		}
	}
}

// CMake's own FindMPI finds us by the compiler wrappers in PATH, and what it builds runs.
func TestFindMPI(t *testing.T) {
	if _, err := exec.LookPath("cmake"); err != nil {
		t.Fatal("cmake is missing: run `make deps`")
	}
	dir := t.TempDir()
	env := append(os.Environ(), "PATH="+filepath.Join(harness.Build(t), "bin")+":"+os.Getenv("PATH"))
	for _, args := range [][]string{
		{"cmake", "-S", filepath.Join(harness.Root(), "tests/abi/testdata/findmpi"), "-B", dir},
		{"cmake", "--build", dir},
		{filepath.Join(dir, "c_program")},
		{filepath.Join(dir, "cxx_program")},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		if strings.Contains(args[0], "cmake") && args[1] == "-S" {
			for _, want := range []string{"Found MPI_C", "Found MPI_CXX", harness.Build(t)} {
				if !strings.Contains(string(out), want) {
					t.Errorf("cmake does not print %q:\n%s", want, out)
				}
			}
		}
	}
}
