package live

import (
	"fmt"
	"strings"

	"libspx/core/diagnose"
)

// An Event is what has changed between two looks and is worth a line.
type Event struct {
	At   float64 `json:"at"`   // seconds of the Unix epoch
	Kind string  `json:"kind"` // start, death, takeover, end, stop, cluster
	Text string  `json:"text"`
}

// Changes are what has happened between two looks, as lines. before may be nil: then only what is
// out of the ordinary.
func Changes(before, now *Look) (list []Event) {
	at := float64(now.At.UnixMilli()) / 1000
	say := func(kind, format string, args ...any) {
		list = append(list, Event{at, kind, fmt.Sprintf(format, args...)})
	}
	first := map[int]*diagnose.Proc{}
	if before != nil {
		for i := range before.Procs {
			first[before.Procs[i].Proc] = &before.Procs[i]
		}
	}
	started := 0
	for i := range now.Procs {
		p, was := &now.Procs[i], first[now.Procs[i].Proc]
		switch {
		case was != nil && was.Traffic.Life != p.Traffic.Life && was.Traffic.At > 0 &&
			p.Traffic.At > 0:
			say("start", "%s: another process has its place, pid %d on %s", now.name(p), p.Pid,
				p.Host)
		case was == nil && before != nil:
			started++
		case was != nil && was.Standby && !p.Standby && p.Part != "":
			say("takeover", "%s takes the place of %s: pid %d on %s", was.Name(), p.Name(), p.Pid,
				p.Host)
		}
		if was != nil && was.State == p.State && was.Traffic.Life == p.Traffic.Life {
			continue
		}
		switch p.State {
		case diagnose.Dead:
			say("death", "%s has died: pid %d on %s%s", now.name(p), p.Pid, p.Host, ended(p))
		case diagnose.Stopped:
			say("stop", "%s is stopped by a signal: pid %d on %s", now.name(p), p.Pid, p.Host)
		case diagnose.Silent:
			say("death", "nothing is heard of %s on %s", now.name(p), p.Host)
		case diagnose.Ended:
			if was != nil {
				say("end", "%s has ended%s", now.name(p), ended(p))
			}
		}
	}
	switch {
	case started == 1:
		say("start", "there is one more process")
	case started > 1:
		say("start", "there are %d more processes", started)
	}
	return append(list, partChanges(before, now, at)...)
}

func ended(p *diagnose.Proc) string {
	if p.End == "" {
		return ""
	}
	return ", " + p.End
}

// name is what a process is called in a line.
func (l *Look) name(p *diagnose.Proc) string {
	cluster, link := l.part(p.Proc)
	switch {
	case p.Part != "":
		return p.Name()
	case cluster != "":
		return fmt.Sprintf("rank %d of cluster %s", p.Rank, cluster)
	case link != "":
		return fmt.Sprintf("process %d of link %s", p.Proc, link)
	}
	return p.Name()
}

// partChanges are those of clusters.
func partChanges(before, now *Look, at float64) (list []Event) {
	if now.Layout == nil || now.About.System == nil {
		return nil
	}
	for i, p := range now.About.System.Parts {
		if i >= len(now.Layout.Clusters) {
			break
		}
		was := "starting"
		restarts := 0
		if before != nil && before.About.System != nil && i < len(before.About.System.Parts) {
			was, restarts = before.About.System.Parts[i].State,
				before.About.System.Parts[i].Restarts
		}
		var what []string
		if p.State != was {
			what = append(what, "is "+p.State)
		}
		if p.Restarts > restarts {
			what = append(what, "has been started again")
		}
		if len(what) > 0 {
			list = append(list, Event{at, "cluster", "cluster " + now.Layout.Clusters[i].Name +
				" " + strings.Join(what, " and ")})
		}
	}
	return list
}
