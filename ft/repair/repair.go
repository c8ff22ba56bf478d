// Package repair keeps a communicator of working processes whole by spares: MPIX_Comm_repair,
// MPIX_Comm_dismiss, and what clusters with standbys do when ranks are taken over.
//
// The members of a base communicator, those that work and the spares, have a second communicator,
// the pool, over which no message is ever sent but those of this package. A member that has seen a
// failure, or is done, revokes the pool, and all living members come to an agreement on it, out of
// whatever they do: the spares, which wait there, those that have seen a failure, and those that
// are done. If all are done, the spares return. Otherwise the living form the next pool, and out of
// that the next active communicator. Whether that has succeeded is agreed upon, too; if not, it is
// done again with those that are left.
//
// It is pure: what a process can do is a Shell and a Comm (capi/repair.go, sim/repair.go). Their
// calls may wait; a process makes them one after another. Members are named by their ranks in the
// base.
package repair

import (
	"errors"
	"slices"

	"libspx/ft/agree"
)

// Duration is a time in ns.
type Duration int64

const millisecond Duration = 1000000

// Comm is a communicator of members of the base.
type Comm interface {
	// Members lists the members by rank.
	Members() []int
	// Revoke makes the communicator useless for all of its members; what they wait for on it fails.
	Revoke()
	// Revoked reports whether a member is known to have revoked the communicator.
	Revoked() bool
	// Broken reports whether Revoked holds or a member is known to have died.
	Broken() bool
	// Decide is an agreement on flags among the living members: of all flags given, decided has
	// those that all gave. Without agree.Calm next is the communicator of the living, in their
	// order; otherwise nil. An error is one of memory.
	Decide(flags uint32) (decided uint32, next Comm, err error)
	// Agree is an agreement that returns whether all living members gave true.
	Agree(ok bool) bool
	// Greatest returns the greatest of the values that the members give.
	Greatest(value int) (int, error)
	// Split makes a communicator of those members that give in, ordered by key; nil for the other
	// members.
	Split(in bool, key int) (Comm, error)
	// Free gives the communicator up, here.
	Free()
}

// Shell is the process's operations, and its information about other members.
type Shell interface {
	// Base is the number of members of the base, and this process's rank in it.
	Base() (size, self int)
	// Wait returns when over does, true then; false after limit (0: none). It evaluates over again
	// after each event, and after each interval every (0: no interval).
	Wait(every, limit Duration, over func() bool) bool
	// Order is the position of a member among those that are started when members have died, from
	// 1, in the order of their starts; 0: it is none of these, or not started yet.
	Order(member int) int
	// Left reports whether a member has ended, in order or not; Died, whether it has died; Done,
	// whether it had announced the end of its work, where that is known of all members alike.
	Left(member int) bool
	Died(member int) bool
	Done(member int) bool
	// Meet makes the communicator of these members, of which first has just been started: all of
	// them call it alike. It does not wait.
	Meet(members []int, first int) (Comm, error)
	// Send sends an invitation without waiting; what fails is of no interest, as the receiver has
	// died then.
	Send(member int, words []uint64)
	// Receive returns an invitation that has come, nil if there is none yet.
	Receive() ([]uint64, error)
	// Together is called by the members that will work, on the next active communicator, before it
	// takes effect. On error it is repeated, with the members that live then.
	Together(active Comm) error
}

// Role is what a process is in the active communicator.
type Role int

// The roles, in the order of MPIX_ROLE_*.
const (
	Initial     Role = iota // it works, and has from the beginning, with no failure
	Survivor                // it has worked before the last failure
	Replacement             // it was a spare
	Spare                   // it has no place
)

// Config is the initial state of a base.
type Config struct {
	Working int // the first members work
	// the last members are not there before some have died; they are started then, in any order
	Late  int
	Meets bool // Shell.Together is called
}

// Repair is the part of one process.
type Repair struct {
	// Active is the communicator of those that work; nil at spares.
	Active Comm
	Role   Role

	shell      Shell
	cfg        Config
	size, self int // of the base
	pool       Comm
	places     []int // by rank of the active communicator the member that has it
	joined     int   // how many of those that are started late have been invited
	ready      bool  // Dismiss has taken part in a repair, whose outcome the next Repair returns
}

// ErrAgain is the error of Dismiss when another process repairs: this one is to call Repair.
var ErrAgain = errors.New(
	"a process has failed, and others go on with a new active communicator: call MPIX_Comm_repair")

// errOthers stands for a failure at another member.
var errOthers = errors.New("another member has failed to make it")

// New returns the part of the shell's process. pool has the members that are there from the
// beginning, at one that is started late itself alone; nil before Begin.
func New(shell Shell, cfg Config, pool Comm) *Repair {
	r := &Repair{shell: shell, cfg: cfg, pool: pool, Role: Initial}
	r.size, r.self = shell.Base()
	for m := range cfg.Working {
		r.places = append(r.places, m)
	}
	if r.self >= cfg.Working {
		r.Role = Spare
	}
	return r
}

// Begin makes the first pool out of base, and the first active communicator. Members that are dead
// by then are none of those that work.
func (r *Repair) Begin(base Comm) error {
	_, pool, err := base.Decide(0)
	if err != nil {
		return err
	}
	return r.Form(pool)
}

// Repair makes the next active communicator of the living, unless Dismiss has just taken part in
// that. A spare waits until it has a place or all other members are done (home). Then Active and
// Role hold.
func (r *Repair) Repair() (home bool, err error) {
	if r.ready {
		r.ready = false
	} else {
		if r.Active != nil {
			r.Active.Revoke()
		}
		home, err = r.meet(0)
	}
	if err != nil || home {
		return home, err
	}
	return r.StandBy()
}

// StandBy waits as long as this process is a spare. home: all other members are done.
func (r *Repair) StandBy() (home bool, err error) {
	for err == nil && r.Active == nil && !home {
		r.Await()
		home, err = r.meet(isDone | isSpare)
	}
	return home, err
}

// Dismiss ends the work, if all other members are done; ErrAgain: another process repairs.
func (r *Repair) Dismiss() error {
	home, err := r.meet(isDone)
	if err == nil && !home {
		r.ready = true
		err = ErrAgain
	}
	return err
}

// Flags of meet.
const (
	isDone  = agree.Calm
	isSpare = agree.Go << 1
)

// meet lets all living members meet on the pool. home: all of them are done, and a working one has
// reported so. Otherwise another active communicator is made: if all that work have died, possibly
// after they had called the spares, these get their places.
func (r *Repair) meet(flags uint32) (home bool, err error) {
	r.pool.Revoke()
	decided, next, err := r.pool.Decide(flags)
	if err == nil && decided&isDone != 0 {
		if decided&isSpare == 0 {
			return true, nil
		}
		_, next, err = r.pool.Decide(0)
	}
	if err != nil {
		return false, err
	}
	return false, r.Form(next)
}

// End frees the communicators.
func (r *Repair) End() {
	for _, c := range []Comm{r.Active, r.pool} {
		if c != nil {
			c.Free()
		}
	}
	r.Active, r.pool = nil, nil
}

// Form makes the next active communicator out of pool, whose members live, by agreement: all of
// them have it when it returns, or none and a later one.
func (r *Repair) Form(pool Comm) error { return r.form(pool, r.joined < r.cfg.Late) }

func (r *Repair) form(pool Comm, grows bool) (err error) {
	for {
		if grows {
			if pool, err = r.grow(pool); err != nil {
				return err
			}
		}
		grows = r.joined < r.cfg.Late
		if r.pool != nil {
			r.pool.Free()
		}
		r.pool = pool
		next := Assign(r.places, pool.Members())
		active, err := r.make(pool, next)
		flags := uint32(0)
		if err == nil {
			flags = agree.Calm | agree.Go
		}
		decided, left, err := pool.Decide(flags)
		if err != nil {
			return err
		}
		if decided&agree.Go != 0 {
			r.takeOver(active, next)
			return nil
		}
		if active != nil {
			active.Revoke()
			active.Free()
		}
		pool = left
	}
}

// make makes the active communicator of the places next.
func (r *Repair) make(pool Comm, next []int) (Comm, error) {
	place := slices.Index(next, r.self)
	active, err := pool.Split(place >= 0, max(place, 0))
	if err != nil {
		pool.Revoke() // no member waits for one that has failed to make it
	}
	if r.cfg.Meets {
		err = r.together(pool, active, err)
	}
	return active, err
}

// together lets the members that will work meet on active, once all have it: otherwise a member
// that has it would wait for a living one that got an error instead, and therefore cannot revoke
// it. err is the error of making it.
func (r *Repair) together(pool, active Comm, err error) error {
	all := pool.Agree(err == nil)
	switch {
	case err != nil:
		return err
	case !all:
		return errOthers
	case active == nil:
		return nil
	}
	if err = r.shell.Together(active); err != nil {
		active.Revoke()
		pool.Revoke()
	}
	return err
}

// takeOver makes active, nil at a spare, the one that counts.
func (r *Repair) takeOver(active Comm, places []int) {
	switch {
	case active == nil:
		r.Role = Spare
	case r.Role == Spare:
		r.Role = Replacement
	case r.Role != Initial || r.Active != nil:
		r.Role = Survivor
	}
	if r.Active != nil {
		r.Active.Free()
	}
	r.Active, r.places = active, places
}

// Decide is for clusters with standbys: all living members meet, from any state, and decide whether
// they leave together. home: all working members are in pool, or were done, and all living members
// have passed done. Otherwise pool is for Form. Nothing has changed yet; the wait makes progress
// like any other, as other members may need this process meanwhile.
func (r *Repair) Decide(done bool) (pool Comm, home bool, err error) {
	flags := uint32(0)
	if done {
		flags = agree.Go
	}
	r.pool.Revoke()
	decided, pool, err := r.pool.Decide(flags)
	if err != nil || decided&agree.Go == 0 {
		return pool, false, err
	}
	living := pool.Members()
	gone := func(m int) bool {
		_, lives := slices.BinarySearch(living, m)
		return !lives && !r.shell.Done(m)
	}
	return pool, !slices.ContainsFunc(r.places, gone), nil
}

// Empty reports whether all working members have ended.
func (r *Repair) Empty() bool {
	return !slices.ContainsFunc(r.places, func(m int) bool { return !r.shell.Left(m) })
}

// Await waits until a member enters a meeting, or all working members have ended, not all of them
// at the end of their work.
func (r *Repair) Await() {
	r.shell.Wait(0, 0, func() bool {
		return r.pool.Revoked() || r.Empty() &&
			slices.ContainsFunc(r.places, r.shell.Died)
	})
}
