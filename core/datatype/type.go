package datatype

import "sync"

// Basic is a predefined type as this machine has it. capi/ makes them from the table in C
// (dataplane/datatype/basic.h).
type Basic struct {
	ID                  int // SPX_B_*, at least 1
	Name                string
	Size, Extent, Align int64 // bytes
	Ext32               int64 // bytes in the external32 representation
	// A pair of a value and an index (for MPI_MINLOC and MPI_MAXLOC) has two parts; Value is nil
	// for all others.
	Value, Index *Basic
	IndexAt      int64 // displacement of the index
}

// Combiner says which constructor made a type, by its value in the standard ABI.
type Combiner int

// The combiners of MPI-5.0, 5.1.13.
const (
	Named             Combiner = 101
	CombDup           Combiner = 102
	CombContiguous    Combiner = 103
	CombVector        Combiner = 104
	CombHvector       Combiner = 105
	CombIndexed       Combiner = 106
	CombHindexed      Combiner = 107
	CombIndexedBlock  Combiner = 108
	CombHindexedBlock Combiner = 109
	CombStruct        Combiner = 110
	CombSubarray      Combiner = 111
	CombDarray        Combiner = 112
	CombF90Real       Combiner = 113
	CombF90Complex    Combiner = 114
	CombF90Integer    Combiner = 115
	CombResized       Combiner = 116
	CombValueIndex    Combiner = 117
)

// Contents is what MPI_Type_get_contents gives back: the arguments of the constructor, sorted by
// kind as the standard says. Counts is used by the large-count constructors alone.
type Contents struct {
	Ints, Addrs, Counts []int64
	Types               []*Type
}

// Type is an MPI datatype. It is immutable; see the package comment.
type Type struct {
	combiner Combiner
	contents Contents
	shape    *shape
	facts

	plainOnce, typedOnce sync.Once
	plain, typed         placed
}

// NewBasic makes the type of a named predefined type.
func NewBasic(b *Basic) *Type { return newParam(b, Named, Contents{}) }

// newParam makes a predefined type, named or not.
func newParam(b *Basic, c Combiner, args Contents) *Type {
	s := &shape{op: opBasic, basic: b}
	f, _ := s.facts() // a basic type cannot overflow
	return &Type{combiner: c, contents: args, shape: s, facts: f}
}

// finish completes a constructor: the facts of the shape, checked.
func finish(c Combiner, args Contents, s *shape) (*Type, error) {
	f, err := s.facts()
	if err != nil {
		return nil, err
	}
	return &Type{combiner: c, contents: args, shape: s, facts: f}, nil
}

// Size returns the bytes of data in one element (MPI_Type_size).
func (t *Type) Size() int64 { return t.size }

// Elements returns the number of basic elements; the parts of a pair count one each.
func (t *Type) Elements() int64 { return t.elements }

// LB returns the lower bound, bytes.
func (t *Type) LB() int64 { return t.lb() }

// Extent returns the distance from one element to the next in an array, bytes.
func (t *Type) Extent() int64 { return t.ub() - t.lb() }

// TrueLB returns the displacement of the first byte of data.
func (t *Type) TrueLB() int64 { return t.first }

// TrueExtent returns the bytes from the first byte of data to the one after the last.
func (t *Type) TrueExtent() int64 { return t.last - t.first }

// Combiner says which constructor made t.
func (t *Type) Combiner() Combiner { return t.combiner }

// Contents returns the constructor's arguments. The slices are t's own.
func (t *Type) Contents() Contents { return t.contents }

// Basic returns the only basic type in t, nil when there are several or none.
func (t *Type) Basic() *Basic {
	if t.mixed {
		return nil
	}
	return t.basic
}

// Mixed reports whether several basic types are in t.
func (t *Type) Mixed() bool { return t.mixed }

// Predefined reports whether t is a named or unnamed predefined type, which may not be freed.
func (t *Type) Predefined() bool {
	switch t.combiner {
	case Named, CombF90Real, CombF90Complex, CombF90Integer, CombValueIndex:
		return true
	}
	return false
}
