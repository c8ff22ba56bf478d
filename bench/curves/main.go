// Command curves draws what long messages between two ranks of a host take, by bytes, when their receiver gets them (one copy, by the kernel), when they are streamed (two copies that overlap), and as libspx does by
// itself; beside the limit, one copy that two processes make with nothing between them. It does so for each kind of pair that the machine has: on one processor, two threads of a core, processors with a common cache
// and without, of two sockets. All take turns, round after round.
//
//	go run ./bench/curves
//	go run ./bench/curves -rounds 7 -ms 8
//
// On a machine that has no compiler and no Go:
//
//	go run ./bench/curves -pack FOLDER       here: FOLDER/curves and FOLDER/limits, which need nothing; beside them what ../shared/manycore/bundle packs
//	FOLDER/curves -spx SPX -out OUT          there; SPX: a build, or the folder spx of that bundle: OUT/curves.json
//	go run ./bench/curves -add OUT/curves.json
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"libspx/bench/bounded"
	"libspx/bench/machine"
)

// figures are microseconds of a pair: by column, by bytes, one for each round.
type figures struct {
	Machine string
	Pair    pair
	Rounds  int
	Us      map[string]map[int][]float64
}

// The columns that libspx is run for, and what its settings are then.
var ways = []struct {
	name string
	env  []string
}{
	{"got", []string{"SPX_EAGER_MAX=512", "SPX_STREAM_MAX=0"}},
	{"streamed", []string{"SPX_CMA=0"}},
	{"libspx", nil},
}

// limitsOf are the bare limits of a pair (bench/programs/limits.c), and the columns that they are. Two processes that hand over by polling need a processor each.
func limitsOf(p pair) map[string]string {
	if p.Kind == one {
		return map[string]string{"memcpy": "limit", "cma": "cma"}
	}
	return map[string]string{"handover": "limit", "cma": "cma"}
}

type options struct {
	spx, out, add, pack string
	rounds              int
	ms                  float64
	render              bool
}

func main() {
	var o options
	flag.StringVar(&o.spx, "spx", "build", "a build of libspx, or what a bundle has of one")
	flag.StringVar(&o.out, "out", "docs/bench", "folder of curves.json, curves.md and the plots")
	flag.StringVar(&o.add, "add", "", "measure nothing: take in the curves.json of another machine")
	flag.StringVar(&o.pack, "pack", "", "measure nothing: write what another machine needs into this folder")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds")
	flag.Float64Var(&o.ms, "ms", 4, "how long a batch lasts")
	flag.BoolVar(&o.render, "render", false, "measure nothing: only write the page and the plots again")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/curves:", err)
		os.Exit(1)
	}
}

func (o *options) run() error {
	if o.pack != "" {
		return o.packed()
	}
	all, err := load(filepath.Join(o.out, "curves.json"))
	if err != nil {
		return err
	}
	var more []figures
	switch {
	case o.add != "":
		if more, err = load(o.add); err == nil && len(more) == 0 {
			err = fmt.Errorf("%s has no figures", o.add)
		}
	case !o.render:
		more, err = o.measure()
	}
	if err != nil {
		return err
	}
	return o.save(merge(all, more))
}

// merge has the newer figures of each pair of a machine.
func merge(old, newer []figures) []figures {
	all := slices.DeleteFunc(slices.Clone(old), func(f figures) bool {
		return slices.ContainsFunc(newer, func(g figures) bool { return f.Machine == g.Machine && f.Pair.Kind == g.Pair.Kind })
	})
	return append(all, newer...)
}

func load(name string) (all []figures, err error) {
	text, err := os.ReadFile(name)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(text, &all)
}

func (o *options) save(all []figures) error {
	if len(all) == 0 {
		return fmt.Errorf("there are no figures in %s", o.out)
	}
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	files := map[string]string{"curves.json": string(text) + "\n", "curves.md": page(all)}
	for i, f := range all {
		files[plotName(i)] = plot(f)
	}
	if err := os.MkdirAll(o.out, 0o777); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(o.out, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// packed writes this command and the limits for a machine on which nothing is installed.
func (o *options) packed() error {
	if err := os.MkdirAll(o.pack, 0o777); err != nil {
		return err
	}
	goBuild := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(o.pack, "curves"), "./bench/curves")
	goBuild.Env = append(os.Environ(), "CGO_ENABLED=0")
	for _, cmd := range []*exec.Cmd{goBuild, compile(filepath.Join(o.pack, "limits"), "-static")} {
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", cmd.Args[0], err, out)
		}
	}
	return nil
}

func compile(to string, more ...string) *exec.Cmd {
	return exec.Command("gcc", append([]string{"-O2", "-o", to, "bench/programs/limits.c"}, more...)...)
}

// limitsProgram is the one that lies beside this command, or else is compiled.
func limitsProgram(dir string) (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "limits")
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	to := filepath.Join(dir, "limits")
	if out, err := compile(to).CombinedOutput(); err != nil {
		return "", fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return to, nil
}

func (o *options) measure() ([]figures, error) {
	dir, err := os.MkdirTemp("", "spx-curves")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	limits, err := limitsProgram(dir)
	if err != nil {
		return nil, err
	}
	spx, err := filepath.Abs(o.spx)
	if err != nil {
		return nil, err
	}
	cpus, err := allowed()
	if err != nil {
		return nil, err
	}
	var all []figures
	for _, p := range pairsOf(os.DirFS("/sys/devices/system/cpu"), cpus) {
		f := figures{machine.Name(), p, o.rounds, map[string]map[int][]float64{}}
		for range o.rounds {
			for _, i := range rand.Perm(len(ways) + 1) {
				if i == len(ways) {
					err = o.runLimits(limits, dir, f)
				} else {
					err = o.runWay(i, spx, dir, f)
				}
				if err != nil {
					return nil, fmt.Errorf("%s: %w", p.Kind, err)
				}
			}
		}
		fmt.Printf("%s: processors %d and %d, %d rounds\n", p.Kind, p.Cpus[0], p.Cpus[1], o.rounds)
		all = append(all, f)
	}
	return all, nil
}

func (o *options) runWay(i int, spx, dir string, f figures) error {
	args := []string{filepath.Join(spx, "bin/spxrun"), "-n", "2"}
	if f.Pair.Kind != one {
		args = append(args, "--bind-to", "hwthread")
	}
	args = append(args, filepath.Join(spx, "libexec/libspx/rows"), "-t", fmt.Sprint(o.ms), "-s", "curve", "-f", dir, "^curve ")
	env := append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(spx, "lib")+":"+os.Getenv("LD_LIBRARY_PATH"))
	return run(f, map[string]string{"curve": ways[i].name}, append(env, ways[i].env...), args)
}

func (o *options) runLimits(program, dir string, f figures) error {
	args := []string{program, "-t", fmt.Sprint(o.ms), "-f", dir}
	columns := limitsOf(f.Pair)
	for name := range columns {
		args = append(args, name)
	}
	return run(f, columns, os.Environ(), args)
}

// run runs a program on the processors of the pair, and takes its lines "row bytes microseconds" into the columns of these rows.
func run(f figures, columns map[string]string, env, args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var out, said bounded.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &said, env
	if err := startOn(cmd, f.Pair.Cpus[:]); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, said.String())
	}
	return take(f, columns, out.String())
}

func take(f figures, columns map[string]string, text string) error {
	n := 0
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		if len(w) != 3 || columns[w[0]] == "" {
			continue
		}
		size, err := strconv.Atoi(w[1])
		us, err2 := strconv.ParseFloat(w[2], 64)
		if err != nil || err2 != nil || us <= 0 {
			return fmt.Errorf("%q is no figure", line)
		}
		c := columns[w[0]]
		if f.Us[c] == nil {
			f.Us[c] = map[int][]float64{}
		}
		f.Us[c][size] = append(f.Us[c][size], us)
		n++
	}
	if n == 0 {
		return fmt.Errorf("no figures: %q", text)
	}
	return nil
}
