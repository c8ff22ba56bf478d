package live

// A View is all that is shown of a job, for programs and for the page of `spxctl serve`.
type View struct {
	At        float64   `json:"at"` // seconds of the Unix epoch
	Job       string    `json:"job"`
	Program   string    `json:"program"`
	System    string    `json:"system,omitempty"`
	All       Group     `json:"all"`
	Hosts     []Group   `json:"hosts"`
	Clusters  []Cluster `json:"clusters,omitempty"`
	Links     []Link    `json:"links,omitempty"`
	Processes []Row     `json:"processes"`
}

// Picture makes a View of a look and what its processes have done.
func Picture(l *Look, rows []Row) View {
	v := View{At: float64(l.At.UnixMilli()) / 1000, Job: l.About.Job, Program: l.About.Program,
		All:   All(rows),
		Hosts: GroupBy(rows, func(r *Row) string { return r.Host }), Clusters: Clusters(l, rows),
		Links: Links(l, rows), Processes: rows}
	if l.Layout != nil {
		v.System = l.Layout.System
	}
	return v
}
