package ckpt

// What an Object needs of its surroundings. None of it is called with a lock held. What waits may
// not return: the wait was left by the program, and the caller's goroutine is unwound, with what it
// has deferred.

// A Buffer is memory of the program, as the shell describes it: the Object only passes it on.
type Buffer any

// A Message goes to or comes from a process. Those of a pair with the same tag are received in the
// order in which they were sent.
type Message struct {
	Peer, Tag int
	Data      []byte // what is sent, or where what comes is stored: exactly as many bytes
	// if not nil, of a message to be received: it goes into the program's memory instead
	Into Buffer
}

// A Pending is work in the background.
type Pending interface {
	// Wait waits for its end. If several messages fail it returns the error of one of them.
	Wait() error
	// Abandon is called instead of Wait. over is called when no memory of it is needed any more,
	// maybe from another thread.
	Abandon(over func())
}

// A Transfer is messages that are to be received and sent.
type Transfer interface {
	Pending
	Begin() // it may wait
}

// Peers are the processes that an object is attached to, all of one communicator that nothing else
// uses.
type Peers interface {
	Rank() int
	Size() int
	// Host is a number that all processes of this process's host have, and no other.
	Host() int
	// Gather gives all processes what each of them has, by rank: as many words of each.
	Gather(mine []uint64) ([]uint64, error)
	// Post makes a transfer of messages that has not been begun. failed is called when one has
	// failed, before the wait for the rest.
	Post(receives, sends []Message, failed func()) (Transfer, error)
	// Revoke makes all calls fail that any process makes here, or is in. It does not wait.
	Revoke()
	// Leave gives the communicator up. It does not wait.
	Leave()
}

// Heap is the memory of this process. Alloc and Free are for parts, which may be large.
type Heap interface {
	Alloc(bytes int64) []byte // nil: there is none. It is not cleared
	Free([]byte)
	Pack([]Packing)
	Release(Buffer) // it is needed no more
}

// A Packing is a copy of all that a buffer has, to as many bytes.
type Packing struct {
	To   []byte
	From Buffer
}

// Files are those of a directory that belong to one name.
type Files interface {
	// Scan makes the directory if need be and lists the parts of every sharers-th rank from index
	// on. Files that were being written are removed.
	Scan(index, sharers int) ([]Item, error)
	// Write begins to write a part, which stays as it is until that is over.
	Write(i Item, part []byte) Pending
	// Read gives a part as it was written. The error is of class mpierr.NoMem if there is no memory
	// for it; any other means that the file is not what it should be.
	Read(i Item) ([]byte, error)
	Remove(i Item) // it is no matter if it is not there
	// Unusable reports, at a rank, a file that is not what it should be.
	Unusable(rank int, text string)
}
