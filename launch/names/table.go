package names

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Table has the names that jobs have published. Times are since its beginning.
type Table struct {
	known map[string]held
	swept time.Duration // when those that have run out were dropped last
}

type held struct {
	port  string
	job   uint64
	until time.Duration
}

// NewTable makes an empty one.
func NewTable() *Table { return &Table{known: map[string]held{}} }

// Knows reports whether a request can be answered now, whatever jobs say that have published names
// at another server before.
func (t *Table) Knows(q *Request, now time.Duration) bool {
	_, known := t.get(q.Name, now)
	return known || q.Kind != Publish && q.Kind != Lookup
}

// Do answers a request.
func (t *Table) Do(q *Request, now time.Duration) *Answer {
	t.sweep(now)
	out := &Answer{Version: Version}
	e, known := t.get(q.Name, now)
	switch q.Kind {
	case Publish:
		if t.claim(q.Name, q.Port, q.Job, now, out); len(out.Taken) > 0 {
			out.Port, out.Job = t.known[q.Name].port, t.known[q.Name].job
		}
	case Unpublish:
		if out.Unknown = !known || e.job != q.Job; !out.Unknown {
			delete(t.known, q.Name)
		}
	case Lookup:
		out.Unknown, out.Port, out.Job = !known, e.port, e.job
	case Hold:
		for _, name := range slices.Sorted(maps.Keys(q.Names)) {
			t.claim(name, q.Names[name], q.Job, now, out)
		}
	case Leave:
		maps.DeleteFunc(t.known, func(_ string, e held) bool { return e.job == q.Job })
	case List:
		for _, name := range slices.Sorted(maps.Keys(t.known)) {
			e, known := t.get(name, now)
			port, _, _ := strings.Cut(e.port, "#") // what follows admits to it
			if known && len(out.List) < mostListed {
				out.List = append(out.List, Entry{clip(name), port, e.job})
			}
		}
	default:
		out.Text = fmt.Sprintf(
			"the name service does not know the request %.40q: it is of another version of libspx",
			q.Kind)
	}
	return out
}

// mostListed and clip keep a list below MostMessage.
const mostListed = 1000

func clip(name string) string { return name[:min(len(name), 80)] }

// claim gives a name to a job, unless another one has it.
func (t *Table) claim(name, port string, job uint64, now time.Duration, out *Answer) {
	e, known := t.get(name, now)
	switch {
	case known && e.job != job:
		out.Taken = append(out.Taken, name)
	case !known && len(t.known) >= MostNames:
		out.Text = fmt.Sprintf("%d names are published, and that is as many as there can be",
			MostNames)
	default:
		t.known[name] = held{port, job, now + Lease}
	}
}

// get finds a name, unless its job has not held it.
func (t *Table) get(name string, now time.Duration) (held, bool) {
	e, known := t.known[name]
	if !known || now >= e.until {
		return held{}, false
	}
	return e, true
}

// sweep drops names that have run out, now and then.
func (t *Table) sweep(now time.Duration) {
	if now-t.swept < Renew {
		return
	}
	t.swept = now
	maps.DeleteFunc(t.known, func(_ string, e held) bool { return now >= e.until })
}
