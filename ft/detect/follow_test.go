package detect

import (
	"math/rand/v2"
	"testing"

	"libspx/ft/rankset"
)

// newPatient is a field whose limit may follow the silences that are seen up to most.
func newPatient(t *testing.T, n int, seed uint64, most Time) *field {
	f := newField(t, n, seed)
	for _, m := range f.hosts {
		m.cfg.Most = most
	}
	return f
}

// gap cuts a host off for a while, and waits until it was heard again.
func (f *field) gap(host int, span Time) {
	f.side[host] = 1
	f.run(span)
	f.side[host] = 0
	f.run(6 * period) // until all know what follows
}

// A host that has been silent for a while, and was heard again, gets a longer limit the next time,
// wherever in the tree it is, within the configured bound.
func TestLimitFollowsSilences(t *testing.T) {
	for _, n := range []int{2, 8, 40, 100} {
		for _, most := range []Time{0, limit, 2 * limit, 10 * limit} {
			host := n - 1
			f := newPatient(t, n, uint64(n), most)
			f.run(500 * ms)
			for range 3 {
				f.gap(host, 4*period+period/2)
			}
			f.quiet("gaps of 400 ms")
			allowed := f.hosts[0].Limit()
			if most <= limit && allowed != limit || most > limit &&
				(allowed < min(most, patience*3*period) || allowed > min(most, patience*6*period)) {
				t.Fatalf("%d hosts, %d ms at most: after gaps of 400 ms the limit is %d ms", n,
					most/ms, allowed/ms)
			}
			f.gap(host, 13*period)
			if most <= limit != f.lost.Equal(rankset.Of(host)) {
				t.Fatalf("%d hosts, %d ms at most: after a silence of 1.3 s host %d is out: %v", n,
					most/ms, host, f.lost)
			}
		}
	}
}

// Where no silence was seen, death is noticed after the limit as it was set, also where the limit
// may grow; and where one was seen, not later than the bound.
func TestLimitOfAQuietNetwork(t *testing.T) {
	for _, n := range sizes {
		for victim := 1; victim < n; victim += 1 + n/12 {
			f := newPatient(t, n, uint64(victim), 10*limit)
			f.run(Time(5000+f.rand.IntN(200)) * ms)
			f.dead[victim] = true
			died := f.now
			f.run(2000 * ms)
			if !f.lost.Equal(rankset.Of(victim)) || f.lostAt-died > limit+20*ms {
				t.Fatalf("host %d of %d died on a quiet network: out %v after %d ms", victim, n,
					f.lost, (f.lostAt-died)/ms)
			}
		}
	}
}

// Silences at random, shorter than the limit: no host is excluded, the limit stays within its
// bounds and never shrinks, and a host that is cut off in the end is fenced in time, before it is
// excluded.
func TestLimitInBounds(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 9))
		n, most := 2+r.IntN(30), limit+Time(r.IntN(5000))*ms
		f := newPatient(t, n, seed, most)
		f.run(500 * ms)
		f.loss = r.IntN(3)
		before := limit
		for range 8 {
			f.gap(1+r.IntN(n-1), Time(r.Int64N(int64(before-7*period))))
			f.quiet("silences shorter than the limit")
			now := f.hosts[0].Limit()
			if now < before || now > most {
				t.Fatalf("seed %d: the limit is %d ms, was %d, at most %d", seed, now/ms, before/ms,
					most/ms)
			}
			for h, m := range f.hosts {
				if m.Limit() > now {
					t.Fatalf("seed %d: host %d waits %d ms, host 0 %d", seed, h, m.Limit()/ms,
						now/ms)
				}
			}
			before = now
		}
		f.loss = 0
		f.run(3 * period)
		host, cut := 1+r.IntN(n-1), f.now
		f.side[host] = 1
		f.run(before + 2*limit)
		took := f.lostAt - cut
		if !f.lost.Equal(rankset.Of(host)) || took < before-2*period || took > f.hosts[0].Limit()+
			20*ms || f.fenced[host] != LostContact || f.fenceAt[host] > f.lostAt {
			t.Fatalf(
				"seed %d: host %d of %d with a limit of %d ms: out %v after %d ms, fenced (%d) "+
					"at %d, out at %d", seed, host, n, before/ms, f.lost, took/ms, f.fenced[host],
				f.fenceAt[host], f.lostAt)
		}
	}
}
