// Package malleable changes the number of processes of a running program, and lets it survive their
// loss: ulfm_dyprc, the interface of DyProReconf (docs/malleability.md).
//
// All processes meet in a reduction, every so many calls of ulfm_dyprc_poll, and at the point of
// the program to which they go back. There rank 0 announces a command if there is one; all execute
// it together. Every change ends with an agreement on the old communicator: either all living
// processes have the new one and use it, or none does. If a process has died meanwhile, the
// remaining ones recover, meet again, and try once more. A recovery is the same agreement, the only
// one that is ever called on the communicator of all processes: so all processes meet in it,
// whichever call they come from. In it a process reports that it has seen a failure, or that it has
// made the next communicator.
//
// It is pure: a process's operations are a Shell, a Disk, and a World (capi/dyprc.go,
// sim/malleable.go). Their calls may wait.
package malleable

import (
	"errors"
	"fmt"

	"libspx/ft/agree"
)

// Duration is a time in ns.
type Duration int64

const (
	millisecond Duration = 1000000
	second               = 1000 * millisecond
)

// World is a communicator of all processes, or a part of them.
type World interface {
	Rank() int
	Size() int
	// Revoke makes it useless for all of its processes; what they wait for on it fails.
	Revoke()
	// Decide is an agreement on flags among the living: of all flags given, decided has those that
	// all gave. Without agree.Calm next is the communicator of the living, in their order;
	// otherwise nil. An error is one of memory.
	Decide(flags uint32) (decided uint32, next World, err error)
	// Greatest returns the greatest of each of the values that the processes give.
	Greatest(values []int64) ([]int64, error)
	// Bcast gives all the words of rank 0.
	Bcast(words []uint64) error
	// Split makes two communicators, of the processes with stays set and of the rest, in the order
	// of their ranks.
	Split(stays bool) (World, error)
	// Left reports whether all processes from a rank on have ended. Call Yield between two calls.
	Left(from int) bool
	// Free gives it up, here.
	Free()
}

// Inter is an intercommunicator of processes and those that they have spawned.
type Inter interface {
	// Merge makes the communicator of both sides; that with high comes second.
	Merge(high bool) (World, error)
	Revoke()
	// Decide is World's; next has the living of both sides.
	Decide(flags uint32) (decided uint32, next Inter, err error)
	// Remote is the number of processes on the other side.
	Remote() int
	Free()
}

// Shell is what the process can do.
type Shell interface {
	// Now is the time on a clock that is never set.
	Now() Duration
	// Age is how long the process has been there.
	Age() Duration
	// Say writes a line to standard error.
	Say(line string)
	// Adopted is called with the world that takes the place of the one before.
	Adopted(w World)
	// Spawn starts n processes that call Join, by all processes of w together.
	Spawn(w World, n int) (Inter, error)
	// Yield yields the processor.
	Yield()
	// Kill ends this process by a signal. It does not return.
	Kill()
	// IsFailure reports whether an error means that a process has died, or another one has revoked
	// the communicator.
	IsFailure(err error) bool

	// The rest is called at rank 0 alone.

	// Members reports the processes of w to the agent; epoch grows with each change. The agent ends
	// spawned processes that are not among them, whose parents have died meanwhile. least is not 0
	// if the agent refuses the epoch because it has had it; least is then the lowest that it
	// accepts. false: the agent cannot be reached.
	Members(w World, epoch uint64) (least uint64, ok bool)
	// Mail returns the next command of the agent after that with a number, if it has come.
	Mail(after uint64) (text string, number uint64, ok bool)
	// Report sends the outcome of a command to the agent.
	Report(number uint64, text string)
}

// Step is what a meeting ends with.
type Step int

// What the caller has to do.
const (
	Stay    Step = iota // nothing
	Another             // there is another communicator now: go back to the point
	Leave               // this process is to end, in order
)

// How a change ends here.
const (
	unchanged = iota
	changed
	again  // those that live have recovered
	leaves // this process is not in the new communicator
)

// Machine is the part of one process.
type Machine struct {
	shell Shell
	disk  Disk

	world World // all processes; nil before Start or Join
	// the previous world; its ranks from stayed on leave, and may still need the decision
	former  World
	stayed  int
	order   Orders  // the same at all, when decided
	seconds float64 // total time of the changes requested together

	newcomer bool // spawned, and not yet past the point
	told     bool // at rank 0: the agent has the current processes
	restart  bool // the next pass of the point is one after a change

	stride int      // calls from one meeting to the next
	met    Duration // when the last one was
	began  Duration // when the current change was noticed; 0: no change is under way
	before int      // number of processes then
	how    string   // what has changed it

	looked  Duration
	settled bool // a change of the command file would be seen by its time
}

// New returns the part of the shell's process.
func New(shell Shell, disk Disk) *Machine { return &Machine{shell: shell, disk: disk, stride: 1} }

func (m *Machine) size() int { return m.world.Size() }

// World is the communicator of all processes.
func (m *Machine) World() World { return m.world }

// Newcomer reports whether the process was spawned and has not passed the point yet.
func (m *Machine) Newcomer() bool { return m.newcomer }

// Stride is the number of calls of ulfm_dyprc_poll until the next meeting.
func (m *Machine) Stride() int { return m.stride }

// Limits of the meetings.
const (
	StrideMax = 64              // calls from one meeting to the next, at most
	LookEvery = lookEvery       // between looks for commands
	every     = 2 * millisecond // between meetings, which is aimed at
)

// Quick reports whether the next meeting may be completed without the machine, if its news show
// that nothing is pending; at rank 0 only until LookEvery has passed since looked, the last look
// for commands.
func (m *Machine) Quick() (quick bool, looked Duration) {
	return m.former == nil && !m.restart && (m.world.Rank() != 0 || m.told &&
		m.order.Source == None), m.looked
}

// Passed notes the meetings that were over without the machine: when the last one was, and the
// calls from it to the next.
func (m *Machine) Passed(at Duration, stride int) { m.met, m.stride = at, stride }

// Fingerprint of the orders is what this process gives to such a meeting (News).
func (m *Machine) Fingerprint() int64 { return m.order.print() }

// Start begins with the processes that a program begins with: all is a communicator of theirs.
func (m *Machine) Start(all World) {
	m.adopt(all)
	m.restart = false
	if all.Rank() == 0 {
		m.passOver()
	}
	if m.hear() != nil {
		m.world.Revoke() // the first meeting shows it
	}
}

// Join initializes a spawned process; inter connects it to its parents. false: they are gone.
func (m *Machine) Join(inter Inter) (bool, error) {
	all, err := m.merge(inter, true)
	if err != nil || all == nil {
		return false, err
	}
	m.adopt(all)
	m.newcomer = true
	return true, nil
}

// hear broadcasts the orders of rank 0.
func (m *Machine) hear() error {
	w := m.order.Encode()
	err := m.world.Bcast(w)
	if err == nil && !m.order.Decode(w) {
		err = errors.New("the orders of rank 0 are malformed")
	}
	return err
}

// begin notes that a change begins, of which how is the name.
func (m *Machine) begin(how string) {
	if m.began == 0 {
		m.began, m.before = m.shell.Now(), m.size()
	}
	m.how = how
}

// FailedAt notes when this process has seen the failure that Recover is called for.
func (m *Machine) FailedAt(at Duration) {
	if m.began == 0 {
		m.began, m.before = at, m.size()
	}
}

func (m *Machine) adopt(next World) {
	if m.world != nil {
		m.world.Free()
	}
	m.world = next
	m.shell.Adopted(next)
	m.stride, m.restart, m.told = 1, true, false
}

// forget frees the former communicator if the leaving processes have left; wait: waits until they
// have.
func (m *Machine) forget(wait bool) {
	if m.former == nil {
		return
	}
	// they are about to leave: no event reports when they have
	for wait && !m.former.Left(m.stayed) {
		m.shell.Yield()
	}
	if m.former.Left(m.stayed) {
		m.former.Free()
		m.former = nil
	}
}

// Recover makes the living the communicator of all processes.
func (m *Machine) Recover() error {
	m.begin("after a failure")
	m.world.Revoke()
	_, next, err := m.world.Decide(0)
	if err != nil {
		return fmt.Errorf("the survivors cannot form a communicator: %w", err)
	}
	m.adopt(next)
	return nil
}

// over is the end of a change: all have met after it.
func (m *Machine) over() {
	if m.began == 0 {
		return
	}
	seconds := float64(m.shell.Now()-m.began) / float64(second)
	if m.world.Rank() == 0 {
		m.shell.Say(fmt.Sprintf("%d -> %d processes in %.6f s (%s)", m.before, m.size(), seconds,
			m.how))
	}
	m.began = 0
	m.seconds += seconds
	if m.order.Killing > 0 && uint64(m.size()) < m.order.From {
		m.order.Killing = 0
	}
}

// conclude ends the commands, if the last of them has been executed, or cannot be.
func (m *Machine) conclude() {
	if m.order.Source == None || m.order.Killing > 0 || m.order.next() != "" {
		return
	}
	if m.world.Rank() == 0 {
		m.done()
	}
	m.order.Source = None
	m.seconds = 0
}

// done reports the outcome of the commands.
func (m *Machine) done() {
	if m.order.Refused != "" {
		m.shell.Say(m.order.Refused)
	}
	switch m.order.Source {
	case FromFile:
		m.writeBack()
	case FromAgent:
		m.shell.Report(m.order.Number, fmt.Sprintf("%d %d %.6f %s", m.order.First, m.size(),
			m.seconds, m.order.Refused))
	}
}

// pace is after how many calls the next meeting is, at rank 0.
func (m *Machine) pace() int {
	now, one := m.shell.Now(), every
	if m.met != 0 {
		one = (now - m.met) / Duration(m.stride)
	}
	m.met = now
	want := StrideMax
	if one > 0 {
		want = int(min(every/one, StrideMax))
	}
	return max(1, min(want, 2*m.stride))
}

// NewsWords is the number of values that the processes give to a meeting.
const NewsWords = 5

// News is what this process gives to the next meeting: that it restarts; that there is a command;
// calls until the next meeting; the fingerprint of the orders that it has, and minus that. Each
// word is reduced with MAX.
func (m *Machine) News(restart bool) []int64 {
	news := make([]int64, NewsWords)
	if restart {
		news[0] = 1
	}
	if m.world.Rank() == 0 {
		m.look()
		if m.order.pending() {
			news[1] = 1
		}
		news[2] = int64(m.pace())
	}
	news[3] = m.order.print()
	news[4] = -news[3]
	return news
}

// meet lets all processes meet, and executes what is pending. restarts: one of them comes
// after a change.
func (m *Machine) meet(restart bool) (s Step, restarts bool, err error) {
	news, err := m.world.Greatest(m.News(restart))
	return m.Met(news, err)
}

// Met is the rest of a meeting, of which news is the outcome and err the error.
func (m *Machine) Met(news []int64, err error) (s Step, restarts bool, fatal error) {
	if err != nil {
		return Another, false, m.Recover()
	}
	restarts = news[0] != 0
	known := news[3] == -news[4] // by all, as after most failures: the orders need not be sent
	if restarts && (known || m.world.Rank() == 0) {
		m.order.Epoch++
	}
	if !known && (restarts || news[1] != 0) {
		if m.hear() != nil {
			return Another, restarts, m.Recover()
		}
	}
	if m.stride = int(news[2]); restarts {
		m.stride = 1
	}
	m.forget(false)
	if m.world.Rank() == 0 && !m.told {
		m.tell()
	}
	if restarts {
		m.over()
	}
	if news[1] != 0 {
		if s, fatal = m.carryOut(); s != Stay || fatal != nil {
			return s, restarts, fatal
		}
	}
	m.conclude()
	return Stay, restarts, nil
}

// tell reports the current processes to the agent. This rank 0 may have an older state than a
// previous one that has died.
func (m *Machine) tell() {
	for range tries {
		least, ok := m.shell.Members(m.world, m.order.Epoch)
		if m.told = ok && least == 0; least == 0 {
			return
		}
		m.order.Epoch = least
	}
}

// Poll is a meeting in ulfm_dyprc_poll.
func (m *Machine) Poll() (Step, error) {
	s, _, err := m.meet(m.restart)
	return s, err
}

// Resume is the point. jumped: the process comes back to it; newcomer: the program declares it new.
// restart: one of the processes comes after a change.
func (m *Machine) Resume(jumped, newcomer bool) (restart bool, s Step, err error) {
	m.restart = m.restart || jumped || newcomer && m.newcomer
	for s = Another; s == Another && err == nil; {
		s, restart, err = m.meet(m.restart)
	}
	if s == Stay {
		m.restart, m.newcomer = false, false
	}
	return restart, s, err
}

// settle makes all processes agree on the outcome of making another communicator; err is the local
// result. changed: it is to be used. unchanged: no process has it, and nothing has happened to the
// old one. abandon, unless nil, frees it.
func (m *Machine) settle(abandon func(), err error) (int, error) {
	flags := uint32(agree.Calm | agree.Go)
	if err != nil {
		flags = agree.Calm
		if m.shell.IsFailure(err) {
			flags = 0
			m.begin("after a failure")
			m.world.Revoke() // other ranks may wait for this process in the same call
		}
	}
	decided, left, err := m.world.Decide(flags)
	if err != nil {
		return unchanged, fmt.Errorf("the survivors cannot form a communicator: %w", err)
	}
	if decided&agree.Go != 0 {
		return changed, nil
	}
	if abandon != nil {
		abandon()
	}
	if decided&agree.Calm != 0 {
		return unchanged, nil
	}
	m.begin("after a failure")
	m.adopt(left)
	return again, nil
}
