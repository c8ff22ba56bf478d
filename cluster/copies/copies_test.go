package copies

import (
	"math/rand/v2"
	"testing"
)

func table(hosts, switches []int, works int) (out []Member) {
	for i, h := range hosts {
		out = append(out, Member{Host: h, Switch: switches[h], Lives: true, Works: i < works})
	}
	return out
}

func TestKeeper(t *testing.T) {
	own := []int{100, 101, 102, 103}
	for name, c := range map[string]struct {
		hosts, switches []int
		works           int
		dead            []int
		me, rank, kept  int
		want            int
	}{
		"a standby on another host": {[]int{0, 0, 1, 1}, own, 2, nil, 0, 0, None,
			2},
		"the next rank, another one": {[]int{0, 0, 1, 1}, own, 2, nil, 1, 1, None,
			3},
		"not the standby on its own host": {[]int{0, 0, 0, 1}, own, 2, nil, 0, 0, None,
			3},
		"a rank elsewhere before a standby here":  {[]int{0, 1, 0}, own, 2, nil, 0, 0, None, 1},
		"a standby before a rank, both elsewhere": {[]int{0, 1, 1}, own, 2, nil, 0, 0, None, 2},
		"a rank at another switch before a standby": {[]int{0, 1, 2}, []int{7, 8, 7}, 2, nil, 0, 0,
			None, 1},
		"one host is left": {[]int{0, 0, 1, 1}, own, 2, []int{2, 3}, 0, 0,
			2, 1},
		"no other one": {[]int{0, 1}, own, 1, []int{1}, 0, 0, 1,
			None},
		"who keeps it goes on":                       {[]int{0, 0, 1, 1}, own, 2, nil, 0, 0, 3, 3},
		"who keeps it has a rank now, another waits": {[]int{0, 1, 1, 1}, own, 2, nil, 0, 0, 1, 2},
		"who keeps it has died": {[]int{0, 0, 1, 1}, own, 2, []int{2}, 0, 0, 2,
			3},
	} {
		all := table(c.hosts, c.switches, c.works)
		for _, d := range c.dead {
			all[d].Lives = false
		}
		if got := Keeper(all, c.me, c.rank, c.kept); got != c.want {
			t.Errorf("%s: %d, it should be %d", name, got, c.want)
		}
	}
}

// For any set of living members: the copy is never with its owner or a dead member, is on another
// host and at another switch if there are any, stays where it is when queried again, and the copies
// are not concentrated on few members.
func TestKeeperAtRandom(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		n, hosts := 2+r.IntN(30), 1+r.IntN(6)
		works := 1 + r.IntN(n)
		all := make([]Member, n)
		switches := r.Perm(hosts)
		for h := range switches {
			switches[h] /= 2
		}
		for i := range all {
			h := r.IntN(hosts)
			all[i] = Member{Host: h, Switch: switches[h], Lives: i < works || r.IntN(4) > 0,
				Works: i < works}
		}
		load := map[int]int{}
		kept := map[int]int{}
		for me := range works {
			k := Keeper(all, me, me, None)
			if k == None {
				for i := range all {
					if i != me && all[i].Lives {
						t.Fatalf("seed %d: none keeps that of %d, and %d lives", seed, me, i)
					}
				}
				continue
			}
			if k == me || !all[k].Lives {
				t.Fatalf("seed %d: %d keeps that of %d", seed, k, me)
			}
			for i := range all {
				if i != me && all[i].Lives && distance(&all[me], &all[i]) > distance(&all[me],
					&all[k]) {
					t.Fatalf("seed %d: %d keeps that of %d, and %d is farther away", seed, k, me, i)
				}
			}
			if Apart(all, me, k) != (all[k].Host != all[me].Host) {
				t.Fatalf("seed %d: %d and %d are not told apart", seed, k, me)
			}
			if again := Keeper(all, me, me, k); again != k {
				t.Fatalf("seed %d: that of %d goes from %d to %d for nothing", seed, me, k, again)
			}
			load[k]++
			kept[me] = k
		}
		/* On two hosts with ranks here and standbys there, the numbers of copies per standby differ by
		   at most one. */
		two := make([]Member, 0, 2*n)
		for range n {
			two = append(two, Member{Lives: true, Works: true})
		}
		for range 1 + r.IntN(n) {
			two = append(two, Member{Host: 1, Switch: 1, Lives: true})
		}
		load = map[int]int{}
		for me := range n {
			load[Keeper(two, me, me, None)]++
		}
		for i := n; i < len(two); i++ {
			if most := (n + len(two) - n - 1) / (len(two) - n); load[i] > most ||
				load[i] < n/(len(two)-n) {
				t.Fatalf("seed %d: standby %d of %d has the copies of %d of %d ranks", seed, i-n,
					len(two)-n, load[i], n)
			}
		}
	}
}
