// Package follow is one host's copy of what decides about a job (package launch/job), driven by the
// sequence of events that several hosts keep (package ft/replica). It joins the two, and does
// nothing itself.
package follow

import (
	"time"

	"libspx/ft/replica"
	"libspx/launch/job"
)

// A Copy is one host's copy of a job's machine. All hosts that keep the sequence of the job's
// events (package ft/replica) have one, and since it is a function of that sequence alone, all come
// to the same decisions: the host that leads carries out what only one may, and another one that
// comes to lead goes on from its own copy.
type Copy struct {
	Machine *job.Machine
	// what another host has handed over was no machine of this job: this copy cannot go on
	Err     error
	cfg     job.Config
	decided func(job.Event, []job.Action, replica.Entry)
}

// New makes the copy of a job that is about to start. cfg is the same at all hosts, its Host
// included. decided hears of each event that is one, and of what is to be done.
func New(cfg job.Config, decided func(job.Event, []job.Action, replica.Entry)) *Copy {
	return &Copy{Machine: job.New(cfg), cfg: cfg, decided: decided}
}

// Apply takes the next event. Its time is that of the host that led when it came in.
func (c *Copy) Apply(entry replica.Entry) {
	e, err := job.DecodeEvent(entry.Data)
	if err != nil || c.Err != nil || !c.Machine.Accepts(e) {
		return
	}
	c.decided(e, c.Machine.Step(e, time.Duration(entry.At)), entry)
}

// Save is what the machine is.
func (c *Copy) Save() []byte { return c.Machine.Save() }

// Load takes over what the machine is at another host.
func (c *Copy) Load(saved []byte, _ replica.Mark) {
	m, err := job.Resume(c.cfg, saved)
	if err != nil {
		c.Err = err
		return
	}
	c.Machine = m
}
