package inspect

import (
	"os"
	"testing"
	"time"
)

const second = time.Second

func TestQueue(t *testing.T) {
	var q Queue
	for _, step := range []struct {
		what string
		pid  int
		now  map[int]turns
		want time.Duration
	}{
		{"first", 7, map[int]turns{7: {true, second, 5 * second}}, 0},
		{"it sleeps", 7, map[int]turns{7: {false, 2 * second, 5 * second}, 8: {}}, 0},
		{"it has waited", 7, map[int]turns{7: {false, 3 * second, 5*second + second/2}, 8: {}},
			second / 2},
		{"ready, and ran", 7, map[int]turns{7: {true, 4 * second, 5*second + second/2}, 8: {}}, 0},
		{"ready, and did not run", 7, map[int]turns{7: {true, 4 * second, 5*second + second/2},
			8: {}}, second},
		{"what it has waited is counted now", 7,
			map[int]turns{7: {true, 4*second + 1, 9 * second}, 8: {}}, second},
		{"two have waited, one after the other", 7,
			map[int]turns{7: {false, 5 * second, 9*second + second/4}, 8: {false, 1, second / 4}},
			second / 2},
		{"a loop on a processor of its own", 7,
			map[int]turns{7: {true, 6 * second, 9*second + second/4}, 8: {false, 1, second / 4}},
			0},
		{"a thread has ended", 7, map[int]turns{7: {true, 7 * second, 9*second + second/4}}, 0},
		{"another process", 9, map[int]turns{9: {true, second, 90 * second}}, 0},
		{"the kernel says nothing", 9, nil, 0},
	} {
		if got := q.step(step.pid, step.now, second); got != step.want {
			t.Errorf("%s: %v, not %v", step.what, got, step.want)
		}
	}
}

func TestTurns(t *testing.T) {
	for _, c := range []struct {
		counts, stat string
		want         turns
		ok           bool
	}{
		{"1000 2000 3\n", "7 (a) R) R 1 1", turns{true, 1000, 2000}, true},
		{"1000 2000 3\n", "7 (a) S 1 1", turns{false, 1000, 2000}, true},
		{"1000\n", "7 (a) S 1 1", turns{}, false},
		{"1 2 3\n", "7 (a", turns{}, false},
		{"", "", turns{}, false},
	} {
		if got, ok := turnsOf(c.counts, c.stat); ok != c.ok || ok && got != c.want {
			t.Errorf("%q, %q: %+v, %v", c.counts, c.stat, got, ok)
		}
	}
	if _, err := os.Stat("/proc/self/schedstat"); err == nil && len(threadsOf(os.Getpid())) == 0 {
		t.Error("this process has no threads")
	}
}
