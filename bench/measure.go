package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"libspx/bench/bounded"
	"libspx/bench/machine"
)

// bench is one measurement in progress.
type bench struct {
	options
	root, build, dir           string // dir: of the programs and their files
	rowsProgram, limitsProgram string
	socketsProgram             string
	result                     *result
	began                      time.Time
	longest                    map[string]time.Duration      // of a round, by set
	pairings                   map[string]*pairing           // by set
	bare                       map[string]map[string]float64 // limits of the last undisturbed run, by set in pairs
}

// prepare compiles the programs, asks which implementations there are, and takes up earlier results.
func (b *bench) prepare() error {
	b.dir = filepath.Join(b.build, "bench")
	b.longest, b.pairings, b.bare = map[string]time.Duration{}, map[string]*pairing{}, map[string]map[string]float64{}
	if err := os.MkdirAll(b.dir, 0o777); err != nil {
		return err
	}
	b.rowsProgram, b.limitsProgram, b.socketsProgram = filepath.Join(b.dir, "rows"), filepath.Join(b.dir, "limits"), filepath.Join(b.dir, "sockets")
	if err := b.compile(); err != nil {
		return err
	}
	peers := filepath.Join(b.root, "scripts/peers")
	if out, err := exec.Command(peers, "check").CombinedOutput(); err != nil {
		fmt.Printf("without the peers: %s", out)
		b.impls = slices.DeleteFunc(b.impls, func(i string) bool { return i == "mpich" || i == "openmpi" })
	}
	versions, _ := exec.Command(peers, "versions").Output()
	b.result = &result{
		Machine: machine.Name(), Processors: runtime.NumCPU(), Peers: strings.ReplaceAll(strings.TrimSpace(string(versions)), "\n", ", "),
		Impls: b.impls, Stolen: b.stolen, Foreign: b.foreign, TCP: b.tcp, Dropped: map[string]int{},
	}
	if b.add && b.out != "" {
		old, err := loadResult(b.out)
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		if err == nil {
			b.result.Rounds, b.result.Dropped = old.Rounds, old.Dropped
		}
	}
	if b.hpcc {
		return b.prepareHPCC()
	}
	return nil
}

// compile builds what is older than its sources.
func (b *bench) compile() error {
	var sources []string
	for _, name := range []string{"rows", "p2p", "types", "coll", "rma", "file", "apps", "threads", "near"} {
		sources = append(sources, filepath.Join(b.root, "bench/programs", name+".c"))
	}
	bare, sockets := filepath.Join(b.root, "bench/programs/limits.c"), filepath.Join(b.root, "bench/programs/sockets.c")
	for _, c := range []struct {
		program string
		sources []string
		command []string
	}{
		{b.rowsProgram, sources, append([]string{filepath.Join(b.build, "bin/mpicc"), "-O2", "-pthread", "-o", b.rowsProgram, "-lm"}, sources...)},
		{b.limitsProgram, []string{bare}, []string{"gcc", "-O2", "-o", b.limitsProgram, bare}},
		{b.socketsProgram, []string{sockets}, []string{"gcc", "-O2", "-o", b.socketsProgram, sockets}},
	} {
		if !older(c.program, append(c.sources, filepath.Join(b.root, "bench/programs/rows.h"))) {
			continue
		}
		if out, err := exec.Command(c.command[0], append(c.command[1:], "-lm")...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %v\n%s", strings.Join(c.command, " "), err, out)
		}
	}
	return nil
}

// older tells whether a file is missing or older than one of the others.
func older(file string, than []string) bool {
	at, err := os.Stat(file)
	return err != nil || slices.ContainsFunc(than, func(name string) bool {
		s, err := os.Stat(name)
		return err != nil || s.ModTime().After(at.ModTime())
	})
}

// enough rounds for an interval of their median.
const enough = 5

// measure runs rounds of a set until enough count, or patience ends. done: no time was missing.
func (b *bench) measure(s set) (done bool, err error) {
	order := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(s.ranks)))
	want := b.rounds
	if s.program == "hpcc" {
		want = min(want, enough)
	}
	end := time.Now().Add(b.patience)
	failures := 0
	for b.result.counted(s) < want && time.Now().Before(end) {
		if b.budget > 0 && time.Since(b.began)+b.estimate(s) > b.budget {
			return false, nil
		}
		if err := b.awaitQuiet(end); err != nil {
			return false, err
		}
		before := time.Now()
		us, why, err := b.round(s, order, end)
		b.longest[s.key] = max(b.longest[s.key], time.Since(before))
		if err != nil {
			if failures++; failures > 3 {
				return false, err
			}
			fmt.Fprintln(os.Stderr, "bench: this round does not count:", err)
			why = "a run failed"
		}
		if us == nil && why == "" {
			return false, nil
		}
		if why != "" {
			b.result.Dropped[why]++
			fmt.Printf("%s: round thrown away after %v: %s\n", s.key, b.longest[s.key].Round(time.Second), why)
			continue
		}
		b.result.Rounds = append(b.result.Rounds, round{Set: s.key, Ranks: s.ranks, At: time.Now().UTC().Format("2006-01-02 15:04"), Commit: commit(b.root), US: us})
		fmt.Printf("%s: round %d of %d\n", s.key, b.result.counted(s), want)
		if b.out != "" {
			if err := b.result.save(b.out); err != nil {
				return false, err
			}
		}
	}
	if n := b.result.counted(s); n < min(enough, want) {
		return false, fmt.Errorf("%s: only %d of %d rounds were undisturbed in %v (thrown away: %v): the machine is busy; -foreign and -stolen set the bounds",
			s.key, n, want, b.patience, b.result.Dropped)
	}
	return true, nil
}

// estimate is how long a round of the set will take.
func (b *bench) estimate(s set) time.Duration {
	if t := b.longest[s.key]; t > 0 {
		return t + t/4
	}
	if s.program == "hpcc" {
		return time.Minute
	}
	each := time.Duration(float64(len(s.rows))*b.batchMS*8)*time.Millisecond + 2*time.Second
	return each * time.Duration(len(b.impls))
}

// awaitQuiet waits until others leave the processors alone, looking at short samples; not for long: what the round itself sees counts.
func (b *bench) awaitQuiet(end time.Time) error {
	if most := time.Now().Add(10 * time.Second); most.Before(end) {
		end = most
	}
	for {
		before, err := readLoad()
		if err != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
		after, err := readLoad()
		if err != nil {
			return err
		}
		d := after.since(before)
		if d.stolenShare() <= max(b.stolen, 0.03) && d.foreignShare(0) <= max(b.foreign, 0.05) {
			return nil
		}
		if time.Now().After(end) {
			fmt.Printf("the machine is not quiet: others take %.0f %% of the processors, the hypervisor %.0f %%\n", 100*d.foreignShare(0), 100*d.stolenShare())
			return nil
		}
	}
}

// implsOf are the implementations that a set is run with.
func (b *bench) implsOf(s set) []string {
	if s.impls != nil {
		return slices.Clone(s.impls)
	}
	return slices.Clone(b.impls)
}

// round runs every implementation and the limits once, in a shuffled order. why says what spoilt it; without figures nor that, time has run out.
func (b *bench) round(s set, order *rand.Rand, end time.Time) (us map[string]map[string]float64, why string, err error) {
	if s.inPairs() {
		return b.pairedRound(s, order, end)
	}
	who := b.implsOf(s)
	if s.program != "hpcc" {
		who = append(who, "bare")
	}
	order.Shuffle(len(who), func(i, j int) { who[i], who[j] = who[j], who[i] })
	us = map[string]map[string]float64{}
	for _, impl := range who {
		before := time.Now()
		out, share, err := b.runOne(s, impl)
		if err != nil {
			return nil, "", fmt.Errorf("%s, %s: %w", s.key, impl, err)
		}
		fmt.Printf("%s: %s %.1fs\n", s.key, impl, time.Since(before).Seconds())
		if why := b.spoilt(share); why != "" {
			fmt.Printf("%s, %s: stolen %.1f %%, foreign %.1f %%\n", s.key, impl, 100*share.stolen, 100*share.foreign)
			return nil, why, nil
		}
		values, err := parseRows(out)
		if err != nil {
			return nil, "", fmt.Errorf("%s, %s: %w", s.key, impl, err)
		}
		for row, value := range values {
			if us[row] == nil {
				us[row] = map[string]float64{}
			}
			us[row][impl] = value
		}
	}
	for _, row := range s.rows {
		if len(us[row]) == 0 {
			return nil, "", fmt.Errorf("%s: no figure for %q", s.key, row)
		}
	}
	return us, "", nil
}

// runOne runs an implementation, or the bare limits, and returns its lines.
func (b *bench) runOne(s set, impl string) (string, shares, error) {
	if impl == "bare" && b.tcp {
		return b.runSockets(s)
	}
	if impl == "bare" {
		args := []string{b.limitsProgram, "-n", strconv.Itoa(s.ranks), "-f", b.dir}
		if names := limitNames(s.rows, s.ranks, runtime.NumCPU()); s.key != "2" || b.options.rows.String() != "" {
			if len(names) == 0 {
				return "", shares{}, nil
			}
			if s.program == "curve" {
				for _, l := range copyLimits(s.ranks, runtime.NumCPU()) {
					names = append(names, l.name)
				}
			}
			args = append(args, names...)
		}
		return b.watched(args, nil)
	}
	env := []string{"SPX_BUILD=" + b.build}
	if impl == "base" {
		env[0] = "SPX_BUILD=" + b.base
	}
	library := impl
	if v, ok := variants[impl]; ok {
		env, library = append(env, v...), "spx"
	}
	if strings.Contains(impl, "=") {
		env, library = append(env, strings.Split(impl, ",")...), "spx"
	}
	if impl == "base" {
		library = "spx"
	}
	options, stop, err := b.observed(impl)
	if err != nil {
		return "", shares{}, err
	}
	if options != "" {
		defer stop()
		library = "spx"
	}
	args := []string{filepath.Join(b.root, "scripts/peers"), "run", library}
	if options != "" {
		args = append(args, "-o", options)
	}
	if b.tcp {
		args = append(args, onlyTCP[library]...)
	}
	if s.program == "hpcc" {
		return b.runHPCC(append(args, "-e", "OPENBLAS_NUM_THREADS=1", "-L", filepath.Join(b.dir, "hpcc/lib"), "-n", strconv.Itoa(s.ranks)), env, s.ranks)
	}
	args = append(args, "-n", strconv.Itoa(s.ranks))
	args = append(args, b.rowsProgram, "-t", fmt.Sprint(b.batchMS), "-s", s.program, "-f", b.dir)
	if s.inPairs() {
		args = append(args, "-d")
	}
	return b.watched(append(args, expression(s.rows)), env)
}

// onlyTCP makes every pair of ranks of an implementation talk over TCP.
var onlyTCP = map[string][]string{
	"spx":     {"-e", "SPX_TRANSPORTS=tcp"},
	"mpich":   {"-e", "MPIR_CVAR_NOLOCAL=1", "-e", "UCX_TLS=tcp,self"},
	"openmpi": {"-o", "--mca pml ob1 --mca btl tcp,self"},
}

// runSockets runs what two processes do with sockets alone, if the set has rows that are compared with it.
func (b *bench) runSockets(s set) (string, shares, error) {
	args := []string{b.socketsProgram}
	for _, row := range s.rows {
		if l, ok := socketLimit(row, s.ranks); ok {
			if name, _ := splitRow(l.name); !slices.Contains(args, name) {
				args = append(args, name)
			}
		}
	}
	if len(args) == 1 {
		return "", shares{}, nil
	}
	return b.watched(args, nil)
}

// expression is a regular expression for exactly these rows.
func expression(rows []string) string {
	var quoted []string
	for _, r := range rows {
		quoted = append(quoted, regexp.QuoteMeta(r))
	}
	return "^(" + strings.Join(quoted, "|") + ")$"
}

// spoilt says which bound a run's disturbance is beyond; "" for none.
func (b *bench) spoilt(share shares) string {
	switch {
	case share.stolen > b.stolen:
		return "stolen time"
	case share.foreign > b.foreign:
		return "foreign load"
	}
	return ""
}

type shares struct{ stolen, foreign float64 }

// watched runs a command and says what share of the machine others took meanwhile.
func (b *bench) watched(args, env []string) (string, shares, error) {
	ctx, cancel := context.WithTimeout(context.Background(), b.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bounded.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	before, err := readLoad()
	if err != nil {
		return "", shares{}, err
	}
	if err := cmd.Run(); err != nil {
		return "", shares{}, fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, last(stderr.String(), 2000))
	}
	after, err := readLoad()
	if err != nil {
		return "", shares{}, err
	}
	d := after.since(before)
	own := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() * 100
	return stdout.String(), shares{d.stolenShare(), d.foreignShare(own)}, nil
}

func last(s string, n int) string { return s[max(0, len(s)-n):] }

// parseRows reads lines "row bytes microseconds".
func parseRows(text string) (map[string]float64, error) {
	rows := map[string]float64{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
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

// commit names what is measured: "-dirty" when files differ from it, other than those that measuring itself writes.
func commit(root string) string {
	out, err := exec.Command("git", "-C", root, "describe", "--always").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(out))
	if exec.Command("git", "-C", root, "diff", "--quiet", "HEAD", "--", ".", ":(exclude)docs/bench").Run() != nil {
		name += "-dirty"
	}
	return name
}
