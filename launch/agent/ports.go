package agent

import (
	"fmt"
	"slices"
	"strings"

	"libspx/core/mpierr"
	"libspx/launch/service"
)

// ports is where processes find each other (MPI-5.0, 11.9): ports, who waits at them, and published names.
type ports struct {
	opened  uint32
	met     uint64
	waiting map[string]*port  // by port name
	names   map[string]string // service name -> port name
}

// port is an open port. Those who wait are answered in the order in which they came.
type port struct{ accepting, connecting []*question }

func (p *ports) open() { p.waiting, p.names = map[string]*port{}, map[string]string{} }

// PortPrefix begins the name of every port: "spx:", the number of its job, and the port's own.
const PortPrefix = "spx:"

func (p *ports) openPort(jobNumber uint64) *service.Message {
	p.opened++
	name := fmt.Sprintf("%s%016x:%d", PortPrefix, jobNumber, p.opened)
	p.waiting[name] = &port{}
	return &service.Message{Text: name, FD: -1}
}

// closePort turns away who waits there.
func (a *agent) closePort(name string) *service.Message {
	at := a.ports.waiting[name]
	if at == nil {
		return noPort(name)
	}
	delete(a.ports.waiting, name)
	for _, q := range slices.Concat(at.accepting, at.connecting) {
		answer := refuse(mpierr.Port, "port %s was closed", name)
		answer.Kind = q.Kind
		q.conn.Send(answer) //nolint:errcheck // it may be gone
	}
	return &service.Message{FD: -1}
}

func noPort(name string) *service.Message {
	return refuse(mpierr.Port, "there is no port %q: it was never opened, or is closed", shorten(name))
}

func shorten(text string) string {
	if len(text) > 80 {
		return text[:80] + "..."
	}
	return text
}

// wait brings those together that accept and that connect at a port.
func (a *agent) wait(q *question) {
	at := a.ports.waiting[q.Text]
	if at == nil {
		answer := noPort(q.Text)
		answer.Kind = q.Kind
		q.conn.Send(answer) //nolint:errcheck // it may be gone
		return
	}
	if q.Kind == service.Accept {
		at.accepting = append(at.accepting, q)
	} else {
		at.connecting = append(at.connecting, q)
	}
	for len(at.accepting) > 0 && len(at.connecting) > 0 {
		x, y := at.accepting[0], at.connecting[0]
		at.accepting, at.connecting = at.accepting[1:], at.connecting[1:]
		a.ports.met++
		for _, pair := range [][2]*question{{x, y}, {y, x}} {
			pair[0].conn.Send(&service.Message{Kind: pair[0].Kind, Peer: pair[1].Peer, Number: a.ports.met, FD: -1}) //nolint:errcheck // it may be gone
		}
	}
}

// forget drops those who wait over a connection that is gone.
func (p *ports) forget(conn *service.Conn) {
	gone := func(q *question) bool { return q.conn == conn }
	for _, at := range p.waiting {
		at.accepting = slices.DeleteFunc(at.accepting, gone)
		at.connecting = slices.DeleteFunc(at.connecting, gone)
	}
}

func (p *ports) publish(name, port string) *service.Message {
	if old, ok := p.names[name]; ok {
		return refuse(mpierr.Service, "service %q is published already, for port %s", shorten(name), shorten(old))
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
	return &service.Message{Text: port, FD: -1}
}
