// Command recovery measures how long it takes from the death of processes to the first barrier of the survivors (programs/recovery.c), under libspx and under Open MPI
// --with-ft ulfm, in turn; MPICH has no recovery. It writes a table and its figures into docs/bench. With -random it runs random schedules of deaths under libspx alone, and
// its status is 1 if one of them does not come to its end.
//
//	go run ./bench/recovery
//	go run ./bench/recovery -random 1000 -ranks "4 7 12 24"
//	go run ./bench/recovery -random 1000 -seed 201 -for 60s      in pieces: it says with which seed to go on
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"libspx/bench/machine"
)

var cases = []struct{ name, title string }{
	{"one", "one death"}, {"half", "half of them at once"}, {"most", "all but 4 at once"}, {"zero", "rank 0"}, {"two", "one, then another"},
	{"during", "one, and another while they shrink"},
}

// sample is one run.
type sample struct {
	Impl, Case string
	Ranks      int
	Ms         []float64 // of each recovery; none: it did not come to its end
	Why        string    `json:",omitempty"`
	Machine    string    `json:",omitempty"`
}

type options struct {
	impls, cases, ranks, out string
	rounds, random, seed     int
	limit, budget            time.Duration
	render                   bool
}

func main() {
	var o options
	flag.StringVar(&o.impls, "impls", "spx openmpi", "implementations")
	flag.StringVar(&o.cases, "cases", "one half most zero two during", "who dies")
	flag.StringVar(&o.ranks, "ranks", "4 16 24 64 256", "numbers of ranks")
	flag.StringVar(&o.out, "out", "docs/bench", "folder of recovery.json and recovery.md, where earlier runs are kept; empty: none")
	flag.IntVar(&o.rounds, "rounds", 5, "runs of each case that there shall be")
	flag.IntVar(&o.random, "random", 0, "random schedules under libspx, and nothing else")
	flag.IntVar(&o.seed, "seed", 1, "of the first random schedule")
	flag.DurationVar(&o.limit, "limit", 30*time.Second, "a run that takes longer hangs")
	flag.DurationVar(&o.budget, "for", 0, "begin no run after this time; another call goes on. 0: until all are done")
	flag.BoolVar(&o.render, "render", false, "only write the table again")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/recovery:", err)
		os.Exit(1)
	}
}

func (o *options) run() error {
	ranks, err := numbers(o.ranks)
	if err != nil {
		return err
	}
	samples, err := o.load()
	if err != nil {
		return err
	}
	if !o.render {
		r, err := prepare(strings.Fields(o.impls), o.random == 0)
		if err != nil {
			return err
		}
		defer r.clean()
		r.limit = o.limit
		if o.random > 0 {
			return r.schedules(o.random, o.seed, ranks, o.budget)
		}
		if samples, err = o.measure(r, ranks, samples); err != nil {
			return err
		}
	}
	return o.save(samples)
}

func numbers(text string) ([]int, error) {
	var out []int
	for _, f := range strings.Fields(text) {
		n, err := strconv.Atoi(f)
		if err != nil || n < 3 {
			return nil, fmt.Errorf("-ranks: %q is not a number of ranks, 3 or more", f)
		}
		out = append(out, n)
	}
	return out, nil
}

// measure adds what is missing, the implementations in turn.
func (o *options) measure(r *runner, ranks []int, samples []sample) ([]sample, error) {
	began := time.Now()
	done := func(impl, which string, n int) int {
		count := 0
		for _, s := range samples {
			if s.Impl == impl && s.Case == which && s.Ranks == n {
				count++
			}
		}
		return count
	}
	for round := range o.rounds {
		for _, n := range ranks {
			for _, which := range strings.Fields(o.cases) {
				if which == "most" && n <= 4 {
					continue
				}
				impls := slices.Clone(r.impls)
				if round%2 == 1 {
					slices.Reverse(impls)
				}
				for _, impl := range impls {
					if done(impl, which, n) > round {
						continue
					}
					if o.budget > 0 && time.Since(began) > o.budget {
						return samples, o.save(samples)
					}
					s := r.one(impl, n, which)
					fmt.Printf("%-8s %3d ranks %-7s %v %s\n", impl, n, which, s.Ms, s.Why)
					s.Machine = machine.Name()
					samples = append(samples, s)
				}
			}
		}
	}
	return samples, nil
}

func (o *options) load() ([]sample, error) {
	var samples []sample
	if o.out == "" {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(o.out, "recovery.json"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return samples, json.Unmarshal(text, &samples)
}

func (o *options) save(samples []sample) error {
	if o.out == "" {
		fmt.Print(table(samples))
		return nil
	}
	var b strings.Builder
	b.WriteString("[\n")
	for i, s := range samples {
		line, err := json.Marshal(s)
		if err != nil {
			return err
		}
		b.Write(line)
		if i < len(samples)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	if err := os.WriteFile(filepath.Join(o.out, "recovery.json"), []byte(b.String()), 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, "recovery.md"), []byte(table(samples)), 0o666)
}
