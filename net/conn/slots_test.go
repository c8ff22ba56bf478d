package conn

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// crowd is many processes that all want connections with all others, by slots alone: calls take
// their time, connections are used for a while and closed for those that wait.
type crowd struct {
	t      *testing.T
	r      *rand.Rand
	most   int
	nodes  []*crowdNode
	linked map[[2]int]bool // pairs that had a connection
}

type crowdNode struct {
	*Slots
	wants   map[int]Ticket // to be called: its ticket, 0 where it does not wait
	tickets map[Ticket]func()
	calling map[int]bool // true: abandoned
	asked   map[int]Ticket
	open    []int
}

func newCrowd(t *testing.T, n, most int, seed uint64) *crowd {
	c := &crowd{t: t, r: rand.New(rand.NewPCG(seed, 3)), most: most, linked: map[[2]int]bool{}}
	for i := range n {
		c.nodes = append(c.nodes, &crowdNode{Slots: NewSlots(i, most), wants: map[int]Ticket{},
			tickets: map[Ticket]func(){}, calling: map[int]bool{}, asked: map[int]Ticket{}})
	}
	for i, a := range c.nodes {
		for k := range n {
			if i != k {
				a.wants[k] = 0
			}
		}
	}
	return c
}

// settle does for one process what its engine would.
func (c *crowd) settle(i int) error {
	a := c.nodes[i]
	for {
		t, ok := a.Grant()
		if !ok {
			break
		}
		do := a.tickets[t]
		delete(a.tickets, t)
		do()
	}
	for {
		peer, ok := a.GiveWay()
		if !ok {
			break
		}
		a.calling[peer] = true
	}
	held := len(a.calling) + len(a.open)
	for p := range a.asked {
		if a.asked[p] == 0 {
			held++
		}
	}
	if a.Used() > c.most || held != a.Used() {
		return fmt.Errorf("process %d has %d slots of %d taken, and holds %d", i, a.Used(), c.most,
			held)
	}
	return nil
}

// step does one thing that can happen now, by chance.
func (c *crowd) step() error {
	i := c.r.IntN(len(c.nodes))
	a := c.nodes[i]
	switch c.r.IntN(4) {
	case 0: // begins to call
		for _, k := range shuffled(c.r, a.wants) {
			if a.wants[k] == 0 && len(a.asked) < 3 {
				begin := func() { delete(a.wants, k); a.calling[k] = false }
				if t, ok := a.Call(k); ok {
					begin()
				} else {
					a.wants[k] = t
					a.tickets[t] = begin
				}
				break
			}
		}
	case 1: // a call of its comes to an end
		for _, k := range shuffled(c.r, a.calling) {
			b := c.nodes[k]
			t, waits := b.asked[i]
			switch {
			// abandoned, and the other end has not taken it
			case a.calling[k] && (!waits || t != 0):
				if waits {
					b.Withdraw(t)
					delete(b.tickets, t)
					delete(b.asked, i)
				}
				a.ended(k)
				a.Give()
				a.wants[k] = 0
			case slices.Contains(b.open, i): // there is one already
				a.ended(k)
				a.Give()
				c.linked[[2]int{i, k}] = true
			case !waits: // it is heard
				t, ok := b.Answer(i)
				if b.asked[i] = 0; !ok {
					b.asked[i] = t
					b.tickets[t] = func() { b.asked[i] = 0 }
				}
			case waits && t != 0: // the other end's patience is over
				if c.r.IntN(4) == 0 {
					b.Withdraw(t)
					delete(b.tickets, t)
					delete(b.asked, i)
					a.ended(k)
					a.Give()
					a.wants[k] = 0
				}
			case waits: // taken
				delete(b.asked, i)
				a.ended(k)
				a.open, b.open = append(a.open, k), append(b.open, i)
				c.linked[[2]int{i, k}] = true
			}
			if err := c.settle(k); err != nil {
				return err
			}
			break
		}
	default: // a connection is closed for those that wait
		if a.Wanted() > 0 && len(a.open) > 0 {
			k := a.open[0]
			b := c.nodes[k]
			a.open = a.open[1:]
			at := slices.Index(b.open, i)
			b.open = slices.Delete(b.open, at, at+1)
			a.Give()
			b.Give()
			if err := c.settle(k); err != nil {
				return err
			}
		}
	}
	return c.settle(i)
}

func (a *crowdNode) ended(peer int) {
	delete(a.calling, peer)
	a.Called(peer)
}

func shuffled[V any](r *rand.Rand, m map[int]V) []int {
	keys := slices.Sorted(maps.Keys(m))
	r.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
	return keys
}

// Whatever happens in which order, no process has more than its slots, and each call comes to its
// connection.
func TestSlots(t *testing.T) {
	for seed := range uint64(300) {
		n, most := 2+int(seed%7), 1+int(seed%4)
		c := newCrowd(t, n, most, seed)
		for steps := 0; len(c.linked) < n*(n-1); steps++ {
			if err := c.step(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if steps > 400000 {
				t.Fatalf(
					"seed %d: %d processes with %d slots: %d of %d pairs had a connection after "+
						"%d steps", seed, n, most, len(c.linked), n*(n-1), steps)
			}
		}
	}
}

// Three processes with one slot each call each other in a circle: before any timeout, the call of
// the lowest is accepted.
func TestSlotsInACircle(t *testing.T) {
	var s []*Slots
	for i := range 3 {
		s = append(s, NewSlots(i, 1))
	}
	for i := range s {
		if _, ok := s[i].Call((i + 1) % 3); !ok {
			t.Fatal("no slot for the first call")
		}
	}
	gave := 0
	for i := range s {
		if _, ok := s[(i+1)%3].Answer(i); ok {
			t.Fatal("two slots of one")
		}
		if peer, ok := s[(i+1)%3].GiveWay(); ok {
			gave++
			s[(i+1)%3].Called(peer)
			s[(i+1)%3].Give()
		}
	}
	if gave != 2 { // 1 for 0, and 2 for 1; 0 goes on calling
		t.Errorf("%d calls were given up, want 2", gave)
	}
	if _, ok := s[1].Grant(); !ok {
		t.Error("process 1 does not let process 0 in")
	}
}
