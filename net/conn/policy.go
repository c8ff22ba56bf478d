package conn

import (
	"fmt"
	"strconv"
	"strings"
)

// Policy is the content of SPX_CONNECTIONS and SPX_TOPOLOGY: the connections that processes keep.
type Policy struct {
	All    bool // a connection with each peer, at once
	Relays bool
	Random int // neighbours by chance; 0: by the topology
	Cache  int

	Groups   int   // of processes, as if they were on so many switches; 0: use Switches
	Switches []int // of each host
}

const defaultCache = 16

// Parse parses a value of SPX_CONNECTIONS.
func (p *Policy) Parse(text string) error {
	words := strings.Split(text, ":")
	number := func(i, preset, least int) (int, error) {
		if i >= len(words) {
			return preset, nil
		}
		n, err := strconv.Atoi(words[i])
		if err != nil || n < least || n > 1<<20 {
			return 0, fmt.Errorf("%q is no number of connections", words[i])
		}
		return n, nil
	}
	most := 1
	var err error
	switch words[0] {
	case "", "demand":
	case "all":
		p.All = true
	case "topology":
		p.Relays, most = true, 2
		p.Cache, err = number(1, defaultCache, 0)
	case "random":
		p.Relays, most = true, 3
		if p.Random, err = number(1, 64, 1); err == nil {
			p.Cache, err = number(2, 0, 0)
		}
	default:
		return fmt.Errorf("there are demand, all, topology:K and random:N:K, not %s", words[0])
	}
	if err == nil && len(words) > most {
		err = fmt.Errorf("%q is too much", strings.Join(words[most:], ":"))
	}
	return err
}

// ParseTopology parses a value of SPX_TOPOLOGY.
func (p *Policy) ParseTopology(text string) error {
	if n, ok := strings.CutPrefix(text, "groups:"); ok {
		groups, err := strconv.Atoi(n)
		if err != nil || groups < 1 || groups > 1<<20 {
			return fmt.Errorf("%q is no number of groups", n)
		}
		p.Groups = groups
		return nil
	}
	for _, word := range strings.FieldsFunc(text,
		func(r rune) bool { return r == ',' || r == ' ' }) {
		s, err := strconv.Atoi(word)
		if err != nil || s < 0 || s > 1<<20 {
			return fmt.Errorf(
				"%q is no number of a switch; it is groups:N, or one for each host, as 0,0,1,1",
				word)
		}
		p.Switches = append(p.Switches, s)
	}
	return nil
}

// SwitchOf is the switch of a host: one of its own, beyond the known ones, if its switch is
// unknown.
func (p *Policy) SwitchOf(host int) int {
	if host < len(p.Switches) {
		return p.Switches[host]
	}
	return 1<<20 + 1 + host
}

// Process is the data about a process that Relayed needs.
type Process struct {
	Host, Rank int  // Rank: in its first world
	Later      bool // it is of another world, of processes that were started later
	External   bool // it is of another job
}

// Relayed numbers the switches of processes by which messages between them are relayed; nil where
// they are not, or may not be so at all of the processes. All processes that relay for each other
// got the same switches, in whatever world they are: else the first connection between them ends
// the job. world is the size of the first world; tcp: processes of a host communicate over the
// network.
func (p *Policy) Relayed(procs []Process, world int, tcp bool) []int32 {
	if !p.Relays || p.Random > 0 {
		return nil
	}
	several := tcp
	of := make([]int, len(procs))
	for i, at := range procs {
		if at.External || p.Groups > 0 && at.Later {
			return nil
		}
		several = several || at.Host != procs[0].Host
		if of[i] = p.SwitchOf(at.Host); p.Groups > 0 {
			of[i] = at.Rank * p.Groups / world
		}
	}
	if !several {
		return nil
	}
	near := make([]int32, len(of))
	for i, s := range Dense(of) {
		near[i] = int32(s)
	}
	return near
}

// Dense numbers switches from 0 in the order in which they occur; -1 stays.
func Dense(of []int) []int {
	number := map[int]int{-1: -1}
	for i, s := range of {
		if _, ok := number[s]; !ok {
			number[s] = len(number) - 1
		}
		of[i] = number[s]
	}
	return of
}
