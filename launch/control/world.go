package control

// Questions of processes of other hosts, and the making of processes that are spawned there.

// A Question is what a process asks. Text is a message of package service in the form in which it travels, without its length; empty: the process has
// hung up. Number is that of its connection.
type Question struct {
	Number uint64
	Text   []byte
}

// An Answer is for the connection with that Number.
type Answer struct {
	Number uint64
	Text   []byte
}

// A Step is one of those in which a spawned world is made. Each begins when all hosts are done with the one before.
type Step int

const (
	Prepare Step = iota + 1 // find the programs, and make the sockets on which the processes will listen
	Enter                   // enter all processes into the memory file
	Start                   // start this host's processes
	Drop                    // nothing comes of it: forget what was prepared. Not answered
)

// A World is a step of making a spawned world. Processes that were entered, and were not started, are taken back by Publish.
type World struct {
	Number    uint32
	Step      Step
	Question  []byte    // of Prepare: that of the process which spawns (service.Spawn)
	Members   []Member  // of Prepare: by rank
	Addresses []Address // of Enter
	Life      uint32    // of Prepare, for a part of a system that is started again: which start of it this is
}

// A Member is a process of a spawned world. Numbers are given by the agent of spxrun's host, for all.
type Member struct {
	Proc, Host, Program int
	Serial, Life        uint32
}

// Made says that a host is done with a step.
type Made struct {
	Number    uint32
	Step      Step
	Text      string    // why it cannot be done; empty: it is
	Held      []int     // of Prepare: numbers that are still in use there
	Addresses []Address // of Prepare: where its processes will listen
}
