package win

// Link carries messages without content between the processes of a window, on the window's own
// communicator.
type Link interface {
	Rank() int
	Size() int
	Send(to int) error
	Recv(from int) error
}

// Leave waits until all processes of the window have called MPI_Win_free, and so will not touch its
// memory again. stop ends the serving of other processes and is nil where there are no requests:
// then, when all are here, no process sends further requests, and none polls its mailbox when the
// memory is released. An error does not end it early, and the window needs no further action after
// it.
func Leave(l Link, stop func()) error {
	err := meet(l)
	if stop == nil {
		return err
	}
	stop()
	if again := meet(l); err == nil {
		err = again
	}
	return err
}

// meet waits for all processes: each goes through all rounds, whatever has failed, since other
// processes wait for its messages. In round k a process receives from the one 2^k ranks before it,
// so that after the last it has heard, indirectly, from all (Hensgen, Finkel, Manber: Two
// Algorithms for Barrier Synchronization, 1988).
func meet(l Link) (err error) {
	n := l.Size()
	for d := 1; d < n; d *= 2 {
		e := l.Send((l.Rank() + d) % n)
		if f := l.Recv((l.Rank() - d + n) % n); e == nil {
			e = f
		}
		if err == nil {
			err = e
		}
	}
	return err
}
