package agent

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"libspx/core/mpierr"
	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/service"
)

// What processes ask of the agent (launch/service). Other goroutines read the questions; the main
// thread answers them.

// question is one that has come over conn.
type question struct {
	*service.Message
	conn client
}

// client is the origin of a question: the connection of a process (service.Conn), or the route to
// it through another host's agent.
type client interface {
	Send(*service.Message) error
	Gone() bool
	Close()
}

// reply answers a question.
func (q *question) reply(answer *service.Message) {
	answer.Kind = q.Kind
	q.conn.Send(answer) //nolint:errcheck // it may be gone
}

// hungUp: the process that asked has gone, or has its answer.
type hungUp struct{ conn client }

// jobNumber is the job by the first eight bytes of its id, as in ProcIDs.
func (a *agent) jobNumber() uint64 {
	id := a.segment.JobID()
	return binary.LittleEndian.Uint64(id[:8])
}

// openService begins to take questions.
func (a *agent) openService() (err error) {
	a.listener, err = service.Listen(a.jobNumber())
	if err == nil {
		a.listeners = append(a.listeners, a.listener)
		go a.takeQuestions(a.listener)
	}
	// without, a process in a network namespace of its own has no agent
	if listener, door, err := service.OpenDoor(); err == nil {
		a.door = unix.Dup3(door, control.DoorFD, unix.O_CLOEXEC) == nil
		unix.Close(door)
		a.listeners = append(a.listeners, listener)
		go a.takeQuestions(listener)
	}
	if a.door && (a.attached != nil || a.up != nil) {
		return nil // an agent of the same job may be on this host, and have the name
	}
	return err
}

func (a *agent) takeQuestions(listener int) {
	for {
		if service.Await(listener) != nil {
			return
		}
		a.unheard.Add(1) // before it is accepted: a reader sees it in the socket's queue, or here
		conn, err := service.Take(listener)
		if conn != nil {
			go a.hear(conn)
			continue
		}
		a.unheard.Add(-1)
		if err != nil {
			return
		}
	}
}

// shared are the descriptors that ranks inherit.
func (a *agent) shared() []int {
	if a.door {
		return []int{control.MemoryFD, control.DoorFD}
	}
	return []int{control.MemoryFD}
}

// placeOfJob is the environment by which a process finds its job.
func (a *agent) placeOfJob() []string {
	id := a.segment.JobID()
	list := []string{service.EnvFD + "=" + strconv.Itoa(control.MemoryFD), service.EnvAgent + "=" +
		strconv.Itoa(os.Getpid()), service.EnvJob + "=" + hex.EncodeToString(id[:])}
	if a.door {
		list = append(list, service.EnvDoor+"="+strconv.Itoa(control.DoorFD))
	}
	return list
}

// hear reads the questions of a connection, and reports when it has gone.
func (a *agent) hear(conn *service.Conn) {
	var held service.Held
	defer func() { held.Close() }()
	unheard := true
	heard := func() {
		if unheard {
			a.unheard.Add(-1)
		}
		unheard = false
	}
	for {
		m, err := conn.Receive()
		if err != nil {
			break
		}
		if held.Take(m) {
			heard()
			continue
		}
		if m.FD >= 0 && m.Kind != service.Enter { // no other question has one
			unix.Close(m.FD)
			m.FD = -1
		}
		a.inbox.ask(&question{m, conn})
		heard()
	}
	a.inbox.put(hungUp{conn})
	heard()
}

// isAsked: there may be a question that has not been read yet.
func (a *agent) isAsked() bool {
	var doors []unix.PollFd
	for _, listener := range a.listeners {
		doors = append(doors, unix.PollFd{Fd: int32(listener), Events: unix.POLLIN})
	}
	n, err := unix.Poll(doors, 0)
	return err == nil && n > 0 || a.unheard.Load() > 0
}

// serve answers a question, or keeps it until it can be answered.
func (a *agent) serve(q *question) {
	if q.Kind == service.Layout {
		q.reply(&service.Message{Text: cmp.Or(a.announced, a.layoutText()), FD: -1})
		return
	}
	if q.Kind == service.Enter {
		q.reply(a.takeInside(q))
		return
	}
	switch q.Kind {
	case service.Client:
		a.attend(q)
		return
	case service.Signal:
		a.signalFor(q)
		return
	}
	if a.up != nil {
		a.askUp(q)
		return
	}
	if a.waitsForStands(q) {
		return
	}
	if answer := a.foreign(q); answer != nil {
		q.reply(answer)
		return
	}
	var answer *service.Message
	switch q.Kind {
	case service.Spawn:
		a.spawn(q)
		return
	case service.SpawnResult:
		a.abandonAll(q.World)
		answer = &service.Message{FD: -1}
	case service.OpenPort:
		answer = a.openPort(a.jobNumber())
	case service.ClosePort:
		answer = a.closePort(q.Text)
	case service.Accept, service.Connect:
		a.wait(q)
		return
	case service.Withdraw:
		a.withdraw(q)
		return
	case service.Publish:
		a.publishName(q)
		return
	case service.Unpublish:
		a.unpublishName(q)
		return
	case service.Lookup:
		a.lookUpName(q)
		return
	case service.Attach:
		answer = a.attach(q.Peer)
	case service.Externals:
		if a.several() {
			a.acquaint(q)
			return
		}
		answer = a.receive(q.Peers)
	case service.Members:
		answer = a.memberList(q)
	case service.AwaitOrder:
		a.awaitOrder(q)
		return
	case service.OrderDone:
		a.orderDone(q.Number, q.Text)
		answer = &service.Message{FD: -1}
	case service.Order:
		a.takeOrder(q)
		return
	case service.KillRanks:
		a.killRanks(q)
		return
	case service.Hosts, service.AddHosts, service.RemoveHosts:
		a.changeHosts(q)
		return
	case service.Detach:
		a.detach(q)
		return
	case service.AwaitEnd:
		a.awaitEnd(q)
		return
	case service.Inspect:
		a.inspectFor(q)
		return
	case service.Say:
		a.maySay(q)
		return
	case service.Said:
		tellSayers(a.sayings.said(q.conn))
		return
	case service.TookOver:
		answer = a.tookOver(q)
	case service.Arrive:
		a.arrived(q)
		return
	case service.Describe:
		answer = a.about()
	default:
		answer = refuse(mpierr.Intern,
			"the agent does not know question %d: is libspx of another version than spxrun?",
			q.Kind)
	}
	q.reply(answer)
}

// awaitEnd keeps a question of a process that waits for the end of the job, which it may have
// requested.
func (a *agent) awaitEnd(q *question) {
	a.waiters = append(a.waiters, q)
	if q.Number != 0 {
		a.step(job.Signalled{Signal: int(q.Number)})
	}
}

// tellEnd answers the waiting processes: first those on other hosts, whose agents leave; in the
// end, when all of the job is done, those on this host.
func (a *agent) tellEnd(others bool) {
	for _, q := range a.waiters {
		if _, remote := q.conn.(*remote); remote == others {
			q.reply(&service.Message{Number: uint64(a.status), FD: -1})
		}
	}
}

func (a *agent) hungUp(conn client) {
	if a.up != nil {
		a.hungUpHere(conn)
	}
	a.ports.forget(conn)
	a.leaveAbroad(conn)
	a.steering.forget(conn)
	tellSayers(a.sayings.forget(conn, a.machine.Ending()))
	a.beginning.forget(conn)
	a.clients.forget(conn)
	a.succession.forget(conn)
	a.departures = slices.DeleteFunc(a.departures,
		func(d departure) bool { return d.ask.conn == conn })
	a.waiters = slices.DeleteFunc(a.waiters, func(q *question) bool { return q.conn == conn })
	conn.Close()
}

// several: the job has more than one host, or may come to have.
func (a *agent) several() bool { return len(a.spec.Hosts) > 1 || a.spec.MoreHosts }

// foreign refuses what a job of several hosts cannot answer: its processes have no one memory file
// in which those of another job could be external processes.
func (a *agent) foreign(q *question) *service.Message {
	if !a.several() {
		return nil
	}
	abroad := q.Kind == service.Connect && q.Peer.ID.Job != a.jobNumber() && !a.isLinked(q.conn)
	if q.Kind != service.Attach && !abroad {
		return nil
	}
	return refuse(mpierr.UnsupportedOperation,
		"job %016x has several hosts (%s): its processes are reached over the network, and "+
			"those of a job of one host are only if it was started with --more-hosts",
		a.jobNumber(), strings.Join(a.spec.Hosts, ", "))
}

// refuse is a negative answer.
func refuse(class mpierr.Class, format string, args ...any) *service.Message {
	return &service.Message{Class: uint32(class), Text: fmt.Sprintf(format, args...), FD: -1}
}

// ending is the answer to questions while the job is being ended.
func (a *agent) ending(class mpierr.Class) *service.Message {
	if !a.machine.Ending() {
		return nil
	}
	return refuse(class, "the job is being ended")
}

var _ job.Event = hungUp{}
