package control

import (
	"net/netip"

	"libspx/launch/job"
	"libspx/launch/reach"
)

// Messages by which another agent comes to decide when the one before is lost: it announces that
// (Lead), each host answers how its processes are (Stand), and how far their copies have come
// (Copy).

// A Lead says that its sender decides, after so many others (package launch/follow).
type Lead struct {
	Era uint64
	// the sender, but in the last word to the agent before: known by the connection, where that is
	// between these two
	Host  int
	Meets string // of a system whose clusters are started one by one: where they call from now on
}

// A Stand is how the processes of a host are, as its agent knows, and which numbers it has seen
// given.
type Stand struct {
	Procs          []Standing
	Serial, Worlds uint32         // of the next process, and the largest of a world
	Groups         uint32         // the largest of a group of processes of another job
	Lives          map[int]uint32 // of processes that were added, by number: the latest incarnation
	// of a system whose clusters are started one by one: how this host and its processes are
	// reached
	Here   *Here
	Layout uint64 // version of the table of the system; 0: there is none
	Epoch  uint32 // of the tree of its masters
	Master int    // process of this host's master; 0: none is there now
	// of the host of a cluster that has come by itself: as which it has
	Arrival *Arrival
	Behind  []Behind // likewise: who is reached through its agent

	Ports []string          // those that processes of this host have opened
	Names map[string]string // those that they have published, with their ports
	// of these names: the name services (names.Place.Encode) that info keys have named
	Servers map[string]string
}

// Here is how a host is reached.
type Here struct {
	Reach     reach.Host
	At        netip.Addr     // where its processes listen,
	Addresses []Address      // each of them,
	Beat      netip.AddrPort // and as in Ready
	Mesh      netip.AddrPort
}

// A Behind is a host that is there, whose agent is reached through the one that says this.
type Behind struct {
	Host  int
	Index int // as in Relayed
}

// A Standing is how a process is: it lives, or End is how it has ended.
type Standing struct {
	Proc, Pid int
	End       *job.Ended
	Passed    bool // in a system: it waits in MPI_Init for no part any more
}

// A Copy says how far a host's copy has come.
type Copy struct {
	Number  int // of the question
	Leader  int // host that leads the sequence, as far as this one knows; -1: none
	Has     bool
	Votes   bool
	Events  uint64
	Digest  string // of what these have made of it
	Refused uint64 // calls of agents that none of the job's has made
}
