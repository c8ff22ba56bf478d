package layers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Upward is a reference that the layers do not allow.
type Upward struct {
	File, From, Symbol string
	Defined            string // the file that defines the symbol
	Layer, Above       string // of the file, and of what it names
}

func (u Upward) key() string { return u.File + "\t" + u.From + "\t" + u.Symbol }

// Report is what has been found of the layers in a program.
type Report struct {
	References map[string]int // names of other files that functions use, by the layer of these
	Unplaced   []string       // files without a row
	Gone       []string       // rows for files and symbols that are not there
	Upward     []Upward       // sorted by file, function and symbol
	Circles    [][]string     // files that reach each other, the largest circle first
}

// Check compares the references of a program with the tables. Outside are symbols that are defined elsewhere but in the C files, with the layer
// that they belong to: those that Go exports.
func (t *Tables) Check(objects map[string]*Object, outside map[string]string) *Report {
	r := &Report{References: map[string]int{}}
	defined := map[string]string{}
	files := slices.Sorted(maps.Keys(objects))
	for _, file := range files {
		if _, ok := t.Files[file]; !ok {
			r.Unplaced = append(r.Unplaced, file)
		}
		for _, s := range objects[file].Defines {
			if _, ok := defined[s]; !ok { // weak names of several files mean the same
				defined[s] = file
			}
		}
	}
	for s := range t.Symbols {
		if _, ok := defined[s]; !ok {
			r.Gone = append(r.Gone, s+" (symbols.tsv)")
		}
	}
	uses := map[string]map[string]bool{}
	for _, file := range files {
		from := t.Files[file]
		for _, x := range objects[file].References {
			at, above := defined[x.Symbol], ""
			switch {
			case at == file:
				continue
			case at != "":
				r.References[from]++
				if above = t.Symbols[x.Symbol]; above != "" {
					break // the file is not where it belongs
				}
				above = t.Files[at]
				if uses[file] == nil {
					uses[file] = map[string]bool{}
				}
				uses[file][at] = true
			default:
				at, above = "Go", outside[x.Symbol]
			}
			if above != "" && from != "" && !t.allows(from, above) {
				r.Upward = append(r.Upward, Upward{file, x.From, x.Symbol, at, from, above})
			}
		}
	}
	r.Circles = circles(files, uses)
	slices.Sort(r.Gone)
	slices.SortFunc(r.Upward, func(a, b Upward) int { return cmp.Compare(a.key(), b.key()) })
	return r
}

// circles are the strongly connected sets of more than one file (Tarjan, Depth-First Search and Linear Graph Algorithms, 1972).
func circles(files []string, uses map[string]map[string]bool) (list [][]string) {
	index, low, on := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var visit func(string)
	visit = func(f string) {
		index[f] = len(index) + 1
		low[f] = index[f]
		stack, on[f] = append(stack, f), true
		for _, g := range slices.Sorted(maps.Keys(uses[f])) {
			if index[g] == 0 {
				visit(g)
				low[f] = min(low[f], low[g])
			} else if on[g] {
				low[f] = min(low[f], index[g])
			}
		}
		if low[f] != index[f] {
			return
		}
		at := slices.Index(stack, f)
		circle := slices.Clone(stack[at:])
		stack = stack[:at]
		for _, g := range circle {
			on[g] = false
		}
		if len(circle) > 1 {
			slices.Sort(circle)
			list = append(list, circle)
		}
	}
	for _, f := range files {
		if index[f] == 0 {
			visit(f)
		}
	}
	slices.SortStableFunc(list, func(a, b []string) int { return len(b) - len(a) })
	return list
}

// Difference between what points upwards and what may.
type Difference struct {
	New   []Upward  // not allowed
	Gone  []Allowed // allowed, and no longer there
	Moved []Upward  // allowed under the name of another file: the function lies elsewhere now
	Kept  []Allowed // the allowance without what has gone, with the new places of what has moved
}

// Compare compares the upward references with the allowance.
func (r *Report) Compare(allowance []Allowed) (d Difference) {
	have := map[string]Upward{}
	for _, u := range r.Upward {
		have[u.key()] = u
	}
	for _, a := range allowance {
		key := Upward{File: a.File, From: a.From, Symbol: a.Symbol}.key()
		if _, ok := have[key]; ok {
			delete(have, key)
			d.Kept = append(d.Kept, a)
		} else {
			d.Gone = append(d.Gone, a)
		}
	}
	for _, u := range r.Upward {
		if _, ok := have[u.key()]; !ok {
			continue
		}
		n := slices.IndexFunc(d.Gone, func(a Allowed) bool { return a.From == u.From && a.Symbol == u.Symbol })
		if n < 0 {
			d.New = append(d.New, u)
			continue
		}
		d.Kept = append(d.Kept, Allowed{u.File, u.From, u.Symbol, d.Gone[n].Family})
		d.Gone = slices.Delete(d.Gone, n, n+1)
		d.Moved = append(d.Moved, u)
	}
	slices.SortFunc(d.Kept, func(a, b Allowed) int { return cmp.Compare(a.row(), b.row()) })
	return d
}

// Write writes the allowance anew: what was allowed before and is still needed, and nothing else.
func (d Difference) Write(name string) error {
	var out strings.Builder
	out.WriteString(head(name))
	for _, a := range d.Kept {
		fmt.Fprintln(&out, a.row())
	}
	return replace(name, []byte(out.String()))
}

// Explain says what is wrong with a new reference, and what to do.
func (u Upward) Explain() string {
	return fmt.Sprintf("%s: %s names %s of %s: upwards, from layer %s to layer %s. Let %s register a hook, an observer or a row of a table with %s, "+
		"or move one of the two functions to the layer where it belongs (docs/layers.md)",
		u.File, u.From, u.Symbol, u.Defined, u.Layer, u.Above, u.Above, u.Layer)
}
