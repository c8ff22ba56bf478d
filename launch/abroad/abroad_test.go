package abroad

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"libspx/core/ident"
)

// side is a job with its machine: who lives in it, what its hosts know of external processes, and
// what its processes were told.
type side struct {
	t       *testing.T
	job     uint64
	m       *Machine
	lives   map[ident.ProcID]Person
	here    map[Place]ident.ProcID // external processes that its hosts count as there
	told    map[uint64]Answer
	asked   uint64
	number  uint32
	entries []Enter   // that are not answered
	out     []Message // on their way to the other one
}

func newSide(t *testing.T, job uint64, procs int) *side {
	s := &side{t: t, job: job, lives: map[ident.ProcID]Person{}, here: map[Place]ident.ProcID{},
		told: map[uint64]Answer{}, number: 1000}
	s.m = New(func(id ident.ProcID) (Person, bool) {
		p, ok := s.lives[id]
		return p, ok
	})
	for i := range procs {
		s.lives[s.id(i)] = Person{ID: s.id(i), Number: uint32(i), Life: 1,
			At: netip.MustParseAddrPort(fmt.Sprintf("10.0.0.%d:7", i+1))}
	}
	return s
}

func (s *side) id(i int) ident.ProcID {
	return ident.ProcID{Job: s.job, Rank: uint32(i), Incarnation: 1}
}

// do carries out what the machine has decided.
func (s *side) do(list []Action) {
	for _, a := range list {
		switch a := a.(type) {
		case Send:
			s.out = append(s.out, a.Message)
		case Enter:
			s.entries = append(s.entries, a)
		case Answer:
			if _, twice := s.told[a.Question]; twice {
				s.t.Errorf("question %d is answered twice", a.Question)
			}
			s.told[a.Question] = a
		case Gone:
			if s.here[a.Place] != a.Who {
				s.t.Errorf("%v is gone from place %v, where %v is", a.Who, a.Place, s.here[a.Place])
			}
			delete(s.here, a.Place)
		}
	}
}

func (s *side) ask(i int, wanted ...ident.ProcID) {
	s.asked++
	s.do(s.m.Ask(s.asked, wanted[0].Job, s.lives[s.id(i)], wanted))
}

// enter answers the first Enter; fails: there is no room.
func (s *side) enter(fails bool) {
	e := s.entries[0]
	s.entries = s.entries[1:]
	var places []Place
	text := ""
	if fails {
		text = "no room"
	}
	for _, p := range e.People {
		s.number++
		at := Place{s.number, 1}
		places = append(places, at)
		if !fails {
			s.here[at] = p.ID
		}
	}
	s.do(s.m.Entered(e.Batch, places, text))
}

func (s *side) kill(i int, how How) {
	if _, ok := s.lives[s.id(i)]; ok {
		delete(s.lives, s.id(i))
		s.do(s.m.Ended(s.id(i), how))
	}
}

// hears takes the first message of the other one.
func (s *side) hears(from *side) {
	msg := from.out[0]
	from.out = from.out[1:]
	s.do(s.m.Hear(from.job, msg))
}

func pair(t *testing.T, procs int) (x, y *side) {
	x, y = newSide(t, 1, procs), newSide(t, 2, procs)
	x.do(x.m.Up(2))
	y.do(y.m.Up(1))
	return x, y
}

// run does what is to be done in an order by chance, until nothing is left or the other side is
// lost.
func run(r *rand.Rand, x, y *side, steps int) {
	for range steps {
		var can []func()
		for _, p := range [][2]*side{{x, y}, {y, x}} {
			a, b := p[0], p[1]
			if len(a.entries) > 0 {
				can = append(can, func() { a.enter(false) })
			}
			if len(b.out) > 0 {
				can = append(can, func() { a.hears(b) })
			}
		}
		if len(can) == 0 {
			return
		}
		can[r.IntN(len(can))]()
	}
}

const whole = 1 << 20

// All processes of two jobs get to know each other, and what each is told of the other is what the
// other knows of itself.
func TestMeet(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		x, y := pair(t, 4)
		for i := range 4 {
			x.ask(i, y.id(0), y.id(1), y.id(2), y.id(3))
			y.ask(i, x.id(r.IntN(4)), x.id(3))
		}
		run(r, x, y, whole)
		for _, p := range [][2]*side{{x, y}, {y, x}} {
			a, b := p[0], p[1]
			for q, got := range a.told {
				if got.Text != "" || b.here[got.Own] != a.id(int(q-1)) {
					t.Fatalf("seed %d: question %d: %+v; there it is %v", seed, q, got,
						b.here[got.Own])
				}
				for k, who := range got.People {
					if a.here[got.Here[k]] != who.ID || b.lives[who.ID] != who {
						t.Errorf("seed %d: %v is taken for %+v", seed, got.Here[k], who)
					}
				}
			}
			if len(a.told) != 4 {
				t.Fatalf("seed %d: %d of 4 questions are answered", seed, len(a.told))
			}
		}
	}
}

// One job is killed when so many things have been done, for each number of them: all that the other
// one has asked is answered, and no external process is left there.
func TestKilledAtEachStep(t *testing.T) {
	for steps := range 40 {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 2))
			x, y := pair(t, 3)
			for i := range 3 {
				x.ask(i, y.id(0), y.id(1))
				y.ask(i, x.id(0), x.id(2))
			}
			run(r, x, y, steps)
			x.do(x.m.Lost(2))
			for len(x.entries) > 0 {
				x.enter(seed%2 == 0)
			}
			if len(x.told) != 3 || len(x.here) != 0 || x.m.Size() != 0 {
				t.Fatalf(
					"%d steps, seed %d: %d of 3 questions are answered, %d guests are left, %d "+
						"entries", steps, seed, len(x.told), len(x.here), x.m.Size())
			}
			x.ask(0, y.id(0))
			if x.told[4].Text == "" {
				t.Errorf("a job that is gone is known")
			}
		}
	}
}

// Processes end at any time. No external process outlives its process, no question stays open, and
// what is kept of those that have gone is nothing.
func TestProcessesEnd(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		x, y := pair(t, 5)
		for i := range 5 {
			x.ask(i, y.id(r.IntN(5)), y.id(r.IntN(5)))
			y.ask(i, x.id(r.IntN(5)))
		}
		for range 12 {
			run(r, x, y, r.IntN(6))
			if victim := r.IntN(5); r.IntN(2) == 0 {
				x.kill(victim, How(r.IntN(3)))
			} else {
				y.kill(victim, How(r.IntN(3)))
			}
		}
		run(r, x, y, whole)
		for i := range 5 {
			x.kill(i, Left)
			y.kill(i, Died)
		}
		run(r, x, y, whole)
		for _, s := range []*side{x, y} {
			if len(s.told) != 5 || len(s.here) != 0 || s.m.Size() != 1 {
				t.Fatalf("seed %d: %d of 5 questions are answered, %d guests are left, %d entries",
					seed, len(s.told), len(s.here), s.m.Size())
			}
		}
	}
}

// The same processes meet again and again: they keep their places, and nothing grows.
func TestNoGrowth(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	x, y := pair(t, 3)
	size, first := 0, 0
	for i := range 100 {
		x.ask(i%3, y.id(0), y.id(1), y.id(2))
		y.ask(i%3, x.id(0), x.id(1), x.id(2))
		run(r, x, y, whole)
		if i == 2 {
			size, first = x.m.Size()+y.m.Size(), len(x.here)+len(y.here)
		}
	}
	if n, externals := x.m.Size()+y.m.Size(), len(x.here)+len(y.here); n != size ||
		externals != first ||
		first != 6 {
		t.Errorf("%d entries become %d, %d external processes %d", size, n, first, externals)
	}
}

// What another agent says that cannot be is dropped, or answered by a refusal; a process that it
// may not name is not entered.
func TestNonsense(t *testing.T) {
	x, y := pair(t, 2)
	stranger := Person{ID: ident.ProcID{Job: 9}, At: netip.MustParseAddrPort("10.0.0.9:7")}
	x.do(x.m.Hear(2, Message{Meet: &Meet{Number: 1, Asker: stranger,
		Wanted: []ident.ProcID{x.id(0)}}}))
	x.do(x.m.Hear(2, Message{Met: &Met{Number: 7}}))
	x.do(x.m.Hear(2, Message{}))
	x.do(x.m.Hear(9, Message{Ended: &Ended{Who: stranger.ID}}))
	x.do(x.m.Entered(12, nil, ""))
	if len(x.out) != 0 || len(x.entries) != 0 {
		t.Errorf("it answers %v, and enters %v", x.out, x.entries)
	}
	x.ask(0, y.id(0))
	x.out = nil
	x.do(x.m.Hear(2, Message{Met: &Met{Number: 1, People: []Person{stranger}}}))
	if len(x.entries) != 0 || x.told[1].Text == "" {
		t.Errorf("another process is taken for the one that was asked for: %v, %+v", x.entries,
			x.told[1])
	}
	y.ask(0, ident.ProcID{Job: 1, Rank: 77})
	x.hears(y)
	y.hears(x)
	if y.told[1].Text == "" {
		t.Errorf("a process is known that is none")
	}
}

// FuzzHear: whatever the agent of another job says, and in whatever order all happens, this one
// goes on, and answers each question once.
func FuzzHear(f *testing.F) {
	f.Add([]byte{0, 0, 1, 2, 1, 1, 0, 4, 1, 5, 0})
	f.Add([]byte{1, 2, 0, 1, 1, 0, 4, 0, 3, 2, 0, 0, 6, 1, 2, 1, 2, 0, 1})
	f.Add([]byte{0, 1, 2, 2, 0, 2, 1, 2, 1, 0, 0, 2, 0, 1, 4, 1, 4, 1, 6, 7})
	f.Fuzz(func(t *testing.T, b []byte) {
		x := newSide(t, 1, 3)
		x.do(x.m.Up(2))
		next := func() int {
			if len(b) == 0 {
				return 0
			}
			n := b[0]
			b = b[1:]
			return int(n)
		}
		id := func() ident.ProcID {
			return ident.ProcID{Job: uint64(next() % 4), Rank: uint32(next() % 4), Incarnation: 1}
		}
		person := func() Person {
			return Person{ID: id(), Number: uint32(next()),
				Life: uint32(next())}
		}
		for len(b) > 0 {
			switch next() % 8 {
			case 0:
				i := next() % 3
				if _, lives := x.lives[x.id(i)]; !lives {
					continue
				}
				wanted := make([]ident.ProcID, 1+next()%3)
				for k := range wanted {
					wanted[k] = ident.ProcID{Job: 2, Rank: uint32(next() % 4), Incarnation: 1}
				}
				x.ask(i, wanted...)
			case 1:
				q := &Meet{Number: uint64(next() % 4), Asker: person()}
				for range next() % 4 {
					q.Wanted = append(q.Wanted, id())
				}
				x.do(x.m.Hear(uint64(2+next()%2), Message{Meet: q}))
			case 2:
				a := &Met{Number: uint64(next() % 8), Asker: Place{Number: uint32(next())}}
				if next()%4 == 0 {
					a.Text = "no"
				}
				for range next() % 4 {
					a.People = append(a.People, person())
				}
				x.do(x.m.Hear(2, Message{Met: a}))
			case 3:
				x.do(x.m.Hear(2, Message{Ended: &Ended{id(), How(next() % 4)}}))
			case 4:
				if len(x.entries) > 0 {
					x.enter(next()%3 == 0)
				}
			case 5:
				x.kill(next()%3, How(next()%3))
			case 6:
				x.do(x.m.Lost(2))
				x.do(x.m.Up(2))
			case 7:
				x.do(x.m.Hear(2, Message{}))
			}
			x.out = nil
		}
		for len(x.entries) > 0 {
			x.enter(false)
		}
		x.do(x.m.Lost(2))
		if len(x.told) != int(x.asked) {
			t.Errorf("%d of %d questions are answered", len(x.told), x.asked)
		}
		if len(x.here) > 0 || x.m.Size() > 0 {
			t.Errorf("%d processes of a job that is lost are there, and %d entries", len(x.here),
				x.m.Size())
		}
	})
}
