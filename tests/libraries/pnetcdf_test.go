package libraries

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// PnetCDF in C, Fortran 77 and Fortran 90. gfortran takes minutes to optimize the module that is all of its Fortran 90 interface.
var pnetcdf = library{name: "pnetcdf", pkg: "pnetcdf", version: "1.12.3-1", folder: "pnetcdf-1.12.3", steps: [][]string{
	{"autoreconf", "-i"},
	{"./configure", "MPICC=mpicc", "MPIF77=mpif77", "MPIF90=mpif90", "--disable-cxx", "FFLAGS=-g -O0", "FCFLAGS=-g -O0"},
	{"make", "-j2"},
	{"make", "-j2", "tests"},
}}

// Its own targets: check (one rank), ptests (2, 4, 6 ranks, and as its folders say).
func TestPnetCDF(t *testing.T) {
	need(t, "pnetcdf")
	dir := pnetcdf.ready(t)
	fortran := regexp.MustCompile(`(?m)^\*\*\* TESTING F(77|90) .*------ pass$`)
	bad := regexp.MustCompile(`(?m)^(FAIL|ERROR|XPASS): .*$|^.*\*\*\* Error .*$|^.* ------ fail.*$`)
	for _, way := range ways {
		for _, target := range []struct {
			name, what string
			line       string // of a test that passed
			least      int
			fortran    int // of these, at least, in Fortran; make check does not say
		}{
			{"check", "one rank", `(?m)^PASS: `, 60, 0},
			{"ptests", "2, 4, 6 ranks", `(?m)------ pass$|^PASS: `, 150, 40},
		} {
			t.Run(way.name+"/"+target.name, func(t *testing.T) {
				start := time.Now()
				out, ok := harness.Tool{Dir: dir, Env: way.env, Limit: 9 * time.Minute}.Run(t, "make", target.name, "TESTMPIRUN=spxrun -n NP")
				passed := len(regexp.MustCompile(target.line).FindAllString(out, -1))
				if wrong := bad.FindAllString(out, -1); !ok || len(wrong) > 0 {
					t.Errorf("make %s failed:\n%s\n%s", target.name, strings.Join(wrong, "\n"), out[max(0, len(out)-4000):])
				}
				if passed < target.least {
					t.Errorf("only %d tests passed, want at least %d\n%s", passed, target.least, out[max(0, len(out)-2000):])
				}
				in := len(fortran.FindAllString(out, -1))
				if in < target.fortran {
					t.Errorf("only %d tests in Fortran passed, want at least %d", in, target.fortran)
				}
				result(t, "PnetCDF", pnetcdf.version, fmt.Sprintf("make %s: %s, %s", target.name, target.what, way.name), fmt.Sprintf("%d tests, at least %d in Fortran", passed, in), time.Since(start))
			})
		}
	}
}
