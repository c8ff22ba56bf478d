package agent

import (
	"net/netip"
	"strings"

	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/launch/reach"
)

// How the hosts of a job agree on the addresses by which they reach each other: every agent says
// what its host has, the one that decides chooses for all (package reach), and tells each. A host
// that is added later gets an address that fits those in use. Clusters that come by themselves use
// the address by which they have come.

// places is what an agent knows of that.
type places struct {
	self   reach.Host // of the agent that decides
	chosen bool       // and: all have been told
	beat   netip.Addr // where heartbeats are taken; not valid: where the processes listen
	// where processes and heartbeats are taken, if that is more than one address of this host; else
	// not valid
	listen netip.Addr
	// of the agent that decides: by host, its address for every other one; nil: it has one for all
	pairs [][]netip.Addr
	// other networks that all hosts are in, for messages about connections that cannot be made
	networks string
	early    []*control.Message // what came before the choice
}

// askPlace says what this host has, and waits for what is chosen. Meanwhile it starts the agents
// that are its to start: the choice waits for what their hosts have, too. When anything else comes
// first the job is about to end, and the choice is this host's own.
func (a *agent) askPlace() {
	if !a.several() || a.attached != nil {
		return
	}
	here := a.describeOwn()
	a.up.box.put(&control.Message{Reach: &here})
	for {
		m, err := a.up.conn.Receive()
		switch {
		case err != nil: // it will not be better when the messages are read
		case m.Branch != nil:
			a.hearBranch(m.Branch)
			continue
		case m.Relayed != nil:
			a.company.handDown(a, m.Relayed)
			continue
		case m.Place != nil:
			a.address, a.places.beat, a.places.networks, a.places.listen = m.Place.At, m.Place.Beat,
				m.Place.Networks, m.Place.Listen
		default:
			a.places.early = append(a.places.early, m)
		}
		return
	}
}

// hearEarly takes up what came before the choice.
func (a *agent) hearEarly() {
	for _, m := range a.places.early {
		a.inbox.put(decided{m, a.spec.Era})
	}
	a.places.early = nil
}

// describedBy takes what another host has said of itself.
func (a *agent) describedBy(h *remoteHost, r *reach.Host) {
	r.Name = h.name
	h.reach = r
	switch {
	case h.joining != nil && h.of != nil:
		a.placeMember(h)
		return
	case h.joining != nil:
		a.placeAdded(h)
		return
	}
	a.startBelow(h)
	a.placeAll()
}

// placeAll chooses as soon as all hosts have said what they have.
func (a *agent) placeAll() {
	p := &a.places
	if p.chosen || a.machine.Ending() || len(a.unsent) > 0 ||
		a.waitsFor(func(h *remoteHost) bool { return h.reach == nil }) {
		return
	}
	p.chosen, p.self = true, a.describe()
	all := []reach.Host{p.self}
	who := []*remoteHost{nil}
	for _, h := range a.others {
		if !h.gone {
			all, who = append(all, *h.reach), append(who, h)
		}
	}
	plan, err := reach.Choose(all, a.spec.Iface, 0)
	inner := plan
	// a host that only starts the others need not be in the network that they have for themselves
	if !a.hasProcesses(0) && len(all) > 2 {
		if own, err2 := reach.Choose(all[1:], a.spec.Iface, 0); err2 == nil && err == nil {
			own.At = append([]netip.Addr{plan.At[0]}, own.At...)
			inner = own
		}
	}
	if err != nil && len(a.spec.Parts) > 0 {
		if err = a.placePairs(all, who); err == nil {
			return
		}
	}
	if err != nil {
		a.step(job.NotStarted{Text: err.Error(), Status: job.StatusFailed})
		return
	}
	p.networks = otherNetworks(inner)
	for i, h := range who {
		if h == nil {
			a.address, p.beat = inner.At[i], plan.At[i]
			continue
		}
		h.at = inner.At[i]
		h.box.put(&control.Message{Place: &control.Place{At: inner.At[i], Beat: plan.At[i],
			Networks: p.networks, Listen: a.widely(h.reach)}})
	}
}

// hasProcesses: processes run on this host, or may be spawned there.
func (a *agent) hasProcesses(host int) bool {
	for i := range a.ranks {
		if a.ranks[i].host == host {
			return true
		}
	}
	return host < len(a.spec.Slots) && a.spec.Slots[host] > 0
}

// placeAdded chooses for a host that is added to the running job.
func (a *agent) placeAdded(h *remoteHost) {
	if !a.places.chosen {
		a.places.self = a.describe()
	}
	known := []reach.Host{}
	if a.address.IsValid() {
		known = append(known, a.places.self.Only(a.address))
	}
	for _, o := range a.others {
		if !o.gone && o.reach != nil && o.at.IsValid() {
			known = append(known, o.reach.Only(o.at))
		}
	}
	plan, err := reach.Choose(append(known, *h.reach), a.spec.Iface, len(known))
	if err != nil {
		a.cannotJoin(h, err.Error())
		return
	}
	h.at = plan.At[len(known)]
	h.box.put(&control.Message{Place: &control.Place{At: h.at, Networks: a.places.networks}})
}

// listenAt is where sockets are made for this host's address.
func (a *agent) listenAt(address netip.Addr) netip.Addr {
	if a.places.listen.IsValid() {
		return a.places.listen
	}
	return address
}

// otherNetworks are those that could have been chosen, as text.
func otherNetworks(p reach.Plan) string {
	var out []string
	for _, c := range p.Others {
		out = append(out, c.String())
	}
	return strings.Join(out, ", ")
}

// beatAddress is where this host takes heartbeats.
func (a *agent) beatAddress() (netip.Addr, error) {
	if a.places.beat.IsValid() {
		return a.places.beat, nil
	}
	if a.address.IsValid() {
		return a.address, nil
	}
	at, err := a.chooseAddress()
	if err == nil {
		a.address = at
	}
	return at, err
}
