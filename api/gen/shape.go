package main

import (
	"strings"

	"libspx/api"
)

// A shape is how a parameter is handed to a C body.
type shape int

const (
	plain    shape = iota // as in the C prototype
	object                // a checked spx_comm *, spx_type * or spx_op *
	count                 // int64_t
	counts                // spx_counts: an array whose elements are int or 64 bits wide
	countOut              // spx_count_out
	function              // spx_fnptr: a user function with int or MPI_Count
)

var objectTypes = map[string]string{"COMMUNICATOR": "spx_comm *", "DATATYPE": "spx_type *", "OPERATION": "spx_op *"}
var objectVar = map[string]string{"COMMUNICATOR": "c_", "DATATYPE": "t_", "OPERATION": "o_"}

// shapeOf tells how the body of function f (which both the small and the large form call) takes parameter i.
func shapeOf(t *api.Tables, f *api.Function, i int) shape {
	p := f.Params[i]
	if f.State != "raw" && !p.Has("raw") && p.Dir == "in" && !p.Pointer() && objectTypes[p.Kind] != "" {
		return object
	}
	large := t.Large(f)
	if large == nil || len(large.Params) != len(f.Params) || large.Params[i].CType == p.CType {
		return plain
	}
	switch {
	case p.Kind == "POLYFUNCTION":
		return function
	case !p.Pointer():
		return count
	case p.Dir == "in":
		return counts
	}
	return countOut
}

// bodyType is the C type of a parameter in a body's prototype.
func bodyType(s shape, p api.Param) string {
	switch s {
	case object:
		return objectTypes[p.Kind] + p.Name
	case count:
		return "int64_t " + p.Name
	case counts:
		return "spx_counts " + p.Name
	case countOut:
		return "spx_count_out " + p.Name
	case function:
		return "spx_fnptr " + p.Name
	}
	return p.Decl
}

// bodyArg is the expression that a shim passes for its own parameter p to a body that takes it in shape s.
func bodyArg(s shape, p api.Param) string {
	switch s {
	case object:
		return objectVar[p.Kind] + p.Name
	case counts, countOut, function:
		name := "spx_counts"
		if s == countOut {
			name = "spx_count_out"
		} else if s == function {
			return "(spx_fnptr){(void *)(uintptr_t)" + p.Name + ", " + width(p) + "}"
		}
		return "(" + name + "){" + p.Name + ", " + width(p) + "}"
	}
	return p.Name
}

// width is "1" when the elements of a parameter have 64 bits.
func width(p api.Param) string {
	if wideType(p) {
		return "1"
	}
	return "0"
}

func wideType(p api.Param) bool {
	t := strings.TrimSpace(strings.NewReplacer("const", "", "*", "", "[]", "").Replace(p.CType))
	return t == "MPI_Count" || t == "MPI_Aint" || t == "MPI_Offset" || strings.HasSuffix(t, "_function_c")
}

// wideCall tells whether a function is the large-count caller of its body: its counts are 64 bits wide.
func wideCall(t *api.Tables, f, as *api.Function) bool {
	if f.Count == "large" {
		return true
	}
	large := t.Large(as)
	if f == as || large == nil || len(large.Params) != len(f.Params) {
		return false
	}
	for i, p := range f.Params {
		if as.Params[i].CType != large.Params[i].CType && !wideType(as.Params[i]) && wideType(p) {
			return true
		}
	}
	return false
}

// signature is the prototype of the C body that belongs to a function.
func signature(t *api.Tables, f *api.Function) string {
	var args []string
	for i, p := range f.Params {
		args = append(args, bodyType(shapeOf(t, f, i), p))
	}
	if len(args) == 0 {
		args = []string{"void"}
	}
	result := f.Result
	if !strings.HasSuffix(result, "*") {
		result += " "
	}
	return result + "spx_c_" + ident(f) + "(" + strings.Join(args, ", ") + ")"
}
