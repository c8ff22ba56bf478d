package agent

import (
	"testing"

	"libspx/cluster/start"
	"libspx/launch/job"
	"libspx/launch/service"
)

// hearer is a process that waits for answers.
type hearer struct{ heard []*service.Message }

func (h *hearer) Send(m *service.Message) error { h.heard = append(h.heard, m); return nil }
func (h *hearer) Gone() bool                    { return false }
func (h *hearer) Close()                        {}

// The ranks of a cluster are in MPI_Init before its standbys have been made on another host: they
// leave it when all have. Those that have ended meanwhile have not come.
func TestArrivesEarly(t *testing.T) {
	a, _ := leadsOn()
	m := job.New(job.Config{Procs: 5, Parts: a.spec.Parts, Leads: true})
	a.machine = m
	for _, e := range []job.Event{job.Attached{Part: 2}, job.Placed{Part: 2},
		job.Spawned{Proc: 1, Part: 2}, job.Spawned{Proc: 2, Part: 2, Rank: 1}} {
		m.Step(e, 0)
	}
	a.beginning.open([]start.Member{{Name: "cluster first"},
		{Name: "cluster other", Procs: 2, Limit: 1 << 40}, {Name: "cluster own"},
		{Name: "I/O process x"}})
	var one, two hearer
	arrive := func(h *hearer, proc, rank int) {
		a.ranks[proc].alive, a.ranks[proc].in = true, rank
		a.arrived(&question{&service.Message{Kind: service.Arrive, Number: uint64(proc), FD: -1},
			h})
		a.arrivedEarly()
	}
	arrive(&one, 1, 0)
	arrive(&two, 2, 1)
	if len(one.heard)+len(two.heard) > 0 {
		t.Error("a rank leaves MPI_Init before its cluster has been made")
	}
	a.ranks[2].alive = false
	m.Step(job.Manned{Part: 2, Crew: job.Crew{World: 7, Procs: []int{1, 2}}}, 0)
	a.arrivedEarly()
	if len(one.heard) > 0 {
		t.Error("one that has ended counts as one that has come")
	}
	arrive(&two, 2, 1)
	if len(one.heard) != 1 || len(two.heard) != 1 || one.heard[0].Class != 0 {
		t.Errorf("%+v, %+v", one.heard, two.heard)
	}
	m.Step(job.Attached{Part: 2}, 0)
	arrive(&one, 1, 0)
	a.beginning.forget(&one)
	if len(a.beginning.early) > 0 {
		t.Error("one that has hung up still waits")
	}
}
