package control

import (
	"fmt"
	"slices"
)

// Agents that reach the deciding agent through another agent: those of the other hosts of a cluster
// whose spxrun has attached it to a system (launch/agent, members.go). That agent starts them,
// prints what their processes write, and forwards all other messages, in both directions, as
// Relayed.

// Own is what the spxrun of an attached cluster was given, for the agents of its other hosts: to
// each of them, first. It answers with Reach; the Job comes later, from the one that decides.
type Own struct{ Job *Job }

// Relayed is a message of an agent behind the sender, or for one behind the receiver. These are
// numbered by the agent in between.
type Relayed struct {
	Index   int
	Message *Message // nil: one of the two below
	End     *Ending  // upwards, last
	Kill    bool     // downwards: break the connection with it
}

// Ending is how the connection with an agent has ended.
type Ending struct {
	How     string
	Changed bool // bytes were changed on the way
	Quiet   bool // it had been silent for some time
}

// Host is another host of a cluster that comes, by its name in the system file.
type Host struct {
	Name  string
	Slots int
}

// Placed gives the hosts for the processes of a part of an arriving cluster: 0 is that of its
// spxrun, the rest are those of Arrival.Hosts.
type Placed struct {
	Part string // as in Declared
	On   []int  // by process
}

// mostRelays is how many agents a message may pass.
const mostRelays = 16

// checkRelayed returns an error for an invalid relayed message.
func (m *Message) checkRelayed() error {
	for depth := 0; m.Relayed != nil && m.Relayed.Message != nil; depth++ {
		if m.Relayed.Index < 1 || depth == mostRelays {
			return fmt.Errorf("control: a message that was relayed %d times, from number %d", depth,
				m.Relayed.Index)
		}
		m = m.Relayed.Message
	}
	if m.Relayed != nil && m.Relayed.Index < 1 {
		return fmt.Errorf("control: a message from number %d", m.Relayed.Index)
	}
	if a := m.Attach; a != nil {
		return a.check()
	}
	if s := m.Stand; s != nil {
		for _, b := range s.Behind {
			if b.Host < 1 || b.Index < 1 {
				return fmt.Errorf("control: host %d behind another one, as number %d", b.Host,
					b.Index)
			}
		}
		if s.Arrival != nil {
			return s.Arrival.check()
		}
	}
	return nil
}

// check returns an error for an invalid arrival.
func (a *Arrival) check() error {
	if a.Version != Version {
		return fmt.Errorf("control: host %q has version %d, this is version %d", a.Host, a.Version,
			Version)
	}
	for _, p := range a.Placed {
		if slices.ContainsFunc(p.On, func(h int) bool { return h < 0 || h > len(a.Hosts) }) {
			return fmt.Errorf("control: %s of cluster %q is to run on hosts %v of %d", p.Part,
				a.Cluster, p.On, len(a.Hosts)+1)
		}
	}
	return nil
}

// On is where the processes of a part are to run; without word of it, on the host of its spxrun.
func (a *Arrival) On(part string, procs int) ([]int, error) {
	for _, p := range a.Placed {
		if p.Part != part {
			continue
		}
		if len(p.On) != procs {
			return nil, fmt.Errorf("its file has %d processes of %s, the system that runs has %d",
				len(p.On), part, procs)
		}
		return slices.Clone(p.On), nil
	}
	return make([]int, procs), nil
}
