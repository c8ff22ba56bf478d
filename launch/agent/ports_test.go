package agent

import (
	"testing"

	"golang.org/x/sys/unix"

	"libspx/core/ident"
	"libspx/core/mpierr"
	"libspx/launch/control"
	"libspx/launch/service"
)

// asker is the end of a connection where a process waits.
type asker struct {
	t        *testing.T
	a        *agent
	end      *service.Conn
	agents   *service.Conn // the other end
	question *question
}

// comes puts a question of the process with a rank at the agent, as its main thread does.
func comes(t *testing.T, a *agent, kind service.Kind, rank uint32, port string) *asker {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &asker{t: t, a: a, end: service.NewConn(pair[0]), agents: service.NewConn(pair[1])}
	id := ident.ProcID{Job: 1, Rank: rank}
	p.question = &question{&service.Message{Kind: kind, Text: port, Peer: service.Peer{ID: id},
		FD: -1}, p.agents}
	a.serve(p.question)
	return p
}

// answer is what the process has been told.
func (p *asker) answer() *service.Message {
	p.t.Helper()
	p.agents.Hang() // what was sent can still be read; nothing more comes
	m, err := p.end.Receive()
	if err != nil {
		return nil
	}
	return m
}

func (p *asker) meets(rank uint32) {
	p.t.Helper()
	if m := p.answer(); m == nil || m.Class != 0 || m.Peer.ID.Rank != rank {
		p.t.Errorf("rank %d was told %+v, want rank %d", p.question.Peer.ID.Rank, m, rank)
	}
}

func agentWithPort() (*agent, string) {
	a := newAgent(&control.Job{}, nil)
	return a, a.openPort(1).Text
}

// A process that has hung up is not paired, whether or not that was reported yet.
func TestPortPassesOverWhoIsGone(t *testing.T) {
	a, port := agentWithPort()
	comes(t, a, service.Connect, 1, port).end.Hang()
	comes(t, a, service.Connect, 2, port).end.Close()
	accepting := comes(t, a, service.Accept, 3, port)
	connecting := comes(t, a, service.Connect, 4, port)
	accepting.meets(4)
	connecting.meets(3)

	comes(t, a, service.Accept, 5, port).end.Hang()
	connecting = comes(t, a, service.Connect, 6, port)
	accepting = comes(t, a, service.Accept, 7, port)
	connecting.meets(7)
	accepting.meets(6)
}

// A withdrawal is heard, or comes too late: never both.
func TestWithdrawal(t *testing.T) {
	a, port := agentWithPort()
	first := comes(t, a, service.Connect, 1, port)
	a.serve(&question{&service.Message{Kind: service.Withdraw, FD: -1}, first.question.conn})
	second := comes(t, a, service.Connect, 2, port)
	accepting := comes(t, a, service.Accept, 3, port)
	a.serve(&question{&service.Message{Kind: service.Withdraw, FD: -1}, accepting.question.conn})
	if m := first.answer(); m == nil || m.Kind != service.Withdraw {
		t.Errorf("the withdrawal was answered by %+v", m)
	}
	second.meets(3)
	accepting.meets(2)
	if m, err := accepting.end.Receive(); err == nil {
		t.Errorf("a withdrawal that came too late was answered by %+v", m)
	}
}

// Whoever waits at a port that is closed is turned away.
func TestClosedPort(t *testing.T) {
	a, port := agentWithPort()
	waiting := comes(t, a, service.Accept, 1, port)
	if m := a.closePort(port); m.Class != 0 {
		t.Errorf("closing was answered by %+v", m)
	}
	late := comes(t, a, service.Connect, 2, port)
	for _, p := range []*asker{waiting, late} {
		if m := p.answer(); m == nil || mpierr.Class(m.Class) != mpierr.Port {
			t.Errorf("rank %d was told %+v", p.question.Peer.ID.Rank, m)
		}
	}
}
