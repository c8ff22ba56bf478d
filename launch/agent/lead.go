package agent

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"libspx/cluster/layout"
	"libspx/launch/control"
	"libspx/launch/hosts"
	"libspx/launch/job"
	"libspx/launch/service"
	"libspx/net/tcp"
)

// The agent that leads a system whose clusters are started one by one (attach.go): it admits
// arriving clusters, and dismisses them when their processes have ended.

// meeting is where clusters arrive.
type meeting struct {
	listener net.Listener
	server   *tcp.Server
	refused  int // of which have been reported
}

// What happens there.
type (
	arrival struct { // a caller that has the key wants to run a cluster
		conn   connection
		attach *control.Arrival
		via    *remoteHost // it speaks through the agent of this one; nil: it has called here
	}
	seated  struct{ h *remoteHost } // its host is one of the job's
	turned  struct{ text string }   // a caller was refused
	waiting struct{}                // some clusters may be missing for long
)

// externalCluster is what a host runs that has attached.
type externalCluster struct {
	cluster string
	parts   []int            // that of the cluster, and those of its I/O processes
	come    *control.Arrival // what has come
	hosts   []*remoteHost    // of the cluster, that of its spxrun first; nil: it is not there yet
	at      map[string][]int // by the name of a part: the host of each process, in that count
	begun   bool
	// its spxrun was lost with the host that led, and its I/O processes were ordered to end
	swept  bool
	status int // that of its spxrun, if that is not what its processes have ended with (statusOf)
}

// awayWord is how long is waited before the user hears for whom.
const awayWord = 3 * time.Second

// mostRefusals is how many refused calls are reported.
const mostRefusals = 8

// openToOthers begins to take clusters in.
func (a *agent) openToOthers() {
	if a.meeting == nil {
		return
	}
	a.meeting.server = &tcp.Server{
		Identity: identityOf(a.spec.Join, leadNumber),
		Decide:   func(tcp.Process) tcp.Verdict { return tcp.Taken },
		Adopt:    func(c net.Conn, _ tcp.Process) { a.arrive(c) },
		Failed:   func(tcp.Process, uint16) {},
		Refused:  new(tcp.Refusals),
		Refuse: func(from net.Addr, err error) {
			a.inbox.put(turned{fmt.Sprintf(
				"a call from %v was refused: it has not proved to have the key of the system %s "+
					"(%v)", from, a.spec.Join.System, err)})
		},
	}
	go a.meeting.server.Serve(a.meeting.listener) //nolint:errcheck // it ends with this process
	openDoors(a.spec.Join, a.meeting.server)
	time.AfterFunc(awayWord, func() { a.inbox.put(waiting{}) })
}

// arrive handles a new connection.
func (a *agent) arrive(c net.Conn) {
	c = sealedConn(c)
	// without, it ends with its caller
	c.SetReadDeadline(time.Now().Add(inviteLimit)) //nolint:errcheck
	conn := control.NewConn(c)
	m, err := conn.Receive()
	if err == nil && m.Moved != "" {
		a.inbox.put(moved{m.Moved})
	}
	if err != nil || m.Attach == nil || c.SetReadDeadline(time.Time{}) != nil {
		c.Close()
		return
	}
	a.inbox.put(arrival{conn: conn, attach: m.Attach})
}

// refusal reports a refused call, as long as there are not many.
func (a *agent) refusal(e turned) {
	if a.meeting.refused++; a.meeting.refused <= mostRefusals {
		a.say(e.text)
	}
}

// tellAway reports which clusters are waited for.
func (a *agent) tellAway() {
	m, decides := a.machine.(*job.Machine)
	if !decides || m.Ending() || len(a.beginning.waiting) == 0 {
		return
	}
	var names []string
	for i, p := range m.Parts() {
		if p.State == job.StateAway && !a.spec.Parts[i].Serves {
			names = append(names, strings.TrimPrefix(p.Name, "cluster "))
		}
	}
	if len(names) > 0 {
		a.say(fmt.Sprintf("waiting for %s %s (spxrun --system FILE --cluster NAME)",
			plural("cluster", len(names)), strings.Join(names, ", ")))
	}
}

// welcome admits a cluster, or reports why not.
func (a *agent) welcome(e arrival) {
	wants, why := a.mayCome(e.attach)
	var list []hosts.Host
	var at map[string][]int
	if why == "" {
		list, at, why = externalHosts(e.attach, wants)
	}
	if why != "" {
		go func() {
			// if it is gone, it need not know
			e.conn.Send(&control.Message{Off: why}) //nolint:errcheck
			e.conn.Close()
		}()
		return
	}
	a.growth.additions = append(a.growth.additions,
		&addition{ask: &question{&service.Message{FD: -1}, &gatekeeper{a, e.attach.Cluster}},
			list: list, at: at, come: &e})
	if len(a.growth.additions) == 1 {
		a.nextHost()
	}
	a.noteComing()
}

// noteComing gives the machine the number of clusters that are about to be attached: the leading
// agent stays for them, though its own cluster may have ended.
func (a *agent) noteComing() {
	m, decides := a.machine.(*job.Machine)
	if !decides || a.meeting == nil || a.succession.gathers {
		return
	}
	n := 0
	for _, d := range a.growth.additions {
		n += boolInt(d.come != nil)
	}
	for _, h := range a.others {
		n += boolInt(h.attached != nil && !h.gone && !h.attached.begun && h.attached.status == 0)
	}
	if n != m.Coming() {
		a.step(job.Coming{Clusters: n})
	}
}

// gatekeeper hears what has become of a cluster that was let in.
type gatekeeper struct {
	a       *agent
	cluster string
}

// Send takes the answer.
func (g *gatekeeper) Send(m *service.Message) error {
	if m.Class != 0 && !g.a.machine.Ending() {
		text := fmt.Sprintf("cluster %s was not attached: %s", g.cluster, m.Text)
		g.a.say(text)
		g.a.notAttached(g.cluster, text)
	}
	return nil
}

// Gone reports that it stays.
func (g *gatekeeper) Gone() bool { return false }

// Close does nothing.
func (g *gatekeeper) Close() {}

// comes: a cluster is about to be attached.
func (a *agent) comes(cluster string) bool {
	return slices.ContainsFunc(a.growth.additions,
		func(d *addition) bool { return d.come != nil && d.come.attach.Cluster == cluster }) ||
		slices.ContainsFunc(a.others, func(h *remoteHost) bool {
			return !h.gone &&
				h.attached != nil && h.attached.cluster == cluster
		})
}

// admitCluster sends the agent of an arriving cluster the job, of which it is to be a host.
func (a *agent) admitCluster(d *addition, host hosts.Host) error {
	parts, why := a.partsForAdmission(d)
	if why != "" {
		d.come.conn.Close()
		return fmt.Errorf("%s", why)
	}
	d.slots = host.Slots
	h := newRemoteHost(len(a.spec.Hosts), host.Name)
	from := d.come.attach
	h.joining, h.conn, h.attached = d, d.come.conn, &externalCluster{cluster: from.Cluster,
		parts: parts, come: from, hosts: make([]*remoteHost, 1+len(from.Hosts)), at: d.at}
	h.attached.hosts[0], h.reach, h.via, h.home = h, &from.Reach, d.come.via, h.number
	if err := a.placeExternal(h, from.At); err != nil {
		go func() {
			// if it is gone, it need not know
			h.conn.Send(&control.Message{Off: err.Error()}) //nolint:errcheck
			h.conn.Close()
		}()
		return err
	}
	h.wait = func() string { return connectionEnd(h.failure) }
	if way, relayed := h.conn.(*passage); relayed {
		h.wait = way.how
	}
	a.growth.now, a.growth.callers = h, append(a.growth.callers, h)
	a.introduceTo(h, [32]byte{}) // it has the key
	a.limitJoin(h)
	return nil
}

// partsForAdmission are those of a cluster that was let in, unless the system ends.
func (a *agent) partsForAdmission(d *addition) (parts []int, why string) {
	if a.machine.Ending() || len(a.spec.Hosts) >= mostHosts {
		return nil, errEnding.Error()
	}
	for i, x := range a.spec.Join.Declared {
		if x.Cluster == d.come.attach.Cluster {
			parts = append(parts, i+1)
		}
	}
	return parts, ""
}

// startParts starts the cluster of a host that is one of the job's now, and its I/O processes.
func (a *agent) startParts(h *remoteHost) {
	if h.gone || a.machine.Ending() || !a.growFor(h) {
		return
	}
	for _, p := range h.attached.parts {
		a.step(job.Attached{Part: p})
		a.tree.lives[p]++
		delete(a.tree.asked, p)
	}
	a.buildTree()
	// all of them come: the first waits for the others, even if these were given up
	a.change(func(l *layout.Layout) {
		for _, p := range h.attached.parts {
			if heals := a.healsIn(l, p); heals != nil {
				*heals = true
			}
		}
	})
	for _, p := range h.attached.parts {
		a.restartPart(p, false)
	}
	h.attached.begun = true
}

// homeOf is the host that has attached with a part; nil: this agent has started it.
func (a *agent) homeOf(part int) *remoteHost {
	for _, h := range slices.Backward(a.others) {
		if h.attached != nil && slices.Contains(h.attached.parts, part) {
			return h
		}
	}
	return nil
}

// healsAgain sets whether processes that die in a part are replaced, now that it has been attached.
func (a *agent) healsAgain(part int, now bool) bool {
	if a.homeOf(part) == nil {
		return now
	}
	return a.spec.Parts[part-1].Heals()
}

// notStartedThere: a part of an attached cluster cannot be started on its host, which is sent away.
func (a *agent) notStartedThere(h *remoteHost, part int, text string) {
	if a.machine.Ending() {
		return
	}
	if h.gone { // it was lost in the middle of that
		a.step(job.Detached{Part: part})
		return
	}
	act := job.Say{Text: fmt.Sprintf("%s cannot be started: %s", a.spec.Parts[part-1].Name, text)}
	a.say(act.Text)
	a.sayAttached(act)
	h.attached.begun, h.attached.status = false, job.StatusFailed
	a.step(job.Detached{Part: part})
	for _, m := range h.members() {
		m.box.put(&control.Message{Action: job.Finish{Status: job.StatusFailed}})
	}
	h.box.put(&control.Message{Action: job.Finish{Status: job.StatusFailed}})
}

// sayAttached prints a line to the users of the other clusters, too.
func (a *agent) sayAttached(s job.Say) {
	for _, h := range a.others {
		switch {
		case h.attached == nil || h.gone:
		case h.led && !h.ready: // nothing is said to it before it has said how it stands
			h.unsaid = append(h.unsaid, s)
		default:
			h.box.put(&control.Message{Action: s})
		}
	}
}

// sayToAll prints a line that is not the job machine's: the users of the other clusters get it,
// too.
func (a *agent) sayToAll(text string) {
	a.say(text)
	a.sayAttached(job.Say{Text: text})
}

// statusOf is the exit status of a cluster that has attached, and that of its first death, which
// counts when it does not go on.
func (a *agent) statusOf(g *externalCluster) (status, death int) {
	m, decides := a.machine.(*job.Machine)
	if !decides || !g.begun {
		return g.status, 0
	}
	p := m.Parts()[g.parts[0]-1]
	return cmp.Or(g.status, p.Exit), p.Death
}

// statusAt is the exit status for a host: that of its cluster, if it has attached with one, and
// else that of all.
func (a *agent) statusAt(h *remoteHost) int {
	if h.attached == nil {
		return 0
	}
	status, death := a.statusOf(h.attached)
	return cmp.Or(status, death, a.status)
}

// seeOff dismisses the hosts whose clusters have ended, with their I/O processes: those of whose
// clusters nothing runs, or is about to.
func (a *agent) seeOff() {
	m, decides := a.machine.(*job.Machine)
	if !decides || a.meeting == nil {
		return
	}
	states := m.Parts()
	busy := func(parts []int) bool {
		return slices.ContainsFunc(parts, func(p int) bool {
			return states[p-1].Alive > 0 || states[p-1].State == "restarting" ||
				states[p-1].State == "stopping" || m.Making(p)
		})
	}
	for _, h := range a.others {
		if h.attached == nil || !h.attached.begun || h.gone || m.Ending() {
			continue
		}
		if busy(h.attached.parts) || a.leadsOn(h) {
			continue
		}
		if states[h.attached.parts[0]-1].State == job.StateGone {
			status, death := a.statusOf(h.attached)
			h.attached.status = cmp.Or(status, death,
				boolInt(!m.Made(h.attached.parts[0]))*job.StatusFailed)
		}
		a.dismissHost(h)
	}
	if !m.Ending() {
		a.dismissLeft(states, busy)
	}
}

// dismissHost dismisses a host on which nothing runs any more, with the other hosts of its cluster,
// which are reached through it.
func (a *agent) dismissHost(h *remoteHost) {
	members := h.members()
	for _, m := range members {
		a.sendAway(m)
		m.box.put(&control.Message{Action: job.Finish{}})
		m.box.close()
	}
	a.sendAway(h)
	votes := a.sequence != nil && h.mesh.IsValid()
	status, _ := a.statusOf(h.attached)
	h.votes = votes
	a.tellMesh()
	go func() {
		if votes {
			a.sequence.without(h.number, memberLimit)
		}
		h.box.put(&control.Message{Action: job.Finish{Status: status}})
		limit := time.After(dismissLimit)
		for _, m := range members {
			select {
			case <-m.ended:
			case <-limit:
				m.hangUp()
				limit = closedTime
			}
		}
		h.box.close() // what is said to them goes by it
		select {
		case <-h.ended:
		case <-limit:
			h.hangUp()
		}
	}()
}

// sendAway removes a host whose agent is about to be ordered to end.
func (a *agent) sendAway(h *remoteHost) {
	h.gone, h.removed, h.fate = true, true, "its cluster has ended"
	for _, j := range slices.Clone(a.judging) {
		a.answered(h, &control.Facts{Survey: j.number})
	}
}

// awaitDismissed waits for the ends of clusters that were dismissed before: once this agent is gone
// they could not distinguish that from its loss.
func (a *agent) awaitDismissed(hurry bool) {
	limit := time.After(dismissLimit)
	for _, h := range a.others {
		if h.attached == nil || !h.removed || hurry {
			continue
		}
		select {
		case <-h.ended:
		case <-limit:
			return
		}
	}
}

// refusals counts the calls of peers that have not proved to have the key.
func (a *agent) refusals() uint64 {
	if a.meeting == nil || a.meeting.server == nil {
		return 0
	}
	return a.meeting.server.Refused.Total()
}
