package win

import "libspx/core/mpierr"

// Peers is what the processes of a creation do together, over the communicator that the window is
// made of.
type Peers interface {
	Rank() int
	Size() int
	// Gather gives all what each process has in mine, by rank. It is a collective: after a failure
	// each process still gives its part.
	Gather(mine, all []uint64) error
}

// Host is what one process does for a window.
type Host interface {
	// Near reports whether the process with that rank shares memory with this one.
	Near(rank int) bool
	// Reads reports whether the kernel lets this process read the memory of that rank. A process
	// that is not yet in MPI cannot be read.
	Reads(rank int) bool
	// Prepare takes what this process needs by itself; false: no memory.
	Prepare() bool
	// Context is a new context for the window's messages, taken by rank 0; 0: there is none.
	Context() uint64
	// Name gives the window its context. From then on other processes may give it up.
	Name(context uint64)
	// Control is how many bytes all locks and, if boxed, mailboxes need.
	Control(boxed bool) uint64
	// Spare takes a chunk that was given back before and is at hand, none if there is none.
	Spare() Chunk
	// Take takes a chunk of at least that many bytes; or it returns an errno.
	Take(bytes uint64) (Chunk, Errno)
	// Reason is the text of an errno.
	Reason(Errno) string
	// Return gives back a chunk that no process has used.
	Return(Chunk)
	// Map maps w.Plot of the leader's memory file here; false: there are no addresses.
	Map(w *Window) bool
	// Fill gives the data plane the window, whose memory is mapped, and begins to answer active
	// messages if there are mailboxes.
	Fill(w *Window)
	// Serve begins to answer processes that are elsewhere: an error class, 0 for none.
	Serve() mpierr.Class
	// Drop undoes all of it. w.Plot has bytes if they were taken. how is not Together.
	Drop(w *Window, how End)
}

// End is how there comes to be no window at this process.
type End int

// The ends of a window.
const (
	Together End = iota // all processes have freed it: its chunk may become another window's
	Failed              // at all processes
	// other processes may have the window, and have to be notified that this one has not
	Lost
	// as Lost, by a longjmp out of a wait: other processes may still use the window's chunk, which
	// is not given back
	Left
)

// BoxesMost is up to how many processes get mailboxes also when the kernel lets them reach each
// other: for short runs.
const BoxesMost = 64

// share is what a process brings. Rank 0 brings the window's context, too, and a chunk if it has
// one at hand.
type share struct {
	base, size, unit int64
	flags            uint64
	context          uint64
	chunk            Chunk
}

const (
	flagApart = 1 << iota
	flagPoor  // no memory for this process's part
)

const shareWords = 7

func (s share) words() []uint64 {
	return []uint64{uint64(s.base), uint64(s.size), uint64(s.unit), s.flags, s.context,
		s.chunk.Offset, s.chunk.Bytes}
}

func shareOf(w []uint64) share {
	return share{int64(w[0]), int64(w[1]), int64(w[2]), w[3], w[4], Chunk{w[5], w[6]}}
}

// Errno is why there is no memory, as Linux numbers it; 0: there is.
type Errno int

const (
	outOfMemory Errno = 12 // ENOMEM
	// ECANCELED: what a process that has seen a failure gives; it is greater than what memory can
	// fail with
	cancelled Errno = 125
)

// creation is one creation of a window. Each process goes through all rounds, also after a failure:
// so a process that has not seen it waits for none that has.
type creation struct {
	Peers
	Host
	w     *Window
	spare Chunk // what this process has at hand for the window
	last  bool  // in or after the round after which other processes use the memory
}

// Create makes a window: collective over p. The arguments have been checked. When it fails, nothing
// of the window is left here; when a wait is left by longjmp it is unwound by a panic, and memory
// that other processes may have mapped by then stays.
func Create(a Args, p Peers, h Host) (_ *Window, err error) {
	c := &creation{Peers: p, Host: h, w: &Window{Args: a}}
	whole, how := false, Lost
	defer func() {
		switch {
		case whole:
			return
		case c.last && how == Lost && err == nil:
			how = Left
		default:
			c.returnSpare()
		}
		h.Drop(c.w, how)
	}()
	if err = c.make(); err != nil {
		how = EndOf(err)
		return nil, err
	}
	c.returnSpare()
	whole = true
	return c.w, nil
}

// returnSpare gives back what this process had at hand, if it has not become the window's memory.
func (c *creation) returnSpare() {
	if c.spare.Bytes > 0 && c.w.Chunk.Offset != c.spare.Offset {
		c.Return(c.spare)
	}
}

// EndOf is how a window ends with this error. After the failure of a process, other processes may
// have the window or wait in it, since they see the failure later or not at all.
func EndOf(err error) End {
	switch mpierr.ClassOf(err) {
	case 0:
		return Together
	case mpierr.ProcFailed, mpierr.Revoked:
		return Lost
	}
	return Failed
}

func (c *creation) make() error {
	c.findLeader()
	mine := c.bring()
	parts, err := c.hear(mine)
	return c.putTogether(parts, err)
}

// findLeader finds out which processes share memory. If one is elsewhere, each process has one that
// is.
func (c *creation) findLeader() {
	first := -1
	for i := range c.Size() {
		near := c.Near(i)
		if near && first < 0 {
			first = i
		}
		c.w.Elsewhere = c.w.Elsewhere || !near
	}
	c.w.Leader = max(first, 0)
}

// bring prepares this process. Its part shows the other processes if it has no memory.
func (c *creation) bring() share {
	a := c.w.Args
	mine := share{base: int64(a.Base), size: a.Size, unit: a.Unit}
	if a.Flavor == Shared && a.Apart {
		mine.flags |= flagApart
	}
	ok := c.Prepare()
	if ok && c.Rank() == 0 {
		if mine.context = c.Context(); mine.context != 0 {
			c.Name(mine.context)
		}
		ok = mine.context != 0
	}
	if !ok {
		mine.flags |= flagPoor
	} else if c.Rank() == 0 && !c.w.Elsewhere {
		c.spare = c.Spare()
		mine.chunk = c.spare
	}
	return mine
}

// hear is the round in which all processes exchange their parts.
func (c *creation) hear(mine share) ([]share, error) {
	all := make([]uint64, shareWords*c.Size())
	err := c.Gather(mine.words(), all)
	parts := make([]share, c.Size())
	for i := range parts {
		parts[i] = shareOf(all[shareWords*i:])
	}
	if err != nil {
		return parts, err
	}
	for _, p := range parts {
		if p.flags&flagPoor != 0 {
			return parts, noMemory()
		}
	}
	return parts, nil
}

func noMemory() error { return mpierr.New(mpierr.NoMem, "no memory for a window") }

// greatest is a round in which all learn the greatest value of any. An error from before goes
// first.
func (c *creation) greatest(mine uint64, err error) (uint64, error) {
	all := make([]uint64, c.Size())
	if e := c.Gather([]uint64{mine}, all); err == nil {
		err = e
	}
	for _, v := range all {
		mine = max(mine, v)
	}
	return mine, err
}

func number(yes bool) uint64 {
	if yes {
		return 1
	}
	return 0
}

// putTogether makes the window from all parts. err: the error of receiving them.
func (c *creation) putTogether(parts []share, err error) error {
	if err == nil && c.Rank() != 0 {
		c.Name(parts[0].context)
	}
	am, err := c.askForAM(err)
	var at []uint64
	var bytes uint64
	if err == nil {
		at, bytes = layOut(c.w.Flavor, c.Control(c.w.Boxed), parts, c.Near)
	}
	if err = c.getMemory(parts[0].chunk, bytes, am, err); err == nil {
		c.w.Targets = targets(c.w.Flavor, parts, at, c.Near)
		c.Fill(c.w)
	}
	if c.w.Elsewhere {
		return c.serve(err)
	}
	return err
}

// askForAM finds out whether the kernel keeps this process from reaching another one's memory,
// where the kernel is a way, and which windows have mailboxes. It is called when all parts have
// arrived. Of many processes it takes a round: only if the kernel is no way for some of them are
// there mailboxes, which need memory.
func (c *creation) askForAM(err error) (forbidden bool, _ error) {
	if c.w.Flavor.Allocates() {
		return false, err
	}
	for i := 0; err == nil && i < c.Size(); i++ {
		forbidden = forbidden || i != c.Rank() && c.Near(i) && !c.Reads(i)
	}
	if c.Size() <= BoxesMost {
		c.w.Boxed = c.Size() > 1
		return forbidden, err
	}
	am, err := c.greatest(number(forbidden), err)
	c.w.Boxed = am != 0
	return c.w.Boxed, err
}

// getMemory maps the window's memory, at all processes or at none. spare is the chunk that rank 0
// has brought; active messages: this process needs active messages; err: what has failed before.
func (c *creation) getMemory(spare Chunk, bytes uint64, am bool, err error) error {
	head, err := c.takeMemory(spare, bytes, am, err)
	failed := head.errno
	switch {
	case err != nil:
		failed = cancelled
	case failed == 0:
		c.w.Chunk, c.w.Used = head.chunk, bytes
		if !c.Map(c.w) {
			failed = outOfMemory
		}
	}
	c.last = true
	worst, err := c.greatest(uint64(failed), err)
	switch failed = Errno(worst); {
	case err != nil || failed == 0:
		return err
	case failed == cancelled:
		return mpierr.New(mpierr.ProcFailed,
			"another process cannot make the window: a process has failed")
	}
	return mpierr.New(mpierr.NoMem, "no memory for the %d bytes of the window: %s", bytes,
		c.Reason(failed))
}

// taken is what a process gives in the round of takeMemory; that of a leader counts.
type taken struct {
	errno Errno
	chunk Chunk
}

// takeMemory is the round in which a leader takes memory for all that share it, when what rank 0
// had at hand is not enough, and in which all learn whether any process needs active messages. A
// leader that has seen a failure takes none.
func (c *creation) takeMemory(spare Chunk, bytes uint64, am bool, err error) (taken, error) {
	mine := taken{chunk: spare}
	switch leads := c.Rank() == c.w.Leader; {
	case err != nil:
		mine = taken{errno: cancelled}
	case leads && (spare.Bytes < bytes || c.w.Elsewhere):
		mine.chunk, mine.errno = c.Take(bytes)
		if mine.errno == 0 {
			c.w.Chunk = mine.chunk // for Drop
		}
	}
	const words = 4
	all := make([]uint64, words*c.Size())
	e := c.Gather([]uint64{uint64(mine.errno), mine.chunk.Offset, mine.chunk.Bytes, number(am)},
		all)
	if err == nil {
		err = e
	}
	if err != nil {
		return taken{}, err
	}
	for i := range c.Size() {
		c.w.AM = c.w.AM || all[words*i+3] != 0
	}
	head := all[words*c.w.Leader:]
	return taken{Errno(head[0]), Chunk{head[1], head[2]}}, nil
}

// serve is the last round of a window whose processes do not all share memory: each serves the
// others.
func (c *creation) serve(err error) error {
	class := mpierr.ClassOf(err)
	if err == nil {
		class = c.Serve()
	}
	worst, err := c.greatest(uint64(class), err)
	switch class = mpierr.Class(worst); {
	case err != nil || class == 0:
		return err
	case class == mpierr.NoMem:
		return noMemory()
	}
	return mpierr.New(class, "another process cannot make the window")
}
