package follow

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"libspx/ft/replica"
	"libspx/launch/job"
)

// A Mirror is a copy of a machine that one agent steps by itself, and whose events that agent
// writes into the sequence, each with the time at which it has stepped the machine. As far as a
// Mirror has come, it is what that machine was then. Which agent that is stands in the sequence,
// too: a Claim makes its agent the one, and from there on what the one before has written counts
// for nothing. Entries of other agents never do.
type Mirror struct {
	Events  uint64 // that were applied
	Decider int    // agent whose events count
	Era     uint64 // how many others there were before it
	Copy
	ends map[int]job.Publish // by process: what others are to know of its end
}

// NewMirror makes the copy of a job that is about to start. cfg is that of the machine that the
// agent with the number decider steps.
func NewMirror(cfg job.Config, decider int) *Mirror {
	m := &Mirror{Decider: decider, ends: map[int]job.Publish{}}
	m.Copy = *New(cfg, m.decided)
	return m
}

// decided keeps what is to be published.
func (m *Mirror) decided(e job.Event, list []job.Action, _ replica.Entry) {
	switch e := e.(type) {
	case job.Started:
		delete(m.ends, e.Proc)
	case job.Spawned:
		delete(m.ends, e.Proc)
	}
	for _, act := range list {
		if p, ok := act.(job.Publish); ok {
			m.ends[p.Proc] = p
		}
	}
}

// Ends are what processes are to know of those that have ended, by number.
func (m *Mirror) Ends() (out []job.Publish) {
	for _, p := range m.ends {
		out = append(out, p)
	}
	slices.SortFunc(out, func(x, y job.Publish) int { return cmp.Compare(x.Proc, y.Proc) })
	return out
}

// Inherit is a machine that goes on where the mirror is.
func (m *Mirror) Inherit() (*job.Machine, error) {
	if m.Err != nil {
		return nil, m.Err
	}
	return job.Resume(m.cfg, m.Machine.Save())
}

// Note is the entry for an event that the machine was stepped with at a time.
func Note(e job.Event, at time.Duration) []byte {
	return append(binary.AppendUvarint(nil, uint64(max(at, 0))), job.EncodeEvent(e)...)
}

// claimWord stands in a Claim where a Note has its time.
const claimWord = 1 << 63

// Claim is the entry by which its agent becomes the one that decides, if there have been so many
// others when it is applied.
func Claim(era uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, claimWord), era)
}

// Digest stands for what the machine is (job.Machine.Digest).
func (m *Mirror) Digest() [32]byte { return m.Machine.Digest() }

// Apply takes the next entry.
func (m *Mirror) Apply(entry replica.Entry) {
	at, n := binary.Uvarint(entry.Data)
	if n > 0 && at == claimWord {
		m.claimed(entry.Origin, entry.Data[n:])
		return
	}
	if entry.Origin != m.Decider || n <= 0 || at > 1<<62 {
		return
	}
	entry.At, entry.Data = int64(at), entry.Data[n:]
	m.Events++
	m.Copy.Apply(entry)
}

// claimed lets another agent decide. Of two that claim the same the first one does, and who decides
// claims nothing.
func (m *Mirror) claimed(agent int, text []byte) {
	if era, n := binary.Uvarint(text); n > 0 && n == len(text) && era == m.Era &&
		agent != m.Decider {
		m.Decider, m.Era = agent, m.Era+1
	}
}

// Save is what the mirror is.
func (m *Mirror) Save() []byte {
	ends, err := json.Marshal(m.Ends())
	if err != nil {
		panic(err) // of numbers
	}
	b := binary.AppendUvarint(nil, m.Events)
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(m.Decider)), m.Era)
	b = append(binary.AppendUvarint(b, uint64(len(ends))), ends...)
	return append(b, m.Copy.Save()...)
}

var errNoMirror = errors.New("follow: this is not what a mirror was")

// Load takes over what the mirror of another host is.
func (m *Mirror) Load(saved []byte, at replica.Mark) {
	var of [4]uint64 // events, decider, era, and how long the list of ends is
	for i := range of {
		x, n := binary.Uvarint(saved)
		if n <= 0 {
			m.Err = errNoMirror
			return
		}
		of[i], saved = x, saved[n:]
	}
	var ends []job.Publish
	if of[1] >= replica.MostAgents || of[3] > uint64(len(saved)) ||
		json.Unmarshal(saved[:of[3]], &ends) != nil {
		m.Err = errNoMirror
		return
	}
	m.Events, m.Decider, m.Era, m.ends = of[0], int(of[1]), of[2], map[int]job.Publish{}
	for _, p := range ends {
		m.ends[p.Proc] = p
	}
	m.Copy.Load(saved[of[3]:], at)
}
