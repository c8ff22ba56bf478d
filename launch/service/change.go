package service

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// A Change says what has come of a command to a program whose number of processes can be changed.
type Change struct {
	From, To int     // numbers of processes
	Seconds  float64 // that it took
	Error    string  // the first command that could not be carried out; empty: none
}

// String is the form in which a Change travels: from, to, seconds, error, separated by blanks.
func (c Change) String() string {
	return strings.TrimSpace(fmt.Sprintf("%d %d %.6f %s", c.From, c.To, c.Seconds, c.Error))
}

// ParseChange reads what String has made.
func ParseChange(text string) (c Change, err error) {
	words := append(strings.SplitN(text, " ", 4), "")
	if len(words) < 4 {
		return c, fmt.Errorf("%.80q is no report of a change", text)
	}
	if c.From, err = strconv.Atoi(words[0]); err == nil {
		c.To, err = strconv.Atoi(words[1])
	}
	if err == nil {
		c.Seconds, err = strconv.ParseFloat(words[2], 64)
	}
	c.Error = words[3]
	return c, err
}

// About describes a job.
type About struct {
	Job      string  `json:"job"` // 16 hexadecimal digits
	Host     string  `json:"host"`
	Program  string  `json:"program"`          // the first of the command line, with its arguments
	Procs    int     `json:"procs"`            // of the program that takes commands, else all
	Hosts    int     `json:"hosts"`            // on which it has agents
	Since    string  `json:"since"`            // when it was started, RFC 3339
	Commands bool    `json:"commands"`         // its number of processes can be changed
	System   *System `json:"system,omitempty"` // it is a system of clusters
}

// Host describes a host of a job.
type Host struct {
	Name  string `json:"name"`
	Slots int    `json:"slots"`           // for processes that are spawned
	Procs int    `json:"procs"`           // that run there
	State string `json:"state,omitempty"` // lost or removed; empty: it is there
	Copy  *Copy  `json:"copy,omitempty"`  // of what decides about the job; nil: it has none
}

// Copy describes a host's copy of what decides about a job (docs/decisions/leaders.md).
type Copy struct {
	Leads bool `json:"leads"` // its agent gives the copies their order
	// its agent is one of those of which a majority has to have an event
	Votes  bool   `json:"votes"`
	Events uint64 `json:"events"` // of the job that are in it
	// of what these have made: the same for the same events
	Digest   string `json:"digest"`
	Original string `json:"original,omitempty"` // the same of what decides itself, where that is
	// where the agents of the other hosts reach its agent
	At      string `json:"at"`
	Refused uint64 `json:"refused,omitempty"` // calls there that none of these has made
}

// System describes a system of clusters: how its parts are, the clusters and then the I/O
// processes, as the table says who they are.
type System struct {
	Layout json.RawMessage `json:"layout"` // of package cluster/layout
	Parts  []Part          `json:"parts"`

	// host whose master is the system's; empty: one is being elected
	Master    string `json:"master"`
	MasterPid int    `json:"master_pid,omitempty"` // its process there
	Term      uint64 `json:"term"`                 // of that one
	Version   uint64 `json:"version"`              // of what it has told all last

	Refused uint64 `json:"refused,omitempty"` // calls of those who have not proved to have its key
	// where clusters call that come by themselves; empty: nowhere
	Meets string `json:"meets,omitempty"`
}

// Part is a cluster, or an I/O process.
type Part struct {
	Name    string `json:"name"`
	Program string `json:"program"`
	// starting, running, degraded, stopping, restarting, gone or ended
	State    string `json:"state"`
	Alive    int    `json:"alive"` // processes
	Restarts int    `json:"restarts"`
	// places for processes that are started in the place of ranks, which are left
	Cold int `json:"cold,omitempty"`
	Left int `json:"left,omitempty"` // so many of these may be started now

	Master    string `json:"master,omitempty"`     // of a cluster: host whose master is its master
	MasterPid int    `json:"master_pid,omitempty"` // its process there
}
