package sim

import (
	"container/heap"
	"math/rand/v2"
)

// Time is simulated time in microseconds.
type Time int64

type event struct {
	at  Time
	seq uint64 // events of the same time happen in the order they were made
	do  func()
}

type queue []event

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// World is the simulated machine: a clock, an event queue, and a network of ranks whose messages arrive in order per
// pair, after random delays.
type World struct {
	Now   Time
	Rand  *rand.Rand
	Delay func() Time // delay of the next message
	// Fate, if set, is asked instead of Delay, and of Rand: a number that is random, but follows from its arguments alone. A run then
	// stays as it is when a part of its schedule that has nothing to do with it is taken out.
	Fate func(from, to int, nth uint64) uint64

	Alive []bool
	Sent  int   // messages sent
	Load  []int // messages that each has sent and taken in

	events  queue
	seq     uint64
	arrival map[[2]int]Time // last arrival time of a pair, so that order is kept
	number  map[[2]int]uint64
	cut     map[[2]int]Time // nothing from a dead rank arrives at this receiver from then on
}

// NewWorld makes a world of n living ranks; everything random in it comes from seed.
func NewWorld(n int, seed uint64) *World {
	w := &World{Rand: rand.New(rand.NewPCG(seed, 0x5eed)), Alive: make([]bool, n), Load: make([]int, n), arrival: map[[2]int]Time{}, number: map[[2]int]uint64{}, cut: map[[2]int]Time{}}
	for i := range w.Alive {
		w.Alive[i] = true
	}
	w.Delay = func() Time { return 1 + Time(w.Rand.IntN(mostDelay)) }
	return w
}

// After makes do happen in d microseconds.
func (w *World) After(d Time, do func()) {
	if d < 0 {
		panic("sim: an event in the past")
	}
	w.seq++
	heap.Push(&w.events, event{w.Now + d, w.seq, do})
}

// Kill makes a rank dead. What it has sent and what has not arrived yet is lost from a random moment on, for each receiver
// another; so a receiver gets a prefix of it.
func (w *World) Kill(victim int) {
	w.Alive[victim] = false
	for to := range w.Alive {
		pair := [2]int{victim, to}
		last, ok := w.arrival[pair]
		if !ok || last <= w.Now {
			continue
		}
		if w.Fate != nil {
			if f := w.Fate(victim, to, ^w.number[pair]); f&1 == 0 {
				w.cut[pair] = w.Now + Time(f>>8%uint64(last-w.Now+1))
			}
		} else if w.Rand.IntN(2) == 0 {
			w.cut[pair] = w.Now + Time(w.Rand.IntN(int(last-w.Now)+1))
		}
	}
}

// Send delivers by calling deliver after the delay, unless the receiver is dead then, or the message is lost with its sender (Kill).
func (w *World) Send(from, to int, deliver func()) {
	w.Sent++
	w.Load[from]++
	pair := [2]int{from, to}
	at := max(w.Now+w.delay(pair), w.arrival[pair])
	w.arrival[pair] = at
	w.After(at-w.Now, func() {
		if cut, ok := w.cut[pair]; w.Alive[to] && (!ok || w.Now < cut) {
			w.Load[to]++
			deliver()
		}
	})
}

// mostDelay is the longest delay of a message between two that can reach each other.
const mostDelay = 20

func (w *World) delay(pair [2]int) Time {
	if w.Fate == nil {
		return w.Delay()
	}
	w.number[pair]++
	return 1 + Time(w.Fate(pair[0], pair[1], w.number[pair])%mostDelay)
}

// Step carries out the next event; false when there is none.
func (w *World) Step() bool {
	if len(w.events) == 0 {
		return false
	}
	e := heap.Pop(&w.events).(event)
	w.Now = e.at
	e.do()
	return true
}
