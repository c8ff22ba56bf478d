package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// HPCCFiles are what a run of HPCC needs of the folder in which it was built.
var HPCCFiles = []string{"hpcc", "_hpccinf.txt"}

// hpccTools are what building HPCC takes, and running it; scripts/deps apps installs them.
var hpccTools = []string{"make", "xz", "dpkg-source", "/usr/include/*/cblas.h"}

// BuiltHPCC is a folder with HPCC 1.5.0: that of the build, where make apps has built it, or of the cache, where it is built now if it is not there yet: the standard
// ABI makes it fit every build. The test is skipped where its source, or what it is built with, cannot be had.
func BuiltHPCC(t testing.TB) string {
	t.Helper()
	Need(t, "apps", hpccTools...)
	kept := keptHPCC(t)
	if err := os.MkdirAll(filepath.Dir(kept), 0o777); err != nil {
		t.Fatal(err)
	}
	lock, err := os.OpenFile(kept+".lock", os.O_RDWR|os.O_CREATE, 0o666) // tests of several packages want it at the same time
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(Build(t), "apps", hpccFolder), kept} {
		if exists(filepath.Join(dir, "hpcc")) {
			return dir
		}
	}
	tarball, err := source(t, "hpcc", hpccVersion)
	if err != nil {
		t.Skipf("HPCC is not built, and its source cannot be had: %v", err)
	}
	work, err := os.MkdirTemp(filepath.Dir(kept), "new-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(work)
	KeepHPCC(t, buildHPCC(t, tarball, work))
	return kept
}

const hpccFolder, hpccVersion = "hpcc-1.5.0", "1.5.0-3"

// BuildHPCC fetches the source of HPCC and builds it within dir, with our mpicc; it returns the program's folder.
func BuildHPCC(t testing.TB, dir string) string {
	t.Helper()
	return buildHPCC(t, Source(t, "hpcc", hpccVersion), dir)
}

func buildHPCC(t testing.TB, tarball, dir string) string {
	t.Helper()
	Unpack(t, tarball, dir, hpccFolder)
	dir = filepath.Join(dir, hpccFolder)
	machine, err := os.ReadFile(filepath.Join(Root(), "tests/apps/testdata/Make.spx"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "hpl/Make.spx"), machine, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	MakeHPCC(t, dir)
	return dir
}

// MakeHPCC compiles in a folder of BuildHPCC what has changed there.
func MakeHPCC(t testing.TB, dir string) {
	t.Helper()
	Tool{Dir: dir}.Must(t, "make", "-j2", "arch=spx")
}

func keptHPCC(t testing.TB) string { return filepath.Join(Cache(t), "apps", hpccFolder) }

// KeepHPCC puts the program that was built in dir into the cache.
func KeepHPCC(t testing.TB, dir string) {
	t.Helper()
	to := keptHPCC(t)
	if err := os.MkdirAll(to, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range HPCCFiles {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		fresh := filepath.Join(to, fmt.Sprintf("%s.%d", name, os.Getpid())) // another test may be running the one that is there
		if err := os.WriteFile(fresh, data, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(fresh, filepath.Join(to, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// SmallHPCC is the order of the matrix for tests of launchers, where RandomAccess's many small messages cross a network.
const SmallHPCC = 500

// HPCC runs the whole of HPCC, built in dir, with a matrix of order n, on a grid of p x q ranks by a command, and reads its verdicts; of RandomAccess's table at most the fraction lost may
// be wrong.
func HPCC(t testing.TB, dir string, n, p, q int, lost float64, command func(program string) Command) {
	t.Helper()
	work := SharedDir(t)
	input, err := os.ReadFile(filepath.Join(dir, "_hpccinf.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "hpccinf.txt"), []byte(hpccInput(t, string(input), n, p, q)), 0o666); err != nil {
		t.Fatal(err)
	}
	c := command(filepath.Join(dir, "hpcc"))
	c.Dir, c.Env, c.Limit = work, append(c.Env, "OPENBLAS_NUM_THREADS=1"), 8*time.Minute
	o := Run(t, c)
	if o.Status != 0 || o.Late {
		t.Fatalf("exit status %d, late %v\n%s", o.Status, o.Late, o.Text())
	}
	out, err := os.ReadFile(filepath.Join(work, "hpccoutf.txt"))
	if err != nil {
		t.Fatal(err)
	}
	checkHPCC(t, string(out), p*q, lost)
}

// hpccInput sets the order of the matrix and the process grid.
func hpccInput(t testing.TB, s string, n, p, q int) string {
	for key, v := range map[string]int{"Ns": n, "Ps": p, "Qs": q} {
		re := regexp.MustCompile(`(?m)^\d+(\s+` + key + `)$`)
		if !re.MatchString(s) {
			t.Fatalf("the input file has no line %s", key)
		}
		s = re.ReplaceAllString(s, strconv.Itoa(v)+"$1")
	}
	return s
}

// checkHPCC reads HPCC's own verdicts.
func checkHPCC(t testing.TB, out string, ranks int, lost float64) {
	t.Helper()
	for _, want := range []string{"Success=1", fmt.Sprintf("CommWorldProcs=%d\n", ranks), "End of HPC Challenge tests", "1 tests completed and passed residual checks",
		"0 tests completed and failed residual checks", "5 tests completed and passed"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output has no %q", want)
		}
	}
	passed := strings.Count(strings.ToUpper(out), "PASSED")
	if passed < 10 {
		t.Errorf("only %d checks say PASSED", passed)
	}
	if bad := regexp.MustCompile(`(?m)^.*(FAILED|Failed|\(failed\)|Node\(s\) with error [1-9]).*$`).FindString(out); bad != "" {
		t.Errorf("the output says %q", bad)
	}
	figures := map[string]float64{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)=([-+.\deE]+)$`).FindAllStringSubmatch(out, -1) {
		figures[m[1]], _ = strconv.ParseFloat(m[2], 64)
	}
	for key, most := range map[string]float64{"MPIRandomAccess_ErrorsFraction": lost, "MPIRandomAccess_LCG_ErrorsFraction": lost, "PTRANS_residual": 0} {
		if v, ok := figures[key]; !ok || v > most {
			t.Errorf("%s = %v (found %v), want at most %v", key, v, ok, most)
		}
	}
	for _, key := range []string{"MPIFFT_maxErr", "HPL_RnormI"} {
		if v, ok := figures[key]; !ok || v > 1e-9 {
			t.Errorf("%s = %v (found %v), want less than 1e-9", key, v, ok)
		}
	}
	t.Logf("HPL %.4g Tflop/s, PTRANS %.3g GB/s, random access %.3g GUP/s, FFT %.3g Gflop/s, ring latency %.3g us, %d checks passed", figures["HPL_Tflops"],
		figures["PTRANS_GBs"], figures["MPIRandomAccess_GUPs"], figures["MPIFFT_Gflops"], figures["RandomlyOrderedRingLatency_usec"], passed)
	if t.Failed() {
		t.Log(tail(out))
	}
}
