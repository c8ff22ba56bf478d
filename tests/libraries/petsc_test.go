package libraries

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// PETSc in C and Fortran with Debian's BLAS and LAPACK, and nothing else beside MPI.
var petsc = library{name: "petsc", pkg: "petsc", version: "3.18.5+dfsg1-1", folder: "petsc-3.18.5",
	env: []string{"PETSC_DIR=", "PETSC_ARCH=arch-spx", "MAKEFLAGS="},
	steps: [][]string{
		{"sh", "-c", `unset PETSC_DIR; exec python3 ./configure PETSC_ARCH=arch-spx --with-cc=mpicc --with-cxx=0 --with-fc=mpif90 --with-mpiexec=spxrun ` +
			`--with-shared-libraries=0 --with-debugging=0 COPTFLAGS=-O0 FOPTFLAGS=-O0 --with-x=0 --with-ssl=0 --with-make-np=2`},
		{"sh", "-c", `make PETSC_DIR="$PWD" V=0 MAKE_LOAD=256`},
	}}

// What PETSc's own test system runs on 4 ranks of its tutorials: Krylov solvers and preconditioners, nonlinear solvers, vectors,
// distributed arrays and meshes, time steppers. Their output is compared with PETSc's.
var petscTutorials = []string{"ksp_ksp_tutorials-*", "snes_tutorials-*", "dm_tutorials-*", "vec_vec_tutorials-*", "vec_is_sf_tutorials-*", "ts_tutorials-*"}

// The folders of the tutorials in Fortran.
var petscFortran = []string{"sys", "vec/vec", "vec/is/sf", "mat", "dm", "dm/impls/plex", "ksp/ksp", "snes", "ts", "tao/leastsquares", "tao/unconstrained", "tao/bound"}

// petscEnv has the tests run by this build's spxrun: PETSc as it was built, perhaps from another tree, knows that one's.
func petscEnv(t *testing.T, dir string) []string {
	return []string{"PETSC_DIR=" + dir, "PETSC_ARCH=arch-spx", "PETSCMPIEXEC=" + filepath.Join(harness.Build(t), "bin/spxrun")}
}

func TestPETSc(t *testing.T) {
	need(t, "petsc")
	dir := petsc.ready(t)
	env := petscEnv(t, dir)
	for _, way := range ways {
		t.Run(way.name+"/check", func(t *testing.T) {
			start := time.Now()
			out := harness.Tool{Dir: dir, Env: append(env, way.env...), Limit: 3 * time.Minute}.Must(t, "make", "check", "MPIEXEC=spxrun")
			for _, ranks := range []string{"1 MPI process", "2 MPI processes"} {
				if want := "ex19 run successfully with " + ranks + "\n"; !strings.Contains(out, want) {
					t.Errorf("make check does not say %q\n%s", want, out)
				}
			}
			if want := "ex5f run successfully with 1 MPI process\n"; !strings.Contains(out, want) {
				t.Errorf("make check does not say %q\n%s", want, out)
			}
			result(t, "PETSc", petsc.version, "make check on 1 and 2 ranks, "+way.name, "3 examples, one in Fortran", time.Since(start))
		})
	}
	for _, group := range petscTutorials {
		t.Run(strings.TrimSuffix(group, "-*")+"/n=4", func(t *testing.T) {
			petscGroup(t, dir, env, group+" on 4 ranks", "searchin="+group, "query=nsize", "queryval=4")
		})
	}
}

// The tutorials in Fortran: free form, PETSc's modules and pointers, on as many ranks as each wants, one to five.
func TestPETScFortran(t *testing.T) {
	need(t, "petsc")
	dir := petsc.ready(t)
	env := petscEnv(t, dir)
	for _, folder := range petscFortran {
		t.Run(folder, func(t *testing.T) {
			sources, err := filepath.Glob(filepath.Join(dir, "src", folder, "tutorials/*.F90"))
			if err != nil || len(sources) == 0 {
				t.Fatal("no sources in Fortran", err)
			}
			var fields, names []string
			for _, source := range sources {
				fields = append(fields, "name")
				names = append(names, strings.ReplaceAll(folder, "/", "_")+"_tutorials-"+strings.TrimSuffix(filepath.Base(source), ".F90")+"_*")
			}
			petscGroup(t, dir, env, folder+"/tutorials, in Fortran", "query="+strings.Join(fields, ","), "queryval="+strings.Join(names, ","))
		})
	}
}

// petscGroup runs those of a group of PETSc's tests that a query selects.
func petscGroup(t *testing.T, dir string, env []string, what string, query ...string) {
	start := time.Now()
	args := append([]string{"make", "-f", "gmakefile.test", "-j1", "test", "TIMEOUT=60"}, query...)
	out, _ := harness.Tool{Dir: dir, Env: env, Limit: 9 * time.Minute}.Run(t, args...)
	count := func(re string) int { return len(regexp.MustCompile(re).FindAllString(out, -1)) }
	skipped := count(`(?m)^ *ok .* # SKIP`)
	passed := count(`(?m)^ *ok `) - skipped
	graphics := 0
	for _, w := range regexp.MustCompile(`(?m)^ *not ok (\S+).*$`).FindAllStringSubmatch(out, -1) {
		if wantsGraphics(dir, w[1]) {
			graphics++
			continue
		}
		t.Errorf("PETSc says %q\n%s", strings.TrimSpace(w[0]), out[max(0, len(out)-6000):])
	}
	if passed == 0 {
		t.Errorf("no test passed\n%s", out[max(0, len(out)-3000):])
	}
	result(t, "PETSc", petsc.version, what, fmt.Sprintf("%d checks, %d skipped (they need other packages), %d want graphics", passed, skipped, graphics), time.Since(start))
}

// wantsGraphics tells whether all that a test said other than it should is that this PETSc cannot draw: these tests do not say that they need X.
func wantsGraphics(dir, name string) bool {
	group, short, _ := strings.Cut(strings.TrimPrefix(name, "diff-"), "-")
	text, err := os.ReadFile(filepath.Join(dir, "arch-spx/tests", strings.ReplaceAll(group, "_", "/"), "run"+short, "diff-run"+short+".out"))
	if err != nil || !strings.HasPrefix(name, "diff-") {
		return false
	}
	rest := regexp.MustCompile(`(?m)^(\d+(,\d+)?[acd]\d+(,\d+)?|> \[\d\]PETSC ERROR: PETSc installed without X Windows .*|> proceeding without graphics)$`).ReplaceAllString(string(text), "")
	return len(text) > 0 && strings.TrimSpace(rest) == ""
}
