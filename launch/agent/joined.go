package agent

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/pmi"
	"libspx/launch/process"
	"libspx/launch/service"
)

// An agent's part in a job that another launcher has started, from the moment at which all have
// found each other (join.go). The agents decide what the end of a process means, and report it to
// the launcher. That speaks PMI-1 with each process on a socket of which the agent has a copy: so
// the end of a process does not close it, which launchers take for a failure of the whole job. When
// a process has left in order, or the others continue without it, the agent sends finalize in its
// place; when the job is to end, abort with the job's status.

// launcherGrace is the time between the word to the launcher and SIGKILL.
const launcherGrace = 2 * time.Second

// launcherNotice is how long a launcher that cannot be requested to end the job has to notice a
// death by itself, and to end the job for that: its exit status is that of the process whose end it
// sees first, and on another host than the dead process's the agent would be faster.
const launcherNotice = 500 * time.Millisecond

// launcherLost: the launcher is gone, as far as one of its processes shows.
type launcherLost struct{ rank int }

// notEnded: the launcher has had its time to end the job.
type notEnded struct{}

// lead is the life of the agent that decides.
func (g *gathering) lead() int {
	list, failure := g.gather()
	if g.arrived != nil {
		g.arrived.Close()
	}
	if failure != "" {
		return g.giveUp(failure, oneRank, list)
	}
	zero := g.members[0]
	dir, _ := os.Getwd()
	server, err := nameServerOf(zero.program.Env)
	if err != nil {
		return g.giveUp(err.Error(), oneRank, list)
	}
	spec := &control.Job{Version: control.Version, Joined: true, StdinRank: -1, Dir: dir,
		NameServer: server, Iface: variableOf(zero.program.Env, service.EnvIface),
		Programs: []control.Program{{Procs: g.size, Argv: zero.program.Argv,
			Env: zero.program.Env}},
		OnDeath: cmp.Or(variableOf(zero.program.Env, service.EnvOnDeath), "auto")}
	spec.WithFT = spec.OnDeath == "continue"
	if len(list) > 0 {
		spec.Hosts, spec.Slots, spec.Where = []string{g.host}, []int{len(g.members)},
			make([]int, g.size)
		for n, c := range list {
			spec.Hosts, spec.Slots = append(spec.Hosts, c.hello.Host),
				append(spec.Slots, len(c.hello.Ranks))
			for _, r := range c.hello.Ranks {
				spec.Where[r] = n + 1
			}
		}
	}
	if len(list) == 0 && variableOf(zero.program.Env, service.EnvMoreHosts) == "1" {
		spec.MoreHosts, spec.Hosts, spec.Slots, spec.Where = true, []string{g.host}, []int{g.size},
			make([]int, g.size)
	}
	a := newAgent(spec, nil)
	if err := a.settleJoined(g); err != nil {
		return g.giveUp(fmt.Sprintf("host %s: %v", g.host, err), oneRank, list)
	}
	a.listen()
	for n, c := range list {
		h := newRemoteHost(n+1, c.hello.Host)
		h.conn, h.wait = c.conn, func() string { return connectionEnd(h.failure) }
		a.others = append(a.others, h)
		a.introduceTo(h, [32]byte{}) // it has the key
	}
	a.awaitReady()
	if err := a.openListeners(); err != nil {
		a.step(job.NotStarted{Text: err.Error(), Status: job.StatusFailed})
	}
	if !a.machine.Ending() {
		a.begin()
		if err := a.openService(); err != nil {
			a.say(fmt.Sprintf("no processes can be spawned, and no ports opened: %v", err))
		}
	}
	a.admit(g)
	a.made = true
	a.allMade()
	a.loop()
	return a.finish()
}

// follow is the life of the agent of another host.
func (g *gathering) follow() int {
	t, failure, says := g.call()
	if failure != "" {
		return g.giveUp(failure, says, nil)
	}
	t.job.ID, t.job.Key = g.offer.ID, g.offer.Key
	a := newAgent(t.job, nil)
	settle := func() error {
		for rank, host := range t.job.Where {
			if (host == t.job.Self) != (g.members[rank] != nil) {
				return fmt.Errorf("rank %d: not on the host that is known for it", rank)
			}
		}
		return a.settleJoined(g)
	}
	return a.underOrders(t.conn, settle, func() {
		a.admit(g)
		a.step(job.AllStarted{})
	})
}

// settleJoined makes everything for the processes of this host, which are there.
func (a *agent) settleJoined(g *gathering) error {
	a.joined = g
	switch a.spec.OnDeath {
	case "auto", "kill", "continue":
	default:
		return fmt.Errorf("%s=%s: there are auto, kill, continue", service.EnvOnDeath,
			a.spec.OnDeath)
	}
	if err := process.Subreaper(); err != nil {
		return err
	}
	for i := range g.size {
		a.ranks = append(a.ranks, rank{pidfd: -1, host: a.spec.Host(i), joined: true, in: i})
	}
	if err := a.makeSegment(); err != nil {
		return err
	}
	a.segment.SetJobID(g.offer.ID)
	a.segment.SetKey(g.offer.Key)
	if a.up != nil {
		if err := a.openListeners(); err != nil {
			return err
		}
	}
	return a.prepare()
}

// admit gives the processes of this host what they wait for in MPI_Init, or lets them go.
func (a *agent) admit(g *gathering) {
	close(g.over)
	var sockets []unix.PollFd
	var ranks []int
	for i, m := range g.members {
		if m != nil && a.segment != nil {
			a.segment.SetNear(i, a.nearJoined(m.pid))
			// before the first continues: each asks for its peers
			a.segment.MarkStarted(i, m.pid)
		}
	}
	for i := range g.size {
		m := g.members[i]
		if m == nil {
			continue
		}
		r := &a.ranks[i]
		r.pid, r.pidfd, r.alive = m.pid, m.pidfd, true
		a.step(job.Started{Proc: i, Pid: m.pid, Host: a.host})
		if err := a.watchProcess(i); err != nil {
			a.step(job.NotStarted{Proc: i, Text: fmt.Sprintf("rank %d: %v", i, err),
				Status: job.StatusFailed})
		}
		if m.launcher >= 0 {
			sockets = append(sockets, unix.PollFd{Fd: int32(m.launcher), Events: unix.POLLRDHUP})
			ranks = append(ranks, i)
		}
		if m.parent >= 0 {
			sockets = append(sockets, unix.PollFd{Fd: int32(m.parent), Events: unix.POLLIN})
			ranks = append(ranks, i)
		}
		a.admitOne(r, m)
	}
	if len(sockets) > 0 {
		go a.watchLauncher(sockets, ranks)
	}
}

func (a *agent) admitOne(r *rank, m *member) {
	answer := &service.Message{Kind: service.Settle, Slots: []uint32{uint32(m.rank)},
		FD: int(a.segment.File().Fd())}
	if a.machine.Ending() {
		answer = refuse(1, "the job is being ended")
		answer.Kind = service.Settle
	}
	if r.listener != 0 {
		answer.Number = 1
	}
	m.conn.Send(answer) //nolint:errcheck // if it is gone, its pidfd says so
	if r.listener != 0 {
		// see above
		m.conn.Send(&service.Message{Kind: service.Listener, FD: r.listener - 1}) //nolint:errcheck
		unix.Close(r.listener - 1)
		r.listener = 0
	}
}

// watchLauncher reports when the launcher is gone: it has closed the socket of a process or, where
// there is none, the process's parent has ended.
func (a *agent) watchLauncher(sockets []unix.PollFd, ranks []int) {
	for {
		n, err := unix.Poll(sockets, -1)
		if n <= 0 && err != unix.EINTR {
			return
		}
		for i := range sockets {
			if s := &sockets[i]; s.Revents != 0 && s.Fd >= 0 {
				s.Fd = -1
				a.inbox.put(launcherLost{ranks[i]})
			}
		}
	}
}

// lostLauncher: without its launcher the job ends, as one of spxrun's without spxrun. That a
// process which has finalized is hung up on means nothing.
func (a *agent) lostLauncher(rank int) {
	if a.own(rank) && a.joined.members[rank] != nil {
		a.joined.lost = true
		if a.joined.noticing {
			a.endUnnoticed()
		}
		a.step(job.FrontLost{})
	}
}

// signalRank sends a signal to a process of this host. One that another launcher has started has
// its process group from that.
func (a *agent) signalRank(i, number int) {
	if r := &a.ranks[i]; r.joined {
		// it has ended then
		unix.PidfdSendSignal(r.pidfd, unix.Signal(number), nil, 0) //nolint:errcheck
	} else {
		process.Signal(r.pid, number)
		r.signalInside(number)
	}
}

// printLimit is how long the launcher may take to read the reason before it is requested to end the
// job.
const printLimit = 200 * time.Millisecond

// awaitPrinted waits until what was written to standard error has been read there, if that is a
// pipe: launchers that are requested to end a job may read no more.
func awaitPrinted() {
	for limit := time.Now().Add(printLimit); time.Now().Before(limit); time.Sleep(
		time.Millisecond) {
		if n, err := unix.IoctlGetInt(2, unix.TIOCINQ); err != nil || n == 0 {
			return
		}
	}
}

// endByLauncher has the launcher end the job's processes; false: it cannot be requested.
func (g *gathering) endByLauncher(status int) bool {
	awaitPrinted()
	for _, m := range g.members {
		if g.told {
			break
		}
		if m.launcher >= 0 {
			_, err := unix.SendmsgN(m.launcher,
				pmi.AbortRequest(cmp.Or(status&255, job.StatusFailed)), nil, nil,
				unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
			g.told = err == nil
		}
	}
	return g.told
}

// leaveToLauncher: the launcher ends the processes that it has started, in its own way.
func (a *agent) leaveToLauncher(signal int) bool {
	if a.joined == nil || signal != job.SIGTERM {
		return false
	}
	if !a.joined.reachable() {
		if a.joined.lost || a.machine.Hurried() {
			return false
		}
		if !a.joined.noticing {
			a.joined.noticing = true
			time.AfterFunc(launcherNotice, func() { a.inbox.put(notEnded{}) })
		}
		return true
	}
	m, decides := a.machine.(*job.Machine)
	if !decides {
		for _, m := range a.joined.members { // then the deciding agent has requested it
			if m.launcher >= 0 {
				return !a.machine.Hurried()
			}
		}
		return false
	}
	return a.joined.endByLauncher(m.Status())
}

// reachable reports whether the launcher takes requests, as those of PMI do.
func (g *gathering) reachable() bool {
	for _, m := range g.members {
		if m.launcher >= 0 {
			return true
		}
	}
	return false
}

// endUnnoticed ends the processes that the launcher has not ended in its time, or no longer can.
func (a *agent) endUnnoticed() {
	for i := range a.ranks {
		if r := &a.ranks[i]; a.own(i) && r.joined && r.alive {
			a.signalRank(i, job.SIGTERM)
		}
	}
}

// leftJob notifies the launcher that a process of this host has left the job in order.
func (a *agent) leftJob(i int) {
	m := a.joined.members[i]
	if m == nil {
		return
	}
	delete(a.joined.members, i)
	if m.launcher < 0 {
		return
	}
	if _, err := unix.SendmsgN(m.launcher, pmi.FinalizeRequest(), nil, nil,
		unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT); err == nil {
		a.joined.leaving.Go(func() { readAnswer(m.launcher) })
	}
}

// answerLimit is how long the launcher's answer to finalize is waited for. It has to be read: Hydra
// gives a job up whose socket is closed before.
const answerLimit = 5 * time.Second

func readAnswer(socket int) {
	limit := time.Now().Add(answerLimit)
	for b := make([]byte, 256); ; {
		left := time.Until(limit)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(socket), Events: unix.POLLIN}},
			int(left/time.Millisecond))
		if err == unix.EINTR && left > 0 {
			continue
		}
		if n > 0 {
			unix.Read(socket, b) //nolint:errcheck // the answer is the same, whatever it is
		}
		return
	}
}
