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

// Published names of jobs that share no host (package names): the agent that decides has the job's own names (ports.go) and, where the job was started with --name-server, tells them to the server, and asks
// it for others. The server forgets what is not said again, and has forgotten all when it comes again; so the agent that decides says its names as long as there are any, whichever agent that is.

// nameService is what the agent that decides knows of the server.
type nameService struct {
	holds   bool            // it says its names
	silent  bool            // the server did not answer last
	refused map[string]bool // names that are another job's, which was said
	asking  sync.WaitGroup
	stop    context.CancelFunc // ends what is being asked
	ctx     context.Context
}

// nameServerLimit is how long a server that cannot be reached is tried.
const nameServerLimit = 8 * time.Second

// leaveLimit is how long the end of a job waits for the server to hear of it.
const leaveLimit = time.Second

// What goroutines tell of the server.
type (
	nameAnswered struct {
		q      *question
		answer *names.Answer
		err    error
	}
	namesHeld struct {
		taken []string
		err   error
	}
	holdNames struct{}
)

// asksServer: names of this job are those of a server, too.
func (a *agent) asksServer() bool { return a.spec.NameServer != nil }

func (n *nameService) context() context.Context {
	if n.ctx == nil {
		n.ctx, n.stop = context.WithCancel(context.Background())
	}
	return n.ctx
}

// askServer has a goroutine ask, and tell the main thread.
func (a *agent) askServer(q *question, r *names.Request) {
	ctx := a.naming.context()
	r.Job = a.jobNumber()
	a.naming.asking.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, nameServerLimit)
		defer cancel()
		answer, err := a.spec.NameServer.AskUntil(ctx, r)
		a.inbox.put(nameAnswered{q, answer, err})
	})
}

// publishName makes a name known: in this job and, when there is one, at the server.
func (a *agent) publishName(q *question) {
	answer := a.ports.publish(q.Name, q.Text)
	switch {
	case answer.Class != 0 || !a.asksServer():
		q.reply(answer)
	case len(q.Name) > names.MostName || len(q.Text) > names.MostPort || q.Name == "" || q.Text == "":
		delete(a.ports.names, q.Name)
		q.reply(refuse(mpierr.Service, "a name service takes names of 1 to %d bytes, and ports of 1 to %d", names.MostName, names.MostPort))
	default:
		a.askServer(q, &names.Request{Kind: names.Publish, Name: q.Name, Port: q.Text})
	}
}

// unpublishName takes a name back. A server that cannot be reached forgets it by itself.
func (a *agent) unpublishName(q *question) {
	answer := a.ports.unpublish(q.Name)
	if answer.Class == 0 && a.asksServer() {
		delete(a.naming.refused, q.Name)
		if !a.naming.silent {
			a.askServer(q, &names.Request{Kind: names.Unpublish, Name: q.Name})
			return
		}
	}
	q.reply(answer)
}

// lookUpName finds a name in this job or, for one of its processes that asks for all, at the server.
func (a *agent) lookUpName(q *question) {
	answer := a.ports.lookup(q.Name)
	switch {
	case answer.Class == 0 || q.Number != service.LookEverywhere:
	case !a.asksServer():
		answer = refuse(mpierr.Name, "service %q is not published by this job, nor by another one on this host; jobs that share no host find each other's names when both are started with --name-server (spxctl names serve)", shorten(q.Name))
	case len(q.Name) <= names.MostName && q.Name != "":
		a.askServer(q, &names.Request{Kind: names.Lookup, Name: q.Name})
		return
	}
	q.reply(answer)
}

// happen takes what the server has answered.
func (e nameAnswered) happen(a *agent) {
	q, at := e.q, a.spec.NameServer.At
	answer := &service.Message{FD: -1}
	switch q.Kind {
	case service.Publish:
		switch {
		case e.err != nil:
			answer = refuse(mpierr.Service, "service %q is not published: %v", shorten(q.Name), e.err)
		case len(e.answer.Taken) > 0:
			answer = refuse(mpierr.Service, "service %q is published already, by job %016x for port %s (name service at %s)", shorten(q.Name), e.answer.Job, shorten(portName(e.answer.Port)), at)
		}
		if answer.Class != 0 {
			if a.ports.names[q.Name] == q.Text {
				delete(a.ports.names, q.Name)
			}
			break
		}
		a.holdNames(false)
	case service.Lookup:
		switch {
		case e.err != nil:
			answer = refuse(mpierr.Name, "service %q is not published by this job, nor by another one on this host, and %v", shorten(q.Name), e.err)
		case e.answer.Unknown:
			answer = refuse(mpierr.Name, "service %q is not published: not by this job, nor by another one on this host, nor by one that uses the name service at %s", shorten(q.Name), at)
		default:
			answer.Text = e.answer.Port
		}
	}
	q.reply(answer)
}

// holdNames begins to say the names of this job again and again; now: the server may not have them.
func (a *agent) holdNames(now bool) {
	if !a.asksServer() || a.up != nil || a.naming.holds || len(a.ports.names) == 0 {
		return
	}
	a.naming.holds = true
	if now {
		a.inbox.put(holdNames{})
		return
	}
	time.AfterFunc(names.Renew, func() { a.inbox.put(holdNames{}) })
}

// happen says all names once.
func (e holdNames) happen(a *agent) {
	n := &a.naming
	if n.holds = !a.done && a.up == nil && len(a.ports.names) > 0; !n.holds {
		return
	}
	var all []*names.Request
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(a.ports.names)), names.MostHeld) {
		r := &names.Request{Kind: names.Hold, Job: a.jobNumber(), Names: map[string]string{}}
		for _, name := range chunk {
			r.Names[name] = a.ports.lookup(name).Text
		}
		all = append(all, r)
	}
	ctx := n.context()
	n.asking.Go(func() {
		var out namesHeld
		for _, r := range all {
			answer, err := a.spec.NameServer.Ask(ctx, r)
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
	n := &a.naming
	if a.done || a.up != nil {
		n.holds = false
		return
	}
	if silent := e.err != nil; silent != n.silent {
		n.silent = silent
		if silent {
			a.say(fmt.Sprintf("published names of this job are not found by jobs on other hosts any more, until they can be said again: %v", e.err))
		} else {
			a.say(fmt.Sprintf("the name service at %s has the published names of this job again", a.spec.NameServer.At))
		}
	}
	for _, name := range e.taken {
		if a.ports.names[name] != "" && !n.refused[name] {
			if n.refused == nil {
				n.refused = map[string]bool{}
			}
			n.refused[name] = true
			a.say(fmt.Sprintf("service %q is another job's at the name service at %s: jobs on other hosts find that one", shorten(name), a.spec.NameServer.At))
		}
	}
	pause := names.Renew
	if e.err != nil {
		pause = names.Retry
	}
	time.AfterFunc(pause, func() { a.inbox.put(holdNames{}) })
}

// leaveNames tells the server that the job has no names any more.
func (a *agent) leaveNames() {
	n := &a.naming
	if n.stop != nil {
		n.stop()
		n.asking.Wait()
	}
	if !a.asksServer() || a.up != nil || a.succession.left || len(a.ports.names) == 0 || n.silent {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveLimit)
	defer cancel()
	a.spec.NameServer.Ask(ctx, &names.Request{Kind: names.Leave, Job: a.jobNumber()}) //nolint:errcheck // it forgets them by itself
}
