package agent

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"libspx/cluster/manage"
	"libspx/launch/control"
	"libspx/launch/service"
	"libspx/launch/trace"
)

// The master of a host is a process of its own, a child of the host's agent (upkeep.go): it holds
// the machine of package cluster/manage, and nothing else. What it says to other masters goes by
// the agents, and what it decides is carried out by them. So a master can die, or stand still,
// while the processes of its host go on; it ends with its agent.

// masterFD is the descriptor of the master's socket to its agent.
const masterFD = 3

// A master is what such a process has.
type master struct {
	conn    *control.Conn
	epoch   uint32
	cfg     manage.Config
	machine *manage.Machine // nil: its agent has not told it of any tree yet
	origin  uint64          // when the tree's time was 0, in ns of CLOCK_MONOTONIC
}

// MasterMain runs the process and returns its exit status.
func MasterMain() int {
	os.WriteFile("/proc/self/comm", []byte(service.MasterName), 0) //nolint:errcheck // cosmetic
	unix.CloseOnExec(masterFD)
	conn := control.NewConn(os.NewFile(masterFD, "agent"))
	first, err := conn.Receive()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: this program is started by the agent of a host (%v)\n",
			service.MasterName, err)
		return 1
	}
	runtime.LockOSThread()
	hurryAll() // others wait for its answers, and it has little to do
	m := &master{conn: conn}
	messages := make(chan *control.Message)
	go func() {
		defer close(messages)
		for next := first; err == nil; next, err = conn.Receive() {
			messages <- next
		}
	}()
	for {
		due := time.NewTimer(m.due())
		select {
		case msg, ok := <-messages:
			if !ok { // the agent has ended
				return 0
			}
			m.take(msg)
		case <-due.C:
			m.step(manage.Tick{})
		}
		due.Stop()
	}
}

func (m *master) now() int64 { return int64(trace.Now()-m.origin) / int64(time.Millisecond) }

// due is how long nothing is to be done if nothing comes.
func (m *master) due() time.Duration {
	if m.machine == nil {
		return time.Hour
	}
	return time.Duration(m.machine.Deadline()-m.now()) * time.Millisecond
}

// take does what the agent says.
func (m *master) take(msg *control.Message) {
	switch {
	case msg.Begin != nil:
		b := msg.Begin
		m.epoch, m.cfg, m.origin = b.Tree.Epoch, b.Tree.Config, b.Origin
		if b.Past != nil {
			m.machine = manage.Revive(m.cfg, *b.Past, m.now())
		} else {
			m.machine = manage.Resume(m.cfg, b.Tree.View, m.now())
		}
		m.step(manage.Tick{})
	case msg.Managed != nil && msg.Managed.Epoch == m.epoch:
		if said, err := manage.Decode(msg.Managed.Text, &m.cfg); err == nil {
			m.step(manage.Received{Message: said})
		}
	case msg.Counted != nil:
		m.step(*msg.Counted)
	case msg.Left != nil:
		for _, agent := range msg.Left {
			m.step(manage.Gone{Agent: agent})
		}
	case msg.Ping != 0:
		// if the agent is gone, its end says so
		m.conn.Send(&control.Message{Ping: msg.Ping}) //nolint:errcheck
	}
}

// step hands an event to the machine, and tells the agent what that wants.
func (m *master) step(e manage.Event) {
	if m.machine == nil {
		return
	}
	for _, act := range m.machine.Step(e, m.now()) {
		switch act := act.(type) {
		case manage.Send:
			// likewise
			m.conn.Send(&control.Message{Managed: &control.Managed{Epoch: m.epoch, Text: act.Message.Encode()}}) //nolint:errcheck
		case manage.Learned:
			// likewise
			m.conn.Send(&control.Message{Learned: &control.Learned{Epoch: m.epoch, View: act.View}}) //nolint:errcheck
		}
	}
}
