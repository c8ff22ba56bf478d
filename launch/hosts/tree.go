package hosts

import (
	"fmt"
	"slices"
	"strconv"
)

// Fanout is the default maximum of agents that one agent starts: jobs of up to so
// many other hosts have no agent between spxrun's and another.
const Fanout = 64

// ParseFanout parses --fanout or SPX_FANOUT, for hosts that are reached by rsh. An empty text is
// Fanout; but batch systems may let only the job's script start more of its hosts (qrsh), or have
// steps within steps wait for each other (srun).
func ParseFanout(text string, rsh []string) (int, error) {
	switch {
	case text != "":
	case len(rsh) > 0 && (slices.Equal(rsh, slurmRsh) || slices.Equal(rsh, sgeRsh)):
		return 0, nil
	default:
		return Fanout, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 1<<20 {
		return 0, fmt.Errorf(
			"%q is not a number of hosts; 0 has spxrun's host start all agents itself", text)
	}
	return n, nil
}

// Starters returns, for each of n hosts, the one that starts its agent: 0 is spxrun's, and its own
// entry is meaningless. With a fan-out of 0 or 1, or enough for all, host 0 starts all. Else
// neighbours in the list are under one of them, in parts as equal as can be: the loss of a host in
// between takes as few with it as possible, and no host starts more than fanout.
func Starters(n, fanout int) []int {
	out := make([]int, n)
	if fanout > 1 {
		under(out, 0, 1, n, fanout)
	}
	return out
}

// under puts the hosts from first to before end under a starter.
func under(out []int, starter, first, end, fanout int) {
	for parts := min(fanout, end-first); parts > 0; parts-- {
		next := first + (end-first+parts-1)/parts
		out[first] = starter
		under(out, first, first+1, next, fanout)
		first = next
	}
}
