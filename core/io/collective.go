package io

import (
	"encoding/binary"
	"math"
)

// Collective access in two phases (MPI-5.0, 15.4.1 and 15.2.8): the part of the file that is accessed is divided among some
// processes, the aggregators. In each round every aggregator has a window of its part: processes tell it which ranges they want,
// data travel between them and the aggregator, and it moves them from or to the file in long pieces.

// Hints are the settings of collective access, the same on all processes.
type Hints struct {
	Aggregators int   // number of aggregators: cb_nodes
	Window      int64 // bytes: cb_buffer_size
	Mode        int   // CollectiveAuto, ...: collective_buffering
}

const (
	CollectiveAuto   = 0 // two phases when the processes' ranges interleave
	CollectiveAlways = 1
	CollectiveNever  = 2
)

// plan says who aggregates what. It is the same on all processes.
type plan struct {
	lo, hi  int64 // what is accessed
	step    int64 // bytes of an aggregator's part
	aggs    int
	window  int64
	rounds  int
	size    int
	extents []reach
}

// reach is what one process accesses: offsets from first to last, both included; nothing when n is 0.
type reach struct{ first, last, n int64 }

// interleaved tells whether the processes' ranges mix, so that working together pays.
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

const partAlign = 4096

func newPlan(all []reach, h Hints) *plan {
	p := &plan{lo: math.MaxInt64, size: len(all), extents: all, window: max(h.Window/partAlign*partAlign, partAlign)}
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

// meets tells whether process r may have data in [from, to).
func (p *plan) meets(r int, from, to int64) bool {
	e := p.extents[r]
	return e.n > 0 && from < to && e.first < to && e.last >= from
}

// AccessAll is Access by all processes of a file together. failure is an error that the caller has found in its arguments.
// All return the same error.
func AccessAll(peers Peers, h Hints, b Backend, v *View, m Memory, pos int64, write, atomic bool, failure error) (int64, error) {
	if failure == nil {
		failure = v.CheckRange(pos, m.Size())
	}
	mine, alone := reach{}, int64(0)
	if failure == nil && m.Size() > 0 && v.size > 0 {
		mine = reach{v.Offset(pos), v.Offset(pos + m.Size() - 1), m.Size()}
	}
	if atomic || mine.n > 0 && !v.ordered(pos, pos+mine.n) {
		alone = 1
	}
	records, err := GatherInts(peers, mine.first, mine.last, mine.n, alone)
	if err != nil {
		return 0, err
	}
	all := make([]reach, len(records))
	for r, x := range records {
		all[r] = reach{x[0], x[1], x[2]}
		alone |= x[3]
	}
	done := int64(0)
	switch {
	case alone != 0 || h.Mode == CollectiveNever || h.Mode == CollectiveAuto && !interleaved(all):
		if failure == nil {
			done, failure = Access(b, v, m, pos, write, atomic)
		}
	default:
		t := &twoPhase{peers: peers, b: b, v: v, m: m, pos: pos, plan: newPlan(all, h), mine: mine}
		t.failure = failure
		if done, err = t.run(write); err != nil {
			return 0, err
		}
		failure = t.failure
	}
	return done, Agree(peers, failure)
}

// twoPhase is a collective access in progress, on one process.
type twoPhase struct {
	*plan
	peers   Peers
	b       Backend
	v       *View
	m       Memory
	pos     int64
	mine    reach
	failure error // of this process as an aggregator: the others are told in the end
	buf     []byte
}

// part is what this process has in an aggregator's window.
type part struct {
	agg      int
	from, to int64 // positions of the view
	list     []span
	header   []byte
	table    []byte
	data     []byte
}

// request is what an aggregator has got from a process.
type request struct {
	rank   int
	header []byte
	table  []byte
	list   []span
	data   []byte
}

const headerBytes = 16 // number of ranges, bytes of data

// run goes through all rounds and returns the bytes that were moved. An error is one of talking to the others.
func (t *twoPhase) run(write bool) (int64, error) {
	end := t.mine.n // what a file that is read has is cut at its end
	me := t.aggregator(t.peers.Rank())
	for round := range t.rounds {
		parts := t.parts(round)
		var asked []*request
		var from, to int64
		if me >= 0 {
			from, to = t.at(me, round)
			for r := range t.size {
				if t.meets(r, from, to) {
					asked = append(asked, &request{rank: r, header: make([]byte, headerBytes)})
				}
			}
		}
		if err := t.tell(parts, asked, write); err != nil {
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
		p.list = t.v.spans(p.from, p.to)
		p.header = make([]byte, headerBytes)
		binary.LittleEndian.PutUint64(p.header, uint64(len(p.list)))
		binary.LittleEndian.PutUint64(p.header[8:], uint64(p.to-p.from))
		for _, s := range p.list {
			p.table = binary.LittleEndian.AppendUint64(p.table, uint64(s.off))
			p.table = binary.LittleEndian.AppendUint64(p.table, uint64(s.n))
		}
		list = append(list, p)
	}
	return list
}

// tell sends the aggregators the ranges, and the data if they are written.
func (t *twoPhase) tell(parts []*part, asked []*request, write bool) error {
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
		ranges := int64(binary.LittleEndian.Uint64(q.header))
		if ranges == 0 {
			continue
		}
		q.table = make([]byte, 16*ranges)
		q.data = make([]byte, binary.LittleEndian.Uint64(q.header[8:]))
		recvs = append(recvs, Message{q.rank, q.table})
		if write {
			recvs = append(recvs, Message{q.rank, q.data})
		}
	}
	if err := t.peers.Exchange(sends, recvs); err != nil {
		return err
	}
	for _, q := range asked {
		at := int64(0)
		for b := q.table; len(b) > 0; b = b[16:] {
			s := span{int64(binary.LittleEndian.Uint64(b)), int64(binary.LittleEndian.Uint64(b[8:])), at}
			q.list = append(q.list, s)
			at += s.n
		}
	}
	return nil
}

// load returns the data of a part.
func (t *twoPhase) load(p *part) []byte {
	at, n := p.from-t.pos, p.to-p.from
	if d := t.m.Direct(at, n); d != nil {
		return d
	}
	d := make([]byte, n)
	t.m.Load(d, at)
	return d
}

// cover returns the ranges of all requests as long pieces: those that are at most gap apart are joined. The ranges of each
// request go up.
func cover(asked []*request, gap int64) []span {
	lists := make([][]span, 0, len(asked))
	for _, q := range asked {
		lists = append(lists, q.list)
	}
	for len(lists) > 1 { // neighbours in pairs, so that each range is looked at log n times
		half := lists[:0]
		for i := 0; i < len(lists); i += 2 {
			if i+1 == len(lists) {
				half = append(half, lists[i])
				break
			}
			half = append(half, merge(lists[i], lists[i+1], gap))
		}
		lists = half
	}
	if len(lists) == 0 {
		return nil
	}
	return merge(lists[0], nil, gap)
}

// merge joins two lists whose ranges go up.
func merge(a, b []span, gap int64) []span {
	out := make([]span, 0, len(a)+len(b))
	for len(a)+len(b) > 0 {
		from := &a
		if len(a) == 0 || len(b) > 0 && b[0].off < a[0].off {
			from = &b
		}
		s := (*from)[0]
		*from = (*from)[1:]
		if k := len(out) - 1; k >= 0 && s.off <= out[k].off+out[k].n+gap {
			out[k].n = max(out[k].n, s.off+s.n-out[k].off)
			continue
		}
		out = append(out, s)
	}
	return out
}

func (t *twoPhase) room(n int64) []byte {
	if int64(len(t.buf)) < n {
		t.buf = make([]byte, n)
	}
	return t.buf[:n]
}

// store writes what the requests for [from, to) brought; where they overlap, the highest rank's counts.
func (t *twoPhase) store(asked []*request, from, to int64) {
	if t.failure != nil || len(asked) == 0 {
		return
	}
	buf := t.room(to - from)
	for _, q := range asked {
		for _, s := range q.list {
			copy(buf[s.off-from:s.off-from+s.n], q.data[s.at:])
		}
	}
	for _, s := range cover(asked, 0) {
		if err := t.b.WriteAt(buf[s.off-from:s.off-from+s.n], s.off); err != nil {
			t.failure = err
			return
		}
	}
}

// fetch reads what the requests for [from, to) want, into their data. It returns the offset at which the file ends, if that is
// known now.
func (t *twoPhase) fetch(asked []*request, from, to int64) int64 {
	limit := int64(math.MaxInt64)
	if len(asked) == 0 {
		return limit
	}
	buf := t.room(to - from)
	for _, s := range cover(asked, sieveGap) {
		got, err := t.b.ReadAt(buf[s.off-from:s.off-from+s.n], s.off)
		if err != nil && t.failure == nil {
			t.failure = err
		}
		if int64(got) < s.n {
			limit = s.off + int64(got)
			break
		}
	}
	for _, q := range asked {
		for _, s := range q.list {
			copy(q.data[s.at:s.at+s.n], buf[s.off-from:])
		}
	}
	return limit
}

// answer brings the data to those who asked, and stores what this process gets. It returns the number of bytes of the whole access
// before the file's end, as far as this round knows.
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
		p.data = make([]byte, p.to-p.from)
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
