package takeover

import (
	"reflect"
	"slices"
	"testing"
)

// Of four ranks, 2 was replaced. World is 8; 16 a duplicate; 24 and 32 the halves {0,1} and {2,3}
// of that; 40 was not made at rank 3 before it failed.
func statements() ([]*Statement, []bool) {
	world := Comm{Ctx: 8, New: 800, Local: []int{0, 1, 2, 3}, Name: "MPI_COMM_WORLD"}
	dup := Comm{Ctx: 16, New: 1600, Parent: 8, Local: []int{0, 1, 2, 3}}
	low := Comm{Ctx: 24, New: 2400, Parent: 16, Local: []int{0, 1}}
	high := Comm{Ctx: 32, New: 3200, Parent: 16, Local: []int{3, 2}, Name: "high"}
	late := Comm{Ctx: 40, New: 4000, Parent: 8, Birth: 2, Local: []int{0, 1, 2, 3}}
	return []*Statement{
		{Has: []Has{{8, 3, []uint32{1}}, {16, 1, nil}, {24, 0, nil}, {40, 0, nil}},
			Led: []Comm{world, dup, low, late}},
		{Has: []Has{{8, 3, []uint32{1}}, {16, 1, nil}, {24, 0, nil}, {40, 0, nil}}},
		{},
		{Has: []Has{{8, 2, nil}, {16, 1, nil}, {32, 0, nil}}, Led: []Comm{high}},
	}, []bool{false, false, true, false}
}

func TestMerge(t *testing.T) {
	all, replaced := statements()
	got := Merge(all, replaced)
	var ctx []uint64
	for _, c := range got {
		ctx = append(ctx, c.Ctx)
	}
	if !slices.Equal(ctx, []uint64{8, 16, 24, 32}) {
		t.Fatalf("%v stay", ctx)
	}
	if w := got[0]; w.Births != 2 || !slices.Equal(w.Freed, []uint32{1}) || w.New != 800 {
		t.Errorf("%+v", w)
	}
	if l, r := got[3].Has(2); !l || r || !got[3].Inherited() || got[3].Name != "high" {
		t.Errorf("%+v", got[3])
	}
}

// What was made of a communicator that has been freed stays with those that have it, and comes
// last.
func TestParentIsGone(t *testing.T) {
	all, replaced := statements()
	for _, s := range all {
		s.Has = slices.DeleteFunc(s.Has, func(h Has) bool { return h.Ctx == 16 })
		s.Led = slices.DeleteFunc(s.Led, func(c Comm) bool { return c.Ctx == 16 })
	}
	got := Merge(all, replaced)
	if len(got) != 3 || got[0].Ctx != 8 || got[1].Inherited() || got[2].Inherited() {
		t.Errorf("%+v", got)
	}
}

func TestForm(t *testing.T) {
	all, _ := statements()
	for _, s := range all {
		b := s.Encode()
		back, err := Decode(b)
		if err != nil || !reflect.DeepEqual(back.Led, s.Led) || len(back.Has) != len(s.Has) {
			t.Fatalf("%+v becomes %+v, %v", s, back, err)
		}
		for i := range b {
			if _, err := Decode(b[:i]); err == nil {
				t.Fatalf("%d of %d bytes are taken", i, len(b))
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	all, _ := statements()
	for _, s := range all {
		f.Add(s.Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode(b)
		if err == nil {
			Merge([]*Statement{s, s}, []bool{false, true})
		}
	})
}
