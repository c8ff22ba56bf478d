package libraries

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"libspx/tests/harness"
)

// suite is a program with the parallel tests that come with it.
type suite struct {
	library
	title string
	tests []check
}

// check is a command that runs tests and prints a line for each that passed.
type check struct {
	what   string // words for the table of results
	dir    string // below the program's folder
	args   []string
	env    []string
	passed string // regular expression of such a line
	count  int    // of them
	bad    string // regular expression that must not match, beside the exit status
}

// cmake returns the steps of a build in bld by our wrappers, which FindMPI takes as they are.
func cmake(targets []string, options ...string) [][]string {
	return [][]string{
		append([]string{"cmake", "-S", ".", "-B", "bld"}, options...),
		append([]string{"make", "-C", "bld", "-j2"}, targets...),
	}
}

var wrappers = []string{"CC=mpicc", "CXX=mpicxx", "FC=mpifort"}

// ctest runs those of CTest's tests whose names match, with more options of ctest.
func ctest(what, names string, count int, options ...string) check {
	return check{
		what: what, dir: "bld",
		args:   append([]string{"ctest", "--timeout", "300", "-R", names}, options...),
		passed: `(?m)^ *\d+/\d+ Test .* Passed `, count: count,
	}
}

// automake runs a `make check` of Automake.
func automake(what, dir string, count int, variables ...string) check {
	return check{
		what: what, dir: dir, args: append([]string{"make", "check"}, variables...),
		passed: `(?m)^PASS: `, count: count, bad: `(?m)^(FAIL|ERROR|XPASS): .*$`,
	}
}

var suites = []suite{
	{
		title: "OpenCoarrays",
		library: library{
			name: "open-coarrays", pkg: "open-coarrays", version: "2.10.2+ds-4",
			folder: "open-coarrays-2.10.2+ds", env: wrappers, steps: cmake(nil),
		},
		tests: []check{ctest("ctest: coarrays of gfortran by one-sided calls, 1 to 8 images", ".", 84)},
	},
	{
		title: "ARMCI-MPI",
		library: library{
			name: "armci-mpi", pkg: "armci-mpi", version: "0.4-6", folder: "armci-mpi-0.4",
			steps: [][]string{
				{"./autogen.sh"},
				{"./configure", "CC=mpicc", "--disable-shared"},
				{"make", "-j2", "all", "checkprogs"},
			},
		},
		tests: []check{automake("make check on 4 ranks: one-sided calls", "", 43,
			"MPIEXEC=spxrun -n 4")},
	},
	{
		title: "PT-Scotch",
		library: library{
			name: "scotch", pkg: "scotch", version: "7.0.3-2", folder: "scotch-7.0.3",
			steps: [][]string{
				{"cp", "src/Make.inc/Makefile.inc.x86-64_pc_linux2", "src/Makefile.inc"},
				{"sed", "-i", "s/-O3/-O1/", "src/Makefile.inc"},
				{"make", "-C", "src", "-j2", "ptscotch", "CCD=mpicc"},
			},
		},
		tests: []check{{
			what: "make ptcheck on 3 and 4 ranks: partitioning and ordering of graphs",
			dir:  "src/check", args: []string{"make", "-k", "ptcheck", "EXECPPROG=spxrun"},
			passed: `(?m)^spxrun `, count: 24, bad: `\*\*\*|ERROR`,
		}},
	},
	{
		title: "p4est",
		library: library{
			name: "p4est", pkg: "p4est", version: "2.2-3", folder: "p4est-2.2",
			steps: [][]string{
				{"sh", "-c", "echo 2.2 | tee .tarball-version >sc/.tarball-version; ./bootstrap"},
				{"./configure", "--enable-mpi", "--disable-shared", "--without-blas",
					"CC=mpicc", "F77=mpif77", "CFLAGS=-O1"},
				{"make", "-j2"},
				{"make", "-j2", "check", "TESTS="},
			},
		},
		tests: []check{automake("make check on 4 ranks, of sc and of p4est: forests of octrees", "", 72,
			"LOG_COMPILER=spxrun", "AM_LOG_FLAGS=-n 4")},
	},
	{
		title: "MrBayes",
		library: library{
			name: "mrbayes", pkg: "mrbayes", version: "3.2.7a-6", folder: "MrBayes-3.2.7a",
			steps: [][]string{
				{"./configure", "--with-mpi", "--without-beagle", "--disable-avx", "--disable-fma",
					"--without-readline", "CC=mpicc", "MPICC=mpicc", "CFLAGS=-O1"},
				{"make", "-j2"},
			},
		},
		tests: []check{{
			what: "primates.nex, 2 runs of 4 coupled chains on 4 ranks, until they agree",
			dir:  "examples", args: []string{"sh", "-c", mrbayes},
			passed: `Analysis stopped because convergence diagnostic hit stop value`, count: 1,
		}},
	},
	{
		title: "ExaML",
		library: library{
			name: "examl", pkg: "examl", version: "3.0.22-3", folder: "ExaML-3.0.22",
			steps: [][]string{
				{"make", "-C", "examl", "-j2", "-f", "Makefile.SSE3.gcc"},
				{"make", "-C", "parser", "-f", "Makefile.SSE3.gcc"},
			},
		},
		tests: []check{{
			what: "likelihood of a tree of its testData on 1 and 4 ranks",
			dir:  "testData", args: []string{"sh", "-c", examl},
			passed: `Likelihood tree 0: -16205\.67`, count: 2,
		}},
	},
	{
		title: "PhyML",
		library: library{
			name: "phyml", pkg: "phyml", version: "3:3.3.20220408-3", folder: "phyml-3.3.20220408",
			steps: [][]string{
				{"autoreconf", "-fi"},
				{"./configure", "--enable-phyml-mpi", "CC=mpicc", "CFLAGS=-O0"},
				{"make", "-j2"},
			},
		},
		tests: []check{{
			what: "8 bootstraps of examples/nucleic on 4 ranks",
			dir:  "examples", args: []string{"sh", "-c", phyml},
			passed: `(?m)^\(.*\);$|Log-likelihood: \s*-5432\.6`, count: 9,
		}},
	},
	{
		title: "Tachyon",
		library: library{
			name: "tachyon", pkg: "tachyon", version: "0.99~b6+dsx-10",
			folder: "tachyon-0.99~b6+dsx.orig",
			steps:  [][]string{{"make", "-C", "unix", "-j2", "linux-mpi", "MPIDIR=", "MISCFLAGS=-O2"}},
		},
		tests: []check{{
			what: "43 of its scenes: the same image from 1 and from 4 ranks",
			dir:  "scenes", args: []string{"sh", "-c", tachyon}, passed: `(?m)^same: `, count: 43,
		}},
	},
	{
		title: "SUNDIALS",
		library: library{
			name: "sundials", pkg: "sundials", version: "6.4.1+dfsg1-3", folder: "sundials-6.4.1",
			env: wrappers, steps: append(cmake(nil, "-DENABLE_MPI=ON", "-DEXAMPLES_ENABLE_CXX=ON",
				"-DSUNDIALS_TEST_DEVTESTS=ON", "-DBUILD_SHARED_LIBS=OFF", "-DEXAMPLES_INSTALL=OFF",
				"-DCMAKE_BUILD_TYPE=None")[:1], []string{"sh", "-c", sundials}),
		},
		tests: []check{ctest("ctest of its parallel examples on 4 (6 of them on 2) ranks: what they "+
			"print compared with SUNDIALS' answers", sundialsTests, 34)},
	},
	{
		title: "PARPACK",
		library: library{
			name: "arpack", pkg: "arpack", version: "3.9.1-6", folder: "arpack-ng-3.9.1", env: wrappers,
			change: map[string][]string{"CMakeLists.txt": {"mpiexec -n 2", "mpiexec -n 4"}},
			steps: cmake([]string{"pcndrv1", "pdndrv1", "pdndrv3", "pdsdrv1", "psndrv1", "psndrv3",
				"pssdrv1", "pzndrv1", "issue46", "icb_parpack_c", "icb_parpack_cpp"},
				"-DMPI=ON", "-DICB=ON", "-DEXAMPLES=ON", "-DBUILD_SHARED_LIBS=OFF",
				"-DCMAKE_BUILD_TYPE=None"),
		},
		tests: []check{{
			what: "ctest -V of 11 programs on 4 ranks, in Fortran, C and C++; " +
				"9 of them say 10 times that 4 eigenvalues have converged",
			dir: "bld", env: []string{"OPENBLAS_NUM_THREADS=1"},
			args:   []string{"ctest", "-V", "--timeout", "100", "-R", "^p.*drv|parpack|issue46"},
			passed: `(?m)^ *\d+/\d+ Test .* Passed |number of converged Ritz values is +4$`, count: 21,
		}},
	},
	{
		title: "SPOOLES",
		library: library{
			name: "spooles", pkg: "spooles", version: "2.2-14", folder: "spooles-2.2", bare: true,
			change: map[string][]string{"MPI/src/IVLallgather.c": inPlace, "MPI/src/fullAdjMPI.c": inPlace},
			steps: [][]string{
				{"make", "lib", "CC=mpicc", "CFLAGS=-O1 -w"},
				{"make", "-C", "MPI/src", "spoolesMPI.a", "CC=mpicc", "CFLAGS=-O1 -w", "MPI_INCLUDE_DIR="},
				{"make", "-C", "MPI/drivers", "drivers", "CC=mpicc", "CFLAGS=-O1 -w", "MPI_INCLUDE_DIR=",
					"MPI_LIBS="},
			},
		},
		tests: []check{{
			what: "17 runs of its MPI drivers on 4 ranks: differences of sums, products and solutions",
			dir:  "MPI/drivers", args: []string{"sh", "-c", spooles},
			passed: `(?m)^.*error[^=:]*[=:]( +-?(0\.0000e\+00|\d\.\d{4}e-1\d))+$`, count: 48,
		}},
	},
	{
		title: "RAxML",
		library: library{
			name: "raxml", pkg: "raxml", version: "8.2.13+dfsg-2", folder: "standard-RAxML-8.2.13",
			steps: [][]string{{"make", "-j2", "-f", "Makefile.SSE3.MPI.gcc", "CC=mpicc"}},
		},
		tests: []check{{
			what:   "8 searches for a tree on 2 and 4 ranks: the same best likelihood; 20 bootstraps on 4",
			args:   []string{"sh", "-c", raxml},
			passed: `Final GAMMA-based Score of best tree -2103\.902|(?m)^\(.*\);$`, count: 22,
		}},
	},
	{
		title: "Global Arrays",
		library: library{
			name: "ga", pkg: "ga", version: "5.9.2-1", folder: "ga-5.9.2", env: wrappers,
			steps: cmake(nil, "-DGA_RUNTIME=MPI_2SIDED", "-DENABLE_CXX=OFF", "-DBUILD_SHARED_LIBS=OFF",
				"-DCMAKE_BUILD_TYPE=None"),
		},
		tests: []check{ctest("ctest of 46 programs on 4 ranks, without those that take long", ".", 46,
			"-E", gaLong)},
	},
}

// Of the scenes, space, texture and tpolytest need files that Debian's tarball lacks. Without
// antialiasing no random number, of which each rank has its own, takes part.
const tachyon = `rm -f *.own && for scene in *.dat *.ac; do
case $scene in space.dat | texture.dat | tpolytest.dat) continue ;; esac
for n in 1 4; do
spxrun -n $n ../compile/linux-mpi/tachyon $scene -aasamples 0 -res 256 192 -format PPM -o $n.own || exit 1
done >log.own && cmp 1.own 4.own && echo same: $scene || { cat log.own; exit 1; }
rm 1.own 4.own
done`

// The others' answers depend on the order in which MPI_Allreduce adds four doubles: several of them
// are met to the last digit where it is (a+b)+(c+d).
const sundialsTests = `nls_--monitor$|nls_--monitor_--global|mri-arkstep|non_p|AtmDisp|` +
	`idas?Heat2D_kry(_bbd)?_p|Bruss_|kinFoodWeb_kry(_bbd)?_p|kin_heat2D_nonlin|kin_em|` +
	`_mpi_4|_mpimanyvector|_mpiplusx|_parallel_`

// Tests of Global Arrays that have needed more than 7 s on a busy machine, and those of memory alone.
const gaLong = `^(ma/.*|(un)?packc|scan_(add|copy)c|testmult|testmatmultc?|read_only|cache_test|` +
	`perf2?|g2test|ghosts|mmatrix|sprsmatmult|test|overlay|nga-(onesided|patch|periodic|scatter)|` +
	`ngatest|lennard)$`

const sundials = `for d in bld/examples/*/*parallel bld/examples/*/*mpi* bld/examples/sunlinsol/*/parallel; do
make -C $d -j2 || exit 1
done`

// SPOOLES sends from its own place in the buffer that it receives into, which the standard forbids.
var inPlace = []string{
	"MPI_Allgather((void *) &counts[myid], 1, MPI_INT,", "MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT,",
}

// testGridMPI ends with status 1 whatever happens: the errors that it prints decide.
const spooles = `run() {
	name=$1; shift
	rm -f own.*
	spxrun -n 4 ./$name 1 own "$@" >log 2>&1 || test $name = testGridMPI || { cat log; exit 1; }
	echo "$name $*"; grep -h error own.*
}
run testIV_allgather 10000 10101
run testIVL_allgather 1000 10101
run testIVL_alltoall 1000 10101
run testIVL_Bcast 1000 200 1 10101
run testGraph_Bcast 3 1000 5000 1 10101
run testGather 2 2000 40 40 1 1010101
run testSplitDenseMtx 1 100 4 4 1 10101
run testScatterDenseMtx 2 100 4 4 1 10101 1
run testSplitInpMtx 2000 10000 10101 3 2
run testScatterInpMtx 2000 10000 10101 3 2 1
for sym in 0 1 2; do run testMMM 30 30 200 4 2 2 $sym 2 10101 0.5 2.0; done
for sym in 0 2; do for pivot in 0 1; do
	run testGridMPI 7 7 7 1000 64 10101 1 $sym 0 $pivot 10 1.e-50 0 4 3 0.125
done; done`

// RAxML comes without data: 12 sequences of 400 bases that have changed along a binary tree.
const raxml = `mkdir -p own && cd own && rm -f * && awk 'BEGIN {
s = 1
for (i = 1; i <= 400; i++) x[1, i] = int(4*next01())
for (k = 2; k <= 12; k++) for (i = 1; i <= 400; i++)
	x[k, i] = next01() < 0.1 ? int(4*next01()) : x[int(k/2), i]
print 12, 400
for (k = 1; k <= 12; k++) {
	printf "t%d ", k
	for (i = 1; i <= 400; i++) printf "%s", substr("ACGT", x[k, i]+1, 1)
	print ""
}}
function next01() { s = (69069*s + 1) % 4294967296; return s/4294967296 }' >own.phy &&
for n in 2 4; do
spxrun -n $n ../raxmlHPC-MPI-SSE3 -s own.phy -n own$n -m GTRGAMMA -p 12345 -N 8 >log || exit 1
grep Score RAxML_info.own$n
done &&
spxrun -n 4 ../raxmlHPC-MPI-SSE3 -f a -x 777 -s own.phy -n boot -m GTRCAT -p 12345 -N 20 >log &&
cat RAxML_bootstrap.boot`

const mrbayes = `printf 'begin mrbayes; set autoclose=yes nowarn=yes seed=11 swapseed=12;
execute primates.nex; lset nst=6 rates=gamma;
mcmc ngen=200000 samplefreq=100 printfreq=1000 diagnfreq=1000 nruns=2 nchains=4
stoprule=yes stopval=0.03; end;' >own.nex && rm -f primates.nex.* && spxrun -n 4 ../src/mb own.nex`

const examl = `rm -f *.own* && ../parser/parse-examl -s 49 -q 49.model -m DNA -n own >/dev/null &&
for n in 1 4; do
spxrun -n $n ../examl/examl -s own.binary -t 49.tree -m GAMMA -n own$n -f e || exit 1
done`

const phyml = `rm -f nucleic_phyml_* && spxrun -n 4 ../src/phyml-mpi -i nucleic -d nt -b 8 \
-o lr -m HKY85 --r_seed 1 --no_memory_check &&
cat nucleic_phyml_boot_trees.txt nucleic_phyml_stats.txt`

// The programs' own tests, as they come and without CMA.
func TestPrograms(t *testing.T) {
	for _, s := range suites {
		t.Run(s.name, func(t *testing.T) {
			need(t, s.name)
			dir := s.ready(t)
			path := "PATH=" + filepath.Join(filepath.Dir(dir), "bin") + ":" + os.Getenv("PATH")
			for _, way := range ways {
				for _, c := range s.tests {
					t.Run(way.name+"/"+c.what, func(t *testing.T) {
						c.env = append(append([]string{path}, way.env...), c.env...)
						s.check(t, c, dir, way.name)
					})
				}
			}
		})
	}
}

func (s suite) check(t *testing.T, c check, dir, way string) {
	t.Helper()
	start := time.Now()
	tool := harness.Tool{Dir: filepath.Join(dir, c.dir), Env: c.env, Limit: 15 * time.Minute}
	out, ok := tool.Run(t, c.args...)
	passed := len(regexp.MustCompile(c.passed).FindAllString(out, -1))
	var wrong []string
	if c.bad != "" {
		wrong = regexp.MustCompile(c.bad).FindAllString(out, -1)
	}
	if !ok || passed != c.count || len(wrong) > 0 {
		t.Errorf("%q: success %v, %d of %d tests passed, %q\n%s", c.args, ok, passed, c.count, wrong,
			out[max(0, len(out)-6000):])
	}
	result(t, s.title, s.version, c.what+", "+way, fmt.Sprintf("%d tests", passed), time.Since(start))
}
