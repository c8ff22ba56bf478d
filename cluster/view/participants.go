package view

import (
	"slices"

	"libspx/cluster/layout"
)

// Participants are the processes whose messages are kept: of those that the system began with, and
// then of those that have been attached each time, the ranks of the clusters, one cluster after
// another, and the I/O processes. So no number changes when there are more.
type Participants struct {
	List  []Participant
	First []int // by cluster: its rank 0
	IOPs  []int // by I/O process of the layout
}

// A Participant is one of them, in the eyes of a process.
type Participant struct {
	Proc int
	// another process takes its place when it dies: one that is taken over transparently heals,
	// until it has stopped for good
	Heals bool
	Apart bool // a rank of a cluster to which no link leads from this process's
	IOP   int  // its number among the I/O processes of the layout; None: it is a rank
}

// ParticipantsOf lists them as a process with that role and index sees them.
func ParticipantsOf(l *layout.Layout, role layout.Role, index int) (p Participants) {
	isIOP := role == layout.IO
	// then it goes with its cluster
	leaves := isIOP && index < len(l.IOPs) && l.IOPs[index].Leaving
	reached := reachedFrom(l, index)
	p.First, p.IOPs = make([]int, len(l.Clusters)), make([]int, len(l.IOPs))
	for since := 0; since <= l.Growths; since++ {
		for i, c := range l.Clusters {
			if c.Since != since {
				continue
			}
			p.First[i] = len(p.List)
			for _, proc := range c.Procs {
				p.List = append(p.List, Participant{Proc: proc, IOP: None,
					Heals: c.Heals && !c.Gone && !slices.Contains(c.Dead, proc) &&
						!(leaves && c.Leaving),
					Apart: !isIOP && !reached[i]})
			}
		}
		for i, x := range l.IOPs {
			if x.Since == since {
				p.IOPs[i] = len(p.List)
				p.List = append(p.List, Participant{Proc: x.Proc, IOP: i})
			}
		}
	}
	return p
}

// Me is the participant that a process is (layout.Find), and that of rank 0 of its cluster. A
// standby is none yet, and an I/O process has no cluster: 0.
func (p *Participants) Me(role layout.Role, index, rank int) (me, first int) {
	switch role {
	case layout.IO:
		return p.IOPs[index], 0
	case layout.Compute:
		return p.First[index] + rank, p.First[index]
	}
	return 0, p.First[index]
}

// reachedFrom is, by cluster, whether a link leads there from that one.
func reachedFrom(l *layout.Layout, cluster int) []bool {
	reached := make([]bool, len(l.Clusters))
	for _, k := range l.Links {
		for _, to := range k.To {
			reached[to] = reached[to] || slices.Contains(k.From, cluster)
		}
	}
	return reached
}

// Keeps reports whether messages of a system are kept.
func Keeps(l *layout.Layout) bool {
	return l.Kept || Transparent(l)
}

// Transparent reports whether some ranks of a system are taken over transparently.
func Transparent(l *layout.Layout) bool {
	return slices.ContainsFunc(l.Clusters, func(c layout.Cluster) bool { return c.Replays })
}
