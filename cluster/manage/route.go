package manage

import "slices"

// routes finds ways between agents that share no network: over those that are on several.
type routes struct {
	self     int
	agents   []Agent
	members  map[int][]int // of every network
	distance map[int][]int // by destination: of every agent from it
	turns    map[int]int   // by destination: number of requests for another way
}

func newRoutes(c *Config) *routes {
	r := &routes{self: c.Self, agents: c.Agents, members: map[int][]int{},
		distance: map[int][]int{}, turns: map[int]int{}}
	for i, a := range c.Agents {
		for _, n := range a.Networks {
			r.members[n] = append(r.members[n], i)
		}
	}
	return r
}

// to is the agent to which a message for another one is forwarded: one that is nearer to it, so
// that there are no cycles. way selects one of several; -1: there is none.
func (r *routes) to(agent, way int) int {
	mine := r.agents[r.self].Networks
	if slices.ContainsFunc(mine, func(n int) bool {
		return slices.Contains(r.agents[agent].Networks,
			n)
	}) {
		return agent
	}
	d := r.from(agent)
	var ways []int
	for k, n := range mine {
		for _, a := range r.members[n] {
			// has been listed
			known := slices.ContainsFunc(mine[:k],
				func(o int) bool { return slices.Contains(r.agents[a].Networks, o) })
			if !known && d[a] >= 0 && d[a] < d[r.self] {
				ways = append(ways, a)
			}
		}
	}
	if len(ways) == 0 {
		return -1
	}
	return ways[way%len(ways)]
}

// other: no answer from there; the next message takes another way, and so does its
// answer.
func (r *routes) other(agent int) { r.turns[agent]++ }

// from is how far every agent is from one; -1: there is no way.
func (r *routes) from(agent int) []int {
	if d, ok := r.distance[agent]; ok {
		return d
	}
	d := make([]int, len(r.agents))
	for i := range d {
		d[i] = -1
	}
	d[agent] = 0
	seen := map[int]bool{}
	for queue := []int{agent}; len(queue) > 0; queue = queue[1:] {
		for _, n := range r.agents[queue[0]].Networks {
			if seen[n] {
				continue
			}
			seen[n] = true
			for _, a := range r.members[n] {
				if d[a] < 0 {
					d[a] = d[queue[0]] + 1
					queue = append(queue, a)
				}
			}
		}
	}
	r.distance[agent] = d
	return d
}
