package agent

import (
	"context"
	"net"
	"slices"
	"time"

	"libspx/launch/control"
	"libspx/net/tcp"
)

// Clusters that do not reach the address where the others meet, but a host of one of them: the file
// names an address of that ([system] through). The agent of a cluster's spxrun listens there when
// it is attached, and hands on what those who call say, and what is for them, as for the other
// hosts of its own cluster (members.go): so the tree is as deep as the system needs. It stays until
// they have ended. To the one that decides they are clusters like any other.

// throughLimit is how long one such address is tried.
const throughLimit = 2 * time.Second

// callOne calls where the clusters meet or, if that is not reached, at one of the other addresses.
// The error is that of the first.
func callOne(j *control.Join, id *tcp.Identity) (net.Conn, tcp.Verdict, error) {
	if len(j.Through) == 0 {
		return tcp.Dial(j.Address, id, tcp.Process{Number: leadNumber})
	}
	var first error
	for i, at := range append([]string{j.Address}, j.Through...) {
		ctx, end := context.WithTimeout(context.Background(), throughLimit)
		c, verdict, err := tcp.DialContext(ctx, at, id, tcp.Process{Number: leadNumber})
		end()
		if err == nil && verdict == tcp.Taken {
			if i > 0 {
				// these hosts may hear of each other in no other way, before there are heartbeats
				keepAlive(sealedConn(c))
			}
			return c, verdict, nil
		}
		if i == 0 {
			first = err
		}
	}
	return nil, 0, first
}

// openDoors has clusters arrive at the other addresses that this host has.
func openDoors(j *control.Join, server *tcp.Server) {
	for _, text := range j.Through {
		at, here := addressHere(text)
		if !here {
			continue
		}
		// else another agent of this host has it
		if l, err := net.Listen("tcp", at.String()); err == nil {
			go server.Serve(l) //nolint:errcheck // it ends with this process
		}
	}
}

// openToMore begins to hand on what other clusters say that call here.
func (a *agent) openToMore() {
	j := a.local.Join
	if len(j.Through) == 0 {
		return
	}
	openDoors(j, &tcp.Server{
		Identity: identityOf(j, leadNumber),
		Decide:   func(tcp.Process) tcp.Verdict { return tcp.Taken },
		Adopt: func(c net.Conn, _ tcp.Process) {
			if a.leadsNow.Load() {
				a.arrive(c)
				return
			}
			a.company.take(sealedConn(c))
		},
		Failed:  func(tcp.Process, uint16) {},
		Refused: new(tcp.Refusals),
	})
}

// leaveSilence leaves it to the heartbeats to find out that hosts are silent which have come
// through others: the kernel ends their connections later, when a path that was broken for as long
// as hosts may be silent would have come back, and what was sent meanwhile been sent again.
func (a *agent) leaveSilence(b *control.Beats) {
	limit := 2*b.Limit + linkLimit
	if a.attached != nil && a.attached.raw != nil && isKeptAlive(a.attached.raw) {
		keepAliveFor(a.attached.raw, limit)
	}
	if c := a.company; c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.patience = limit
		for _, raw := range c.callers {
			keepAliveFor(raw, limit)
		}
	}
}

// take hands on what a cluster says that has called, which has proved to have the system's key.
func (c *company) take(raw net.Conn) {
	keepAlive(raw)
	// without, it ends with its caller
	raw.SetReadDeadline(time.Now().Add(inviteLimit)) //nolint:errcheck
	conn := control.NewConn(raw)
	m, err := conn.Receive()
	if err != nil || m.Attach == nil || raw.SetReadDeadline(time.Time{}) != nil {
		raw.Close()
		return
	}
	c.mu.Lock()
	h := newRemoteHost(max(1, len(c.hosts)), m.Attach.Host)
	h.conn = conn
	for len(c.hosts) < h.number {
		c.hosts = append(c.hosts, nil)
	}
	c.hosts = append(slices.Clip(c.hosts), h)
	c.job = append(c.job, make([]int, len(c.hosts)-len(c.job))...)
	h.box.start(conn)
	c.callers = append(c.callers, raw)
	if c.patience > 0 {
		keepAliveFor(raw, c.patience)
	}
	c.mu.Unlock()
	for err == nil {
		c.handUp(&control.Relayed{Index: h.number, Message: m})
		m, err = conn.Receive()
	}
	h.failure = err
	c.ends(h.number)
	c.handUp(&control.Relayed{Index: h.number, End: &control.Ending{How: connectionEnd(err),
		Changed: err == errChanged}})
	h.box.close()
	conn.Close()
	c.mu.Lock()
	c.callers = slices.DeleteFunc(c.callers, func(o net.Conn) bool { return o == raw })
	c.mu.Unlock()
	close(h.ended)
}

// leave hangs up on clusters that have called, and have not been told of the job: the agent that
// decides now does not know them.
func (c *company) leave() {
	for _, h := range c.list() {
		if h.link == nil && c.numberOf(h.number) == 0 {
			h.conn.Close()
		}
	}
}

// handedUp takes what the agent of a host has handed on: of another host of its cluster, or of a
// cluster that has called there.
func (a *agent) handedUp(h *remoteHost, r *control.Relayed) {
	if m := r.Message; m != nil && m.Attach != nil && !h.behind.known(r.Index) {
		a.inbox.put(arrival{conn: h.behind.to(&h.box, r.Index), attach: m.Attach, via: h})
		return
	}
	h.behind.to(&h.box, r.Index).take(r)
}

// leadsOn tells whether clusters that run have come through a host, which stays for them.
func (a *agent) leadsOn(h *remoteHost) bool {
	return slices.ContainsFunc(a.others, func(o *remoteHost) bool {
		return o.via == h &&
			!o.gone
	}) ||
		slices.ContainsFunc(a.growth.additions,
			func(d *addition) bool { return d.come != nil && d.come.via == h })
}
