package system

import (
	"fmt"
	"slices"
	"strings"

	"libspx/cluster/layout"
	"libspx/cluster/start"
	"libspx/launch/control"
	"libspx/launch/job"
)

// The merge of two system files: that of a running system, and that of a cluster to be attached to
// it (docs/systems.md, "A cluster that no file knew"). What both describe must be the same; what
// only the caller's describes is added. It is pure: the agent that leads the system calls it, and
// performs the result (launch/agent).

// Running is a system as known to its leading agent.
type Running struct {
	Name     string
	Host     string // of that agent
	Whole    control.Declared
	Declared []control.Declared // by part
	Parts    []job.Part
	Table    *layout.Layout
}

// A Growth is what a system gets that it does not have. Processes and worlds have no numbers yet
// (Enter).
type Growth struct {
	Parts    []job.Part
	Programs []control.Program // one for each of these
	Start    []start.Member
	Declared []control.Declared

	clusters []layout.Cluster
	links    []layout.Link
	iops     []layout.IOP
}

// Procs is how many processes it has.
func (g *Growth) Procs() (n int) {
	for i := range g.Programs {
		n += g.Programs[i].Procs
	}
	return n
}

// Meets are the parts of the system that runs, by name, whose processes those of a part have to
// reach that is added: of an I/O process the clusters that it joins.
func (g *Growth) Meets(r *Running, name string) (out []string) {
	iop := 0
	for i := range g.Parts {
		if !g.Parts[i].Serves {
			continue
		}
		if x := &g.iops[iop]; g.Parts[i].Name == name {
			for _, k := range slices.Concat(x.In, x.Out) {
				if k < len(r.Table.Clusters) {
					out = append(out, "cluster "+r.Table.Clusters[k].Name)
				}
			}
		}
		iop++
	}
	return out
}

// merger is a Merge under way.
type merger struct {
	r       *Running
	e       *control.Arrival
	table   *layout.Layout // of the caller's file
	known   map[string]int // parts by name, from 1: those that run, and those that are added
	cluster map[string]int // clusters by name: their numbers in the table
	g       Growth
}

// Merge compares what a caller's file says with a running system, and returns the parts to be
// added. The error describes the mismatch, both positions, and a remedy.
func Merge(r Running, e *control.Arrival) (*Growth, error) {
	m := &merger{r: &r, e: e, known: map[string]int{}, cluster: map[string]int{}}
	var err error
	if m.table, err = layout.Decode(e.Offer.Table); err != nil {
		return nil, fmt.Errorf("what it offers cannot be read: %w", err)
	}
	if err := m.isWhole(); err != nil {
		return nil, err
	}
	for i, d := range r.Declared {
		m.known[d.Name] = i + 1
	}
	for i, c := range r.Table.Clusters {
		m.cluster[c.Name] = i
	}
	for _, step := range []func() error{m.agree, m.clusters, m.links, m.starts, m.mayGrow} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return &m.g, nil
}

// isWhole returns an error unless the offer has the form of a plan: data from a connection need
// not.
func (m *merger) isWhole() error {
	o, l := &m.e.Offer, m.table
	n := len(m.e.Declared)
	described := slices.IndexFunc(l.Clusters, func(c layout.Cluster) bool { return c.Gone })
	if described < 0 {
		described = len(l.Clusters)
	}
	bad := len(o.Parts) != n || len(o.Programs) != n || len(o.Start) != n || len(o.Awaits) != n ||
		described+len(l.IOPs) != n || l.Growths != 0
	for i := 0; i < n && !bad; i++ {
		p, prog := &o.Parts[i], &o.Programs[i]
		bad = p.Serves != (i >= described) || p.Name != m.e.Declared[i].Name || prog.Part != i+1 ||
			len(prog.Argv) == 0 || p.With < 0 || p.With > described
		if !bad && p.Serves {
			bad = prog.Procs != 1 || p.With == 0 ||
				m.e.Declared[i].Cluster != l.Clusters[p.With-1].Name
		} else if !bad {
			c := &l.Clusters[i]
			bad = p.Name != "cluster "+c.Name || c.Gone || prog.Procs != len(c.Procs)+
				len(c.Standbys) || prog.Standbys != len(c.Standbys) || prog.Cold != c.Cold ||
				c.Cold > len(c.Standbys)
		}
	}
	for i := described; i < len(l.Clusters) && !bad; i++ {
		bad = !l.Clusters[i].Gone
	}
	if bad {
		return fmt.Errorf(
			"what it offers is no plan of its %d clusters and I/O processes: is its libspx of "+
				"another version?", n)
	}
	return nil
}

// place is where something stands, on which host.
func place(d *control.Declared, host string) string {
	if d.Host != "" {
		host = d.Host
	}
	return fmt.Sprintf("%s, host %s", d.Place, host)
}

// agree compares what both describe.
func (m *merger) agree() error {
	if m.e.Whole.Text != m.r.Whole.Text {
		return m.differs(&m.e.Whole, &m.r.Whole,
			"make them the same in [system], and in [[link]] (security)")
	}
	theirs := map[string]*control.Declared{}
	for i := range m.e.Declared {
		d := &m.e.Declared[i]
		theirs[d.Name] = d
		if k := m.known[d.Name]; k > 0 && m.r.Declared[k-1].Text != d.Text {
			advice := "make the two the same, or give the one that comes another name"
			if d.Cluster != m.e.Cluster {
				advice += ", or leave out of its file what the running system has (a cluster " +
					"that links name goes into [system] others then)"
			}
			return m.differs(d, &m.r.Declared[k-1], advice)
		}
	}
	for i := range m.r.Declared {
		if d := &m.r.Declared[i]; d.Cluster == m.e.Cluster && theirs[d.Name] == nil {
			return fmt.Errorf(
				"the system that runs has %s (%s), which its file does not have; take it over "+
					"from there", d.Name, place(d, m.r.Host))
		}
	}
	return nil
}

// mayGrow refuses to add anything where ranks are taken over transparently: the successor of a
// process makes the same calls, whose meaning must not have changed.
func (m *merger) mayGrow() error {
	if len(m.g.Parts) == 0 {
		return nil
	}
	for _, c := range slices.Concat(m.r.Table.Clusters, m.table.Clusters) {
		if c.Replays {
			return fmt.Errorf(
				"%s is not in the file of the system that runs, and a system in which cluster "+
					"%s is taken over transparently cannot get more than its file has: describe "+
					"all of it in one file, or say takeover = \"notified\"", m.g.Parts[0].Name,
				c.Name)
		}
	}
	return nil
}

func (m *merger) differs(theirs, ours *control.Declared, advice string) error {
	return fmt.Errorf("its file declares %s as %s (%s); the system that runs has %s (%s): %s",
		theirs.Name, theirs.Text, place(theirs, m.e.Host), ours.Text, place(ours, m.r.Host), advice)
}

// add takes a part of the caller's over; its number is known by then.
func (m *merger) add(i int, p job.Part) {
	m.g.Parts = append(m.g.Parts, p)
	prog := m.e.Offer.Programs[i]
	prog.Part, prog.Added, prog.Env, prog.World = m.known[p.Name], true, nil, 0
	m.g.Programs = append(m.g.Programs, prog)
	d := m.e.Declared[i]
	d.Host = m.e.Host
	if p.With > 0 {
		d.Cluster = m.nameOf(p.With)
	}
	m.g.Declared = append(m.g.Declared, d)
}

// nameOf is what the cluster is called that a part is.
func (m *merger) nameOf(part int) string {
	for name, k := range m.known {
		if k == part {
			return strings.TrimPrefix(name, "cluster ")
		}
	}
	return ""
}

func (m *merger) number(name string) {
	m.known[name] = len(m.r.Parts) + len(m.g.Parts) + 1
}

// clusters adds those that the running system does not have.
func (m *merger) clusters() error {
	for i := range m.e.Declared {
		p := m.e.Offer.Parts[i]
		if p.Serves || m.known[p.Name] > 0 {
			continue
		}
		c := m.table.Clusters[i]
		c.Since, c.Heals, c.Lead = m.r.Table.Growths+1, true, 0
		at := len(m.r.Table.Clusters) + len(m.g.clusters)
		m.cluster[c.Name] = at
		p.Away, p.Added = true, at+1
		m.number(p.Name)
		m.add(i, p)
		m.g.clusters = append(m.g.clusters, c)
	}
	if m.known["cluster "+m.e.Cluster] == 0 {
		return fmt.Errorf("its file does not describe cluster %s, which it wants to attach",
			m.e.Cluster)
	}
	return nil
}

// links adds those, with their I/O processes: of a link all are known, or none.
func (m *merger) links() error {
	// by number in the caller's table, and in its file
	links, numbers := map[int]int{}, map[int]int{}
	last := 0
	for i := range m.r.Parts {
		last = max(last, m.r.Parts[i].Link)
	}
	described := len(m.e.Declared) - len(m.table.IOPs)
	for i := range m.table.IOPs {
		p := m.e.Offer.Parts[described+i]
		if m.known[p.Name] > 0 {
			continue
		}
		iop := m.table.IOPs[i]
		for _, k := range iop.Links {
			if _, have := links[k]; have {
				continue
			}
			link := m.table.Links[k]
			if j := slices.IndexFunc(m.r.Table.Links,
				func(o layout.Link) bool { return o.Name == link.Name }); j >= 0 {
				return fmt.Errorf(
					"the system that runs has a link %s already, and its file (%s) another one "+
						"of that name; name it otherwise (name, in [[link]])", link.Name,
					place(&m.e.Declared[described+i], m.e.Host))
			}
			var err error
			if link.From, err = m.ends(link, link.From); err == nil {
				link.To, err = m.ends(link, link.To)
			}
			if err != nil {
				return err
			}
			links[k] = len(m.r.Table.Links) + len(m.g.links)
			m.g.links = append(m.g.links, link)
		}
		if numbers[p.Link] == 0 {
			last++
			numbers[p.Link] = last
		}
		m.iop(described+i, iop, links, numbers[p.Link])
	}
	return nil
}

// ends are clusters that a link joins, by their numbers in the running system's table.
func (m *merger) ends(link layout.Link, list []int) (out []int, err error) {
	for _, c := range list {
		name := m.table.Clusters[c].Name
		k, have := m.cluster[name]
		if !have {
			return nil, fmt.Errorf(
				"link %s of its file joins cluster %s, which neither that file describes nor "+
					"the system that runs has; there are %s", link.Name, name,
				strings.Join(m.names(), ", "))
		}
		out = append(out, k)
	}
	return out, nil
}

// names are the clusters that there are, in the order of the table.
func (m *merger) names() (out []string) {
	for _, c := range slices.Concat(m.r.Table.Clusters, m.g.clusters) {
		out = append(out, c.Name)
	}
	return out
}

// iop adds an I/O process. It is started with the first cluster to which its link leads, if that is
// new as well, and else with the one that brings it.
func (m *merger) iop(i int, iop layout.IOP, links map[int]int, number int) {
	p := m.e.Offer.Parts[i]
	with := m.e.Declared[i].Cluster
	if m.r.Table.Cluster(with) >= 0 {
		with = m.e.Cluster
	}
	translate := func(list []int) (out []int) {
		for _, c := range list {
			out = append(out, m.cluster[m.table.Clusters[c].Name])
		}
		return out
	}
	iop.In, iop.Out = translate(iop.In), translate(iop.Out)
	own := iop.Links
	iop.Links = nil
	for _, k := range own {
		iop.Links = append(iop.Links, links[k])
	}
	at := len(m.r.Table.IOPs) + len(m.g.iops)
	iop.Since, iop.Heals = m.r.Table.Growths+1, true
	p.Away, p.Added, p.With, p.Link = true, at+1, m.known["cluster "+with], number
	m.number(p.Name)
	m.add(i, p)
	m.g.iops = append(m.g.iops, iop)
}

// starts sets the parts for which the added parts wait.
func (m *merger) starts() error {
	for _, p := range m.g.Parts {
		i := slices.IndexFunc(m.e.Offer.Parts, func(o job.Part) bool { return o.Name == p.Name })
		s := m.e.Offer.Start[i]
		s.Awaits = nil
		for _, name := range m.e.Offer.Awaits[i] {
			k := m.known[name]
			if k == 0 {
				return fmt.Errorf(
					"%s of its file waits for %s, which the system that runs does not have; "+
						"there are %s", p.Name, name, strings.Join(m.names(), ", "))
			}
			s.Awaits = append(s.Awaits, k-1)
		}
		m.g.Start = append(m.g.Start, s)
	}
	return nil
}

// A Seat is a place of the running job for a process that is added.
type Seat struct {
	Part        int // from 1
	Rank        int // in its part
	Proc        int
	World, Lead uint32 // of its part; the number in the job of that one's first process
}

// Enter puts what is added into a table, with these numbers: of processes, as many as there are, of
// serials from one on, and of worlds behind another one. The seats list the assignments.
func (g *Growth) Enter(l *layout.Layout, first int, procs []int, serial,
	world uint32) (seats []Seat) {
	l.Growths++
	l.Links = append(l.Links, g.links...)
	take := func(part, n int) (out layout.Procs) {
		world++
		for rank := range n {
			seats = append(seats, Seat{part, rank, procs[0], world, serial})
			out, procs = append(out, procs[0]), procs[1:]
		}
		serial += uint32(n)
		return out
	}
	clusters, iops := 0, 0
	for i := range g.Parts {
		if g.Parts[i].Serves {
			x := g.iops[iops]
			iops++
			x.Proc = take(first+i+1, 1)[0]
			x.World = world
			l.IOPs = append(l.IOPs, x)
			continue
		}
		c := g.clusters[clusters]
		clusters++
		lead := serial
		all := take(first+i+1, len(c.Procs)+len(c.Standbys))
		c.Procs, c.Standbys = all[:len(c.Procs)], all[len(c.Procs):]
		c.World, c.Lead = world, lead+1
		l.Clusters = append(l.Clusters, c)
	}
	return seats
}
