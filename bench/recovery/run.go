package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"libspx/bench/bounded"
	"libspx/launch/process"
)

// runner runs the program, compiled for each implementation.
type runner struct {
	root, build, dir string
	impls            []string
	limit            time.Duration
}

func prepare(impls []string, peers bool) (*runner, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	r := &runner{root: root, build: os.Getenv("SPX_BUILD")}
	if r.build == "" {
		r.build = filepath.Join(root, "build")
	}
	if r.dir, err = os.MkdirTemp("", "spx-recovery"); err != nil {
		return nil, err
	}
	source := filepath.Join(root, "bench/recovery/programs/recovery.c")
	for _, impl := range impls {
		compiler := []string{filepath.Join(r.build, "bin/mpicc")}
		if impl != "spx" {
			if !peers {
				continue
			}
			if out, err := exec.Command(r.peers(), "check").CombinedOutput(); err != nil {
				fmt.Printf("without %s: %s", impl, out)
				continue
			}
			compiler = []string{r.peers(), "native", impl}
		}
		args := append(compiler[1:], "-O2", "-pthread", "-o", r.program(impl), source)
		if out, err := exec.Command(compiler[0], args...).CombinedOutput(); err != nil {
			r.clean()
			return nil, fmt.Errorf("%s: %w\n%s", compiler[0], err, out)
		}
		r.impls = append(r.impls, impl)
	}
	return r, nil
}

func (r *runner) peers() string              { return filepath.Join(r.root, "scripts/peers") }
func (r *runner) program(impl string) string { return filepath.Join(r.dir, "recovery-"+impl) }
func (r *runner) clean()                     { os.RemoveAll(r.dir) }

// one is one run of a case.
func (r *runner) one(impl string, ranks int, arguments ...string) sample {
	s := sample{Impl: impl, Case: arguments[0], Ranks: ranks}
	shared := filepath.Join(r.dir, "died")
	if err := os.WriteFile(shared, make([]byte, 4096), 0o666); err != nil {
		s.Why = err.Error()
		return s
	}
	args := []string{filepath.Join(r.build, "bin/spxrun"), "--with-ft", "-n", strconv.Itoa(ranks)}
	if impl != "spx" {
		args = []string{r.peers(), "run", impl, "-o", "--with-ft ulfm", "-n", strconv.Itoa(ranks)}
	}
	args = append(append(args, r.program(impl), shared), arguments...)
	out, why := r.watched(args)
	if why != "" {
		s.Why = why
		return s
	}
	for line := range strings.Lines(out) {
		var ms float64
		var left int
		if n, _ := fmt.Sscanf(line, "%f ms %d left", &ms, &left); n == 2 {
			s.Ms = append(s.Ms, ms)
		}
	}
	if len(s.Ms) == 0 {
		s.Why = "no recovery was told"
	}
	return s
}

// watched runs a command and ends all that it began when its time is over. why is empty when it ended well.
func (r *runner) watched(args []string) (output, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), r.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = r.dir
	cmd.Cancel = func() error {
		for _, pid := range append(process.Descendants(cmd.Process.Pid), cmd.Process.Pid) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
		return nil
	}
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bounded.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		return "", fmt.Sprintf("hangs after %v", r.limit)
	case err != nil && !strings.Contains(args[0], "peers"): // Open MPI's mpirun tells the deaths in its status
		return "", fmt.Sprintf("%v: %s", err, firstLine(stderr.String()))
	}
	return stdout.String(), ""
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// schedules runs random deaths under libspx, each at one of the numbers of ranks, and begins none after the budget, unless that is 0. A schedule is made again by its seed,
// but for the moment's chance.
func (r *runner) schedules(n, first int, ranks []int, budget time.Duration) error {
	failed, done := 0, 0
	for began := time.Now(); done < n && (budget == 0 || time.Since(began) < budget); done++ {
		seed, size := first+done, ranks[(first+done)%len(ranks)]
		if s := r.one("spx", size, "random", strconv.Itoa(seed)); s.Why != "" {
			failed++
			fmt.Printf("seed %d, %d ranks: %s\n", seed, size, s.Why)
		}
	}
	fmt.Printf("%d schedules, seeds %d to %d: %d did not come to their end\n", done, first, first+done-1, failed)
	if failed > 0 {
		return fmt.Errorf("%d of %d schedules did not come to their end", failed, done)
	}
	return nil
}
