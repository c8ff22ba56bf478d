package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"libspx/core/mpierr"
	"libspx/launch/names"
	"libspx/launch/service"
)

// Published names of jobs that share no host (package names): the agent that decides has the job's
// own names (ports.go) and tells them to the server that the job was started with (--name-server),
// or that an info key names, and asks it for others. A server forgets what is not said again, and
// has forgotten all when it comes again; so the agent that decides says its names as long as there
// are any, whichever agent that is.

// nameService is what the agent that decides knows of servers.
type nameService struct {
	// the server of names that are published at another one than the job's
	of     map[string]*names.Place
	served map[names.Place]*servedBy // those at which this job has names, or had
	asking sync.WaitGroup
	stop   context.CancelFunc // ends what is being asked
	ctx    context.Context
}

// servedBy is how it stands with one.
type servedBy struct {
	holds   bool            // its names are said
	silent  bool            // it did not answer last
	refused map[string]bool // names that are another job's, which was said
}

// nameServerLimit is how long a server that cannot be reached is tried.
const nameServerLimit = 8 * time.Second

// leaveLimit is how long the end of a job waits for the server to hear of it.
const leaveLimit = time.Second

// What goroutines tell of the server.
type (
	nameAnswered struct {
		q      *question
		at     *names.Place
		answer *names.Answer
		err    error
	}
	namesHeld struct {
		at    names.Place
		taken []string
		err   error
	}
	holdNames struct{ at names.Place }
)

// nameServerOf reads the file of the name service that an environment names; nil: there is none.
// spxrun does that itself.
func nameServerOf(environ []string) (*names.Place, error) {
	file := variableOf(environ, service.EnvNameServer)
	if file == "" {
		return nil, nil
	}
	place, err := names.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (spxctl names serve %s)", service.EnvNameServer, err, file)
	}
	return place, nil
}

// serverOf is the server of a name that this job has published; nil: there is none.
func (a *agent) serverOf(name string) *names.Place {
	if p := a.naming.of[name]; p != nil {
		return p
	}
	return a.spec.NameServer
}

// serverFor is the server that a process asks for, by an info key or by having been started with
// it.
func (a *agent) serverFor(q *question) (*names.Place, error) {
	if q.Server == "" {
		return a.spec.NameServer, nil
	}
	return names.Decode(q.Server)
}

func (n *nameService) by(p *names.Place) *servedBy {
	if n.served == nil {
		n.served = map[names.Place]*servedBy{}
	}
	if n.served[*p] == nil {
		n.served[*p] = &servedBy{refused: map[string]bool{}}
	}
	return n.served[*p]
}

// keep notes the server of a name, as a process has named it.
func (n *nameService) keep(name, server string) {
	place, err := names.Decode(server)
	if err != nil {
		return
	}
	if n.of == nil {
		n.of = map[string]*names.Place{}
	}
	n.of[name] = place
}

func (n *nameService) context() context.Context {
	if n.ctx == nil {
		n.ctx, n.stop = context.WithCancel(context.Background())
	}
	return n.ctx
}

// askServer has a goroutine ask, and tell the main thread.
func (a *agent) askServer(q *question, at *names.Place, r *names.Request) {
	ctx := a.naming.context()
	r.Job = a.jobNumber()
	a.naming.asking.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, nameServerLimit)
		defer cancel()
		answer, err := at.AskUntil(ctx, r)
		a.inbox.put(nameAnswered{q, at, answer, err})
	})
}

// publishName makes a name known: in this job and, when there is one, at the server.
func (a *agent) publishName(q *question) {
	server, err := a.serverFor(q)
	if err != nil {
		q.reply(refuse(mpierr.Service, "service %q is not published: %v", shorten(q.Name), err))
		return
	}
	answer := a.ports.publish(q.Name, q.Text)
	switch {
	case answer.Class != 0 || server == nil:
		q.reply(answer)
	case len(q.Name) > names.MostName || len(q.Text) > names.MostPort || q.Name == "" ||
		q.Text == "":
		a.forgetName(q.Name)
		q.reply(refuse(mpierr.Service,
			"a name service takes names of 1 to %d bytes, and ports of 1 to %d", names.MostName,
			names.MostPort))
	default:
		if q.Server != "" {
			a.naming.keep(q.Name, q.Server)
		}
		a.askServer(q, server, &names.Request{Kind: names.Publish, Name: q.Name, Port: q.Text})
	}
}

// forgetName: this job has a name no more.
func (a *agent) forgetName(name string) {
	delete(a.ports.names, name)
	delete(a.naming.of, name)
}

// unpublishName takes a name back from where it was published. A server that cannot be reached
// forgets it by itself.
func (a *agent) unpublishName(q *question) {
	server := a.serverOf(q.Name)
	answer := a.ports.unpublish(q.Name)
	if answer.Class == 0 && server != nil {
		delete(a.naming.of, q.Name)
		by := a.naming.by(server)
		delete(by.refused, q.Name)
		if !by.silent {
			a.askServer(q, server, &names.Request{Kind: names.Unpublish, Name: q.Name})
			return
		}
	}
	q.reply(answer)
}

// lookUpName finds a name in this job or, for one of its processes that asks for all, at the
// server.
func (a *agent) lookUpName(q *question) {
	answer := a.ports.lookup(q.Name)
	server, err := a.serverFor(q)
	switch {
	case answer.Class == 0 || q.Number != service.LookEverywhere:
	case err != nil:
		answer = refuse(mpierr.Name, "service %q is not looked up: %v", shorten(q.Name), err)
	case server == nil:
		answer = refuse(mpierr.Name,
			"service %q is not published by this job, nor by another one on this host; jobs "+
				"that share no host find each other's names when both are started with "+
				"--name-server (spxctl names serve)", shorten(q.Name))
	case len(q.Name) <= names.MostName && q.Name != "":
		a.askServer(q, server, &names.Request{Kind: names.Lookup, Name: q.Name})
		return
	}
	q.reply(answer)
}

// happen takes what the server has answered.
func (e nameAnswered) happen(a *agent) {
	q, at := e.q, e.at.At
	answer := &service.Message{FD: -1}
	switch q.Kind {
	case service.Publish:
		switch {
		case e.err != nil:
			answer = refuse(mpierr.Service, "service %q is not published: %v", shorten(q.Name),
				e.err)
		case len(e.answer.Taken) > 0:
			answer = refuse(mpierr.Service,
				"service %q is published already, by job %016x for port %s (name service at %s)",
				shorten(q.Name), e.answer.Job, shorten(portName(e.answer.Port)), at)
		}
		if answer.Class != 0 {
			if a.ports.names[q.Name] == q.Text {
				a.forgetName(q.Name)
			}
			break
		}
		a.holdNames(e.at, false)
	case service.Lookup:
		switch {
		case e.err != nil:
			answer = refuse(mpierr.Name,
				"service %q is not published by this job, nor by another one on this host, and %v",
				shorten(q.Name), e.err)
		case e.answer.Unknown:
			answer = refuse(mpierr.Name,
				"service %q is not published: not by this job, nor by another one on this host, "+
					"nor by one that uses the name service at %s", shorten(q.Name), at)
		default:
			answer.Text = e.answer.Port
		}
	}
	q.reply(answer)
}

// holdAllNames begins to say the names of this job again and again, to all servers; they may not
// have them.
func (a *agent) holdAllNames() {
	for _, at := range a.servers() {
		a.holdNames(&at, true)
	}
}

// servers are those that have names of this job.
func (a *agent) servers() (list []names.Place) {
	for name := range a.ports.names {
		if p := a.serverOf(name); p != nil && !slices.Contains(list, *p) {
			list = append(list, *p)
		}
	}
	return list
}

// namesAt are the names that this job has at a server, in their order.
func (a *agent) namesAt(at names.Place) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(a.ports.names)) {
		if p := a.serverOf(name); p != nil && *p == at {
			list = append(list, name)
		}
	}
	return list
}

// holdNames begins to say the names of this job to a server again and again; now: it may not have
// them.
func (a *agent) holdNames(at *names.Place, now bool) {
	by := a.naming.by(at)
	if a.up != nil || by.holds {
		return
	}
	by.holds = true
	if now {
		a.inbox.put(holdNames{*at})
		return
	}
	time.AfterFunc(names.Renew, func() { a.inbox.put(holdNames{*at}) })
}

// happen says all names once.
func (e holdNames) happen(a *agent) {
	n, by := &a.naming, a.naming.by(&e.at)
	list := a.namesAt(e.at)
	if by.holds = !a.done && a.up == nil && len(list) > 0; !by.holds {
		delete(n.served, e.at)
		return
	}
	var all []*names.Request
	for chunk := range slices.Chunk(list, names.MostHeld) {
		r := &names.Request{Kind: names.Hold, Job: a.jobNumber(), Names: map[string]string{}}
		for _, name := range chunk {
			r.Names[name] = a.ports.lookup(name).Text
		}
		all = append(all, r)
	}
	ctx := n.context()
	n.asking.Go(func() {
		out := namesHeld{at: e.at}
		for _, r := range all {
			answer, err := e.at.Ask(ctx, r)
			if out.err = err; err != nil {
				break
			}
			out.taken = append(out.taken, answer.Taken...)
		}
		a.inbox.put(out)
	})
}

// happen hears whether the server has them.
func (e namesHeld) happen(a *agent) {
	by := a.naming.by(&e.at)
	if a.done || a.up != nil {
		by.holds = false
		return
	}
	if silent := e.err != nil; silent != by.silent {
		by.silent = silent
		if silent {
			a.say(fmt.Sprintf(
				"published names of this job are not found by jobs on other hosts any more, "+
					"until they can be said again: %v", e.err))
		} else {
			a.say(fmt.Sprintf("the name service at %s has the published names of this job again",
				e.at.At))
		}
	}
	for _, name := range e.taken {
		if a.ports.names[name] != "" && !by.refused[name] {
			by.refused[name] = true
			a.say(fmt.Sprintf(
				"service %q is another job's at the name service at %s: jobs on other hosts "+
					"find that one", shorten(name), e.at.At))
		}
	}
	pause := names.Renew
	if e.err != nil {
		pause = names.Retry
	}
	time.AfterFunc(pause, func() { a.inbox.put(holdNames{e.at}) })
}

// leaveNames tells the servers that the job has no names any more.
func (a *agent) leaveNames() {
	n := &a.naming
	if n.stop != nil {
		n.stop()
		n.asking.Wait()
	}
	if a.up != nil || a.succession.left {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
	defer cancel()
	for _, at := range a.servers() {
		if !n.by(&at).silent {
			// it forgets them by itself
			n.asking.Go(func() { at.Ask(ctx, &names.Request{Kind: names.Leave, Job: a.jobNumber()}) }) //nolint:errcheck
		}
	}
	n.asking.Wait()
}
