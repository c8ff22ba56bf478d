// Command rounds counts what the failure protocols cost in simulated time: messages, and how many of them follow one another, for up to
// 65,536 members. It writes docs/bench/rounds.md and rounds.svg. The counts are exact: nothing is measured. With numbers of hosts as arguments it prints their rows
// of the table of many hosts, and writes nothing.
package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"libspx/sim"
)

// protocol is a row of the table: one schedule for each number of members.
type protocol struct {
	name   string
	most   int // members: more take too long to simulate
	job    func(n int) sim.Job
	rounds func(o sim.Outcome) sim.Time
}

func agreed(o sim.Outcome) sim.Time { return o.Returned }

// job is one operation, while some members die at the first microsecond.
func job(kind string, deaths func(n int) []int) func(n int) sim.Job {
	return func(n int) sim.Job {
		j := sim.Job{Hosts: 1, Ranks: n, Rounds: true, Ops: []sim.Op{{Kind: kind}}}
		for _, p := range deaths(n) {
			j.Faults = append(j.Faults, sim.Fault{Kind: sim.Kill, Who: p, At: 1})
		}
		return j
	}
}

func none(int) []int { return nil }

func root(int) []int { return []int{0} }

// odd is every second member.
func odd(n int) (procs []int) {
	for p := 1; p < n; p += 2 {
		procs = append(procs, p)
	}
	return procs
}

var protocols = []protocol{
	{"agree", 65536, job(sim.Agree, none), agreed},
	{"shrink", 65536, job(sim.Shrink, none), agreed},
	{"shrink, the root dies", 65536, job(sim.Shrink, root), agreed},
	{"shrink, every second dies", 1024, job(sim.Shrink, odd), agreed},
	{"revoke", 16384, func(n int) sim.Job {
		return sim.Job{Hosts: 1, Ranks: n, Rounds: true, Faults: []sim.Fault{{Kind: sim.Revoke, At: 1}}}
	}, func(o sim.Outcome) sim.Time { return o.Revoked - 1 }},
}

var members = []int{4, 16, 64, 256, 1024, 4096, 16384, 65536}

func main() {
	var sizes []int
	for _, word := range os.Args[1:] {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			fmt.Fprintf(os.Stderr, "rounds: %q is no number of hosts\n", word)
			os.Exit(2)
		}
		sizes = append(sizes, n)
	}
	if sizes != nil {
		if _, err := manyHosts(sizes...); err != nil {
			fmt.Fprintln(os.Stderr, "rounds:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(filepath.Join("docs", "bench")); err != nil {
		fmt.Fprintln(os.Stderr, "rounds:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	rounds := make([][]float64, len(protocols))
	var table strings.Builder
	table.WriteString("| members | log2 |")
	for _, p := range protocols {
		table.WriteString(" " + p.name + " |")
	}
	table.WriteString("\n|---:|---:|" + strings.Repeat("---:|", len(protocols)) + "\n")
	for _, n := range members {
		fmt.Fprintf(&table, "| %d | %d |", n, int(math.Log2(float64(n))))
		for i, p := range protocols {
			if n > p.most {
				table.WriteString(" |")
				continue
			}
			o, err := sim.RunJob(p.job(n))
			if err != nil {
				return fmt.Errorf("%s of %d: %w", p.name, n, err)
			}
			rounds[i] = append(rounds[i], float64(p.rounds(o)))
			fmt.Fprintf(&table, " %d, %d |", o.Messages, p.rounds(o))
			fmt.Println(n, p.name, o.Messages, p.rounds(o))
		}
		table.WriteString("\n")
	}
	beats, err := detector()
	if err != nil {
		return err
	}
	hosts, err := manyHosts(16, 64, 256, 1024)
	if err != nil {
		return err
	}
	text := strings.NewReplacer("TABLE", table.String(), "BEATS", beats, "HOSTS", hosts).Replace(page)
	if err := os.WriteFile(filepath.Join(dir, "rounds.md"), []byte(text), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "rounds.svg"), []byte(plot(rounds)), 0o644)
}

// detector is the table of what the agents' detector of silent hosts costs.
func detector() (string, error) {
	var b strings.Builder
	b.WriteString("| hosts | messages | given up after |\n|---:|---:|---:|\n")
	for _, n := range []int{4, 16, 64, 256, 1024} {
		quiet, err := sim.RunJob(sim.Job{Hosts: n, Ranks: n, Rounds: true})
		if err != nil {
			return "", err
		}
		o, err := sim.RunJob(sim.Job{Hosts: n, Ranks: n, Rounds: true, Faults: []sim.Fault{{Kind: sim.KillHost, Who: n - 1, At: silentFrom}}})
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "| %d | %d | %d |\n", n, quiet.Beats/sim.QuietPeriods, o.GivenUp-silentFrom)
	}
	return b.String(), nil
}

// perHost are the ranks of each of many hosts, and clusters the parts of a system that they make.
const (
	perHost  = 64
	clusters = 16
)

// manyHosts is the table of jobs of up to 65,536 ranks on 1,024 hosts.
func manyHosts(sizes ...int) (string, error) {
	var b strings.Builder
	b.WriteString("| hosts | ranks | shrink: messages, rounds | of the busiest process | revoke: messages, rounds | of the busiest process | a host is lost: messages, rounds after | of the busiest process | of the busiest agent | beats of the busiest agent in a period | news of a death known everywhere after, ms | messages in a second of the system's master | of a cluster's busiest | of others |\n|" + strings.Repeat("---:|", 14) + "\n")
	for _, hosts := range sizes {
		job := sim.Job{Hosts: hosts, Ranks: hosts * perHost, Rounds: true}
		run := func(ops []sim.Op, faults ...sim.Fault) (sim.Outcome, error) {
			j := job
			j.Ops, j.Faults = ops, faults
			return sim.RunJob(j)
		}
		shrunk, err := run([]sim.Op{{Kind: sim.Shrink}})
		if err != nil {
			return "", err
		}
		revoked, err := run(nil, sim.Fault{Kind: sim.Revoke, At: 1})
		if err != nil {
			return "", err
		}
		lost, err := run([]sim.Op{{Kind: sim.Shrink}}, sim.Fault{Kind: sim.KillHost, Who: hosts - 1, At: silentFrom})
		if err != nil {
			return "", err
		}
		m, err := sim.Masters{Clusters: clusters, Processes: job.Ranks, PerHost: perHost, Changes: float64(hosts)}.Run(2000, 1)
		if err != nil {
			return "", err
		}
		row := fmt.Sprintf("| %d | %d | %d, %d | %d | %d, %d | %d | %d, %d | %d | %d | %.1f | %.0f | %.0f | %.0f | %.0f |\n", hosts, job.Ranks, shrunk.Messages, shrunk.Returned, shrunk.Busiest, revoked.Messages, revoked.Revoked-1, revoked.Busiest,
			lost.Messages, lost.Returned-lost.GivenUp, lost.Busiest, lost.Agent, float64(shrunk.AgentBeats)/float64(sim.QuietPeriods), m.Delay, m.System.Messages, m.Cluster.Messages, m.Host.Messages)
		fmt.Print(row)
		b.WriteString(row)
	}
	return b.String(), nil
}

// silentFrom is when a host falls silent.
const silentFrom = 10

const page = `# Messages and rounds of the failure protocols

Counted in the [simulator](../simulation.md), where each message takes one unit of time and nothing else takes any (` + "`go run ./bench/rounds`" + `). In each column: messages, and rounds, which are messages that
follow one another, until the last member has returned. A death is known on the host one unit later, to the members another one.

TABLE
![rounds beside log2 of the members](rounds.svg)

All members are on one host here. An agreement goes through a tree of width 8 four times: 4(n-1) messages, 4 log8 n rounds. Shrink is one agreement. A dead root costs the members one message each to tell the next root what they have, and no rounds but the time until its death is known.
When every second member dies, those below them belong to the nearest living member above them: no round more. Those who have nobody left above them belong to the root, which then has more messages to send itself.
A revocation goes to log4 n others by each member.

The detector of silent hosts works between agents, not members: 65,536 members on hosts of 64 are 1,024 hosts. Messages in one period, and the time from the silence of the last host, a leaf of the tree, until it is given up, where the limit is 300 and
the period 50:

BEATS
## Many hosts

Jobs with 64 ranks on each host. Members agree in a tree of width 8 on their host, and the hosts in one of width 4: rounds grow as the logarithms of both, and nobody has more messages than for its neighbours in the two trees, four times. When the last host is lost,
its processes count as dead when it is given up; then the agent that decides tells each other one of 64 deaths (in the library by one message), and the shrinking, which waits for them, goes on: rounds from there on. The last four columns are of the
[management tree](../systems.md#the-management-tree) of a system in which the same hosts are 16 clusters in a chain, each with a network of its own, while as many processes as there are hosts die or are replaced in each second; messages that came or were relayed.
A master hears of each of its hosts ten times in a second: what the busiest one has grows as the hosts of a cluster do, and not as the ranks; the other agents have the same however many there are. ` + "`go test ./sim -run TestManyHosts`" + ` holds these bounds at smaller sizes.

HOSTS`

var colours = []string{"#c2410c", "#1d4ed8", "#15803d", "#7c3aed", "#0891b2"}

// plot draws the rounds over the logarithm of the members.
func plot(rounds [][]float64) string {
	const width, height, left, bottom, right = 720, 380, 50, 40, 200
	x := func(i int) float64 { return left + float64(i)/float64(len(members)-1)*(width-left-right) }
	y := func(v float64) float64 { return height - bottom - v/70*(height-bottom-40) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/><text x="%d" y="22" font-size="15">rounds by members</text>`+"\n", left)
	for v := 0.0; v <= 70; v += 10 {
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%g</text>`+"\n",
			left, width-right, y(v), y(v), left-6, y(v)+4, v)
	}
	log2 := []float64{}
	for i, n := range members {
		log2 = append(log2, math.Log2(float64(n)))
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x(i), height-bottom+18, n)
	}
	line := func(name, colour string, values []float64, row int) {
		var points []string
		for i, v := range values {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(i), y(v)))
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/><text x="%d" y="%d" fill="%s">%s</text>`+"\n",
			strings.Join(points, " "), colour, width-right+15, 60+20*row, colour, name)
	}
	line("log2 of the members", "#9ca3af", log2, 0)
	for i, p := range protocols {
		line(p.name, colours[i], rounds[i], i+1)
	}
	return b.String() + "</svg>\n"
}
