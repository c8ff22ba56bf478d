package sim

import (
	"fmt"

	"libspx/ft/agree"
	"libspx/ft/member"
	"libspx/ft/rankset"
)

// FT describes a run of the failure protocols: every living rank makes Rounds agreements one after another, as fast as
// it can, while ranks die; somebody may revoke.
type FT struct {
	Ranks  int
	Rounds int
	Deaths int  // ranks that die at random moments; at least one lives
	Revoke bool // a random rank revokes at a random moment
	// Mutate, if set, damages the protocol, to show that the checks can fail: it returns what arrives instead of data, nil for nothing.
	Mutate func(from, to int, data []byte) []byte
}

// Result is what a run cost.
type Result struct {
	Messages int
	Took     Time
}

// span is the simulated time in which deaths and revocations fall, per agreement.
const span = Time(60)

// ftRank is a simulated process.
type ftRank struct {
	m       *member.Machine
	calling bool             // in an agreement
	known   rankset.Set      // deaths it has been told of
	returns []agree.Decision // of the agreements it has returned from
	gave    []agree.Contribution
	doom    int // it dies instead of its next send but doom; negative: it does not
}

type ftRun struct {
	*World
	cfg     FT
	ranks   []*ftRank
	dead    rankset.Set
	failure error
}

// RunFT simulates one schedule; everything random in it comes from seed. The error names the property that was violated.
func RunFT(cfg FT, seed uint64) (Result, error) {
	r := &ftRun{World: NewWorld(cfg.Ranks, seed), cfg: cfg}
	for i := range cfg.Ranks {
		r.ranks = append(r.ranks, &ftRank{m: member.New(cfg.Ranks, i, rankset.Set{}), doom: -1})
		r.After(Time(r.Rand.IntN(30)), func() { r.call(i) })
	}
	total := int(span) * (cfg.Rounds + 1)
	for _, victim := range r.Rand.Perm(cfg.Ranks)[:min(cfg.Deaths, cfg.Ranks-1)] {
		r.After(Time(r.Rand.IntN(total)), func() { r.doomed(victim) })
	}
	if cfg.Revoke {
		who := r.Rand.IntN(cfg.Ranks)
		r.After(Time(r.Rand.IntN(total)), func() {
			if r.Alive[who] {
				r.act(who, r.ranks[who].m.Revoke())
			}
		})
	}
	for r.failure == nil && r.Step() {
	}
	if r.failure == nil {
		r.failure = r.finished()
	}
	return Result{Messages: r.Sent, Took: r.Now}, r.failure
}

// doomed lets a rank die at once, or between two of its next sends.
func (r *ftRun) doomed(victim int) {
	if r.Rand.IntN(2) == 0 {
		r.kill(victim)
		return
	}
	r.ranks[victim].doom = r.Rand.IntN(4)
	r.After(Time(r.Rand.IntN(40)), func() { r.kill(victim) }) // if it does not send that much
}

func (r *ftRun) kill(victim int) {
	if !r.Alive[victim] {
		return
	}
	r.Kill(victim)
	r.dead = r.dead.Union(rankset.Of(victim))
	for i, k := range r.ranks {
		if r.Alive[i] {
			r.After(1+Time(r.Rand.IntN(50)), func() {
				if r.Alive[i] {
					k.known = k.known.Union(rankset.Of(victim))
					r.act(i, k.m.Failed(rankset.Of(victim)))
				}
			})
		}
	}
}

// call starts rank i's next agreement, if it has one left.
func (r *ftRun) call(i int) {
	k := r.ranks[i]
	if !r.Alive[i] || len(k.gave) == r.cfg.Rounds {
		return
	}
	c := agree.Contribution{Flags: ^uint32(0), Acked: k.known, Context: uint64(i+1)<<32 | uint64(len(k.gave))}
	if r.Rand.IntN(4) == 0 {
		c.Flags &^= 1 << r.Rand.IntN(32)
	}
	k.gave = append(k.gave, c)
	k.calling = true
	r.act(i, k.m.Agree(c))
}

// act carries out what rank i's machine asks for, and checks what it returns.
func (r *ftRun) act(i int, out member.Output) {
	k := r.ranks[i]
	for _, s := range out.Sends {
		if k.doom == 0 {
			r.kill(i)
			return
		}
		k.doom--
		data := s.Data
		if r.cfg.Mutate != nil {
			if data = r.cfg.Mutate(i, s.To, data); data == nil {
				continue
			}
		}
		r.Send(i, s.To, func() {
			more, err := r.ranks[s.To].m.Receive(i, data)
			if err != nil {
				r.violated("rank %d refuses a message of rank %d: %v", s.To, i, err)
				return
			}
			r.act(s.To, more)
		})
	}
	if out.Done != nil {
		r.returned(i, *out.Done)
	}
}

func (r *ftRun) violated(format string, args ...any) {
	if r.failure == nil {
		r.failure = fmt.Errorf("at %d us: "+format, append([]any{r.Now}, args...)...)
	}
}

// returned checks the safety of one return and goes on to the next round.
func (r *ftRun) returned(i int, d agree.Decision) {
	k := r.ranks[i]
	round := len(k.returns)
	if !k.calling || round != len(k.gave)-1 {
		r.violated("rank %d returns from an agreement that it is not in", i)
		return
	}
	k.calling = false
	k.returns = append(k.returns, d)
	if !r.dead.Contains(d.Failed) {
		r.violated("rank %d: agreement %d excludes living ranks: %v, dead are %v", i, round, d.Failed, r.dead)
	}
	flags := ^uint32(0)
	for j, other := range r.ranks {
		if len(other.returns) > round { // also of the dead: the agreement is uniform
			if o := other.returns[round]; o.Flags != d.Flags || o.Context != d.Context || !o.Failed.Equal(d.Failed) || !o.Acked.Equal(d.Acked) {
				r.violated("agreement %d: rank %d returned %+v, rank %d %+v", round, i, d, j, o)
			}
		}
		if len(other.gave) > round {
			flags &= other.gave[round].Flags
		}
		switch living := r.Alive[j]; {
		case living && len(other.gave) <= round:
			r.violated("agreement %d was decided without the living rank %d", round, j)
		case living && d.Flags&^other.gave[round].Flags != 0:
			r.violated("agreement %d: flags %x do not respect the living rank %d's %x", round, d.Flags, j, other.gave[round].Flags)
		case living && !other.gave[round].Acked.Contains(d.Acked):
			r.violated("agreement %d: acknowledged %v, but the living rank %d only %v", round, d.Acked, j, other.gave[round].Acked)
		}
	}
	if flags&^d.Flags != 0 {
		r.violated("agreement %d: flags %x lack bits that everybody gave (%x)", round, d.Flags, flags)
	}
	if from := int(d.Context>>32) - 1; from < 0 || from >= r.cfg.Ranks || d.Context&0xffffffff != uint64(round) {
		r.violated("agreement %d: context %x is nobody's", round, d.Context)
	}
	r.After(Time(r.Rand.IntN(10)), func() { r.call(i) })
}

// finished checks the liveness after the last event: nothing more will happen.
func (r *ftRun) finished() error {
	knows := 0
	for i, k := range r.ranks {
		if !r.Alive[i] {
			continue
		}
		if len(k.returns) != r.cfg.Rounds {
			return fmt.Errorf("rank %d hangs in agreement %d", i, len(k.returns))
		}
		if !k.m.FailedSet().Equal(r.dead) {
			return fmt.Errorf("rank %d knows of the deaths %v, not %v", i, k.m.FailedSet(), r.dead)
		}
		if k.m.Revoked() {
			knows++
		}
	}
	if living := r.cfg.Ranks - r.dead.Len(); knows != 0 && knows != living {
		return fmt.Errorf("%d of %d living ranks know of the revocation", knows, living)
	}
	return nil
}
