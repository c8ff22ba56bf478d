// Package live is the view of a running job for its users (docs/live.md): successive snapshots
// (looks) of all its processes, and the differences between two of them, as rows that can be
// sorted, filtered and printed. `spxctl top`, the page of `spxctl serve` and the metrics are made
// of it.
//
// It owns no screen and no socket, and changes nothing in a job: its data are the answers of the
// job's agent (launch/steer).
package live

import (
	"slices"
	"time"

	"libspx/cluster/layout"
	"libspx/core/diagnose"
	"libspx/launch/service"
	"libspx/launch/steer"
)

// A Look is a job at one time.
type Look struct {
	At     time.Time
	About  service.About
	Procs  []diagnose.Proc
	Layout *layout.Layout // nil: the job is no system of clusters
}

// Take takes a look at a job.
func Take(job uint64) (*Look, error) {
	about, err := steer.Describe(job)
	if err != nil {
		return nil, err
	}
	procs, err := steer.Inspect(job, false)
	if err != nil {
		return nil, err
	}
	l := &Look{At: time.Now(), About: about, Procs: procs}
	if about.System != nil {
		if l.Layout, err = layout.Decode(string(about.System.Layout)); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// part is the name of the cluster of a process, or of the link that it serves as an I/O process;
// both are empty where there are no clusters.
func (l *Look) part(proc int) (cluster, link string) {
	if l.Layout == nil {
		return "", ""
	}
	switch role, i, _ := l.Layout.Find(proc); role {
	case layout.Compute, layout.Standby:
		return l.Layout.Clusters[i].Name, ""
	case layout.IO:
		if k := l.Layout.IOPs[i].Links; len(k) > 0 {
			return "", l.Layout.Links[k[0]].Name
		}
	}
	return "", ""
}

// Hosts are the names of all hosts, in the order of their first processes.
func (l *Look) Hosts() (list []string) {
	for i := range l.Procs {
		if h := l.Procs[i].Host; !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	return list
}
