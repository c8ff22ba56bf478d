package system

import (
	"errors"
	"fmt"
	"strings"

	"libspx/cluster/config"
	"libspx/cluster/layout"
	"libspx/launch/service"
)

// Status is a running system, as it can be shown: its clusters and links, and how each cluster is.
type Status struct {
	*config.System
	notes   map[string]string
	colour  map[string]string
	master  string            // of the system, with its term, and of the clusters
	masters map[string]string // of clusters, for the drawing
}

// StatusOf makes a Status from a job's agent's report.
func StatusOf(about *service.About) (*Status, error) {
	if about.System == nil {
		return nil, errors.New("job " + about.Job + " is no system of clusters")
	}
	l, err := layout.Decode(string(about.System.Layout))
	if err != nil {
		return nil, err
	}
	if len(about.System.Parts) != len(l.Clusters)+len(l.IOPs) {
		return nil, fmt.Errorf("job %s tells of %d clusters and I/O processes, and has %d",
			about.Job, len(about.System.Parts), len(l.Clusters)+len(l.IOPs))
	}
	s := &Status{&config.System{Name: l.System}, map[string]string{}, map[string]string{}, "",
		map[string]string{}}
	if sys := about.System; sys.Master != "" {
		s.master = fmt.Sprintf("master: %s (process %d, term %d, version %d)\n", sys.Master,
			sys.MasterPid, sys.Term, sys.Version)
	} else {
		s.master = fmt.Sprintf("master: is being elected (the last: term %d, version %d)\n",
			sys.Term, sys.Version)
	}
	for i, c := range l.Clusters {
		part := about.System.Parts[i]
		s.Clusters = append(s.Clusters, config.Cluster{Name: c.Name, Program: part.Program,
			Ranks: len(c.Procs), Standbys: max(len(c.Standbys)-part.Cold, 0)})
		s.notes[c.Name], s.colour[c.Name] = noteOf(part), colours[part.State]
		if about.Hosts > 1 && part.Master != "" {
			s.masters[c.Name] = ", master " + part.Master
			s.master += fmt.Sprintf("master of %s: %s (process %d)\n", c.Name, part.Master,
				part.MasterPid)
		}
	}
	if at := about.System.Meets; at != "" {
		s.master += fmt.Sprintf("clusters are attached at %s\n", at)
	}
	for i, k := range l.Links {
		if n := len(s.Links); n > 0 && k.Name == s.Links[n-1].Name+".back" {
			s.Links[n-1].Bidirectional = true
			continue
		}
		link := config.Link{Name: k.Name, Choice: k.Choice, From: namesOf(l, k.From),
			To: namesOf(l, k.To)}
		for n, p := range l.IOPs {
			if len(p.Links) > 0 && p.Links[0] == i &&
				about.System.Parts[len(l.Clusters)+n].Alive > 0 {
				link.IOPs++
			}
		}
		s.Links = append(s.Links, link)
	}
	return s, nil
}

// colours of states, in the drawing.
var colours = map[string]string{"awaited": "#f2f2f2", "starting": "#fff3c4", "running": "#d3f2d3",
	"degraded": "#ffe0b3", "stopping": "#ffd0d0", "leaving": "#ffe0b3", "restarting": "#fff3c4",
	"gone": "#ffb3b3", "ended": "#e6e6e6"}

func noteOf(p service.Part) string {
	text := fmt.Sprintf("%s, %d alive", p.State, p.Alive)
	switch {
	case p.Restarts == 1:
		text += ", restarted once"
	case p.Restarts > 1:
		text += fmt.Sprintf(", restarted %d times", p.Restarts)
	}
	if p.Left > 0 {
		text += fmt.Sprintf(", %d not started", p.Left)
	}
	return text
}

func namesOf(l *layout.Layout, list []int) (out []string) {
	for _, i := range list {
		out = append(out, l.Clusters[i].Name)
	}
	return out
}

// Text is the picture in text, with the state of every cluster. Living I/O processes are counted.
func (s *Status) Text() string {
	return strings.TrimRight(s.Picture(func(c string) string { return s.notes[c] }), "\n") + "\n" +
		s.master
}

// Drawing is the picture in SVG, with a colour for each state.
func (s *Status) Drawing() string {
	return s.SVG(func(c string) config.Paint {
		return config.Paint{Text: s.notes[c] + s.masters[c],
			Colour: s.colour[c]}
	})
}
