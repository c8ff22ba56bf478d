package trace

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"libspx/core/coll"
)

// The timeline, in Chrome's trace event format:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. A process is a
// rank, a call is a complete event ("X"), a message an arrow ("s" and "f" with the same id), an end
// and its detection by others an instant ("i"). Other data about the job is under "libspx".

// An Event is one line of the timeline, as readers of the file see it.
type Event struct {
	Phase     string         `json:"ph"`
	Name      string         `json:"name"`
	Category  string         `json:"cat,omitempty"`
	Time      float64        `json:"ts"` // us
	Duration  float64        `json:"dur,omitempty"`
	Process   int            `json:"pid"` // number of the process in the job
	Thread    int            `json:"tid"`
	ID        int            `json:"id,omitempty"`
	BindingTo string         `json:"bp,omitempty"`
	Scope     string         `json:"s,omitempty"`
	Args      map[string]any `json:"args,omitempty"`
}

// WriteFile writes the timeline into a file; compressed, if its name ends in .gz.
func (m *merged) WriteFile(path string, progress func(done, all int)) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	if !strings.HasSuffix(path, ".gz") {
		return m.Write(f, progress)
	}
	z := gzip.NewWriter(f)
	if err := m.Write(z, progress); err != nil {
		return err
	}
	return z.Close()
}

// Write writes the timeline. progress, if not nil, is called with the number of ranks done.
func (m *merged) Write(to io.Writer, progress func(done, all int)) error {
	w := bufio.NewWriterSize(to, 1<<20)
	about, err := json.Marshal(&m.job)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "{\"displayTimeUnit\":\"ns\",\"libspx\":%s,\n\"traceEvents\":[\n", about)
	for i, f := range m.files {
		if i > 0 {
			w.WriteString(",\n")
		}
		if err := m.writeRank(w, i, f); err != nil {
			return err
		}
		if progress != nil {
			progress(i+1, len(m.files))
		}
	}
	w.WriteString("\n]}\n")
	return w.Flush()
}

// line is an event that is written already.
type line struct {
	at   float64
	text string
}

func (m *merged) writeRank(w *bufio.Writer, index int, f *file) error {
	p := &m.job.Ranks[index]
	var lines []line
	add := func(at float64, e *Event) error {
		e.Process, e.Time = p.Proc, micro(at)
		text, err := json.Marshal(e)
		lines = append(lines, line{at, string(text)})
		return err
	}
	var err error
	put := func(at float64, e *Event) {
		if e := add(at, e); err == nil {
			err = e
		}
	}
	host := ""
	if p.Host < len(m.job.Hosts) {
		host = " on " + m.job.Hosts[p.Host].Name
	}
	put(math.Inf(-1), &Event{Phase: "M", Name: "process_name",
		Args: map[string]any{"name": fmt.Sprintf("%s (pid %d%s)", p.Name, p.Pid, host)}})
	put(math.Inf(-1), &Event{Phase: "M", Name: "process_sort_index",
		Args: map[string]any{"sort_index": index}})
	threads := map[uint32]bool{}
	gots := m.arrows(f)
	first := math.NaN()
	m.walk(f, func(r *record, begin, end float64) {
		if !threads[r.tid] {
			threads[r.tid] = true
			name := "main thread"
			if int(r.tid) != p.Pid {
				name = fmt.Sprintf("thread %d", r.tid)
			}
			put(math.Inf(-1), &Event{Phase: "M", Name: "thread_name", Thread: int(r.tid),
				Args: map[string]any{"name": name}})
		}
		at := m.at(f, r.begin)
		if math.IsNaN(first) {
			first = at
		}
		if r.kind == kindCall {
			put(begin, m.call(f, r, begin, end))
			return
		}
		for _, e := range m.message(f, r, gots, at, math.IsNaN(begin)) {
			put(at, e)
		}
	})
	if p.Dropped > 0 && !math.IsNaN(first) {
		put(first, &Event{Phase: "i", Name: fmt.Sprintf(
			"%d records from before this were dropped (--trace-limit)", p.Dropped),
			Category: "limit", Thread: p.Pid, Scope: "p"})
	}
	if p.End != "" {
		put(p.Ended, &Event{Phase: "i", Name: p.Name + " " + p.End, Category: "failure",
			Thread: p.Pid, Scope: "g"})
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.at, b.at) })
	for i, l := range lines {
		if i > 0 {
			w.WriteString(",\n")
		}
		w.WriteString(l.text)
	}
	return err
}

// micro is a time in microseconds, to the ns.
func micro(s float64) float64 {
	if math.IsInf(s, 0) {
		return 0
	}
	return math.Round(s*1e9) / 1e3
}

func (m *merged) call(f *file, r *record, begin, end float64) *Event {
	args := map[string]any{}
	for _, a := range arguments(r) {
		if n, err := strconv.ParseInt(a.text, 10, 64); err == nil {
			args[a.name] = n
		} else {
			args[a.name] = a.text
		}
	}
	if r.bytes > 0 {
		args["bytes"] = r.bytes
	}
	if r.times > 1 {
		args["calls"] = r.times
	}
	if r.err != 0 {
		args["error"] = errorName(r.err)
	}
	if r.end == 0 {
		args["unfinished"] = true
	}
	if k, ok := coll.KindOfCall(callName(uint32(r.fn))); ok && r.choice.AlgorithmName(k) != "" {
		args["algorithm"], args["why"] = r.choice.AlgorithmName(k), r.choice.ReasonText(k)
	}
	if r.site != 0 {
		args["at"] = m.job.Sites[m.site(f, uint32(r.fn), r.site)].Place()
	}
	return &Event{Phase: "X", Name: callName(uint32(r.fn)), Category: chapter(uint32(r.fn)),
		Duration: micro(end - begin), Thread: int(r.tid), Args: args}
}

// Place is a site in words.
func (s *Site) Place() string {
	name := s.Function
	if name == "" {
		name = fmt.Sprintf("0x%x", s.PC)
	}
	if s.Line > 0 {
		return fmt.Sprintf("%s (%s:%d)", name, s.File, s.Line)
	}
	if s.Object != "" {
		return fmt.Sprintf("%s (%s)", name, s.Object)
	}
	return name
}

// moment is a message as a process saw it.
type moment struct {
	message
	at float64
}

// arrows are the ids of the arrows that begin or end in a file.
func (m *merged) arrows(f *file) map[moment]int {
	out := map[moment]int{}
	for i := range m.gots {
		if g := &m.gots[i]; g.file == f && g.id != 0 {
			out[moment{g.message, g.at}] = g.id
		}
	}
	for _, list := range m.sends {
		for i := range list {
			if s := &list[i]; s.file == f && s.id != 0 {
				out[moment{s.message, s.at}] = s.id
			}
		}
	}
	return out
}

// message makes the end of an arrow, or the mark of a death; outside: in no call, so that the arrow
// needs something to stand on.
func (m *merged) message(f *file, r *record, arrows map[moment]int, at float64, outside bool) (
	out []*Event) {
	other := int(r.arg[0])
	if r.kind == kindDeath {
		return []*Event{{Phase: "i", Name: "notices the end of " + m.nameOf(other),
			Category: "failure", Thread: int(r.tid), Scope: "t"}}
	}
	e := &Event{Phase: "s", Name: "message", Category: "message", Thread: int(r.tid),
		Args: map[string]any{"bytes": r.bytes, "tag": r.arg[1]}}
	k := message{f.rank.Proc, other, r.site, r.kind == kindCast}
	if r.kind == kindCast || r.kind == kindCaught {
		e.Name = "multicast"
	}
	if r.kind == kindGot || r.kind == kindCaught {
		k = message{other, f.rank.Proc, r.site, r.kind == kindCaught}
		e.Phase, e.BindingTo = "f", "e"
		e.Args["from"] = m.nameOf(other)
	} else {
		e.Args["to"] = m.nameOf(other)
	}
	if outside {
		out = append(out, &Event{Phase: "X", Name: "progress", Category: "message", Duration: 0.1,
			Thread: int(r.tid)})
	}
	if e.ID = arrows[moment{k, at}]; e.ID == 0 {
		return nil
	}
	return append(out, e)
}

func (m *merged) nameOf(proc int) string {
	for i := range m.job.Ranks {
		if m.job.Ranks[i].Proc == proc {
			return m.job.Ranks[i].Name
		}
	}
	return fmt.Sprintf("process %d", proc)
}
