package sim

import (
	"math/bits"
	"testing"

	"libspx/ft/detect"
	"libspx/ft/place"
)

// What the failure protocols cost (docs/bench/rounds.md): an agreement goes through the tree four times, and no number of deaths adds a
// round; a revocation goes to log4 n members by each.
func TestRounds(t *testing.T) {
	for n := 4; n <= 1024; n *= 4 {
		log2, depth := bits.Len(uint(n))-1, 0
		for level, nodes := 1, 1; nodes < n; depth++ {
			level *= place.NearWidth
			nodes += level
		}
		agreed := func(faults ...Fault) Outcome {
			o, err := RunJob(Job{Hosts: 1, Ranks: n, Rounds: true, Ops: []Op{{Kind: Shrink}}, Faults: faults})
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		if o := agreed(); o.Messages != 4*(n-1) || o.Returned != Time(4*depth) {
			t.Errorf("%d members: %d messages, %d rounds", n, o.Messages, o.Returned)
		}
		var half []Fault
		for p := 1; p < n; p += 2 {
			half = append(half, Fault{Kind: Kill, Who: p, At: 1})
		}
		if o := agreed(half...); o.Deaths != n/2 || o.Returned > Time(4*depth+4) {
			t.Errorf("%d members, of which %d die: %d rounds", n, o.Deaths, o.Returned)
		}
		o, err := RunJob(Job{Hosts: 1, Ranks: n, Rounds: true, Faults: []Fault{{Kind: Revoke, At: 1}}})
		if err != nil || o.Messages != n*log2/2 || o.Revoked-1 > Time(2*log2) {
			t.Errorf("%d members, a revocation: %d messages, %d rounds, %v", n, o.Messages, o.Revoked-1, err)
		}
	}
}

// Many hosts: an agreement takes rounds as the logarithms of a host's ranks and of the hosts, and gives no process more than it has neighbours in the two trees, however many there are;
// nor does a beat give any agent more. When a host is lost, the agent that decides tells each other one of the deaths, and the processes agree as fast as ever.
func TestManyHosts(t *testing.T) {
	const perHost = 16
	depth := func(n, width int) (d int) {
		for level, nodes := 1, 1; nodes < n; d++ {
			level *= width
			nodes += level
		}
		return d
	}
	neighbours := place.NearWidth + place.FarWidth + 1
	for hosts := 4; hosts <= 256; hosts *= 4 {
		n := hosts * perHost
		rounds := Time(4 * (depth(perHost, place.NearWidth) + depth(hosts, place.FarWidth)))
		o, err := RunJob(Job{Hosts: hosts, Ranks: n, Rounds: true, Ops: []Op{{Kind: Shrink}}})
		if err != nil || o.Messages != 4*(n-1) || o.Returned > rounds || o.Busiest > 4*neighbours {
			t.Errorf("%d hosts: %d messages, %d rounds, not %d, the busiest process has %d, not %d at most; %v", hosts, o.Messages, o.Returned, rounds, o.Busiest, 4*neighbours, err)
		}
		if most := 2 * (detect.Arity + 1) * QuietPeriods; o.AgentBeats > most {
			t.Errorf("%d hosts: the busiest agent has sent and heard %d beats in %d periods, more than %d", hosts, o.AgentBeats, QuietPeriods, most)
		}
		log2 := bits.Len(uint(n)) - 1
		if o, err = RunJob(Job{Hosts: hosts, Ranks: n, Rounds: true, Faults: []Fault{{Kind: Revoke, At: 1}}}); err != nil || o.Messages > n*log2 || o.Revoked-1 > Time(2*log2) || o.Busiest > 4*log2 {
			t.Errorf("%d hosts, a revocation: %d messages, %d rounds, the busiest process has %d; %v", hosts, o.Messages, o.Revoked-1, o.Busiest, err)
		}
		if hosts == 4 {
			continue // they have shrunk before one can be lost
		}
		o, err = RunJob(Job{Hosts: hosts, Ranks: n, Rounds: true, Ops: []Op{{Kind: Shrink}}, Faults: []Fault{{Kind: KillHost, Who: hosts - 1, At: 10}}})
		if err != nil || o.Deaths != perHost || o.Returned-o.GivenUp > rounds+4 || o.Busiest > 6*neighbours || o.Agent > perHost*(hosts-1) {
			t.Errorf("%d hosts, one is lost: %d deaths, %d rounds after, not %d, the busiest process has %d messages, the busiest agent %d; %v", hosts, o.Deaths, o.Returned-o.GivenUp, rounds+4, o.Busiest, o.Agent, err)
		}
		t.Logf("%d hosts, one is lost: %d rounds after it was given up, %d messages, the busiest process has %d, the busiest agent %d", hosts, o.Returned-o.GivenUp, o.Messages, o.Busiest, o.Agent)
	}
}
