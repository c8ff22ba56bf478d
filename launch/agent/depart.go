package agent

import (
	"fmt"
	"slices"
	"time"

	"libspx/cluster/layout"
	"libspx/core/mpierr"
	"libspx/launch/job"
	"libspx/launch/service"
)

// Clusters that leave the system in good order (spxctl system detach): the machine of the job says
// what is done (job.Depart), and here the table of the system is changed by that, and who has asked
// hears what has come of it.

// departure is a cluster that was asked to leave.
type departure struct {
	ask   *question
	part  int
	began time.Time
}

// detach begins to let a cluster go.
func (a *agent) detach(q *question) {
	m, decides := a.machine.(*job.Machine)
	if !decides || len(a.spec.Parts) == 0 {
		q.reply(refuse(mpierr.UnsupportedOperation, "job %016x is no system of clusters",
			a.jobNumber()))
		return
	}
	part := slices.IndexFunc(a.spec.Parts,
		func(p job.Part) bool { return p.Name == "cluster "+q.Name }) + 1
	switch {
	case a.meeting == nil:
		q.reply(refuse(mpierr.UnsupportedOperation,
			"job %016x is a system that one spxrun has started as a whole: its clusters stay as "+
				"long as it does; those can leave that were started one by one (spxrun --system "+
				"FILE --cluster NAME)", a.jobNumber()))
		return
	case part == 0:
		q.reply(refuse(mpierr.Arg,
			"the system has no cluster %s; spxctl system status shows which there are", q.Name))
		return
	}
	if why := m.MayDepart(part, q.World != 0); why != "" {
		q.reply(refuse(mpierr.Other, "%s", why))
		return
	}
	a.departures = append(a.departures, departure{q, part, time.Now()})
	a.step(job.Depart{Part: part, Limit: time.Duration(q.Number) * time.Millisecond,
		Gone: q.World != 0})
}

// tellDeparted answers those whose cluster has left, or will not.
func (a *agent) tellDeparted() {
	m, decides := a.machine.(*job.Machine)
	if len(a.departures) == 0 || !decides {
		return
	}
	states := m.Parts()
	a.departures = slices.DeleteFunc(a.departures, func(d departure) bool {
		switch s := states[d.part-1]; {
		case s.State == job.StateAway:
			d.ask.reply(&service.Message{Text: fmt.Sprintf(
				"%s has left, after %.1f s; spxrun --system FILE --cluster NAME attaches it "+
					"again, on any host", s.Name, time.Since(d.began).Seconds()), FD: -1})
		case s.State == job.StateGone:
			d.ask.reply(&service.Message{Text: fmt.Sprintf(
				"%s has left, and is not awaited; spxrun --system FILE --cluster NAME attaches "+
					"it again, on any host", s.Name), FD: -1})
		case m.Ending():
			d.ask.reply(refuse(mpierr.Other, "the system is being ended, and %s with it", s.Name))
		case s.State != job.StateLeaving:
			d.ask.reply(refuse(mpierr.Other, "%s does not leave; it is %s", s.Name, s.State))
		default:
			return false
		}
		return true
	})
}

// leaves tells all processes that a cluster leaves: nothing more is sent to it, and its I/O
// processes hand on what they have.
func (a *agent) leaves(part int) {
	a.change(func(l *layout.Layout) {
		for i := range a.spec.Parts {
			cluster, iop := a.placeIn(l, i+1)
			switch {
			case i+1 == part && cluster >= 0:
				l.Clusters[cluster].Leaving = true
			case iop >= 0 && a.spec.Parts[i].With == part:
				l.IOPs[iop].Leaving = true
			}
		}
	})
	a.spread()
}
