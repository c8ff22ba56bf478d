package trace

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"libspx/launch/inspect"
)

// merged is a job when it is over.
type merged struct {
	job    Job
	files  []*file // as job.Ranks
	clocks []clock // by host
	zero   float64 // ns of the first host's clock: the beginning of the trace
	ends   map[int]EndNote
	sites  map[siteKey]int
	places *inspect.Places
	maps   map[*file][]inspect.Mapping

	sends map[message][]passage // that a receive has found, or may find
	gots  []passage
}

type siteKey struct {
	call  string
	where string
}

// message names a message of the job: the number is that between the two, of messages, or of
// multicasts.
type message struct {
	from, to int
	number   uint64
	cast     bool
}

// passage is a message as one side saw it.
type passage struct {
	message
	file       *file
	at         float64 // seconds from the beginning of the trace
	begin, end float64 // of the call in which that was; NaN: it was in none
	fn         uint16
	id         int // of the arrow; 0: there is none
}

// A Trace is what a job has left.
type Trace struct{ *merged }

// Open reads what the processes of a job, and the agents, have left in a directory.
func Open(dir string, command []string) (*Trace, error) {
	files, err := openAll(dir)
	if err != nil {
		return nil, err
	}
	m := &merged{files: files, ends: map[int]EndNote{}, sites: map[siteKey]int{},
		places: inspect.NewPlaces(), maps: map[*file][]inspect.Mapping{},
		sends: map[message][]passage{}}
	m.job.Command = command
	m.take(readNotes(dir))
	slices.SortStableFunc(m.files, func(a, b *file) int {
		return cmp.Or(cmp.Compare(a.rank.World, b.rank.World),
			cmp.Compare(a.rank.Rank, b.rank.Rank), cmp.Compare(a.began, b.began))
	})
	m.findZero()
	for _, f := range m.files {
		m.addRank(f)
	}
	m.pairMessages()
	m.findWaits()
	return &Trace{m}, nil
}

// Close closes the files.
func (m *merged) Close() {
	for _, f := range m.files {
		f.close()
	}
}

// Job returns the job's data.
func (m *merged) Job() *Job { return &m.job }

func (m *merged) take(notes []Note) {
	clocks := map[int][]ClockNote{}
	for _, n := range notes {
		switch {
		case n.Host != nil && n.Host.Number >= 0 && n.Host.Number < 1<<20:
			for len(m.job.Hosts) <= n.Host.Number {
				m.job.Hosts = append(m.job.Hosts, Host{})
			}
			m.job.Hosts[n.Host.Number].Name = n.Host.Name
		case n.End != nil:
			m.ends[n.End.Proc] = *n.End
		case n.Clock != nil:
			clocks[n.Clock.Host] = append(clocks[n.Clock.Host], *n.Clock)
		}
	}
	for _, f := range m.files {
		for len(m.job.Hosts) <= f.host && f.host < 1<<20 {
			m.job.Hosts = append(m.job.Hosts, Host{Name: fmt.Sprintf("host %d", len(m.job.Hosts))})
		}
	}
	m.clocks = make([]clock, len(m.job.Hosts))
	for i := range m.job.Hosts {
		c := clockOf(clocks[i])
		m.clocks[i] = c
		h := &m.job.Hosts[i]
		h.Offset, h.Error, h.Drift = c.offset/1e9, c.err/1e9, c.drift
	}
}

func (m *merged) findZero() {
	m.zero = math.Inf(1)
	for _, f := range m.files {
		m.zero = min(m.zero, m.clock(f).here(f.began))
	}
}

func (m *merged) clock(f *file) clock {
	if f.host < len(m.clocks) {
		return m.clocks[f.host]
	}
	return clock{}
}

// at is a time of a file in seconds from the beginning of the trace, to the ns.
func (m *merged) at(f *file, ns uint64) float64 {
	return math.Round(m.clock(f).here(ns)-m.zero) / 1e9
}

func (m *merged) addRank(f *file) {
	r := &f.rank
	r.Began = m.at(f, f.began)
	last := f.began
	f.each(func(x *record) { last = max(last, x.begin, x.end) })
	if f.ended != 0 {
		last = max(last, f.ended)
	}
	r.Ended = m.at(f, last)
	if e, ok := m.ends[r.Proc]; ok && e.How != "" {
		r.End = e.How
		if f.ended == 0 { // it was there until then
			r.Ended = max(r.Ended, math.Round(float64(e.At)-m.zero)/1e9)
		}
	}
	if f.ended == 0 && r.End == "" {
		r.End = "did not call MPI_Finalize"
	}
	for _, s := range f.sites() {
		s.costs.Site = m.site(f, s.fn, s.back)
		r.Calls = append(r.Calls, s.costs)
	}
	r.Calls = together(r.Calls)
	m.job.Seconds = max(m.job.Seconds, r.Ended)
	m.job.Ranks = append(m.job.Ranks, *r)
}

// together adds the costs of equal places, which may be at several addresses, and puts the most
// expensive first.
func together(list []Cost) (out []Cost) {
	slices.SortStableFunc(list, func(a, b Cost) int { return cmp.Compare(a.Site, b.Site) })
	for _, c := range list {
		if n := len(out); n > 0 && out[n-1].Site == c.Site {
			o := &out[n-1]
			o.Calls, o.Errors, o.Seconds, o.Bytes = o.Calls+c.Calls, o.Errors+c.Errors,
				o.Seconds+c.Seconds, o.Bytes+c.Bytes
			o.Max, o.Min, o.BytesMax = max(o.Max, c.Max), min(o.Min, c.Min),
				max(o.BytesMax, c.BytesMax)
			continue
		}
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b Cost) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return out
}

// site is the number of a place: the line, where it is known, else the address.
func (m *merged) site(f *file, fn uint32, back uint64) int {
	s := Site{Call: callName(fn), PC: back}
	if back != 0 {
		maps, known := m.maps[f]
		if !known {
			maps = inspect.Mappings(f.rank.maps)
			m.maps[f] = maps
		}
		at := m.places.Caller(maps, back)
		s.Function, s.File, s.Line, s.Object, s.PC = at.Function, at.File, at.Line, at.Object, at.PC
	}
	key := siteKey{s.Call, fmt.Sprintf("%s %x", s.Object, s.PC)}
	if s.Line > 0 {
		key.where = fmt.Sprintf("%s:%d %s", s.File, s.Line, s.Function)
	}
	n, known := m.sites[key]
	if !known {
		n = len(m.job.Sites)
		m.sites[key] = n
		m.job.Sites = append(m.job.Sites, s)
	}
	return n
}

// walk calls fn for the records of a file with the span of the call that each is, or is in: seconds
// from the beginning of the trace; NaN: it is in none. A call that is not over lasts until the next
// one of its thread, or to the end of the process.
func (m *merged) walk(f *file, fn func(r *record, begin, end float64)) {
	type open struct{ begin, end float64 }
	last := map[uint32]open{} // by thread
	var list []record
	next := map[uint32]uint64{} // when the thread's next call begins
	f.each(func(r *record) { list = append(list, *r) })
	ends := make([]float64, len(list))
	for i := len(list) - 1; i >= 0; i-- {
		r := &list[i]
		if r.kind != kindCall {
			continue
		}
		switch until, known := next[r.tid]; {
		case r.end != 0:
			ends[i] = m.at(f, r.end)
		case known:
			ends[i] = m.at(f, until)
		default:
			ends[i] = max(f.rank.Ended, m.at(f, r.begin))
		}
		next[r.tid] = r.begin
	}
	for i := range list {
		r := &list[i]
		at := m.at(f, r.begin)
		if r.kind == kindCall {
			last[r.tid] = open{at, ends[i]}
			fn(r, at, ends[i])
			continue
		}
		if o, known := last[r.tid]; known && o.begin <= at && at <= o.end {
			fn(r, o.begin, o.end)
		} else {
			fn(r, math.NaN(), math.NaN())
		}
	}
}

// pairMessages finds which receive has found which message.
func (m *merged) pairMessages() {
	for _, f := range m.files {
		m.walk(f, func(r *record, begin, end float64) {
			p := passage{file: f, at: m.at(f, r.begin), begin: begin, end: end, fn: r.fn}
			switch r.kind {
			case kindSent, kindCast:
				p.message = message{f.rank.Proc, int(r.arg[0]), r.site, r.kind == kindCast}
				m.sends[p.message] = append(m.sends[p.message], p)
			case kindGot, kindCaught:
				p.message = message{int(r.arg[0]), f.rank.Proc, r.site, r.kind == kindCaught}
				m.gots = append(m.gots, p)
			}
		})
	}
	slices.SortStableFunc(m.gots, func(a, b passage) int { return cmp.Compare(a.at, b.at) })
	for i := range m.gots {
		if s := m.sendOf(&m.gots[i]); s != nil {
			m.job.Messages++
			s.id, m.gots[i].id = m.job.Messages, m.job.Messages
		}
	}
	sent := 0
	for _, list := range m.sends {
		sent += len(list)
	}
	m.job.Lost = sent + len(m.gots) - 2*m.job.Messages
}

// sendOf is the message that a receive has found: of several with the number, as when a process has
// taken the place of another, the last that was sent before.
func (m *merged) sendOf(g *passage) (found *passage) {
	list := m.sends[g.message]
	for i := range list {
		s := &list[i]
		if s.id == 0 && (found == nil || s.at <= g.at+m.slack(s.file, g.file)) {
			found = s
		}
	}
	return found
}

// slack is by how much the times of two processes may be wrong beside each other.
func (m *merged) slack(a, b *file) float64 {
	if a.host == b.host {
		return 0
	}
	return (m.clock(a).err + m.clock(b).err) / 1e9
}
