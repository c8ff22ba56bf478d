package diagnose

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A Finding is a problem, in one line, and details of the processes concerned, in further ones.
type Finding struct {
	Kind    string   `json:"kind"`
	Text    string   `json:"text"`
	Details []string `json:"details,omitempty"`
	Ranks   []int    `json:"ranks"`
	Certain bool     `json:"certain"` // it will not go away by itself
	weight  int
}

// Kinds of findings.
const (
	Deadlock   = "deadlock"
	EndedPeer  = "ended peer"
	MissingOne = "missing in a collective"
	Mismatch   = "mismatched collectives"
	WrongMatch = "no message fits"
	Unmatched  = "unmatched send"
	Computing  = "computing"
	Link       = "nothing comes in"
)

// Find examines a job, and returns what blocks it: the most significant first.
func Find(procs []Proc) []Finding {
	j := newJob(procs)
	stuck := j.stuck()
	circle := j.cycle(stuck)
	var out []Finding
	add := func(weight int, certain bool, kind string, of []*Proc, text string, details ...string) {
		f := Finding{Kind: kind, Text: text, Details: details, Certain: certain, weight: weight}
		for _, p := range of {
			f.Ranks = append(f.Ranks, p.Rank)
		}
		out = append(out, f)
	}
	j.mismatches(add)
	j.endedPeers(stuck, add)
	j.wrongMatches(stuck, add)
	j.unmatched(stuck, circle, add)
	j.oddOnes(stuck, add)
	if circle != nil {
		add(3, true, Deadlock, circle, "deadlock: "+circleText(circle), callsOf(circle)...)
	}
	j.computing(len(out) > 0, add)
	j.linksIn(add)
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Compare(a.weight, b.weight) })
	return out
}

type adder func(weight int, certain bool, kind string, of []*Proc, text string, details ...string)

const mostShown = 8

func circleText(c []*Proc) string {
	if len(c) == 2 {
		return fmt.Sprintf("%s and %s wait for each other", c[0].name(), c[1].name())
	}
	var words []string
	for i, p := range c {
		if i == mostShown {
			words = append(words, "...")
			break
		}
		words = append(words, fmt.Sprintf("%s waits for %s", p.name(), c[(i+1)%len(c)].name()))
	}
	return fmt.Sprintf("a circle of %d: %s", len(c), strings.Join(words, ", "))
}

func callsOf(list []*Proc) (out []string) {
	for i, p := range list {
		if i == mostShown {
			return append(out, fmt.Sprintf("and %d more", len(list)-i))
		}
		out = append(out, p.name()+" "+doing(p))
	}
	return out
}

// mismatches: processes that are in the same operation of a communicator by different calls, or
// with different roots.
func (j *job) mismatches(add adder) {
	ops := slices.SortedFunc(maps.Keys(j.ops),
		func(a, b operation) int {
			return cmp.Or(cmp.Compare(a.context, b.context),
				cmp.Compare(a.seq, b.seq))
		})
	for _, op := range ops {
		groups := map[string][]*Proc{}
		comm := ""
		for _, p := range j.ops[op] {
			w := p.in(op)
			key := w.Coll
			if w.Root != Nobody && w.Root >= 0 {
				key += fmt.Sprintf(" with root %d", w.Root)
			}
			groups[key] = append(groups[key], p)
			comm = w.commName()
		}
		if len(groups) < 2 {
			continue
		}
		var words []string
		for _, key := range slices.Sorted(maps.Keys(groups)) {
			words = append(words, fmt.Sprintf("%s in %s", names(groups[key]), key))
		}
		add(0, true, Mismatch, j.ops[op], fmt.Sprintf("mismatched collectives on %s: %s", comm,
			strings.Join(words, ", ")), callsOf(j.ops[op])...)
	}
}

// in is the wait of a process in an operation.
func (p *Proc) in(op operation) *Wait {
	for i := range p.Waits {
		if w := &p.Waits[i]; w.What == Coll && w.Context == op.context && w.Seq == op.seq {
			return w
		}
	}
	return nil
}

// endedPeers: processes that wait for processes that have ended.
func (j *job) endedPeers(stuck map[*Proc]bool, add adder) {
	by := map[*Proc][]*Proc{}
	for _, p := range j.list {
		if !stuck[p] {
			continue
		}
		for i := range p.Waits {
			list, all, _ := j.targets(p, &p.Waits[i])
			if !all && slices.ContainsFunc(list, func(q *Proc) bool { return !q.State.gone() }) {
				continue
			}
			for _, q := range list {
				if q.State.gone() && !slices.Contains(by[q], p) {
					by[q] = append(by[q], p)
				}
			}
		}
	}
	for _, q := range j.list {
		if len(by[q]) == 0 {
			continue
		}
		waiters := by[q]
		verb := "wait"
		if len(waiters) == 1 {
			verb = "waits"
		}
		add(2, true, EndedPeer, append([]*Proc{q}, waiters...),
			fmt.Sprintf("%s %s for %s, which %s", names(waiters), verb, q.name(), q.fate()),
			callsOf(waiters)...)
	}
}

// fate describes how a process has ended.
func (p *Proc) fate() string {
	switch {
	case p.State == Finalized:
		return "has called MPI_Finalize"
	case p.End != "":
		return "has ended: " + p.End
	}
	return "has ended"
}

// wrongMatches: receives that wait for a message while another one from the same process, which
// does not match, is queued.
func (j *job) wrongMatches(stuck map[*Proc]bool, add adder) {
	for _, p := range j.list {
		for i := range p.Waits {
			w := &p.Waits[i]
			if (w.What != Recv && w.What != Probe) || p.Queues == nil {
				continue
			}
			for _, e := range p.Queues.Entries {
				if e.Kind != Unexpected || w.Peer >= 0 && e.Peer != w.Peer {
					continue
				}
				what := ""
				switch {
				case e.Context == w.Context && w.Tag != AnyTag && e.Tag != w.Tag:
					what = fmt.Sprintf(
						"wrong tag: %s waits for a message with tag %d, but rank %d of %s has "+
							"sent it one with tag %d", p.name(), w.Tag, e.Rank, w.commName(), e.Tag)
				case e.Context != w.Context && (w.Tag == AnyTag || e.Tag == w.Tag):
					what = fmt.Sprintf(
						"wrong communicator: %s waits for a message on %s, but one with tag %d "+
							"has come on %s", p.name(), w.commName(), e.Tag, e.commName())
				default:
					continue
				}
				add(1, stuck[p], WrongMatch, []*Proc{p}, what, p.name()+" "+doing(p),
					fmt.Sprintf("nobody receives: %s", e.text()))
				break
			}
		}
	}
}

// unmatched: sends that wait while their receivers wait for something else, in no circle that is
// shown.
func (j *job) unmatched(stuck map[*Proc]bool, circle []*Proc, add adder) {
	for _, p := range j.list {
		for i := range p.Waits {
			w := &p.Waits[i]
			q := j.by[w.Peer]
			if w.What != Send || q == nil || q == p || !stuck[p] || slices.Contains(circle, p) &&
				q.sendsOrReceives() {
				continue
			}
			what := "waits itself"
			switch {
			case q.State.gone():
				what = q.fate()
			case len(q.Waits) > 0:
				what = "is in " + q.Waits[0].Call
			}
			add(1, true, Unmatched, []*Proc{p, q},
				fmt.Sprintf(
					"unmatched send: the message of %s to %s (tag %d, %d bytes, on %s) is not "+
						"received: %s %s",
					p.name(), q.name(), w.Tag, w.Bytes, w.commName(), q.name(), what),
				callsOf([]*Proc{p, q})...)
		}
	}
}

func (p *Proc) sendsOrReceives() bool {
	return slices.ContainsFunc(p.Waits, func(w Wait) bool {
		return w.What == Send ||
			w.What == Recv
	})
}

// oddOnes: processes missing in a collective that other ranks are in.
func (j *job) oddOnes(stuck map[*Proc]bool, add adder) {
	seen := map[operation]bool{}
	for _, p := range j.list {
		for i := range p.Waits {
			w := &p.Waits[i]
			op := operation{w.Context, w.Seq}
			if w.What != Coll || seen[op] {
				continue
			}
			seen[op] = true
			there := j.ops[op]
			list, all, known := j.missing(p, w)
			if !known || !all && len(list) > len(there) {
				continue
			}
			verb := "are in"
			if len(there) == 1 {
				verb = "is in"
			}
			missing := "is missing"
			if len(list) > 1 {
				missing = "are missing"
			}
			add(2, stuck[p], MissingOne, list, fmt.Sprintf("%s %s in %s on %s: %s %s it",
				names(list), missing, w.Coll, w.commName(), names(slices.Clone(there)), verb),
				callsOf(list)...)
		}
	}
}

// linksIn: processes of a cluster that wait for messages from other clusters, and the activity of
// the I/O processes that lead to it.
func (j *job) linksIn(add adder) {
	by := map[string][]*Proc{}
	sources := map[string][]*Proc{}
	for _, p := range j.list {
		for i := range p.Waits {
			if w := &p.Waits[i]; (w.What == Recv || w.What == Probe) && w.PeerRank == ClusterIn {
				by[p.Part], sources[p.Part] = append(by[p.Part], p), j.procs(w.Members)
				break
			}
		}
	}
	for _, part := range slices.Sorted(maps.Keys(by)) {
		verb := "wait"
		if len(by[part]) == 1 {
			verb = "waits"
		}
		var details []string
		for _, q := range sources[part] {
			details = append(details, fmt.Sprintf("%s %s; it holds %d messages of %d bytes",
				q.name(), doing(q), q.Traffic.HeldMessages, q.Traffic.HeldBytes))
		}
		add(5, false, Link, by[part], fmt.Sprintf(
			"%s %s for messages from other clusters (MPISP_CLUSTER_IN), which come by %s",
			names(slices.Clone(by[part])), verb, names(slices.Clone(sources[part]))), details...)
	}
}

// computing: processes that are in no MPI call that waits, while other processes wait for them.
func (j *job) computing(more bool, add adder) {
	for _, q := range j.list {
		if q.State != Running && q.State != Stopped && q.State != Starting {
			continue
		}
		var waiters []*Proc
		for _, p := range j.list {
			for i := range p.Waits {
				if list, _, _ := j.targets(p, &p.Waits[i]); slices.Contains(list, q) &&
					!slices.Contains(waiters, p) {
					waiters = append(waiters, p)
				}
			}
		}
		if len(waiters) == 0 {
			continue
		}
		verb := "wait"
		if len(waiters) == 1 {
			verb = "waits"
		}
		details := callsOf([]*Proc{q})
		if !more {
			details = append(details, callsOf(waiters)...)
		}
		add(4, false, Computing, []*Proc{q}, fmt.Sprintf("%s %s for %s, which %s", names(waiters),
			verb, q.name(), q.where()), details...)
	}
}
