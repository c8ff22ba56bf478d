package agent

import (
	"fmt"
	"slices"
	"strings"

	"libspx/core/mpierr"
	"libspx/launch/service"
)

// ports is where processes find each other (MPI-5.0, 11.9): ports, the processes that wait at them,
// and published names.
type ports struct {
	opened  uint32
	met     uint64
	waiting map[string]*port  // by portID
	names   map[string]string // service name -> port name
}

// port is an open port. Waiting processes are answered in the order of their questions.
type port struct {
	// its current name: another agent may keep it than the one that has opened it
	name                  string
	accepting, connecting []*question
}

// portID is the part of a port's name that stays the same whichever agent keeps it.
func portID(name string) string {
	id, _, _ := strings.Cut(name, "@")
	return id
}

func (p *ports) open() { p.waiting, p.names = map[string]*port{}, map[string]string{} }

// PortPrefix begins the name of every port: "spx:", the number of its job, and the port's own.
const PortPrefix = "spx:"

// openPort makes a port. Where the processes of the job are reached over the network, its name has
// the agent's address, too.
func (a *agent) openPort(jobNumber uint64) *service.Message {
	p := &a.ports
	p.opened++
	name := fmt.Sprintf("%s%016x:%d", PortPrefix, jobNumber, p.opened)
	if a.several() {
		way, err := a.openWay(uint64(p.opened), newPortKey())
		if err != nil {
			return refuse(mpierr.Port, "%v", err)
		}
		name += way
	}
	p.waiting[portID(name)] = &port{name: name}
	return &service.Message{Text: name, FD: -1}
}

// keepPort keeps a port whose agent is lost: callers that know its key, and its new address, are
// accepted.
func (a *agent) keepPort(name string) {
	w, ok := parseWay(name)
	if !ok || a.ports.waiting[portID(name)] != nil {
		return
	}
	way, err := a.openWay(w.port, w.key)
	if err != nil {
		a.say(fmt.Sprintf("port %s is closed with the host that has kept it: %v", portName(name),
			err))
		return
	}
	a.ports.waiting[portID(name)] = &port{name: portID(name) + way}
}

// closePort refuses the processes that wait there.
func (a *agent) closePort(name string) *service.Message {
	at := a.ports.waiting[portID(name)]
	if at == nil {
		return noPort(name)
	}
	delete(a.ports.waiting, portID(name))
	a.closeWay(name)
	for _, q := range slices.Concat(at.accepting, at.connecting) {
		q.reply(refuse(mpierr.Port, "port %s was closed", portName(name)))
	}
	return &service.Message{FD: -1}
}

func noPort(name string) *service.Message {
	return refuse(mpierr.Port, "there is no port %q: it was never opened, or is closed",
		shorten(portName(name)))
}

func shorten(text string) string {
	if len(text) > 80 {
		return text[:80] + "..."
	}
	return text
}

// wait brings those together that accept and that connect at a port.
func (a *agent) wait(q *question) {
	at := a.ports.waiting[portID(q.Text)]
	if at != nil && a.isLinked(q.conn) && !sameKey(at.name, q.Text) {
		at = nil
	}
	if w, ok := parseWay(q.Text); at == nil && ok && w.job != a.jobNumber() &&
		q.Kind == service.Connect && q.Peer.ID.Job == a.jobNumber() {
		a.connectAbroad(q, w)
		return
	}
	if at == nil {
		q.reply(noPort(q.Text))
		return
	}
	if q.Kind == service.Accept {
		at.accepting = append(at.accepting, q)
	} else {
		at.connecting = append(at.connecting, q)
	}
	a.pair(at)
}

// pair answers the first of both sides, as long as there is one on each. Processes that have gone
// do not count: that may be seen here before the end of their connection is reported.
func (a *agent) pair(at *port) {
	for {
		at.accepting, at.connecting = present(at.accepting), present(at.connecting)
		if len(at.accepting) == 0 || len(at.connecting) == 0 {
			return
		}
		x, y := at.accepting[0], at.connecting[0]
		if x.Name != y.Name {
			at.connecting = at.connecting[1:]
			y.reply(refuse(mpierr.Port,
				"the processes of the two jobs must have the same SPX_TLS; of those that accept "+
					"it is %s, of those that connect %s", x.Name, y.Name))
			continue
		}
		a.ports.met++
		if !a.introduce(x, y) {
			at.accepting = at.accepting[1:]
			continue
		}
		at.accepting, at.connecting = at.accepting[1:], at.connecting[1:]
		// if it has ended this moment, x will learn that as of any process that it talks to
		a.introduce(y, x)
	}
}

// present is the queue without the processes at its head that no longer wait.
func present(queue []*question) []*question {
	for len(queue) > 0 && queue[0].conn.Gone() {
		queue = queue[1:]
	}
	return queue
}

// introduce sends q the identity of other; false: q is gone.
func (a *agent) introduce(q, other *question) bool {
	return q.conn.Send(&service.Message{Kind: q.Kind, Peer: other.Peer, Number: a.ports.met,
		FD: -1}) == nil
}

// withdraw removes a question whose time is over. One that is not found has been answered already,
// and its process will read that.
func (a *agent) withdraw(q *question) {
	if a.ports.forget(q.conn) || a.withdrawAbroad(q) {
		q.reply(&service.Message{FD: -1})
	}
}

// forget drops the questions of a connection, and reports whether there were any.
func (p *ports) forget(conn client) (waited bool) {
	gone := func(q *question) bool {
		waited = waited || q.conn == conn
		return q.conn == conn
	}
	for _, at := range p.waiting {
		at.accepting = slices.DeleteFunc(at.accepting, gone)
		at.connecting = slices.DeleteFunc(at.connecting, gone)
	}
	return waited
}

func (p *ports) publish(name, port string) *service.Message {
	if old, ok := p.names[name]; ok {
		return refuse(mpierr.Service, "service %q is published already, for port %s", shorten(name),
			shorten(portName(old)))
	}
	p.names[name] = strings.Clone(port)
	return &service.Message{FD: -1}
}

func (p *ports) unpublish(name string) *service.Message {
	if _, ok := p.names[name]; !ok {
		return refuse(mpierr.Service, "service %q is not published by this job", shorten(name))
	}
	delete(p.names, name)
	return &service.Message{FD: -1}
}

func (p *ports) lookup(name string) *service.Message {
	port, ok := p.names[name]
	if !ok {
		return refuse(mpierr.Name, "service %q is not published", shorten(name))
	}
	if at := p.waiting[portID(port)]; at != nil {
		port = at.name
	}
	return &service.Message{Text: port, FD: -1}
}
