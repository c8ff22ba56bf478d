// Command mcast measures how long a message from a master to r of 256 other ranks takes (programs/mcast.c): by MPIX_Mcast, by MPI_Bcast over a communicator that was made before,
// and by one that is made for it, under libspx and the peers. It writes a table, plots and the figures into docs/bench. Another call goes on where the last one ended, also within
// a cell: all runs are kept. It says how many cells lack runs, or "complete".
//
//	go run ./bench/mcast
//	go run ./bench/mcast -for 40s -seconds 15 -limit 60s       a piece; repeat it until it says "complete"
//	go run ./bench/mcast -impls mpich -sizes 81920 -seconds 3 -for 70s
//	go run ./bench/mcast -hosts 8
//	go run ./bench/mcast -sim
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
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

// cell is what runs of the program have told of one way and one number of members.
type cell struct {
	Impl, How  string
	Bytes, R   int
	Hosts      int `json:",omitempty"` // namespaces that the ranks are on; 0: one host
	Runs       int
	Us, FreeUs float64  // until the last member has the data; until the master's call returns: means without a tenth at each end
	Why        string   `json:",omitempty"` // it did not come to its end
	Each       []run    `json:",omitempty"`
	First      []run    `json:",omitempty"` // of each job: memory is touched for the first time; not among Each
	Machines   []string `json:",omitempty"`
}

// run is one message: until the last member has the data; until the master's call returns.
type run [2]float64

// trimmed is the mean of one of the two without a tenth of the runs at each end.
func trimmed(runs []run, which int) float64 {
	var all []float64
	for _, r := range runs {
		all = append(all, r[which])
	}
	slices.Sort(all)
	cut := len(all) / 10
	all = all[cut : len(all)-cut]
	sum := 0.0
	for _, v := range all {
		sum += v
	}
	return math.Round(100*sum/float64(len(all))) / 100
}

// add appends runs to their cell, which is made if it is not there or has means alone.
func add(cells []cell, c cell) []cell {
	i := slices.IndexFunc(cells, func(o cell) bool {
		return o.Impl == c.Impl && o.How == c.How && o.Bytes == c.Bytes && o.R == c.R && o.Hosts == c.Hosts
	})
	if i < 0 {
		cells = append(cells, cell{})
		i = len(cells) - 1
	} else {
		c.Each = append(slices.Clone(cells[i].Each), c.Each...)
		c.First = append(slices.Clone(cells[i].First), c.First...)
		c.Machines = cells[i].Machines
		if len(cells[i].Each) == 0 && cells[i].Runs > 0 {
			c.Machines = nil // its means are replaced
		}
	}
	c.Machines = machine.Add(c.Machines)
	if c.Runs = len(c.Each); c.Runs > 0 {
		c.Us, c.FreeUs = trimmed(c.Each, 0), trimmed(c.Each, 1)
	}
	cells[i] = c
	return cells
}

// lacks is how many runs the cells of an implementation, a size and a number of members want to have the number of runs; none when they came to no end.
func (o *options) lacks(cells []cell, impl, size, r string) int {
	have, known := o.runs, false
	for _, c := range cells {
		if c.Impl == impl && c.Hosts == o.hosts && strconv.Itoa(c.Bytes) == size && strconv.Itoa(c.R) == r {
			if c.Why != "" {
				return 0
			}
			known = true
			have = min(have, max(len(c.Each), c.Runs/o.runs*o.runs))
		}
	}
	if !known {
		return o.runs
	}
	return o.runs - have
}

type options struct {
	impls, sizes, members, out string
	runs, seconds, hosts       int
	limit, budget              time.Duration
	render, sim, again         bool
}

func main() {
	var o options
	flag.StringVar(&o.impls, "impls", "spx mpich openmpi", "implementations")
	flag.StringVar(&o.sizes, "sizes", "81920 8388608", "bytes")
	flag.StringVar(&o.members, "members", "8 16 32 64 128 256", "numbers of members, of 256")
	flag.StringVar(&o.out, "out", "docs/bench", "folder of mcast.json, mcast.md and the plots")
	flag.IntVar(&o.runs, "runs", 100, "runs of each cell")
	flag.IntVar(&o.seconds, "seconds", 10, "begin no run of a cell after so many seconds")
	flag.DurationVar(&o.limit, "limit", 3*time.Minute, "a program that takes longer hangs")
	flag.DurationVar(&o.budget, "for", 0, "begin no program after this time; 0: until all are done")
	flag.IntVar(&o.hosts, "hosts", 0, "with the ranks on so many hosts, which are network namespaces (as root)")
	flag.BoolVar(&o.render, "render", false, "only write the table and the plots again")
	flag.BoolVar(&o.again, "again", false, "forget first what was measured of these implementations, sizes and members")
	flag.BoolVar(&o.sim, "sim", false, "only simulate the plans on the paper's network, and write mcast-sim.md and its plots")
	flag.Parse()
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/mcast:", err)
		os.Exit(1)
	}
}

func (o *options) run() error {
	if o.sim {
		return simulate(o.out)
	}
	cells, err := o.load()
	if o.again {
		cells = slices.DeleteFunc(cells, func(c cell) bool {
			return c.Hosts == o.hosts && slices.Contains(strings.Fields(o.impls), c.Impl) && slices.Contains(strings.Fields(o.sizes), strconv.Itoa(c.Bytes)) &&
				slices.Contains(strings.Fields(o.members), strconv.Itoa(c.R))
		})
	}
	if err == nil && !o.render {
		cells, err = o.measure(cells)
	}
	if err != nil {
		return err
	}
	return o.save(cells)
}

func (o *options) load() ([]cell, error) {
	var cells []cell
	text, err := os.ReadFile(filepath.Join(o.out, "mcast.json"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return cells, json.Unmarshal(text, &cells)
}

// measure adds the cells that are missing: one program for each implementation, size and number of members.
func (o *options) measure(cells []cell) ([]cell, error) {
	dir, err := os.MkdirTemp("", "spx-mcast")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	began, open := time.Now(), 0
	name := ""
	if o.hosts > 0 {
		var down func()
		if name, down, err = hostsUp(o.hosts, dir); err != nil {
			return nil, err
		}
		defer down()
	}
	for _, impl := range strings.Fields(o.impls) {
		program, launcher, err := prepare(dir, impl)
		if err != nil {
			return nil, err
		}
		switch {
		case o.hosts > 0 && impl == "spx":
			launcher, err = onHosts(launcher[0], name, o.hosts)
		case o.hosts > 0:
			launcher = append(launcher, "-H", fmt.Sprintf("%s:%d", name, o.hosts))
		}
		if err != nil {
			return nil, err
		}
		for _, size := range strings.Fields(o.sizes) {
			for _, r := range strings.Fields(o.members) {
				lacks := o.lacks(cells, impl, size, r)
				if lacks > 0 && (o.budget == 0 || time.Since(began) < o.budget) {
					cells = o.more(cells, append(slices.Clone(launcher), "-n", o.ranks(impl, r), program), impl, size, r, lacks)
					if err := o.save(cells); err != nil {
						return nil, err
					}
					lacks = o.lacks(cells, impl, size, r)
				}
				if lacks > 0 {
					open++
				}
			}
		}
	}
	if open > 0 {
		fmt.Printf("%d combinations of implementation, size and members lack runs\n", open)
	} else {
		fmt.Println("complete")
	}
	return cells, nil
}

// prepare compiles the program for an implementation, and tells what launches it.
func prepare(dir, impl string) (program string, launcher []string, err error) {
	build := os.Getenv("SPX_BUILD")
	if build == "" {
		build = "build"
	}
	if build, err = filepath.Abs(build); err != nil {
		return "", nil, err
	}
	peers, err := filepath.Abs("scripts/peers")
	if err != nil {
		return "", nil, err
	}
	program = filepath.Join(dir, "mcast-"+impl)
	compile := []string{filepath.Join(build, "bin/mpicc"), "-DSPX"}
	launcher = []string{filepath.Join(build, "bin/spxrun")}
	if impl != "spx" {
		compile, launcher = []string{peers, "native", impl}, []string{peers, "run", impl}
	}
	compile = append(compile, "-O2", "-o", program, "bench/mcast/programs/mcast.c")
	if out, err := exec.Command(compile[0], compile[1:]...).CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("%s: %w\n%s", compile[0], err, out)
	}
	return program, launcher, nil
}

// ranks is how many there are: the master and 256 others under libspx. The peers' idle processes poll, and on few processors would keep those that take part from
// theirs: so there are no others.
func (o *options) ranks(impl, r string) string {
	n, err := strconv.Atoi(r)
	if impl == "spx" || err != nil {
		return "257"
	}
	return strconv.Itoa(n + 1)
}

// hostsUp makes n hosts on one switch, which see that folder; down removes them.
func hostsUp(n int, dir string) (name string, down func(), err error) {
	const script = "scripts/hosts"
	name = fmt.Sprintf("m%x-", os.Getpid()%0x1000000)
	up := exec.Command(script, "up", name, strconv.Itoa(n))
	up.Env = append(os.Environ(), "HOSTS_SHARED="+dir)
	if out, err := up.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("%s up: %w\n%s", script, err, out)
	}
	return name, func() {
		if out, err := exec.Command(script, "down", name).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s down: %v\n%s", script, err, out)
		}
	}, nil
}

// onHosts starts as many of the 256 ranks on each host, and the master, which is the last rank, on the last one.
func onHosts(spxrun, name string, n int) (launcher []string, err error) {
	var list []string
	for i := 1; i <= n; i++ {
		slots := 256 / n
		if i == n {
			slots += 1 + 256%n
		}
		list = append(list, fmt.Sprintf("%s%d:%d", name, i, slots))
	}
	script, err := filepath.Abs("scripts/hosts")
	return []string{script, "on", name + "1", spxrun, "--rsh", script + " rsh", "-host", strings.Join(list, ",")}, err
}

// more adds up to n runs of each way.
func (o *options) more(cells []cell, args []string, impl, size, r string, n int) []cell {
	how := "bcast,create"
	if impl == "spx" {
		how = "mcast,bcast,create"
	}
	args = append(args, how, size, strconv.Itoa(n), strconv.Itoa(o.seconds), r)
	began := time.Now()
	var out bounded.Buffer
	cmd := exec.Command("timeout", append([]string{"-k", "2", fmt.Sprint(o.limit.Seconds())}, args...)...)
	cmd.Stdout, cmd.WaitDelay = &out, 5*time.Second
	err := cmd.Run()
	got := map[string]*cell{}
	for line := range strings.Lines(out.String()) {
		var v run
		c := cell{Impl: impl, Hosts: o.hosts}
		line, first := strings.CutPrefix(line, "first ")
		if n, _ := fmt.Sscanf(line, "%s %d %d %g %g", &c.How, &c.Bytes, &c.R, &v[0], &v[1]); n != 5 {
			continue
		}
		if got[c.How] == nil {
			got[c.How] = &c
		}
		if first {
			got[c.How].First = append(got[c.How].First, v)
		} else {
			got[c.How].Each = append(got[c.How].Each, v)
		}
	}
	if len(got) == 0 {
		c := cell{Impl: impl, Hosts: o.hosts, How: "bcast", Why: fmt.Sprint(err)}
		if time.Since(began) >= o.limit {
			c.Why = fmt.Sprint("not within ", o.limit)
		}
		c.Bytes, _ = strconv.Atoi(size) // they are numbers that flags have given
		c.R, _ = strconv.Atoi(r)
		got[c.How] = &c
	}
	for _, how := range slices.Sorted(maps.Keys(got)) {
		if len(got[how].Each) == 0 && got[how].Why == "" {
			got[how].Why = fmt.Sprintf("nothing behind the first message (%v)", err)
		}
		cells = add(cells, *got[how])
		c := got[how]
		fmt.Printf("%s %s: %d bytes to %d, %d runs more, the first of the job %v %s\n", impl, how, c.Bytes, c.R, len(c.Each), c.First, c.Why)
	}
	return cells
}

func (o *options) save(cells []cell) error {
	var b strings.Builder
	b.WriteString("[\n")
	for i, c := range cells {
		line, err := json.Marshal(c)
		if err != nil {
			return err
		}
		b.Write(line)
		if i < len(cells)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString("]\n")
	files := map[string]string{"mcast.json": b.String(), "mcast.md": table(cells)}
	for name, text := range plots(cells) {
		files[name] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(o.out, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}
