package storm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// What the policies of a system file make of faults (docs/systems.md). A fault whose outcome they leave open, or which the documents except, is refused: no plan has it.

// A Model is a system as it must be after what has happened to it.
type Model struct {
	plan         *Plan
	Ended        bool // the system is
	lost         []bool
	decider      bool // spxrun's host decides, as from the beginning
	Clusters     []ClusterState
	Links        []LinkState
	Deaths       int          // of processes that are killed alone, each of which is to be told
	Lost         []int        // hosts
	Said         []bool       // that each of them is lost
	Slow         bool         // an I/O process has hung: what follows may have overtaken what it had
	touched      []int        // clusters that this group of faults concerns so that nothing more may happen to them
	Leaving      bool         // a rank has died when it was about to leave: its status may be that of the system
	MayEnd       bool         // a rank has died while it came: the system may have ended for that, and says so
	hosts        int          // faults of hosts in this group
	losses       int          // of these, hosts that are lost
	began        int          // hosts that there were when it began
	links        map[int]bool // that it concerns; true: with one I/O process that is stopped
	busy, closed bool         // this group has faults; it may have no more
}

// ClusterState is how a cluster must be.
type ClusterState struct {
	Gone    bool
	Renewed bool  // some process of it has begun anew, without what the one before had
	Dead    []int // ranks without a process, while the others go on
	left    int   // so many ranks can be taken over
	home    int   // the host of its ranks
	other   int   // that of who may take them over
	again   int   // so often has it been started again
	mixed   bool  // ranks of it are on both of its hosts
	Came    bool  // it has left, and has come again
	early   bool  // a rank of it has died while all started: who came first then is not who was there first
	unclear bool  // where it is, or what it has left, is not known from here on
	anew    bool  // it was started again because that rank could not be taken over yet
}

// LinkState is how a link must be.
type LinkState struct {
	Gone  bool
	Lossy bool // what an I/O process had was lost with it
	left  int  // I/O processes
	moved bool // it is not known on which hosts
	again int  // so many I/O processes have been started again
}

// NewModel is a system to which nothing has happened.
func NewModel(p *Plan) *Model {
	m := &Model{plan: p, lost: make([]bool, p.Hosts+1), decider: true}
	for _, c := range p.Clusters {
		left := c.Standbys
		if c.Process == "restart" {
			left += c.Restarts
		}
		m.Clusters = append(m.Clusters, ClusterState{left: left, home: c.Home, other: c.Other})
	}
	for _, l := range p.Links {
		m.Links = append(m.Links, LinkState{left: l.IOPs})
	}
	for h := 2; h <= p.Hosts; h++ {
		m.lost[h] = !p.uses(h)
	}
	return m
}

// uses: a host is part of the system.
func (p *Plan) uses(h int) bool {
	return h == p.Room && slices.ContainsFunc(p.Clusters, func(c Cluster) bool { return c.Process != "restart" }) ||
		slices.ContainsFunc(p.Clusters, func(c Cluster) bool { return c.Home == h || c.Other == h }) || slices.ContainsFunc(p.Links, func(l Link) bool { return slices.Contains(l.Hosts, h) })
}

// Alive are the hosts of the system that are left.
func (m *Model) Alive() (out []int) {
	for h := 1; h <= m.plan.Hosts; h++ {
		if !m.lost[h] {
			out = append(out, h)
		}
	}
	return out
}

// Begin is the beginning of a group of faults: messages come everywhere, and the hosts that are left know what was decided.
func (m *Model) Begin() {
	m.touched, m.links, m.hosts, m.losses, m.busy, m.closed, m.began = nil, nil, 0, 0, false, false, len(m.Alive())
}

// Apply is what a fault does; false: its outcome is not said, and the model is as before.
func (m *Model) Apply(f Fault) bool {
	before := m.clone()
	if !m.Ended && !m.closed && m.apply(f) {
		if m.standing() == before.standing() {
			m.busy = true
			return true
		}
		if m.closed = true; !before.busy { // else it may find the rest of the group in the middle of that
			return true
		}
	}
	*m = *before
	return false
}

// ApplyEarly is what a fault does while the system starts.
func (m *Model) ApplyEarly(f Fault) bool {
	switch f.What {
	case KillIOP:
		return m.plan.iop(f.Link) != "stop" && m.Apply(f)
	case KillRank:
		p := &m.plan.Clusters[f.Cluster]
		if p.Kind == Told || p.Kind == Plain && p.Whole != "restart" || p.Kind == Transparent && p.Whole == "degrade" || p.Copies || !m.Apply(f) { // the others of such a cluster cannot be told yet
			return false
		}
		m.Clusters[f.Cluster].early, m.MayEnd = true, p.Kind == Transparent
		return true
	}
	return false
}

// tooEarly: a rank of it may have died before a standby could take it over transparently; then all of the cluster is started again.
func (m *Model) tooEarly(c int) bool {
	p := &m.plan.Clusters[c]
	return m.Clusters[c].early && !m.Clusters[c].anew && p.Kind == Transparent && p.Whole == "restart"
}

// CameAnew is told what the system has said when all ranks were there: of a cluster that had a death too early it says whether all of
// it was started again. Its standbys are others then. true: there is one, and what is planned may have no outcome any more.
func (m *Model) CameAnew(said string) (any bool) {
	for c := range m.Clusters {
		if k := &m.Clusters[c]; m.tooEarly(c) && strings.Contains(said, fmt.Sprintf("cluster %s is started again (", Name(c))) {
			k.anew, k.Renewed, k.Dead, k.left, k.mixed = true, true, nil, m.plan.Clusters[c].Standbys, false
			k.again++
			any = true
		}
	}
	return any
}

// Has says whether a fault has an outcome.
func (m *Model) Has(f Fault) bool { return m.clone().Apply(f) }

// ApplyLast is what a fault does when the system ends: ranks that are taken over transparently leave together, and what the others were told of they do without.
func (m *Model) ApplyLast(f Fault) bool {
	before := m.clone()
	if m.Ended || !m.ends(f) {
		*m = *before
		return false
	}
	return true
}

func (m *Model) ends(f Fault) bool {
	switch f.What {
	case KillRank:
		k, p := &m.Clusters[f.Cluster], &m.plan.Clusters[f.Cluster]
		if !m.touch(f.Cluster, f.Rank) {
			return false
		}
		m.Leaving = true
		if p.Kind == Told {
			k.Dead = append(k.Dead, f.Rank)
			return p.Process == "degrade" && len(k.Dead) < p.Ranks
		}
		k.left--
		return p.Kind == Transparent && k.left >= 0
	case KillIOP:
		return m.plan.iop(f.Link) == "restart" && !m.Links[f.Link].Gone && !m.idle(f.Link) && m.link(f.Link, false) && m.plan.Messages == "kept" && m.iopAgain(f.Link)
	case KillMaster:
		return !m.lost[f.Host]
	}
	return false
}

// standing is which clusters there are, and which of them are others than before.
func (m *Model) standing() string {
	text := fmt.Sprint(m.Ended)
	for _, c := range m.Clusters {
		text += fmt.Sprint(" ", c.Gone, c.again)
	}
	return text
}

// EndsBy is whether a fault, if it happened now, would end the system.
func (m *Model) EndsBy(f Fault) bool {
	c := m.clone()
	return c.Apply(f) && c.Ended
}

func (m *Model) clone() *Model {
	c := *m
	c.lost, c.Clusters, c.Links = slices.Clone(m.lost), slices.Clone(m.Clusters), slices.Clone(m.Links)
	for i := range c.Clusters {
		c.Clusters[i].Dead = slices.Clone(c.Clusters[i].Dead)
	}
	c.Lost, c.Said, c.touched, c.links = slices.Clone(m.Lost), slices.Clone(m.Said), slices.Clone(m.touched), maps.Clone(m.links)
	return &c
}

func (m *Model) apply(f Fault) bool {
	switch f.What {
	case KillRank:
		m.Deaths++
		return m.touch(f.Cluster, f.Rank) && m.ranksDie(f.Cluster, []int{f.Rank}, m.plan.Clusters[f.Cluster].Process)
	case HangRank:
		word := m.plan.Clusters[f.Cluster].Hang
		if !m.touch(f.Cluster, f.Rank) {
			return false
		}
		if word == "report" {
			return true
		}
		m.Deaths++
		return m.ranksDie(f.Cluster, []int{f.Rank}, word)
	case KillStandby:
		return m.standbyDies(f.Cluster)
	case Pause:
		return m.touch(f.Cluster, f.Rank)
	case Stand:
		return m.works(f.Cluster) && len(m.Clusters[f.Cluster].Dead) == 0 && m.alone(f.Cluster)
	case KillIOP:
		m.Deaths++
		return m.link(f.Link, false) && m.iopDies(f.Link, m.plan.iop(f.Link))
	case HangIOP:
		return m.link(f.Link, true) && m.iopHangs(f.Link)
	case PauseIOP:
		m.Slow = m.Slow || f.ForMS > hangLimitMS/20 // from a tenth on others are chosen, and who is stopped may be so for longer
		return m.link(f.Link, true) && !m.Links[f.Link].Gone && !m.idle(f.Link)
	case KillMaster:
		return !m.lost[f.Host] && m.hosts == 0
	case Blink, BlinkAll:
		m.hosts++
		return !m.lost[f.Host] && m.hosts == 1
	case KillRun:
		return m.plan.Apart && m.runDies(f.Cluster)
	case Detach:
		return m.plan.Apart && m.leaves(f.Cluster)
	case KillAgent, KillHost:
		return !m.plan.Apart && m.hostLost(f.Host, func(c *Cluster) string { return c.Host })
	case StopAgent, Unplug:
		return !m.plan.Apart && m.plan.SilenceMS <= 5000 && m.hostLost(f.Host, func(c *Cluster) string { return c.Network })
	}
	return false
}

// iop is what is done about a death of an I/O process.
func (p *Plan) iop(link int) string { return p.Clusters[p.Links[link].From[0]].IOP }

func (m *Model) works(c int) bool { return !m.Clusters[c].Gone && !m.Clusters[c].unclear }

// touch: something happens to a rank, to which nothing else has happened in this group; where there are copies, to none of its cluster.
func (m *Model) touch(c, rank int) bool {
	if !m.works(c) || m.cutOff(c) || slices.Contains(m.Clusters[c].Dead, rank) || rank >= m.plan.Clusters[c].Ranks {
		return false
	}
	if m.plan.Clusters[c].Copies {
		return m.alone(c)
	}
	mark := 1000 + 100*c + rank
	if slices.Contains(m.touched, mark) || slices.Contains(m.touched, c) {
		return false
	}
	m.touched = append(m.touched, mark)
	return true
}

// cutOff: nothing comes to a cluster any more by any of its links, and it may have ended.
func (m *Model) cutOff(c int) bool {
	any := false
	for i, l := range m.plan.Links {
		if slices.Contains(l.To, c) {
			if any = true; !m.Links[i].Gone && !m.over(i) {
				return false
			}
		}
	}
	return any
}

// over: none of those who send by a link is left, or gets anything itself that it could hand on.
func (m *Model) over(link int) bool {
	return !slices.ContainsFunc(m.plan.Links[link].From, func(c int) bool { return !m.Clusters[c].Gone && !m.cutOff(c) })
}

// alone: nothing else happens to that cluster in this group.
func (m *Model) alone(c int) bool {
	if m.cutOff(c) {
		return false
	}
	for _, mark := range m.touched {
		if mark == c || mark >= 1000 && (mark-1000)/100 == c {
			return false
		}
	}
	m.touched = append(m.touched, c)
	return true
}

// link: something happens to a link's I/O processes; alone: nothing else in this group, for it is not known to which of them.
func (m *Model) link(k int, alone bool) bool {
	if m.links == nil {
		m.links = map[int]bool{}
	}
	was, any := m.links[k]
	m.links[k] = alone
	return !any || !was && !alone
}

func (m *Model) ranksDie(c int, ranks []int, word string) bool {
	k, p := &m.Clusters[c], &m.plan.Clusters[c]
	switch word {
	case "replace", "restart":
		if k.left < len(ranks) {
			return m.stops(c)
		}
		k.left -= len(ranks)
		k.mixed = k.mixed || k.other != k.home
		k.Renewed = k.Renewed || p.Kind != Transparent
		return true
	case "degrade":
		k.Dead = append(k.Dead, ranks...)
		if len(k.Dead) == p.Ranks {
			return m.stops(c)
		}
		return p.Kind == Told // the others have to know what to do then
	}
	return m.stops(c)
}

// stops: a cluster cannot go on.
func (m *Model) stops(c int) bool {
	k, p := &m.Clusters[c], &m.plan.Clusters[c]
	switch p.Whole {
	case "restart":
		if (m.lost[p.Home] || m.lost[p.Other]) && !m.room() {
			return false
		}
		k.again++
		k.Renewed, k.Dead = true, nil
		k.left, k.unclear = p.Standbys, p.Process == "restart"
		return k.again < 3
	case "degrade":
		k.Gone = true
		return slices.ContainsFunc(m.Clusters, func(o ClusterState) bool { return !o.Gone })
	}
	m.Ended = true
	return true
}

// brings are the links whose I/O processes a cluster brings that is started by itself; false: not all of these are there, or they are for another one as well.
func (m *Model) brings(c int) (out []int, all bool) {
	for i, l := range m.plan.Links {
		if l.To[0] != c {
			continue
		}
		if m.Links[i].Gone || m.Links[i].left < l.IOPs || len(l.To) > 1 || m.links[i] {
			return nil, false
		}
		if _, any := m.links[i]; any {
			return nil, false
		}
		out = append(out, i)
	}
	return out, true
}

// runDies: the spxrun of a cluster is lost, and with it all of it, which is started again from there where it is awaited. With the one that leads the system is lost.
func (m *Model) runDies(c int) bool {
	k, p := &m.Clusters[c], &m.plan.Clusters[c]
	list, ok := m.brings(c)
	if c == 0 || !ok || !m.works(c) || m.hosts > 0 || !m.alone(c) {
		return false
	}
	m.hosts++ // as with a host
	for _, l := range list {
		m.link(l, true)
		m.Links[l].Lossy = m.Links[l].Lossy || m.plan.Messages == "fast"
		switch m.plan.iop(l) {
		case "degrade": // whether there are others when it comes again is not said
			return false
		case "stop":
			m.Ended = true
			return true
		}
	}
	switch p.Whole {
	case "restart":
		k.Renewed, k.Dead, k.left = true, nil, p.Standbys
		return true
	case "degrade":
		k.Gone = true
		for _, l := range list {
			m.Links[l].Gone = true
		}
		return true
	}
	m.Ended = true
	return true
}

// leaves: a cluster is told to leave, and comes again. Nothing is lost, where it has itself brought all that leads to it: else its ranks do not learn that nothing more comes.
func (m *Model) leaves(c int) bool {
	k, p := &m.Clusters[c], &m.plan.Clusters[c]
	own, ok := m.brings(c)
	ok = ok && len(own) > 0 && !slices.ContainsFunc(m.plan.Links, func(l Link) bool { return slices.Contains(l.To[1:], c) })
	if c == 0 || !ok || p.Role != Take || m.plan.Messages != "kept" || !m.works(c) || len(k.Dead) > 0 || m.hosts > 0 || !m.clearTo(c) || !m.alone(c) {
		return false
	}
	m.hosts++
	k.Came, k.left = true, p.Standbys
	return true
}

// clearTo: none of those who send to a cluster is gone, or has dead ranks.
func (m *Model) clearTo(c int) bool {
	before, links := m.plan.Before(c)
	return !slices.ContainsFunc(before, func(b int) bool { return m.Clusters[b].Gone || len(m.Clusters[b].Dead) > 0 }) && !slices.ContainsFunc(links, func(l int) bool { return m.Links[l].Gone })
}

func (m *Model) standbyDies(c int) bool {
	k, p := &m.Clusters[c], &m.plan.Clusters[c]
	if !m.works(c) || p.Standbys == 0 || p.Process != "replace" || k.left == 0 || p.Copies && k.left < 2 || !m.alone(c) {
		return false
	}
	k.left--
	m.Deaths++
	return true
}

func (m *Model) iopDies(link int, word string) bool {
	l := &m.Links[link]
	if l.Gone || m.idle(link) {
		return false
	}
	l.Lossy = l.Lossy || m.plan.Messages == "fast"
	switch word {
	case "restart":
		return m.iopAgain(link)
	case "degrade":
		l.left--
		l.Gone = l.left == 0
		return true
	}
	m.Ended = true
	return len(m.touched) == 0 && m.hosts == 0
}

// idle: the I/O processes of a link have no cluster left on one side, and may have ended.
func (m *Model) idle(link int) bool {
	gone := func(c int) bool { return !m.works(c) }
	return m.over(link) || slices.ContainsFunc(m.plan.Links[link].From, gone) || slices.ContainsFunc(m.plan.Links[link].To, gone)
}

// iopAgain: an I/O process is started again; false: that may have been done as often as the policy of its cluster allows.
func (m *Model) iopAgain(link int) bool {
	l, most := &m.Links[link], m.plan.Clusters[m.plan.Links[link].From[0]].Restarts
	l.again++
	return most == 0 || l.again <= most
}

func (m *Model) iopHangs(link int) bool {
	l, word := &m.Links[link], m.plan.Clusters[m.plan.Links[link].From[0]].IOPHang
	if l.Gone || m.idle(link) {
		return false
	}
	m.Slow = true
	if word == "report" {
		return true
	}
	m.Deaths++
	return m.iopDies(link, word)
}

func (m *Model) hostLost(h int, word func(*Cluster) string) bool {
	alive := len(m.Alive())
	m.hosts++
	m.losses++
	first := h == 1 || !m.decider // it may be the one that decides
	if m.lost[h] || m.hosts > m.losses || m.losses == 1 && len(m.touched) > 0 || alive < 2 || first && (alive < 3 || m.plan.TwoNetworks) || h == 1 && m.plan.TwoNetworks {
		return false
	}
	if m.losses > 1 && (m.plan.TwoNetworks || m.losses > 2 || 2*(m.began-2) <= m.began) { // those that are left have to be most of those that there were
		return false
	}
	m.Said = append(m.Said, m.hasProcesses(h))
	m.lost[h], m.Lost = true, append(m.Lost, h)
	if h == 1 {
		m.decider = false
	}
	for i := range m.plan.Links {
		if !m.iopsLost(i, h) {
			return false
		}
	}
	for i := range m.plan.Clusters {
		if !m.clusterLost(i, h, word(&m.plan.Clusters[i])) {
			return false
		}
		if m.Ended {
			return true
		}
	}
	return true
}

// hasProcesses: some process of the system is on a host for sure; the loss of one without is not said.
func (m *Model) hasProcesses(h int) bool {
	for i, l := range m.plan.Links {
		if k := &m.Links[i]; !k.Gone && !k.moved && !m.idle(i) && k.left == l.IOPs && slices.Contains(l.Hosts[:min(len(l.Hosts), l.IOPs)], h) {
			return true
		}
	}
	return slices.ContainsFunc(m.Clusters, func(k ClusterState) bool { return !k.Gone && !k.unclear && (k.home == h || k.other == h && k.left > 0) })
}

// iopsLost: a host of a link is lost.
func (m *Model) iopsLost(link, h int) bool {
	l, p := &m.Links[link], &m.plan.Links[link]
	if l.Gone || !l.moved && !slices.Contains(p.Hosts, h) {
		return true
	}
	if l.moved || m.idle(link) || m.plan.TwoNetworks {
		return false
	}
	l.Lossy, l.moved = l.Lossy || m.plan.Messages == "fast", true
	switch m.plan.iop(link) {
	case "restart":
		return m.room() && m.iopAgain(link)
	case "degrade":
		each := (p.IOPs + len(p.Hosts) - 1) / len(p.Hosts)
		if len(p.Hosts) == 2 && l.left == p.IOPs {
			there := each
			if p.Hosts[1] == h {
				there = p.IOPs - each
			}
			l.left -= there
			l.Gone = l.left == 0
			return true
		}
		l.left, l.Gone = 0, len(p.Hosts) == 1
		return l.Gone
	}
	m.Ended = true
	return true
}

func (m *Model) room() bool { return m.plan.Room > 0 && !m.lost[m.plan.Room] }

// clusterLost: a host is lost, perhaps with processes of a cluster.
func (m *Model) clusterLost(c, h int, word string) bool {
	k, p := &m.Clusters[c], &m.plan.Clusters[c]
	switch {
	case k.Gone:
		return true
	case k.unclear || k.mixed && (k.home == h || k.other == h):
		return false
	case (k.home == h || k.other == h) && slices.Contains(m.touched, c): // it is about to get over the loss of another one
		return false
	case k.home != h && k.other == h && k.other != k.home: // it has nobody left to take a rank over
		k.left, k.other = 0, k.home
		m.touched = append(m.touched, c)
		return word == "replace" && (!p.Copies || len(m.Lost) == 1)
	case k.home != h:
		return true
	}
	var ranks []int
	for r := range p.Ranks {
		if !slices.Contains(k.Dead, r) {
			ranks = append(ranks, r)
		}
	}
	if k.other != k.home {
		if k.left < len(ranks) && word == "replace" {
			return false
		}
		k.home = k.other
		m.touched = append(m.touched, c)
		return m.ranksDie(c, ranks, word)
	}
	k.left = 0
	if p.Kind == Told && word == "degrade" {
		return false
	}
	if p.Whole == "restart" {
		if !m.room() || p.Copies {
			return false
		}
		m.touched = append(m.touched, c)
		ok := m.stops(c)
		k.unclear = true // where it is now
		return ok
	}
	m.touched = append(m.touched, c)
	return m.stops(c)
}

// Again is how often a cluster was started again.
func (m *Model) Again(c int) int { return m.Clusters[c].again }

// Free: nothing keeps a cluster from sending.
func (m *Model) Free(c int) bool { return m.clear(c) || m.spread(c) }
