package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// The form in which an event stands in a sequence of events that several hosts keep (package
// launch/follow): its name, a space, and its fields in JSON.

// MostProcs is more processes than any job has.
const MostProcs = 1 << 20

// mostNew is more processes than are spawned at once: their numbers follow those that there are.
const mostNew = 1 << 16

// events are one of each kind.
var events = map[string]reflect.Type{}

func init() {
	for _, e := range []Event{Started{}, Spawned{}, NotStarted{}, Split{}, AllStarted{}, Ended{},
		ExternalAborted{}, TookOver{}, Manned{}, Placed{}, NotRestarted{}, Inherited{}, Hung{},
		Slowed{}, WentOn{},
		Grown{}, Depart{}, Coming{}, Attached{}, Detached{}, Judged{}, PartSignalled{}, Joined{},
		Signalled{}, FrontLost{}, Reported{}, Looked{}, Tick{}} {
		t := reflect.TypeOf(e)
		events[t.Name()] = t
	}
}

// EncodeEvent is the form of an event.
func EncodeEvent(e Event) []byte {
	t := reflect.TypeOf(e)
	if events[t.Name()] != t {
		panic(fmt.Sprintf("job: unknown event %T", e))
	}
	fields, err := json.Marshal(e)
	if err != nil {
		panic(err) // of numbers, texts and lists of these
	}
	return append([]byte(t.Name()+" "), fields...)
}

var errNoEvent = errors.New("job: no event")

// DecodeEvent reads an event.
func DecodeEvent(b []byte) (Event, error) {
	name, fields, ok := bytes.Cut(b, []byte(" "))
	t := events[string(name)]
	if !ok || t == nil {
		return nil, errNoEvent
	}
	e := reflect.New(t)
	d := json.NewDecoder(bytes.NewReader(fields))
	d.DisallowUnknownFields()
	if err := d.Decode(e.Interface()); err != nil || d.InputOffset() != int64(len(fields)) {
		return nil, errNoEvent
	}
	return e.Elem().Interface(), nil
}

// Accepts reports whether an event is possible in the job's current state. Reports of other hosts'
// agents are not trusted: impossible events must not reach Step.
func (m *Machine) Accepts(e Event) bool {
	switch e := e.(type) {
	case Started:
		return m.isProc(e.Proc) && !m.procs[e.Proc].alive && e.Part >= 0 && e.Part <= len(m.parts)
	case Spawned:
		return e.Proc >= 0 && e.Proc < min(MostProcs, len(m.procs)+mostNew) &&
			!(m.isProc(e.Proc) && m.procs[e.Proc].alive) && e.Part >= 0 && e.Part <= len(m.parts)
	case Ended:
		return m.isProc(e.Proc) && m.procs[e.Proc].alive && m.areProcs(e.Connected) &&
			m.areProcs(e.Others)
	case ExternalAborted:
		return m.areProcs(e.Connected)
	case TookOver:
		return m.areProcs(e.Procs)
	case Manned:
		return m.isPart(e.Part) && m.areProcs(e.Crew.Procs) &&
			!slices.ContainsFunc(e.Crew.Standbys,
				func(i int) bool { return i < 0 || i >= min(MostProcs, len(m.procs)+mostNew) })
	case Placed:
		return m.isPart(e.Part)
	case NotRestarted:
		return m.isPart(e.Part)
	case Grown:
		n := len(m.parts) + len(e.Parts)
		return len(m.parts) > 0 && n <= MostProcs && !slices.ContainsFunc(e.Parts,
			func(p Part) bool { return p.With < 0 || p.With > n || p.Restarts < 0 || p.Cold < 0 })
	case Depart:
		return m.isPart(e.Part) && e.Limit >= 0
	case Coming:
		return e.Clusters >= 0
	case Attached:
		return m.isPart(e.Part)
	case Detached:
		return m.isPart(e.Part)
	case PartSignalled:
		return m.isPart(e.Part)
	}
	return true
}

func (m *Machine) isProc(i int) bool { return i >= 0 && i < len(m.procs) }
func (m *Machine) isPart(k int) bool { return k >= 1 && k <= len(m.parts) }

func (m *Machine) areProcs(list []int) bool {
	for _, i := range list {
		if !m.isProc(i) {
			return false
		}
	}
	return true
}
