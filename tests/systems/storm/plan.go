// Package storm draws systems of clusters, and what happens to them, from a seed, and says from their policies what must come of it. It starts nothing and kills nothing: tests/systems does
// (TestStorm). It owns what a plan is (Plan), how one is drawn (Draw), what its faults mean (Model) and what must be true at the end (Judge).
package storm

import (
	"fmt"
	"slices"
	"strings"
)

// Kinds of clusters: what becomes of a rank that dies.
const (
	Transparent = "transparent" // another process goes on as if nothing had been
	Notified    = "notified"    // another process takes its rank, and all are told
	Told        = "told"        // the others go on without it
	Plain       = "plain"       // the cluster stops
)

// Roles of clusters.
const (
	Send = "send"
	Pass = "pass"
	Take = "take"
)

// Routes of links: to which rank of a cluster a message goes.
const (
	Same   = "same"   // of the sender's number
	Tag    = "tag"    // of the tag
	Spread = "spread" // to all, in turn
	Demand = "demand" // to any of them
)

// A Cluster is one of a plan.
type Cluster struct {
	Role, Kind             string
	Ranks, Standbys        int
	Home, Other            int    // the host of its ranks, from 1, and that of its standbys
	Copies                 bool   // on the other host
	Process, Host, Network string // what [failure] says
	Hang, Whole            string
	IOP, IOPHang           string // for the links that begin here
	Restarts               int
}

// A Link is one of a plan.
type Link struct {
	From, To []int // clusters
	IOPs     int
	Hosts    []int
	Choice   string
	Route    string
	One      bool // each message goes to one of the clusters of To, in turn; else to all of them
}

// What a fault does.
const (
	KillRank    = "kill rank"
	KillStandby = "kill standby"
	KillIOP     = "kill I/O process"
	KillMaster  = "kill master"
	KillAgent   = "kill agent"  // with it goes its host
	KillHost    = "kill host"   // all that is there
	StopAgent   = "stop agent"  // for ever: nothing is heard of its host
	Unplug      = "unplug"      // for ever
	Blink       = "blink"       // a host is off the network for a moment
	BlinkAll    = "blink all"   // all are
	Pause       = "pause"       // a rank is stopped for a moment
	Stand       = "stand still" // all ranks of a cluster are
	HangRank    = "hang"        // a rank is stopped until something is said of it
	HangIOP     = "hang I/O"    // an I/O process is
	PauseIOP    = "pause I/O"   // ... for a moment
	KillRun     = "kill spxrun" // of a cluster that was started by itself, or the agent of its host
	Detach      = "detach"      // a cluster leaves, and comes again
	hangLimitMS = 1500          // what counts as hanging
	momentMS    = 700           // the longest moment
	Restarts    = 40            // of I/O processes and clusters
	Spare       = 64            // slots of the host that has room for all
	SystemName  = "storm"       // what a system is called
)

// A Fault is one thing that is done.
type Fault struct {
	What                string
	Cluster, Rank, Link int
	Host                int // from 1
	Index               int // of what there are several
	ForMS, AfterMS      int // how long; how long after the one before
}

func (f Fault) String() string {
	text := f.What
	switch f.What {
	case KillRank, Pause, HangRank:
		text += fmt.Sprintf(" %d of c%d", f.Rank, f.Cluster)
	case KillStandby, Stand:
		text += fmt.Sprintf(" of c%d", f.Cluster)
	case KillIOP, HangIOP, PauseIOP:
		text += fmt.Sprintf(" %d of link %d", f.Index, f.Link)
	case BlinkAll:
	case KillRun, Detach:
		text += fmt.Sprintf(" of c%d", f.Cluster)
		if f.Index > 0 {
			text += ", the agent"
		}
	default:
		text += fmt.Sprintf(" of host %d", f.Host)
	}
	if f.ForMS > 0 {
		text += fmt.Sprintf(" for %d ms", f.ForMS)
	}
	if f.AfterMS > 0 {
		text += fmt.Sprintf(" after %d ms", f.AfterMS)
	}
	return text
}

// A Group of faults happens when messages have come everywhere again since the one before.
type Group struct {
	Messages int // so many to each rank that some can come to
	Faults   []Fault
}

// A Plan is a system and what happens to it.
type Plan struct {
	Seed          uint64
	Hosts         int
	TwoNetworks   bool   // the first host is in both, the third in the second alone, the others in the first alone
	Apart         bool   // each cluster is started by itself, from its host; the first one leads
	Wait          string // then: for whom they wait
	Room          int    // the host with room for all, from 1; 0: none
	Messages      string
	SilenceMS     int // SPX_HEARTBEAT_LIMIT
	PaceUS, Bytes int
	Clusters      []Cluster
	Links         []Link
	Early         []Fault // while it starts
	Groups        []Group
	Last          []Fault // when it ends: a rank when it is about to call MPI_Finalize, or has
}

// Name is what a cluster is called.
func Name(c int) string { return fmt.Sprintf("c%d", c) }

// Queue is what the relays of a link are told to hold at most: by that they are found.
func Queue(link int) int { return 64<<20 + link }

// Port is where clusters meet that are started by themselves, on the first host.
const Port = 7410

// Text is the system file. host names a host, from 1; folder is where the programs say what they do.
func (p *Plan) Text(host func(int) string, program, folder string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[system]\nname = %q\nmessages = %q\n[failure]\nhang_limit = \"%dms\"\nrestarts = %d\n", SystemName, p.Messages, hangLimitMS, Restarts)
	if p.Apart {
		b.Reset()
		fmt.Fprintf(&b, "[system]\nname = %q\nmessages = %q\naddress = \"10.77.0.1:%d\"\nkey = \"key\"\n[start]\nwait = %q\n[failure]\nhang_limit = \"%dms\"\nrestarts = %d\n", SystemName, p.Messages, Port, p.Wait, hangLimitMS, Restarts)
	}
	slots := func(at, n int) string {
		if at == p.Room {
			n = Spare
		}
		return fmt.Sprintf("\"%s:%d\"", host(at), n)
	}
	var origins []string
	for i, c := range p.Clusters {
		if c.Role == Send {
			origins = append(origins, fmt.Sprintf("%d:%d", i, c.Ranks))
		}
	}
	for i, c := range p.Clusters {
		fmt.Fprintf(&b, "[[cluster]]\nname = %q\nprogram = %q\n", Name(i), program)
		fmt.Fprintf(&b, "args = [%q, %q, \"%d\", %q, \"%d\", \"%d\", %q, %q]\n", c.Role, c.Kind, i, folder, p.PaceUS, p.Bytes, p.Order(i), strings.Join(origins, ","))
		fmt.Fprintf(&b, "ranks = %d\nstandbys = %d\n", c.Ranks, c.Standbys)
		hosts := []string{slots(c.Home, c.Ranks+c.Standbys)}
		if c.Other != c.Home {
			hosts = []string{slots(c.Home, c.Ranks), slots(c.Other, c.Standbys)}
		}
		if c.Process == "restart" { // with room for all that may be started
			hosts = []string{fmt.Sprintf("\"%s:%d\"", host(c.Home), Spare)}
		} else if p.Room > 0 && p.Room != c.Home && p.Room != c.Other {
			hosts = append(hosts, slots(p.Room, Spare))
		}
		fmt.Fprintf(&b, "hosts = [%s]\n", strings.Join(hosts, ", "))
		if c.Kind == Transparent || c.Kind == Notified {
			fmt.Fprintf(&b, "takeover = %q\n", c.Kind)
		}
		if c.Copies {
			b.WriteString("copies = \"other host\"\n")
		}
		fmt.Fprintf(&b, "failure = { process = %q, host = %q, network = %q, hang = %q, cluster = %q, iop = %q, iop_hang = %q", c.Process, c.Host, c.Network, c.Hang, c.Whole, c.IOP, c.IOPHang)
		if c.Process == "restart" {
			fmt.Fprintf(&b, ", restarts = %d", c.Restarts)
		}
		b.WriteString(" }\n")
	}
	names := func(list []int) string {
		var words []string
		for _, c := range list {
			words = append(words, fmt.Sprintf("%q", Name(c)))
		}
		return "[" + strings.Join(words, ", ") + "]"
	}
	for i, l := range p.Links {
		var hosts []string
		for _, h := range l.Hosts {
			hosts = append(hosts, slots(h, (l.IOPs+len(l.Hosts)-1)/len(l.Hosts)))
		}
		to := "all"
		if l.One {
			to = "one"
		}
		fmt.Fprintf(&b, "[[link]]\nname = \"l%d\"\nfrom = %s\nto = %s\niops = %d\nchoice = %q\nhosts = [%s]\nargs = [\"--queue\", \"%d\", \"--route\", %q, \"--to\", %q]\n",
			i, names(l.From), names(l.To), l.IOPs, l.Choice, strings.Join(hosts, ", "), Queue(i), l.Route, to)
	}
	return b.String()
}

// Order is what comes in order to a cluster: all of a sender, or all of one tag of it, or nothing that is promised.
func (p *Plan) Order(c int) string {
	order := "sender"
	for _, l := range p.Links {
		for _, to := range l.To {
			if to != c {
				continue
			}
			switch {
			case l.IOPs == 1:
			case p.Messages == "fast" && p.losesIOPs():
				order = "none" // what a dead one has sent may be received behind what another one sends
			case l.Choice == "key":
			case l.Choice == "tag":
				order = weaker(order, "tag")
			default:
				order = "none"
			}
			if l.Route == Tag {
				order = weaker(order, "tag")
			}
			for _, from := range l.From {
				if order = weaker(order, p.Order(from)); p.dealt(from) { // its ranks hand on what comes to each of them
					order = "none"
				}
			}
		}
	}
	return order
}

// losesIOPs reports whether an I/O process may die, or be passed over as it is silent or hangs.
func (p *Plan) losesIOPs() bool {
	of := []string{KillIOP, HangIOP, PauseIOP, KillAgent, KillHost, StopAgent, Unplug, Blink, BlinkAll, KillRun}
	faults := slices.Concat(p.Early, p.Last)
	for _, g := range p.Groups {
		faults = append(faults, g.Faults...)
	}
	return slices.ContainsFunc(faults, func(f Fault) bool { return slices.Contains(of, f.What) })
}

// dealt: what comes to a cluster is dealt out to its ranks, whatever it is.
func (p *Plan) dealt(c int) bool {
	return slices.ContainsFunc(p.Links, func(l Link) bool {
		return slices.Contains(l.To, c) && (l.Route == Spread || l.Route == Demand) && p.Clusters[c].Ranks > 1
	})
}

func weaker(a, b string) string {
	for _, o := range []string{"none", "tag"} {
		if a == o || b == o {
			return o
		}
	}
	return "sender"
}

// String is all of it, for who has to see what happened.
func (p *Plan) String() string {
	var b strings.Builder
	if p.Apart {
		fmt.Fprintf(&b, "clusters are started one by one, wait = %q; ", p.Wait)
	}
	fmt.Fprintf(&b, "seed %d: %d hosts, two networks: %v, messages %s, silence %d ms, a message of %d bytes in %d us\n", p.Seed, p.Hosts, p.TwoNetworks, p.Messages, p.SilenceMS, p.Bytes, p.PaceUS)
	list := func(faults []Fault) {
		for _, f := range faults {
			fmt.Fprintf(&b, " %v;", f)
		}
		b.WriteString("\n")
	}
	if len(p.Early) > 0 {
		b.WriteString("while it starts:")
		list(p.Early)
	}
	for i, g := range p.Groups {
		fmt.Fprintf(&b, "%d. after %d messages:", i+1, g.Messages)
		list(g.Faults)
	}
	if len(p.Last) > 0 {
		b.WriteString("at the end:")
		list(p.Last)
	}
	return b.String()
}

// IsHost: a host is lost by it.
func (f Fault) IsHost() bool {
	return f.What == KillAgent || f.What == KillHost || f.What == StopAgent || f.What == Unplug
}
