package job

import "slices"

// State of the parts of a system that the next deciding agent needs beyond the machine's own state:
// their processes since they were restarted or standbys have taken ranks, their hosts, and the
// pending actions.

// A Crew is the processes of a part.
type Crew struct {
	World uint32 // number of its MPI_COMM_WORLD; 0: it has not been started again
	Lead  uint32 // 1 + the serial number of the process that was rank 0 of that
	// by rank; of a part that has not been started again nil before standbys have taken ranks
	Procs    []int
	Standbys []int // of a part that was started again
	// of these, the last: places for processes that are started in the place of ranks
	Cold int
}

// Manned: all processes of a part that was started again have been made.
type Manned struct {
	Part int // from 1
	Crew Crew
}

// Relist: a part has another crew. The processes of the system are to be notified.
type Relist struct{ Part int } // from 1

func (c Crew) clone() Crew {
	c.Procs, c.Standbys = slices.Clone(c.Procs), slices.Clone(c.Standbys)
	return c
}

// takes gives these processes the ranks.
func (c *Crew) takes(procs []int) {
	c.Procs = slices.Clone(procs)
	c.Standbys = slices.DeleteFunc(slices.Clone(c.Standbys),
		func(p int) bool { return slices.Contains(procs, p) })
}

// manned: a world of a part is complete. The part may have stopped meanwhile, and be about to be
// started once more.
func (m *Machine) manned(e Manned) []Action {
	p := &m.parts[e.Part-1]
	p.making, p.renewed, p.fresh, p.crowds, p.crew = p.making && p.again, p.renewed && p.again,
		false, false, e.Crew.clone()
	p.coming = 0
	for _, i := range e.Crew.Standbys { // places of which no process was made yet
		for i >= len(m.procs) {
			m.procs = append(m.procs, process{})
		}
	}
	out := []Action{Relist{e.Part}}
	if p.done { // its ranks may have ended before the standbys were made
		out = append(out, m.dismiss(p, m.now)...)
	}
	return out
}

// Making reports whether processes of a part are being made.
func (m *Machine) Making(part int) bool {
	p := &m.parts[part-1]
	return p.making || p.fresh && !p.gone && !p.away
}

// Made: all processes of a part have been made since it was attached.
func (m *Machine) Made(part int) bool { return !m.parts[part-1].fresh }

// Crew returns the processes of a part.
func (m *Machine) Crew(part int) Crew { return m.parts[part-1].crew.clone() }

// Hosts are those of the processes of a part that was started again, by their numbers in the job;
// nil: it was not.
func (m *Machine) Hosts(part int) []int { return slices.Clone(m.parts[part-1].hosts) }

// Asks reports whether the system's master has to decide about a part.
func (m *Machine) Asks(part int) bool { return m.parts[part-1].askUntil > 0 && !m.ending }

// Restarting are the parts that are being started again, from 1: with whole those of which no
// process has been made yet, else those of which some have.
func (m *Machine) Restarting(whole bool) (out []int) {
	for i := range m.parts {
		p := &m.parts[i]
		if whole && p.again && p.alive == 0 || !whole && m.Making(i+1) && p.alive > 0 &&
			!p.stopping {
			out = append(out, i+1)
		}
	}
	return out
}

// Open returns the actions that were decided and may not have been performed, if the deciding agent
// is lost: repeating them is harmless. Parts of which some processes have been made are left out.
func (m *Machine) Open() (out []Action) {
	if m.finished || m.ending {
		return nil
	}
	for i := range m.parts {
		p := &m.parts[i]
		if p.waking > 0 { // their hosts know which of them have not arrived
			for n, k := range p.started {
				out = append(out, StartCold{i + 1, p.Ranks + p.Waiting + k, n + 1})
			}
		}
		if p.askUntil > 0 {
			out = append(out, Ask{i + 1})
		}
		if p.again && p.alive == 0 && !p.stopping {
			out = append(out, RestartPart{i + 1, p.Serves && !m.carried(p)})
		}
		if living := m.livingOf(p); p.stopping && len(living) > 0 {
			out = append(out, SendTo{living, SIGTERM})
		}
	}
	return out
}
