package agent

import (
	"slices"
	"strings"

	"libspx/cluster/layout"
	"libspx/launch/control"
	"libspx/launch/cpus"
	"libspx/launch/job"
)

// Where the processes of a part run that is started again: on the hosts where they were and, when
// some of these are lost, on others of the system that have room.

// A candidate is a host on which processes may be started again.
type candidate struct {
	slots, load int  // processes that it is for, and has
	lost        bool // also: none of those that this agent may use
	// how little it has to do with the part: 0 runs some of it, or of its link; 1 runs a cluster of
	// that link; 2 neither
	far int
}

func (b *candidate) free() int { return b.slots - b.load }

// rehost finds hosts for processes that were on others. Each stays where it was, if that host is
// there. The rest goes where slots are free or, with crowd, to the host with the fewest processes
// for its slots. Together they need one host for all. False: there is no room.
func rehost(was []int, hosts []candidate, together, crowd bool) (where []int, ok bool) {
	hosts = slices.Clone(hosts)
	moves := 0
	for _, h := range was {
		if hosts[h].lost {
			moves++
		} else {
			hosts[h].load++
		}
	}
	if moves == 0 {
		return was, true
	}
	if together {
		h := roomiest(hosts, len(was), crowd)
		return slices.Repeat([]int{max(h, 0)}, len(was)), h >= 0
	}
	for _, h := range was {
		if hosts[h].lost {
			if h = roomiest(hosts, 1, crowd); h < 0 {
				return nil, false
			}
			hosts[h].load++
		}
		where = append(where, h)
	}
	return where, true
}

// roomiest is the host for n processes: of those with room the nearest, then that with the most;
// -1: there is none.
func roomiest(hosts []candidate, n int, crowd bool) int {
	best := -1
	for i := range hosts {
		h := &hosts[i]
		if h.lost || h.slots <= 0 || h.free() < n && !crowd {
			continue
		}
		if best < 0 || better(h, &hosts[best], n) {
			best = i
		}
	}
	return best
}

func better(x, y *candidate, n int) bool {
	switch xFits, yFits := x.free() >= n, y.free() >= n; {
	case xFits != yFits:
		return xFits
	case !xFits && x.load*y.slots != y.load*x.slots:
		return x.load*y.slots < y.load*x.slots
	case x.far != y.far:
		return x.far < y.far
	}
	return x.free() > y.free()
}

// rehost says where the processes of a part run that is started again, and in words what of that is
// new; why: they cannot. crowd: room does not count.
func (a *agent) rehost(part int, crowd bool) (where []int, moved, why string) {
	was := a.hostsBefore(part)
	if !a.several() {
		return was, "", ""
	}
	p := &a.spec.Programs[a.programOf(part)]
	l := a.layoutNow()
	where, ok := rehost(was, a.placesIn(part, l), p.MsgLogs || a.isTogether(part) &&
		(p.Cold > 0 || a.replays(l, part)), crowd)
	if moved, why = a.movedTo(was, where, ok, "the other hosts of the system have"); !ok {
		where = nil
	}
	return where, moved, why
}

// isTogether: all processes of a part are on one host, by the system file.
func (a *agent) isTogether(part int) bool {
	first := a.firstHosts(part)
	return !slices.ContainsFunc(first, func(h int) bool { return h != first[0] })
}

// placed says of the end of a process where another one is started in its place, if one is: on its
// own host or, when that is lost or has no place left, on that host of its cluster with the most
// room.
func (a *agent) placed(e job.Event) job.Event {
	end, ok := e.(job.Ended)
	m, decides := a.machine.(*job.Machine)
	if !ok || !decides || end.Proc >= len(a.ranks) || a.ranks[end.Proc].part == 0 || !a.several() {
		return e
	}
	part := a.ranks[end.Proc].part
	p := &a.spec.Programs[a.programOf(part)]
	if p.Cold == 0 {
		return e
	}
	var hosts []candidate
	if h := a.homeOf(part); h != nil {
		hosts = a.placesInExternal(h)
	} else {
		hosts = a.placesIn(part, a.layoutNow())
	}
	places := make([]int, len(hosts)) // on each host, 1 + the first that is left
	for _, k := range slices.Backward(m.Unused(part)) {
		if h := a.hostOfPlace(part, p.Procs-p.Cold+k); h >= 0 && h < len(places) {
			places[h] = k + 1
		}
	}
	for h := range hosts {
		hosts[h].lost = hosts[h].lost || places[h] == 0
	}
	h := a.ranks[end.Proc].host
	if hosts[h].lost {
		h = roomiest(hosts, 1, true)
	}
	end.Place = -1
	if h >= 0 {
		end.Place = places[h]
	}
	return end
}

// hostOfPlace is the host with a place for a process that is started in the place of a rank, by its
// number in the world of its part; -1: there is none.
func (a *agent) hostOfPlace(part, in int) int {
	world := a.machine.(*job.Machine).Crew(part).World
	if world == 0 { // it has been made once, with the job
		world = a.spec.Programs[a.programOf(part)].World
	}
	for i := range a.ranks {
		if r := &a.ranks[i]; r.part == part && r.world == world && r.in == in && a.isSpare(i) {
			return r.host
		}
	}
	return -1
}

// hostsBefore are those of the processes of a part as it was made last.
func (a *agent) hostsBefore(part int) []int {
	first := a.firstHosts(part)
	if m, decides := a.machine.(*job.Machine); decides {
		was := m.Hosts(part)
		if len(was) == len(first) && !slices.ContainsFunc(was,
			func(h int) bool { return h < 0 || h >= len(a.spec.Hosts) }) {
			return was
		}
	}
	return first
}

func areNamed(names []string) string {
	if len(names) == 1 {
		return names[0] + " is"
	}
	return strings.Join(names, ", ") + " are"
}

// firstHosts are those on which the processes of a part are to run, by the system file.
func (a *agent) firstHosts(part int) (out []int) {
	if own := a.ownPlaces(part); own != nil {
		return own
	}
	first := 0
	for k := range a.spec.Programs {
		p := &a.spec.Programs[k]
		if p.Added { // its own spxrun has said where
			continue
		}
		if p.Part == part {
			for i := range p.Procs {
				out = append(out, a.spec.Host(first+i))
			}
		}
		first += p.Procs
	}
	return out
}

// layoutNow is the system as it is; without one it has no clusters.
func (a *agent) layoutNow() *layout.Layout {
	if l, err := layout.Decode(a.layoutText()); err == nil {
		return l
	}
	return new(layout.Layout)
}

// replays: who takes a rank of a part over needs memory of the host on which that was.
func (a *agent) replays(l *layout.Layout, part int) bool {
	cluster, _ := a.placeIn(l, part)
	return cluster >= 0 && l.Clusters[cluster].Replays
}

// berths are the hosts of the job as those for a part.
func (a *agent) placesIn(part int, l *layout.Layout) []candidate {
	out := make([]candidate, len(a.spec.Hosts))
	load := a.load()
	for h := range out {
		own := slices.ContainsFunc(a.others, func(e *remoteHost) bool {
			return e.number == h &&
				(e.gone || e.isExternal() || e.joining != nil)
		})
		out[h] = candidate{slots: a.spec.Slots[h], load: load[h], lost: own, far: 2}
	}
	for h := range out {
		out[h].lost = out[h].lost || !a.reachesAll(part, h, l)
	}
	for k := range a.spec.Parts {
		far := 2
		switch link := a.spec.Parts[part-1].Link; {
		case k == part-1, link > 0 && a.spec.Parts[k].Link == link:
			far = 0
		case a.serves(l, part, k+1):
			far = 1
		}
		for _, h := range a.firstHosts(k + 1) {
			out[h].far = min(out[h].far, far)
			// the file names it nowhere, and it has processes nevertheless: it is for as many as it
			// has processors
			if h == 0 && out[h].slots == 0 {
				out[h].slots = cpus.Usable()
			}
		}
	}
	return out
}

// reachesAll: on this host a part could talk to all whom it has to.
func (a *agent) reachesAll(part, host int, l *layout.Layout) bool {
	if a.places.pairs == nil {
		return true
	}
	for k := range a.spec.Parts {
		if k == part-1 || a.serves(l, part, k+1) || a.serves(l, k+1, part) {
			if slices.ContainsFunc(a.hostsOfPart(k+1),
				func(h int) bool { return !a.meets(host, h) }) {
				return false
			}
		}
	}
	return true
}

// serves: a part is an I/O process of another one, which is a cluster.
func (a *agent) serves(l *layout.Layout, part, of int) bool {
	_, iop := a.placeIn(l, part)
	cluster, _ := a.placeIn(l, of)
	if iop < 0 || cluster < 0 {
		return false
	}
	p := &l.IOPs[iop]
	return slices.Contains(p.In, cluster) || slices.Contains(p.Out, cluster)
}

// followTo has the tree of masters know of the hosts to which a part has moved.
func (a *agent) followTo(part int, members []control.Member) {
	cluster := part
	if with := a.spec.Parts[part-1].With; with > 0 {
		cluster = with
	}
	k := a.clusterOf(cluster)
	if a.tree.epoch == 0 || k < 0 || k >= len(a.tree.cfg.Clusters) {
		return
	}
	agents := a.tree.cfg.Clusters[k].Agents
	if slices.ContainsFunc(members,
		func(m control.Member) bool { return !slices.Contains(agents, m.Host) }) {
		a.buildTree()
	}
}
