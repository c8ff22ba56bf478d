// Package config reads the system file: which clusters a system has, which links join them, and the
// treatment of failures (MPI/SPx, section 3.1: the cluster configuration table). It owns the file's
// schema, which its tables of fields define once for reading, for checking and for the manual
// (schema.go), and the picture of a system (picture.go, svg.go).
//
// It is pure: text in, a System or all Problems out. It opens no file, queries no host and starts
// nothing; whether a program exists is seen when it is started.
package config

// A System is the content of a system file, with defaults filled in.
type System struct {
	Name     string `json:"name"`
	Masters  string `json:"masters"`  // MastersAgent or MastersIOP
	Messages string `json:"messages"` // MessagesKept or MessagesFast
	// working directory of all programs; relative to that of the file; empty: that one
	Directory string `json:"directory"`
	// HOST:PORT where clusters meet that are started one by one; empty: they are not
	Address string `json:"address,omitempty"`
	// more of these, for clusters that do not reach that one: on hosts of other clusters, which
	// forward their messages
	Through []string `json:"through,omitempty"`
	// file of the system's key; relative to the system file
	Key string `json:"key,omitempty"`
	// clusters that links name and that another file describes
	Others   []string  `json:"others,omitempty"`
	Start    Start     `json:"start"`
	Failure  Failure   `json:"failure"`
	Clusters []Cluster `json:"clusters"`
	Links    []Link    `json:"links"`
}

// A Cluster is an MPI program with an MPI_COMM_WORLD of its own.
type Cluster struct {
	Name        string   `json:"name"`
	Program     string   `json:"program"`
	Args        []string `json:"args,omitempty"`
	Hosts       []string `json:"hosts,omitempty"` // NAME or NAME:SLOTS; none: the host of spxrun
	Directory   string   `json:"directory,omitempty"`
	Environment []string `json:"environment,omitempty"` // NAME=VALUE, by name
	Ranks       int      `json:"ranks"`                 // M: the size of its MPI_COMM_WORLD
	// N: processes that wait to take a rank over
	Standbys int     `json:"standbys"`
	Takeover string  `json:"takeover,omitempty"` // with standbys: Notified or Transparent
	Copies   string  `json:"copies,omitempty"`   // with Transparent: NoCopies or OtherHost
	Start    Start   `json:"start"`
	Failure  Failure `json:"failure"`
	Line     int     `json:"-"` // in the file
}

// A Link joins clusters by I/O processes: what one of From sends to MPISP_CLUSTER_OUT, one of To
// receives from MPISP_CLUSTER_IN.
type Link struct {
	Name          string   `json:"name"`
	From          []string `json:"from"`
	To            []string `json:"to"`
	IOPs          int      `json:"iops"`
	Program       string   `json:"program"`
	Args          []string `json:"args,omitempty"`
	Hosts         []string `json:"hosts,omitempty"`
	Directory     string   `json:"directory,omitempty"`
	Environment   []string `json:"environment,omitempty"`
	Choice        string   `json:"choice"`
	Weights       []int    `json:"weights,omitempty"`
	Library       string   `json:"library,omitempty"` // shared object of ChoiceLibrary
	Security      string   `json:"security"`
	Bidirectional bool     `json:"bidirectional"`
	Line          int      `json:"-"`
}

// Start defines for which clusters MPI_Init waits, and how long.
type Start struct {
	Wait     string   `json:"wait"`               // WaitSystem, WaitPart or WaitNone
	Clusters []string `json:"clusters,omitempty"` // of WaitPart
	LimitMS  int64    `json:"limit_ms"`
}

// Failure is the treatment by kind of failure: Restart, Replace, Degrade or Stop.
type Failure struct {
	Process string `json:"process"` // a rank has died
	Host    string `json:"host"`    // a host is lost with all that ran there
	// a path stays broken; one that returns is rejoined transparently
	Network string `json:"network"`
	IOP     string `json:"iop"`     // an I/O process has died
	Cluster string `json:"cluster"` // a cluster cannot go on
	// of one cluster, at most, before it counts as stopped
	Restarts int   `json:"restarts"`
	WithinMS int64 `json:"within_ms"` // so long each of these counts; 0: for ever
	// a rank, or a standby, hangs: Report, or as for Process
	Hang    string `json:"hang"`
	IOPHang string `json:"iop_hang"` // an I/O process hangs: Report, or as for IOP
	HangMS  int64  `json:"hang_ms"`  // it hangs that has not run for so long
	// ... and that has computed for so long while messages wait for it; 0: never
	SilentMS int64 `json:"silent_ms"`
	// with process Restart: for processes that are started, over the lifetime of a cluster
	Places int `json:"places,omitempty"`
}

// Which processes are the masters of the management tree.
const (
	MastersAgent = "agent" // agents of the hosts: I/O processes do data alone
	MastersIOP   = "iop"   // the agents beside I/O processes: the paper's arrangement
)

// The meaning of completion of a send to another cluster.
const (
	// its sender keeps the message until it was accepted there, and sends it by another I/O process
	// when one dies
	MessagesKept = "kept"
	MessagesFast = "fast" // an I/O process has it: its messages are lost if it dies
)

// The clusters for which MPI_Init waits.
const (
	WaitSystem = "system" // all clusters
	WaitPart   = "part"   // those that are named, and the own one
	WaitNone   = "none"   // the own cluster alone
)

// Treatments.
const (
	Restart = "restart" // start it again
	Replace = "replace" // a standby takes its rank
	Degrade = "degrade" // the other clusters are notified and continue without it
	Report  = "report"  // of hangs: report them, and their end
	Stop    = "stop"    // end what it belongs to: its cluster, or for a cluster the system
)

// How a standby takes a rank over.
const (
	Notified    = "notified"    // the program is notified, and restores
	Transparent = "transparent" // it continues at its last MPISP_Commit, unnoticed

	NoCopies  = "none"       // what that needs is in memory of one host
	OtherHost = "other host" // and of another one
)

// How a sender chooses among the I/O processes of its links.
const (
	ChoiceRoundRobin  = "round-robin"
	ChoiceLeastLoaded = "least-loaded"
	ChoiceShortest    = "shortest-queue"
	ChoiceTag         = "tag"
	ChoiceKey         = "key"
	ChoiceWeighted    = "weighted"
	ChoiceLibrary     = "library"
)

// How the ends of a link authenticate each other.
const (
	SecurityKey = "key" // by the system's key
	SecurityTLS = "tls" // by the key, and everything is encrypted
)

// Relay is the I/O program of a link that names none.
const Relay = "spx-iop"

// Bounds on the values in a file.
const (
	MaxRanks    = 1 << 16
	MaxStandbys = 1 << 12
	MaxIOPs     = 1 << 10
	MaxClusters = 255 // as in package layout
	MaxLinks    = 1 << 12
	MaxText     = 1 << 20 // bytes of a system file
)

// Default number of places of a cluster for processes that are started: so many times the number
// that may be started within a period, since periods repeat, and no more than a table has room for
// at little cost.
const (
	placesEach = 8
	mostPlaces = 64
)

// Find is the cluster of that name, or nil.
func (s *System) Find(name string) *Cluster {
	for i := range s.Clusters {
		if s.Clusters[i].Name == name {
			return &s.Clusters[i]
		}
	}
	return nil
}

// Cold is how many processes may be started in the place of ranks that have died, beside standbys:
// they have places in all tables from the beginning.
func (c *Cluster) Cold() int {
	if c.Failure.Process == Restart {
		return c.Failure.Places
	}
	return 0
}

// Has reports whether the system has a cluster of that name, even if another file describes it.
func (s *System) Has(name string) bool { return s.Find(name) != nil || contains(s.Others, name) }

// withOthers is the system with the clusters that another file describes, for pictures.
func (s *System) withOthers() *System {
	if len(s.Others) == 0 {
		return s
	}
	all := *s
	all.Clusters = append([]Cluster(nil), s.Clusters...)
	for _, name := range s.Others {
		all.Clusters = append(all.Clusters, Cluster{Name: name})
	}
	return &all
}

// Processes is how many the system has: ranks, standbys and I/O processes.
func (s *System) Processes() (ranks, standbys, iops int) {
	for _, c := range s.Clusters {
		ranks += c.Ranks
		standbys += c.Standbys + c.Cold()
	}
	for _, l := range s.Links {
		iops += l.IOPs
	}
	return ranks, standbys, iops
}

// Awaited are the clusters that must be complete before those of cluster c leave MPI_Init, c among
// them, in the order of the file; those that another file describes come last.
func (s *System) Awaited(c *Cluster) []string {
	var out []string
	for i := range s.Clusters {
		name := s.Clusters[i].Name
		part := c.Start.Wait == WaitPart && contains(c.Start.Clusters, name)
		if name == c.Name || c.Start.Wait == WaitSystem || part {
			out = append(out, name)
		}
	}
	for _, name := range s.Others {
		if c.Start.Wait == WaitSystem || c.Start.Wait == WaitPart &&
			contains(c.Start.Clusters, name) {
			out = append(out, name)
		}
	}
	return out
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
