package repair

import (
	"errors"
	"slices"

	"libspx/ft/agree"
)

// Members that are started when others have died. Each host is notified of a start by its agent, at
// its own time, and before it is notified of the death that is the reason: so the living members
// agree on which have been started, and wait until all of them have been notified.

const (
	patience = 3 * 1000 * millisecond // for a start that is due after a death
	// between polls of the state that agents publish, which triggers no wake-up
	look     = 2 * millisecond
	lookLate = 20 * millisecond
)

// late is the n-th of those that were started, counted from 1; false: not started yet, as far as
// known here.
func (r *Repair) late(n int) (member int, ok bool) {
	for m := r.size - r.cfg.Late; m < r.size; m++ {
		if r.shell.Order(m) == n {
			return m, true
		}
	}
	return 0, false
}

// woken is how many have been started, as far as is known here.
func (r *Repair) woken() int {
	n := r.joined
	for n < r.cfg.Late {
		if _, ok := r.late(n + 1); !ok {
			break
		}
		n++
	}
	return n
}

// grow makes the living members of pool agree on which members have been started since, when all of
// them have been notified; it returns the pool with these members. If a member has died by the end
// of the agreement, another one is started in its place: grow waits for that one as well.
func (r *Repair) grow(pool Comm) (Comm, error) {
	for {
		before := len(pool.Members())
		missing := func(n, woken int) bool {
			return woken < r.cfg.Late &&
				n+woken-r.joined < len(r.places)
		}
		r.shell.Wait(look, patience, func() bool { return !missing(before, r.woken()) })
		now, err := pool.Greatest(r.woken())
		if err != nil {
			pool.Revoke()
		}
		flags := uint32(0)
		if err == nil && r.hearsOf(pool, now) {
			flags = agree.Go
		}
		decided, left, err := pool.Decide(flags)
		if err != nil {
			return nil, err
		}
		pool.Free()
		pool = left
		after := len(pool.Members())
		switch {
		case decided&agree.Go == 0, after < before && missing(after, now):
		case now <= r.joined:
			return pool, nil
		default:
			made, err := r.invite(pool, now)
			pool.Free()
			return made, err
		}
	}
}

// hearsOf waits until the launcher has notified this host, too, of the first now starts: its
// processes have reported that another host was notified. False: a member of pool has died
// meanwhile. It may have been the only one that was notified, by a launcher that was lost with it,
// and the member that decides now has no record of it: the living members repeat the agreement.
// Nothing else ends the wait: without the agent of its host no process lives, and agents detect
// each other's death in their own time.
func (r *Repair) hearsOf(pool Comm, now int) bool {
	heard := func() bool { return r.woken() >= now }
	r.shell.Wait(look, 0, func() bool { return heard() || pool.Broken() })
	return heard()
}

// invite makes the pool of the members of pool and of those that have been started since, up to the
// number now. All members invite them, as any one may die; in order, so that an earlier one has
// been invited when a later one has. Each of them invites the later ones again: all members may die
// between two.
func (r *Repair) invite(pool Comm, now int) (Comm, error) {
	var fresh []int
	for n := r.joined + 1; n <= now; n++ {
		m, _ := r.late(n)
		fresh = append(fresh, m)
	}
	v := Invitation{Members: slices.Sorted(slices.Values(append(fresh[:len(fresh):len(fresh)],
		pool.Members()...))), Places: r.places, Fresh: fresh, Joined: now}
	r.joined = now
	made, err := r.shell.Meet(v.Members, fresh[0])
	if err != nil {
		return nil, err
	}
	r.send(&v, fresh)
	return made, nil
}

func (r *Repair) send(v *Invitation, to []int) {
	for _, m := range to {
		r.shell.Send(m, v.Encode())
	}
}

// isFirst reports whether no member is left that could invite this one, which then begins.
func (r *Repair) isFirst() bool {
	own := r.shell.Order(r.self)
	for m := range r.size {
		before := m < r.size-r.cfg.Late
		if !before {
			order := r.shell.Order(m)
			before = order != 0 && order < own
		}
		if before && !r.shell.Left(m) {
			return false
		}
	}
	return true
}

// Join is called by a member that was started late: it waits for the other members, which have met,
// and meets them; if none is left, it meets other late members. Then Active and Role hold.
func (r *Repair) Join() error {
	v, err := r.invited()
	if err != nil {
		return err
	}
	pool := r.pool
	r.pool = nil
	if v == nil {
		r.joined = r.shell.Order(r.self)
		return r.Form(pool)
	}
	pool.Free()
	r.places, r.joined = v.Places, v.Joined
	if pool, err = r.shell.Meet(v.Members, v.Fresh[0]); err != nil {
		return err
	}
	r.send(v, v.Fresh[slices.Index(v.Fresh, r.self)+1:])
	return r.form(pool, false) // the members that have invited it have just grown
}

// invited waits for an invitation; nil: this process begins. Messages sent by a member before its
// death have arrived when the death is known.
func (r *Repair) invited() (v *Invitation, err error) {
	first := false
	r.shell.Wait(lookLate, 0, func() bool {
		for {
			var words []uint64
			if words, err = r.shell.Receive(); words != nil && err == nil {
				read, ok := DecodeInvitation(words, r.size)
				if v = &read; !ok || !slices.Contains(v.Fresh, r.self) {
					err = errors.New("an invitation to take the place of a process is malformed")
				}
			}
			if err != nil || v != nil || first {
				return true
			}
			if first = r.isFirst(); !first {
				return false
			}
		}
	})
	return v, err
}
