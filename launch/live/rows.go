package live

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"libspx/core/diagnose"
)

// A Row is a process, with what it has done between two looks.
type Row struct {
	Proc        int            `json:"proc"`
	World       int            `json:"world"`
	Rank        int            `json:"rank"`
	Host        string         `json:"host"`
	Pid         int            `json:"pid"`
	Cluster     string         `json:"cluster,omitempty"`
	Link        string         `json:"link,omitempty"` // that it serves as an I/O process
	State       diagnose.State `json:"state"`
	End         string         `json:"end,omitempty"`  // how it has ended
	Call        string         `json:"call,omitempty"` // in which it waits
	For         float64        `json:"seconds,omitempty"`
	Rates       Rates          `json:"rates"`
	Failures    uint64         `json:"failures_noticed"`
	Peers       uint64         `json:"peers"` // processes that it has sent to
	Connections uint64         `json:"connections"`
	Held        uint64         `json:"bytes_held,omitempty"`
	HeldCount   uint64         `json:"messages_held,omitempty"`
}

// Rates are numbers a second between two looks. Wait is the share of the time in which it waited in
// MPI calls, from 0 to 1; -1: not known, as all of a process that was not there at the first look.
type Rates struct {
	Sent          float64 `json:"messages_sent"`
	SentBytes     float64 `json:"bytes_sent"`
	Received      float64 `json:"messages_received"`
	ReceivedBytes float64 `json:"bytes_received"`
	Collectives   float64 `json:"collectives"`
	Wait          float64 `json:"wait"`
}

// between is what a process has done; two looks at the same incarnation are needed.
func between(a, b *diagnose.Traffic) Rates {
	dt := b.At - a.At
	if a.At == 0 || b.At == 0 || a.Life != b.Life || dt <= 0 {
		return Rates{Wait: -1}
	}
	per := func(from, to uint64) float64 {
		if to < from {
			return 0
		}
		return float64(to-from) / dt
	}
	return Rates{Sent: per(a.Sent, b.Sent), SentBytes: per(a.SentBytes, b.SentBytes),
		Received:      per(a.Received, b.Received),
		ReceivedBytes: per(a.ReceivedBytes, b.ReceivedBytes),
		Collectives:   per(a.Collectives, b.Collectives),
		Wait:          min(1, max(0, (b.Waited-a.Waited)/dt))}
}

// Rows are the processes of the second look, in the order of their numbers. before may be nil.
func Rows(before, now *Look) []Row {
	first := map[int]*diagnose.Traffic{}
	if before != nil {
		for i := range before.Procs {
			first[before.Procs[i].Proc] = &before.Procs[i].Traffic
		}
	}
	rows := make([]Row, len(now.Procs))
	for i := range now.Procs {
		p := &now.Procs[i]
		r := &rows[i]
		t := &p.Traffic
		*r = Row{Proc: p.Proc, World: p.World, Rank: p.Rank, Host: p.Host, Pid: p.Pid,
			State: p.State, End: p.End, Failures: t.Failures, Peers: t.Peers,
			Connections: t.Connections, Held: t.HeldBytes, HeldCount: t.HeldMessages,
			Rates: Rates{Wait: -1}}
		r.Cluster, r.Link = now.part(p.Proc)
		if a := first[p.Proc]; a != nil && p.Alive() {
			r.Rates = between(a, t)
		}
		if len(p.Waits) > 0 {
			r.Call, r.For = p.Waits[0].Call, p.Waits[0].For
		}
	}
	return rows
}

// Status is what a process does, in few words.
func (r *Row) Status() string {
	switch r.State {
	case diagnose.Waiting:
		return fmt.Sprintf("%s %s", strings.TrimPrefix(r.Call, "MPI_"), Duration(r.For))
	case diagnose.Starting:
		return "starting"
	case diagnose.Finalized:
		return "finalized"
	case diagnose.Ended:
		if r.End != "" {
			return "ended, " + r.End
		}
	case diagnose.Dead:
		if r.End != "" {
			return "dead, " + r.End
		}
	}
	return string(r.State)
}

// Keys of Sort, in the order in which `spxctl top` goes through them.
var Keys = []string{"host", "rank", "state", "messages", "bytes", "wait", "failures"}

// trouble orders states: what needs a look comes first.
var trouble = []diagnose.State{diagnose.Dead, diagnose.Silent, diagnose.Stopped, diagnose.Waiting,
	diagnose.Starting, diagnose.Running, diagnose.Finalized, diagnose.Ended}

// Sort orders rows by a key: names and ranks upwards, numbers downwards; reverse turns that round.
func Sort(rows []Row, key string, reverse bool) {
	byRank := func(a, b *Row) int {
		return cmp.Or(cmp.Compare(a.World, b.World), cmp.Compare(a.Rank, b.Rank),
			cmp.Compare(a.Proc, b.Proc))
	}
	by := map[string]func(a, b *Row) int{
		"host": func(a, b *Row) int { return compareNames(a.Host, b.Host) },
		"rank": func(a, b *Row) int { return 0 },
		"state": func(a, b *Row) int {
			return cmp.Compare(slices.Index(trouble, a.State), slices.Index(trouble, b.State))
		},
		"messages": func(a, b *Row) int {
			return cmp.Compare(b.Rates.Sent+b.Rates.Received,
				a.Rates.Sent+a.Rates.Received)
		},
		"bytes": func(a, b *Row) int {
			return cmp.Compare(b.Rates.SentBytes+b.Rates.ReceivedBytes,
				a.Rates.SentBytes+a.Rates.ReceivedBytes)
		},
		"wait":     func(a, b *Row) int { return cmp.Compare(b.Rates.Wait, a.Rates.Wait) },
		"failures": func(a, b *Row) int { return cmp.Compare(b.Failures, a.Failures) },
	}[key]
	slices.SortStableFunc(rows, func(a, b Row) int {
		c := 0
		if by != nil {
			c = by(&a, &b)
		}
		if c == 0 {
			c = byRank(&a, &b)
		}
		if reverse {
			return -c
		}
		return c
	})
}

// compareNames puts node2 before node10.
func compareNames(a, b string) int {
	digits := func(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }
	for a != "" && b != "" {
		if m, n := digits(a), digits(b); m > 0 && n > 0 {
			x, y := strings.TrimLeft(a[:m], "0"), strings.TrimLeft(b[:n], "0")
			if c := cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y)); c != 0 {
				return c
			}
			a, b = a[m:], b[n:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// Filter keeps the rows in which every word of the filter is found: in host, cluster, link, state
// or call, or as the rank (r3, r4-9).
func Filter(rows []Row, filter string) []Row {
	words := strings.Fields(strings.ToLower(filter))
	var out []Row
	for i := range rows {
		r := &rows[i]
		text := strings.ToLower(strings.Join([]string{r.Host, r.Cluster, r.Link, string(r.State),
			r.Call, r.End}, "\n"))
		if !slices.ContainsFunc(words, func(w string) bool {
			return !strings.Contains(text, w) &&
				!isRank(w, r.Rank)
		}) {
			out = append(out, *r)
		}
	}
	return out
}

func isRank(word string, rank int) bool {
	var low, high int
	if n, _ := fmt.Sscanf(word, "r%d-%d", &low, &high); n == 2 {
		return rank >= low && rank <= high
	}
	n, _ := fmt.Sscanf(word, "r%d", &low)
	return n == 1 && rank == low
}

// A Group is a host, a cluster or a link, with its processes.
type Group struct {
	Name   string         `json:"name"`
	Procs  int            `json:"processes"`
	States map[string]int `json:"states"`
	Rates  Rates          `json:"rates"` // sums; Wait is the average of those that are known
	Dead   int            `json:"dead"`
	Held   uint64         `json:"bytes_held,omitempty"`
}

// GroupBy sums rows up by a name, in the order of the names. Those without a name are left out.
func GroupBy(rows []Row, name func(*Row) string) []Group {
	var groups []Group
	at, known := map[string]int{}, map[string]int{}
	for i := range rows {
		r := &rows[i]
		n := name(r)
		if n == "" {
			continue
		}
		k, ok := at[n]
		if !ok {
			k = len(groups)
			at[n] = k
			groups = append(groups, Group{Name: n, States: map[string]int{}})
		}
		g := &groups[k]
		g.Procs++
		g.States[string(r.State)]++
		g.Held += r.Held
		if r.State == diagnose.Dead {
			g.Dead++
		}
		g.Rates.add(&r.Rates)
		if r.Rates.Wait >= 0 {
			known[n]++
		}
	}
	for k := range groups {
		g := &groups[k]
		if known[g.Name] == 0 {
			g.Rates.Wait = -1
		} else {
			g.Rates.Wait /= float64(known[g.Name])
		}
	}
	slices.SortStableFunc(groups, func(a, b Group) int { return compareNames(a.Name, b.Name) })
	return groups
}

func (r *Rates) add(o *Rates) {
	r.Sent += o.Sent
	r.SentBytes += o.SentBytes
	r.Received += o.Received
	r.ReceivedBytes += o.ReceivedBytes
	r.Collectives += o.Collectives
	r.Wait += math.Max(0, o.Wait)
}

// All is the group of all rows.
func All(rows []Row) Group {
	groups := GroupBy(rows, func(*Row) string { return "all" })
	if len(groups) == 0 {
		return Group{Name: "all", States: map[string]int{}, Rates: Rates{Wait: -1}}
	}
	return groups[0]
}
