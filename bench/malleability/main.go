// Command malleability measures how long a running program takes to get another number of processes (programs/changes.c): by shrinking after deaths, by splitting off
// those who leave, by spawning; and how long it takes to recover from one death after another. It is done on this host, and, as root, on hosts that are network namespaces.
// It writes docs/bench/malleability.md.
//
//	go run ./bench/malleability
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"libspx/bench/machine"
)

// row is a case: a program of some ranks, on so many hosts (0: this one, by shared memory), and what happens to it.
type row struct {
	title   string
	hosts   int
	ranks   int
	changes []string
}

var rows = []row{
	{"12 to 4, the others die (ULFM)", 0, 12, []string{"d4"}},
	{"12 to 4, the others finalize (split)", 0, 12, []string{"m4"}},
	{"24 to 4, the others die (ULFM)", 0, 24, []string{"d4"}},
	{"24 to 4, the others finalize (split)", 0, 24, []string{"m4"}},
	{"32, 16, 24, 4 on one host", 0, 32, []string{"m16", "m24", "m4"}},
	{"32, 16, 24, 4 on 4 hosts", 4, 32, []string{"m16", "m24", "m4"}},
	{"256 on 8 hosts, four deaths in a row", 8, 256, []string{"k1", "k2", "k3", "k4"}},
}

// results are the milliseconds of each change of each run, by the title of the row.
type results struct {
	Machines []string
	Ms       map[string][][]float64
}

type bench struct {
	root, build, dir string
	limit            time.Duration
}

func main() {
	only := flag.String("only", "", "the rows whose titles have this in them")
	rounds := flag.Int("rounds", 5, "runs of each row that there shall be")
	limit := flag.Duration("limit", 60*time.Second, "a run that takes longer hangs")
	budget := flag.Duration("for", 0, "begin no run after this time; another call goes on. 0: until all are done")
	out := flag.String("out", "docs/bench", "folder of malleability.json and malleability.md; earlier runs are kept")
	flag.Parse()
	if err := run(*only, *rounds, *limit, *budget, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench/malleability:", err)
		os.Exit(1)
	}
}

func run(only string, rounds int, limit, budget time.Duration, out string) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	b := &bench{root: root, build: os.Getenv("SPX_BUILD"), limit: limit}
	if b.build == "" {
		b.build = filepath.Join(root, "build")
	}
	if b.dir, err = os.MkdirTemp("", "spx-changes"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	compile := exec.Command(filepath.Join(b.build, "bin/mpicc"), "-O2", "-o", b.program(), filepath.Join(root, "bench/malleability/programs/changes.c"))
	if text, err := compile.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	res := results{Ms: map[string][][]float64{}}
	kept := filepath.Join(out, "malleability.json")
	if text, err := os.ReadFile(kept); err == nil {
		if err := json.Unmarshal(text, &res); err != nil {
			return fmt.Errorf("%s: %w", kept, err)
		}
	}
	start := time.Now()
	for _, r := range rows {
		if !strings.Contains(r.title, only) {
			continue
		}
		for len(res.Ms[r.title]) < rounds && (budget == 0 || time.Since(start) < budget) {
			ms, err := b.one(r)
			if err != nil {
				return fmt.Errorf("%s: %w", r.title, err)
			}
			fmt.Println(r.title, ms)
			res.Ms[r.title] = append(res.Ms[r.title], ms)
			res.Machines = machine.Add(res.Machines)
			if err := res.write(kept, filepath.Join(out, "malleability.md")); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) program() string { return filepath.Join(b.dir, "changes") }

// one is a run of a row.
func (b *bench) one(r row) (ms []float64, err error) {
	shared := filepath.Join(b.dir, "run")
	if err := os.WriteFile(shared, make([]byte, 4096), 0o666); err != nil {
		return nil, err
	}
	args := []string{filepath.Join(b.build, "bin/spxrun"), "--with-ft"}
	if r.hosts > 0 {
		const name = "spxmall"
		script := filepath.Join(b.root, "scripts/hosts")
		up := exec.Command(script, "up", name, strconv.Itoa(r.hosts))
		up.Env = append(os.Environ(), "HOSTS_SHARED="+b.dir)
		if text, err := up.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", script, err, text)
		}
		defer exec.Command(script, "down", name).Run() //nolint:errcheck // it says so itself
		var list []string
		for h := 1; h <= r.hosts; h++ {
			list = append(list, fmt.Sprintf("%s%d:%d", name, h, r.ranks/r.hosts))
		}
		args = append([]string{script, "on", name + "1"}, args...)
		args = append(args, "--rsh", script+" rsh", "-host", strings.Join(list, ","))
	}
	args = append(args, "-n", strconv.Itoa(r.ranks), b.program(), shared)
	args = append(args, r.changes...)
	ctx, cancel := context.WithTimeout(context.Background(), b.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) // the end of spxrun is that of the job
	cmd.Dir, cmd.WaitDelay = b.dir, 5*time.Second
	cmd.Env = append(os.Environ(), "SPX_DYPRC_FILE="+filepath.Join(b.dir, "commands"))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); ctx.Err() != nil {
		return nil, fmt.Errorf("hangs after %v: %s%s", b.limit, stdout.String(), stderr.String())
	} else if err != nil {
		return nil, fmt.Errorf("%w: %s%s", err, stdout.String(), stderr.String())
	}
	for line := range strings.Lines(stdout.String()) {
		var v float64
		var n int
		if k, _ := fmt.Sscanf(line, "%f ms %d processes", &v, &n); k == 2 {
			ms = append(ms, v)
		}
	}
	if len(ms) != len(r.changes) {
		return nil, fmt.Errorf("%d changes were told, there are %d: %s", len(ms), len(r.changes), stdout.String())
	}
	return ms, nil
}

// write keeps the figures and makes the table.
func (res *results) write(kept, table string) error {
	text, err := json.MarshalIndent(res, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(kept, append(text, '\n'), 0o644); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Changing the number of processes of a running program\n\n"+
		"`go run ./bench/malleability`. %s A program exchanges messages in a ring by MPI_Sendrecv; milliseconds from the command, or from the last death, until the last process has\n"+
		"exchanged a message with its new neighbours: the median of the runs, the least and the most. Hosts are network namespaces on one machine.\n\n"+
		"| what | change | median | least | most | runs |\n|---|---|---:|---:|---:|---:|\n", machine.Sentence(res.Machines))
	for _, r := range rows {
		runs := res.Ms[r.title]
		for i, change := range r.changes {
			var all []float64
			for _, ms := range runs {
				all = append(all, ms[i])
			}
			if len(all) == 0 {
				continue
			}
			slices.Sort(all)
			fmt.Fprintf(&b, "| %s | %s | %.1f | %.1f | %.1f | %d |\n", r.title, words(change, i), all[len(all)/2], all[0], all[len(all)-1], len(all))
		}
	}
	b.WriteString("\nThe paper of DyProReconf has, on its cluster: 12 to 4 and 24 to 4 by ULFM 151 s and 392 s (15 s and 39 s tuned), by splitting 0.1 to 0.2 s; recovery from four deaths in a row among 256\n" +
		"processes on 8 hosts 22, 62, 103 and 141 s; growth across hosts was not possible there. Other machines, so what compares is the order of magnitude, and that the fourth death takes no longer than the first.\n")
	return os.WriteFile(table, []byte(b.String()), 0o644)
}

func words(change string, i int) string {
	switch change[0] {
	case 'm':
		return "to " + change[1:]
	case 'd':
		return "all but " + change[1:] + " die"
	}
	return fmt.Sprintf("death %d", i+1)
}
