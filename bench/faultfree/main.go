// Command faultfree measures what it costs that processes may die while none does: the latency of short messages with the library as it is and with one that
// is compiled without the checks for failures (SPX_FAILED in capi/dataplane/base/spx.h), in turn. It says the median of the ratio, pair by pair, with a 95 % interval.
//
//	go run ./bench/faultfree
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 30, "pairs of measurements")
	budget := flag.Duration("for", 0, "begin no pair after this time; 0: until all are done")
	most := flag.Float64("most", 1.05, "the interval has to end below this ratio")
	prepareOnly := flag.Bool("prepare", false, "only build what is missing")
	flag.Parse()
	if err := run(*rounds, *budget, *most, *prepareOnly); err != nil {
		fmt.Fprintln(os.Stderr, "bench/faultfree:", err)
		os.Exit(1)
	}
}

func run(rounds int, budget time.Duration, most float64, prepareOnly bool) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	build := os.Getenv("SPX_BUILD")
	if build == "" {
		build = filepath.Join(root, "build")
	}
	program, without := filepath.Join(build, "bench/pingpong"), filepath.Join(build, "without-failures")
	library := filepath.Join(without, "lib/libspx.so")
	for _, words := range [][]string{
		{"make", "-s", "-C", root, "BUILD=" + without, "CFLAGS=-O3 -g -DSPX_WITHOUT_FAILURES", library},
		{"mkdir", "-p", filepath.Dir(program)},
		{filepath.Join(build, "bin/mpicc"), "-O2", "-o", program, filepath.Join(root, "bench/faultfree/programs/pingpong.c")},
	} {
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", words, err, out)
		}
	}
	if prepareOnly {
		return nil
	}
	libraries := [2]string{filepath.Join(build, "lib"), filepath.Dir(library)}
	var ratios []float64
	for start := time.Now(); len(ratios) < rounds && (budget == 0 || time.Since(start) < budget); {
		var ns [2]float64
		for k := range ns {
			which := (k + len(ratios)) % 2 // the first one in turn
			if ns[which], err = latency(build, program, libraries[which]); err != nil {
				return err
			}
		}
		ratios = append(ratios, ns[0]/ns[1])
		fmt.Printf("with %.1f ns, without %.1f ns: %.4f\n", ns[0], ns[1], ns[0]/ns[1])
	}
	median, low, high := interval(ratios)
	fmt.Printf("ratio of %d pairs: median %.4f, 95 %% interval %.4f to %.4f\n", len(ratios), median, low, high)
	if !(high < most) {
		return fmt.Errorf("the interval does not end below %g", most)
	}
	return nil
}

// latency is one measurement with the library of a folder.
func latency(build, program, library string) (ns float64, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(build, "bin/spxrun"), "-n", "2", program)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+library)
	cmd.WaitDelay = 5 * time.Second
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("%v: %w\n%s", cmd.Args, err, errs.String())
	}
	if _, err := fmt.Sscanf(string(out), "%f ns", &ns); err != nil {
		return 0, fmt.Errorf("%v has printed %q", cmd.Args, out)
	}
	return ns, nil
}

// interval is the median of the values with a 95 % interval that presumes nothing of their distribution: between the values of such ranks that the median
// lies outside less often than one in twenty times (binomial distribution). With less than 6 values it is all that there is.
func interval(values []float64) (median, low, high float64) {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	k, below := 0, 0.0 // below: chance that at most k values lie below the median
	for term := pow2(-n); k < n/2; k++ {
		if below += term; below > 0.025 {
			break
		}
		term *= float64(n-k) / float64(k+1)
	}
	k = max(k-1, 0)
	return (v[(n-1)/2] + v[n/2]) / 2, v[k], v[n-1-k]
}

func pow2(n int) float64 {
	x := 1.0
	for ; n < 0; n++ {
		x /= 2
	}
	return x
}
