package detect

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"libspx/ft/rankset"
)

const (
	ms     = Time(1000)
	period = 100 * ms
	limit  = 1000 * ms
)

type packet struct {
	at       Time
	from, to int
	data     []byte
}

// A field is a set of hosts on a network that may lose messages and be cut.
type field struct {
	t       *testing.T
	rand    *rand.Rand
	now     Time
	hosts   []*Machine
	dead    []bool
	paused  []Time // until when
	side    []int  // messages pass between hosts of one side
	loss    int    // of 100 messages
	flying  []packet
	sent    int
	lost    rankset.Set
	lostAt  Time // the first of them
	outAt   map[int]Time
	split   []int
	fenced  []Reason
	fenceAt []Time
	tree    Tree
	sees    func(from, to int) // what is sent; nil: it need not be known
}

func newField(t *testing.T, n int, seed uint64) *field {
	f := &field{t: t, outAt: map[int]Time{}, rand: rand.New(rand.NewPCG(seed, 1)),
		dead: make([]bool, n), paused: make([]Time, n), side: make([]int, n),
		fenced: make([]Reason, n), fenceAt: make([]Time, n)}
	for i := range n {
		f.hosts = append(f.hosts, New(Config{Self: i, Hosts: n, Period: period, Limit: limit}, 0))
	}
	return f
}

func (f *field) carryOut(h int, o Output) {
	for _, s := range o.Sends {
		f.sent++
		if f.sees != nil {
			f.sees(h, s.To)
		}
		if f.rand.IntN(100) >= f.loss {
			f.flying = append(f.flying, packet{f.now + 1 + Time(f.rand.IntN(int(5*ms))), h, s.To,
				s.Data})
		}
	}
	if len(o.Lost) > 0 {
		if f.lost.Empty() {
			f.lostAt = f.now
		}
		f.lost = f.lost.Union(rankset.Of(o.Lost...))
		for _, h := range o.Lost {
			f.outAt[h] = f.now
		}
	}
	if o.Split != nil {
		f.split = o.Split
	}
	if o.Fenced != NotFenced {
		f.fenced[h], f.fenceAt[h] = o.Fenced, f.now
	}
}

func (f *field) runs(h int) bool { return !f.dead[h] && f.paused[h] <= f.now }

// run lets time pass. What arrives at a paused host waits.
func (f *field) run(span Time) {
	for end := f.now + span; f.now < end; f.now += ms / 2 {
		waiting := f.flying[:0:0]
		arrived := []packet{}
		for _, p := range f.flying {
			if p.at > f.now || f.paused[p.to] > f.now {
				waiting = append(waiting, p)
			} else {
				arrived = append(arrived, p)
			}
		}
		f.flying = waiting
		for _, p := range arrived {
			if !f.passes(p.from, p.to) || f.dead[p.to] {
				continue
			}
			o, err := f.hosts[p.to].Receive(p.from, p.data, f.now)
			if err != nil && p.from < f.hosts[p.to].cfg.Hosts {
				f.t.Fatalf("host %d from %d: %v", p.to, p.from, err)
			}
			f.carryOut(p.to, o)
		}
		for h, m := range f.hosts {
			if f.runs(h) && m.Deadline() <= f.now {
				f.carryOut(h, m.Tick(f.now))
				if m.Deadline() <= f.now {
					f.t.Fatalf("host %d wants to be called for %d again at %d", h, m.Deadline(),
						f.now)
				}
			}
		}
	}
}

func (f *field) quiet(what string) {
	f.t.Helper()
	if !f.lost.Empty() || f.split != nil || slices.ContainsFunc(f.fenced,
		func(r Reason) bool { return r != NotFenced }) {
		f.t.Fatalf("%s: out %v, split %v, fenced %v", what, f.lost, f.split, f.fenced)
	}
}

var sizes = []int{2, 3, 8, 9, 10, 40, 100}

// No host is excluded while all run, even if messages are lost, and the cost is two messages per
// host and period.
func TestNoAlarm(t *testing.T) {
	for _, n := range sizes {
		f := newField(t, n, 1)
		f.run(10000 * ms)
		f.quiet("no loss")
		if f.sent > 2*(n-1)*101 {
			t.Errorf("%d messages for %d hosts in 100 periods", f.sent, n)
		}
		f.loss = 5
		f.run(10000 * ms)
		f.quiet("loss")
		if watching := f.hosts[0].Watching(); len(watching) < min(n-1, Arity) {
			t.Errorf("host 0 of %d watches %v", n, watching)
		}
	}
}

// One host dies: it is out when the limit has passed, whichever it is, and no other one is.
func TestOneDies(t *testing.T) {
	for _, n := range sizes {
		for victim := 1; victim < n; victim++ {
			f := newField(t, n, uint64(victim))
			f.run(Time(500+f.rand.IntN(200)) * ms)
			f.dead[victim] = true
			died := f.now
			f.run(3000 * ms)
			if !f.lost.Equal(rankset.Of(victim)) || f.split != nil || f.lostAt-died > limit+20*ms ||
				f.lostAt-died < limit-period-20*ms {
				t.Fatalf("host %d of %d died: out %v after %d ms, split %v", victim, n, f.lost,
					(f.lostAt-died)/ms, f.split)
			}
			for h, why := range f.fenced {
				if why != NotFenced {
					t.Fatalf("host %d of %d died, host %d is fenced (%d)", victim, n, h, why)
				}
			}
			for h, m := range f.hosts {
				if h != victim && !m.OutSet().Has(victim) {
					t.Fatalf("host %d of %d died: host %d does not know", victim, n, h)
				}
			}
		}
	}
}

// A network is cut in two: host 0's side goes on if it has at least half of the hosts; the other
// hosts are fenced, before they are excluded.
func TestCut(t *testing.T) {
	for seed := range uint64(200) {
		n := 2 + rand.New(rand.NewPCG(seed, 2)).IntN(40)
		f := newField(t, n, seed)
		f.run(Time(500+f.rand.IntN(200)) * ms)
		away := f.rand.Perm(n - 1)[:1+f.rand.IntN(n-1)]
		for i := range away {
			away[i]++
			f.side[away[i]] = 1
		}
		cut := f.now
		f.run(2500 * ms)
		goesOn := 2*(n-len(away)) >= n
		if goesOn != f.lost.Equal(rankset.Of(away...)) || goesOn != (f.split == nil) || goesOn &&
			f.lostAt-cut > limit+20*ms {
			t.Fatalf("seed %d: %v of %d cut off: out %v after %d ms, split %v", seed, away, n,
				f.lost, (f.lostAt-cut)/ms, f.split)
		}
		for h := 1; h < n; h++ {
			if f.side[h] == 1 && (f.fenced[h] != LostContact || goesOn &&
				f.fenceAt[h] > f.lostAt+10*ms) {
				t.Fatalf("seed %d: host %d of %d is cut off, fenced %d at %d, out at %d", seed, h,
					n, f.fenced[h], f.fenceAt[h], f.lostAt)
			}
			if f.side[h] == 0 && goesOn && f.fenced[h] != NotFenced {
				t.Fatalf("seed %d: host %d of %d is fenced (%d)", seed, h, n, f.fenced[h])
			}
		}
	}
}

// A host that was silent for half of the limit is quiet, until it is heard again.
func TestQuiet(t *testing.T) {
	f := newField(t, 3, 1)
	quiet := func(want string) {
		t.Helper()
		if got := fmt.Sprint(f.hosts[0].Quiet(f.now)); got != want {
			t.Errorf("after %d ms: %s, not %s", f.now/ms, got, want)
		}
	}
	f.run(500 * ms)
	quiet("[]")
	f.side[2] = 1
	f.run(limit/2 - 2*period)
	quiet("[]")
	f.run(4 * period)
	quiet("[2]")
	f.side[2] = 0
	f.run(2 * period)
	quiet("[]")
}

// Hosts fall silent shortly one after another: each is excluded at its own limit, by when it has
// ended itself if it still runs, even if echoes of its last ticks were lost.
func TestOneAfterAnother(t *testing.T) {
	for seed := range uint64(200) {
		f := newField(t, 8+int(seed%40), seed)
		f.run(Time(500+f.rand.IntN(200)) * ms)
		first, second := 1+f.rand.IntN(3), 4+f.rand.IntN(4)
		f.dead[first] = true
		f.run(Time(1+f.rand.IntN(int(2*period/ms))) * ms)
		f.side[second] = 1
		cut := f.now
		f.run(2500 * ms)
		if !f.lost.Equal(rankset.Of(first, second)) || f.outAt[second]-cut < limit-period-20*ms ||
			f.outAt[second]-cut > limit+20*ms {
			t.Fatalf("seed %d: out %v, host %d at %d, %d ms after its cut", seed, f.lost, second,
				f.outAt[second], (f.outAt[second]-cut)/ms)
		}
		if f.fenced[second] != LostContact || f.fenceAt[second] > f.outAt[second] {
			t.Fatalf("seed %d: host %d is fenced (%d) at %d, out at %d", seed, second,
				f.fenced[second], f.fenceAt[second], f.outAt[second])
		}
	}
}

// A host that was paused for longer than the limit learns that it is out; a simultaneous pause of
// all excludes no host.
func TestPauses(t *testing.T) {
	f := newField(t, 8, 1)
	f.run(500 * ms)
	f.paused[3] = f.now + 5000*ms
	f.run(4990 * ms)
	if !f.lost.Equal(rankset.Of(3)) || f.fenced[3] != NotFenced {
		t.Fatalf("out %v, fenced %v", f.lost, f.fenced)
	}
	f.run(50 * ms)
	if f.fenced[3] != OutSilent {
		t.Fatalf("host 3 goes on after its pause: %v", f.fenced)
	}
	f = newField(t, 40, 1)
	f.run(500 * ms)
	for h := range f.paused {
		f.paused[h] = f.now + 60000*ms
	}
	f.run(65000 * ms)
	f.quiet("all paused")
	// host 0 alone: the other hosts cannot tell whether it was cut off
	f.paused[0] = f.now + 3000*ms
	f.run(6000 * ms)
	for h := 1; h < 40; h++ {
		if f.fenced[h] != LostContact {
			t.Fatalf("host %d: fenced %d", h, f.fenced[h])
		}
	}
	if len(f.split) != 39 {
		t.Fatalf("host 0 goes on without %v, split %v", f.lost, f.split)
	}
}

// Certain ends need no majority, and hosts that were never heard are not suspected.
func TestCertainAndUnheard(t *testing.T) {
	f := newField(t, 24, 1)
	for h := 1; h < 24; h++ {
		f.side[h] = h // nothing passes at all
	}
	f.run(5000 * ms)
	f.quiet("nothing was ever heard")
	f = newField(t, 24, 1)
	f.run(500 * ms)
	for h := 4; h < 24; h++ {
		f.dead[h] = true
		f.carryOut(0, f.hosts[0].Gone(h, OutClosed, f.now))
	}
	f.run(3000 * ms)
	f.quiet("20 of 24 have ended")
	if f.hosts[3].OutSet().Len() != 20 {
		t.Errorf("host 3 knows of %v", f.hosts[3].OutSet())
	}
	f.dead[3] = true
	f.run(2000 * ms)
	if !f.lost.Equal(rankset.Of(3)) || f.split != nil {
		t.Errorf("one of four died: out %v, split %v", f.lost, f.split)
	}
}

// Alone: host 0 goes on without the majority.
func TestAlone(t *testing.T) {
	f := newField(t, 8, 1)
	f.hosts[0].cfg.Alone = true
	f.run(500 * ms)
	for h := 2; h < 8; h++ {
		f.side[h] = 1
	}
	f.run(2000 * ms)
	if f.split != nil || f.lost.Len() != 6 {
		t.Errorf("out %v, split %v", f.lost, f.split)
	}
}

// Deaths at random moments, with loss: the dead are out, the living are not, in time.
func TestRandomDeaths(t *testing.T) {
	for seed := range uint64(100) {
		n := 12 + int(seed%60)
		f := newField(t, n, seed)
		f.run(500 * ms)
		f.loss = 2
		var dead []int
		for range 4 {
			victim := 1 + f.rand.IntN(n-1)
			f.dead[victim] = true
			dead = append(dead, victim)
			f.run(Time(f.rand.IntN(800)) * ms)
		}
		f.run(4 * limit)
		if !f.lost.Equal(rankset.Of(dead...)) || f.split != nil ||
			slices.ContainsFunc(f.fenced, func(r Reason) bool { return r != NotFenced }) {
			t.Fatalf("seed %d: %v of %d died; out %v, split %v, fenced %v", seed, dead, n, f.lost,
				f.split, f.fenced)
		}
	}
}

// join adds a host. Host 0 and the new one know of it at once, the other hosts later, each at its
// own time.
func (f *field) join() {
	n := len(f.hosts) + 1
	f.hosts = append(f.hosts, New(Config{Self: n - 1, Hosts: n, Period: period, Limit: limit},
		f.now))
	f.dead, f.paused, f.side = append(f.dead, false), append(f.paused, 0), append(f.side, 0)
	f.fenced, f.fenceAt = append(f.fenced, NotFenced), append(f.fenceAt, 0)
	f.carryOut(0, f.hosts[0].Grow(n, f.tree, f.now))
}

// Hosts are added, one after another or several at a time, while others die and messages are lost.
// Each host learns of the new ones late, sometimes after hosts have gone that it never knew. No
// living host is excluded, and every dead host is found, whether it was there from the beginning or
// not.
func TestGrow(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 9))
		f := newField(t, 1+r.IntN(12), seed)
		f.loss = r.IntN(3)
		f.run(2 * period)
		var dead []int
		for range 1 + r.IntN(30) {
			f.join()
			f.run(Time(r.IntN(int(2 * period))))
			for h := range f.hosts {
				if r.IntN(3) == 0 && !f.dead[h] {
					f.carryOut(h, f.hosts[h].Grow(len(f.hosts), f.tree, f.now))
				}
			}
			if h := r.IntN(len(f.hosts)); h > 0 && !f.dead[h] && r.IntN(4) == 0 &&
				2*(len(dead)+2) < len(f.hosts) {
				f.dead[h] = true
				f.carryOut(0, f.hosts[0].Gone(h, OutClosed, f.now))
				dead = append(dead, h)
			}
		}
		for h := range f.hosts {
			f.carryOut(h, f.hosts[h].Grow(len(f.hosts), f.tree, f.now))
		}
		f.run(4 * limit)
		f.quiet(fmt.Sprintf("seed %d, %d hosts, of which %v died with a word", seed, len(f.hosts),
			dead))
		if !f.hosts[0].out.Equal(rankset.Of(dead...)) {
			t.Fatalf("seed %d: out are %v, dead %v", seed, f.hosts[0].out, dead)
		}
		last := len(f.hosts) - 1
		if f.dead[last] || 2*(len(dead)+1) >= len(f.hosts) {
			continue
		}
		f.dead[last] = true
		f.run(4 * limit)
		if !f.lost.Equal(rankset.Of(last)) || f.split != nil {
			t.Fatalf("seed %d: host %d, the last to come, died; out %v, split %v", seed, last,
				f.lost, f.split)
		}
	}
}

// A host that is excluded and still runs learns why, by the message to it and by beats.
func TestReason(t *testing.T) {
	for _, why := range []Reason{OutClosed, OutChanged} {
		root := New(Config{Self: 0, Hosts: 3, Period: period, Limit: limit}, 0)
		root.Tick(0)
		root.Gone(1, OutClosed+OutChanged-why, 1) // another one, for the other reason
		for _, s := range root.Gone(2, why, 2).Sends {
			if s.To != 2 {
				continue
			}
			msg, err := decode(s.Data, 3)
			if err != nil || msg.kind != kindOut {
				t.Fatalf("host 2 gets %+v, %v", msg, err)
			}
			beat := message{kind: kindBeat, number: 9, tick: 9, epoch: root.epoch, out: root.out,
				closed: root.closed, changed: root.changed}
			for _, data := range [][]byte{s.Data, beat.append(nil)} {
				m := New(Config{Self: 2, Hosts: 3, Period: period, Limit: limit}, 0)
				if out, err := m.Receive(0, data, 3); err != nil || out.Fenced != why {
					t.Errorf("host 2, out for reason %d, is fenced for %d, error %v", why,
						out.Fenced, err)
				}
			}
		}
	}
	for _, bad := range []message{
		{kind: kindOut, number: 1, epoch: 1, why: LostContact},
		{kind: kindOut, number: 1, epoch: 1, why: OutChanged + 1},
		{kind: kindBeat, number: 1, tick: 1, epoch: 1, out: rankset.Of(1), changed: rankset.Of(2)},
		{kind: kindBeat, number: 1, tick: 1, epoch: 1, out: rankset.Of(1), changed: rankset.Of(1),
			closed: rankset.Of(1)},
	} {
		if _, err := decode(bad.append(nil), 3); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

func TestWire(t *testing.T) {
	for _, msg := range []message{
		{kind: kindBeat, number: 3, tick: 9, epoch: 2, out: rankset.Of(1, 2, 7),
			closed: rankset.Of(2), changed: rankset.Of(7), limit: 4 * limit},
		{kind: kindEcho, number: 1, complete: true},
		{kind: kindEcho, number: 5, worst: 400 * ms},
		{kind: kindSeek, number: 1 << 40},
		{kind: kindReport, number: 2, silents: []silent{{3, 900 * ms}, {4, limit}}},
		{kind: kindOut, number: 4, epoch: 2, why: OutChanged},
	} {
		back, err := decode(msg.append(nil), 8)
		if err != nil || fmt.Sprint(back) != fmt.Sprint(msg) {
			t.Errorf("%v came back as %v, error %v", msg, back, err)
		}
	}
	// golden bytes: the wire form of a release does not change
	if got, want := string(message{kind: kindBeat, number: 1, tick: 2, epoch: 1, limit: 300,
		out: rankset.Of(1)}.append(nil)),
		"\x01\x01\x02\x01\xac\x02\x01\x01\x00\x00\x00"; got != want {
		t.Errorf("Beat is %x, want %x", got, want)
	}
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte{kindSeek, 1}, 3, false)
	f.Add(message{kind: kindReport, number: 1,
		silents: []silent{{1, limit}, {9, 2 * limit}}}.append(nil), 1, true)
	f.Add(message{kind: kindBeat, number: 1, tick: 5, epoch: 3, out: rankset.Of(1, 2)}.append(nil),
		0, false)
	f.Fuzz(func(t *testing.T, data []byte, from int, root bool) {
		const n = 20
		if msg, err := decode(data, n); err == nil {
			if back, err := decode(msg.append(nil), n); err != nil ||
				fmt.Sprint(back) != fmt.Sprint(msg) {
				t.Fatalf("%v does not survive the wire: %v, %v", msg, back, err)
			}
		}
		self := 1
		if root {
			self = 0
		}
		m := New(Config{Self: self, Hosts: n, Period: period, Limit: limit}, 0)
		now := Time(0)
		m.Tick(now)
		m.Receive(from, data, 1) //nolint:errcheck // must not panic
		for range 40 {           // nor spin
			if now = m.Deadline(); now == Never {
				break
			}
			m.Tick(now)
			if m.Deadline() <= now {
				t.Fatalf("called at %d, and wants to be again at %d", now, m.Deadline())
			}
		}
	})
}
