// Command connections measures examples/intsort.c, which all processes exchange keys in, with many processes over TCP alone and each way to keep connections: all,
// on demand, 64 by chance, and by the topology with 0 to 16 for pairs that talk. The settings take turns, round after round. The rounds are kept in
// docs/bench/connections.json, and another call goes on; connections.md and connections.svg are written anew.
//
//	go run ./bench/connections
//	go run ./bench/connections -rounds 5 -for 100s
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"libspx/bench/machine"
	"libspx/bench/stats"
	"libspx/bench/svg"
)

var settings = []string{"all", "demand", "random:64:0", "topology:0", "topology:1", "topology:2", "topology:4", "topology:8", "topology:16"}

// run is what one run took: of a process at most.
type run struct {
	Seconds     float64 `json:"seconds"`
	Connections int     `json:"connections"`
	Opened      int     `json:"opened"`
	Evicted     int     `json:"evicted"`
	Relayed     int     `json:"relayed"`
	Descriptors int     `json:"descriptors"`
	KiB         int     `json:"kib"`
}

// results are the runs by setting: those of short blocks, and those of blocks of 4 KiB. All go by switch.
type results struct {
	Ranks    int              `json:"ranks"`
	Switches int              `json:"switches"`
	Args     string           `json:"args"`
	LongArgs string           `json:"long_args"`
	Machines []string         `json:"machines,omitempty"`
	Runs     map[string][]run `json:"runs"`
	Long     map[string][]run `json:"long"`
}

type options struct {
	out    string
	rounds int
	budget time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.out, "out", "docs/bench", "folder of connections.json, connections.md and connections.svg")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds that there shall be")
	flag.DurationVar(&o.budget, "for", 0, "begin no run after this time; another call goes on. 0: until all are done")
	flag.Parse()
	if err := o.measure(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/connections:", err)
		os.Exit(1)
	}
}

func (o *options) measure() error {
	kept := filepath.Join(o.out, "connections.json")
	r := results{Ranks: 128, Switches: 8, Args: "20 14 5", LongArgs: "24 14 5", Runs: map[string][]run{}, Long: map[string][]run{}}
	if data, err := os.ReadFile(kept); err == nil {
		if err := json.Unmarshal(data, &r); err != nil {
			return fmt.Errorf("%s: %w", kept, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	build := os.Getenv("SPX_BUILD")
	if build == "" {
		build = "build"
	}
	program := filepath.Join(build, "bench", "intsort")
	if err := os.MkdirAll(filepath.Dir(program), 0o777); err != nil {
		return err
	}
	if out, err := exec.Command(filepath.Join(build, "bin/mpicc"), "-O2", "examples/intsort.c", "-o", program).CombinedOutput(); err != nil {
		return fmt.Errorf("mpicc examples/intsort.c: %w\n%s", err, out)
	}
	began := time.Now()
	for round := range o.rounds {
		for _, i := range rand.Perm(2 * len(settings)) {
			s, args, runs := settings[i/2], r.Args, r.Runs
			if i%2 == 1 {
				args, runs = r.LongArgs, r.Long
			}
			if len(runs[s]) > round {
				continue
			}
			if o.budget > 0 && time.Since(began) > o.budget {
				return r.write(o.out, kept)
			}
			one, err := r.start(build, program, args, s)
			if err != nil {
				return errors.Join(err, r.write(o.out, kept))
			}
			runs[s] = append(runs[s], one)
			r.Machines = machine.Add(r.Machines)
			fmt.Printf("%s, %s: %+v\n", args, s, one)
		}
	}
	return r.write(o.out, kept)
}

var line = regexp.MustCompile(`sorted: .*: ([\d.]+) s; of a rank at most: (\d+) connections, (\d+) opened, (\d+) evicted, (\d+) relayed, \d+ forwarded, (\d+) descriptors, (\d+) KiB`)

func (r *results) start(build, program, args, setting string) (one run, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(build, "bin/spxrun"), append([]string{"-n", strconv.Itoa(r.Ranks), program}, strings.Fields(args)...)...)
	cmd.Env = append(os.Environ(), "SPX_TRANSPORTS=tcp", fmt.Sprintf("SPX_TOPOLOGY=groups:%d", r.Switches), "SPX_CONNECTIONS="+setting)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return one, fmt.Errorf("%s: %w\n%s", setting, err, out.String())
	}
	m := line.FindStringSubmatch(out.String())
	if m == nil {
		return one, fmt.Errorf("%s: no figures in %q", setting, out.String())
	}
	one.Seconds, err = strconv.ParseFloat(m[1], 64)
	for i, v := range []*int{&one.Connections, &one.Opened, &one.Evicted, &one.Relayed, &one.Descriptors, &one.KiB} {
		*v, _ = strconv.Atoi(m[i+2]) // digits
	}
	return one, err
}

// median of one figure of runs.
func median(runs []run, figure func(run) float64) float64 {
	var values []float64
	for _, one := range runs {
		values = append(values, figure(one))
	}
	return stats.Median(values)
}

func (r *results) write(dir, kept string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	curves := []svg.Curve{{Name: "ms", Colour: "#c2410c"}, {Name: "connections", Colour: "#1d4ed8"}, {Name: "descriptors", Colour: "#15803d"}, {Name: "MiB x 10", Colour: "#7c3aed"}}
	for i, s := range settings {
		for k, v := range []float64{1000 * median(r.Runs[s], seconds), median(r.Runs[s], open), median(r.Runs[s], descriptors), 10 * median(r.Runs[s], mib)} {
			curves[k].Points = append(curves[k].Points, [2]float64{float64(i + 1), max(v, 1)})
		}
	}
	picture := svg.Draw(fmt.Sprintf("integer sort, %d processes", r.Ranks), curves, func(x float64) string { return strings.Replace(settings[int(x+0.5)-1], "topology:", "t:", 1) })
	text := strings.NewReplacer("TABLE", table(r.Runs), "LONGTABLE", table(r.Long), "LONGARGS", r.LongArgs, "RANKS", strconv.Itoa(r.Ranks), "SWITCHES", strconv.Itoa(r.Switches), "ARGS", r.Args, "MACHINES", machine.Sentence(r.Machines)).Replace(page)
	return errors.Join(
		os.WriteFile(kept, append(data, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, "connections.md"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(dir, "connections.svg"), []byte(picture), 0o644))
}

func seconds(x run) float64     { return x.Seconds }
func open(x run) float64        { return float64(x.Connections) }
func descriptors(x run) float64 { return float64(x.Descriptors) }
func mib(x run) float64         { return float64(x.KiB) / 1024 }

func table(runs map[string][]run) string {
	var b strings.Builder
	b.WriteString("| SPX_CONNECTIONS | runs | seconds | by those of all | connections | opened | evicted | frames relayed | descriptors | own memory, MiB |\n|---|" + strings.Repeat("---:|", 9) + "\n")
	for _, s := range settings {
		if list := runs[s]; len(list) > 0 {
			fmt.Fprintf(&b, "| `%s` | %d | %.2f | %.2f | %.0f | %.0f | %.0f | %.0f | %.0f | %.1f |\n", s, len(list), median(list, seconds), median(list, seconds)/median(runs["all"], seconds), median(list, open),
				median(list, func(x run) float64 { return float64(x.Opened) }), median(list, func(x run) float64 { return float64(x.Evicted) }), median(list, func(x run) float64 { return float64(x.Relayed) }),
				median(list, descriptors), median(list, mib))
		}
	}
	return b.String()
}

const page = `# Integer sort with few connections

` + "`go run ./bench/connections`" + `: examples/intsort.c (` + "`intsort ARGS`" + `; each run checks its result) with RANKS processes on one machine, over TCP alone, as if they were on SWITCHES switches
(SPX_TOPOLOGY=groups:SWITCHES). Medians of the runs; connections and what follows them: of a process, at most. MACHINES

TABLE
![the same](connections.svg)

With 16 times as many keys (` + "`intsort LONGARGS`" + `), blocks are of 4 KiB, which go by switch, too:

LONGTABLE
[What the settings mean](../connections.md), and why relaying costs what it costs here.
`
