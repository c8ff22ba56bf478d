// Command cost measures what it costs to look at a program: with --trace, --profile, --metrics and SPX_CHECK=1, beside the same program without them. bench/ measures, in
// rounds in which all five run in a shuffled order; here are the rows, the table and the plots. The rounds are kept in docs/bench/cost.json, and another call goes on.
//
//	go run ./bench/cost
//	go run ./bench/cost -for 60s
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

type options struct {
	ranks, rows, out string
	rounds           int
	budget           time.Duration
	batch            float64
	foreign, stolen  float64
	render           bool
}

func main() {
	var o options
	flag.StringVar(&o.ranks, "ranks", "2 4", "numbers of ranks")
	flag.StringVar(&o.rows, "rows", "^(pingpong (8|65536)|window 8|pairs (8|65536)|allreduce 8|jacobi 0)$", "regular expression: rows, as bench/ names them")
	flag.StringVar(&o.out, "out", "docs/bench", "folder of cost.json, where earlier rounds are kept, cost.md and the plots")
	flag.IntVar(&o.rounds, "rounds", 15, "rounds that there shall be")
	flag.DurationVar(&o.budget, "for", 0, "begin no round that would not end within this time; another call goes on. 0: until all are done")
	flag.Float64Var(&o.batch, "batch", 8, "milliseconds of one batch")
	flag.Float64Var(&o.foreign, "foreign", 0.04, "a run with a larger share of foreign load spoils its round")
	flag.Float64Var(&o.stolen, "stolen", 0.005, "a run with a larger share of stolen time spoils its round")
	flag.BoolVar(&o.render, "render", false, "measure nothing: write the table and the plots again")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/cost:", err)
		os.Exit(1)
	}
}

func (o *options) run() error {
	kept := filepath.Join(o.out, "cost.json")
	var failed error
	if !o.render {
		failed = o.measure(kept)
	}
	r, err := load(kept)
	if err != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, r.write(o.out))
}

// measure has bench/ go on with the rounds of a file.
func (o *options) measure(kept string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "spx-cost-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	results, program := filepath.Join(dir, "results.json"), filepath.Join(dir, "bench")
	if err := copyFile(results, kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if out, err := exec.Command("go", "build", "-o", program, "./bench").CombinedOutput(); err != nil {
		return fmt.Errorf("go build ./bench: %w\n%s", err, out)
	}
	cmd := exec.Command(program, "-add", "-impls", "spx trace profile metrics check", "-ranks", o.ranks, "-rows", o.rows, "-rounds", fmt.Sprint(o.rounds), "-for", o.budget.String(),
		"-batch", fmt.Sprint(o.batch), "-foreign", fmt.Sprint(o.foreign), "-stolen", fmt.Sprint(o.stolen), "-out", dir)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	cmd.Stdout = os.Stderr // what is measured is said here, the table is in the file
	failed := cmd.Run()
	if err := os.MkdirAll(filepath.Dir(kept), 0o777); err != nil {
		return err
	}
	if err := copyFile(kept, results); err != nil {
		return errors.Join(failed, err)
	}
	return failed
}

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o666)
}
