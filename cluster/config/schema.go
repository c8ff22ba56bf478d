package config

import (
	"fmt"
	"strings"
)

// The schema: a row for each key. Reading, messages and the manual are made from it.

func systemFields() []field[System] {
	return []field[System]{
		{name: "name", takes: `"NAME"`, preset: "the file's name",
			help: "what the system is called in messages and by spxctl",
			set:  text(func(s *System) *string { return &s.Name })},
		{name: "masters", takes: `"agent" or "iop"`, preset: `"agent"`,
			help: "who manages: agents of hosts, or only the agents beside I/O processes",
			set:  choice(func(s *System) *string { return &s.Masters }, MastersAgent, MastersIOP)},
		{name: "messages", takes: `"kept" or "fast"`,
			preset: `"kept" where all I/O processes are spx-iop, else "fast"`,
			help: "a message that was sent to another cluster is kept until it was accepted " +
				"there, and goes by another I/O process when one dies; or an I/O process has " +
				"it, with which it may be lost",
			set: choice(func(s *System) *string { return &s.Messages }, MessagesKept,
				MessagesFast)},
		{name: "directory", takes: `"DIR"`, preset: "that of the file",
			help: "working directory of the programs, relative to that of the file",
			set:  text(func(s *System) *string { return &s.Directory })},
		{name: "address", takes: `"HOST:PORT"`,
			help: "where clusters meet that are started one by one (spxrun --cluster): a port " +
				"of the host on which one of them runs",
			set: text(func(s *System) *string { return &s.Address })},
		{name: "through", takes: `["HOST:PORT", ...]`, preset: "none",
			help: "where clusters call that do not reach that address: ports of hosts on which " +
				"the spxrun of another cluster runs, whose agent hands on what they say",
			set: words(func(s *System) *[]string { return &s.Through })},
		{name: "key", takes: `"FILE"`,
			help: "the file of the system's key, for that; relative to the system file " +
				"(SPX_SYSTEM_KEY names another)",
			set: text(func(s *System) *string { return &s.Key })},
		{name: "others", takes: `["NAME", ...]`, preset: "none",
			help: "clusters that links of this file lead to or from, and that another file " +
				"describes: that of the running system to which a cluster is attached (spxrun " +
				"--cluster, --join)",
			set: words(func(s *System) *[]string { return &s.Others })},
	}
}

func startFields() []field[Start] {
	return []field[Start]{
		{name: "wait", takes: `"system", "part" or "none"`, preset: `"system"`,
			help: "MPI_Init returns when all clusters are complete, or a part of them, or the " +
				"own one",
			set: choice(func(s *Start) *string { return &s.Wait }, WaitSystem, WaitPart,
				WaitNone)},
		{name: "clusters", takes: `["NAME", ...]`, help: "the part, for wait = \"part\"",
			set: names(func(s *Start) *[]string { return &s.Clusters })},
		{name: "limit", takes: `"30s"`, preset: `"60s"`,
			help: "how long MPI_Init waits at most; then it is told who is missing, and the " +
				"cluster is ended", set: span(func(s *Start) *int64 { return &s.LimitMS })},
	}
}

func failureFields() []field[Failure] {
	rank := []string{Restart, Replace, Degrade, Stop}
	return []field[Failure]{
		{name: "process", takes: `"restart", "replace", "degrade" or "stop"`,
			preset: `"replace" with standbys, else "stop"`,
			help: "a rank has died: a process is started that takes its place, a standby " +
				"takes its place, the others are told and go on, or the cluster stops",
			set: choice(func(f *Failure) *string { return &f.Process }, rank...)},
		{name: "host", takes: `"restart", "replace", "degrade" or "stop"`,
			preset: `as process; for "restart" with one host "stop"`,
			help:   "a host is lost with its ranks: its agent has ended",
			set:    choice(func(f *Failure) *string { return &f.Host }, rank...)},
		{name: "network", takes: "the same", preset: "as host",
			help: "nothing is heard of a host for SPX_HEARTBEAT_LIMIT; a path that comes back " +
				"before is joined again and nobody notices",
			set: choice(func(f *Failure) *string { return &f.Network }, rank...)},
		{name: "iop", takes: `"restart", "degrade" or "stop"`, preset: `"restart"`,
			help: "an I/O process has died: it is started again, the others of its link go on, " +
				"or the clusters that it joins stop",
			set: choice(func(f *Failure) *string { return &f.IOP }, Restart, Degrade, Stop)},
		{name: "cluster", takes: `"restart", "degrade" or "stop"`, preset: `"stop"`,
			help: "a cluster has stopped: it is started again, the others go on without it, or " +
				"the whole system stops",
			set: choice(func(f *Failure) *string { return &f.Cluster }, Restart, Degrade, Stop)},
		{name: "hang", takes: `"report", "restart", "replace", "degrade" or "stop"`,
			preset: `"report"`,
			help: "a rank, or a standby, hangs: it is said, and when it goes on; or it is " +
				"ended, and then what process means by that word",
			set: choice(func(f *Failure) *string { return &f.Hang },
				append([]string{Report}, rank...)...)},
		{name: "iop_hang", takes: `"report", "restart", "degrade" or "stop"`, preset: `"report"`,
			help: "an I/O process hangs: it is said; or it is ended, and then what iop means by " +
				"that word. While it hangs another one of its link is chosen, whatever stands here",
			set: choice(func(f *Failure) *string { return &f.IOPHang }, Report, Restart, Degrade,
				Stop)},
		{name: "hang_limit", takes: `"30s"`, preset: `"30s"`,
			help: "it hangs that was stopped, or did not run while messages waited for it, for " +
				"so long", set: span(func(f *Failure) *int64 { return &f.HangMS })},
		{name: "silent_limit", takes: `"10m" or "ever"`, preset: `"ever"`,
			help: "it hangs that has computed for so long, without a call that communicates, " +
				"while messages waited for it; a program that says MPISP_Alive has its own limit",
			set: spanOrEver(func(f *Failure) *int64 { return &f.SilentMS })},
		{name: "restarts", takes: "N", preset: "3",
			help: "so often is one thing started again, or a rank of one cluster, within that " +
				"time; then it counts as stopped",
			set: count(func(f *Failure) *int { return &f.Restarts }, 0, 1_000_000)},
		{name: "within", takes: `"24h" or "ever"`, preset: `"1h"`,
			help: "so long each restart counts: one that was longer ago is forgotten; \"ever\": " +
				"none is", set: spanOrEver(func(f *Failure) *int64 { return &f.WithinMS })},
		{name: "places", takes: "N", preset: "8 times restarts, at most 64, or as restarts",
			help: "with process = \"restart\": so many processes can be started in the place of " +
				"ranks in the life of a cluster; each has a place in all tables from the beginning",
			set: count(func(f *Failure) *int { return &f.Places }, 1, MaxStandbys)},
	}
}

func clusterFields() []field[Cluster] {
	return []field[Cluster]{
		{name: "name", takes: `"NAME"`,
			help: "what it is called: 1 to 64 letters, digits, and . _ -", required: true,
			set: text(func(c *Cluster) *string { return &c.Name })},
		{name: "program", takes: `"FILE"`,
			help: "the MPI program; with a slash relative to its directory, else searched " +
				"in PATH",
			required: true, set: text(func(c *Cluster) *string { return &c.Program })},
		{name: "args", takes: `["ARG", ...]`, preset: "none", help: "its arguments",
			set: words(func(c *Cluster) *[]string { return &c.Args })},
		{name: "ranks", takes: "M", help: "processes, the size of its MPI_COMM_WORLD",
			required: true, set: count(func(c *Cluster) *int { return &c.Ranks }, 1, MaxRanks)},
		{name: "standbys", takes: "N", preset: "0",
			help: "processes that wait in MPI_Init to take the rank of one that fails",
			set:  count(func(c *Cluster) *int { return &c.Standbys }, 0, MaxStandbys)},
		{name: "takeover", takes: `"notified" or "transparent"`, preset: `"notified"`,
			help: "with standbys, or process = \"restart\": the program is told of a death and " +
				"restores, or nobody notices, and the rank goes on at its last MPISP_Commit",
			set: choice(func(c *Cluster) *string { return &c.Takeover }, Notified, Transparent)},
		{name: "copies", takes: `"none" or "other host"`, preset: `"none"`,
			help: "with takeover = \"transparent\": what a rank needs for that is in memory of " +
				"its host, where all ranks and standbys run, or of another host, too, so that " +
				"hosts may be lost",
			set: choice(func(c *Cluster) *string { return &c.Copies }, NoCopies, OtherHost)},
		{name: "hosts", takes: `["NAME:SLOTS", ...]`, preset: "the host of spxrun",
			help: "where it runs; as spxrun -host",
			set:  words(func(c *Cluster) *[]string { return &c.Hosts })},
		{name: "directory", takes: `"DIR"`, preset: "the system's", help: "working directory",
			set: text(func(c *Cluster) *string { return &c.Directory })},
		{name: "environment", takes: `{ NAME = "value" }`, preset: "none",
			help: "variables, beside those of spxrun",
			set:  environment(func(c *Cluster) *[]string { return &c.Environment })},
		{name: "start", takes: "a table", preset: "[start]", help: "as [start], for this cluster",
			set: inner(func(c *Cluster) *Start { return &c.Start }, "start", startFields)},
		{name: "failure", takes: "a table", preset: "[failure]",
			help: "as [failure], for this cluster", set: inner(
				func(c *Cluster) *Failure { return &c.Failure }, "failure", failureFields)},
	}
}

func linkFields() []field[Link] {
	ends := `"NAME" or ["NAME", ...]`
	return []field[Link]{
		{name: "from", takes: ends, help: "the cluster, or the clusters, whose data goes in",
			required: true, set: names(func(l *Link) *[]string { return &l.From })},
		{name: "to", takes: ends, help: "where it comes out", required: true,
			set: names(func(l *Link) *[]string { return &l.To })},
		{name: "name", takes: `"NAME"`, preset: `"FROM-TO"`, help: "what the link is called",
			set: text(func(l *Link) *string { return &l.Name })},
		{name: "iops", takes: "K", preset: "1", help: "I/O processes",
			set: count(func(l *Link) *int { return &l.IOPs }, 1, MaxIOPs)},
		{name: "program", takes: `"FILE"`, preset: `"` + Relay + `"`,
			help: "what the I/O processes run",
			set:  text(func(l *Link) *string { return &l.Program })},
		{name: "args", takes: `["ARG", ...]`, preset: "none", help: "its arguments",
			set: words(func(l *Link) *[]string { return &l.Args })},
		{name: "hosts", takes: `["NAME:SLOTS", ...]`, preset: "those of the first cluster of to",
			help: "where they run", set: words(func(l *Link) *[]string { return &l.Hosts })},
		{name: "directory", takes: `"DIR"`, preset: "the system's", help: "their working directory",
			set: text(func(l *Link) *string { return &l.Directory })},
		{name: "environment", takes: `{ NAME = "value" }`, preset: "none",
			help: "variables, beside those of spxrun",
			set:  environment(func(l *Link) *[]string { return &l.Environment })},
		{name: "choice", takes: "a policy", preset: `"round-robin"`,
			help: "how a sender chooses an I/O process: round-robin, least-loaded, " +
				"shortest-queue, tag, key, weighted (by weights), library (by that shared object)",
			set: choice(func(l *Link) *string { return &l.Choice }, ChoiceRoundRobin,
				ChoiceLeastLoaded, ChoiceShortest, ChoiceTag, ChoiceKey, ChoiceWeighted,
				ChoiceLibrary)},
		{name: "weights", takes: "[N, ...]",
			help: "for choice = \"weighted\": one for each I/O process",
			set:  counts(func(l *Link) *[]int { return &l.Weights }, 0, 1_000_000)},
		{name: "library", takes: `"FILE"`, help: "for choice = \"library\": the shared object",
			set: text(func(l *Link) *string { return &l.Library })},
		{name: "security", takes: `"key" or "tls"`, preset: `"key"`,
			help: "the system's key, or that and encryption, of all connections of the system",
			set:  choice(func(l *Link) *string { return &l.Security }, SecurityKey, SecurityTLS)},
		{name: "bidirectional", takes: "true or false", preset: "false",
			help: "data goes from to to from as well",
			set:  flag(func(l *Link) *bool { return &l.Bidirectional })},
	}
}

// sections are the tables of a file, for the manual.
var sections = []struct{ head, help string }{
	{"[system]", "The system as a whole; may be left out."},
	{"[start]",
		"For whom a cluster waits when the system starts; a cluster may say otherwise. In any " +
			"case `MPI_Init` returns when all processes of the own cluster have been made, " +
			"standbys too. Programs that do not use MPI count as complete when they have ended; " +
			"I/O processes wait for the clusters that they join."},
	{"[failure]", "What is done by kind of failure; a cluster may say otherwise."},
	{"[[cluster]]", "A cluster: one table for each."},
	{"[[link]]", "A link between clusters: one table for each."},
}

// Manual is the schema as text: a table in the form of Markdown for each table of the file.
func Manual() string {
	var b strings.Builder
	rows := [][]row{rowsOf(systemFields()), rowsOf(startFields()), rowsOf(failureFields()),
		rowsOf(clusterFields()), rowsOf(linkFields())}
	for i, s := range sections {
		fmt.Fprintf(&b,
			"### `%s`\n%s\n\n| key | value | if it is not given | |\n|---|---|---|---|\n", s.head,
			s.help)
		for _, r := range rows[i] {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.name, r.takes, r.preset, r.help)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

type row struct{ name, takes, preset, help string }

func rowsOf[T any](fields []field[T]) (out []row) {
	for _, f := range fields {
		preset := f.preset
		switch {
		case f.required:
			preset = "must be given"
		case preset == "":
			preset = "-"
		}
		out = append(out, row{f.name, f.takes, preset, f.help})
	}
	return out
}
