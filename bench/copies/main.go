// Command copies measures what transparent takeover costs a message and a commit: in a cluster whose ranks keep what they need for it in memory of their host, in one where processes of another host have
// copies of that, and where nothing is kept; over TCP, on hosts that are network namespaces of one machine. The arrangements take turns, round after round. As root:
//
//	go run ./bench/copies
//	go run ./bench/copies -rounds 3 -ms 200
package main

import (
	"bytes"
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

	"libspx/bench/machine"
)

const prefix = "copybench"

func host(i int) string { return prefix + strconv.Itoa(i) }

// An arrangement is a column.
type arrangement struct {
	name, text string
}

func arrangements() []arrangement {
	const standby, kept = "standbys = 1\ntakeover = \"transparent\"\n", "standbys = 2\ntakeover = \"transparent\"\ncopies = \"other host\"\n"
	at := func(list ...string) string { return fmt.Sprintf("hosts = [\"%s\"]\n", strings.Join(list, `", "`)) }
	return []arrangement{
		{"one host, nothing kept", at(host(1) + ":2")},
		{"one host, no copies", at(host(1)+":3") + standby},
		{"one host, copies on another", at(host(1)+":2", host(2)+":2") + kept},
		{"two hosts, nothing kept", at(host(1)+":1", host(2)+":1")},
		{"two hosts, copies on a third", at(host(1)+":1", host(2)+":1", host(3)+":2") + kept},
	}
}

type options struct {
	out, build, dir, beside string
	rounds, ms              int
}

func main() {
	var o options
	flag.StringVar(&o.out, "out", "docs/bench/copies.md", "page that is written")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds")
	flag.IntVar(&o.ms, "ms", 300, "for each figure, in each round")
	flag.StringVar(&o.beside, "beside", "", "what else runs on the machine: that is said on the page")
	flag.Parse()
	if err := o.measure(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/copies:", err)
		os.Exit(1)
	}
}

func (o *options) measure() error {
	var err error
	if o.build, err = filepath.Abs("build"); err != nil {
		return err
	}
	o.dir = filepath.Join(o.build, "bench-copies")
	if err := os.MkdirAll(o.dir, 0o755); err != nil {
		return err
	}
	if out, err := exec.Command(filepath.Join(o.build, "bin/mpicc"), "-O2", "bench/copies/programs/copies.c", "-o", filepath.Join(o.dir, "copies")).CombinedOutput(); err != nil {
		return fmt.Errorf("mpicc: %w\n%s", err, out)
	}
	down := func() { _ = exec.Command("scripts/hosts", "down", prefix).Run() } // none there, as a rule
	down()
	defer down()
	up := exec.Command("scripts/hosts", "up", prefix, "3")
	up.Env = append(os.Environ(), "HOSTS_SHARED="+o.dir)
	if out, err := up.CombinedOutput(); err != nil {
		return fmt.Errorf("scripts/hosts: %w\n%s", err, out)
	}
	figures := map[string]map[string][]float64{} // by name, and arrangement
	var names []string
	for range o.rounds {
		for _, a := range arrangements() {
			for _, state := range []int{0, 64 << 10, 16 << 20} {
				lines, err := o.run(a, state)
				if err != nil {
					return err
				}
				for _, line := range lines {
					at := strings.LastIndexByte(line, ' ')
					v, err := strconv.ParseFloat(line[max(at, 0)+1:], 64)
					if at < 0 || err != nil {
						return fmt.Errorf("%s: %q is no figure", a.name, line)
					}
					name := line[:at]
					if figures[name] == nil {
						figures[name] = map[string][]float64{}
						names = append(names, name)
					}
					figures[name][a.name] = append(figures[name][a.name], v)
				}
			}
		}
	}
	return os.WriteFile(o.out, []byte(page(names, figures, o)), 0o644)
}

// run runs an arrangement once, with a state of so many bytes.
func (o *options) run(a arrangement, state int) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	file := filepath.Join(o.dir, "copies.toml")
	text := fmt.Sprintf("[[cluster]]\nname = \"work\"\nprogram = %q\nargs = [\"%d\", \"%d\"]\nranks = 2\n%s", filepath.Join(o.dir, "copies"), o.ms, state, a.text)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	scripts, err := filepath.Abs("scripts/hosts")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, scripts, "on", host(1), filepath.Join(o.build, "bin/spxrun"), "--rsh", scripts+" rsh", "--system", file)
	cmd.Env = append(os.Environ(), "SPX_TRANSPORTS=tcp", "SPX_SPIN=0", "SPX_YIELD=0") // each process takes itself to be alone on its host, and would poll
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", a.name, err, out.String(), said.String())
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n"), nil
}

func page(names []string, figures map[string]map[string][]float64, o *options) string {
	var b strings.Builder
	b.WriteString("# What copies cost\n\n`go run ./bench/copies`: a cluster of two ranks, in microseconds. *Nothing kept*: without takeover. *No copies*: `takeover = \"transparent\"`, with a standby on the same host. *Copies*: " +
		"with `copies = \"other host\"` as well ([systems](../systems.md#copies-on-another-host)), and two standbys there, which keep them. All over TCP, between network namespaces of one machine: what a network adds comes on top, and all share the " +
		"processors of that machine. A send in a row: with an answer after each 32. A commit and a round trip: until a message of 8 bytes that is sent after it has gone there and back, which waits until the copy has the commit; without takeover a commit does nothing.\n\n" +
		fmt.Sprintf("%s Medians of %d rounds of %d ms for each figure.\n\n| |", machine.Sentence([]string{machine.Name()}), o.rounds, o.ms))
	for _, a := range arrangements() {
		fmt.Fprintf(&b, " %s |", a.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(arrangements())) + "\n")
	for _, name := range names {
		fmt.Fprintf(&b, "| %s |", name)
		for _, a := range arrangements() {
			list := slices.Sorted(slices.Values(figures[name][a.name]))
			fmt.Fprintf(&b, " %s |", digits(list[len(list)/2]))
		}
		b.WriteString("\n")
	}
	if o.beside != "" {
		fmt.Fprintf(&b, "\nMeasured beside %s: columns can be compared with each other, not with other machines.\n", o.beside)
	}
	return b.String()
}

// digits is a figure with as many digits as mean something.
func digits(v float64) string {
	if v >= 100 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}
