package manage

// routes finds ways between agents that share no network: over those that are on several.
type routes struct {
	self       int
	neighbours [][]int       // of every agent
	distance   map[int][]int // by destination: of every agent from it
	turns      map[int]int   // by destination: how often another way was asked for
}

func newRoutes(c *Config) *routes {
	members := map[int][]int{}
	for i, a := range c.Agents {
		for _, n := range a.Networks {
			members[n] = append(members[n], i)
		}
	}
	r := &routes{self: c.Self, distance: map[int][]int{}, turns: map[int]int{}}
	for i, a := range c.Agents {
		seen := map[int]bool{i: true}
		var list []int
		for _, n := range a.Networks {
			for _, j := range members[n] {
				if !seen[j] {
					seen[j] = true
					list = append(list, j)
				}
			}
		}
		r.neighbours = append(r.neighbours, list)
	}
	return r
}

// to is the agent to whom a message for another one is handed: one that is nearer to it, so that nothing goes in a circle. way says which, where there
// are several; -1: there is none.
func (r *routes) to(agent, way int) int {
	d := r.from(agent)
	var ways []int
	for _, n := range r.neighbours[r.self] {
		if n == agent {
			return n
		}
		if d[n] >= 0 && d[n] < d[r.self] {
			ways = append(ways, n)
		}
	}
	if len(ways) == 0 {
		return -1
	}
	return ways[way%len(ways)]
}

// other: nothing has come back from there; the next message takes another way, and so does its answer.
func (r *routes) other(agent int) { r.turns[agent]++ }

// from is how far every agent is from one; -1: there is no way.
func (r *routes) from(agent int) []int {
	if d, ok := r.distance[agent]; ok {
		return d
	}
	d := make([]int, len(r.neighbours))
	for i := range d {
		d[i] = -1
	}
	d[agent] = 0
	for queue := []int{agent}; len(queue) > 0; queue = queue[1:] {
		for _, n := range r.neighbours[queue[0]] {
			if d[n] < 0 {
				d[n] = d[queue[0]] + 1
				queue = append(queue, n)
			}
		}
	}
	r.distance[agent] = d
	return d
}
