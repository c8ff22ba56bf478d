package coll

import (
	"fmt"
	"strings"
)

// Reason is why an algorithm was chosen, as a number that fits into a byte, for tools and traces.
// Reasons has the texts.
type Reason uint8

// The reasons. Those from FirstRule on are the lines of the table for the operation, in their
// order.
const (
	Unknown    Reason = iota // nothing was chosen yet
	NoData                   // no rank has anything to send
	Between                  // the only way between the groups of an intercommunicator
	ByTool                   // a setting that a tool has written (MPI_T)
	ByVariable               // a setting in the environment
	ByTuning                 // a setting in the machine's table (spxctl tune)
	FirstRule
)

// Choice is what was chosen for a call, in numbers: Algorithm counts Choices, Reason counts
// Reasons.
type Choice struct {
	Algorithm uint8
	Reason    Reason
}

// What Choices has before the algorithms.
const (
	unknown = iota
	nothing
	between
	firstAlgorithm
)

var special = [firstAlgorithm]string{unknown: "none", nothing: "nothing", between: "inter"}

// Choices lists by their number what a Choice may have as the algorithm of an operation.
func Choices(k Kind) []string { return append(special[:], Algorithms(k)...) }

// Reasons lists by their number the reasons of the choices for an operation.
func Reasons(k Kind) []string {
	list := []string{
		Unknown:    "none",
		NoData:     "no rank has anything to send",
		Between:    "the only way on intercommunicators",
		ByTool:     EnvName(k) + ", written by a tool (MPI_T)",
		ByVariable: EnvName(k) + " in the environment",
		ByTuning:   EnvName(k) + " in the machine's table (spxctl tune)",
	}
	for i := range rulesOf[k] {
		list = append(list, rulesOf[k][i].use+": "+rulesOf[k][i].String())
	}
	return list
}

// AlgorithmName is the name of a choice's algorithm; "": there is none of this number.
func (c Choice) AlgorithmName(k Kind) string { return nameAt(Choices, k, int(c.Algorithm)) }

// ReasonText is the words of a choice's reason; "": there is none of this number.
func (c Choice) ReasonText(k Kind) string { return nameAt(Reasons, k, int(c.Reason)) }

func nameAt(list func(Kind) []string, k Kind, i int) string {
	if k < Kinds && i > 0 {
		if names := list(k); i < len(names) {
			return names[i]
		}
	}
	return ""
}

// rulesOf are the lines of the table by operation, in their order.
var rulesOf = func() (of [Kinds][]rule) {
	for _, r := range table {
		of[r.kind] = append(of[r.kind], r)
	}
	return of
}()

// String is a line of the table in words.
func (r rule) String() string {
	var words []string
	if r.ranks != anyRanks {
		words = append(words, "up to "+plural(int64(r.ranks), "rank"))
	}
	if r.bytes != anyBytes {
		words = append(words, "up to "+plural(r.bytes, "byte"))
	}
	if w := r.when.words(); len(w) > 0 {
		words = append(words, "where "+strings.Join(w, " and "))
	}
	if len(words) == 0 {
		return "in all other cases"
	}
	return strings.Join(words, ", ")
}

// fits returns the reason why a line does not apply to a call; "": it does.
func (r *rule) fits(a *Args) string {
	alg := find(r.kind, r.use)
	switch {
	case a.Size > r.ranks:
		return fmt.Sprintf("%s, more than %d", a.ranksHere(), r.ranks)
	case a.Data() > r.bytes:
		return fmt.Sprintf("%s, more than %d", a.bytesHere(), r.bytes)
	}
	if c := r.when.fails(a); c != nil {
		return "not so: " + c.of(a)
	}
	if c := alg.needs.fails(a); c != nil {
		return r.use + " cannot: it needs that " + c.of(a)
	}
	return ""
}

// isFor is fits without words.
func (r *rule) isFor(a *Args) bool {
	return a.Size <= r.ranks && a.Data() <= r.bytes && r.when.hold(a) &&
		find(r.kind, r.use).needs.hold(a)
}

func find(k Kind, name string) *algorithm {
	for i := range algorithms[k] {
		if algorithms[k][i].name == name {
			return &algorithms[k][i]
		}
	}
	return nil
}

// forced is the algorithm that a setting names, nil if none does; refused: what it cannot do
// without is not there.
func (a *Args) forced() (alg *algorithm, refused *condition, err error) {
	if a.Force == "" {
		return nil, nil, nil
	}
	if alg = find(a.Kind, a.Force); alg == nil {
		return nil, nil, fmt.Errorf("%s=%s: no such algorithm; there are: %s", EnvName(a.Kind),
			a.Force,
			strings.Join(Algorithms(a.Kind), ", "))
	}
	return alg, alg.needs.fails(a), nil
}

// byTable is the first line of the table that applies to a call, without those of one algorithm
// ("": all lines).
func (a *Args) byTable(but string) (alg *algorithm, reason Reason) {
	for i := range rulesOf[a.Kind] {
		if r := &rulesOf[a.Kind][i]; r.use != but && r.isFor(a) {
			return find(a.Kind, r.use), FirstRule + Reason(i)
		}
	}
	return nil, Unknown
}

// decide chooses for a call that need not be cut into slices: nothing, the schedule between groups,
// or an algorithm.
func decide(a *Args) (*algorithm, Choice, error) {
	switch {
	case a.nothing():
		return nil, Choice{nothing, NoData}, nil
	case a.Remote > 0 && inter[a.Kind] == nil:
		return nil, Choice{}, fmt.Errorf("%v is not defined on intercommunicators", a.Kind)
	case a.Remote > 0:
		return nil, Choice{between, Between}, nil
	}
	return choose(a)
}

// choose takes an algorithm for a call: what a setting forces, where it can do the call, else the
// table's first line for it. Every operation has a last line that applies to all calls.
func choose(a *Args) (*algorithm, Choice, error) {
	alg, refused, err := a.forced()
	if err != nil {
		return nil, Choice{}, err
	}
	reason := a.ForcedBy
	if reason == Unknown {
		reason = ByVariable
	}
	if alg == nil || refused != nil {
		alg, reason = a.byTable("")
	}
	return alg, Choice{numberOf(a.Kind, alg), reason}, nil
}

func numberOf(k Kind, alg *algorithm) uint8 {
	for i := range algorithms[k] {
		if &algorithms[k][i] == alg {
			return uint8(firstAlgorithm + i)
		}
	}
	return unknown
}

// Algorithms lists the names that Force and SPX_COLL_<KIND> accept for an operation.
func Algorithms(k Kind) []string {
	var out []string
	for _, alg := range algorithms[k] {
		out = append(out, alg.name)
	}
	return out
}

// EnvName is the environment variable that forces the algorithm of an operation, as in
// SPX_COLL_BCAST=binomial.
func EnvName(k Kind) string { return "SPX_COLL_" + strings.ToUpper(names[k]) }

// KindOfCall is the operation of an MPI function, in whatever form: MPI_Ibcast_c is a bcast; false:
// it is none.
func KindOfCall(function string) (Kind, bool) {
	name, ok := strings.CutPrefix(strings.TrimSuffix(strings.TrimSuffix(function, "_c"), "_init"),
		"MPI_")
	if len(name) > 1 && name[0] == 'I' && name[1] >= 'a' && name[1] <= 'z' {
		name = name[1:]
	}
	k, known := Lookup(strings.ToLower(name))
	return k, ok && known
}

// Lookup finds an operation by its lower-case name.
func Lookup(name string) (Kind, bool) {
	for k, n := range names {
		if n == name {
			return Kind(k), true
		}
	}
	return 0, false
}
