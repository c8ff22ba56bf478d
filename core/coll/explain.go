package coll

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// An Explanation describes the choice for a call, and its reason, in words. All of it is derived
// from the plan of the call and from the chooser, evaluated for this call and for similar ones.
type Explanation struct {
	Operation  string      `json:"operation"`
	Bytes      int64       `json:"bytes"` // Args.Data: see Measure
	Algorithm  string      `json:"algorithm"`
	About      string      `json:"about"` // how the data go
	Parameters []Parameter `json:"parameters,omitempty"`
	Choice     Choice      `json:"-"`
	Reason     string      `json:"reason"` // as tools and traces have it: of Reasons
	Why        string      `json:"why"`    // the same with the values of the call
	// a setting that cannot be followed, and why
	Refused string `json:"refused,omitempty"`
	// what would have been chosen if not this; empty: there is no other
	Otherwise string `json:"otherwise,omitempty"`
	Then      string `json:"otherwise_reason,omitempty"`
	// the lines of the table before the one that was taken
	Passed  []Passed `json:"passed,omitempty"`
	Setting string   `json:"setting"` // that forces an algorithm
	Names   []string `json:"names"`   // that it may have
	// by Bytes, for this operation with all else as it is
	Ranges []Range `json:"ranges,omitempty"`
}

// Passed is a line of the table that is not for the call.
type Passed struct {
	Rule      string `json:"rule"`
	Algorithm string `json:"algorithm"`
	Why       string `json:"why"`
}

// Range is the sizes from From to To for which one algorithm is chosen; To is -1 in the last one.
type Range struct {
	From      int64  `json:"from"`
	To        int64  `json:"to"`
	Algorithm string `json:"algorithm"`
}

// Measure names the number of bytes on which the choice for an operation depends; "": none.
func Measure(k Kind) string {
	switch k {
	case Bcast, Reduce, Allreduce, Scan, Exscan:
		return "the whole"
	case Gather, Scatter, Allgather, Alltoall, ReduceScatterBlock:
		return "one block"
	case Allgatherv, ReduceScatter:
		return "all blocks, to the next power of two"
	}
	return ""
}

// WithBytes is a call of so many bytes (Measure), of elements of the receive type, rounded up to
// whole ones.
func (a Args) WithBytes(n int64) Args {
	switch a.Kind {
	case Allgatherv, ReduceScatter:
		for a.SizeClass = 0; a.SizeClass < 62 && 1<<a.SizeClass < n; a.SizeClass++ {
		}
	default:
		if Measure(a.Kind) != "" && a.RType.Size > 0 {
			a.RCount = (n + a.RType.Size - 1) / a.RType.Size
			a.SCount, a.SType = a.RCount, a.RType
		}
	}
	return a
}

// Explain returns the choice for a call at a rank, and its reason. It fails where Compile does.
func Explain(a Args) (*Explanation, error) {
	p, err := Compile(a)
	if err != nil {
		return nil, err
	}
	e := &Explanation{Operation: a.Kind.String(), Bytes: a.Data(), Algorithm: p.Algorithm,
		Parameters: p.Parameters,
		Choice:     p.Choice, Reason: p.Choice.ReasonText(a.Kind), Setting: EnvName(a.Kind),
		Names: Algorithms(a.Kind)}
	e.Why = e.Reason
	if alg := find(a.Kind, p.Algorithm); alg != nil {
		e.About = alg.about
	} else if p.Choice.Algorithm == between {
		e.About = "from group to group, by rank 0 of each where one has to speak for all"
	}
	if p.Choice.Algorithm >= firstAlgorithm {
		slice := a.firstSlice()
		e.explain(&slice)
	}
	if e.Ranges, err = a.Ranges(); err != nil {
		return nil, err
	}
	return e, nil
}

// explain adds the chooser's results for a call.
func (e *Explanation) explain(a *Args) {
	_, refused, _ := a.forced()
	if refused != nil {
		e.Refused = fmt.Sprintf("%s=%s cannot be followed: it needs that %s", EnvName(a.Kind),
			a.Force, refused.of(a))
	}
	other, reason := a.byTable(e.Algorithm)
	if e.Choice.Reason < FirstRule { // forced: without the setting
		e.Why = fmt.Sprintf("%s=%s %s", EnvName(a.Kind), a.Force,
			from(e.Choice.Reason, a.ForceFrom))
		other, reason = a.byTable("")
	} else {
		rules := rulesOf[a.Kind]
		for i := range e.Choice.Reason - FirstRule {
			e.Passed = append(e.Passed, Passed{rules[i].String(), rules[i].use, rules[i].fits(a)})
		}
		e.Why = rules[e.Choice.Reason-FirstRule].of(a) +
			tooLong(rules[:e.Choice.Reason-FirstRule], e.Algorithm, a)
	}
	if other != nil {
		e.Otherwise, e.Then = other.name, rulesOf[a.Kind][reason-FirstRule].String()
	}
}

// tooLong names the last line before the chosen one that would apply to the call but for its size.
func tooLong(before []rule, taken string, a *Args) string {
	for i := len(before) - 1; i >= 0; i-- {
		r := before[i]
		limit := r.bytes
		if r.bytes = anyBytes; r.use != taken && a.Data() > limit && r.isFor(a) {
			return fmt.Sprintf("; %s is for up to %s, these are %d", r.use, plural(limit, "byte"),
				a.Data())
		}
	}
	return ""
}

// from names the source of a setting.
func from(r Reason, file string) string {
	switch {
	case r == ByTool:
		return "written by a tool (MPI_T)"
	case r == ByTuning && file != "":
		return "in the machine's table " + file + " (spxctl tune)"
	case r == ByTuning:
		return "in the machine's table (spxctl tune)"
	}
	return "in the environment"
}

// of is a line of the table with the values of a call to which it applies.
func (r *rule) of(a *Args) string {
	text := r.String()
	var values []string
	add := func(here string) {
		for _, v := range strings.Split(here, ", ") {
			if !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
	}
	if r.ranks != anyRanks {
		add(a.ranksHere())
	}
	if r.bytes != anyBytes {
		add(a.bytesHere())
	}
	for i := range r.when {
		if here := r.when[i].here; here != nil {
			add(here(a))
		}
	}
	if len(values) == 0 {
		return text
	}
	return fmt.Sprintf("%s (here %s)", text, strings.Join(values, ", "))
}

// mostBytes is the largest size that Ranges examines.
const mostBytes = 1 << 40

// Ranges returns the choices for calls like this one of other sizes. Between two examined sizes
// with the same choice there is no other: limits are round numbers, or such ones divided by the
// number of ranks.
func (a Args) Ranges() ([]Range, error) {
	if Measure(a.Kind) == "" || a.Remote > 0 {
		return nil, nil
	}
	at := func(n int64) (string, error) {
		b := a.WithBytes(n).firstSlice()
		_, c, err := decide(&b)
		return c.AlgorithmName(a.Kind), err
	}
	list := a.sizes()
	var out []Range
	add := func(from int64, name string) {
		if n := len(out); n > 0 {
			out[n-1].To = from - 1
		}
		out = append(out, Range{from, -1, name})
	}
	last, err := at(list[0])
	if err != nil {
		return nil, err
	}
	add(list[0], last)
	for i := 1; i < len(list); i++ {
		name, err := at(list[i])
		if err != nil {
			return nil, err
		}
		if name == last {
			continue
		}
		low, high := list[i-1], list[i] // the change is behind low, at high at the latest
		for low+1 < high {
			mid := low + (high-low)/2
			if other, _ := at(mid); other == last {
				low = mid
			} else {
				high = mid
				name = other
			}
		}
		add(high, name)
		last = name
		if high < list[i] {
			i-- // there may be another change up to list[i]
			list[i] = high
		}
	}
	return out, nil
}

// sizes are those at which Ranges looks: powers of two, the limits of the table and of shared
// memory, and what is just beyond.
func (a *Args) sizes() []int64 {
	size := int64(a.Size)
	limits := []int64{0, CellBytes, CellBytes / size, longBytes, a.Shared, a.slotBytes(), size,
		(1 << 30) / size, size * max(a.RType.Size, 1)}
	for n := int64(1); n <= mostBytes; n <<= 1 {
		limits = append(limits, n, n/size)
	}
	for _, r := range rulesOf[a.Kind] {
		if r.bytes != anyBytes {
			limits = append(limits, r.bytes)
		}
	}
	for _, per := range []int64{a.slotBytes(), blockPiece(a), bcastPiece(a), foldPiece(a)} {
		limits = append(limits, per, per*mostPieces)
	}
	var out []int64
	for _, n := range limits {
		out = append(out, max(n, 0), max(n, 0)+1)
	}
	slices.SortFunc(out, cmp.Compare[int64])
	return slices.Compact(out)
}
