package comm

// How two unconnected groups get an intercommunicator (MPI-5.0, 11.8 to 11.10), whichever process
// dies meanwhile. Every living process goes through every round, with its error in place of the
// data: then none waits for a living one that has failed, and the numbers of collective creations
// stay the same at all of them. Only the last round, in which the leader announces that all have
// the intercommunicator, may end differently at different processes: a process that is not notified
// abandons it for all (Maker.GiveUp).

// Maker is what a process does with the intercommunicator.
type Maker struct {
	Build func(*Made) error // builds it
	// other processes may have it and use it, this one must not: takes it from all of them
	GiveUp func()
}

// Join makes an intercommunicator as Bridge does, and returns without an error when all on both
// sides have it. Collective like Bridge. pair is nil at the leader that has failed to meet the
// other one.
func Join(ids *Contexts, local *Comm, leader int, pair *Comm, failure error, by Maker) error {
	m, err := Bridge(ids, local, leader, pair, failure)
	built := err == nil
	if built {
		err = by.Build(m)
		built = err == nil
	}
	if err = Settle(local, leader, pair, err); err != nil && built {
		by.GiveUp()
	}
	return err
}

// Starter is the root's part in MPI_Comm_spawn.
type Starter struct {
	Start func() Outcome        // starts the children
	Meet  func() (*Comm, error) // the communicator of the root and the first child
}

// Spawn is the parents' part in MPI_Comm_spawn. Collective over the local group; by counts at the
// root alone. Children that were started and not met are to be ended by the root when it has an
// error.
func (c *Comm) Spawn(ids *Contexts, root int, by Starter, maker Maker) (Outcome, error) {
	var o Outcome
	var payload []byte
	if c.Rank == root {
		o = by.Start()
		payload = o.Encode()
	}
	payload, err := c.Tell(root, payload, nil)
	if err == nil && c.Rank != root {
		o, err = DecodeOutcome(payload)
	}
	err = firstError(err, o.Failure)
	var pair *Comm
	if c.Rank == root && err == nil {
		pair, err = by.Meet()
	}
	return o, Join(ids, c, root, pair, err, maker)
}

// DupForAll is Dup for a communicator of the library's own, over which its processes go on at once:
// none of them shall wait there for one that has failed to get it. Collective over c, an
// intracommunicator.
func (c *Comm) DupForAll(ids *Contexts, by Maker) error {
	m, err := c.Dup(ids, nil)
	built := false
	if err == nil {
		err = by.Build(m)
		built = err == nil
	}
	if err = Settle(c, 0, nil, err); err != nil && built {
		by.GiveUp()
	}
	return err
}
