package comm

import (
	"fmt"
	"testing"

	"libspx/core/group"
	"libspx/core/mpierr"
)

var sizes = []int{1, 2, 3, 4, 5, 7, 8, 13, 16, 33}

// must opens what a creation made and fails the test when it failed.
func must(t *testing.T, w *network, m *Made, err error) *Comm {
	if err != nil {
		t.Error(err)
		return nil
	}
	return w.open(m)
}

// usable makes sure that all of a communicator can talk on it: a gather and a broadcast over its
// local group, and for an intercommunicator a message between the leaders.
func usable(t *testing.T, c *Comm) {
	if c == nil {
		return
	}
	tr := c.localTree(1<<29+1, 0)
	all, err := tr.gather([]byte{byte(c.Rank)}, nil)
	if err == nil && tr.me == 0 {
		for k, b := range all {
			if int(b) != k {
				err = fmt.Errorf("gathered %v", all)
			}
		}
		if c.Inter() && err == nil {
			_, err = swap(c.Link, 0, 1<<29+1, c.First, all, nil)
		}
	}
	if _, err = tr.bcast(all, err); err != nil {
		t.Errorf("%s is not usable: %v", show(c), err)
	}
}

func TestDupHasTheSameGroupAndAnotherContext(t *testing.T) {
	for _, n := range sizes {
		w := newNetwork(t, n)
		out := run(t, w, n, func(world *Comm, ids *Contexts) *Comm {
			m, err := world.Dup(ids, nil)
			a := must(t, w, m, err)
			m, err = a.Dup(ids, nil)
			b := must(t, w, m, err)
			usable(t, b)
			if a.Ctx == b.Ctx || a.Ctx == world.Ctx {
				t.Errorf("contexts %x, %x, %x", world.Ctx, a.Ctx, b.Ctx)
			}
			if got := Compare(world, b); got != group.Congruent {
				t.Errorf("Compare = %d", got)
			}
			return b
		})
		for r, c := range out {
			if c.Ctx != out[0].Ctx || c.Rank != r {
				t.Errorf("n = %d: rank %d has context %x and rank %d, rank 0 has %x", n, r, c.Ctx,
					c.Rank, out[0].Ctx)
			}
		}
	}
}

func TestSplit(t *testing.T) {
	for _, n := range sizes {
		w := newNetwork(t, n)
		out := run(t, w, n, func(world *Comm, ids *Contexts) *Comm {
			color := world.Rank % 3
			if color == 2 {
				color = group.Undefined
			}
			m, err := world.Split(ids, color, -world.Rank, nil)
			c := must(t, w, m, err)
			usable(t, c)
			return c
		})
		for r, c := range out {
			var want []int
			for k := n - 1; k >= 0; k-- {
				if k%3 == r%3 {
					want = append(want, k)
				}
			}
			if r%3 == 2 {
				want = nil
			}
			if (c == nil) != (want == nil) || c != nil && show(c) != fmt.Sprint(want) {
				t.Errorf("n = %d, rank %d: %s, want %v", n, r, show(c), want)
			}
			if c != nil && r%3 == 1 && c.Ctx == out[0].Ctx {
				t.Errorf("two colors have one context")
			}
		}
	}
}

func TestSplitTellsAllOfABadArgument(t *testing.T) {
	n := 6
	out := run(t, newNetwork(t, n), n, func(world *Comm, ids *Contexts) error {
		color := 1
		if world.Rank == 5 {
			color = -7
		}
		_, err := world.Split(ids, color, 0, nil)
		return err
	})
	for r, err := range out {
		if mpierr.ClassOf(err) != mpierr.Arg {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestCreateWithDisjointGroups(t *testing.T) {
	n := 9
	w := newNetwork(t, n)
	out := run(t, w, n, func(world *Comm, ids *Contexts) *Comm {
		ranks := []int{7, 5, 3, 1}
		switch {
		case world.Rank == 8:
			ranks = []int{0} // not a member of what it passes
		case world.Rank%2 == 0:
			ranks = []int{2, 4, 6, 0}
		}
		g, err := world.Group().Incl(ranks)
		if err != nil {
			t.Error(err)
		}
		m, err := world.Create(ids, g)
		c := must(t, w, m, err)
		usable(t, c)
		return c
	})
	for r, c := range out {
		want := "[7 5 3 1]"
		if r == 8 {
			want = "null"
		} else if r%2 == 0 {
			want = "[2 4 6 0]"
		}
		if show(c) != want {
			t.Errorf("rank %d: %s, want %s", r, show(c), want)
		}
	}
}

// MPI-5.0, section 7.4.2: only the members call MPI_Comm_create_group, and the tag distinguishes
// concurrent calls.
func TestCreateGroupAmongMembersOnly(t *testing.T) {
	n := 5
	w := newNetwork(t, n)
	out := run(t, w, n, func(world *Comm, ids *Contexts) []*Comm {
		if world.Rank == 2 {
			return nil
		}
		g, err := world.Group().Excl([]int{2})
		if err != nil {
			t.Error(err)
		}
		made := make(chan *Comm, 2)
		w.mu.Lock()
		w.running += 2
		w.mu.Unlock()
		for tag := range 2 {
			go func() {
				m, err := world.CreateGroup(ids, g, tag)
				c := must(t, w, m, err)
				usable(t, c)
				w.mu.Lock()
				w.block()
				w.mu.Unlock()
				made <- c
			}()
		}
		return []*Comm{<-made, <-made}
	})
	for r, cs := range out {
		if r == 2 {
			continue
		}
		a, b := cs[0].Ctx, cs[1].Ctx
		x, y := out[0][0].Ctx, out[0][1].Ctx
		if min(a, b) != min(x, y) || max(a, b) != max(x, y) || a == b {
			t.Errorf("rank %d has contexts %x and %x, rank 0 has %x and %x", r, a, b, x, y)
		}
	}
}

func TestGroupMustBePartOfTheCommunicator(t *testing.T) {
	n := 3
	out := run(t, newNetwork(t, n), n, func(world *Comm, ids *Contexts) error {
		_, err := world.Create(ids, group.World(proc(1), 3))
		return err
	})
	for r, err := range out {
		if mpierr.ClassOf(err) != mpierr.Group {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// halves makes an intercommunicator of the even and the odd ranks; the leaders are local ranks la
// and lb.
func halves(t *testing.T, w *network, world *Comm, ids *Contexts, la, lb int) *Comm {
	m, err := world.Split(ids, world.Rank%2, 0, nil)
	local := must(t, w, m, err)
	leader, remote := la, 2*lb+1
	if world.Rank%2 == 1 {
		leader, remote = lb, 2*la
	}
	m, err = InterCreate(ids, local, leader, world, remote, 12, nil)
	return must(t, w, m, err)
}

func TestInterCreateDupSplitMerge(t *testing.T) {
	for _, n := range []int{2, 3, 6, 7, 12} {
		w := newNetwork(t, n)
		out := run(t, w, n, func(world *Comm, ids *Contexts) []string {
			inter := halves(t, w, world, ids, (n+1)/2-1, 0)
			usable(t, inter)
			m, err := inter.Dup(ids, nil)
			dup := must(t, w, m, err)
			usable(t, dup)
			if Compare(inter, dup) != group.Congruent || Compare(inter, world) != group.Unequal {
				t.Errorf("Compare = %d and %d", Compare(inter, dup), Compare(inter, world))
			}
			m, err = dup.Merge(ids, world.Rank%2 == 0)
			merged := must(t, w, m, err)
			usable(t, merged)
			m, err = dup.Merge(ids, true)
			same := must(t, w, m, err)
			m, err = inter.Split(ids, world.Rank/4, -world.Rank, nil)
			split := must(t, w, m, err)
			usable(t, split)
			g, err := inter.Group().Incl([]int{0})
			if err != nil {
				t.Error(err)
			}
			m, err = inter.Create(ids, g)
			pair := must(t, w, m, err)
			usable(t, pair)
			m, err = inter.Create(ids, map[bool]*group.Group{true: group.Empty,
				false: g}[world.Rank%2 == 0])
			none := must(t, w, m, err)
			return []string{show(inter), show(merged), show(same), show(split), show(pair),
				show(none)}
		})
		var even, odd []int
		for r := range n {
			if r%2 == 0 {
				even = append(even, r)
			} else {
				odd = append(odd, r)
			}
		}
		for r, got := range out {
			mine, theirs := even, odd
			if r%2 == 1 {
				mine, theirs = odd, even
			}
			want := []string{fmt.Sprint(mine, "|", theirs),
				fmt.Sprint(append(append([]int{}, odd...), even...)), "", "", "null", "null"}
			first := even
			// the leaders' identities decide which side is first
			if n > 1 && even[len(even)-1] > odd[0] {
				first = odd
			}
			if first[0] == 0 {
				want[2] = fmt.Sprint(append(append([]int{}, even...), odd...))
			} else {
				want[2] = fmt.Sprint(append(append([]int{}, odd...), even...))
			}
			if r < 2 {
				want[4] = fmt.Sprintf("[%d]|[%d]", r, 1-r)
			}
			var a, b []int
			for k := min(r/4*4+3, n-1); k >= r/4*4; k-- {
				if k%2 == r%2 {
					a = append(a, k)
				} else {
					b = append(b, k)
				}
			}
			want[3] = fmt.Sprint(a, "|", b)
			if len(b) == 0 {
				want[3] = "null"
			}
			for k := range want {
				if got[k] != want[k] {
					t.Errorf("n = %d, rank %d, step %d: %s, want %s", n, r, k, got[k], want[k])
				}
			}
		}
	}
}

func TestInterCreateErrorsReachTheLocalGroup(t *testing.T) {
	n := 4
	bad := mpierr.New(mpierr.Rank, "remote_leader is 99")
	out := run(t, newNetwork(t, n), n, func(world *Comm, ids *Contexts) error {
		_, err := InterCreate(ids, world, 2, world, 99, 1, bad)
		return err
	})
	for r, err := range out {
		if mpierr.ClassOf(err) != mpierr.Rank {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

func TestOverlappingGroupsMakeNoIntercommunicator(t *testing.T) {
	n := 4
	out := run(t, newNetwork(t, n), n, func(world *Comm, ids *Contexts) error {
		// Both sides are the whole world, and rank 0 leads both.
		_, err := InterCreate(ids, world, 0, world, 0, 1, nil)
		return err
	})
	for r, err := range out {
		if err == nil {
			t.Errorf("rank %d: an intercommunicator of a group with itself", r)
		}
	}
}

func TestContextsAreNeverDealtTwice(t *testing.T) {
	seen := map[uint64]bool{WorldContext(0, 0): true, SelfContext(0, 0): true,
		SelfContext(0, 1): true}
	for p := range uint32(2) {
		x := NewContexts(0, p)
		for range 100 {
			first := x.Take(3)
			for k := range uint64(3) {
				if c := first + k*CtxStep; seen[c] || c == 0 || c%CtxStep != 0 {
					t.Fatalf("context %x", c)
				} else {
					seen[c] = true
				}
			}
		}
	}
}

func TestTableTakeover(t *testing.T) {
	tab := NewTable(group.World(proc(0), 4))
	standby := proc(2)
	standby.Incarnation = 1
	tab.Replace(2, standby)
	if tab.Group().At(2) != standby || tab.Group().Has(proc(2)) || tab.Version() != 1 ||
		tab.Group().Size() != 4 {
		t.Errorf("after a takeover: %v, version %d", tab.Group().IDs(), tab.Version())
	}
}

// Whichever process dies, and whenever: all others return from a creation, with a communicator or
// with an error. Some may have the communicator and others the error (the standard promises no
// more): here a process that gets an error leaves the job, which the rest detect.
func TestDeathInTheMiddle(t *testing.T) {
	n := 9
	calls := map[string]func(w *network, world *Comm, ids *Contexts) error{
		"dup": func(w *network, world *Comm, ids *Contexts) error {
			_, err := world.Dup(ids, nil)
			return err
		},
		"split": func(w *network, world *Comm, ids *Contexts) error {
			_, err := world.Split(ids, world.Rank%2, 0, nil)
			return err
		},
		"create": func(w *network, world *Comm, ids *Contexts) error {
			_, err := world.Create(ids, world.Group())
			return err
		},
		"exchange": func(w *network, world *Comm, ids *Contexts) error {
			_, err := world.Exchange(blockOf(world.Rank), nil,
				func(all [][]byte) ([][]byte, error) { return all, nil })
			return err
		},
		"inter": func(w *network, world *Comm, ids *Contexts) error {
			m, err := world.Split(ids, world.Rank%2, 0, nil)
			if err != nil {
				return err
			}
			m, err = InterCreate(ids, w.open(m), 0, world, 1-world.Rank%2, 3, nil)
			if err != nil {
				return err
			}
			_, err = w.open(m).Merge(ids, false)
			return err
		},
	}
	for name, call := range calls {
		for victim := range n {
			for after := range 5 {
				w := newNetwork(t, n)
				w.fuse[proc(victim)] = after
				out := run(t, w, n, func(world *Comm, ids *Contexts) error {
					err := call(w, world, ids)
					if err != nil {
						w.mu.Lock()
						w.kill(world.Me())
						w.mu.Unlock()
					}
					return err
				})
				for r, err := range out {
					if err != nil && mpierr.ClassOf(err) != procFailed {
						t.Errorf("%s, rank %d dies after %d messages: rank %d got %v", name, victim,
							after, r, err)
					}
				}
			}
		}
	}
}

// meet opens a communicator of a group on the context of a string tag, as capi does.
func meetOn(w *network, g *group.Group, tag string, world *Comm) *Comm {
	return w.open(NewFromGroup(g, RendezvousContext(tag), world.Me()))
}

func TestFromGroups(t *testing.T) {
	n := 7
	w := newNetwork(t, n)
	out := run(t, w, n, func(world *Comm, ids *Contexts) []string {
		evens, _ := world.Group().RangeIncl([]group.Range{{0, n - 1, 2}})
		odds, _ := world.Group().RangeIncl([]group.Range{{1, n - 1, 2}})
		mine, theirs, leader := evens, odds, 2
		if world.Rank%2 == 1 {
			mine, theirs, leader = odds, evens, 1
		}
		m, err := meetOn(w, mine, "one", world).CreateFromGroup(ids)
		intra := must(t, w, m, err)
		usable(t, intra)
		var pair *Comm
		if mine.Rank(world.Me()) == leader {
			ends := group.Of(evens.At(2), odds.At(1))
			pair = meetOn(w, ends, "two/leaders", world)
		}
		m, err = meetOn(w, mine, "two", world).InterFromGroups(ids, leader, pair, theirs)
		inter := must(t, w, m, err)
		usable(t, inter)
		m, err = inter.Merge(ids, false)
		usable(t, must(t, w, m, err))
		return []string{show(intra), show(inter)}
	})
	for r, got := range out {
		want := []string{"[0 2 4 6]", "[0 2 4 6]|[1 3 5]"}
		if r%2 == 1 {
			want = []string{"[1 3 5]", "[1 3 5]|[0 2 4 6]"}
		}
		if got[0] != want[0] || got[1] != want[1] {
			t.Errorf("rank %d: %v, want %v", r, got, want)
		}
	}
	if RendezvousContext("a") == RendezvousContext("b") || RendezvousContext("a")%CtxStep != 0 {
		t.Error("contexts of string tags")
	}
}

// An error of one process of either side, before or after the two leaders have met, is one of all
// on both sides.
func TestBridgeAndSettle(t *testing.T) {
	n := 5
	for _, late := range []bool{false, true} {
		for bad := -1; bad < n; bad++ {
			w := newNetwork(t, n)
			out := run(t, w, n, func(world *Comm, ids *Contexts) error {
				m, err := world.Split(ids, world.Rank%2, 0, nil)
				local := must(t, w, m, err)
				var pair *Comm
				m, err = world.Split(ids, world.Rank/2, 0, nil) // ranks 0 and 1: the leaders
				if local.Rank == 0 {
					pair = must(t, w, m, err)
				}
				var mine error
				if world.Rank == bad {
					mine = mpierr.New(mpierr.NoMem, "no memory at rank %d", bad)
				}
				if late {
					m, err = Bridge(ids, local, 0, pair, nil)
					if err == nil && bad < 0 {
						usable(t, w.open(m))
					}
					err = firstError(err, mine)
				} else {
					_, err = Bridge(ids, local, 0, pair, mine)
				}
				return Settle(local, 0, pair, err)
			})
			for r, err := range out {
				if (bad >= 0) != (mpierr.ClassOf(err) == mpierr.NoMem) || bad < 0 && err != nil {
					t.Errorf("error at rank %d, late %v: rank %d has %v", bad, late, r, err)
				}
			}
		}
	}
}
