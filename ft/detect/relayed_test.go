package detect

import (
	"slices"
	"testing"

	"libspx/ft/rankset"
)

// A row of networks: 0 to 2 are in the first one; host 2 reaches 3 to 6 for the first network, and
// of these 4 reaches 7 and 8. Host 9 is in the first one, behind host 1 by its number.
var row = Tree{Up: []int{-1, -1, -1, 2, 2, 2, 2, 4, 4, -1},
	By: []int{-1, -1, -1, 2, 2, 2, 2, 4, 4, -1}}

// newRow is a field of such hosts.
func newRow(t *testing.T, seed uint64) *field {
	n := len(row.Up)
	f := newField(t, n, seed)
	f.tree = row
	for i := range f.hosts {
		f.hosts[i] = New(Config{Self: i, Hosts: n, Period: period, Limit: limit, Tree: row}, 0)
	}
	return f
}

// path are the hosts that a message passes, with both ends.
func (f *field) path(from, to int) []int {
	up := func(h int) (list []int) {
		for ; h >= 0; h = f.tree.By[h] {
			list = append(list, h)
		}
		return list
	}
	if f.tree.By == nil {
		return []int{from, to}
	}
	rise, fall := up(from), up(to)
	slices.Reverse(fall)
	for i, h := range rise {
		if k := slices.Index(fall, h); k >= 0 {
			return append(rise[:i], fall[k:]...)
		}
	}
	return append(rise, fall...)
}

// passes: what goes from one host to another is not stopped in between.
func (f *field) passes(from, to int) bool {
	path := f.path(from, to)
	for i, h := range path[1:] {
		if f.side[path[i]] != f.side[h] || f.dead[h] && h != to || f.paused[h] > f.now && h != to {
			return false
		}
	}
	return true
}

// While all run, one message goes each way over each hop in a period, and each host is watched.
func TestRelayedBeats(t *testing.T) {
	f := newRow(t, 1)
	hops := map[[2]int]int{}
	f.sees = func(from, to int) {
		path := f.path(from, to)
		for i, h := range path[1:] {
			hops[[2]int{path[i], h}]++
		}
	}
	f.run(10000 * ms)
	f.quiet("all run")
	if len(hops) != 2*(len(f.hosts)-1) {
		t.Errorf("messages go over %d hops: %v", len(hops), hops)
	}
	for hop, n := range hops {
		if n < 95 || n > 105 {
			t.Errorf("%d messages in 100 periods from %d to %d", n, hop[0], hop[1])
		}
	}
	if !f.hosts[0].complete() {
		t.Error("not everybody is known to have been heard")
	}
}

// A host dies, or the way to it is cut, wherever it is: it is out after the limit, with all that
// are reached through it, and no other one. That they are most of all hosts ends nothing; that most
// are cut off which could be reached by themselves does.
func TestRelayedLoss(t *testing.T) {
	for victim, lost := range map[int][]int{1: {1}, 2: {2, 3, 4, 5, 6, 7, 8}, 3: {3}, 4: {4, 7, 8},
		8: {8}, 9: {9}} {
		for _, how := range []string{"dies", "is cut off", "stands still"} {
			f := newRow(t, uint64(victim))
			f.run(2000 * ms)
			switch how {
			case "dies":
				f.dead[victim] = true
			case "is cut off":
				for _, h := range lost {
					f.side[h] = 1
				}
			default:
				f.paused[victim] = Never
			}
			at := f.now
			f.run(3000 * ms)
			if !f.lost.Equal(rankset.Of(lost...)) || f.split != nil {
				t.Errorf("host %d %s: out %v, split %v", victim, how, f.lost, f.split)
			}
			for _, h := range lost {
				if took := f.outAt[h] - at; took < limit-2*period || took > limit+2*period {
					t.Errorf("host %d %s: host %d is out after %d ms", victim, how, h, took/ms)
				}
				if running := h != victim || how == "is cut off"; running &&
					(f.fenced[h] == NotFenced || f.fenceAt[h] > f.outAt[h]) {
					t.Errorf(
						"host %d %s: host %d, which runs, was fenced at %d (%v), and out at %d",
						victim, how, h, f.fenceAt[h]/ms, f.fenced[h], f.outAt[h]/ms)
				}
			}
			for h := range f.hosts {
				if !slices.Contains(lost, h) && f.fenced[h] != NotFenced {
					t.Errorf("host %d %s: host %d ends", victim, how, h)
				}
			}
		}
	}
	f := newRow(t, 1)
	f.run(2000 * ms)
	for h := 1; h < len(f.hosts); h++ {
		f.side[h] = 1
	}
	f.run(3000 * ms)
	if f.split == nil {
		t.Errorf("most hosts are cut off: out %v", f.lost)
	}
}

// A host is added that is reached through another one: it is heard at once, not in the next period,
// and so missed if it dies then.
func TestRelayedGrow(t *testing.T) {
	f := newRow(t, 3)
	f.run(1500*ms + 37*ms)
	n := len(f.hosts) + 1
	f.tree = Tree{Up: append(slices.Clone(row.Up), 4), By: append(slices.Clone(row.By), 4)}
	f.hosts = append(f.hosts, New(Config{Self: n - 1, Hosts: n, Period: period, Limit: limit,
		Tree: f.tree}, f.now))
	f.dead, f.paused, f.side = append(f.dead, false), append(f.paused, 0), append(f.side, 0)
	f.fenced, f.fenceAt = append(f.fenced, NotFenced), append(f.fenceAt, 0)
	f.carryOut(4, f.hosts[4].Grow(n, f.tree, f.now))
	f.run(15 * ms)
	if !slices.Contains(f.hosts[4].Watching(), n-1) {
		t.Fatalf("host 4 watches %v", f.hosts[4].Watching())
	}
	for h := range n - 1 {
		f.carryOut(h, f.hosts[h].Grow(n, f.tree, f.now))
	}
	f.dead[n-1] = true
	f.run(3000 * ms)
	if !f.lost.Equal(rankset.Of(n-1)) || f.split != nil {
		t.Errorf("out %v, split %v", f.lost, f.split)
	}
}
