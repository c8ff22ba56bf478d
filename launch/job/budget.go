package job

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A budget bounds how often something is started again. A part that fails repeatedly is to be
// abandoned; one that failed long ago, and has worked since, is not: with within set, older starts
// do not count.
type budget struct {
	most   int
	within time.Duration // 0: nothing is ever forgotten
	spent  []time.Duration
}

// used is how much of it is spent at time now.
func (b *budget) used(now time.Duration) int {
	if b.within > 0 {
		b.spent = slices.DeleteFunc(b.spent,
			func(at time.Duration) bool { return now-at >= b.within })
	}
	return len(b.spent)
}

// left is how much may be spent yet.
func (b *budget) left(now time.Duration) int { return max(b.most-b.used(now), 0) }

// spend counts one more, at time now.
func (b *budget) spend(now time.Duration) { b.spent = append(b.spent, now) }

// span is the time limit in words: " within 1h", or nothing.
func (b *budget) span() string {
	if b.within <= 0 {
		return ""
	}
	return " within " + shortly(b.within)
}

// shortly is a time without units of which there are none: 1h, and not 1h0m0s.
func shortly(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// overdrawn is why nothing is started again any more.
func (b *budget) overdrawn() string {
	if len(b.spent) == 0 { // no start is allowed, so the time is irrelevant
		return "has been started again 0 times"
	}
	return fmt.Sprintf("has been started again %d times%s", len(b.spent), b.span())
}
