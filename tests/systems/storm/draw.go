package storm

import "math/rand/v2"

// How systems are drawn. What the documents except (docs/systems.md) is not.

type draw struct {
	*rand.Rand
	p *Plan
}

// Draw makes the plan of a seed.
func Draw(seed uint64) *Plan { return drawn(seed, true) }

// DrawBefore makes the plan that a seed had before the routes spread and demand were drawn: what some seeds are known for.
func DrawBefore(seed uint64) *Plan { return drawn(seed, false) }

func drawn(seed uint64, deals bool) *Plan {
	d := draw{rand.New(rand.NewPCG(seed, 0x5350)), &Plan{Seed: seed}}
	routes := draw{rand.New(rand.NewPCG(seed, 0x5352)), d.p} // what was added later is drawn apart: all else of a seed stays as it was
	d.system()
	for i := range d.p.Clusters {
		d.policies(i)
	}
	d.links()
	if deals {
		routes.routes()
	}
	if !d.p.TwoNetworks && d.often(1, 4) {
		d.apart()
	}
	m := NewModel(d.p)
	d.early(m)
	d.groups(m)
	d.last(m)
	return d.p
}

func (d draw) often(of, n int) bool { return d.IntN(n) < of }

func one[T any](d draw, of ...T) T { return of[d.IntN(len(of))] }

// system draws hosts, the shape, and what all have in common.
func (d draw) system() {
	p := d.p
	p.Hosts = one(d, 1, 2, 3, 3, 4, 4, 4, 5, 6, 6)
	p.TwoNetworks = p.Hosts == 4 && d.often(1, 2)
	if p.Hosts >= 4 && !p.TwoNetworks && d.often(3, 4) {
		p.Room = p.Hosts
	}
	p.Messages = one(d, "kept", "kept", "kept", "fast")
	p.SilenceMS = one(d, 3000, 3000, 20000)
	p.PaceUS, p.Bytes = one(d, 1000, 1000, 3000), one(d, 32, 1000, 12000, 12000, 300000)
	if p.Bytes > 100000 {
		p.PaceUS = 10000
	}
	var roles []string
	switch d.IntN(6) {
	case 0, 1:
		roles = []string{Send, Take}
		p.Links = []Link{{From: []int{0}, To: []int{1}}}
	case 2, 3:
		roles = []string{Send, Pass, Take}
		p.Links = []Link{{From: []int{0}, To: []int{1}}, {From: []int{1}, To: []int{2}}}
	case 4:
		roles = []string{Send, Take, Take}
		p.Links = []Link{{From: []int{0}, To: []int{1, 2}, One: d.often(1, 2)}}
	default:
		roles = []string{Send, Send, Take}
		p.Links = []Link{{From: []int{0, 1}, To: []int{2}}}
	}
	for _, role := range roles {
		p.Clusters = append(p.Clusters, Cluster{Role: role, Ranks: 1 + d.IntN(3)})
	}
}

// policies draws what a cluster is, where it is, and what is done about it.
func (d draw) policies(i int) {
	p, c := d.p, &d.p.Clusters[i]
	c.Kind = one(d, Transparent, Transparent, Transparent, Notified, Notified, Told, Plain)
	if p.Messages == "fast" && c.Kind == Transparent {
		c.Kind = Notified
	}
	c.Home = 1 + d.IntN(p.Hosts)
	if p.TwoNetworks {
		c.Home = one(d, 1, 2, 4)
		if c.Role == Take || c.Role == Send && i > 0 {
			c.Home = one(d, 1, 3, 3)
		}
	}
	c.Other = c.Home
	c.Whole = one(d, "stop", "degrade", "restart", "restart")
	c.IOP, c.IOPHang = one(d, "restart", "restart", "restart", "degrade", "stop"), one(d, "report", "restart", "degrade")
	c.Hang, c.Process, c.Host, c.Network = "report", "stop", "stop", "stop"
	apart := func() {
		if c.Home == p.Room || p.Hosts < 3 {
			return
		}
		for c.Other == c.Home || p.TwoNetworks && (c.Other == 3) != (c.Home == 3) {
			if c.Other = 1 + d.IntN(p.Hosts); p.TwoNetworks && c.Home == 3 {
				c.Other = c.Home
				return
			}
		}
		c.Host, c.Network = one(d, "replace", "replace", "stop"), one(d, "replace", "stop")
	}
	switch c.Kind {
	case Transparent, Notified:
		if d.often(1, 3) {
			c.Process, c.Restarts, c.Hang = "restart", 3+d.IntN(4), one(d, "report", "restart")
			return
		}
		c.Process, c.Standbys, c.Hang = "replace", 1+d.IntN(4), one(d, "report", "replace")
		if d.often(1, 2) {
			if apart(); c.Other != c.Home {
				c.Standbys, c.Copies = c.Ranks+1+d.IntN(2), c.Kind == Transparent
			}
		}
		if c.Other == c.Home {
			c.Host, c.Network = one(d, "replace", "stop", "degrade"), one(d, "replace", "stop", "degrade")
		}
	case Told:
		c.Process, c.Host, c.Network, c.Hang = "degrade", one(d, "degrade", "stop"), one(d, "degrade", "stop"), one(d, "report", "degrade", "stop")
	default:
		c.Hang, c.Host, c.Network = one(d, "report", "stop"), one(d, "stop", "degrade"), one(d, "stop", "degrade")
	}
}

// apart makes it a system whose clusters are started one by one, each on a host of its own.
func (d draw) apart() {
	p := d.p
	p.Apart, p.Wait, p.Hosts, p.Room = true, one(d, "none", "system"), len(p.Clusters), 0
	p.SilenceMS = max(p.SilenceMS, 20000)
	for i := range p.Clusters {
		c := &p.Clusters[i]
		c.Home, c.Other, c.Copies = i+1, i+1, false
		if c.Kind == Transparent {
			c.Kind = Notified
		}
		if c.Kind == Notified {
			c.Process, c.Host, c.Network, c.Restarts, c.Standbys, c.Hang = "replace", "stop", "stop", 0, 1+d.IntN(4), one(d, "report", "replace")
		}
	}
	for i := range p.Links {
		p.Links[i].Hosts = []int{p.Links[i].To[0] + 1}
	}
}

func (d draw) links() {
	for i := range d.p.Links {
		l := &d.p.Links[i]
		l.IOPs = 1 + d.IntN(3)
		l.Choice, l.Route = one(d, "round-robin", "tag", "tag", "key", "least-loaded"), one(d, Same, Same, Tag)
		if d.p.TwoNetworks {
			l.Hosts = []int{1}
			continue
		}
		l.Hosts = []int{1 + d.IntN(d.p.Hosts)}
		if other := 1 + d.IntN(d.p.Hosts); l.IOPs > 1 && other != l.Hosts[0] && other != d.p.Room && l.Hosts[0] != d.p.Room {
			l.Hosts = append(l.Hosts, other)
		}
	}
}

// routes has some links deal their messages out to all ranks. By demand not to all of several clusters: a relay that takes over from one that has died may choose another rank then.
func (d draw) routes() {
	for i := range d.p.Links {
		if l := &d.p.Links[i]; d.often(1, 2) {
			if l.Route = one(d, Spread, Demand); len(l.To) > 1 && !l.One {
				l.Route = Spread
			}
		}
	}
}

// groups draws faults: each is one whose outcome the policies say.
func (d draw) groups(m *Model) {
	for n := 2 + d.IntN(5); n > 0 && !m.Ended && m.flows(); n-- {
		m.Begin()
		g := Group{Messages: 5 + d.IntN(60)}
		for k, most := 0, one(d, 1, 1, 2, 3); k < 20 && len(g.Faults) < most; k++ {
			f := d.fault()
			before := m.clone()
			if m.Apply(f) && (!m.Ended && m.flows() || d.often(1, 4)) {
				g.Faults = append(g.Faults, f)
			} else {
				*m = *before
			}
		}
		for k := 0; k < 20 && m.losses == 1; k++ { // and another host
			f := Fault{What: one(d, KillAgent, KillAgent, KillHost, StopAgent, Unplug), Host: 1 + d.IntN(d.p.Hosts), AfterMS: one(d, 0, 30, 100, 400, 1000, 1500)}
			before := m.clone()
			if m.Apply(f) && !m.Ended && m.flows() {
				g.Faults = append(g.Faults, f)
			} else {
				*m = *before
			}
		}
		if len(g.Faults) > 0 {
			d.p.Groups = append(d.p.Groups, g)
		}
	}
}

// early draws what happens while all starts.
func (d draw) early(m *Model) {
	if !d.often(1, 4) {
		return
	}
	m.Begin()
	for range 4 {
		f := Fault{What: one(d, KillRank, KillIOP)}
		if f.What == KillRank {
			f.Cluster = d.IntN(len(d.p.Clusters))
			f.Rank = d.IntN(d.p.Clusters[f.Cluster].Ranks)
		} else {
			f.Link = d.IntN(len(d.p.Links))
			f.Index = d.IntN(d.p.Links[f.Link].IOPs)
		}
		if f.AfterMS = d.IntN(60); m.ApplyEarly(f) {
			d.p.Early = append(d.p.Early, f)
			return
		}
	}
}

// last draws what happens when all ends.
func (d draw) last(m *Model) {
	if m.Ended || !m.flows() || !d.often(1, 2) {
		return
	}
	m.Begin()
	for k, most := 0, one(d, 1, 1, 2, 3); k < 20 && len(d.p.Last) < most; k++ {
		f := d.fault()
		if f.AfterMS = one(d, 0, 0, 1, 2, 5, 20); m.ApplyLast(f) {
			d.p.Last = append(d.p.Last, f)
		}
	}
}

// flows: some messages come to some cluster yet, by which the rest can be timed.
func (m *Model) flows() bool { return len(m.Arriving()) > 0 }

func (d draw) fault() (f Fault) {
	p := d.p
	f.What = one(d, KillRank, KillRank, KillRank, KillRank, KillRank, KillStandby, KillIOP, KillIOP, KillIOP, KillMaster, KillAgent, KillAgent, KillHost, KillHost, StopAgent, Unplug, Unplug, Blink, BlinkAll, Pause, PauseIOP, Stand, HangRank, HangIOP)
	if p.Apart && d.often(1, 3) {
		f.What = one(d, KillRun, Detach)
	}
	moment := 100 + d.IntN(momentMS-100)
	switch f.What {
	case KillRank, Pause, HangRank:
		f.Cluster = d.IntN(len(p.Clusters))
		f.Rank = d.IntN(p.Clusters[f.Cluster].Ranks)
	case KillStandby, Stand:
		f.Cluster = d.IntN(len(p.Clusters))
	case KillRun, Detach:
		f.Cluster = d.IntN(len(p.Clusters))
		if f.What == KillRun {
			f.Index = d.IntN(2)
		}
	case KillIOP, HangIOP, PauseIOP:
		f.Link = d.IntN(len(p.Links))
		f.Index = d.IntN(p.Links[f.Link].IOPs)
	case KillMaster, KillAgent, KillHost, StopAgent, Unplug, Blink:
		f.Host = 1 + d.IntN(p.Hosts)
	}
	switch f.What {
	case Pause, PauseIOP, Stand, Blink, BlinkAll:
		f.ForMS = moment
	}
	if d.often(1, 2) {
		f.AfterMS = d.IntN(40)
		if f.IsHost() { // another one may be lost already
			f.AfterMS = d.IntN(1500)
		}
	}
	return f
}
