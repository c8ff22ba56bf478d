// Command datatypes measures MPI_Pack, MPI_Unpack and messages of data with holes beside loops that
// a program would have instead, compiled -O3 and run in turns with them by the same process
// (bench/programs/datatypes.c), and writes docs/bench/datatypes.md.
//
//	go run ./bench/datatypes
//	go run ./bench/datatypes -rows '^transpose' -impls spx -rounds 1 -most 300000 -out ""
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"libspx/bench/bounded"
	"libspx/bench/machine"
	"libspx/bench/stats"
)

type options struct {
	rows, impls, out string
	rounds, pairs    int
	most             int
	limit            time.Duration
}

// key is a row of the page.
type key struct {
	shape, operation string
	bytes            int
}

// figures of an implementation: ratios to the loop, and microseconds, of each round.
type figures struct{ ratios, us map[key][]float64 }

func main() {
	var o options
	flag.StringVar(&o.rows, "rows", ".", "shapes, a regular expression")
	flag.StringVar(&o.impls, "impls", "spx mpich openmpi", "libraries")
	flag.StringVar(&o.out, "out", "docs/bench/datatypes.md", "the page; empty: only print it")
	flag.IntVar(&o.rounds, "rounds", 5, "runs of each library")
	flag.IntVar(&o.pairs, "pairs", 15, "batches of each kind in a run, in turns")
	flag.IntVar(&o.most, "most", 16<<20, "bytes of packed data at most")
	flag.DurationVar(&o.limit, "limit", 10*time.Minute, "time limit of one run")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/datatypes:", err)
		os.Exit(1)
	}
}

func (o *options) run() error {
	build, err := filepath.Abs(os.Getenv("SPX_BUILD"))
	if os.Getenv("SPX_BUILD") == "" {
		build, err = filepath.Abs("build")
	}
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "spx-datatypes")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "datatypes")
	gcc := exec.Command("gcc", "-O3", "-I"+filepath.Join(build, "include"), "-o", program,
		"bench/programs/datatypes.c", "-L"+filepath.Join(build, "lib"), "-lmpi_abi")
	if out, err := gcc.CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w\n%s", err, out)
	}
	impls, all, order := strings.Fields(o.impls), map[string]figures{}, []key{}
	for _, impl := range impls {
		all[impl] = figures{map[key][]float64{}, map[key][]float64{}}
	}
	for range o.rounds {
		for _, impl := range impls {
			if err := o.runOne(impl, build, program, all[impl], &order); err != nil {
				return fmt.Errorf("%s: %w", impl, err)
			}
		}
	}
	text := o.page(impls, all, order)
	if o.out == "" {
		_, err = fmt.Print(text)
		return err
	}
	return os.WriteFile(o.out, []byte(text), 0o666)
}

// runOne runs the program once under a library, and adds its lines.
func (o *options) runOne(impl, build, program string, to figures, order *[]key) error {
	ctx, cancel := context.WithTimeout(context.Background(), o.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "scripts/peers", "run", impl, "-n", "2", program, o.rows,
		strconv.Itoa(o.pairs), strconv.Itoa(o.most))
	cmd.Env = append(os.Environ(), "SPX_HOME="+build)
	var out, said bounded.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &said, 5*time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, said.String())
	}
	for line := range strings.Lines(out.String()) {
		w := strings.Fields(line)
		if len(w) != 6 {
			continue
		}
		n, err := strconv.Atoi(w[2])
		us, err2 := strconv.ParseFloat(w[3], 64)
		ratio, err3 := strconv.ParseFloat(w[5], 64)
		if err != nil || err2 != nil || err3 != nil {
			return fmt.Errorf("not a line of figures: %q", line)
		}
		k := key{w[0], w[1], n}
		if !slices.Contains(*order, k) {
			*order = append(*order, k)
		}
		to.us[k] = append(to.us[k], us)
		to.ratios[k] = append(to.ratios[k], ratio)
	}
	return nil
}

func (o *options) page(impls []string, all map[string]figures, order []key) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Datatypes beside the loops of a program\n\n`go run ./bench/datatypes`: "+
		"MPI_Pack, MPI_Unpack and half a round trip of data with holes, divided by what a loop "+
		"written for the data takes, compiled -O3 (of a message: a loop, a message of bytes, a "+
		"loop). Both take turns in one process, in batches of a millisecond; medians of %d runs of "+
		"%d pairs of batches. Below 1 the library is faster than the loop. *us*: libspx. The shapes are those of "+
		"`bench/programs/datatypes.c`: double3 is blocks of three doubles, char1x4 every fourth "+
		"byte. Calls of 1 KiB have the fixed cost of a call in them, 20 to 30 ns.\n\n%s\n\n",
		o.rounds, o.pairs, machine.Sentence([]string{machine.Name()}))
	b.WriteString("| shape | operation | bytes | us |")
	for _, impl := range impls {
		fmt.Fprintf(&b, " %s / loop |", impl)
	}
	b.WriteString("\n|---|---|---|---|" + strings.Repeat("---|", len(impls)) + "\n")
	for _, k := range order {
		fmt.Fprintf(&b, "| %s | %s | %d | %s |", k.shape, k.operation, k.bytes,
			stats.Figure(stats.Median(all[impls[0]].us[k])))
		for _, impl := range impls {
			fmt.Fprintf(&b, " %.2f |", stats.Median(all[impl].ratios[k]))
		}
		b.WriteString("\n")
	}
	return b.String()
}
