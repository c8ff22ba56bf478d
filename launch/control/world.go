package control

import (
	"net/netip"

	"libspx/core/ident"
	"libspx/launch/abroad"
)

// Questions of processes of other hosts, and the making of processes that are spawned there.

// A Question is a request of a process. Text is a message of package service in the form in which
// it travels, without its length; empty: the process has hung up. Number is that of its connection.
type Question struct {
	Number uint64
	Text   []byte
}

// An Answer is for the connection with that Number.
type Answer struct {
	Number uint64
	Text   []byte
}

// A Step is one of those in which a spawned world is made. Each begins when all hosts are done with
// the one before.
type Step int

const (
	// find the programs, and make the sockets on which the processes will listen
	Prepare Step = iota + 1
	Enter        // enter all processes into the memory file
	Start        // start this host's processes
	Drop         // nothing comes of it: forget what was prepared. Not answered
)

// A World is a step of making a spawned world. Processes that were entered, and were not started,
// are taken back by Publish.
type World struct {
	Number    uint32
	Step      Step
	Question  []byte    // of Prepare: that of the process which spawns (service.Spawn)
	Members   []Member  // of Prepare: by rank
	Addresses []Address // of Enter
	// of Prepare, for a part of a system that is started again: which start of it this is
	Life uint32
	// of Prepare, for a part: so many of the members, the last, are not made before a rank has died
	// (job.StartCold)
	Cold int
	// of Prepare, in place of a question: processes of another job. There is no Start
	Externals []External
}

// An External is a process of another job that gets a number in the files of this one.
type External struct {
	ID           ident.ProcID
	Proc, Host   int
	Serial, Life uint32
	At           netip.AddrPort
}

// Parted reports that an external process has ended.
type Parted struct {
	Who  ident.ProcID
	Proc int
	Life uint32
	How  abroad.How
}

// A Link names the job of the calling, or answering, agent, and how the processes of both will
// authenticate each other, which the caller chooses.
type Link struct {
	Version int
	Job     [16]byte
	Pact    Pact
	Off     string // in an answer: why there is no link
	Crossed bool   // then: since this agent calls that one at the same time, and that call counts
}

// A Pact is an identity of two jobs, for connections between their processes. Neither job's key
// goes into it.
type Pact struct {
	ID  [16]byte
	Key [32]byte
}

// A Member is a process of a spawned world. Numbers are given by the agent of spxrun's host, for
// all.
type Member struct {
	Proc, Host, Program int
	Serial, Life        uint32
}

// Made reports that a host is done with a step.
type Made struct {
	Number    uint32
	Step      Step
	Text      string    // why it cannot be done; empty: it is
	Held      []int     // of Prepare: numbers that are still in use there
	Addresses []Address // of Prepare: where its processes will listen
}
