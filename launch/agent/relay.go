package agent

import (
	"errors"
	"slices"

	"libspx/launch/control"
	"libspx/launch/service"
)

// Questions of processes of other hosts. Their own agent passes them on to that of spxrun's host,
// which alone gives numbers and keeps names, and passes its answers back. To that one, such a
// process is a client like any other.

// asking are the connections of this host's processes whose questions were passed on.
type asking struct {
	count   uint64
	numbers map[client]uint64
	clients map[uint64]client
	open    map[uint64]*question // that wait for an answer
	granted granted
}

// granted is what processes of this host have, and another agent that decides is to know
// (succession.go).
type granted struct {
	ports   map[string]bool
	names   map[string]string
	servers map[string]string // of names: those that an info key has named
	members *service.Message  // the latest Members
}

// heed takes note of an answer.
func (g *granted) heed(q, answer *service.Message) {
	switch {
	case q.Kind == service.Members && (g.members == nil || q.Number > g.members.Number):
		g.members = &service.Message{Kind: q.Kind, Number: q.Number, Slots: slices.Clone(q.Slots),
			FD: -1}
	case answer.Class != 0:
	case q.Kind == service.OpenPort:
		if g.ports == nil {
			g.ports = map[string]bool{}
		}
		g.ports[answer.Text] = true
	case q.Kind == service.ClosePort:
		delete(g.ports, q.Text)
	case q.Kind == service.Publish:
		if g.names == nil {
			g.names = map[string]string{}
		}
		g.names[q.Name] = q.Text
		if q.Server != "" {
			if g.servers == nil {
				g.servers = map[string]string{}
			}
			g.servers[q.Name] = q.Server
		}
	case q.Kind == service.Unpublish:
		delete(g.names, q.Name)
		delete(g.servers, q.Name)
	}
}

// askUp passes a question on.
func (a *agent) askUp(q *question) {
	n, known := a.asking.numbers[q.conn]
	if !known {
		if a.asking.numbers == nil {
			a.asking.numbers, a.asking.clients = map[client]uint64{}, map[uint64]client{}
		}
		a.asking.count++
		n = a.asking.count
		a.asking.numbers[q.conn], a.asking.clients[n] = n, q.conn
	}
	if a.spec.Succeeds {
		if a.asking.open == nil {
			a.asking.open = map[uint64]*question{}
		}
		a.asking.open[n] = q
	}
	if _, here := q.conn.(*service.Conn); here && q.waits() {
		q.reply(&service.Message{World: service.PassedOn, Name: a.hostName(a.succession.decider),
			FD: -1})
	}
	a.up.box.put(&control.Message{Question: &control.Question{Number: n, Text: packed(q.Message)}})
}

// hungUpHere reports that no process waits for an answer any more.
func (a *agent) hungUpHere(conn client) {
	if n, ok := a.asking.numbers[conn]; ok {
		delete(a.asking.numbers, conn)
		delete(a.asking.clients, n)
		delete(a.asking.open, n)
		a.up.box.put(&control.Message{Question: &control.Question{Number: n}})
	}
}

// answeredFromAbove passes an answer back.
func (a *agent) answeredFromAbove(answer *control.Answer) {
	m, err := service.Decode(answer.Text)
	if q := a.asking.open[answer.Number]; q != nil && err == nil {
		a.asking.granted.heed(q.Message, m)
		if q.Kind == service.Arrive && m.Class == 0 && q.Number < uint64(len(a.ranks)) {
			a.ranks[q.Number].passed = true
		}
	}
	delete(a.asking.open, answer.Number)
	if conn := a.asking.clients[answer.Number]; conn != nil && err == nil {
		conn.Send(m) //nolint:errcheck // it may be gone
	}
}

// packed is the form in which a message travels between hosts.
func packed(m *service.Message) []byte { return m.Encode()[4:] }

// remote is a process of another host that has asked.
type remote struct {
	from   *remoteHost
	number uint64
	gone   bool
}

var errGone = errors.New("the process that asked is gone")

func (r *remote) Send(m *service.Message) error {
	if r.gone {
		return errGone
	}
	r.from.box.put(&control.Message{Answer: &control.Answer{Number: r.number, Text: packed(m)}})
	return nil
}

func (r *remote) Gone() bool { return r.gone }
func (r *remote) Close()     { r.gone = true }

// asked takes a question of a process of another host.
func (a *agent) asked(h *remoteHost, q *control.Question) {
	r := h.askers[q.Number]
	if len(q.Text) == 0 {
		if r != nil {
			delete(h.askers, q.Number)
			a.hungUp(r)
		}
		return
	}
	m, err := service.Decode(q.Text)
	if err != nil {
		return // what cannot be read came from no process of this job
	}
	if r == nil {
		if h.askers == nil {
			h.askers = map[uint64]*remote{}
		}
		r = &remote{from: h, number: q.Number}
		h.askers[q.Number] = r
	}
	a.serve(&question{m, r})
}

// forgetAskers: a host is gone, and with it all that have asked.
func (a *agent) forgetAskers(h *remoteHost) {
	for n, r := range h.askers {
		delete(h.askers, n)
		a.hungUp(r)
	}
}
