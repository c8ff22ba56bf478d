// Package view is a system of clusters as one of its processes sees it: what a layout (package
// layout) means for the messages of that process. It owns the tables that the data plane looks up
// for each message (capi/bodies/system.c), the hints of the worlds of an I/O process, and why a
// message cannot be sent or received. It is pure: a later layout gives another view.
package view

import (
	"slices"
	"strconv"
	"strings"

	"libspx/cluster/choice"
	"libspx/cluster/layout"
	"libspx/core/mpierr"
)

// Heals is whether a process that is gone gets a successor. The values are those of SPX_HEALS_*
// (capi/bodies/system.h).
type Heals uint8

// HealsNo, HealsDead and Away: none does; a dead one does; it belongs to a cluster that leaves the
// system and may return.
const (
	HealsNo Heals = iota
	HealsDead
	Away
)

// No cluster, or no world, and several of them. AnyCluster is SPX_ORIGIN_ANY_CLUSTER.
const (
	None       = -1
	Several    = -2
	AnyCluster = layout.MaxClusters
)

// A View is the system as one process sees it.
type View struct {
	Cluster int   // of the process; None: it is an I/O process (IOP)
	IOPs    []IOP // all of the system
	// of a compute process: the IOPs behind MPISP_CLUSTER_OUT and MPISP_CLUSTER_IN
	Outs, Ins []int
	Policy    choice.Policy
	Plan      choice.Plan // how one of Outs is chosen
	// of an IOP: the clusters that it is a member of, those that it receives from first
	Worlds []World
	// of an IOP: where messages go and come from, of a call on MPI_COMM_WORLD, and then on each of
	// Worlds
	Ways []Way
}

// An IOP in the eyes of this process.
type IOP struct {
	Proc  int // None: it has ended
	Heals Heals
}

// A World is a cluster in the eyes of an IOP.
type World struct {
	Cluster int
	In, Out bool // the IOP receives from there, sends there
	Ranks   int
	Heals   Heals
	// the IOP leaves: messages from there are forwarded, and no more are accepted
	Closing bool
	Hints   []string // keys and values for MPI_Comm_get_info
}

// A Way is where messages of a call go and come from.
type Way struct {
	To    int // index of the world; None or Several: nowhere
	From  int // number of the cluster; AnyCluster or None
	Ranks int // the size of the largest cluster that they may come from
}

// Of is the view of a process with that role and index (layout.Find). policy is the text by which
// the program or the user chooses IOPs; empty: that of the cluster's link.
func Of(l *layout.Layout, role layout.Role, index int, policy string) (*View, error) {
	v := &View{Cluster: None}
	own := false
	if role == layout.IO {
		v.Worlds = worlds(l, index)
		v.Ways = ways(v.Worlds)
	} else {
		v.Cluster, own = index, l.Clusters[index].Leaving
		v.Outs, v.Ins = l.Outbound(index), l.Inbound(index)
		if policy == "" && len(v.Outs) > 0 {
			policy = l.ChoiceFor(v.Outs[0], index)
		}
	}
	var err error
	if v.Policy, err = choice.Parse(policy); err != nil {
		return nil, mpierr.New(mpierr.Arg, "SPX_IOP_CHOICE, or the link of this cluster: %v", err)
	}
	var from []choice.Candidate
	for _, i := range v.Outs {
		from = append(from, choice.Candidate{Index: i, Weight: l.IOPs[i].Weight})
	}
	v.Plan = choice.Make(v.Policy, from)
	for _, p := range l.IOPs {
		x := IOP{Proc: p.Proc, Heals: healsOf(p.Heals, p.Leaving, role != layout.IO && own)}
		if p.Gone {
			x.Proc = None
		}
		v.IOPs = append(v.IOPs, x)
	}
	return v, nil
}

// healsOf is what a process knows of another one that heals, or belongs to a cluster which leaves
// the system. own: so does this one, for which the other is there as long as it is.
func healsOf(heals, leaving, own bool) Heals {
	switch {
	case leaving && own:
		return HealsNo
	case leaving:
		return Away
	case heals:
		return HealsDead
	}
	return HealsNo
}

// worlds are those of an IOP.
func worlds(l *layout.Layout, iop int) (list []World) {
	p := &l.IOPs[iop]
	all := slices.Clone(p.In)
	for _, c := range p.Out {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	for _, i := range all {
		c := &l.Clusters[i]
		w := World{Cluster: i, In: slices.Contains(p.In, i), Out: slices.Contains(p.Out, i),
			Ranks: len(c.Procs), Heals: healsOf(c.Heals, c.Leaving, p.Leaving),
			Closing: p.Leaving && !c.Leaving}
		w.Hints = hints(l, p, all, &w)
		list = append(list, w)
	}
	return list
}

// Keys by which an IOP learns what a world is: MPI_Comm_get_info.
const (
	KeyCluster   = "spx_cluster"   // its name
	KeyIndex     = "spx_index"     // its index, as returned by MPISP_Status_get_cluster
	KeyDirection = "spx_direction" // in, out or both, in the eyes of the IOP
	KeyHeals     = "spx_heals"     // true: processes that die there are replaced
	KeyDead      = "spx_dead"      // ranks that are not replaced all the same, as 0,2
	// worlds (indices of MPISP_World_get) that messages from there are for, as 1,2
	KeyTo = "spx_to"
)

// hints describe the world w of an IOP; all are the clusters of its worlds.
func hints(l *layout.Layout, p *layout.IOP, all []int, w *World) []string {
	direction := "in"
	switch {
	case w.In && w.Out:
		direction = "both"
	case w.Out:
		direction = "out"
	}
	var to, dead []string
	for k, other := range all {
		if slices.Contains(p.Out, other) && linked(l, p, w.Cluster, other) {
			to = append(to, strconv.Itoa(k))
		}
	}
	c := &l.Clusters[w.Cluster]
	for rank, proc := range c.Procs {
		if slices.Contains(c.Dead, proc) {
			dead = append(dead, strconv.Itoa(rank))
		}
	}
	return []string{KeyCluster, c.Name, KeyIndex, strconv.Itoa(w.Cluster), KeyDirection, direction,
		KeyHeals, strconv.FormatBool(c.Heals), KeyDead, strings.Join(dead, ","), KeyTo,
		strings.Join(to, ",")}
}

// linked: one of the IOP's links leads from cluster a to cluster b. Without links, all it receives
// is for all that it sends to, but for the cluster itself.
func linked(l *layout.Layout, p *layout.IOP, a, b int) bool {
	if len(p.Links) == 0 {
		return slices.Contains(p.In, a) && a != b
	}
	return slices.ContainsFunc(p.Links, func(k int) bool {
		return !l.Links[k].Gone && slices.Contains(l.Links[k].From, a) &&
			slices.Contains(l.Links[k].To, b)
	})
}

// ways are those of MPI_COMM_WORLD as long as it is bound to none, and of each world.
func ways(all []World) []Way {
	list := []Way{{To: None, From: None}}
	for i, w := range all {
		own := Way{To: None, From: None}
		if w.Out {
			own.To = i
		}
		if w.In {
			own.From, own.Ranks = w.Cluster, w.Ranks
		}
		list = append(list, own)
		list[0] = Way{To: either(list[0].To, own.To, Several),
			From: either(list[0].From, own.From, AnyCluster), Ranks: max(list[0].Ranks, own.Ranks)}
	}
	return list
}

// either is that of two numbers which is not None; several, if neither is.
func either(a, b, several int) int {
	switch None {
	case a:
		return b
	case b:
		return a
	}
	return several
}

// A Question is a send or a receive that the data plane has found impossible.
type Question struct {
	Send bool
	Arg  string // name of the argument that names the rank
	Rank int    // of an IOP: its value
	Way  int    // of an IOP: the place in Ways
	// of a compute process: the call is on MPI_COMM_WORLD or a duplicate of it
	World bool
}

// Refuse returns why; v is nil in a process of no system.
func (v *View) Refuse(q Question) error {
	if v != nil && v.Cluster == None {
		return v.refuseIOP(q)
	}
	class, why := mpierr.Rank, ""
	switch {
	case v == nil:
		why = "this job is no system of clusters, which spxrun --system starts (docs/systems.md)"
	case !q.World:
		why = "only MPI_COMM_WORLD and its duplicates lead to other clusters"
	case !q.Send:
		why = "no link leads to this cluster"
	case len(v.Outs) == 0:
		why = "no link leads away from this cluster"
	default:
		class, why = mpierr.ProcFailed,
			"all I/O processes that receive from this cluster have ended"
	}
	if q.Send {
		return mpierr.New(class, "%s = MPISP_CLUSTER_OUT: %s", q.Arg, why)
	}
	return mpierr.New(class, "%s = MPISP_CLUSTER_IN: %s", q.Arg, why)
}

func (v *View) refuseIOP(q Question) error {
	way := v.Ways[q.Way]
	there, ranks, does, come := way.From, way.Ranks, "receive from", "come from"
	if q.Send {
		there, does, come = way.To, "send to", "go to"
	}
	which := "any cluster"
	if q.Way > 0 {
		which = "that cluster"
	}
	switch {
	case there == Several:
		return mpierr.New(mpierr.Comm, "this I/O process sends to %d clusters: MPISP_Bind says "+
			"to which, or MPISP_World_get gives its world", v.countOuts())
	case there == None:
		return mpierr.New(mpierr.Rank, "%s = %d: this I/O process does not %s %s", q.Arg, q.Rank,
			does, which)
	case q.Send:
		ranks = v.Worlds[there].Ranks
	}
	return mpierr.New(mpierr.Rank, "%s = %d is no rank of the cluster that messages %s (size %d)",
		q.Arg, q.Rank, come, ranks)
}

func (v *View) countOuts() (n int) {
	for _, w := range v.Worlds {
		if w.Out {
			n++
		}
	}
	return n
}

// Count is how many worlds the process is a member of; v is nil in a process of no system.
func (v *View) Count() int {
	if v != nil && v.Cluster == None {
		return len(v.Worlds)
	}
	return 1
}

// CheckIndex checks the index of a world; v is nil in a process of no system.
func (v *View) CheckIndex(index int) error {
	n, plural := v.Count(), ""
	if index >= 0 && index < n {
		return nil
	}
	if n != 1 {
		plural = "s"
	}
	return mpierr.New(mpierr.Arg, "index = %d; this process is a member of %d world%s, from 0",
		index, n, plural)
}
