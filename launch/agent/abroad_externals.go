package agent

import (
	"fmt"
	"syscall"

	"libspx/core/ident"
	"libspx/core/mpierr"
	"libspx/launch/abroad"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/service"
	"libspx/shm"
)

// Processes of jobs that are reached over a link (abroad.go) as processes of this one see them:
// they have numbers here, on all hosts, addresses where they listen, and an end that is published.

// acquaint sends a process of this job the processes of another one.
func (a *agent) acquaint(q *question) {
	refused := refuse(mpierr.Group, "no processes of another job are named")
	asker, ok := a.person(q.Peer.ID)
	switch {
	case len(q.Peers) == 0:
		q.reply(refused)
	case !ok:
		q.reply(refuse(mpierr.Intern, "process %v, which asks, is none of this job", q.Peer.ID))
	case a.abroad.machine == nil || a.abroad.links[q.Peers[0].ID.Job] == nil:
		q.reply(refuse(procFailed, "job %016x has ended, or is not connected with this one",
			q.Peers[0].ID.Job))
	default:
		var wanted []ident.ProcID
		for _, p := range q.Peers {
			wanted = append(wanted, p.ID)
		}
		a.abroad.asked++
		a.abroad.asking[a.abroad.asked] = q
		a.carryAbroad(a.abroad.machine.Ask(a.abroad.asked, wanted[0].Job, asker, wanted))
	}
}

// person is a process of this job that lives, on any host.
func (a *agent) person(id ident.ProcID) (p abroad.Person, ok bool) {
	if id.Job != a.jobNumber() {
		return p, false
	}
	for i := range a.ranks {
		if a.ranks[i].external || a.segment.AgentState(i) != shm.AgentStarted || a.idOf(i) != id {
			continue
		}
		at, listens := a.segment.Address(i)
		return abroad.Person{ID: id, Number: uint32(i), Life: id.Incarnation,
			Host: uint32(a.ranks[i].host), At: at}, listens
	}
	return p, false
}

// idOf names process i of this job.
func (a *agent) idOf(i int) ident.ProcID {
	m := a.segment.Member(i)
	return ident.ProcID{Job: a.jobNumber(), World: m.World, Rank: m.Rank,
		Incarnation: a.segment.Incarnation(i)}
}

// acquainted answers acquaint: the numbers of the processes here (Slots) and their incarnations
// (Codes), their own ones at home (Peers), that of the asker there (Number), and the pact (Text).
func (a *agent) acquainted(act abroad.Answer) {
	q := a.abroad.asking[act.Question]
	delete(a.abroad.asking, act.Question)
	l := a.abroad.links[q.Peers[0].ID.Job]
	if act.Text == "" && l == nil {
		act.Text = "the job has ended"
	}
	if act.Text != "" {
		q.reply(refuse(procFailed, "%s", act.Text))
		return
	}
	answer := &service.Message{Number: uint64(act.Own.Number)<<32 | uint64(act.Own.Life),
		Text: string(l.pact.ID[:]) + string(l.pact.Key[:]), FD: -1}
	for k, p := range act.People {
		answer.Slots, answer.Codes = append(answer.Slots, act.Here[k].Number),
			append(answer.Codes, act.Here[k].Life)
		answer.Peers = append(answer.Peers, service.Peer{ID: p.ID, Slot: p.Number, Pid: p.Life})
	}
	q.reply(answer)
}

// planExternals gives processes of another job their numbers.
func (a *agent) planExternals(s *spawning) error {
	n := len(s.arrivals.people)
	s.externals = nil
	l := a.abroad.links[s.arrivals.job]
	if l == nil {
		return fmt.Errorf("job %016x has ended", s.arrivals.job)
	}
	slots := a.freeSlots(n, 0, s.held)
	if len(slots) < n {
		return a.full(n)
	}
	if err := a.numbersLeft(n); err != nil {
		return err
	}
	for k, p := range s.arrivals.people {
		g := control.External{ID: p.ID, Proc: slots[k], Host: int(l.hosts + p.Host%hostsOfJob),
			Serial: a.serial, At: p.At}
		g.Life = max(a.segment.Incarnation(g.Proc), a.lives[g.Proc]) + 1
		a.lives[g.Proc] = g.Life
		a.serial++
		s.externals = append(s.externals, g)
	}
	return nil
}

// externalsEntered: all hosts know the external processes, or not all could be notified.
func (a *agent) externalsEntered(s *spawning, answer *service.Message) {
	var places []abroad.Place
	for _, g := range s.externals {
		places = append(places, abroad.Place{Number: uint32(g.Proc), Life: g.Life})
	}
	text := ""
	if answer.Class != 0 {
		text = answer.Text
	}
	a.carryAbroad(a.abroad.machine.Entered(s.arrivals.batch, places, text))
}

// prepareExternals looks whether their numbers are free on this host.
func (a *agent) prepareExternals(w *control.World, made *control.Made) error {
	for _, g := range w.Externals {
		if g.Proc < 0 || g.Proc >= a.segment.MaxProcs() || !g.At.IsValid() || g.ID.Job == 0 {
			return fmt.Errorf("process %d of another job is beyond what this host knows", g.Proc)
		}
		if !a.segment.IsFree(g.Proc) && a.segment.AgentState(g.Proc) != shm.AgentEmpty {
			made.Held = append(made.Held, g.Proc)
		}
	}
	a.batch = &batch{world: w.Number, externals: w.Externals}
	return nil
}

// enterExternals makes them processes that those of this host can reach.
func (a *agent) enterExternals(b *batch) error {
	for _, g := range b.externals {
		member := shm.Member{World: g.ID.World, Rank: g.ID.Rank, Serial: g.Serial,
			Host: uint32(g.Host), Life: g.Life, Job: g.ID.Job, Incarnation: g.ID.Incarnation}
		if err := a.segment.AddProc(g.Proc, member); err != nil {
			return err
		}
		*a.rank(g.Proc) = rank{external: true, alive: true, pidfd: -1, host: noHost}
		a.segment.SetAddress(g.Proc, g.At)
		a.segment.MarkStarted(g.Proc, 0)
	}
	a.segment.Announce()
	return nil
}

// noHost is that of a process of another job.
const noHost = -1

// externalGone notifies all hosts of the end of an external process.
func (a *agent) externalGone(p *control.Parted) {
	for _, h := range a.others {
		if !h.gone {
			h.box.put(&control.Message{Parted: p})
		}
	}
	a.externalParted(p)
}

// externalParted notifies the processes of this host.
func (a *agent) externalParted(p *control.Parted) {
	i := p.Proc
	if i < 0 || i >= len(a.ranks) || !a.ranks[i].external || !a.ranks[i].alive ||
		a.segment.Incarnation(i) != p.Life {
		return
	}
	a.ranks[i].alive = false
	switch p.How {
	case abroad.Left:
		a.segment.MarkExited(i, 0)
	case abroad.Aborted:
		tied := len(a.connected(i)) > 0
		a.segment.MarkDead(i, syscall.WaitStatus(syscall.SIGKILL))
		if tied && a.up != nil {
			a.step(job.ExternalAborted{Name: p.Who.String()})
		} else if tied {
			a.externalAborted(p.Who.String())
		}
	default:
		a.segment.MarkDead(i, syscall.WaitStatus(syscall.SIGKILL))
	}
}

// externalAborted: a process of another job that is connected with some of this one has called
// MPI_Abort. In a job of several hosts all count as connected.
func (a *agent) externalAborted(name string) {
	var all []int
	for i := range a.ranks {
		if r := &a.ranks[i]; r.alive && !r.external {
			all = append(all, i)
		}
	}
	a.step(job.ExternalAborted{Name: name, Connected: all})
}
