// Package explain shows which algorithm a collective call uses, and why, for running and for
// hypothetical jobs (docs/collectives.md). It collects what the library collects in a process: the
// places of ranks, and the settings. The choice is made by core/coll, as in processes; nothing is
// decided here.
package explain

import (
	"errors"
	"fmt"
	"slices"

	"libspx/core/coll"
	"libspx/net/conn"
)

// A Process is one of a job.
type Process struct {
	Host        int // number in the job
	Node, Cache int // 1 + what it is bound to; 0: it is bound to none
	Later       bool
}

// A Situation is a communicator in a job: where its ranks are, and what is set.
type Situation struct {
	Ranks    []Process // by rank; of the local group of an intercommunicator
	World    int       // size of the job's first world
	Procs    int       // processes of the job
	CPUs     int       // processors that the job may use on a host
	TCP      bool      // processes of a host talk over the network
	Hostname string
	Getenv   func(string) string // the environment of the processes
}

// A Call is a collective on it.
type Call struct {
	Kind       coll.Kind
	Bytes      int64 // coll.Measure
	Element    int64 // size of the datatype
	Gaps       bool  // it is not contiguous
	Ordered    bool  // the operation does not commute
	InPlace    bool
	Persistent bool
	// ranks of the remote group of an intercommunicator; 0: it is an intracommunicator
	Remote int
}

// Explain returns the choice.
func (s *Situation) Explain(c Call) (*coll.Explanation, error) {
	a, err := s.args(c)
	if err != nil {
		return nil, err
	}
	return coll.Explain(a)
}

func (s *Situation) args(c Call) (coll.Args, error) {
	a := coll.Args{Kind: c.Kind, Size: len(s.Ranks), Remote: c.Remote, Commute: !c.Ordered,
		InPlace: c.InPlace, Persistent: c.Persistent,
		RType: coll.Type{Size: c.Element, Extent: c.Element, TrueExtent: c.Element, Contig: true}}
	switch {
	case a.Size == 0:
		return a, errors.New("a communicator has a rank")
	case c.Element < 1 || c.Element > 1<<30:
		return a, fmt.Errorf("a datatype of %d bytes", c.Element)
	case c.Gaps:
		a.RType.Extent, a.RType.Contig = 2*c.Element, false
	}
	if a.SType = a.RType; c.Remote > 0 {
		a.Root = coll.RootSelf
	}
	around, err := s.around(c.Remote > 0)
	if err != nil {
		return a, err
	}
	near := around.Near()
	if near.Relayed, err = s.relayed(c.Remote > 0); err != nil {
		return a, err
	}
	a.Place(around, &near)
	a.Share(!near.Several && !s.TCP && a.Size > 1)
	if a.Force, a.ForcedBy, a.ForceFrom, err = s.forced(c.Kind); err != nil {
		return a, err
	}
	return a.WithBytes(c.Bytes), nil
}

func (s *Situation) policy() (p conn.Policy, err error) {
	for _, v := range []struct {
		name  string
		parse func(string) error
	}{{"SPX_CONNECTIONS", p.Parse}, {"SPX_TOPOLOGY", p.ParseTopology}} {
		if err := v.parse(s.Getenv(v.name)); err != nil {
			return p, fmt.Errorf("%s=%s: %w", v.name, s.Getenv(v.name), err)
		}
	}
	return p, nil
}

// around is where the ranks are, as capi/coll.go finds it in a process.
func (s *Situation) around(inter bool) (*coll.Around, error) {
	p, err := s.policy()
	if err != nil {
		return nil, err
	}
	w := &coll.Around{CPUs: s.CPUs, TCP: s.TCP, Inter: inter, Switches: len(p.Switches) > 0}
	for _, r := range s.Ranks {
		w.Places = append(w.Places, coll.Place{Host: uint32(r.Host),
			Switch: uint32(p.SwitchOf(r.Host)), Node: uint32(r.Node), Cache: uint32(r.Cache)})
		w.Switches = w.Switches && r.Later == s.Ranks[0].Later
	}
	return w, nil
}

func (s *Situation) relayed(inter bool) ([]int32, error) {
	p, err := s.policy()
	if err != nil || inter {
		return nil, err
	}
	var list []conn.Process
	for rank, r := range s.Ranks {
		list = append(list, conn.Process{Host: r.Host, Rank: rank, Later: r.Later})
	}
	return p.Relayed(list, max(s.World, 1), s.TCP), nil
}

// forced is the setting for an operation, and its source.
func (s *Situation) forced(k coll.Kind) (name string, by coll.Reason, file string, err error) {
	if name := s.Getenv(coll.EnvName(k)); name != "" {
		return without(name), coll.ByVariable, "", nil
	}
	t, err := readTable(s.Getenv, s.Hostname)
	if err != nil {
		return "", coll.Unknown, "", err
	}
	return without(t.value(coll.EnvName(k), s.Procs > s.CPUs)), coll.ByTuning, t.path, nil
}

// without is a choice's name, "" for the preset.
func without(name string) string {
	if name == "auto" {
		return ""
	}
	return name
}

// Hosts is the number of hosts that the ranks are on.
func (s *Situation) Hosts() int {
	seen := map[int]bool{}
	for _, r := range s.Ranks {
		seen[r.Host] = true
	}
	return len(seen)
}

// Pick is the situation of a communicator of some of the ranks, in ascending order.
func (s *Situation) Pick(ranks []int) (*Situation, error) {
	out := *s
	out.Ranks = nil
	for _, r := range slices.Sorted(slices.Values(ranks)) {
		if r < 0 || r >= len(s.Ranks) {
			return nil, fmt.Errorf("rank %d of %d", r, len(s.Ranks))
		}
		out.Ranks = append(out.Ranks, s.Ranks[r])
	}
	return &out, nil
}

// Element is the size of a datatype that is usual for an operation.
func Element(k coll.Kind) int64 {
	switch k {
	case coll.Reduce, coll.Allreduce, coll.ReduceScatter, coll.ReduceScatterBlock, coll.Scan,
		coll.Exscan:
		return 8
	}
	return 1
}
