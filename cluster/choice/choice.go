// Package choice plans how one of several I/O processes (IOPs) is chosen for a message that leaves
// a cluster (MPI/SPx: hidden IOPs, and load balancing that the user sets). It owns the policies and
// their result for a set of IOPs: a Plan, a short table that the data plane reads for each message
// (capi/bodies/system.c). It deals with neither messages nor processes, and keeps no state.
//
// Whatever the policy, an IOP that has died or has left is skipped at the moment of sending: the
// next one in the plan takes its place, and no other place changes.
package choice

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// Mode is how the slots of a plan are read.
type Mode int

// Modes. Their values are those of SPX_CHOOSE_* (capi/bodies/system.h).
const (
	Cycle Mode = iota // the next slot for each message
	// the slot of the message's tag: messages with one tag go one way, and stay in order
	Tag
	// the slot of the sender: all messages of one process go one way, and stay in order
	Key
	Load  // the slot whose IOP holds the fewest bytes
	Queue // the slot whose IOP has the fewest messages waiting
	User  // the result of a user function
)

// A Policy is the policy requested by a link or the user.
type Policy struct {
	Mode     Mode
	Weighted bool   // Cycle: in proportion to the weights
	Library  string // User: file of the shared object
}

var names = []struct {
	name string
	p    Policy
}{
	{"round-robin", Policy{Mode: Cycle}},
	{"weighted", Policy{Mode: Cycle, Weighted: true}},
	{"least-loaded", Policy{Mode: Load}},
	{"shortest-queue", Policy{Mode: Queue}},
	{"tag", Policy{Mode: Tag}},
	{"key", Policy{Mode: Key}},
}

const library = "library:"

// Parse reads the name of a policy. Empty: round-robin.
func Parse(text string) (Policy, error) {
	if text == "" {
		return Policy{}, nil
	}
	if file, ok := strings.CutPrefix(text, library); ok && file != "" {
		return Policy{Mode: User, Library: file}, nil
	}
	var all []string
	for _, n := range names {
		if n.name == text {
			return n.p, nil
		}
		all = append(all, n.name)
	}
	return Policy{}, fmt.Errorf("choice: %q is none of %s, %sFILE", text, strings.Join(all, ", "),
		library)
}

// String is the name that Parse reads.
func (p Policy) String() string {
	if p.Mode == User {
		return library + p.Library
	}
	i := slices.IndexFunc(names, func(n struct {
		name string
		p    Policy
	}) bool {
		return n.p == p
	})
	return names[max(i, 0)].name
}

// A Candidate is an IOP that may be chosen.
type Candidate struct {
	Index  int // the caller's number for it
	Weight int // of the weighted policy, and of the share of tags and keys; at least 1 is taken
}

// A Plan is the order of the IOPs: Slots are indices of candidates.
type Plan struct {
	Mode  Mode
	Slots []int
}

// Sizes of plans.
const (
	maxCycle  = 4096 // slots of a weighted cycle: weights are scaled down to it
	hashSlots = 256  // of tags and keys
)

// Make plans for candidates, each of which stands in the plan at least once. None: no slots.
func Make(p Policy, from []Candidate) Plan {
	plan := Plan{Mode: p.Mode}
	switch {
	case len(from) == 0:
	case p.Mode == Tag || p.Mode == Key:
		plan.Slots = make([]int, hashSlots)
		for s := range plan.Slots {
			plan.Slots[s] = owner(s, from)
		}
	case p.Mode == Cycle && p.Weighted:
		plan.Slots = cycle(from)
	default:
		for _, c := range from {
			plan.Slots = append(plan.Slots, c.Index)
		}
	}
	return plan
}

// owner is the candidate that a slot belongs to: the one that draws the highest number for it, of
// as many as its weight. When a candidate comes or goes, no slot changes its owner but those that
// it gets or had.
func owner(slot int, from []Candidate) int {
	best, index := uint64(0), -1
	for _, c := range from {
		for w := range min(max(c.Weight, 1), 64) {
			h := fnv.New64a()
			fmt.Fprintf(h, "%d %d %d", slot, c.Index, w)
			if v := mix(h.Sum64()); index < 0 || v > best {
				best, index = v, c.Index
			}
		}
	}
	return index
}

// mix spreads what fnv leaves in the low bits.
func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// cycle deals the candidates in proportion to their weights, each as evenly as possible over the
// cycle: the candidate furthest behind its share is next.
func cycle(from []Candidate) []int {
	weights, total, common := make([]int, len(from)), 0, 0
	for i, c := range from {
		weights[i] = max(c.Weight, 1)
		common = gcd(common, weights[i])
		total += weights[i]
	}
	scale := max(total/common, 1)
	for i := range weights {
		weights[i] /= common
		if scale > maxCycle {
			weights[i] = max(weights[i]*maxCycle/scale, 1)
		}
	}
	total = 0
	for _, w := range weights {
		total += w
	}
	slots, behind := make([]int, total), make([]int, len(from))
	for s := range slots {
		next := 0
		for i, w := range weights {
			if behind[i] += w; behind[i] > behind[next] {
				next = i
			}
		}
		behind[next] -= total
		slots[s] = from[next].Index
	}
	return slots
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
