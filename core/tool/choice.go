package tool

import (
	"slices"

	"libspx/core/coll"
)

// What is chosen for collectives, for tools: for each operation two performance variables of a
// communicator, the algorithm and the reason of its last call, which are states (MPI-5.0, 16.3.7)
// whose enumerations have the names that core/coll has; and an event for each choice. Numbers and
// names are core/coll's: this file has nothing about algorithms.

// allCounters is how many there are with those of choices.
const allCounters = Counters + 1 + 2*Counter(coll.Kinds)

// ChoiceCounter is what a variable of an operation counts: the number of the algorithm, or of the
// reason.
func ChoiceCounter(k coll.Kind, reason bool) Counter {
	c := Counters + 1 + 2*Counter(k)
	if reason {
		c++
	}
	return c
}

// Choice is the operation of a counter; false: it is none of ChoiceCounter's.
func (c Counter) Choice() (k coll.Kind, reason, ok bool) {
	c -= Counters + 1
	return coll.Kind(c / 2), c%2 == 1, c >= 0 && c < 2*Counter(coll.Kinds)
}

func choiceVariables() (list []Variable) {
	for k := range coll.Kinds {
		name := "spx_coll_" + k.String()
		list = append(list,
			Variable{Entry{name + "_algorithm", "collectives",
				"the algorithm of the last " + k.String() + " on a communicator"},
				ClassState, UserDetail, BindComm, ChoiceCounter(k, false)},
			Variable{Entry{name + "_reason", "collectives",
				"why that was chosen: a setting, or a line of the table of the library"},
				ClassState, UserDetail, BindComm, ChoiceCounter(k, true)})
	}
	return list
}

// Enumerations behind those of settings: for each operation its algorithms and its reasons, then
// that of the event.
const eventEnum = 2 * int(coll.Kinds)

func (s *State) enumOfPvar(v *Variable) Handle {
	if !v.isState() {
		return NoHandle
	}
	return s.choiceEnum(int(v.Counter - Counters - 1))
}

func (s *State) enumOfEvent(kind EventKind) Handle {
	if kind != CollectiveChosen {
		return NoHandle
	}
	return s.choiceEnum(eventEnum)
}

func (s *State) choiceEnum(i int) Handle {
	return kindEnum<<kindShift |
		Handle(len(s.settings)+1+i)
}

// choiceItems are the items of enumeration i of choiceEnum, and its name; nil: there is none.
func choiceItems(i int) (items []string, name string) {
	switch k := coll.Kind(i / 2); {
	case i == eventEnum:
		return eventItems, "spx_collective_chosen"
	case i > eventEnum:
		return nil, ""
	case i%2 == 0:
		return coll.Choices(k), "spx_coll_" + k.String() + "_algorithm"
	default:
		return coll.Reasons(k), "spx_coll_" + k.String() + "_reason"
	}
}

// eventItems are an operation and an algorithm each, as "bcast binomial"; firstItem is where those
// of an operation begin.
var eventItems, firstItem = func() (items []string, first [coll.Kinds]int) {
	for k := range coll.Kinds {
		first[k] = len(items)
		for _, algorithm := range coll.Choices(k) {
			items = append(items, k.String()+" "+algorithm)
		}
	}
	return slices.Clip(items), first
}()

// ChoiceOf is the item of the event's enumeration for a choice.
func ChoiceOf(k coll.Kind, c coll.Choice) int { return firstItem[k] + int(c.Algorithm) }

// ReadState is ReadPvar of a variable that is a state; false: it is none, or none of this session.
func (s *State) ReadState(in, key Handle, buf *int32) (Code, bool) {
	h, code := s.pvarOf(in, key)
	if code != Success || !h.v.isState() {
		return code, false
	}
	return needInt(buf, int(s.now(h))), true
}
