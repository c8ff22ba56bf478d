package comm

// A Partner is a process of a communicator: a rank of the own group or, of an intercommunicator, of
// the remote one.
type Partner struct {
	Rank   int
	Remote bool
}

// A FarewellStep is one of a process's steps in MPI_Comm_disconnect: it sends to To, and goes on
// when it has heard from From.
type FarewellStep struct{ To, From Partner }

// Farewell is a barrier of all processes of a communicator in the steps of a dissemination
// (Hensgen, Finkel and Manber, Two Algorithms for Barrier Synchronization, 1988): when a process
// has heard from its partner in the last one, all have come. remote is the size of the remote
// group, 0 for an intracommunicator; first: the own group decides for both (Comm.First), and so
// comes first.
func Farewell(size, remote int, first bool, rank int) (steps []FarewellStep) {
	own := remote
	if first {
		own = 0
	}
	n := size + remote
	partner := func(u int) Partner {
		switch u = (u + n) % n; {
		case u < own:
			return Partner{u, true}
		case u >= own+size:
			return Partner{u - size, true}
		}
		return Partner{u - own, false}
	}
	for step := 1; step < n; step *= 2 {
		me := own + rank
		steps = append(steps, FarewellStep{To: partner(me + step), From: partner(me - step)})
	}
	return steps
}
