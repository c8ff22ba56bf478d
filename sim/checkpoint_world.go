package sim

import (
	"cmp"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"

	"libspx/ckpt"
	"libspx/core/mpierr"
)

// What the machine of checkpoints needs in a simulated job (checkpoint.go): processes of a group,
// memory, files.

// ckptRevoked is the class MPIX_ERR_REVOKED.
const ckptRevoked mpierr.Class = 76

// restoration is what a group has restored.
type restoration struct {
	number int // attempt; -1: no process has finished
	deaths int // when the first process began
}

// ckptGroup is processes that work together.
type ckptGroup struct {
	w        *ckptWorld
	members  []*ckptProc
	over     bool // the program is done
	revoked  bool
	gathers  []ckptGather
	queues   map[ckptRoute]*ckptQueue
	restored map[int]restoration

	// What all do, the same at each: drawn when the first of them comes to it.
	ops      *rand.Rand
	plan     []int
	attempts map[int]int
}

func (g *ckptGroup) rank(p *ckptProc) int { return slices.Index(g.members, p) }

// copies is of how many processes each part is in the memory, beside its own.
func (g *ckptGroup) copies() int { return min(g.w.Copies, len(g.members)-1) }

// op is operation k, from 0 to 99.
func (g *ckptGroup) op(k int) int {
	for len(g.plan) <= k {
		g.plan = append(g.plan, g.ops.IntN(100))
	}
	return g.plan[k]
}

// attempt is the number of the attempt of this key.
func (g *ckptGroup) attempt(key, version int) int {
	if g.attempts == nil {
		g.attempts = map[int]int{}
	}
	if n, there := g.attempts[key]; there {
		return n
	}
	g.w.attempts = append(g.w.attempts, attempt{version: version, deaths: g.w.deaths, copies: g.copies()})
	g.attempts[key] = len(g.w.attempts) - 1
	return g.attempts[key]
}

// ckptGather has what each rank has got of each rank.
type ckptGather []map[int][]uint64

// ckptPeers are the processes as one of them sees them.
type ckptPeers struct {
	p       *ckptProc
	g       *ckptGroup
	gathers int
}

func (q *ckptPeers) Rank() int { return q.g.rank(q.p) }
func (q *ckptPeers) Size() int { return len(q.g.members) }
func (q *ckptPeers) Host() int { return q.p.id % q.p.w.Hosts }
func (q *ckptPeers) Leave()    {}

func (q *ckptPeers) Revoke() {
	if !q.p.dead && !q.p.w.Defect.NoRevoke {
		q.g.revoked = true
	}
}

func (q *ckptPeers) chance() bool { return q.p.w.rnd.IntN(2) == 0 }

// Gather sends to the others one by one: who dies meanwhile has sent to some.
func (q *ckptPeers) Gather(mine []uint64) ([]uint64, error) {
	if q.gathers == len(q.g.gathers) {
		n := make(ckptGather, q.Size())
		for r := range n {
			n[r] = map[int][]uint64{}
		}
		q.g.gathers = append(q.g.gathers, n)
	}
	all := q.g.gathers[q.gathers]
	q.gathers++
	me := q.Rank()
	for k, r := range q.p.w.rnd.Perm(q.Size()) {
		if k > 0 && q.p.w.rnd.IntN(4) == 0 {
			q.p.pause(nil)
		}
		all[r][me] = slices.Clone(mine)
	}
	got := all[me]
	for {
		broken := q.failed(func(r int) bool { return got[r] == nil })
		if len(got) == q.Size() && (!q.g.revoked || q.chance()) {
			break
		}
		if err := broken(); err != nil && q.chance() {
			return nil, err
		}
		q.p.pause(func() bool { return len(got) == q.Size() || broken() != nil })
	}
	var out []uint64
	for r := range q.Size() {
		out = append(out, got[r]...)
	}
	return out, nil
}

// failed tells whether the group is revoked, or a process that is needed has died.
func (q *ckptPeers) failed(needed func(rank int) bool) func() error {
	return func() error {
		if q.g.revoked {
			return mpierr.New(ckptRevoked, "the communicator was revoked")
		}
		for r, p := range q.g.members {
			if p.dead && needed(r) {
				return mpierr.New(procFailed, "process %d has failed", p.id)
			}
		}
		return nil
	}
}

// ckptRoute is the way of messages.
type ckptRoute struct{ from, to, tag int }

// ckptQueue has the messages of a way and the receives for them: the first is for the first.
type ckptQueue struct {
	sends    []*ckptSend
	receives []*ckptReceive
}

type ckptSend struct {
	route ckptRoute
	data  []byte
	whole bool // the message has been taken, or the data are a copy of a short one
	over  bool // given up
}

type ckptReceive struct {
	route ckptRoute
	into  []byte
	done  bool
	over  bool
}

// ckptTransfer is messages of a process that have been begun.
type ckptTransfer struct {
	q        *ckptPeers
	sends    []*ckptSend
	receives []*ckptReceive
	failed   func()
	over     func() // nil: it is waited for
}

// eagerBytes is up to how many bytes a message is sent at once.
const eagerBytes = 64

func (g *ckptGroup) queue(r ckptRoute) *ckptQueue {
	if g.queues[r] == nil {
		g.queues[r] = &ckptQueue{}
	}
	return g.queues[r]
}

func (q *ckptPeers) Post(receives, sends []ckpt.Message, failed func()) (ckpt.Transfer, error) {
	t := &ckptTransfer{q: q, failed: failed}
	for _, m := range receives {
		r := &ckptReceive{route: ckptRoute{m.Peer, q.Rank(), m.Tag}, into: m.Data}
		if m.Into != nil {
			r.into = m.Into.(*ckptBuffer).mem
		}
		t.receives = append(t.receives, r)
	}
	for _, m := range sends {
		s := &ckptSend{route: ckptRoute{q.Rank(), m.Peer, m.Tag}, data: m.Data}
		if len(m.Data) <= eagerBytes {
			s.data, s.whole = slices.Clone(m.Data), true
		}
		t.sends = append(t.sends, s)
	}
	q.p.posted = append(q.p.posted, t)
	return t, nil
}

// Begin begins the messages one by one.
func (t *ckptTransfer) Begin() {
	for _, r := range t.receives {
		to := t.q.g.queue(r.route)
		to.receives = append(to.receives, r)
	}
	for _, s := range t.sends {
		to := t.q.g.queue(s.route)
		to.sends = append(to.sends, s)
		if t.q.p.w.rnd.IntN(4) == 0 {
			t.q.p.pause(nil)
		}
	}
}

// move takes the messages that have come.
func (t *ckptTransfer) move() {
	for _, r := range t.receives {
		if !r.done && !r.over {
			t.take(r)
		}
	}
}

func (t *ckptTransfer) take(r *ckptReceive) {
	queue := t.q.g.queue(r.route)
	if len(queue.receives) == 0 || queue.receives[0] != r || len(queue.sends) == 0 {
		return
	}
	s := queue.sends[0]
	if !s.whole && (s.over || t.q.g.members[s.route.from].dead) {
		return
	}
	if len(s.data) != len(r.into) {
		t.q.p.w.breaks("a message of %d bytes comes where %d are expected: %+v", len(s.data), len(r.into), r.route)
	}
	copy(r.into, s.data)
	s.whole, r.done = true, true
	queue.sends, queue.receives = queue.sends[1:], queue.receives[1:]
}

// state: all messages are over, or why they cannot be.
func (t *ckptTransfer) state() (done bool, err error) {
	done = true
	needed := map[int]bool{}
	for _, r := range t.receives {
		if !r.done {
			queue := t.q.g.queue(r.route)
			done = false
			needed[r.route.from] = needed[r.route.from] || len(queue.sends) == 0 || !queue.sends[0].whole
		}
	}
	for _, s := range t.sends {
		if !s.whole {
			done, needed[s.route.to] = false, true
		}
	}
	return done, t.q.failed(func(r int) bool { return needed[r] })()
}

// canMove: the next receive of a way finds its message.
func (t *ckptTransfer) canMove() bool {
	return slices.ContainsFunc(t.receives, func(r *ckptReceive) bool {
		queue := t.q.g.queue(r.route)
		return !r.done && len(queue.receives) > 0 && queue.receives[0] == r && len(queue.sends) > 0 && (queue.sends[0].whole || !queue.sends[0].over && !t.q.g.members[r.route.from].dead)
	})
}

func (t *ckptTransfer) Wait() error {
	for {
		t.move()
		done, err := t.state()
		if done {
			t.end()
			return nil
		}
		if err != nil && t.q.chance() {
			t.failed()
			t.end()
			return err
		}
		t.q.p.pause(func() bool {
			done, err := t.state()
			return done || err != nil || t.canMove()
		})
	}
}

// Abandon: what has begun may still go on, until the group is revoked.
func (t *ckptTransfer) Abandon(over func()) {
	t.over = over
	if t.q.p.dead || t.q.chance() {
		t.end()
	}
}

// end gives up what is left, and removes it from those of its process.
func (t *ckptTransfer) end() {
	for _, s := range t.sends {
		s.over = true
	}
	for _, r := range t.receives {
		r.over = true
	}
	t.q.p.posted = slices.DeleteFunc(t.q.p.posted, func(o *ckptTransfer) bool { return o == t })
	if t.over != nil {
		t.over()
	}
}

// ckptBuffer is memory of the program.
type ckptBuffer struct {
	mem  []byte
	uses int
}

func (p *ckptProc) buffer(mem []byte) *ckptBuffer {
	p.buffers++
	return &ckptBuffer{mem, 1}
}

// ckptHeap is a process's memory. What is freed is overwritten.
type ckptHeap struct{ p *ckptProc }

func (h ckptHeap) Alloc(bytes int64) []byte {
	if h.p.w.rnd.IntN(1000) < h.p.w.NoMemory {
		return nil
	}
	h.p.blocks++
	return make([]byte, bytes)
}

func (h ckptHeap) Free(b []byte) {
	h.p.blocks--
	clear(b)
}

func (h ckptHeap) Release(b ckpt.Buffer) {
	if b.(*ckptBuffer).uses--; b.(*ckptBuffer).uses < 0 {
		h.p.w.breaks("a buffer is released twice")
	}
	h.p.buffers--
}

func (h ckptHeap) Pack(all []ckpt.Packing) {
	h.p.pause(nil)
	for _, p := range all {
		if copy(p.To, p.From.(*ckptBuffer).mem) != len(p.To) {
			h.p.w.breaks("%d bytes are packed into %d", len(p.From.(*ckptBuffer).mem), len(p.To))
		}
	}
}

// ckptFiles are those of a directory that all processes share.
type ckptFiles struct{ p *ckptProc }

func (f ckptFiles) Scan(index, sharers int) (out []ckpt.Item, err error) {
	for _, i := range sortedItems(f.p.w.disk) {
		if int(i.Rank)%sharers == index {
			out = append(out, i)
		}
	}
	return out, nil
}

// fileKey is the part of an item that a file's name has.
func fileKey(i ckpt.Item) ckpt.Item {
	i.Holder, i.Kind = 0, ckpt.File
	return i
}

type ckptWriting struct {
	f    ckptFiles
	i    ckpt.Item
	part []byte
}

func (f ckptFiles) Write(i ckpt.Item, part []byte) ckpt.Pending { return &ckptWriting{f, i, part} }

func (w *ckptWriting) Wait() error {
	w.f.p.pause(nil)
	w.store()
	return nil
}

func (w *ckptWriting) store() { w.f.p.w.disk[fileKey(w.i)] = slices.Clone(w.part) }

func (w *ckptWriting) Abandon(over func()) {
	if w.f.p.w.rnd.IntN(2) == 0 {
		w.store()
	}
	over()
}

func (f ckptFiles) Read(i ckpt.Item) ([]byte, error) {
	stored, there := f.p.w.disk[fileKey(i)]
	if !there || f.p.w.rnd.IntN(1000) < f.p.w.Rot {
		return nil, errors.New("damaged")
	}
	if _, _, err := ckpt.Parse(stored); err != nil {
		f.p.w.breaks("what was written to a file is damaged: %v", err)
	}
	part := ckptHeap{f.p}.Alloc(int64(len(stored)))
	if part == nil {
		return nil, mpierr.New(mpierr.NoMem, "no memory")
	}
	copy(part, stored)
	return part, nil
}

func (f ckptFiles) Remove(i ckpt.Item)          { delete(f.p.w.disk, fileKey(i)) }
func (f ckptFiles) Unusable(rank int, _ string) {}

// sortedItems lists the files in an order that does not depend on that of the map.
func sortedItems(disk map[ckpt.Item][]byte) []ckpt.Item {
	return slices.SortedFunc(maps.Keys(disk), func(a, b ckpt.Item) int {
		return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Ranks, b.Ranks))
	})
}
