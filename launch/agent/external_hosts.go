package agent

import (
	"fmt"
	"slices"
	"strings"

	"libspx/ft/detect"
	"libspx/launch/control"
	"libspx/launch/hosts"
	"libspx/launch/job"
)

// The hosts of clusters that have attached to the system (lead.go), on the side of the deciding
// agent. That of the cluster's spxrun has called by itself; it has started the agents of the others
// (members.go), and forwards their messages (passage.go). They are added to the job one after
// another, before the cluster begins, and each is one of its hosts like any other then: the loss of
// one is that of a single host, and the cluster continues as the file has it. With the host of the
// cluster's spxrun all of them are lost.

// isExternal: what runs there was started by a spxrun of its own.
func (h *remoteHost) isExternal() bool { return h.attached != nil || h.of != nil || h.kin != nil }

// by is the host through whose agent this one's is reached; nil: it is reached from here.
func (h *remoteHost) by() *remoteHost {
	if h.of != nil {
		return h.of
	}
	return h.via
}

// leading is, of a host of an attached cluster, that of its spxrun.
func (h *remoteHost) leading() *remoteHost {
	if h.of != nil {
		return h.of
	}
	return h
}

// members are the other hosts of an attached cluster that are there.
func (h *remoteHost) members() (out []*remoteHost) {
	if h.attached == nil {
		return nil
	}
	for _, m := range h.attached.hosts[1:] {
		if m != nil && m.of == h && !m.gone {
			out = append(out, m)
		}
	}
	return out
}

// numberOf is, of a host of an attached cluster, its number in the job; -1: it is not there yet.
func (g *externalCluster) numberOf(index int) int {
	if index >= len(g.hosts) || g.hosts[index] == nil {
		return -1
	}
	return g.hosts[index].number
}

// firstPlaces are the hosts of the job on which the processes of a part of an attached cluster run
// first.
func (g *externalCluster) firstPlaces(part string) (out []int) {
	for _, i := range g.at[part] {
		out = append(out, g.numberOf(i))
	}
	return out
}

// A want is a part of a cluster that comes, with how many processes.
type want struct {
	name  string
	procs int
}

// externalHosts are the hosts that a cluster wants to be taken with, and where its parts are to
// run, by their names; why it cannot be.
func externalHosts(e *control.Arrival, wants []want) (list []hosts.Host, at map[string][]int,
	why string) {
	at = map[string][]int{}
	slots := []int{e.Slots}
	list = []hosts.Host{{Name: externalName(e.Cluster, e.Host)}}
	for _, h := range e.Hosts {
		list, slots = append(list, hosts.Host{Name: externalName(e.Cluster, h.Name)}),
			append(slots, h.Slots)
	}
	load := make([]int, len(list))
	for _, w := range wants {
		on, err := e.On(w.name, w.procs)
		if err != nil {
			return nil, nil, err.Error()
		}
		at[w.name] = on
		for _, i := range on {
			load[i]++
		}
	}
	for i := range list {
		list[i].Slots = max(slots[i], load[i], 0)
	}
	return list, at, ""
}

// externalName is what a host is called on which a cluster runs that has attached: another one may
// run there, too.
func externalName(cluster, host string) string { return cluster + "@" + host }

// admitMember asks the agent of another host of a cluster that comes to be one of the job's.
func (a *agent) admitMember(d *addition, host hosts.Host) error {
	switch {
	case a.machine.Ending() || len(a.spec.Hosts) >= mostHosts:
		return errEnding
	case d.lead == nil || d.lead.gone:
		return fmt.Errorf("the host of its spxrun is not there")
	}
	way := d.lead.behind.to(&d.lead.box, d.index)
	d.slots = host.Slots
	h := newRemoteHost(len(a.spec.Hosts), host.Name)
	h.joining, h.of, h.home, h.conn, h.wait = d, d.lead, d.lead.number, way, way.how
	a.growth.now, a.growth.callers = h, append(a.growth.callers, h)
	a.introduceTo(h, [32]byte{}) // it is given the key by the agent that reaches it
	a.limitJoin(h)
	return nil
}

// externalJoined: a host of a cluster that comes is one of the job's. When all are, its processes
// are started.
func (a *agent) externalJoined(d *addition, h *remoteHost) {
	if h.of == nil {
		d.lead = h
	} else {
		d.lead.attached.hosts[d.index] = h
	}
	d.index++
	if len(d.list) == 0 {
		a.inbox.put(seated{d.lead}) // a world may be about to be made: not in the middle of that
	}
}

// notAttached dismisses the hosts that have come of a cluster of which some host has not, and
// notifies its user.
func (a *agent) notAttached(cluster, text string) {
	for _, h := range a.others {
		if h.attached == nil || h.gone || h.attached.begun || h.attached.cluster != cluster {
			continue
		}
		h.attached.status = job.StatusFailed
		h.box.put(&control.Message{Action: job.Say{Text: text}})
		a.dismissHost(h)
	}
}

// losesMembers: with the host of a cluster's spxrun the others of the cluster are lost, whose
// agents were reached through it. The consequences are drawn when it is called back: none of them
// is asked about the ends of the others' processes.
func (a *agent) losesMembers(h *remoteHost, fault job.Fault) (then func()) {
	list := append(h.members(), a.losesBehind(h)...)
	for _, m := range list {
		m.gone = true
		if a.beating != nil && a.beating.machine != nil {
			a.beating.hasGone(m.number, detect.OutClosed)
		}
	}
	return func() {
		for _, m := range list {
			a.hostFailed(m, fmt.Sprintf("host %s is lost, through which its agent was reached",
				h.name),
				fault)
		}
	}
}

// notMade: the world of a part of an attached cluster has not come about, since the host of its
// spxrun was lost.
type notMade struct{ part int }

// notMade: nothing of a part has come to be, and it may be attached again.
func (a *agent) notMade(e notMade) {
	m, decides := a.machine.(*job.Machine)
	if h := a.homeOf(e.part); !decides || h == nil || !h.gone { // it has come again
		return
	}
	if p := m.Parts()[e.part-1]; p.Alive == 0 && p.State == "restarting" {
		a.step(job.Detached{Part: e.part})
	}
}

// lostWith: the connection with a host has ended since that with the host of its cluster's spxrun
// has: what follows is that one's matter.
func (h *remoteHost) lostWith() bool {
	if h.of == nil || h.joining != nil || h.of.gone {
		return false
	}
	select {
	case <-h.of.ended:
		return true
	default:
		return false
	}
}

// externalsOf are the hosts that are there on which a part of an attached cluster runs, or is to
// run.
func (a *agent) externalsOf(h *remoteHost, part int) (out []int) {
	if h.gone {
		return nil
	}
	for _, n := range a.placesOfExternal(h, part) {
		if n >= 0 && !slices.Contains(out, n) && !a.isLost(n) {
			out = append(out, n)
		}
	}
	return out
}

// leadFirst are the hosts of an attached cluster, that of its spxrun first: it reaches the others.
func (a *agent) leadFirst(part int, list []int) []int {
	h := a.homeOf(part)
	if h == nil || h.gone {
		return list
	}
	return append([]int{h.number}, slices.DeleteFunc(slices.Clone(list),
		func(n int) bool { return n == h.number })...)
}

// networksOf lists, by host, the networks by which hosts reach each other, for the tree of masters:
// the deciding one reaches all directly but those that it reaches through other hosts.
func (a *agent) networksOf(hosts int) [][]int {
	out := make([][]int, hosts)
	for i := range out {
		by := a.self
		if h := a.hostNumbered(i); h != nil && h.by() != nil {
			by = h.by().number
		}
		if i == a.self {
			continue
		}
		out[i], out[by] = append(out[i], i), append(out[by], i)
	}
	return out
}

// hostNumbered is another host by its number.
func (a *agent) hostNumbered(n int) *remoteHost {
	for _, h := range a.others {
		if h.number == n {
			return h
		}
	}
	return nil
}

// placesOfExternal are the hosts of the processes of a part of an attached cluster, as it was
// started last, or is to be.
func (a *agent) placesOfExternal(h *remoteHost, part int) []int {
	first := h.attached.firstPlaces(a.spec.Join.Declared[part-1].Name)
	m, decides := a.machine.(*job.Machine)
	if !decides || !h.attached.begun {
		return first
	}
	if was := m.Hosts(part); len(was) == len(first) &&
		!slices.ContainsFunc(was, func(n int) bool { return !a.isOf(n, h) }) {
		return was
	}
	return first
}

// isOf: a host, by its number, is one of an attached cluster.
func (a *agent) isOf(host int, lead *remoteHost) bool {
	return slices.ContainsFunc(lead.attached.hosts,
		func(m *remoteHost) bool { return m != nil && m.number == host })
}

// rehostExternal chooses the hosts for the processes of a part of an attached cluster that is
// started, or restarted: hosts of the cluster. Otherwise as rehost.
func (a *agent) rehostExternal(h *remoteHost, part int, crowd bool) (where []int, moved,
	why string) {
	was := a.placesOfExternal(h, part)
	p := &a.spec.Programs[a.programOf(part)]
	first := h.attached.firstPlaces(a.spec.Join.Declared[part-1].Name)
	together := !slices.ContainsFunc(first, func(n int) bool { return n != first[0] })
	where, ok := rehost(was, a.placesInExternal(h), p.MsgLogs || together &&
		(p.Cold > 0 || a.replays(a.layoutNow(), part)), crowd)
	moved, why = a.movedTo(was, where, ok, "the other hosts of the cluster have")
	return where, moved, why
}

// placesInExternal are the hosts of the job as those for the processes of an attached cluster: its
// own.
func (a *agent) placesInExternal(h *remoteHost) []candidate {
	room := make([]candidate, len(a.spec.Hosts))
	load := a.load()
	for n := range room {
		room[n] = candidate{slots: a.spec.Slots[n], load: load[n], lost: !a.isOf(n, h) ||
			a.isLost(n)}
	}
	return room
}

// movedTo describes that processes of lost hosts are on other hosts now; why: the reason if they
// cannot be.
func (a *agent) movedTo(was, where []int, ok bool, others string) (moved, why string) {
	var lost, to []string
	for i, h := range was {
		if name := a.spec.Hosts[h]; a.isLost(h) && !slices.Contains(lost, name) {
			lost = append(lost, name)
		}
		if ok && where[i] != h && !slices.Contains(to, a.spec.Hosts[where[i]]) {
			to = append(to, a.spec.Hosts[where[i]])
		}
	}
	gone := fmt.Sprintf("%s %s lost", plural("host", len(lost)), areNamed(lost))
	switch {
	case !ok:
		return "", gone + ", and " + others + " too few free slots"
	case len(to) > 0:
		moved = fmt.Sprintf(" on %s %s, since %s", plural("host", len(to)), strings.Join(to, ", "),
			gone)
	}
	return moved, ""
}
