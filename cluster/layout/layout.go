// Package layout assigns the roles in a system of clusters (MPI/SPx): the paper's "cluster
// configuration table", as used by the processes of a running system. It owns the table, its text
// form and its rules. It starts nothing and chooses nothing: launch/ makes the first layout and the
// later ones, capi/ reads them, and cluster/choice picks I/O processes (IOPs).
//
// A system is one job: one key, one membership, one memory file on each host. Its processes are
// divided into worlds. Each cluster is a world of its own, with the ranks 0..N-1 of its compute
// processes, independent of the other parts of the system. An IOP has no rank in any cluster. It
// receives from the clusters In and sends to the clusters Out: messages that a compute process
// sends to MPISP_CLUSTER_OUT go to one of the IOPs that have its cluster in In, and those that it
// receives from MPISP_CLUSTER_IN come from one of those that have it in Out.
//
// # How a system is started
//
// The starter makes a control.Job whose programs have the world numbers of this table
// (control.Program.World), and gives the layout to it:
//
//	job.Programs[k].World = cluster.World  // each program of a cluster; ranks of a world are counted through its programs
//	job.Programs[k].World = iop.World      // each IOP is a program of one process, in a world of its own
//	err := control.Attach(job, &layout)    // checks that the two fit, and sets the variable Variable for all programs
//
// Processes (Cluster.Procs, IOP.Proc) are numbers of the job: those of its first programs are
// counted through all programs, from 0, and so are their places in the memory file. World numbers
// are any distinct ones; spawned worlds get those above the largest.
//
// A later layout has a higher Version and keeps what has an index: a cluster, link or IOP that is
// gone stays in its place with Gone set (Follows).
package layout

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Variable is the environment variable that holds the layout, in its text form, in every process
// that such a system is started with.
const Variable = "SPX_SYSTEM_LAYOUT"

// Limits. A text must fit into one environment variable (128 KiB on Linux); the other limits follow
// from the size of a message's origin field.
const (
	MaxText     = 96 << 10
	MaxClusters = 255
	MaxRanks    = 1<<22 - 1
)

// A Layout is a system as it is at one time.
type Layout struct {
	Version uint64 `json:"version"` // grows with every change; the first is 1
	System  string `json:"system"`
	// senders keep messages to other clusters until they were accepted there
	Kept     bool      `json:"kept,omitempty"`
	Clusters []Cluster `json:"clusters"`
	Links    []Link    `json:"links,omitempty"`
	IOPs     []IOP     `json:"iops,omitempty"`
	// how often clusters, links and IOPs have been added after the start
	Growths int `json:"growths,omitempty"`
}

// A Cluster is a world of compute processes. Its index is its place in Layout.Clusters.
type Cluster struct {
	Name  string `json:"name"`
	World uint32 `json:"world"` // number of its MPI_COMM_WORLD in the job
	Procs Procs  `json:"procs"` // by rank
	// wait to take a rank over; in the same world, behind the ranks
	Standbys Procs `json:"standbys,omitempty"`
	// of the standbys at the beginning, the last: each is started when a rank has died
	Cold int `json:"cold,omitempty"`
	// 1 + the serial number of the process that was rank 0 first; 0: Procs[0] is
	Lead uint32 `json:"lead,omitempty"`
	// dead ranks are replaced: messages for it are kept
	Heals bool `json:"heals,omitempty"`
	// ranks that are nevertheless not replaced, while others of the cluster live
	Dead Procs `json:"dead,omitempty"`
	// transparently: what it has received is kept, and received again
	Replays bool `json:"replays,omitempty"`
	// with Replays: processes on other hosts have that, too
	Copies bool `json:"copies,omitempty"`
	Gone   bool `json:"gone,omitempty"` // it has ended
	// it came with that growth; 0: the system began with it
	Since int `json:"since,omitempty"`
	// it leaves the system, or has left it, and may return: messages for it then wait
	Leaving bool `json:"leaving,omitempty"`
}

// A Link joins clusters in one direction by the IOPs that belong to it. A bidirectional link is
// two.
type Link struct {
	Name string `json:"name"`
	From []int  `json:"from"` // clusters, by index
	To   []int  `json:"to"`
	// how one of its IOPs is chosen: a policy of package choice; empty: its default
	Choice string `json:"choice,omitempty"`
	Gone   bool   `json:"gone,omitempty"`
}

// An IOP is an I/O process.
type IOP struct {
	Proc  int    `json:"proc"`
	World uint32 `json:"world"` // a number of its own
	// by index: it receives from all their From, and sends to all their To
	Links  []int `json:"links"`
	In     []int `json:"in,omitempty"`
	Out    []int `json:"out,omitempty"`
	Weight int   `json:"weight,omitempty"` // of the weighted policy; 0: 1
	// when it dies it is started again, as another process: until then it has not left
	Heals bool `json:"heals,omitempty"`
	Gone  bool `json:"gone,omitempty"`
	Since int  `json:"since,omitempty"` // as of a cluster
	// likewise: it forwards the messages that it has, and accepts no more
	Leaving bool `json:"leaving,omitempty"`
}

// Role is the role of a process.
type Role int

// Roles.
const (
	Stranger Role = iota // not of the system, or spawned by one of its processes
	Compute
	Standby
	IO
)

// Find returns the role of process proc of the job, and the index of its cluster, or of it among
// the IOPs, and its rank or place.
func (l *Layout) Find(proc int) (role Role, index, rank int) {
	for i, c := range l.Clusters {
		if r := slices.Index(c.Procs, proc); r >= 0 && !c.Gone {
			return Compute, i, r
		}
		if r := slices.Index(c.Standbys, proc); r >= 0 && !c.Gone {
			return Standby, i, r
		}
	}
	for i, p := range l.IOPs {
		if p.Proc == proc && !p.Gone {
			return IO, i, 0
		}
	}
	return Stranger, -1, -1
}

// Outbound channels lists the IOPs, by index, that receive from a cluster: those behind
// MPISP_CLUSTER_OUT there.
func (l *Layout) Outbound(cluster int) (out []int) {
	for i, p := range l.IOPs {
		if !p.Gone && slices.Contains(p.In, cluster) {
			out = append(out, i)
		}
	}
	return out
}

// Inbound channels lists the IOPs, by index, that send to a cluster: those behind MPISP_CLUSTER_IN
// there.
func (l *Layout) Inbound(cluster int) (out []int) {
	for i, p := range l.IOPs {
		if !p.Gone && slices.Contains(p.Out, cluster) {
			out = append(out, i)
		}
	}
	return out
}

// First is how many clusters the system began with: the first ones. Those that have been added come
// behind them.
func (l *Layout) First() int {
	n := len(l.Clusters)
	for n > 0 && l.Clusters[n-1].Since > 0 {
		n--
	}
	return n
}

// Cluster returns the index of the cluster with a name, -1 if there is none.
func (l *Layout) Cluster(name string) int {
	return slices.IndexFunc(l.Clusters, func(c Cluster) bool { return c.Name == name })
}

// ChoiceFor returns the policy by which IOP i is chosen among the outbound channels of a cluster:
// that of its first link from there.
func (l *Layout) ChoiceFor(iop, cluster int) string {
	for _, k := range l.IOPs[iop].Links {
		if slices.Contains(l.Links[k].From, cluster) && !l.Links[k].Gone {
			return l.Links[k].Choice
		}
	}
	return ""
}

// Encode returns the text form. The layout is checked first.
func (l *Layout) Encode() (string, error) {
	if err := l.Check(); err != nil {
		return "", err
	}
	b, err := json.Marshal(l)
	if err != nil {
		return "", err
	}
	if len(b) > MaxText {
		return "", fmt.Errorf(
			"layout: the system has %d clusters and %d IOPs, and takes %d bytes; %d are "+
				"possible (processes that are numbered in a row take less)",
			len(l.Clusters), len(l.IOPs), len(b), MaxText)
	}
	return string(b), nil
}

// Decode reads what Encode has written, and checks it.
func Decode(text string) (*Layout, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("layout: %d bytes; %d are possible", len(text), MaxText)
	}
	l := new(Layout)
	if err := json.Unmarshal([]byte(text), l); err != nil {
		return nil, fmt.Errorf("layout: %w", err)
	}
	if err := l.Check(); err != nil {
		return nil, err
	}
	return l, nil
}
