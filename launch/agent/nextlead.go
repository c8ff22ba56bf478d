package agent

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"libspx/launch/control"
	"libspx/launch/job"
	"libspx/net/tcp"
)

// A system whose clusters were started one by one (attach.go) continues when its leading agent is
// lost: that of another cluster's spxrun decides, as another host's agent does in other jobs
// (succession.go). Copies of the machine are kept by agents that have attached by themselves and
// reach each other: those of clusters that run on the host of their spxrun, in one network. This
// file is what is special about it. The machine of the job knows the processes of the parts; a
// host's name has its cluster, and its agent sends again what the cluster has attached with
// (control.Stand). The cluster of the lost agent is from then on one that another spxrun starts,
// and that of the leading one is its own.

// partsOfFirst are the parts of the job as it has begun. Those that were added since come to the
// machine as events.
func (a *agent) partsOfFirst() []job.Part {
	n := len(a.spec.Parts)
	for i := range a.spec.Programs {
		n -= boolInt(a.spec.Programs[i].Added)
	}
	return a.spec.Parts[:max(n, 0)]
}

// forExternal sets what is sent to a host of a job whose clusters attach by themselves: whether it
// keeps a copy of the machine, and then what it has to know to lead the system.
func (a *agent) forExternal(spec *control.Job, h *remoteHost) {
	if h.via != nil || h.of != nil && h.of.via != nil {
		spec.Sequence = false // it is never called
	}
	a.besideFor(spec, h)
	j, first := a.spec.Join, &control.Join{Cluster: a.spec.Join.Cluster, Hosts: 1}
	if a.spec.System != nil {
		first = a.spec.System
	} else {
		for _, o := range a.others {
			first.Hosts += boolInt(!o.isExternal())
		}
	}
	if h.isExternal() {
		spec.System = &control.Join{System: j.System, Cluster: first.Cluster, Hosts: first.Hosts,
			Whole: j.Whole, Declared: slices.Clone(j.Declared)}
	}
}

// mayLead: the agent of a host may come to lead: that of a cluster's spxrun, which all others
// reach.
func (h *remoteHost) mayLead() bool { return h.attached != nil && h.via == nil }

// leadSystem has this agent lead the system. meets is where clusters call from now on; empty:
// nowhere.
func (a *agent) leadSystem() (meets string) {
	j := *a.local.Join
	j.Whole, j.Declared = a.spec.System.Whole, a.spec.System.Declared
	a.attached = nil
	a.company.leave()
	a.decidesHere()
	l, err := a.listenInPlace(j.Address)
	if err != nil {
		a.spec.Join, a.meeting = &j, &meeting{}
		a.say(fmt.Sprintf("no more clusters can be attached to the system: %v", err))
		return ""
	}
	j.Address = l.Addr().String()
	a.spec.Join, a.meeting = &j, &meeting{listener: l}
	a.leadsNow.Store(true)
	a.openToOthers()
	for _, at := range slices.Compact(slices.Sorted(slices.Values(a.succession.met))) {
		if at != "" && at != j.Address {
			go tellMoved(&j, at)
		}
	}
	return j.Address
}

// listenInPlace listens where the system has been led so far, if that is an address of this host,
// and else at the same port, if it is free.
func (a *agent) listenInPlace(address string) (net.Listener, error) {
	if at, here := addressHere(address); here {
		if l, err := net.Listen("tcp", at.String()); err == nil {
			return l, nil
		}
	}
	if _, text, err := net.SplitHostPort(address); err == nil {
		if port, err := strconv.ParseUint(text, 10, 16); err == nil {
			if l, err := net.Listen("tcp", netip.AddrPortFrom(a.address,
				uint16(port)).String()); err == nil {
				return l, nil
			}
		}
	}
	return net.Listen("tcp", netip.AddrPortFrom(a.address, 0).String())
}

// movedPause is the time between two checks whether an agent leads the system at its previous
// address.
const movedPause = time.Second

// tellMoved notifies an agent that leads the system at its previous address, unaware that it
// continues at another one. It ends with this process.
func tellMoved(j *control.Join, at string) {
	id := identityOf(j, comeNumber)
	for {
		ctx, end := context.WithTimeout(context.Background(), throughLimit)
		c, verdict, err := tcp.DialContext(ctx, at, &id, tcp.Process{Number: leadNumber})
		end()
		if err == nil && verdict == tcp.Taken {
			conn := control.NewConn(sealedConn(c))
			conn.Send(&control.Message{Moved: j.Address}) //nolint:errcheck // it is repeated
			c.Close()
		}
		time.Sleep(movedPause)
	}
}

// moved: another agent leads the system, at an address.
type moved struct{ to string }

// hasMoved ends what has begun here as a system of its own: the system of that name goes on
// elsewhere.
func (a *agent) hasMoved(e moved) {
	if _, decides := a.machine.(*job.Machine); !decides || a.done || a.machine.Ending() {
		return
	}
	text := fmt.Sprintf(
		"the system %s runs already, and is led at %s since the agent was lost that had led it "+
			"here: spxrun --join %s attaches cluster %s there", a.spec.Join.System, e.to, e.to,
		a.spec.Join.Cluster)
	a.sayAttached(job.Say{Text: text})
	a.step(job.NotStarted{Text: text, Status: job.StatusFailed})
}

// ofCluster has a host belong to the cluster that has come with it, for an agent that has come to
// lead.
func (a *agent) ofCluster(h *remoteHost, l *legacy) {
	if a.meeting == nil {
		return
	}
	cluster := a.spec.System.Cluster
	if h.number >= a.spec.System.Hosts {
		cluster, _, _ = strings.Cut(h.name, "@")
	}
	if cluster == a.local.Join.Cluster {
		return // this agent's own, or as it was before it came again
	}
	g := &externalCluster{cluster: cluster, come: &control.Arrival{Cluster: cluster},
		hosts: []*remoteHost{h}}
	for i, d := range a.spec.Join.Declared {
		if d.Cluster == cluster {
			g.parts = append(g.parts, i+1)
		}
	}
	if len(g.parts) == 0 {
		return
	}
	g.begun = l.machine.Parts()[g.parts[0]-1].State != job.StateAway
	h.attached = g
}

// standsAs takes what a cluster has come with.
func (a *agent) standsAs(h *remoteHost, e *control.Arrival) {
	g := h.attached
	if g == nil || e == nil || e.Cluster != g.cluster {
		return
	}
	var wants []want
	for _, part := range g.parts {
		wants = append(wants, want{a.spec.Join.Declared[part-1].Name,
			a.spec.Programs[a.programOf(part)].Procs})
	}
	if _, at, why := externalHosts(e, wants); why == "" {
		g.come, g.at, h.reach, h.at = e, at, &e.Reach, e.At
	}
}

// seatRest starts the clusters whose hosts had become those of the job when the agent before was
// lost, and nothing else.
func (a *agent) seatRest() {
	for _, h := range a.others {
		switch g := h.attached; {
		case g == nil || h.gone || g.begun:
		case g.incomplete():
			a.notAttached(g.cluster, fmt.Sprintf(
				"cluster %s was not attached: host %s was lost, which led the system, before "+
					"all its hosts were taken in", g.cluster, a.hostName(a.succession.before)))
		default:
			a.inbox.put(seated{h})
		}
	}
}

// ownPlaces are the hosts of the processes of a part that this agent's spxrun has started, in a
// system that another one has led before; nil: it is none of these.
func (a *agent) ownPlaces(part int) []int {
	if a.cameAs == nil || a.spec.Join == nil || part > len(a.spec.Join.Declared) ||
		a.spec.Join.Declared[part-1].Cluster != a.local.Join.Cluster {
		return nil
	}
	on, err := a.cameAs.On(a.spec.Join.Declared[part-1].Name,
		a.spec.Programs[a.programOf(part)].Procs)
	if err != nil {
		return nil
	}
	for i, index := range on {
		if on[i] = a.self; index > 0 {
			on[i] = a.company.numberOf(index)
		}
	}
	if slices.Contains(on, 0) { // one of them was never the job's
		return nil
	}
	return on
}
