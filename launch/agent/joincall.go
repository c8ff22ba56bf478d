package agent

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"libspx/launch/control"
	"libspx/launch/service"
	"libspx/net/tcp"
)

// The agent of a host that has not rank 0, in a job that another launcher has started: it reaches
// the agent of rank 0's host by the offer (join.go), and gets the job from it.

// call reaches the agent of rank 0's host, and hears from it what the job is.
func (g *gathering) call() (t told, failure string, says teller) {
	hello := &control.Hello{Version: control.Version, Host: g.host}
	for rank := range g.members {
		hello.Ranks = append(hello.Ranks, rank)
	}
	slices.Sort(hello.Ranks)
	id := agentIdentity(g.offer.ID, g.offer.Key, uint32(hello.Ranks[0]))
	go func() {
		c, err := callAny(g.offer.At, &id)
		if err != nil {
			g.post(told{err: err})
			return
		}
		conn := control.NewConn(c)
		m, err := ask(conn, &control.Message{Hello: hello})
		if err == nil && m.Off != "" {
			g.post(told{err: errors.New(m.Off), off: true})
			return
		}
		if err == nil && (m.Job == nil || m.Job.Self < 1 || m.Job.Self >= len(m.Job.Hosts)) {
			err = fmt.Errorf("no job was told")
		}
		if err != nil {
			g.post(told{err: fmt.Errorf("it has not let the job begin (%w)", err)})
			return
		}
		g.post(told{conn: conn, job: m.Job})
	}()
	for e := range g.events {
		switch e := e.(type) {
		case said:
			if r := g.memberOn(e.conn); e.m == nil && r != nil {
				return t, fmt.Sprintf("rank %d (pid %d on %s) has ended in MPI_Init", r.rank, r.pid,
					g.host), oneRank
			}
		case told:
			switch {
			case e.off:
				return t, e.err.Error(), anotherHost
			case e.err != nil:
				return t, fmt.Sprintf("host %s cannot join that of rank 0: %v", g.host, e.err),
					oneRank
			}
			return e, "", oneRank
		}
	}
	return t, "", oneRank
}

// callAny tries the addresses, those in a network of this host first, until one answers or the time
// is over.
func callAny(list []netip.AddrPort, id *tcp.Identity) (net.Conn, error) {
	local := interfaceAddresses()
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(x, y netip.AddrPort) int {
		return boolInt(!sharesNetwork(x.Addr(), local)) - boolInt(!sharesNetwork(y.Addr(), local))
	})
	var tried []string
	for limit := time.Now().Add(callLimit); ; time.Sleep(100 * time.Millisecond) {
		tried = nil
		for _, at := range list {
			c, verdict, err := tcp.Dial(at.String(), id, tcp.Process{Number: callee})
			if err == nil && verdict == tcp.Taken {
				return sealedConn(c), nil
			}
			tried = append(tried, fmt.Sprintf("%v: %v", at, err))
		}
		if time.Now().After(limit) {
			return nil, fmt.Errorf(
				"no way to its agent within %v (%s); does a firewall stand between, or is it "+
					"the wrong interface (%s)?", callLimit, strings.Join(tried, "; "),
				service.EnvIface)
		}
	}
}
