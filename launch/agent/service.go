package agent

import (
	"encoding/binary"
	"fmt"

	"libspx/core/mpierr"
	"libspx/launch/job"
	"libspx/launch/service"
)

// What processes ask of the agent (launch/service). Other goroutines read the questions; the main thread answers them.

// question is one that has come over conn.
type question struct {
	*service.Message
	conn *service.Conn
}

// hungUp: the process that asked has gone, or has its answer.
type hungUp struct{ conn *service.Conn }

// jobNumber is the job by the first eight bytes of its id, as in ProcIDs.
func (a *agent) jobNumber() uint64 {
	id := a.segment.JobID()
	return binary.LittleEndian.Uint64(id[:8])
}

// openService begins to take questions.
func (a *agent) openService() (err error) {
	if a.listener, err = service.Listen(a.jobNumber()); err != nil {
		return err
	}
	go func() {
		for {
			conn, err := service.Take(a.listener)
			if err != nil {
				return
			}
			go a.hear(conn)
		}
	}()
	return nil
}

// hear reads what comes over a connection, and tells when it has gone.
func (a *agent) hear(conn *service.Conn) {
	for {
		m, err := conn.Receive()
		if err != nil {
			break
		}
		a.inbox.put(&question{m, conn})
	}
	a.inbox.put(hungUp{conn})
}

// serve answers a question, or keeps it until it can be answered.
func (a *agent) serve(q *question) {
	var answer *service.Message
	switch kind := q.Kind; {
	case len(a.spec.Hosts) < 2:
	case kind == service.SpawnResult, kind == service.Withdraw:
	default: // numbers of processes and names would be this host's alone
		class := mpierr.UnsupportedOperation
		if kind == service.Spawn {
			class = mpierr.Spawn
		}
		answer = refuse(class, "a job of several hosts can neither spawn processes nor be connected with others yet; run it on one host")
		answer.Kind = kind
		q.conn.Send(answer) //nolint:errcheck // it may be gone
		return
	}
	switch q.Kind {
	case service.Spawn:
		answer = a.spawn(q.Message)
	case service.SpawnResult:
		a.abandon(q.World)
		answer = &service.Message{FD: -1}
	case service.OpenPort:
		answer = a.ports.openPort(a.jobNumber())
	case service.ClosePort:
		answer = a.closePort(q.Text)
	case service.Accept, service.Connect:
		a.wait(q)
		return
	case service.Withdraw:
		a.withdraw(q)
		return
	case service.Publish:
		answer = a.ports.publish(q.Name, q.Text)
	case service.Unpublish:
		answer = a.ports.unpublish(q.Name)
	case service.Lookup:
		answer = a.ports.lookup(q.Name)
	case service.Attach:
		answer = a.attach(q.Peer)
	case service.Guests:
		answer = a.receive(q.Peers)
	default:
		answer = refuse(mpierr.Intern, "the agent does not know question %d: is libspx of another version than spxrun?", q.Kind)
	}
	answer.Kind = q.Kind
	q.conn.Send(answer) //nolint:errcheck // it may be gone
}

func (a *agent) hungUp(conn *service.Conn) {
	a.ports.forget(conn)
	conn.Close()
}

// refuse is an answer that says no.
func refuse(class mpierr.Class, format string, args ...any) *service.Message {
	return &service.Message{Class: uint32(class), Text: fmt.Sprintf(format, args...), FD: -1}
}

// ending is the answer to those who ask while the job is being ended.
func (a *agent) ending(class mpierr.Class) *service.Message {
	if !a.machine.Ending() {
		return nil
	}
	return refuse(class, "the job is being ended")
}

var _ job.Event = hungUp{}
