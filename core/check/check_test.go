package check

import (
	"fmt"
	"strings"
	"testing"

	"libspx/core/mpierr"
)

func TestCompare(t *testing.T) {
	integer, same, double, packed := Basic{Name: "MPI_INT", Class: 1, Size: 4},
		Basic{Name: "MPI_INT32_T", Class: 1, Size: 4},
		Basic{Name: "MPI_DOUBLE", Class: 2, Size: 8},
		Basic{Name: "MPI_PACKED", Class: 3, Size: 1, Packed: true}
	good := Call{Rank: 1, Seq: 7, Name: "MPI_Bcast", Kind: 2, Count: 10, Bytes: 40, Basic: integer}
	for _, c := range []struct {
		name  string
		there func(*Call)
		text  string
		class mpierr.Class
	}{
		{name: "the same", there: func(*Call) {}},
		{"another collective", func(c *Call) { c.Kind, c.Name = 3, "MPI_Reduce" },
			"mismatched collectives: operation 7 of W is MPI_Bcast here (rank 1), but " +
				"MPI_Reduce on rank 2", mpierr.Other},
		{"nonblocking", func(c *Call) { c.Request, c.Name = true, "MPI_Ibcast" },
			"mismatched collectives: operation 7 of W is MPI_Bcast here (rank 1), but " +
				"MPI_Ibcast on rank 2", mpierr.Other},
		{"root", func(c *Call) { c.Root = 3 },
			"mismatched root: root = 0 here (rank 1), but root = 3 on rank 2 (operation 7 of W)",
			mpierr.Root},
		{name: "an operation of the program", there: func(c *Call) { c.Op = 0 }},
		{"operation", func(c *Call) { c.Op = 2 },
			"mismatched operations: rank 1 and rank 2 give different MPI_Op (operation 7 of W)",
			mpierr.Op},
		{name: "not compared", there: func(c *Call) { c.Count, c.Bytes = -1, 1 }},
		{name: "the same by another name", there: func(c *Call) { c.Basic = same }},
		{name: "packed", there: func(c *Call) { c.Basic = packed }},
		{name: "several types", there: func(c *Call) { c.Basic = Basic{} }},
		{"type", func(c *Call) { c.Basic, c.Count = double, 5 },
			"mismatched datatypes: 10 of MPI_INT here (rank 1), but 5 of MPI_DOUBLE on rank 2 " +
				"(operation 7 of W)", mpierr.Type},
		{"type, without data", func(c *Call) { c.Basic, c.Count, c.Bytes = double, 0, 0 },
			"mismatched counts: 10 elements, 40 bytes here (rank 1), but 0 elements, 0 bytes on " +
				"rank 2 (operation 7 of W)", mpierr.Count},
		{"count", func(c *Call) { c.Count, c.Bytes = 9, 36 },
			"mismatched counts: 10 elements, 40 bytes here (rank 1), but 9 elements, 36 bytes " +
				"on rank 2 (operation 7 of W)", mpierr.Count},
	} {
		here, there := good, good
		here.Op, there.Op, there.Rank = 1, 1, 2
		c.there(&there)
		err := Compare(here, there, "W")
		if mpierr.ClassOf(err) != c.class || err != nil && err.Error() != c.text {
			t.Errorf("%s: %v, want %s", c.name, err, c.text)
		}
		if back := Compare(there, here, "W"); (back == nil) != (err == nil) {
			t.Errorf("%s: %v one way, %v the other", c.name, err, back)
		}
	}
	if err := Compare(good, Call{}, ""); !strings.Contains(err.Error(),
		"operation 7 of the communicator is") {
		t.Error(err)
	}
}

func TestLeft(t *testing.T) {
	kind := Kind{"sets of ranks", "MPIX_Rankset_free each"}
	one := Left(3, kind, map[string]uint64{"MPIX_Rankset_create in f": 1})
	if one.Text != "SPX_CHECK: rank 3 leaves 1 set of ranks at MPI_Finalize: MPIX_Rankset_free "+
		"each\nlibspx: SPX_CHECK:   1 made by MPIX_Rankset_create in f" {
		t.Error(one.Text)
	}
	places := map[string]uint64{}
	for i := range 12 {
		places[fmt.Sprint("f", i)] = uint64(i + 1)
	}
	many := Left(4, kind, places)
	if lines := strings.Split(many.Text, "\n"); len(lines) != 12 ||
		lines[1] != "libspx: SPX_CHECK:   12 made by f11" ||
		lines[11] != "libspx: SPX_CHECK:   and in 2 more places" ||
		!strings.Contains(lines[0], "78 sets of ranks") {
		t.Error(many.Text)
	}
	if other := Left(5, kind, places); other.Cause != many.Cause || other.Cause == one.Cause ||
		other.Shortly != one.Shortly {
		t.Error("the cause is that of the places:", other.Cause, many.Cause, one.Cause)
	}
}

func TestUnreceived(t *testing.T) {
	want := "SPX_CHECK: rank 2 leaves 1 message that it has never received: the first from rank " +
		"0, with tag 9, of 40 bytes"
	if got := Unreceived(2, 1, 0, 9, 40).Text; got != want {
		t.Error(got)
	}
}
