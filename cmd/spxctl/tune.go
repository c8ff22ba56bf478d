package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"libspx/launch/progress"
)

// A knob is a setting that tune tries out: the rows of the measuring program that it acts on, and
// the values beside the preset.
type knob struct {
	name    string
	crowded bool   // measured with more ranks than processors; else with two ranks
	rows    string // regular expression
	values  []string
}

// knobs in the order in which they are tried: each with what was found for those before it.
var knobs = []knob{
	{"SPX_EAGER_MAX", false, `^(pingpong|window) (1024|4096|8192|16384)$`, []string{"2K", "4K", "8K"}},
	{"SPX_STREAM_MAX", false, `^(pingpong (65536|200000|262144|1048576|4194304)|bothways (65536|524288))$`, []string{"0", "128K", "512K", "2M"}},
	{"SPX_FRAGMENT", false, `^(pingpong (65536|262144|1048576)|window 65536)$`, []string{"4K", "16K"}},
	{"SPX_SPIN", false, `^(pingpong (8|1024)|barrier 0|allreduce 8|jacobi 0)$`, []string{"1000", "100000"}},
	{"SPX_YIELD", true, `^(barrier 0|allreduce 8|alltoall 1024|jacobi 0)$`, []string{"0", "4", "16", "1000"}},
	{"SPX_STREAM_MAX", true, `^(exchange 65536|alltoall 65536|bcast 65536)$`, []string{"0", "1M"}},
}

// A tuner measures with the programs of a finished tree.
type tuner struct {
	rounds  int
	gain    float64 // a value is taken when it is faster than what is there by this share
	crowd   int     // ranks of the crowded measurements
	out     io.Writer
	measure func(ranks int, rows string, env []string) (map[string]float64, error)
	bar     *progress.Bar // nil: no terminal
}

// A choice is a line of the table.
type choice struct {
	knob  knob
	value string
	gain  float64 // time against the preset: 0.9 is a tenth less
}

func tuneCommand() *cobra.Command {
	var file string
	var show bool
	t := tuner{out: os.Stdout}
	c := &cobra.Command{
		Use:   "tune",
		Short: "measures on this machine and writes the table that libspx reads",
		Long: `Tries values of the settings that decide between ways of sending and of waiting, with two ranks and with more ranks than
processors, and writes those that are faster than the presets here. Nothing else should run meanwhile. The table is read when MPI starts;
a variable in the environment overrides it, SPX_TUNING=none leaves it out.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			rows, run, err := programs()
			if err != nil {
				return err
			}
			t.measure = func(ranks int, expression string, env []string) (map[string]float64, error) {
				return measure(run, rows, ranks, expression, env)
			}
			steps := 0
			for _, k := range knobs {
				steps += t.rounds * (len(k.values) + 1)
			}
			t.bar = progress.Start("measuring", steps)
			choices, err := t.tune(knobs)
			t.bar.End()
			if err != nil {
				return err
			}
			host, err := os.Hostname()
			if err != nil {
				return err
			}
			text := table(choices, host, time.Now())
			if show {
				fmt.Print(text)
				return nil
			}
			return store(file, text)
		},
	}
	c.Flags().StringVarP(&file, "output", "o", defaultFile(), "file of the table")
	c.Flags().BoolVar(&show, "print", false, "print the table instead of writing it")
	c.Flags().IntVar(&t.rounds, "rounds", 5, "times that each value is measured; the median counts")
	c.Flags().Float64Var(&t.gain, "gain", 0.04, "take a value that is faster by at least this share")
	c.Flags().IntVar(&t.crowd, "ranks", 0, "ranks of the measurements with more ranks than processors (default: four for each processor)")
	return c
}

// defaultFile is where libspx looks first: the user's table, or for root the system's.
func defaultFile() string {
	if home, err := os.UserHomeDir(); err == nil && os.Geteuid() != 0 {
		return filepath.Join(home, ".config/libspx/tuning")
	}
	return "/etc/libspx/tuning"
}

// tune tries every knob and returns those for which another value than the preset is better.
func (t *tuner) tune(list []knob) (choices []choice, err error) {
	if t.rounds < 1 || t.gain < 0 {
		return nil, errors.New("--rounds is at least 1, --gain at least 0")
	}
	for _, k := range list {
		env := []string{"SPX_TUNING=none"}
		for _, c := range choices {
			if c.knob.crowded == k.crowded {
				env = append(env, c.knob.name+"="+c.value)
			}
		}
		value, gain, err := t.try(k, env)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", k.name, err)
		}
		if value != "" {
			choices = append(choices, choice{k, value, gain})
		}
	}
	return choices, nil
}

// try measures a knob's values in turn, round after round, and returns the best one and its time
// against the preset; "": the preset.
func (t *tuner) try(k knob, env []string) (string, float64, error) {
	ranks := 2
	if k.crowded {
		ranks = t.crowd
		if ranks == 0 {
			ranks = 4 * processors()
		}
	}
	times := make([]map[string][]float64, len(k.values)+1) // by value, the preset first, and by row
	for i := range times {
		times[i] = map[string][]float64{}
	}
	for range t.rounds {
		for i := range times {
			e := env
			if i > 0 {
				e = append(slices.Clone(env), k.name+"="+k.values[i-1])
			}
			us, err := t.measure(ranks, k.rows, e)
			t.bar.Step()
			if err != nil {
				return "", 0, err
			}
			for row, v := range us {
				times[i][row] = append(times[i][row], v)
			}
		}
	}
	best, least := "", 1-t.gain
	for i, value := range k.values {
		r := ratio(times[i+1], times[0])
		t.bar.Clear()
		fmt.Fprintf(t.out, "%-16s %-8s %2d ranks: %.3f of the preset's time\n", k.name, value, ranks, r)
		if r < least {
			best, least = value, r
		}
	}
	return best, least, nil
}

// ratio is the geometric mean, over the rows, of the medians of a against those of b.
func ratio(a, b map[string][]float64) float64 {
	sum, n := 0.0, 0
	for row, v := range a {
		if w := b[row]; len(w) > 0 {
			sum += math.Log(median(v) / median(w))
			n++
		}
	}
	if n == 0 {
		return 1
	}
	return math.Exp(sum / float64(n))
}

func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return v[len(v)/2]
}

// table is the file's text (docs/tuning.md).
func table(choices []choice, host string, at time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The table of libspx for this machine, made by spxctl tune on %s. What is not here is as preset.\nhost %s\n", at.UTC().Format("2006-01-02"), host)
	for _, c := range choices {
		when := "free   "
		if c.knob.crowded {
			when = "crowded"
		}
		fmt.Fprintf(&b, "%s %s %s # %.2f of the preset's time\n", when, c.knob.name, c.value, c.gain)
	}
	return b.String()
}

func store(file, text string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return err
	}
	fresh := file + ".new"
	if err := os.WriteFile(fresh, []byte(text), 0o644); err != nil {
		return err
	}
	if err := os.Rename(fresh, file); err != nil {
		return err
	}
	fmt.Printf("%swritten to %s\n", text, file)
	return nil
}
