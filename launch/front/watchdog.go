package front

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"libspx/launch/service"
)

// The agent's main thread, which makes all decisions, is pinged. A dead agent is detected by its
// end; one that hangs, or was stopped, would leave the whole job waiting, without a visible reason.

// agentLimit is the preset of SPX_AGENT_LIMIT.
const agentLimit = 30 * time.Second

// watchParts is how many times in the limit the agent is looked after.
const watchParts = 8

// watchMost is how many times the limit an agent is waited for at most that has no processor.
const watchMost = 10

// A watchdog detects that the agent has not answered for too long. It has no clock: the time is an
// argument.
type watchdog struct {
	limit time.Duration // 0: it does not watch
	asked int           // questions so far, of which the last is open
	open  bool
	had   time.Duration // since the request, in which it could have answered
	since time.Time     // time of the request
	last  time.Time     // look
}

// watchLimit reads the setting.
func watchLimit(getenv func(string) string) (time.Duration, error) {
	text := getenv(service.EnvAgentLimit)
	if text == "" {
		return agentLimit, nil
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, fmt.Errorf(
			"%s=%s: a number of milliseconds is expected (0: the agent is not watched)",
			service.EnvAgentLimit, text)
	}
	return time.Duration(n) * time.Millisecond, nil
}

// every is how often look is to be called.
func (w *watchdog) every() time.Duration { return max(w.limit/watchParts, time.Millisecond) }

// passed is the time since the last look.
func (w *watchdog) passed(now time.Time) time.Duration {
	if w.last.IsZero() {
		return 0
	}
	return now.Sub(w.last)
}

// look returns the next action: ping (with the number w.asked), or abandon the agent. Time in which
// spxrun itself was not run (Ctrl-Z, a machine that sleeps) does not count; nor does the time since
// the last look in which one of the two waited for a processor (kept).
func (w *watchdog) look(now time.Time, kept time.Duration) (ask, hangs bool) {
	passed := w.passed(now)
	w.last = now
	switch {
	case !w.open:
		w.asked++
		w.open, w.since, w.had = true, now, 0
		return true, false
	case passed > 2*w.every():
		w.since, w.had = now, 0
		return false, false
	}
	w.had += max(0, passed-kept)
	return false, w.had >= w.limit || now.Sub(w.since) >= watchMost*w.limit
}

// answered records the agent's answer.
func (w *watchdog) answered(number int) {
	if number == w.asked {
		w.open = false
	}
}

// watch begins to supervise the agent: the channel ticks when look is due.
func (f *front) watch() (<-chan time.Time, func()) {
	if f.dog.limit == 0 {
		return nil, func() {}
	}
	t := time.NewTicker(f.dog.every())
	return t.C, t.Stop
}

// kept returns how much of the time since its last call the agent, or this process, which receives
// its answer, waited for a processor.
func (f *front) kept(passed time.Duration) time.Duration {
	return f.queues[0].Look(f.pid, passed) + f.queues[1].Look(os.Getpid(), passed)
}

// hangs gives the agent up: its processes end with it.
func (f *front) hangs() {
	f.hung = true
	// it is this process's child, and not waited for yet
	if p, err := os.FindProcess(f.pid); err == nil {
		p.Kill() //nolint:errcheck // it has ended then
	}
}
