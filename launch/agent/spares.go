package agent

import (
	"fmt"

	"golang.org/x/sys/unix"

	"libspx/cluster/layout"
	"libspx/launch/job"
)

// Processes that are started in the place of ranks, of a cluster that was attached: its places for
// them are members of its world from the beginning, as those of a cluster that the first spxrun
// starts are of the first one. The agent of their host keeps what the world was made from, and
// starts one of them when it is told to.

// spares are such places of a part.
type spares struct {
	batch *batch
	here  int // processes of its world on this host, these among them
}

// isSpare: a member of a world that is being made is started later, if at all.
func (b *batch) isSpare(rank int) bool { return rank >= len(b.members)-b.cold }

// keepSpares keeps what is needed to start the members of a world that are started later, in place
// of those of a world that the part has had before.
func (a *agent) keepSpares(b *batch, here int) {
	part, _, _ := partOf(a.spec, b.question)
	if part == 0 {
		return
	}
	if old := a.spares[part]; old != nil {
		for rank, m := range old.batch.members {
			if r := a.rank(m.Proc); old.batch.isSpare(rank) && !r.alive &&
				r.world == old.batch.world && r.listener != 0 {
				unix.Close(r.listener - 1)
				r.listener = 0
			}
		}
		delete(a.spares, part)
	}
	if b.cold > 0 {
		if a.spares == nil {
			a.spares = map[int]*spares{}
		}
		a.spares[part] = &spares{b, here}
	}
}

// startSpare starts a member of a world that was made before, if its place is on this host.
func (a *agent) startSpare(s *spares, act job.StartCold) {
	b := s.batch
	if act.Rank >= len(b.members) || !b.isSpare(act.Rank) {
		return
	}
	m := b.members[act.Rank]
	a.segment.SetOrder(m.Proc, act.Order)
	// or it was told twice
	if r := a.rank(m.Proc); m.Host != a.self || r.world != b.world || r.pid != 0 {
		return
	}
	fail := func(err error) {
		a.step(job.NotStarted{Proc: m.Proc, Text: notStarted(act.Rank, b.files[m.Program], err) +
			a.onHost(), Status: statusOf(err)})
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		fail(fmt.Errorf("/dev/null: %w", err))
		return
	}
	defer unix.Close(null)
	local := 0
	for _, o := range b.members[:act.Rank] {
		if o.Host == a.self {
			local++
		}
	}
	env := a.spawnEnvironment(b, m.Program, s.here)
	if text := a.layoutText(); text != "" {
		// it is not that with which the others were started
		env = replaced(env, layout.Variable, text)
	}
	if err := a.startSpawned(b, act.Rank, local, null, env); err != nil {
		fail(err)
	}
}
