package libraries

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"libspx/tests/harness"
)

// hypre in C, with the BLAS and LAPACK that come with it.
var hypre = library{name: "hypre", pkg: "hypre", version: "2.26.0-3", folder: "hypre-2.26.0", steps: [][]string{
	{"sh", "-c", "cd src && ./configure CC=mpicc CXX=mpicxx --disable-fortran"},
	{"make", "-j2", "-C", "src"},
	{"make", "-j2", "-C", "src/test", "all"},
}}

// Its own `make checkpar`: solvers on up to 8 ranks, whose numbers of iterations and residuals are compared with hypre's.
func TestHypre(t *testing.T) {
	need(t, "hypre")
	dir := hypre.ready(t) + "/src"
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			start := time.Now()
			out := harness.Tool{Dir: dir, Env: way.env, Limit: 9 * time.Minute}.Must(t, "make", "checkpar", "CHECKRUN=spxrun -n")
			ok := len(regexp.MustCompile(`(?m)^ +OK : .*solvers\.err$`).FindAllString(out, -1))
			if ok != 3 || strings.Contains(out, "FAILED") {
				t.Errorf("%d of 3 groups of tests are in order\n%s", ok, out[max(0, len(out)-4000):])
			}
			result(t, "hypre", hypre.version, "make checkpar, "+way.name, fmt.Sprintf("%d of 3 groups", ok), time.Since(start))
		})
	}
}
