package libraries

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"libspx/tests/harness"
)

// FFTW with its MPI transforms; the Fortran wrappers need MPI's Fortran interface.
var fftw = library{name: "fftw", pkg: "fftw3", version: "3.3.10-1", folder: "fftw-3.3.10", steps: [][]string{
	{"./configure", "--enable-mpi", "--disable-fortran", "--disable-doc", "MPICC=mpicc", "CC=gcc"},
	{"make", "-j2"},
}}

// Its own `make check` in mpi/: random transforms, in place and out of place, transposed and not, complex, real, and of real symmetry, each
// compared with what it must be, on 1, 2, 3 and 4 ranks.
func TestFFTW(t *testing.T) {
	need(t, "fftw")
	dir := fftw.ready(t) + "/mpi"
	const each = 20
	verified := regexp.MustCompile(`(?m)^[io][a-z]\S*\S+ \d\S* \d\S* \d\S*$`)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			start := time.Now()
			out := harness.Tool{Dir: dir, Env: way.env, Limit: 9 * time.Minute}.Must(t, "make", "check", "MPIRUN=spxrun", fmt.Sprintf("NUMCHECK=%d", each))
			for _, ranks := range []string{"1 CPU", "2 CPUs", "3 CPUs", "4 CPUs"} {
				if want := fmt.Sprintf("MPI FFTW transforms passed %d tests, %s\n", each, ranks); !regexp.MustCompile(regexp.QuoteMeta(want)).MatchString(out) {
					t.Errorf("make check does not say %q", want)
				}
			}
			n := len(verified.FindAllString(out, -1))
			if n < 4*each*4 {
				t.Errorf("only %d transforms were verified", n)
			}
			result(t, "FFTW", fftw.version, "mpi/ make check on 1, 2, 3, 4 ranks, "+way.name, fmt.Sprintf("%d random problems, %d transforms verified", 4*each, n), time.Since(start))
		})
	}
}
