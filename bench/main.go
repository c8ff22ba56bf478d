// Bench measures libspx beside MPICH and Open MPI: one binary (programs/rows.c and the files beside it, compiled by our mpicc), run by the
// three in turn, round after round, in an order that a seeded source shuffles, together with the machine's bare limits
// (programs/limits.c). Ratios are taken within a round and their median gets a bootstrap interval. A round in which the hypervisor or
// foreign processes took processor time is thrown away whole, and counted. Results go to docs/bench: JSON, a table, plots.
// README.md says how to measure a part.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

type options struct {
	rounds          int
	ranks           []int
	rows            *regexp.Regexp
	batchMS         float64
	stolen, foreign float64 // largest accepted shares of processor time
	limit           time.Duration
	patience        time.Duration // how long to try for undisturbed rounds, for each set
	budget          time.Duration // 0: none; no round begins that would not end within it
	out             string        // "": nowhere
	add             bool
	impls           []string
	base            string // build folder of another libspx
	hpcc            bool
	tcp             bool // over loopback TCP, without shared memory
}

func main() {
	o, render, err := parse()
	if err == nil {
		err = run(o, render)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func parse() (o options, render bool, err error) {
	ranks := flag.String("ranks", "2 4 8 16 32 64", "numbers of ranks")
	rows := flag.String("rows", "", "regular expression: rows whose \"name bytes\" matches, alone; then nothing is written, unless -out is given")
	impls := flag.String("impls", "spx mpich openmpi", "implementations; SETTING=VALUE[,SETTING=VALUE] is libspx with these settings; trace, profile, metrics, check: libspx with --trace and so on, SPX_CHECK=1")
	flag.StringVar(&o.base, "base", "", "build folder of another libspx, measured beside this one as \"base\"")
	flag.IntVar(&o.rounds, "rounds", 15, "rounds that count")
	flag.Float64Var(&o.batchMS, "batch", 8, "milliseconds of one batch")
	flag.Float64Var(&o.stolen, "stolen", 0.005, "a run with a larger share of stolen time spoils its round")
	flag.Float64Var(&o.foreign, "foreign", 0.04, "a run with a larger share of foreign load spoils its round")
	flag.DurationVar(&o.limit, "limit", 5*time.Minute, "time limit of one run")
	flag.DurationVar(&o.patience, "patience", 10*time.Minute, "how long to try for undisturbed rounds of each set; then as many as there are count")
	flag.DurationVar(&o.budget, "for", 0, "begin no round that would not end within this time (with -add: go on another time)")
	flag.BoolVar(&o.add, "add", false, "keep the rounds that -out has, and add what is missing")
	flag.StringVar(&o.out, "out", "docs/bench", "folder of the results")
	flag.BoolVar(&render, "render", false, "measure nothing: write the tables and plots again from results.json")
	flag.BoolVar(&o.tcp, "tcp", false, "all implementations over loopback TCP, beside sockets alone: the rows of messages and some collectives with 2 and 4 ranks, into docs/bench/tcp")
	flag.BoolVar(&o.hpcc, "hpcc", false, "also HPCC, with 2 to 64 ranks, in at most 5 rounds")
	flag.Parse()
	for _, s := range strings.Fields(*ranks) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 2 {
			return o, render, fmt.Errorf("-ranks %q: want numbers from 2", *ranks)
		}
		o.ranks = append(o.ranks, n)
	}
	if o.rows, err = regexp.Compile(*rows); err != nil {
		return o, render, fmt.Errorf("-rows: %w", err)
	}
	if o.base != "" {
		if o.base, err = filepath.Abs(o.base); err != nil {
			return o, render, err
		}
	}
	if o.impls, err = withBase(strings.Fields(*impls), o.base != ""); err != nil {
		return o, render, err
	}
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	written := given["out"]
	if o.tcp {
		if !written {
			o.out = "docs/bench/tcp"
		}
		if !given["ranks"] {
			o.ranks = []int{2, 4}
		}
	}
	if *rows != "" && !written {
		o.out = ""
	}
	return o, render, nil
}

// withBase puts "base" behind the first implementation if there is one, unless it is named already.
func withBase(impls []string, base bool) ([]string, error) {
	named := slices.Contains(impls, "base")
	switch {
	case named && !base:
		return nil, fmt.Errorf("-impls names base: -base says where its build is")
	case base && !named:
		return slices.Insert(impls, min(1, len(impls)), "base"), nil
	}
	return impls, nil
}

func run(o options, render bool) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	b := &bench{options: o, root: root, build: os.Getenv("SPX_BUILD"), began: time.Now()}
	if b.build == "" {
		b.build = filepath.Join(root, "build")
	}
	if render {
		if b.result, err = loadResult(o.out); err != nil {
			return err
		}
		return b.result.write(o.out)
	}
	if err := b.prepare(); err != nil {
		return err
	}
	for _, s := range b.sets() {
		done, err := b.measure(s)
		if err != nil {
			return err
		}
		if !done {
			fmt.Printf("%s: not all rounds fit into %v; -add goes on\n", s.key, b.budget)
			break
		}
	}
	if o.out == "" {
		fmt.Print(b.result.markdown(false))
		return nil
	}
	return b.result.write(o.out)
}
