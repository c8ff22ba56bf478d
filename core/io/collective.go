package io

import (
	"encoding/binary"
	"math"
)

// Collective access in two phases (MPI-5.0, 15.4.1 and 15.2.8): the part of the file that is
// accessed is divided among some processes, the aggregators. In each round every aggregator has a
// window of its part: processes send it their ranges, data travel between them and the
// aggregator, and it moves them from or to the file in long pieces.

// Hints are the settings of collective access, the same on all processes.
type Hints struct {
	Aggregators int   // number of aggregators: cb_nodes
	Window      int64 // bytes: cb_buffer_size
	Mode        int   // CollectiveAuto, ...: collective_buffering
	// Locked: the file is accessed by several hosts, each of which caches parts of it that the
	// other hosts may change, as on NFS (nfs(5), "Data and metadata coherence"). Each access is
	// then made under a lock: taking one drops what the host has kept, giving it back brings what
	// was written to the server. Without it a host that writes a few bytes may write back the old
	// page around them.
	Locked bool
}

const (
	// two phases when the processes' ranges interleave and are short (see aloneIsBetter)
	CollectiveAuto   = 0
	CollectiveAlways = 1
	CollectiveNever  = 2
)

// plan assigns file ranges to aggregators. It is the same on all processes.
type plan struct {
	lo, hi  int64 // what is accessed
	step    int64 // bytes of an aggregator's part
	aggs    int
	window  int64
	rounds  int
	size    int
	extents []reach
}

// reach is what one process accesses: offsets from first to last, both included; nothing when n is
// 0.
type reach struct{ first, last, n int64 }

// isSound reports whether a process's extent is possible for offsets that go up without overlap.
func (e reach) isSound() bool {
	return e.n == 0 || e.n > 0 && e.first >= 0 && e.last < math.MaxInt64 && e.n-1 <= e.last-e.first
}

// is reports whether a row from elsewhere is what a process accesses.
func (r row) is(e reach) bool {
	return r.fits(e.last+1) && r.off == e.first && r.end() == e.last+1 && r.bytes() == e.n
}

// interleaved reports whether the processes' ranges mix, so that working together pays.
func interleaved(all []reach) bool {
	end := int64(-1)
	for _, r := range all {
		if r.n == 0 {
			continue
		}
		if r.first <= end {
			return true
		}
		end = r.last
	}
	return false
}

const (
	// average length of ranges from which on a process moves them as fast without help
	longRange = 4 << 10
	wasteMax  = 8 // how often what it wants a process may read, for it to read alone
)

// aloneIsBetter reports whether this process is fast without the other processes, when ranges
// interleave: its ranges are long, or it reads, and uses a good part of the bytes between the first
// and the last of them. The device's work is not doubled by several readers of the same part of a
// file: it is in the memory of the host by then.
func aloneIsBetter(v *View, pos int64, mine reach, write bool) bool {
	if mine.n == 0 || !write && (mine.last-mine.first)/wasteMax <= mine.n {
		return true
	}
	part := min(mine.n, 16*longRange)
	ranges := int64(0)
	v.strides(pos, pos+part, func(_, _, _, count int64) bool {
		ranges += count
		return ranges*longRange <= part
	})
	return ranges*longRange <= part
}

const partAlign = 4096

func newPlan(all []reach, h Hints) *plan {
	p := &plan{lo: math.MaxInt64, size: len(all), extents: all,
		window: max(h.Window/partAlign*partAlign, partAlign)}
	for _, r := range all {
		if r.n > 0 {
			p.lo, p.hi = min(p.lo, r.first), max(p.hi, r.last+1)
		}
	}
	if p.lo == math.MaxInt64 {
		return p
	}
	p.lo -= p.lo % partAlign
	p.aggs = max(1, min(h.Aggregators, p.size))
	p.step = ((p.hi-p.lo+int64(p.aggs)-1)/int64(p.aggs) + partAlign - 1) / partAlign * partAlign
	p.rounds = int((p.step + p.window - 1) / p.window)
	return p
}

// rank returns the process that is aggregator a.
func (p *plan) rank(a int) int { return a * p.size / p.aggs }

// aggregator returns the number of a process among the aggregators, or -1.
func (p *plan) aggregator(rank int) int {
	for a := range p.aggs {
		if p.rank(a) == rank {
			return a
		}
	}
	return -1
}

// at returns the window of aggregator a in a round: [from, to), empty when there is none.
func (p *plan) at(a, round int) (from, to int64) {
	begin := p.lo + int64(a)*p.step
	from = begin + int64(round)*p.window
	return from, min(from+p.window, begin+p.step, p.hi)
}

// meets reports whether process r may have data in [from, to).
func (p *plan) meets(r int, from, to int64) bool {
	e := p.extents[r]
	return e.n > 0 && from < to && e.first < to && e.last >= from
}

// AccessAll is Access by all processes of a file together. failure is an error that the caller has
// found in its arguments. All return the same error.
func AccessAll(peers Peers, h Hints, b Backend, v *View, m Memory, pos int64, write, atomic bool,
	failure error) (int64, error) {
	if failure == nil {
		failure = v.CheckRange(pos, m.Size())
	}
	mine, alone, helpless := reach{}, int64(0), int64(0)
	if failure == nil && m.Size() > 0 && v.size > 0 {
		mine = reach{v.Offset(pos), v.Offset(pos + m.Size() - 1), m.Size()}
	}
	if atomic || mine.n > 0 && !v.ordered(pos, pos+mine.n) {
		alone = 1
	}
	if !aloneIsBetter(v, pos, mine, write) {
		helpless = 1
	}
	var whole row
	irregular := int64(0)
	if mine.n > 0 && alone == 0 {
		one := false
		if helpless == 1 {
			whole, one = v.regular(pos, pos+mine.n)
		}
		if !one {
			irregular = 1
		}
	}
	records, err := GatherInts(peers, mine.first, mine.last, mine.n, alone, helpless, irregular,
		whole.off, whole.n, whole.stride, whole.count)
	if err != nil {
		return 0, err
	}
	all, known := make([]reach, len(records)), make([]row, len(records))
	for r, x := range records {
		all[r], known[r] = reach{x[0], x[1], x[2]}, row{x[6], x[7], x[8], x[9]}
		if x[3] == 0 && (!all[r].isSound() || x[5] == 0 && x[2] > 0 && !known[r].is(all[r])) {
			return 0, errAsked // as all find
		}
		alone, helpless, irregular = alone|x[3], helpless|x[4], irregular|x[5]
	}
	done := int64(0)
	switch {
	case alone != 0 || h.Mode == CollectiveNever || h.Mode == CollectiveAuto &&
		(helpless == 0 || !interleaved(all)):
		if failure == nil {
			done, failure = Access(b, v, m, pos, write, atomic || h.Locked)
		}
	default:
		t := &twoPhase{peers: peers, b: b, v: v, m: m, pos: pos, plan: newPlan(all, h), mine: mine,
			locked: h.Locked}
		t.failure = failure
		if irregular == 0 {
			t.known = known
		}
		if done, err = t.run(write); err != nil {
			return 0, err
		}
		failure = t.failure
	}
	return done, Agree(peers, failure)
}

// WriteOwn is a collective write in which, as known to all, no process needs the others: each
// writes by itself. failure is an error that the caller has found in its arguments. All return the
// same error. (A process without one may do its part in C: bodies/file.c.)
func WriteOwn(peers Peers, h Hints, b Backend, v *View, m Memory, pos int64, failure error) (int64,
	error) {
	done := int64(0)
	if failure == nil {
		failure = v.CheckRange(pos, m.Size())
	}
	if failure == nil {
		done, failure = Access(b, v, m, pos, true, h.Locked)
	}
	return done, Agree(peers, failure)
}

// twoPhase is a collective access in progress, on one process.
type twoPhase struct {
	*plan
	peers  Peers
	b      Backend
	v      *View
	m      Memory
	pos    int64
	mine   reach
	locked bool // Hints.Locked
	// what each process wants, if that is one row for each: then it need not be sent
	known []row
	// of this process as an aggregator: the other processes are notified in the end
	failure  error
	borrowed []func() // gives buffers of the round back
}

// part is what this process has in an aggregator's window.
type part struct {
	agg      int
	from, to int64 // positions of the view
	list     rows
	header   []byte
	table    []byte
	data     []byte
}

// request is what an aggregator has got from a process.
type request struct {
	rank   int
	header []byte
	table  []byte
	list   rows
	data   []byte
}

const headerBytes = 16 // number of rows, bytes of data

// run goes through all rounds and returns the bytes that were moved. An error is one of
// communication.
func (t *twoPhase) run(write bool) (int64, error) {
	defer t.giveBack()
	end := t.mine.n // what a file that is read has is cut at its end
	me := t.aggregator(t.peers.Rank())
	for round := range t.rounds {
		t.giveBack()
		parts := t.parts(round)
		var asked []*request
		var from, to int64
		if me >= 0 {
			from, to = t.at(me, round)
			for r := range t.size {
				if !t.meets(r, from, to) {
					continue
				}
				q := &request{rank: r, header: make([]byte, headerBytes)}
				if t.known != nil {
					q.list = t.known[r].within(from, to)
				}
				asked = append(asked, q)
			}
		}
		if err := t.tell(parts, asked, from, to, write); err != nil {
			return 0, err
		}
		if write {
			t.store(asked, from, to)
			continue
		}
		got, err := t.answer(parts, asked, t.fetch(asked, from, to))
		if err != nil {
			return 0, err
		}
		end = min(end, got)
	}
	return end, nil
}

// parts finds what this process has in the windows of a round.
func (t *twoPhase) parts(round int) []*part {
	var list []*part
	for a := range t.aggs {
		from, to := t.at(a, round)
		if !t.meets(t.peers.Rank(), from, to) {
			continue
		}
		end := t.pos + t.mine.n
		p := &part{agg: a}
		p.from = t.pos + t.v.Below(t.pos, end, from)
		p.to = p.from + t.v.Below(p.from, end, to)
		if t.known != nil {
			p.list = t.known[t.peers.Rank()].within(from, to)
			list = append(list, p)
			continue
		}
		p.list = t.v.rows(p.from, p.to)
		p.header = make([]byte, headerBytes)
		binary.LittleEndian.PutUint64(p.header, uint64(len(p.list)))
		binary.LittleEndian.PutUint64(p.header[8:], uint64(p.to-p.from))
		p.table = p.list.encode(make([]byte, 0, rowBytes*len(p.list)))
		list = append(list, p)
	}
	return list
}

// tell sends the aggregators the ranges, and the data if they are written. As an aggregator this
// process receives the requests for [from, to).
func (t *twoPhase) tell(parts []*part, asked []*request, from, to int64, write bool) error {
	if t.known != nil {
		return t.bring(parts, asked, write)
	}
	var sends, recvs []Message
	for _, p := range parts {
		sends = append(sends, Message{t.rank(p.agg), p.header})
	}
	for _, q := range asked {
		recvs = append(recvs, Message{q.rank, q.header})
	}
	if err := t.peers.Exchange(sends, recvs); err != nil {
		return err
	}
	sends, recvs = sends[:0], recvs[:0]
	for _, p := range parts {
		if len(p.list) == 0 {
			continue
		}
		sends = append(sends, Message{t.rank(p.agg), p.table})
		if write {
			sends = append(sends, Message{t.rank(p.agg), t.load(p)})
		}
	}
	for _, q := range asked {
		n, bytes, err := decodeHeader(q.header, to-from)
		if err != nil {
			t.failure = err // the others are served, and notified in the end
		}
		if n == 0 {
			continue
		}
		q.table = make([]byte, rowBytes*n)
		q.data = t.borrow(bytes)
		recvs = append(recvs, Message{q.rank, q.table})
		if write {
			recvs = append(recvs, Message{q.rank, q.data})
		}
	}
	if err := t.peers.Exchange(sends, recvs); err != nil {
		return err
	}
	for _, q := range asked {
		var err error
		if q.list, err = decodeRows(q.table, int64(len(q.data)), from, to); err != nil {
			t.failure = err
		}
	}
	return nil
}

// decodeHeader reads how many rows, of how many bytes, another process wants of a window of the
// given length.
func decodeHeader(b []byte, window int64) (n, bytes int64, err error) {
	n, bytes = int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:]))
	if n < 0 || n > bytes || bytes > window || n == 0 && bytes != 0 {
		return 0, 0, errAsked
	}
	return n, bytes, nil
}

// bring is tell where the aggregators know the ranges of all: only data travel, if they are
// written.
func (t *twoPhase) bring(parts []*part, asked []*request, write bool) error {
	var sends, recvs []Message
	for _, q := range asked {
		n := int64(0)
		for _, r := range q.list {
			n += r.bytes()
		}
		if q.data = t.borrow(n); n > 0 {
			recvs = append(recvs, Message{q.rank, q.data})
		}
	}
	if !write {
		return nil
	}
	for _, p := range parts {
		if len(p.list) > 0 {
			sends = append(sends, Message{t.rank(p.agg), t.load(p)})
		}
	}
	return t.peers.Exchange(sends, recvs)
}

// load returns the data of a part.
func (t *twoPhase) load(p *part) []byte {
	at, n := p.from-t.pos, p.to-p.from
	if d := t.m.Direct(at, n); d != nil {
		return d
	}
	d := t.borrow(n)
	t.m.Load(d, at)
	return d
}

// borrow returns a buffer that is the access's until the round is over.
func (t *twoPhase) borrow(n int64) []byte {
	p, giveBack := borrow(n)
	t.borrowed = append(t.borrowed, giveBack)
	return p
}

func (t *twoPhase) giveBack() {
	for _, f := range t.borrowed {
		f()
	}
	t.borrowed = t.borrowed[:0]
}

func lists(asked []*request) []rows {
	out := make([]rows, len(asked))
	for i, q := range asked {
		out[i] = q.list
	}
	return out
}

// lock keeps other hosts from an aggregator's window, where that is necessary.
func (t *twoPhase) lock(from, to int64, write bool) (unlock func(), err error) {
	if !t.locked {
		return func() {}, nil
	}
	return t.b.Lock(from, to, write)
}

// store writes what the requests for [from, to) brought; where they overlap, the highest rank's
// counts.
func (t *twoPhase) store(asked []*request, from, to int64) {
	if t.failure != nil || len(asked) == 0 {
		return
	}
	buf := t.borrow(to - from)
	for _, q := range asked {
		q.list.scatter(q.data, buf, from)
	}
	covered := cover(lists(asked), from, to).rows()
	unlock, err := t.lock(from, to, true)
	if err != nil {
		t.failure = err
		return
	}
	defer unlock()
	if many := covered.number(); many < mapRanges {
		for _, r := range covered {
			for i := range r.count {
				off := r.off + i*r.stride
				if t.failure = t.b.WriteAt(buf[off-from:off-from+r.n], off); t.failure != nil {
					return
				}
			}
		}
		return
	}
	n := int64(0)
	for _, r := range covered {
		n += r.bytes()
	}
	packed := t.borrow(n)
	covered.gather(packed, buf, from)
	t.failure = covered.write(t.b, packed)
}

// fetch reads what the requests for [from, to) want, into their data. It returns the offset at
// which the file ends, if that is known now.
func (t *twoPhase) fetch(asked []*request, from, to int64) int64 {
	limit := int64(math.MaxInt64)
	if len(asked) == 0 {
		return limit
	}
	buf := t.borrow(to - from)
	unlock, err := t.lock(from, to, false)
	if err != nil {
		t.failure = err // the others are served, and notified in the end
		return limit
	}
	defer unlock()
	for _, r := range joined(lists(asked), sieveGap) {
		got, err := t.b.ReadAt(buf[r.off-from:r.off-from+r.n], r.off)
		if err != nil && t.failure == nil {
			t.failure = err
		}
		if int64(got) < r.n {
			limit = r.off + int64(got)
			break
		}
	}
	for _, q := range asked {
		q.list.gather(q.data, buf, from)
	}
	return limit
}

// answer sends the data to the requesters, and stores what this process gets. It returns the
// number of bytes of the whole access before the file's end, as known in this round.
func (t *twoPhase) answer(parts []*part, asked []*request, limit int64) (int64, error) {
	var sends, recvs []Message
	end := t.mine.n
	bound := binary.LittleEndian.AppendUint64(nil, uint64(limit))
	for _, q := range asked {
		if len(q.list) > 0 {
			sends = append(sends, Message{q.rank, bound}, Message{q.rank, q.data})
		}
	}
	limits := make([][]byte, len(parts))
	for i, p := range parts {
		if len(p.list) == 0 {
			continue
		}
		limits[i] = make([]byte, 8)
		p.data = t.borrow(p.to - p.from)
		recvs = append(recvs, Message{t.rank(p.agg), limits[i]}, Message{t.rank(p.agg), p.data})
	}
	if err := t.peers.Exchange(sends, recvs); err != nil {
		return 0, err
	}
	for i, p := range parts {
		if len(p.list) == 0 {
			continue
		}
		n := t.v.Below(p.from, p.to, int64(binary.LittleEndian.Uint64(limits[i])))
		if n > 0 {
			t.m.Store(p.data[:n], p.from-t.pos)
		}
		if p.from+n < p.to {
			end = min(end, p.from+n-t.pos)
		}
	}
	return end, nil
}
