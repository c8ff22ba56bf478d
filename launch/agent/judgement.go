package agent

import (
	"slices"
	"time"

	"libspx/launch/control"
	"libspx/launch/job"
)

// What the end of a process means may depend on the processes of other hosts: whether one of them
// has called MPI_Init, or an error handler that returns. These hosts are asked before the machine
// decides.

// A judgement is the end of a process about which the other hosts are asked before the machine
// decides what it means.
type judgement struct {
	number int
	end    job.Ended
	open   map[*remoteHost]bool // hosts that have not answered
	until  time.Time
}

// judge hands the end of a process to the machine; where its meaning depends on the processes of
// other hosts, after asking them.
func (a *agent) judge(e job.Ended) { a.judgeAll([]job.Ended{e}) }

// judgeAll does so for several that have come together.
func (a *agent) judgeAll(ends []job.Ended) {
	var clear []job.Event
	for _, e := range ends {
		if m, decides := a.machine.(*job.Machine); decides && a.succession.inherited &&
			!m.Lives(e.Proc) {
			a.disown(e.Proc)
			continue
		}
		e.Returns, e.OtherMPI = e.Returns || a.anyReturns(), e.OtherMPI || a.anyMPI(e.Proc)
		told := a.spec.Succeeds && e.Owner == job.OwnerInit // whatever the others report
		if !a.waitsFor(func(*remoteHost) bool { return true }) || e.Owner == job.OwnerFinalized ||
			told || e.Spawning || a.machine.Ending() {
			clear = append(clear, e)
		} else {
			a.survey(e)
		}
	}
	switch len(clear) {
	case 0:
	case 1:
		a.step(clear[0])
	default:
		a.stepAll(clear)
	}
}

// survey asks the other hosts what the end of a process means.
func (a *agent) survey(e job.Ended) {
	a.surveys++
	j := &judgement{number: a.surveys, end: e, open: map[*remoteHost]bool{},
		until: time.Now().Add(surveyLimit)}
	a.judging = append(a.judging, j)
	for _, h := range a.others {
		if !h.gone {
			j.open[h] = true
			h.box.put(&control.Message{Survey: j.number})
		}
	}
}

func (a *agent) answered(h *remoteHost, f *control.Facts) {
	for i, j := range a.judging {
		if j.number != f.Survey || !j.open[h] {
			continue
		}
		delete(j.open, h)
		j.end.Returns, j.end.OtherMPI = j.end.Returns || f.Returns, j.end.OtherMPI ||
			slices.Contains(f.MPI, a.ranks[j.end.Proc].part)
		if len(j.open) == 0 {
			a.judging = slices.Delete(a.judging, i, i+1)
			a.step(j.end)
		}
		return
	}
}

// hurryJudgements decides without those who do not answer.
func (a *agent) hurryJudgements() {
	for now := time.Now(); len(a.judging) > 0 && now.After(a.judging[0].until); {
		j := a.judging[0]
		a.judging = a.judging[1:]
		a.step(j.end)
	}
}
