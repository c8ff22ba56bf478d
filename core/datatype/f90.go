package datatype

import "libspx/core/mpierr"

// The predefined types without a name (MPI-5.0, 19.1.9): Fortran kinds by precision and range,
// matched by size, and value-index pairs. They are found by the names of the named types that have
// their representation; capi/ knows those.

// Undefined is MPI_UNDEFINED.
const Undefined = -32766

// Typeclass is MPI_TYPECLASS_*, by its value in the standard ABI.
type Typeclass int

// The type classes of MPI_Type_match_size. ClassLogical is an extension.
const (
	ClassLogical Typeclass = 191
	ClassInteger Typeclass = 192
	ClassReal    Typeclass = 193
	ClassComplex Typeclass = 194
)

var matches = map[Typeclass]map[int64]string{
	ClassInteger: {1: "MPI_INTEGER1", 2: "MPI_INTEGER2", 4: "MPI_INTEGER4", 8: "MPI_INTEGER8",
		16: "MPI_INTEGER16"},
	ClassReal:    {2: "MPI_REAL2", 4: "MPI_REAL4", 8: "MPI_REAL8", 16: "MPI_REAL16"},
	ClassComplex: {4: "MPI_COMPLEX4", 8: "MPI_COMPLEX8", 16: "MPI_COMPLEX16", 32: "MPI_COMPLEX32"},
	ClassLogical: {1: "MPI_LOGICAL1", 2: "MPI_LOGICAL2", 4: "MPI_LOGICAL4", 8: "MPI_LOGICAL8",
		16: "MPI_LOGICAL16"},
}

// MatchSize names the type of a class with a size in bytes (MPI_Type_match_size).
func MatchSize(class Typeclass, size int64) (string, error) {
	sizes, ok := matches[class]
	if !ok {
		return "", mpierr.New(mpierr.Arg,
			"typeclass is %d; use MPI_TYPECLASS_REAL, _INTEGER or _COMPLEX", class)
	}
	name, ok := sizes[size]
	if !ok {
		return "", mpierr.New(mpierr.Arg, "no datatype of this type class has %d bytes", size)
	}
	return name, nil
}

// fortranReals are the real kinds of gfortran on this machine, smallest first: decimal digits,
// decimal exponent range, and the types of that representation.
var fortranReals = []struct {
	p, r          int64
	real, complex string
}{
	{6, 37, "MPI_REAL4", "MPI_COMPLEX8"},
	{15, 307, "MPI_REAL8", "MPI_COMPLEX16"},
	{18, 4931, "MPI_LONG_DOUBLE", "MPI_C_LONG_DOUBLE_COMPLEX"},
	{33, 4931, "MPI_REAL16", "MPI_COMPLEX32"},
}

// F90Real names the representation of selected_real_kind(p, r), real or complex. Either may be
// Undefined, not both.
func F90Real(p, r int64, isComplex bool) (string, error) {
	if p == Undefined && r == Undefined {
		return "", mpierr.New(mpierr.Arg, "p and r are both MPI_UNDEFINED; give one of them")
	}
	for _, k := range fortranReals {
		if (p == Undefined || p <= k.p) && (r == Undefined || r <= k.r) {
			if isComplex {
				return k.complex, nil
			}
			return k.real, nil
		}
	}
	return "", mpierr.New(mpierr.Arg,
		"no real kind has %d decimal digits and an exponent range of %d; at most 33 and 4931", p, r)
}

// F90Integer names the representation of selected_int_kind(r).
func F90Integer(r int64) (string, error) {
	for _, k := range []struct {
		r    int64
		name string
	}{{2, "MPI_INTEGER1"}, {4, "MPI_INTEGER2"}, {9, "MPI_INTEGER4"}, {18, "MPI_INTEGER8"},
		{38, "MPI_INTEGER16"}} {
		if r <= k.r {
			return k.name, nil
		}
	}
	return "", mpierr.New(mpierr.Arg,
		"no integer kind has a range of %d decimal digits; at most 38", r)
}

// NewF90 makes the unnamed predefined type of a Fortran kind: args are p and r, or r alone for
// integers.
func NewF90(c Combiner, b *Basic, args ...int64) *Type {
	return newParam(b, c,
		Contents{Ints: args})
}

// NewPair makes the unnamed predefined pair type of a value and an index
// (MPI_Type_get_value_index); b describes the pair.
func NewPair(b *Basic, value, index *Type) *Type {
	return newParam(b, CombValueIndex, Contents{Types: []*Type{value, index}})
}
