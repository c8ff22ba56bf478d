package main

import (
	"fmt"
	"runtime"
	"time"
)

// The host of a virtual machine moves its processors: at times they share a cache, at times not, and what two ranks on two processors do with short
// messages takes two to five times as long then, under every library. It may do so every few seconds. So a run of two ranks begins when the
// processors are near each other, and is repeated when they are not any more at its end.

const (
	farther  = 1.6              // times the least distance: no longer near
	nearWait = 15 * time.Second // then the machine is taken as it is
	nearRuns = 4
)

// nearness is the least that 8 bytes took from one processor to the other, in microseconds; 0: not known.
type nearness struct{ least float64 }

// near takes in a distance, and says whether the processors are near each other.
func (n *nearness) near(us float64) bool {
	if n.least == 0 || us < n.least {
		n.least = us
	}
	return us <= farther*n.least
}

// settle takes the processors to be as far apart as they are for good.
func (n *nearness) settle(us float64) { n.least = us }

// distance is the present one: the least of three looks, since two processes that begin on one processor take long. 0 where it does not matter.
func (b *bench) distance(s set) (least float64, err error) {
	if s.ranks != 2 || s.program == "hpcc" || runtime.NumCPU() < 2 {
		return 0, nil
	}
	for range 3 {
		out, _, err := b.watched([]string{b.limitsProgram, "-t", "2", "-n", "2", "-f", b.dir, "near"}, nil)
		if err != nil {
			return 0, err
		}
		values, err := parseRows(out)
		if err != nil {
			return 0, err
		}
		for _, us := range values {
			if least == 0 || us < least {
				least = us
			}
		}
	}
	return least, nil
}

// awaitNear waits until the processors are near each other; not for long.
func (b *bench) awaitNear(s set) error {
	for end := time.Now().Add(nearWait); ; {
		us, err := b.distance(s)
		if err != nil || us == 0 || b.processors.near(us) {
			return err
		}
		if time.Now().After(end) {
			b.processors.settle(us)
			return nil
		}
	}
}

// runNear runs an implementation, again while the processors are moved meanwhile; near is false when they always were.
func (b *bench) runNear(s set, impl string) (out string, share shares, near bool, err error) {
	for range nearRuns {
		if err := b.awaitNear(s); err != nil {
			return "", shares{}, false, err
		}
		before := time.Now()
		out, share, err = b.runOne(s, impl)
		fmt.Printf("%s: %s %.1fs\n", s.key, impl, time.Since(before).Seconds())
		if err != nil {
			return "", shares{}, false, err
		}
		us, err := b.distance(s)
		if err != nil {
			return "", shares{}, false, err
		}
		if us == 0 || b.processors.near(us) {
			return out, share, true, nil
		}
		fmt.Printf("%s, %s: again, the processors have moved: 8 bytes take %.3f us, before %.3f\n", s.key, impl, us, b.processors.least)
	}
	return "", shares{}, false, nil
}
