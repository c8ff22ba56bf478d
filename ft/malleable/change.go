package malleable

import (
	"fmt"
	"slices"

	"libspx/ft/agree"
)

// carryOut executes the pending commands, at all processes, until one of them has
// changed something.
func (m *Machine) carryOut() (Step, error) {
	for m.order.Killing == 0 && m.order.next() != "" {
		word := m.order.next()
		how, err := m.one(word)
		switch {
		case err != nil:
			return Stay, err
		case how == leaves:
			return Leave, nil
		case how == again:
			if m.order.Tries++; m.order.Tries < tries {
				return Another, nil
			}
			m.order.refuse(fmt.Errorf(
				"%.80s: given up, after %d times that a process has died meanwhile", word,
				m.order.Tries))
		}
		m.order.pass()
		if how != unchanged {
			return Another, nil
		}
	}
	return Stay, nil
}

// one executes a command.
func (m *Machine) one(word string) (int, error) {
	c, err := ParseCommand(word, m.size())
	switch {
	case err != nil:
		m.order.refuse(err)
		return unchanged, nil
	case c.Size == 0:
		return m.drill(c.Kill)
	case c.Size < m.size():
		return m.shrinkTo(c.Size)
	case c.Size > m.size():
		return m.growTo(c.Size)
	}
	return unchanged, nil
}

// shrinkTo lets the processes from rank n on leave.
func (m *Machine) shrinkTo(n int) (int, error) {
	stays := m.world.Rank() < n
	m.forget(true)
	m.begin("by splitting")
	part, err := m.world.Split(stays)
	var abandon func()
	if part != nil {
		abandon = func() { part.Revoke(); part.Free() }
	}
	how, err := m.settle(abandon, err)
	if how != changed || err != nil {
		return how, err
	}
	if !stays {
		part.Free()
		m.End()
		return leaves, nil
	}
	m.former, m.stayed, m.world = m.world, n, nil
	m.adopt(part)
	return changed, nil
}

// End frees the communicators of a process that leaves.
func (m *Machine) End() {
	for _, w := range []World{m.world, m.former} {
		if w != nil {
			w.Free()
		}
	}
	m.world, m.former = nil, nil
}

// growTo spawns processes, so that there are n.
func (m *Machine) growTo(n int) (int, error) {
	before := m.began
	m.forget(true) // the places of those that leave are free then
	m.begin("by spawning")
	inter, failed := m.shell.Spawn(m.world, n-m.size())
	var abandon func()
	if inter != nil {
		abandon = func() { inter.Revoke(); inter.Free() }
	}
	how, err := m.settle(abandon, failed)
	if err != nil {
		return how, err
	}
	if how == unchanged {
		if failed != nil {
			m.order.refuse(failed)
		}
		m.began = before
	}
	if how != changed {
		return how, nil
	}
	all, err := m.merge(inter, false)
	if err != nil {
		return unchanged, err
	}
	if all == nil { // all have seen that no process has come
		return again, m.Recover()
	}
	m.adopt(all)
	return changed, nil
}

// merge lets spawned processes, high, and those that have spawned them come together: it returns
// the communicator of the living of both sides, nil if the other side is gone. It gives inter up.
func (m *Machine) merge(inter Inter, high bool) (World, error) {
	for range tries {
		all, err := inter.Merge(high)
		flags := uint32(0)
		if err == nil {
			flags = agree.Calm | agree.Go
		} else {
			inter.Revoke()
		}
		decided, next, err := inter.Decide(flags)
		if err != nil {
			return nil, fmt.Errorf("processes that come together cannot agree: %w", err)
		}
		inter.Free()
		if decided&agree.Go != 0 {
			return all, nil
		}
		if all != nil {
			all.Free()
		}
		inter = next // a process that is calm has made it
		if inter.Remote() == 0 {
			break
		}
	}
	inter.Free()
	return nil, nil
}

// drill lets the processes with these ranks end themselves.
func (m *Machine) drill(ranks []int) (int, error) {
	how, err := m.settle(nil, nil) // all have the command, including the remaining ones
	if how != changed || err != nil {
		return how, err
	}
	m.order.Killing, m.order.From = uint64(len(ranks)), uint64(m.size())
	if slices.Contains(ranks, m.world.Rank()) {
		m.shell.Kill()
	}
	return unchanged, nil
}
