package agent

import (
	"encoding/json"
	"fmt"
	"strings"

	"libspx/cluster/layout"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/service"
)

// Parts of a system (clusters, I/O processes) that have stopped and are started again: each a new world of the job, made in the steps of spawned ones.

// nobody asks: the agent itself wants a world.
type nobody struct {
	a    *agent
	part int
}

func (n *nobody) Send(m *service.Message) error {
	if m.Class != 0 {
		n.a.step(job.NotRestarted{Part: n.part, Text: m.Text})
	}
	return nil
}

func (n *nobody) Gone() bool { return false }
func (n *nobody) Close()     {}

// restartPart starts the processes of a part again, on the hosts where they were.
func (a *agent) restartPart(part int) {
	m := &service.Message{Kind: service.Spawn, FD: -1, Number: uint64(part)}
	proc := 0
	for k := range a.spec.Programs {
		p := &a.spec.Programs[k]
		if p.Part == part {
			m.Programs = append(m.Programs, service.Program{Argv: p.Argv, Procs: uint32(p.Procs), Dir: p.Dir, Path: p.Path, Host: a.hostsOf(proc, p.Procs), Env: p.Env})
		}
		proc += p.Procs
	}
	a.spawn(&question{m, &nobody{a, part}})
}

// hostsOf lists the hosts of n processes from the first on, as info key "host" does.
func (a *agent) hostsOf(first, n int) string {
	if !a.several() {
		return ""
	}
	var out []string
	for i := first; i < first+n; {
		host, many := a.spec.Host(i), 0
		for ; i < first+n && a.spec.Host(i) == host; i++ {
			many++
		}
		name := a.spec.Hosts[host]
		if host == 0 {
			name = "localhost"
		}
		out = append(out, fmt.Sprintf("%s:%d", name, many))
	}
	return strings.Join(out, ",")
}

// partOf is the part that a world is made for, and what its processes are called; 0: a process has spawned it.
func partOf(spec *control.Job, q *service.Message) (part int, name, tag string) {
	if q.Text != "" || q.Number == 0 || q.Number > uint64(len(spec.Parts)) || q.Kind != service.Spawn {
		return 0, "", ""
	}
	return int(q.Number), spec.Parts[q.Number-1].Name, spec.Parts[q.Number-1].Tag
}

// ofPart is " of cluster x", or nothing.
func ofPart(name string) string {
	if name == "" {
		return ""
	}
	return " of " + name
}

// relayout enters the processes of a part that is started again into the table of the system: its parts are the clusters of that, and then the IOPs.
func (a *agent) relayout(s *spawning) {
	part, _, _ := partOf(a.spec, s.question.Message)
	if part == 0 {
		return
	}
	text := variable(a.spec.Programs[0].Env, layout.Variable)
	if text == "" {
		return
	}
	l, err := layout.Decode(text)
	if err != nil {
		a.say(fmt.Sprintf("the table of the system: %v", err))
		return
	}
	var procs layout.Procs
	for _, m := range s.members {
		procs = append(procs, m.Proc)
	}
	l.Version++
	if k := part - 1; k < len(l.Clusters) {
		l.Clusters[k].World, l.Clusters[k].Procs = s.world, procs
	} else {
		l.IOPs[k-len(l.Clusters)].World, l.IOPs[k-len(l.Clusters)].Proc = s.world, procs[0]
	}
	if text, err = l.Encode(); err != nil {
		a.say(fmt.Sprintf("the table of the system: %v", err))
		return
	}
	for k := range a.spec.Programs {
		a.spec.Programs[k].Env = replaced(a.spec.Programs[k].Env, layout.Variable, text)
	}
	for k := range s.question.Programs {
		s.question.Programs[k].Env = replaced(s.question.Programs[k].Env, layout.Variable, text)
	}
}

// aboutSystem describes the job as a system; nil: it is none.
func (a *agent) aboutSystem() *service.System {
	m, decides := a.machine.(*job.Machine)
	if !decides || len(a.spec.Parts) == 0 {
		return nil
	}
	s := &service.System{Layout: json.RawMessage(variable(a.spec.Programs[0].Env, layout.Variable))}
	for i, p := range m.Parts() {
		part := service.Part{Name: p.Name, State: p.State, Alive: p.Alive, Restarts: p.Restarts}
		for k := range a.spec.Programs {
			if a.spec.Programs[k].Part == i+1 {
				part.Program = strings.Join(a.spec.Programs[k].Argv, " ")
				break
			}
		}
		s.Parts = append(s.Parts, part)
	}
	return s
}

func variable(env []string, name string) string {
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

func replaced(env []string, name, value string) []string {
	var out []string
	for _, kv := range env {
		if !strings.HasPrefix(kv, name+"=") {
			out = append(out, kv)
		}
	}
	return append(out, name+"="+value)
}
