// Package check describes errors of a program, with SPX_CHECK=1: mismatched collectives (MPI-5.0,
// 6.1), and objects left when MPI ends (11.2.2).
//
// It is pure. The description of each process's call is written and read by C
// (capi/bodies/check_coll.c), which calls this package only where two processes differ.
package check

import "libspx/core/mpierr"

// Basic is a basic datatype. The zero value stands for several.
type Basic struct {
	Name string // as MPI_Type_get_name gives it
	// integers, floating point and so on; of one class and size are types that hold the same
	Class  int
	Size   int  // bytes
	Packed bool // MPI_PACKED, which fits all
}

// fits reports whether elements of the two types hold the same, as of MPI_INT and MPI_INT32_T.
func (b Basic) fits(c Basic) bool {
	return b.Name == "" || c.Name == "" || b.Packed || c.Packed || b.Class == c.Class &&
		b.Size == c.Size
}

func (b Basic) String() string {
	if b.Name == "" {
		return "?"
	}
	return b.Name
}

// Call is what a process is about to do in an operation of a communicator.
type Call struct {
	Rank    int    // in the communicator
	Seq     uint32 // number of the operation there
	Name    string // the MPI function
	Kind    uint32 // which collective
	Request bool   // nonblocking or persistent
	Root    int    // -1: there is none
	Op      uint32 // predefined operation; 0: none
	Count   int64  // elements; -1: not compared
	Bytes   uint64
	Basic   Basic
}

// Compare returns what does not fit between two calls for the same operation, nil if nothing is
// wrong. here is this process's; comm is the communicator's name, "" if it has none.
func Compare(here, there Call, comm string) error {
	if comm == "" {
		comm = "the communicator"
	}
	switch {
	case here.Kind != there.Kind || here.Request != there.Request:
		return mpierr.New(mpierr.Other,
			"mismatched collectives: operation %d of %s is %s here (rank %d), but %s on rank %d",
			here.Seq, comm, here.Name, here.Rank, there.Name, there.Rank)
	case here.Root != there.Root:
		return mpierr.New(mpierr.Root,
			"mismatched root: root = %d here (rank %d), but root = %d on rank %d (operation %d "+
				"of %s)",
			here.Root, here.Rank, there.Root, there.Rank, here.Seq, comm)
	case here.Op != there.Op && here.Op != 0 && there.Op != 0:
		return mpierr.New(mpierr.Op,
			"mismatched operations: rank %d and rank %d give different MPI_Op (operation %d of %s)",
			here.Rank, there.Rank, here.Seq, comm)
	case here.Count < 0 || there.Count < 0:
		return nil
	case !here.Basic.fits(there.Basic) && here.Bytes > 0 && there.Bytes > 0:
		return mpierr.New(mpierr.Type,
			"mismatched datatypes: %d of %v here (rank %d), but %d of %v on rank %d (operation "+
				"%d of %s)",
			here.Count, here.Basic, here.Rank, there.Count, there.Basic, there.Rank, here.Seq, comm)
	case here.Bytes != there.Bytes:
		return mpierr.New(mpierr.Count,
			"mismatched counts: %d elements, %d bytes here (rank %d), but %d elements, %d bytes "+
				"on rank %d (operation %d of %s)",
			here.Count, here.Bytes, here.Rank, there.Count, there.Bytes, there.Rank, here.Seq, comm)
	}
	return nil
}
