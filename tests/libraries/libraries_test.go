// Package libraries builds libraries that users of MPI build upon with our mpicc, from Debian's source packages, and runs the
// parallel tests that come with them: HDF5, PnetCDF, FFTW, PETSc, and those of programs_test.go. Sources are fetched when a test runs, built once into
// the cache that harness.Cache names, and never part of the repository. `make libraries` runs them, `make libraries LIBS="hdf5 fftw"` some; `go test`
// alone skips them, since they fetch and take long. It must not loosen a library's own verdicts.
package libraries

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"libspx/tests/harness"
)

// library is a Debian source package and how it is built.
type library struct {
	name, pkg, version string
	folder             string              // that the tarball unpacks into
	bare               bool                // the tarball has no folder of its own
	steps              [][]string          // commands in the build folder, one after the other
	apart              bool                // it is built in a folder of its own beside the sources
	env                []string            // of the commands
	limit              time.Duration       // of a command
	change             map[string][]string // edits of files: pairs of what stands there and what replaces it
}

// need skips the test unless this library was asked for.
func need(t *testing.T, name string) {
	t.Helper()
	asked := strings.Fields(strings.ReplaceAll(os.Getenv("SPX_LIBRARIES"), ",", " "))
	if !slices.Contains(asked, name) && !slices.Contains(asked, "all") {
		t.Skipf("make libraries LIBS=%s builds it and runs its tests (fetches its source)", name)
	}
}

// ready returns the folder in which the library has been built, now or before: what decides is the text of the recipe and the
// public header. It serves every build of libspx: what configure takes for mpicc stands in the cache and calls that of the build in hand,
// and programs find the library by their path.
func (l library) ready(t *testing.T) string {
	t.Helper()
	all := filepath.Join(harness.Cache(t), "libraries")
	dir := filepath.Join(all, l.folder)
	if l.apart {
		dir = filepath.Join(all, l.name)
	}
	header, err := os.ReadFile(filepath.Join(harness.Root(), "include/mpi.h"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(all, 0o777); err != nil {
		t.Fatal(err)
	}
	defer lock(t, filepath.Join(all, l.name+".lock"))()
	recipe := fmt.Sprintf("%q %v %v %v\n%x\n", l.steps, l.env, l.version, l.change, sha256.Sum256(header))
	stamp := filepath.Join(all, l.name+".built")
	mark := func(done int) { // a build that was interrupted goes on with the step at which it was
		if err := os.WriteFile(stamp, fmt.Appendf(nil, "%s%d\n", recipe, done), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	start, done := time.Now(), -1
	if made, err := os.ReadFile(stamp); err == nil {
		if steps, same := strings.CutPrefix(string(made), recipe); same {
			done, _ = strconv.Atoi(strings.TrimSpace(steps))
		}
	}
	if done < 0 {
		os.Remove(stamp)
		l.unpack(t, all, dir)
		mark(0)
		done = 0
	}
	path := compilers(t, filepath.Join(all, "bin"))
	if done == len(l.steps) {
		return dir
	}
	for i, step := range l.steps[done:] {
		harness.Tool{Dir: dir, Env: append(slices.Clone(l.env), path), Limit: l.limit, Log: filepath.Join(all, fmt.Sprintf("%s.build%d.log", l.name, done+i+1))}.Must(t, step...)
		mark(done + i + 1)
	}
	t.Logf("%s %s built in %.0f s", l.name, l.version, time.Since(start).Seconds())
	return dir
}

// compilers makes, in a folder, programs with the names of our wrappers and launchers that call those of the build in hand, and returns the path in which they
// come first: libraries keep the place of their compiler, and outlive builds.
func compilers(t *testing.T, folder string) (path string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mpicc", "mpicxx", "mpif77", "mpif90", "mpifort", "mpiexec", "spxrun"} {
		file := filepath.Join(folder, name)
		if _, err := os.Stat(file); err == nil {
			continue
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\nexec \"$SPX_BUILD/bin/${0##*/}\" \"$@\"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return "PATH=" + folder + ":" + filepath.Join(harness.Build(t), "bin") + ":" + os.Getenv("PATH")
}

// lock keeps others that would build the same library away until the function that it returns is called.
func lock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return func() { f.Close() }
}

// unpack lays out fresh sources, and the folder to build in.
func (l library) unpack(t *testing.T, all, dir string) {
	t.Helper()
	source := harness.Source(t, l.pkg, l.version)
	if l.bare {
		harness.Unpack(t, source, filepath.Join(all, l.folder), "")
	} else {
		harness.Unpack(t, source, all, l.folder)
	}
	l.edit(t, filepath.Join(all, l.folder))
	if !l.apart {
		return
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
}

// edit changes sources where they do not fit this machine; what is to be changed must be there.
func (l library) edit(t *testing.T, dir string) {
	t.Helper()
	for name, pairs := range l.change {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(pairs); i += 2 {
			if !strings.Contains(string(text), pairs[i]) {
				t.Fatalf("%s has no %q", path, pairs[i])
			}
			text = []byte(strings.ReplaceAll(string(text), pairs[i], pairs[i+1]))
		}
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// ways are the settings under which tests run: as it comes, and as in a container that forbids reading other processes' memory.
var ways = []struct {
	name string
	env  []string
}{{"as it comes", nil}, {"without CMA", []string{"SPX_CMA=0"}}}

// program is a test program of a library, and how its output is judged beside its exit status.
type program struct {
	args   []string
	says   string // regular expression that the output must match
	passed string // regular expression of a line for one check; the default is PASSED
	least  int    // number of those lines
	limit  time.Duration
	ranks  int  // that it needs at least
	dies   bool // it ends without MPI_Finalize, and with whatever status
	env    []string
}

var failed = regexp.MustCompile(`(?m)^.*(\*FAILED\*|\bFAILED\b|\*\*\* Parallel ERROR|libspx: .* failed|MPI_Abort).*$`)

// run runs a program on n ranks and returns the number of its checks that passed.
func (p program) run(t *testing.T, dir string, n int, env []string) int {
	t.Helper()
	if p.limit == 0 {
		p.limit = 2 * time.Minute
	}
	o := harness.Run(t, harness.Command{Args: harness.Spxrun(t, strconv.Itoa(n), p.args[0], p.args[1:]...), Dir: dir, Env: append(slices.Clone(env), p.env...), Limit: p.limit})
	all := o.Stdout + o.Stderr
	if o.Late || o.Status != 0 && !p.dies {
		t.Errorf("%s on %d ranks: exit status %d, late %v\n%s", strings.Join(p.args, " "), n, o.Status, o.Late, o.Text())
		return 0
	}
	if bad := failed.FindString(all); bad != "" && !p.dies {
		t.Errorf("%s on %d ranks says %q\n%s", strings.Join(p.args, " "), n, bad, o.Text())
	}
	if p.says != "" && !regexp.MustCompile(p.says).MatchString(all) {
		t.Errorf("%s on %d ranks does not say %q\n%s", strings.Join(p.args, " "), n, p.says, o.Text())
	}
	if p.passed == "" {
		p.passed = `\bPASSED\b`
	}
	count := len(regexp.MustCompile(p.passed).FindAllString(all, -1))
	if count < p.least {
		t.Errorf("%s on %d ranks: only %d checks passed, want at least %d\n%s", strings.Join(p.args, " "), n, count, p.least, o.Text())
	}
	return count
}

// result appends a row to the table of results and shows it.
func result(t *testing.T, library, version, tests, passed string, took time.Duration) {
	t.Helper()
	verdict := passed
	if t.Failed() {
		verdict = "FAILED: " + passed
	}
	row := fmt.Sprintf("| %s | %s | %s | %s | %.0f s |\n", library, version, tests, verdict, took.Seconds())
	f, err := os.OpenFile(filepath.Join(harness.Build(t), "libraries.md"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(row); err != nil {
		t.Fatal(err)
	}
	t.Log(strings.TrimSpace(row))
}
