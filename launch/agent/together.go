package agent

import "libspx/launch/job"

// stepAll does what step does for events that have come together, as the ends of all processes of a
// host that is lost: the others that keep copies of what decides are waited for once, each host
// gets one message, and the processes there are woken up once. With a hundred events and a thousand
// processes each of these takes longer than all else.
func (a *agent) stepAll(events []job.Event) {
	for len(events) > 0 && !a.succession.left {
		events = events[a.stepSome(events):]
	}
}

// stepSome does so for the first of them, up to one of which more follows than that others hear of
// it: what is decided next may count on that. It returns how many these were.
func (a *agent) stepSome(events []job.Event) int {
	waits := a.waitsForOthers()
	var list []decision
	var all, down []job.Action
	more := false
	for _, e := range events {
		d := a.decide(e)
		for _, action := range d.actions {
			switch action.(type) {
			case job.Publish, job.Say:
			default:
				more = true
			}
		}
		list, all = append(list, d), append(all, d.actions...)
		if more {
			break
		}
	}
	n := len(list)
	if waits && job.Weighty(all) && !a.sequence.settled() {
		a.leave("")
		return n
	}
	if more {
		n--
	}
	for _, d := range list[:n] {
		for _, action := range d.actions {
			if _, publish := action.(job.Publish); publish {
				down = append(down, action)
			}
		}
	}
	a.allToAll(down)
	a.segment.Together(func() {
		for _, d := range list[:n] {
			for _, action := range d.actions {
				if s, ok := action.(job.Say); ok {
					a.sayAttached(s)
				}
				if !a.succession.gathers || !comesAgain(action) {
					a.carryOut(action)
				}
			}
		}
	})
	for _, d := range list[:n] {
		a.follows(d)
	}
	for _, d := range list[n:] {
		a.perform(d)
	}
	return len(list)
}
