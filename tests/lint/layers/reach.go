package layers

import "slices"

// Reach answers what a function of a program can come to: by calls, and by functions whose addresses it or a table that it names holds. Calls of
// functions that were stored elsewhere before (hooks, destructors) are not seen.
type Reach struct {
	objects map[string]*Object
	defined map[string]string // the file of each global name
	uses    map[node]Use
}

// node is a function or variable; names of a file alone may be those of another, too.
type node struct{ file, name string }

// NewReach prepares the questions.
func NewReach(objects map[string]*Object) *Reach {
	r := &Reach{objects, map[string]string{}, map[node]Use{}}
	for file, o := range objects {
		for _, s := range o.Defines {
			r.defined[s] = file
		}
		for _, u := range o.Uses {
			r.uses[node{file, u.From}] = u
		}
	}
	return r
}

// Path is a shortest way from a global function to the target, both included, that does not lead through those of past; nil: there is none.
func (r *Reach) Path(from, target string, past ...string) []string {
	start := node{r.defined[from], from}
	before := map[node]node{start: {}}
	for queue := []node{start}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if slices.Contains(past, at.name) {
			continue
		}
		if at.name == target {
			var path []string
			for ; at != (node{}); at = before[at] {
				path = append(path, at.name)
			}
			slices.Reverse(path)
			return path
		}
		u := r.uses[at]
		visit := func(n node) {
			if _, seen := before[n]; !seen {
				before[n] = at
				queue = append(queue, n)
			}
		}
		for _, name := range u.Own {
			visit(node{at.file, name})
		}
		for _, name := range u.Other {
			visit(node{r.defined[name], name})
		}
	}
	return nil
}
