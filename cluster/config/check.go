package config

import (
	"fmt"
	"strconv"
	"strings"
)

// What must be right between tables, and what follows from it.

func (r *reader) check(s *System) {
	if s.Name == "" {
		s.Name = "system"
	}
	r.checkName([]string{"system", "name"}, "system", s.Name)
	r.checkAddress("address", s.Address)
	for _, at := range s.Through {
		r.checkAddress("through", at)
	}
	r.checkMany(s)
	var names []string
	seen := map[string]int{}
	for i := range s.Clusters {
		c := &s.Clusters[i]
		r.checkCluster(s, i)
		if c.Name == "" {
			continue
		}
		names = append(names, c.Name)
		if line, again := seen[c.Name]; again {
			r.wrong([]string{"cluster", strconv.Itoa(i), "name"},
				"there is a cluster %q in line %d already; clusters need different names", c.Name,
				line)
		} else {
			seen[c.Name] = c.Line
		}
	}
	names = r.checkOthers(s, names)
	r.checkStart([]string{"start"}, &s.Start, names)
	for i := range s.Clusters {
		r.checkStart([]string{"cluster", strconv.Itoa(i), "start"}, &s.Clusters[i].Start, names)
	}
	links := map[string]int{}
	for i := range s.Links {
		r.checkLink(s, i, names)
		l := &s.Links[i]
		if l.Name == "" {
			continue
		}
		if line, again := links[l.Name]; again {
			r.wrong([]string{"link", strconv.Itoa(i), "name"},
				"there is a link %q in line %d already; give one of them another name, or more "+
					"iops", l.Name, line)
		} else {
			links[l.Name] = l.Line
		}
	}
}

// checkOthers reads the clusters that another file describes, and adds them to those that links
// may name.
func (r *reader) checkOthers(s *System, names []string) []string {
	for i, name := range s.Others {
		at := []string{"system", "others", strconv.Itoa(i)}
		switch {
		case !plain(name):
			r.wrong(at,
				"others: %q is no name of a cluster: names have 1 to 64 letters, digits, and . _ -",
				name)
		case s.Find(name) != nil:
			r.wrong(at,
				"others: this file describes cluster %q itself, in line %d; leave it out here, "+
					"or there", name, s.Find(name).Line)
		case contains(s.Others[:i], name):
			r.wrong(at, "others: cluster %q stands there twice", name)
		default:
			names = append(names, name)
		}
	}
	return names
}

func (r *reader) checkMany(s *System) {
	switch {
	case len(s.Clusters) == 0:
		r.wrong(nil, "there is no cluster: write [[cluster]] with name, program and ranks for each")
	case len(s.Clusters)+len(s.Others) > MaxClusters:
		r.wrong([]string{"cluster", strconv.Itoa(MaxClusters)},
			"there are %d clusters, at most %d are possible", len(s.Clusters)+len(s.Others),
			MaxClusters)
	}
	if len(s.Links) > MaxLinks {
		r.wrong([]string{"link", strconv.Itoa(MaxLinks)},
			"there are %d links, at most %d are possible", len(s.Links), MaxLinks)
	}
	ranks, standbys, iops := s.Processes()
	if total := ranks + standbys + iops; total > MaxRanks {
		r.wrong(nil,
			"the system has %d processes (%d ranks, %d standbys, %d I/O processes), at most %d "+
				"are possible", total, ranks, standbys, iops, MaxRanks)
	}
}

// checkAddress checks the form of the address where clusters meet.
func (r *reader) checkAddress(key, at string) {
	if at == "" {
		return
	}
	i := strings.LastIndexByte(at, ':')
	host, port := at[:max(i, 0)], at[i+1:]
	// an address of IPv6 needs its brackets
	bare := strings.Contains(host, ":") && !(strings.HasPrefix(host, "[") &&
		strings.HasSuffix(host, "]"))
	if n, err := strconv.Atoi(port); err != nil || host == "" || bare ||
		strings.ContainsAny(host, " \t\n,/") || n < 1 || n > 65535 {
		r.wrong([]string{"system", key},
			"%s: %q is no address; write \"HOST:PORT\", with the name or address of a host, and "+
				"a port from 1 to 65535", key, at)
	}
}

// plain are the letters of a name.
func plain(name string) bool {
	return len(name) > 0 && len(name) <= 64 && !strings.ContainsFunc(name, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
			strings.ContainsRune("._-", c))
	})
}

func (r *reader) checkName(path []string, what, name string) {
	if name != "" && !plain(name) {
		r.wrong(path, "%s: %q is no name of a %s: names have 1 to 64 letters, digits, and . _ -",
			path[len(path)-1], name, what)
	}
}

func (r *reader) checkCluster(s *System, i int) {
	c, path := &s.Clusters[i], []string{"cluster", strconv.Itoa(i)}
	r.checkName(append(path, "name"), "cluster", c.Name)
	r.checkHosts(append(path, "hosts"), c.Hosts)
	if c.Start.Wait == "" {
		c.Start.Wait = s.Start.Wait
		if c.Start.Clusters == nil {
			c.Start.Clusters = s.Start.Clusters
		}
	}
	if c.Start.LimitMS == 0 {
		c.Start.LimitMS = s.Start.LimitMS
	}
	f, all := &c.Failure, &s.Failure
	inherit := func(to *string, from, preset string) {
		if *to == "" {
			*to = from
		}
		if *to == "" {
			*to = preset
		}
	}
	preset := Stop
	if c.Standbys > 0 {
		preset = Replace
	}
	inherited := f.Process == ""
	own := f.Process == Replace || f.Host == Replace || f.Network == Replace
	elsewhere := []struct {
		key string
		at  *string
		own bool
	}{{"host", &f.Host, f.Host == Restart}, {"network", &f.Network, f.Network == Restart}}
	inherit(&f.Process, all.Process, preset)
	host := f.Process
	if host == Restart && lacksRestart(c) != "" {
		host = Stop
	}
	inherit(&f.Host, all.Host, host)
	inherit(&f.Network, all.Network, f.Host)
	inherit(&f.IOP, all.IOP, Restart)
	inherit(&f.Cluster, all.Cluster, Stop)
	if f.Restarts < 0 {
		f.Restarts = all.Restarts
	}
	if f.WithinMS < 0 {
		f.WithinMS = all.WithinMS
	}
	if f.Places == 0 {
		f.Places = all.Places
	}
	hang := f.Hang != ""
	inherit(&f.Hang, all.Hang, Report)
	inherit(&f.IOPHang, all.IOPHang, Report)
	if f.HangMS == 0 {
		f.HangMS = all.HangMS
	}
	if f.SilentMS < 0 {
		f.SilentMS = all.SilentMS
	}
	for _, x := range elsewhere {
		switch lacks := lacksRestart(c); {
		case *x.at != Restart || lacks == "":
		case x.own:
			r.wrong(append(append([]string(nil), path...), "failure", x.key),
				"%s = %q for cluster %q, and %s, or another treatment", x.key, Restart, c.Name,
				lacks)
		default:
			*x.at = Stop
		}
	}
	r.checkHang(path, c, hang)
	if own && c.Standbys == 0 {
		r.wrong(append(path, "failure"),
			"failure: the ranks of cluster %q are to be replaced, and it has no standbys: say "+
				"standbys = N, or another treatment", c.Name)
	}
	if f.Process == Restart {
		r.checkRestart(path, c, inherited)
	}
	if (c.Standbys > 0 || f.Process == Restart) && c.Takeover == "" {
		c.Takeover = Notified
	}
	if c.Takeover == Transparent && f.Process != Restart &&
		(c.Standbys == 0 || f.Process != Replace) {
		r.wrong(append(path, "takeover"),
			"takeover: cluster %q has nobody to take a rank over: it needs standbys = N and "+
				"process = \"replace\", or process = \"restart\"", c.Name)
	}
	if c.Copies == OtherHost && c.Takeover != Transparent {
		r.wrong(append(path, "copies"),
			"copies: they are of what a rank needs to be taken over transparently: cluster %q "+
				"needs takeover = \"transparent\" for that", c.Name)
	}
	if c.Ranks+c.Standbys > MaxRanks {
		r.wrong(append(path, "standbys"),
			"standbys: cluster %q has %d processes with them, at most %d are possible", c.Name,
			c.Ranks+c.Standbys, MaxRanks)
	}
	// of [failure], for clusters that have standbys
	for _, x := range []*string{&f.Process, &f.Host, &f.Network} {
		if *x == Replace && c.Standbys == 0 {
			*x = Stop
		}
	}
}

// lacksRestart is what a cluster needs besides, so that the ranks of a host that is lost are
// started on another one; empty: nothing.
func lacksRestart(c *Cluster) string {
	switch {
	case c.Failure.Process != Restart:
		return "processes are started in the place of ranks with process = \"restart\" alone: " +
			"say that"
	case len(c.Hosts) < 2:
		return "it has no other host: name several in hosts"
	case c.Takeover == Transparent && c.Copies != OtherHost:
		return "what its ranks need for takeover = \"transparent\" is lost with the host: say " +
			"copies = \"other host\""
	}
	return ""
}

// checkHang checks whether there is a replacement for a rank that hangs. own: set by the cluster
// itself, and not by [failure] for all, with which clusters that cannot replace ranks are stopped.
func (r *reader) checkHang(path []string, c *Cluster, own bool) {
	f := &c.Failure
	at := append(append([]string(nil), path...), "failure")
	lacks := ""
	switch {
	case f.Hang == Replace && c.Standbys == 0:
		lacks = "it has no standbys: say standbys = N"
	case f.Hang == Restart && f.Process != Restart:
		lacks = "processes are started in the place of ranks with process = \"restart\" alone: " +
			"say that"
	}
	switch {
	case lacks == "":
	case own:
		r.wrong(append(at, "hang"), "hang = %q for cluster %q, and %s, or another treatment",
			f.Hang, c.Name, lacks)
	default:
		f.Hang = Stop
	}
}

// checkRestart checks how many processes may be started in the place of ranks: each has a place
// in the tables from the beginning. inherited: set by [failure], for all.
func (r *reader) checkRestart(path []string, c *Cluster, inherited bool) {
	at := append(append([]string(nil), path...), "failure")
	if inherited {
		at = []string{"failure"}
	}
	at = append(at, "restarts")
	if _, said := r.places[key(at)]; !said {
		at[len(at)-1] = "process"
	}
	switch n := c.Failure.Restarts; {
	case n == 0:
		r.wrong(at,
			"restarts: with process = \"restart\", and restarts = 0, no rank of cluster %q "+
				"could be started again; say restarts = N, or process = \"stop\"", c.Name)
	case n > MaxStandbys:
		r.wrong(at,
			"restarts: %d for cluster %q; with process = \"restart\" at most %d are possible", n,
			c.Name, MaxStandbys)
	case c.Failure.Places == 0:
		c.Failure.Places = max(n, min(placesEach*n, mostPlaces))
	case c.Failure.Places < n:
		r.wrong(at,
			"places: %d for cluster %q, in whose ranks' places %d processes may be started: say "+
				"places = %d, or more", c.Failure.Places, c.Name, n, n)
	}
}

// checkHosts checks the form of entries; the existence of the hosts is checked when they are
// needed.
func (r *reader) checkHosts(path []string, list []string) {
	for i, h := range list {
		name, slots, given := strings.Cut(h, ":")
		if strings.Contains(slots, ":") || strings.HasPrefix(h, "[") { // an address of IPv6
			continue
		}
		at := append(append([]string(nil), path...), strconv.Itoa(i))
		if name == "" || strings.ContainsAny(name, " \t\n,/") || strings.HasPrefix(name, "-") {
			r.wrong(at, "hosts: %q is no host; entries are \"NAME\" or \"NAME:SLOTS\"", h)
			continue
		}
		if n, err := strconv.Atoi(slots); given && (err != nil || n < 1 || n > MaxRanks) {
			r.wrong(at, "hosts: %q is no number of slots of host %s; write \"%s:4\", for four",
				slots, name, name)
		}
	}
}

func (r *reader) checkStart(path []string, s *Start, names []string) {
	at := append(append([]string(nil), path...), "clusters")
	if s.Wait == WaitPart && len(s.Clusters) == 0 {
		r.wrong(append(append([]string(nil), path...), "wait"),
			`wait = "part" needs clusters = [...]: those for which MPI_Init waits`)
	}
	if _, given := r.places[key(at)]; given && s.Wait != WaitPart {
		r.wrong(at, `clusters: they count with wait = "part" alone; here it is %q`, s.Wait)
	}
	if _, given := r.places[key(at)]; !given { // those of [start] are checked once
		return
	}
	for i, name := range s.Clusters {
		if !contains(names, name) {
			r.wrong(append(append([]string(nil), at...), strconv.Itoa(i)), "clusters: %s",
				unknown(name, names))
		}
	}
}

func unknown(name string, names []string) string {
	return fmt.Sprintf("there is no cluster %q%s; there are %s", name, meant(name, names),
		list(names, "and"))
}

func (r *reader) checkLink(s *System, i int, names []string) {
	l, path := &s.Links[i], []string{"link", strconv.Itoa(i)}
	r.checkHosts(append(path, "hosts"), l.Hosts)
	ends := func(end string, list []string) {
		seen := map[string]bool{}
		for k, name := range list {
			at := append(append([]string(nil), path...), end, strconv.Itoa(k))
			switch {
			case !contains(names, name):
				r.wrong(at, "%s: %s", end, unknown(name, names))
			case seen[name]:
				r.wrong(at, "%s: cluster %q stands there twice", end, name)
			}
			seen[name] = true
		}
		if _, given := r.places[key(append(append([]string(nil), path...), end))]; given &&
			len(list) == 0 {
			r.wrong(append(append([]string(nil), path...), end), "%s: no cluster is named", end)
		}
	}
	ends("from", l.From)
	ends("to", l.To)
	for _, name := range l.From {
		if contains(l.To, name) {
			r.wrong(append(path, "to"),
				"to: cluster %q would be linked to itself; its ranks reach each other without a "+
					"link", name)
		}
	}
	if l.Name == "" && len(l.From) > 0 && len(l.To) > 0 {
		l.Name = strings.Join(l.From, ".") + "-" + strings.Join(l.To, ".")
	} else {
		r.checkName(append(path, "name"), "link", l.Name)
	}
	if len(l.Hosts) == 0 && len(l.To) > 0 {
		if c := s.Find(l.To[0]); c != nil {
			l.Hosts = c.Hosts
		}
	}
	r.checkChoice(path, l)
}

func (r *reader) checkChoice(path []string, l *Link) {
	_, weights := r.places[key(append(append([]string(nil), path...), "weights"))]
	_, library := r.places[key(append(append([]string(nil), path...), "library"))]
	at := func(k string) []string { return append(append([]string(nil), path...), k) }
	switch {
	case l.Choice == ChoiceWeighted && len(l.Weights) != l.IOPs:
		r.wrong(at("choice"),
			`choice = "weighted": there are %d weights for %d I/O processes; say weights = [...] with one for each`, len(l.Weights), l.IOPs)
	case l.Choice == ChoiceWeighted && sum(l.Weights) == 0:
		r.wrong(at("weights"), "weights: all are 0, so that nobody could be chosen")
	case l.Choice != ChoiceWeighted && weights:
		r.wrong(at("weights"), `weights: they count with choice = "weighted" alone; here it is %q`,
			l.Choice)
	}
	switch {
	case l.Choice == ChoiceLibrary && !library:
		r.wrong(at("choice"),
			`choice = "library" needs library = "FILE", the shared object that chooses`)
	case l.Choice != ChoiceLibrary && library:
		r.wrong(at("library"), `library: it counts with choice = "library" alone; here it is %q`,
			l.Choice)
	}
}

func sum(list []int) (total int) {
	for _, n := range list {
		total += n
	}
	return total
}
