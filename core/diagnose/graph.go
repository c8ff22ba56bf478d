package diagnose

import (
	"slices"
)

// The graph of waiting processes.

// job is the processes by their numbers.
type job struct {
	list []*Proc
	by   map[int]*Proc
	ops  map[operation][]*Proc // collectives that processes wait in
}

// operation is one collective operation.
type operation struct {
	context uint64
	seq     uint32
}

func newJob(procs []Proc) *job {
	j := &job{by: map[int]*Proc{}, ops: map[operation][]*Proc{}}
	for i := range procs {
		p := &procs[i]
		j.list = append(j.list, p)
		j.by[p.Proc] = p
		for _, w := range p.Waits {
			if w.What == Coll {
				op := operation{w.Context, w.Seq}
				j.ops[op] = append(j.ops[op], p)
			}
		}
	}
	return j
}

// targets are the processes that a wait is for. all: each of them has to act; else one is enough.
// known: there are no others.
func (j *job) targets(p *Proc, w *Wait) (list []*Proc, all, known bool) {
	if q := j.by[w.Peer]; q != nil && q != p {
		return []*Proc{q}, true, true
	}
	switch w.What {
	case Recv, Probe, Any:
		return j.procs(w.Members), false, !w.More
	case Coll:
		return j.missing(p, w)
	case Event:
		if w.Call == "MPI_Finalize" && p.Queues != nil && p.Queues.Pending > 0 {
			for _, e := range p.Queues.Entries {
				if q := j.by[e.Peer]; q != nil && (e.Kind == Announced || e.Kind == NoRoom) &&
					!slices.Contains(list, q) {
					list = append(list, q)
				}
			}
			return list, true, len(list) > 0
		}
	}
	return nil, false, false
}

func (j *job) procs(numbers []int) (list []*Proc) {
	for _, n := range numbers {
		if q := j.by[n]; q != nil {
			list = append(list, q)
		}
	}
	return list
}

// fromRoot are the collectives in which all but the root wait for the root; toRoot those in which
// the root waits for the other ranks, each of which may have done its part.
var (
	fromRoot = []string{"MPI_Bcast", "MPI_Scatter", "MPI_Scatterv"}
	toRoot   = []string{"MPI_Gather", "MPI_Gatherv", "MPI_Reduce", "MPI_Scan", "MPI_Exscan"}
)

// isNeighbourly: its members wait for some of the other ranks only.
func isNeighbourly(coll string) bool { return len(coll) > 12 && coll[:12] == "MPI_Neighbor" }

// missing are the members of a collective that have not come to it.
func (j *job) missing(p *Proc, w *Wait) (list []*Proc, all, known bool) {
	there := j.ops[operation{w.Context, w.Seq}]
	for _, q := range j.procs(w.Members) {
		if q != p && !slices.Contains(there, q) && !q.passed(operation{w.Context, w.Seq}) {
			list = append(list, q)
		}
	}
	one := slices.Contains(fromRoot, w.Coll) || slices.Contains(toRoot, w.Coll) ||
		isNeighbourly(w.Coll)
	return list, !one, !w.More && len(list) > 0
}

// passed: the process is in a later operation of the communicator.
func (p *Proc) passed(op operation) bool {
	return slices.ContainsFunc(p.Waits, func(w Wait) bool {
		return w.What == Coll &&
			w.Context == op.context && w.Seq > op.seq
	})
}

// stuck are the processes that wait and can never go on, whatever those do that can: all that they
// wait for has ended, or is stuck itself.
func (j *job) stuck() map[*Proc]bool {
	goes := map[*Proc]bool{}
	for {
		changed := false
		for _, p := range j.list {
			if !goes[p] && j.canGo(p, goes) {
				goes[p], changed = true, true
			}
		}
		if !changed {
			break
		}
	}
	stuck := map[*Proc]bool{}
	for _, p := range j.list {
		if !goes[p] && p.State == Waiting {
			stuck[p] = true
		}
	}
	return stuck
}

// Longest is the longest wait of a process, in seconds.
func Longest(procs []Proc) (s float64) {
	for i := range procs {
		for _, w := range procs[i].Waits {
			s = max(s, w.For)
		}
	}
	return s
}

// Hangs: some processes have waited for these seconds, and can never continue. All processes for
// which such a process waits have waited as long, or have ended: messages under way to it have
// arrived.
func Hangs(procs []Proc, seconds float64) bool {
	j := newJob(procs)
	stuck := j.stuck()
	if len(stuck) == 0 {
		return false
	}
	for p := range stuck {
		for _, w := range p.Waits {
			if w.For < seconds {
				return false
			}
		}
	}
	return true
}

// canGo: p may act, if those that are known to can.
func (j *job) canGo(p *Proc, goes map[*Proc]bool) bool {
	switch {
	case p.State.gone():
		return false
	case p.State != Waiting || p.Multiple || len(p.Waits) == 0:
		return true
	}
	for i := range p.Waits {
		list, all, known := j.targets(p, &p.Waits[i])
		if !known || j.fits(p, &p.Waits[i]) {
			return true
		}
		does := func(q *Proc) bool { return goes[q] }
		if all && !slices.ContainsFunc(list, func(q *Proc) bool { return !goes[q] }) || !all &&
			slices.ContainsFunc(list, does) {
			return true
		}
	}
	return false
}

// fits: the message that a receive or probe waits for is in the process's queue; it is about to see
// it.
func (j *job) fits(p *Proc, w *Wait) bool {
	return (w.What == Recv || w.What == Probe) && p.Queues != nil &&
		slices.ContainsFunc(p.Queues.Entries, func(e Entry) bool {
			return e.Kind == Unexpected && e.Context == w.Context &&
				(w.PeerRank == Anybody || w.PeerRank == e.Rank) &&
				(w.Tag == AnyTag || w.Tag == e.Tag)
		})
}

// cycle is the shortest circle of stuck processes, each of which waits for the next; nil: there is
// none.
func (j *job) cycle(stuck map[*Proc]bool) []*Proc {
	var best []*Proc
	for _, start := range j.list {
		if !stuck[start] {
			continue
		}
		if c := j.circle(start, stuck); c != nil && (best == nil || len(c) < len(best)) {
			best = c
		}
		if len(best) == 2 {
			break
		}
	}
	return best
}

// circle is the shortest one through start.
func (j *job) circle(start *Proc, stuck map[*Proc]bool) []*Proc {
	from := map[*Proc]*Proc{}
	for queue := []*Proc{start}; len(queue) > 0; queue = queue[1:] {
		p := queue[0]
		for i := range p.Waits {
			list, _, _ := j.targets(p, &p.Waits[i])
			for _, q := range list {
				if q == start {
					path := []*Proc{p}
					for ; p != start; p = from[p] {
						path = append(path, from[p])
					}
					slices.Reverse(path)
					return path
				}
				if stuck[q] && from[q] == nil {
					from[q] = p
					queue = append(queue, q)
				}
			}
		}
	}
	return nil
}
