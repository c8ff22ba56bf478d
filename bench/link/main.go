// Command link measures what a link between two clusters can do through 1, 2 and 4 I/O processes, beside two ranks that talk directly and beside sockets alone:
// latency, messages and bytes in a second for 8 bytes to 8 MiB, and throughput by the number of messages on their way. On one machine through shared memory and over TCP and,
// as root, on hosts (network namespaces) of a processor each that have a network of RATE between them. The runs take turns, round after round. They are kept in
// docs/bench/link.json, and another call goes on; link.md and the plots are written anew.
//
//	go run ./bench/link
//	go run ./bench/link -rounds 5 -for 200s
//	go run ./bench/link -rounds 5 -deal shm       a link to two ranks, dealt out in turn and on demand, by messages that are kept and not: a table on standard output
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"libspx/bench/machine"
)

// setting is a way to measure: the name of a column.
type setting struct {
	net  string // shm, tcp or hosts
	iops int    // 0: direct; -1: sockets alone
}

var nets = []string{"shm", "tcp", "hosts"}

func (s setting) String() string {
	switch s.iops {
	case -1:
		return s.net + "/sockets"
	case 0:
		return s.net + "/direct"
	}
	return fmt.Sprintf("%s/%d", s.net, s.iops)
}

func settings() (out []setting) {
	for _, net := range nets {
		for _, k := range []int{-1, 0, 1, 2, 4} {
			if net == "shm" && k < 0 {
				continue
			}
			out = append(out, setting{net, k})
		}
	}
	return out
}

// results are figures by setting and by what was measured ("latency 8"): one for each round.
type results struct {
	Rate    string                          `json:"rate"` // of the hosts' network
	Figures map[string]map[string][]float64 `json:"figures"`
	Rounds  map[string]int                  `json:"rounds"`

	Machines []string `json:"machines,omitempty"`
}

type options struct {
	out    string
	rounds int
	budget time.Duration
	build  string
	dir    string // for programs and system files
}

func main() {
	var o options
	flag.StringVar(&o.out, "out", "docs/bench", "folder of link.json, link.md and the plots")
	flag.IntVar(&o.rounds, "rounds", 5, "rounds that there shall be")
	flag.DurationVar(&o.budget, "for", 0, "begin no run after this time; another call goes on. 0: until all are done")
	deal := flag.String("deal", "", "shm or tcp: measures ways to deal messages out, and nothing else")
	in := flag.String("sockets-in", "", "address: one end of a connection that is measured")
	to := flag.String("sockets-out", "", "address: the other end")
	flag.Parse()
	work := o.measure
	switch {
	case *deal != "":
		work = func() error {
			if err := o.prepare(); err != nil {
				return err
			}
			defer os.RemoveAll(o.dir)
			return o.deal(*deal)
		}
	case *in != "":
		work = func() error { return socketsIn(*in) }
	case *to != "":
		work = func() error { return socketsOut(*to) }
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/link:", err)
		os.Exit(1)
	}
}

func (o *options) measure() error {
	kept := filepath.Join(o.out, "link.json")
	r := &results{Rate: rate, Figures: map[string]map[string][]float64{}, Rounds: map[string]int{}}
	if data, err := os.ReadFile(kept); err == nil {
		if err := json.Unmarshal(data, r); err != nil {
			return fmt.Errorf("%s: %w", kept, err)
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := o.prepare(); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	if os.Geteuid() == 0 {
		if err := hostsUp(o.dir); err != nil {
			return err
		}
		defer hostsDown()
	}
	began := time.Now()
	all := settings()
	for round := range o.rounds {
		for _, i := range rand.Perm(len(all)) {
			s := all[i]
			if r.Rounds[s.String()] > round || (s.net == "hosts" && os.Geteuid() != 0) {
				continue
			}
			if o.budget > 0 && time.Since(began) > o.budget {
				return r.write(o.out, kept)
			}
			if err := o.run(r, s); err != nil {
				return errors.Join(err, r.write(o.out, kept))
			}
			r.Machines = machine.Add(r.Machines)
			fmt.Println(s)
		}
	}
	return r.write(o.out, kept)
}

// prepare builds the programs.
func (o *options) prepare() error {
	if o.build = os.Getenv("SPX_BUILD"); o.build == "" {
		o.build = "build"
	}
	var err error
	if o.build, err = filepath.Abs(o.build); err != nil {
		return err
	}
	if o.dir, err = os.MkdirTemp("", "spx-link-"); err != nil {
		return err
	}
	for _, program := range []string{"stream", "deal"} {
		cmd := exec.Command(filepath.Join(o.build, "bin/mpicc"), "-O2", "bench/link/programs/"+program+".c", "-o", filepath.Join(o.dir, program))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", cmd, err, out)
		}
	}
	return nil
}
