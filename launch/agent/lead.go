package agent

import (
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

// The agent that leads a system whose clusters are started one by one (attach.go): it takes those in that come, and sees them off when their processes have ended.

// meeting is where clusters arrive.
type meeting struct {
	listener net.Listener
	server   *tcp.Server
	refused  int // of which was told
}

// What happens there.
type (
	arrival struct { // somebody who has the key wants to run a cluster
		conn   *control.Conn
		attach *control.Arrival
	}
	seated  struct{ h *elsewhere } // its host is one of the job's
	turned  struct{ text string }  // somebody was turned away
	waiting struct{}               // some clusters may be missing for long
)

// guestCluster is what a host runs that has attached.
type guestCluster struct {
	cluster string
	parts   []int // that of the cluster, and those of its I/O processes
	come    *control.Arrival
	begun   bool
	status  int // the first of its processes that is not zero
}

// awayWord is how long is waited before the user hears for whom.
const awayWord = 3 * time.Second

// mostRefusals is how many calls that were refused are told of.
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
			a.inbox.put(turned{fmt.Sprintf("a call from %v was refused: it has not proved to have the key of the system %s (%v)", from, a.spec.Join.System, err)})
		},
	}
	go a.meeting.server.Serve(a.meeting.listener) //nolint:errcheck // it ends with this process
	time.AfterFunc(awayWord, func() { a.inbox.put(waiting{}) })
}

// arrive hears who comes.
func (a *agent) arrive(c net.Conn) {
	c = sealedConn(c)
	c.SetReadDeadline(time.Now().Add(inviteLimit)) //nolint:errcheck // without, it ends with its caller
	conn := control.NewConn(c)
	m, err := conn.Receive()
	if err != nil || m.Attach == nil || c.SetReadDeadline(time.Time{}) != nil {
		c.Close()
		return
	}
	a.inbox.put(arrival{conn, m.Attach})
}

// refusal tells of a call that was refused, as long as there are not many.
func (a *agent) refusal(e turned) {
	if a.meeting.refused++; a.meeting.refused <= mostRefusals {
		a.say(e.text)
	}
}

// tellAway says which clusters are waited for.
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
		a.say(fmt.Sprintf("waiting for %s %s (spxrun --system FILE --cluster NAME)", plural("cluster", len(names)), strings.Join(names, ", ")))
	}
}

// welcome takes a cluster in, or says why not.
func (a *agent) welcome(e arrival) {
	parts, n, why := a.mayCome(e.attach)
	if why != "" {
		go func() {
			e.conn.Send(&control.Message{Off: why}) //nolint:errcheck // if it is gone, it need not know
			e.conn.Close()
		}()
		return
	}
	for k := range a.spec.Programs {
		if slices.Contains(parts, a.spec.Programs[k].Part) {
			n += a.spec.Programs[k].Procs
		}
	}
	cluster := e.attach.Cluster
	a.growth.additions = append(a.growth.additions, &addition{ask: &question{&service.Message{FD: -1}, &gatekeeper{a, cluster}},
		list: []hosts.Host{{Name: cluster + "@" + e.attach.Host, Slots: n}}, come: &e})
	if len(a.growth.additions) == 1 {
		a.nextHost()
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
		g.a.say(fmt.Sprintf("cluster %s was not attached: %s", g.cluster, m.Text))
	}
	return nil
}

// Gone tells that it stays.
func (g *gatekeeper) Gone() bool { return false }

// Close does nothing.
func (g *gatekeeper) Close() {}

// comes: a cluster is about to be attached.
func (a *agent) comes(cluster string) bool {
	return slices.ContainsFunc(a.growth.additions, func(d *addition) bool { return d.come != nil && d.come.attach.Cluster == cluster }) ||
		slices.ContainsFunc(a.others, func(h *elsewhere) bool { return !h.gone && h.attached != nil && h.attached.cluster == cluster })
}

// admitCluster tells the agent of a cluster that has come what the job is: it is to be one of its hosts.
func (a *agent) admitCluster(d *addition, host hosts.Host) error {
	parts, why := a.partsForAdmission(d)
	if why != "" {
		d.come.conn.Close()
		return fmt.Errorf("%s", why)
	}
	d.slots = host.Slots
	h := newElsewhere(len(a.spec.Hosts), host.Name)
	h.joining, h.conn, h.attached = d, d.come.conn, &guestCluster{cluster: d.come.attach.Cluster, parts: parts, come: d.come.attach}
	h.wait = func() string { return connectionEnd(h.failure) }
	a.growth.now, a.growth.callers = h, append(a.growth.callers, h)
	a.introduceTo(h, [32]byte{}) // it has the key
	time.AfterFunc(inviteLimit, func() { a.inbox.put(unanswered{h}) })
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
func (a *agent) startParts(h *elsewhere) {
	if h.gone || a.machine.Ending() || !a.growFor(h) {
		return
	}
	for _, p := range h.attached.parts {
		a.step(job.Attached{Part: p})
		a.tree.lives[p]++
		delete(a.tree.asked, p)
	}
	a.plant()
	a.change(func(l *layout.Layout) { // all of them come: who comes first waits for the others, also if they were given up
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
func (a *agent) homeOf(part int) *elsewhere {
	for _, h := range slices.Backward(a.others) {
		if h.attached != nil && slices.Contains(h.attached.parts, part) {
			return h
		}
	}
	return nil
}

// healsAgain tells whether who dies in a part is replaced, now that it has been attached.
func (a *agent) healsAgain(part int, now bool) bool {
	if a.homeOf(part) == nil {
		return now
	}
	p := &a.spec.Parts[part-1]
	return p.Whole == job.Restart || p.Process == job.Replace
}

// notStartedThere: a part of an attached cluster cannot be started on its host, which is sent away.
func (a *agent) notStartedThere(h *elsewhere, part int, text string) {
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
	h.box.put(&control.Message{Action: job.Finish{Status: job.StatusFailed}})
}

// sayAttached tells what is said to the users of the other clusters, too.
func (a *agent) sayAttached(s job.Say) {
	for _, h := range a.others {
		if h.attached != nil && !h.gone {
			h.box.put(&control.Message{Action: s})
		}
	}
}

// statusAt is the exit status for a host: that of its cluster, if it has attached with one, and else that of all.
func (h *elsewhere) statusAt(all int) int {
	switch {
	case h.attached == nil:
		return 0
	case h.attached.status != 0:
		return h.attached.status
	}
	return all
}

// seeOff sends the hosts away whose clusters have ended, with their I/O processes. ending: the system was being ended before, so that the process has
// ended for that, and its status says nothing of its cluster.
func (a *agent) seeOff(e job.Ended, ending bool) {
	m, decides := a.machine.(*job.Machine)
	if !decides || a.meeting == nil {
		return
	}
	if r := &a.ranks[e.Proc]; r.part > 0 && !a.spec.Parts[r.part-1].Serves && !ending {
		for _, h := range a.others {
			if h.attached != nil && h.number == r.host && h.attached.status == 0 {
				h.attached.status = e.Wait.Status()
				if e.Owner == job.OwnerInit && h.attached.status == 0 {
					h.attached.status = job.StatusFailed
				}
			}
		}
	}
	states := m.Parts()
	for _, h := range a.others {
		if h.attached == nil || !h.attached.begun || h.gone || m.Ending() {
			continue
		}
		busy := slices.ContainsFunc(h.attached.parts, func(p int) bool {
			return states[p-1].Alive > 0 || states[p-1].State == "restarting" || states[p-1].State == "stopping"
		})
		if !busy {
			a.dismissHost(h)
		}
	}
}

// dismissHost sends a host away on which nothing runs any more.
func (a *agent) dismissHost(h *elsewhere) {
	h.gone, h.removed, h.fate = true, true, "its cluster has ended"
	for _, j := range slices.Clone(a.judging) {
		a.answered(h, &control.Facts{Survey: j.number})
	}
	h.box.put(&control.Message{Action: job.Finish{Status: h.attached.status}})
	h.box.close()
	go func() {
		select {
		case <-h.ended:
		case <-time.After(dismissLimit):
			h.hangUp()
		}
	}()
}

// awaitDismissed waits for the ends of clusters that were sent away before: when this agent is gone they could not tell that from its loss.
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

// refusals counts the calls of those who have not proved to have the key.
func (a *agent) refusals() uint64 {
	if a.meeting == nil || a.meeting.server == nil {
		return 0
	}
	return a.meeting.server.Refused.Total()
}
