package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime/debug"
	"slices"

	"libspx/ckpt"
	"libspx/core/mpierr"
)

// Checkpoints (package ckpt) under deaths: each process runs the library's own machine in a program
// that saves, commits, goes back and recovers. One of them goes on at a time, in an order that a
// seed decides; whenever a process looks for a message, or is about to send one, it may be killed,
// or its program may leave the call by a jump. What is restored must be what all processes have
// saved in one and the same attempt, and no older than what was committed, as long as no more have
// died than there are copies. checkpoint_world.go has what the machine needs: messages, memory,
// files.

// CheckpointDefect is a fault of the shell around the machine.
type CheckpointDefect struct {
	NoRevoke bool // an object's communicator is never revoked
}

// CheckpointJob is one simulated job.
type CheckpointJob struct {
	Seed             uint64
	Ranks, Spares    int // spares come to a recovery, with objects that are new
	Hosts            int
	Copies, Versions int
	Files            bool // in a directory that all share
	Ops              int  // that a group of processes does before it is done
	Deaths           int
	Leaves           int // calls that are left
	NoMemory         int // allocations that fail, of 1000
	Rot              int // files that are found damaged, of 1000
	Defect           CheckpointDefect
}

// RandomCheckpoints draws a job.
func RandomCheckpoints(seed uint64) CheckpointJob {
	rnd := rand.New(rand.NewPCG(seed, 1))
	j := CheckpointJob{
		Seed: seed, Ranks: 1 + rnd.IntN(7), Spares: rnd.IntN(3), Hosts: 1 + rnd.IntN(4), Copies: rnd.IntN(4), Versions: 1 + rnd.IntN(3),
		Files: rnd.IntN(3) == 0, Ops: 3 + rnd.IntN(20), Deaths: rnd.IntN(4), Leaves: rnd.IntN(3) * rnd.IntN(2),
	}
	if rnd.IntN(4) == 0 {
		j.NoMemory = rnd.IntN(60)
	}
	if rnd.IntN(4) == 0 {
		j.Rot = rnd.IntN(100)
	}
	return j
}

// attempt is what all processes of a group have saved at once.
type attempt struct {
	version   int
	deaths    int // before it
	copies    int // of each part, elsewhere
	committed bool
}

// ckptWorld is a job that runs.
type ckptWorld struct {
	CheckpointJob
	rnd    *rand.Rand
	procs  []*ckptProc
	groups []*ckptGroup
	disk   map[ckpt.Item][]byte
	deaths int
	broken error

	attempts []attempt
	// floor is the attempt that must be found; 0: none has to be. floorDeaths is how many had died
	// when all its copies began to be made, of which there are floorCopies.
	floor       int
	floorDeaths int
	floorCopies int
}

// RunCheckpoints runs a job. The error is the first rule that was broken.
func RunCheckpoints(j CheckpointJob) (err error) {
	w := &ckptWorld{CheckpointJob: j, rnd: rand.New(rand.NewPCG(j.Seed, 2)), disk: map[ckpt.Item][]byte{}, attempts: make([]attempt, 1)}
	for i := range j.Ranks + j.Spares {
		w.procs = append(w.procs, newCkptProc(w, i, i < j.Ranks))
	}
	defer func() {
		for _, p := range w.procs {
			p.stop()
		}
	}()
	for w.broken == nil {
		if ready := w.ready(); len(ready) > 0 {
			w.goOn(ready[w.rnd.IntN(len(ready))])
		} else if !w.regroup() {
			break
		}
	}
	return w.check()
}

// ready lists the processes that can go on.
func (w *ckptWorld) ready() (out []*ckptProc) {
	for _, p := range w.procs {
		if !p.done && !p.dead && (p.until == nil || p.until()) {
			out = append(out, p)
		}
	}
	return out
}

// goOn lets a process run until it looks for the next message, unless it is to die here, or its
// program to leave.
func (w *ckptWorld) goOn(p *ckptProc) {
	switch {
	case p.there && w.deaths < w.Deaths && w.living() > 1 && w.rnd.IntN(60) == 0:
		w.deaths++
		p.dead = true
		p.stop()
		return
	case p.inCall && p.leaves < w.Leaves && w.rnd.IntN(100) == 0:
		p.leaves++
		p.leave = true
	}
	if _, more := p.next(); !more {
		p.done = true
		if p.crash != nil {
			w.breaks("process %d: %v", p.id, p.crash)
		}
	}
}

// breaks notes the first rule that was broken.
func (w *ckptWorld) breaks(format string, args ...any) {
	if w.broken == nil {
		w.broken = fmt.Errorf(format, args...)
	}
}

func (w *ckptWorld) living() (n int) {
	for _, p := range w.procs {
		if p.there && !p.dead {
			n++
		}
	}
	return n
}

// regroup lets those go on that have come, when all that live have: if any of them recovers they
// are a new group, maybe with a spare; else they are done.
func (w *ckptWorld) regroup() bool {
	var members, spares []*ckptProc
	recovers := false
	for _, p := range w.procs {
		switch {
		case p.dead || p.done:
		case !p.there:
			spares = append(spares, p)
		case p.came == notYet:
			return false
		default:
			recovers = recovers || p.came == toRecover
			members = append(members, p)
		}
	}
	if len(members) == 0 || len(w.groups) > 200 {
		return false
	}
	if recovers && len(w.groups) > 0 && len(spares) > 0 && w.rnd.IntN(2) == 0 {
		spares[0].there = true
		members = append(members, spares[0])
	}
	g := &ckptGroup{w: w, over: !recovers, ops: rand.New(rand.NewPCG(w.Seed, uint64(len(w.groups)+3))), queues: map[ckptRoute]*ckptQueue{}, restored: map[int]restoration{}}
	for _, p := range members {
		g.members = append(g.members, p)
		p.came, p.group = notYet, g
	}
	w.groups = append(w.groups, g)
	return true
}

func (w *ckptWorld) check() error {
	if w.broken != nil {
		return w.broken
	}
	for _, p := range w.procs {
		switch {
		case p.dead || !p.there:
		case !p.done:
			return fmt.Errorf("process %d waits for ever: %s", p.id, p.doing)
		case p.blocks != 0 || p.buffers != 0:
			return fmt.Errorf("process %d has %d blocks of memory and %d buffers at the end", p.id, p.blocks, p.buffers)
		}
	}
	return nil
}

// committed: a process has committed an attempt. It must be found from then on.
func (w *ckptWorld) committed(number int) {
	if a := &w.attempts[number]; !a.committed {
		a.committed = true
		w.floor, w.floorDeaths, w.floorCopies = number, a.deaths, a.copies
	}
}

// found is called with the attempt that was found after a recovery; 0: none was.
func (w *ckptWorld) found(number int) {
	lost := w.deaths - w.floorDeaths
	if w.Files && w.Rot == 0 {
		lost = 0
	}
	if number < w.floor && lost <= w.floorCopies && (w.Rot == 0 || !w.Files) {
		w.breaks("attempt %d is found, but %d was committed, and %d have died since", number, w.floor, lost)
	}
}

// came is where a process has come.
type came int

const (
	notYet came = iota
	toRecover
	toTheEnd
)

// ckptProc is a process.
type ckptProc struct {
	w     *ckptWorld
	id    int
	there bool // it is no spare that waits
	dead  bool
	done  bool
	crash error
	came  came
	group *ckptGroup
	doing string

	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
	until func() bool // it waits for this; nil: for nothing

	inCall bool // of the machine: it may be left
	leave  bool
	leaves int

	obj     *ckpt.Object
	number  *ckptBuffer // region 0: the attempt
	state   *ckptBuffer // region 1
	blocks  int         // of memory that the machine has
	buffers int         // of the program's that it has
	posted  []*ckptTransfer
}

func newCkptProc(w *ckptWorld, id int, there bool) *ckptProc {
	p := &ckptProc{w: w, id: id, there: there}
	p.next, p.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if why := recover(); why != nil && why != (gone{}) {
				p.crash = fmt.Errorf("%v\n%s", why, debug.Stack())
			}
		}()
		p.yield = yield
		p.crash = p.program()
	})
	return p
}

// jump is the panic of a call that is left.
type jump struct{}

// pause lets others go on until a condition holds; nil: for a moment.
func (p *ckptProc) pause(until func() bool) {
	p.until = until
	if p.dead || !p.yield(struct{}{}) {
		panic(gone{})
	}
	p.until = nil
	if p.leave {
		p.leave = false
		if p.inCall {
			panic(jump{})
		}
	}
	for _, t := range slices.Clone(p.posted) {
		if p.w.rnd.IntN(2) == 0 {
			t.move()
		}
	}
}

// errLeft is what a call has come to that was left.
var errLeft = errors.New("left")

// call makes a call of the machine.
func (p *ckptProc) call(what string, fn func() error) (err error) {
	p.doing, p.inCall = what, true
	defer func() {
		p.inCall = false
		if why := recover(); why == (jump{}) {
			err = errLeft
		} else if why != nil {
			panic(why)
		}
	}()
	return fn()
}

// recovers: the program recovers from err.
func recovers(err error) bool {
	class := mpierr.ClassOf(err)
	return errors.Is(err, errLeft) || class == procFailed || class == ckptRevoked || class == mpierr.NoMem
}

// program is what every process does.
func (p *ckptProc) program() error {
	p.arrive(toRecover)
	for {
		err := p.work()
		switch {
		case err == nil:
			p.arrive(toTheEnd)
			if p.group.over {
				p.doing = "free"
				p.obj.Free()
				for _, t := range slices.Clone(p.posted) {
					t.end()
				}
				return nil
			}
		case recovers(err):
			p.arrive(toRecover)
		default:
			return fmt.Errorf("%s: %w", p.doing, err)
		}
	}
}

func (p *ckptProc) arrive(at came) {
	p.came = at
	p.pause(func() bool { return p.came == notYet })
}

// work is what a process does in a group: it goes on from the newest version, and does what all do.
func (p *ckptProc) work() error {
	if err := p.attach(); err != nil {
		return err
	}
	if err := p.goBack(-1, ckpt.Newest); err != nil {
		return err
	}
	for k := range p.w.Ops {
		if err := p.do(k); err != nil {
			return err
		}
	}
	return nil
}

func (p *ckptProc) attach() error {
	fresh := p.obj == nil
	if fresh {
		var files ckpt.Files
		if p.w.Files {
			files = ckptFiles{p}
		}
		p.obj = ckpt.New(ckpt.Settings{Copies: p.w.Copies, Versions: p.w.Versions}, ckptHeap{p}, files)
		p.register(0)
	}
	err := p.call("attach", func() error {
		p.obj.Detach()
		return p.obj.Attach(&ckptPeers{p: p, g: p.group})
	})
	if err != nil && fresh {
		p.obj.Abandon()
		p.obj = nil
	}
	return err
}

// content is what a rank saves in an attempt.
func content(number, rank int) []byte {
	out := make([]byte, 1+(number*37+rank*101)%300)
	for k := range out {
		out[k] = byte(number*7 + rank*13 + k)
	}
	return out
}

// register has the memory of an attempt saved.
func (p *ckptProc) register(number int) {
	rank := 0
	if p.group != nil {
		rank = p.group.rank(p)
	}
	for id, mem := range [][]byte{binary.LittleEndian.AppendUint64(nil, uint64(number)), content(number, rank)} {
		b := p.buffer(mem)
		if err := p.obj.Register(id, int64(len(mem)), 1, b); err != nil {
			p.w.breaks("register: %v", err)
		}
		if id == 0 {
			p.number = b
		} else {
			p.state = b
		}
	}
}

// do does operation k of the group.
func (p *ckptProc) do(k int) error {
	what, known := p.group.op(k), p.obj.Versions()
	version := 1
	if len(known) > 0 {
		version = int(known[0].Version) + 1
	}
	switch {
	case what < 45:
		return p.saves(k, version, 1, true)
	case what < 60:
		return p.saves(k, version, 1, false)
	case what < 75:
		return p.saves(k, version, 2, true)
	case what < 85:
		return p.goBack(k, ckpt.Newest)
	case what < 92 && len(known) > 1:
		p.w.floor = 0
		return p.goBack(k, int(known[1].Version))
	case len(known) > 0:
		p.w.floor = 0
		return p.call("delete", func() error { return p.obj.Delete(int(known[0].Version)) })
	}
	return nil
}

// saves saves a version some times, and commits it then. Every other attempt goes on while the
// program does.
func (p *ckptProc) saves(k, version, times int, commits bool) error {
	number := 0
	for n := range times {
		number = p.group.attempt(2*k+n, version)
		p.register(number)
		save, waits := p.obj.Save, 0
		if number%2 == 1 {
			save, waits = p.obj.SaveBegin, p.w.rnd.IntN(6)
		}
		if err := p.call("save", func() error { return save(version) }); err != nil {
			return err
		}
		clear(p.number.mem) // it may be changed from here on
		clear(p.state.mem)
		for range waits {
			p.pause(nil)
		}
	}
	if !commits {
		return nil
	}
	err := p.call("commit", p.obj.Commit)
	if err == nil {
		p.w.committed(number)
	} else if mpierr.ClassOf(err) == mpierr.NoMem && p.w.NoMemory > 0 {
		return nil
	}
	return err
}

// goBack restores a version, as operation k of the group. All regions of all ranks are fetched by
// everyone.
func (p *ckptProc) goBack(k, version int) error {
	if len(p.obj.Versions()) == 0 {
		p.restored(k, version, 0)
		return nil
	}
	if _, begun := p.group.restored[k]; !begun {
		p.group.restored[k] = restoration{deaths: p.w.deaths, number: -1}
	}
	var parts [][2]*ckptBuffer
	var v ckpt.Version
	err := p.call("restore", func() (err error) {
		if v, err = p.obj.RestoreBegin(version); err != nil {
			return err
		}
		for r := range int(v.Ranks) {
			var both [2]*ckptBuffer
			for id := range both {
				bytes, err := p.obj.Bytes(r, id)
				if err != nil {
					return err
				}
				both[id] = p.buffer(make([]byte, bytes))
				if _, err := p.obj.Fetch(r, id, 0, bytes, 1, both[id]); err != nil {
					return err
				}
			}
			parts = append(parts, both)
		}
		return p.obj.RestoreEnd()
	})
	if mpierr.ClassOf(err) == ckpt.ErrCheckpoint && p.w.Rot > 0 {
		p.restored(k, version, 0)
		return nil
	}
	if err != nil {
		return err
	}
	p.judge(k, version, v, parts)
	return nil
}

// restored notes which attempt a process has restored, 0 for none: the same as the others. From
// then on this must be found.
func (p *ckptProc) restored(k, version, number int) {
	r, begun := p.group.restored[k]
	if begun && r.number >= 0 {
		if r.number != number {
			p.w.breaks("process %d has restored attempt %d, and another one %d", p.id, number, r.number)
		}
		return
	}
	if !begun {
		r.deaths = p.w.deaths
	}
	r.number = number
	p.group.restored[k] = r
	if version == ckpt.Newest {
		p.w.found(number)
	}
	p.w.floor, p.w.floorDeaths, p.w.floorCopies = number, r.deaths, p.group.copies()
	if p.w.NoMemory > 0 {
		p.w.floorCopies = 0 // they may not have been made
	}
}

// judge: all parts are those of one attempt to save the version, the same at all processes.
func (p *ckptProc) judge(k, version int, v ckpt.Version, parts [][2]*ckptBuffer) {
	number := int(binary.LittleEndian.Uint64(parts[0][0].mem))
	if number >= len(p.w.attempts) || p.w.attempts[number].version != int(v.Version) {
		p.w.breaks("version %d has attempt %d", v.Version, number)
		return
	}
	for r, both := range parts {
		if got := int(binary.LittleEndian.Uint64(both[0].mem)); got != number {
			p.w.breaks("version %d is of attempt %d at rank 0 and of %d at rank %d", v.Version, number, got, r)
		} else if !slices.Equal(both[1].mem, content(number, r)) {
			p.w.breaks("version %d, attempt %d: rank %d's part is not what it has saved", v.Version, number, r)
		}
	}
	p.restored(k, version, number)
}
