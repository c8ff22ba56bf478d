package live

import (
	"fmt"
	"strings"
)

// A Cluster is a cluster of a system, with its processes.
type Cluster struct {
	Group
	Program  string `json:"program"`
	State    string `json:"state"` // of service.Part
	Alive    int    `json:"alive"`
	Ranks    int    `json:"ranks"`
	Restarts int    `json:"restarts"`
}

// A Link joins clusters by I/O processes.
type Link struct {
	Group
	From      []string `json:"from"`
	To        []string `json:"to"`
	Alive     int      `json:"alive"`         // I/O processes
	HeldCount uint64   `json:"messages_held"` // by them, as they report
	Gone      bool     `json:"gone"`
}

// Clusters are those of a system, in its order; none of another job.
func Clusters(l *Look, rows []Row) (list []Cluster) {
	if l.Layout == nil {
		return nil
	}
	groups := byName(GroupBy(rows, func(r *Row) string { return r.Cluster }))
	for i, c := range l.Layout.Clusters {
		out := Cluster{Group: groups(c.Name), Ranks: len(c.Procs)}
		if parts := l.About.System.Parts; i < len(parts) {
			out.Program, out.State, out.Alive, out.Restarts = parts[i].Program, parts[i].State,
				parts[i].Alive, parts[i].Restarts
		}
		list = append(list, out)
	}
	return list
}

// Links are those of a system, in its order.
func Links(l *Look, rows []Row) (list []Link) {
	if l.Layout == nil {
		return nil
	}
	groups := byName(GroupBy(rows, func(r *Row) string { return r.Link }))
	for _, k := range l.Layout.Links {
		out := Link{Group: groups(k.Name), Gone: k.Gone}
		for _, c := range k.From {
			out.From = append(out.From, l.Layout.Clusters[c].Name)
		}
		for _, c := range k.To {
			out.To = append(out.To, l.Layout.Clusters[c].Name)
		}
		for i := range rows {
			if rows[i].Link == k.Name {
				out.HeldCount += rows[i].HeldCount
			}
		}
		for i, p := range l.Layout.IOPs {
			if n := len(l.Layout.Clusters) + i; len(p.Links) > 0 &&
				l.Layout.Links[p.Links[0]].Name == k.Name && n < len(l.About.System.Parts) {
				out.Alive += l.About.System.Parts[n].Alive
			}
		}
		list = append(list, out)
	}
	return list
}

func byName(groups []Group) func(name string) Group {
	return func(name string) Group {
		for _, g := range groups {
			if g.Name == name {
				return g
			}
		}
		return Group{Name: name, States: map[string]int{}, Rates: Rates{Wait: -1}}
	}
}

// ClusterTable has a line for each cluster.
func ClusterTable(list []Cluster, width int) Table {
	return layOut([]column[Cluster]{
		{"CLUSTER", true, 0, func(c *Cluster) string { return c.Name }},
		{"IS", true, 0, func(c *Cluster) string { return c.State }},
		{"ALIVE", false, 0, func(c *Cluster) string {
			return fmt.Sprintf("%d/%d", c.Alive,
				c.Ranks)
		}},
		{"AGAIN", false, 2, func(c *Cluster) string { return fmt.Sprint(c.Restarts) }},
		{"MSG/s", false, 0, func(c *Cluster) string {
			return rate(c.Rates.Wait >= 0,
				c.Rates.Sent+c.Rates.Received)
		}},
		{"OUT B/s", false, 0, func(c *Cluster) string {
			return rate(c.Rates.Wait >= 0,
				c.Rates.SentBytes)
		}},
		{"IN B/s", false, 0, func(c *Cluster) string {
			return rate(c.Rates.Wait >= 0,
				c.Rates.ReceivedBytes)
		}},
		{"WAIT", false, 0, func(c *Cluster) string { return Share(c.Rates.Wait) }},
		{"STATES", true, 0, func(c *Cluster) string { return c.states() }},
	}, list, width)
}

// LinkTable has a line for each link.
func LinkTable(list []Link, width int) Table {
	return layOut([]column[Link]{
		{"LINK", true, 0, func(l *Link) string { return l.Name }},
		{"IOPS", false, 0, func(l *Link) string { return fmt.Sprint(l.Alive) }},
		{"MSG/s", false, 0, func(l *Link) string { return rate(l.Rates.Wait >= 0, l.Rates.Sent) }},
		{"B/s", false, 0, func(l *Link) string {
			return rate(l.Rates.Wait >= 0,
				l.Rates.SentBytes)
		}},
		{"HELD", false, 0, func(l *Link) string { return fmt.Sprint(l.HeldCount) }},
		{"HELD B", false, 0, func(l *Link) string { return Number(float64(l.Held)) }},
		{"FROM, TO", true, 0, func(l *Link) string {
			return fmt.Sprintf("%s -> %s", strings.Join(l.From, ","), strings.Join(l.To, ","))
		}},
	}, list, width)
}
