package config

// The order in which a system is drawn: along its links.

// arrow is a link between two clusters, by their numbers in the file.
type arrow struct{ from, to, link int }

func (s *System) arrows() (out []arrow) {
	number := map[string]int{}
	for i, c := range s.Clusters {
		number[c.Name] = i
	}
	for k, l := range s.Links {
		for _, f := range l.From {
			for _, t := range l.To {
				out = append(out, arrow{number[f], number[t], k})
			}
		}
	}
	return out
}

// order sorts the clusters so that links lead forward where that is possible, else as in the file;
// layer is how many links, at most, lead to each.
func (s *System) order() (order, layer []int) {
	arrows := s.arrows()
	done := make([]bool, len(s.Clusters))
	layer = make([]int, len(s.Clusters))
	for len(order) < len(s.Clusters) {
		next := -1
		for i := range s.Clusters {
			if done[i] {
				continue
			}
			if next < 0 { // where a ring is begun, if all is in rings
				next = i
			}
			if free(arrows, done, i) {
				next = i
				break
			}
		}
		for _, a := range arrows {
			if a.to == next && done[a.from] {
				layer[next] = max(layer[next], layer[a.from]+1)
			}
		}
		done[next] = true
		order = append(order, next)
	}
	return order, layer
}

// free: all that leads to cluster i is done.
func free(arrows []arrow, done []bool, i int) bool {
	for _, a := range arrows {
		if a.to == i && !done[a.from] {
			return false
		}
	}
	return true
}
