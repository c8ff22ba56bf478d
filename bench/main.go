// Bench measures libspx beside MPICH and Open MPI: one binary (bench/programs/rows.c, compiled by our mpicc), run by the three in turn,
// round after round, in an order that a seeded source shuffles, together with the machine's bare limits
// (programs/limits.c). Ratios are taken within a round and their median gets a bootstrap interval. A round in which the hypervisor or
// foreign processes took processor time is thrown away whole, and counted. Results go to docs/bench: JSON, a table, plots.
//
//	make bench                             15 rounds of 2, 4 and 16 ranks
//	go run ./bench -rounds 3 -ranks 2 -rows "pingpong barrier" -foreign 1      a quick look
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type options struct {
	rounds          int
	ranks           []int
	rows            []string
	batchMS         float64
	stolen, foreign float64 // largest accepted shares of processor time
	limit           time.Duration
	patience        time.Duration // how long to try for undisturbed rounds, for each number of ranks
	out             string
	impls           []string
}

// bench is one measurement in progress.
type bench struct {
	options
	root, build   string
	rows, limits  string // programs
	result        *result
	reasonsToDrop map[string]int
}

func main() {
	var o options
	ranks := flag.String("ranks", "2 4 16", "numbers of ranks")
	rows := flag.String("rows", "", "rows to measure (default: all of rows.c)")
	impls := flag.String("impls", "spx mpich openmpi", "implementations")
	flag.IntVar(&o.rounds, "rounds", 15, "rounds that count")
	flag.Float64Var(&o.batchMS, "batch", 10, "milliseconds of one batch")
	flag.Float64Var(&o.stolen, "stolen", 0.005, "a run with a larger share of stolen time spoils its round")
	flag.Float64Var(&o.foreign, "foreign", 0.04, "a run with a larger share of foreign load spoils its round")
	flag.DurationVar(&o.limit, "limit", 5*time.Minute, "time limit of one run")
	flag.DurationVar(&o.patience, "patience", 30*time.Minute, "how long to try for undisturbed rounds with each number of ranks; then as many as there are count")
	flag.StringVar(&o.out, "out", "docs/bench", "folder of the results")
	flag.Parse()
	for _, s := range strings.Fields(*ranks) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 2 {
			fmt.Fprintf(os.Stderr, "bench: -ranks %q: want numbers from 2\n", *ranks)
			os.Exit(2)
		}
		o.ranks = append(o.ranks, n)
	}
	o.options(*rows, *impls)
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (o *options) options(rows, impls string) {
	o.impls = strings.Fields(impls)
	o.rows = strings.Fields(rows)
}

func run(o options) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	build := os.Getenv("SPX_BUILD")
	if build == "" {
		build = filepath.Join(root, "build")
	}
	b := &bench{options: o, root: root, build: build, reasonsToDrop: map[string]int{}}
	if err := b.prepare(); err != nil {
		return err
	}
	for _, n := range o.ranks {
		if err := b.measure(n); err != nil {
			return err
		}
	}
	return b.result.write(o.out)
}

// prepare compiles the programs and asks which implementations there are.
func (b *bench) prepare() error {
	dir := filepath.Join(b.build, "bench")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	b.rows, b.limits = filepath.Join(dir, "rows"), filepath.Join(dir, "limits")
	for _, c := range [][]string{
		{filepath.Join(b.build, "bin/mpicc"), "-O2", "-o", b.rows, filepath.Join(b.root, "bench/programs/rows.c")},
		{"gcc", "-O2", "-o", b.limits, filepath.Join(b.root, "bench/programs/limits.c")},
	} {
		if out, err := exec.Command(c[0], c[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %v\n%s", strings.Join(c, " "), err, out)
		}
	}
	peers := filepath.Join(b.root, "scripts/peers")
	if out, err := exec.Command(peers, "check").CombinedOutput(); err != nil {
		fmt.Printf("without the peers: %s", out)
		b.impls = slices.DeleteFunc(b.impls, func(i string) bool { return i != "spx" })
	}
	versions, _ := exec.Command(peers, "versions").Output()
	b.result = &result{
		Date: time.Now().UTC().Format("2006-01-02 15:04"), Machine: machine(), Peers: strings.Fields(strings.ReplaceAll(string(versions), "\n", ", ")),
		Commit: commit(b.root), Impls: b.impls, Rounds: b.rounds, Stolen: b.stolen, Foreign: b.foreign, Dropped: b.reasonsToDrop,
	}
	return nil
}

// enough rounds for an interval of their median.
const enough = 5

// measure runs rounds with n ranks until enough count, or patience ends.
func (b *bench) measure(n int) error {
	order := rand.New(rand.NewPCG(7, uint64(n)))
	end := time.Now().Add(b.patience)
	counted := 0
	for counted < b.rounds && time.Now().Before(end) {
		if err := b.awaitQuiet(end); err != nil {
			return err
		}
		round, why, err := b.round(n, order)
		if err != nil {
			return err
		}
		if why != "" {
			b.reasonsToDrop[why]++
			continue
		}
		counted++
		b.result.add(n, round)
		fmt.Printf("%d ranks: round %d of %d\n", n, counted, b.rounds)
	}
	if counted < min(enough, b.rounds) {
		return fmt.Errorf("%d ranks: only %d of %d rounds were undisturbed in %v (thrown away: %v): the machine is busy; -foreign and -stolen set the bounds",
			n, counted, b.rounds, b.patience, b.reasonsToDrop)
	}
	return nil
}

// awaitQuiet waits until others leave the processors alone, looking at samples of half a second.
func (b *bench) awaitQuiet(end time.Time) error {
	for time.Now().Before(end) {
		before, err := readLoad()
		if err != nil {
			return err
		}
		time.Sleep(500 * time.Millisecond)
		after, err := readLoad()
		if err != nil {
			return err
		}
		if d := after.since(before); d.stolenShare() <= b.stolen && d.foreignShare(0) <= b.foreign {
			return nil
		}
	}
	return nil
}

// round runs every implementation once, in a shuffled order, and the limits with 2 ranks. why says what spoilt it.
func (b *bench) round(n int, order *rand.Rand) (rows map[string]map[string]float64, why string, err error) {
	who := slices.Clone(b.impls)
	if n == 2 {
		who = append(who, "bare")
	}
	order.Shuffle(len(who), func(i, j int) { who[i], who[j] = who[j], who[i] })
	rows = map[string]map[string]float64{}
	for _, impl := range who {
		args := []string{filepath.Join(b.root, "scripts/peers"), "run", impl, "-n", strconv.Itoa(n), b.rows, "-t", fmt.Sprint(b.batchMS)}
		args = append(args, b.options.rows...)
		if impl == "bare" {
			args = []string{b.limits}
		}
		out, share, err := b.watched(args)
		if err != nil {
			return nil, "", fmt.Errorf("%s with %d ranks: %w", impl, n, err)
		}
		if share.stolen > b.stolen {
			return nil, "stolen time", nil
		}
		if share.foreign > b.foreign {
			return nil, "foreign load", nil
		}
		if rows[impl], err = parseRows(out); err != nil {
			return nil, "", fmt.Errorf("%s with %d ranks: %w", impl, n, err)
		}
	}
	return rows, why, nil
}

type shares struct{ stolen, foreign float64 }

// watched runs a command and says what share of the machine others took meanwhile.
func (b *bench) watched(args []string) (string, shares, error) {
	ctx, cancel := context.WithTimeout(context.Background(), b.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = filepath.Dir(b.rows)
	cmd.Env = append(os.Environ(), "SPX_BUILD="+b.build)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	before, err := readLoad()
	if err != nil {
		return "", shares{}, err
	}
	if err := cmd.Run(); err != nil {
		return "", shares{}, fmt.Errorf("%s: %w\n%s%s", strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	after, err := readLoad()
	if err != nil {
		return "", shares{}, err
	}
	d := after.since(before)
	own := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() * 100
	return stdout.String(), shares{d.stolenShare(), d.foreignShare(own)}, nil
}

// parseRows reads lines "row bytes microseconds".
func parseRows(text string) (map[string]float64, error) {
	rows := map[string]float64{}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		f := strings.Fields(line)
		if len(f) != 3 {
			return nil, fmt.Errorf("not a row: %q", line)
		}
		us, err := strconv.ParseFloat(f[2], 64)
		if err != nil {
			return nil, fmt.Errorf("not a row: %q", line)
		}
		rows[f[0]+" "+f[1]] = us
	}
	return rows, nil
}

func machine() string {
	model := "unknown processor"
	text, _ := os.ReadFile("/proc/cpuinfo")
	for _, line := range strings.Split(string(text), "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%d x %s, Linux %s", runtime.NumCPU(), model, strings.TrimSpace(string(kernel)))
}

func commit(root string) string {
	out, err := exec.Command("git", "-C", root, "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
