// Command fortran measures what a call of MPI costs more in Fortran than in C (programs/cost.f90), prints a table, and writes it into docs/bench/fortran.md. Its status is 1
// when a call costs more than 20 ns more. It owns the figures, not the interface: docs/fortran.md.
//
//	go run ./bench/fortran
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"libspx/bench/machine"
)

const most = 20.0 // ns a call

func main() {
	out := flag.String("out", "docs/bench/fortran.md", "file of the table; empty: none")
	flag.Parse()
	ok, err := run(*out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/fortran:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func run(out string) (bool, error) {
	build := os.Getenv("SPX_BUILD")
	if build == "" {
		build = "build"
	}
	bin, err := filepath.Abs(filepath.Join(build, "bin"))
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "spx-fortran")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	source, err := filepath.Abs("bench/fortran/programs")
	if err != nil {
		return false, err
	}
	var text []byte
	for _, args := range [][]string{
		{bin + "/mpicc", "-O2", "-c", source + "/cost_c.c"},
		{bin + "/mpifort", "-O2", "-w", "-c", source + "/cost_mpi.f90"},
		{bin + "/mpifort", "-O2", "-o", "cost", source + "/cost.f90", "cost_mpi.o", "cost_c.o"},
		{bin + "/spxrun", "-n", "1", "--timeout", "60", "./cost"},
	} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = dir
		if text, err = cmd.CombinedOutput(); err != nil {
			return false, fmt.Errorf("%s: %v\n%s", strings.Join(args, " "), err, text)
		}
	}
	table, worst, err := tabulate(string(text))
	if err != nil {
		return false, err
	}
	fmt.Print(table)
	if worst > most {
		fmt.Printf("a call in Fortran costs %.1f ns more than in C; %.0f are allowed\n", worst, most)
	}
	if out != "" {
		err = os.WriteFile(out, []byte("# What a call costs in Fortran\n\nNanoseconds, the best of 40 rounds of 100,000; `go run ./bench/fortran`, one process. At most 20 more a call than in C are wanted. "+machine.Sentence(machine.Add(nil))+"\n\n"+table), 0o666)
	}
	return worst <= most, err
}

// tabulate makes the table, and gives the largest difference a call.
func tabulate(text string) (string, float64, error) {
	var b strings.Builder
	worst := 0.0
	b.WriteString("| calls | C | module mpi | module mpi_f08 | more a call |\n|---|---|---|---|---|\n")
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		part := strings.Split(line, ";")
		if len(part) != 3 {
			return "", 0, fmt.Errorf("cannot read %q", line)
		}
		calls, err := strconv.ParseFloat(part[1], 64)
		if err != nil {
			return "", 0, err
		}
		var ns []float64
		for _, f := range strings.Fields(part[2]) {
			x, err := strconv.ParseFloat(f, 64)
			if err != nil {
				return "", 0, err
			}
			ns = append(ns, x)
		}
		if len(ns) != 3 {
			return "", 0, fmt.Errorf("cannot read %q", line)
		}
		more := (max(ns[1], ns[2]) - ns[0]) / calls
		worst = max(worst, more)
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %.1f | %.1f |\n", part[0], ns[0], ns[1], ns[2], more)
	}
	return b.String(), worst, nil
}
