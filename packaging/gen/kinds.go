package main

import (
	"strings"

	"libspx/api"
)

// kinds says what an argument of a kind is. The classification is the standard's own (api/README.md).
var kinds = map[string]string{
	"COMMUNICATOR": "a communicator", "GROUP": "a group", "DATATYPE": "a datatype", "OPERATION": "an operation", "ERRHANDLER": "an error handler",
	"INFO": "hints, or MPI_INFO_NULL", "REQUEST": "a request", "MESSAGE": "a message that was taken out", "WINDOW": "a window", "FILE": "an open file",
	"SESSION": "a session", "STATUS": "a status", "RANKSET": "a set of ranks", "CHECKPOINT": "an object for checkpoints",
	"BUFFER": "address of the data", "C_BUFFER": "address", "C_BUFFER2": "address", "LOCATION": "address in memory", "LOCATION_SMALL": "address in memory", "POLYLOCATION": "address in memory",
	"TAG": "tag of the message", "DEST": "rank that it goes to", "SOURCE": "rank that it comes from", "ROOT": "rank of the root", "RANK": "a rank", "RANK_NNI": "a rank",
	"COMM_SIZE": "number of processes", "COMM_SIZE_PI": "number of processes", "COLOR": "color: those with the same come together", "KEY": "orders the ranks",
	"LOGICAL": "true (not 0) or false (0)", "LOGICAL_OPTIONAL": "true (not 0) or false (0)", "LOGICAL_VOID": "address of a logical value of Fortran",
	"STRING": "text", "STRING_LENGTH": "length of the text", "STRING_ARRAY": "texts", "STRING_2DARRAY": "arrays of texts", "INFO_VALUE_LENGTH": "length of the value",
	"KEYVAL": "a key for attributes", "ATTRIBUTE_VAL": "value of the attribute", "ATTRIBUTE_VAL_10": "value of the attribute",
	"EXTRA_STATE": "is handed to the functions", "EXTRA_STATE2": "is handed to the functions", "FUNCTION": "a function of the program", "POLYFUNCTION": "a function of the program",
	"ERROR_CODE": "an error code", "ERROR_CLASS": "an error class", "THREAD_LEVEL": "MPI_THREAD_SINGLE, _FUNNELED, _SERIALIZED or _MULTIPLE",
	"VERSION": "a version number", "OFFSET": "offset", "ASSERT": "assertions (MPI_MODE_), or 0", "LOCK_TYPE": "MPI_LOCK_SHARED or MPI_LOCK_EXCLUSIVE",
	"ACCESS_MODE": "modes (MPI_MODE_), added", "UPDATE_MODE": "MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END", "ORDER": "MPI_ORDER_C or MPI_ORDER_FORTRAN",
	"SPLIT_TYPE": "what is shared: MPI_COMM_TYPE_", "TOPOLOGY_TYPE": "MPI_CART, MPI_GRAPH, MPI_DIST_GRAPH or MPI_UNDEFINED",
	"GROUP_COMPARISON": "MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL", "COMM_COMPARISON": "MPI_IDENT, MPI_CONGRUENT, MPI_SIMILAR or MPI_UNEQUAL",
	"COMBINER": "which call has made it: MPI_COMBINER_", "DISTRIB_ENUM": "MPI_DISTRIBUTE_BLOCK, _CYCLIC or _NONE", "DTYPE_DISTRIBUTION": "argument of the distribution",
	"PROCESS_GRID_SIZE": "extent of the grid of processes", "TYPECLASS": "MPI_TYPECLASS_REAL, _INTEGER or _COMPLEX", "TYPECLASS_SIZE": "size in bytes",
	"DIMENSION": "a dimension", "NUM_DIMS": "number of dimensions", "COORDINATE": "coordinates", "DEGREE": "number of neighbours", "WEIGHT": "weights of the edges",
	"PARTITION": "number of a partition, or of partitions", "INDEX": "an index", "KEY_INDEX": "number of the key, from 0", "MATH": "a number",
	"FILE_DESCRIPTOR": "descriptor of a connected socket", "PROFILE_LEVEL": "what is said to the tool", "ARGUMENT_LIST": "arguments of the program", "ARGUMENT_COUNT": "number of arguments",
	"ALLOC_MEM_NUM_BYTES": "number of bytes", "WIN_ATTACH_SIZE": "number of bytes", "WINDOW_SIZE": "number of bytes", "NUM_BYTES": "number of bytes",
	"UPDATE_NUMBER": "a stamp", "TOOLS_TICK_COUNT": "a number of ticks", "CALLBACK_SAFETY": "what the function may do", "SOURCE_ORDERING": "whether the source's events come in order",
	"BIND_TYPE": "what kind of object a handle is made for: MPI_T_BIND_", "VARIABLE_SCOPE": "who must agree on a change: MPI_T_SCOPE_", "PVAR_CLASS": "MPI_T_PVAR_CLASS_",
	"TOOL_VAR_VERBOSITY": "whom it is for: MPI_T_VERBOSITY_", "TOOL_MPI_OBJ": "address of the handle of the object, if it is made for one", "TOOL_VAR_VALUE": "value",
	"TOOLS_ENUM": "an enumeration", "TOOLENUM_INDEX": "number of the value, from 0", "TOOLENUM_SIZE": "number of values", "CVAR": "a handle for a control variable",
	"PVAR": "a handle for a performance variable", "PVAR_SESSION": "a session for performance variables", "EVENT_REGISTRATION": "a handle for events", "EVENT_INSTANCE": "an event",
	"EVENT_CB_FUNCTION": "a function of the program", "EVENT_FREE_CB_FUNCTION": "a function of the program", "EVENT_DROP_CB_FUNCTION": "a function of the program",
	"GENERIC_DTYPE_INT": "an integer", "GENERIC_DTYPE_COUNT": "a count", "CVAR_INDEX_SPECIAL": "numbers of control variables", "BITMAP": "bits, one for each rank", "F08_STATUS": "a status of module mpi_f08",
}

// shapes says it for kinds that differ in their ranges alone, by the beginning of their names.
var shapes = []struct{ prefix, text string }{
	{"POLYXFER_NUM_ELEM", "number of elements"}, {"XFER_NUM_ELEM", "number of elements"}, {"POLYDTYPE_NUM_ELEM", "number of elements or blocks"},
	{"POLYDTYPE_PACK_SIZE", "number of bytes"}, {"POLYDTYPE_STRIDE_BYTES", "number of bytes"}, {"POLYNUM_PARAM_VALUES", "number of values"},
	{"POLYNUM_BYTES", "number of bytes"}, {"POLYRMA_DISPLACEMENT", "unit of displacements in bytes"}, {"RMA_DISPLACEMENT", "displacement from the beginning of the window, in its units"},
	{"POLYDISP", "displacement"}, {"DISPLACEMENT", "displacement"}, {"ARRAY_LENGTH", "length of the array"}, {"TOOLS_NUM_ELEM", "number of elements"},
	{"CAT_INDEX", "number of a category"}, {"CVAR_INDEX", "number of a control variable"}, {"PVAR_INDEX", "number of a performance variable"},
	{"EVENT_INDEX", "number of a type of events"}, {"F90_", "of Fortran, as mpif.h and module mpi have it"}, {"SOURCE_INDEX", "number of a source of events"},
}

// argument describes one argument: direction, what it is, what else it may be.
func argument(f *api.Function, a *api.Param) string {
	text := kinds[a.Kind]
	for _, s := range shapes {
		if text == "" && strings.HasPrefix(a.Kind, s.prefix) {
			text = s.text
		}
	}
	if text == "" { // a kind of an extension
		text = "a value of type " + strings.TrimSpace(strings.TrimSuffix(a.CType, "*"))
	}
	if a.Array() && a.Kind != "BUFFER" && a.Kind != "STRING" {
		text = "array: " + text
		if n := a.Flags["array"]; n != "" && n != "*" && n != "size" {
			text += ", " + n + " of them"
		} else if a.Has("array") {
			text += ", one for each process"
		}
	}
	if a.Dir != "" {
		text = "(" + map[string]string{"in": "in", "out": "out", "inout": "in and out"}[a.Dir] + ") " + text
	}
	for _, more := range []struct {
		holds bool
		text  string
	}{
		{a.Has("root_only"), "; used at the root alone"},
		{a.Has("inplace"), "; or MPI_IN_PLACE"},
		{a.Has("inplace_root"), "; or MPI_IN_PLACE at the root"},
		{a.Kind == "SOURCE" && a.Has("any"), "; or MPI_ANY_SOURCE, MPI_PROC_NULL"},
		{a.Kind == "DEST", "; or MPI_PROC_NULL"},
		{a.Kind == "TAG" && a.Has("any"), "; or MPI_ANY_TAG"},
		{a.Kind == "STATUS" && a.Dir == "out" && !strings.HasPrefix(f.Name, "MPI_Status_"), "; or " + map[bool]string{true: "MPI_STATUSES_IGNORE", false: "MPI_STATUS_IGNORE"}[a.Array()]},
		{a.Has("async"), "; used until the operation is complete"},
	} {
		if more.holds {
			text += more.text
		}
	}
	return text + "."
}

// classesOf are the error classes that a wrong argument of a kind has.
var classesOf = []struct{ kind, class, text string }{
	{"COMMUNICATOR", "MPI_ERR_COMM", "The communicator is none, or is not of the kind that this call needs."},
	{"GROUP", "MPI_ERR_GROUP", "The group is none."},
	{"WINDOW", "MPI_ERR_WIN", "The window is none."},
	{"FILE", "MPI_ERR_FILE", "The file is not open."},
	{"SESSION", "MPI_ERR_SESSION", "The session is none."},
	{"REQUEST", "MPI_ERR_REQUEST", "The request is none."},
	{"DATATYPE", "MPI_ERR_TYPE", "The datatype is none, or was not committed."},
	{"OPERATION", "MPI_ERR_OP", "The operation is none, or does not fit the datatype."},
	{"INFO", "MPI_ERR_INFO", "The info object is none."},
	{"ERRHANDLER", "MPI_ERR_ERRHANDLER", "The error handler is none, or for another kind of object."},
	{"KEYVAL", "MPI_ERR_KEYVAL", "The key is none."},
	{"ROOT", "MPI_ERR_ROOT", "There is no such rank."},
	{"DEST", "MPI_ERR_RANK", "There is no such rank."},
	{"SOURCE", "MPI_ERR_RANK", "There is no such rank."},
	{"RANK", "MPI_ERR_RANK", "There is no such rank."},
	{"TAG", "MPI_ERR_TAG", "The tag is negative or above MPI_TAG_UB."},
	{"POLYXFER_NUM_ELEM", "MPI_ERR_COUNT", "The count is negative."},
	{"BUFFER", "MPI_ERR_BUFFER", "The address is NULL though there are elements, or MPI_IN_PLACE where it is not allowed."},
}

// classes are the error classes that f's arguments can have, and what all communication can.
func classes(f *api.Function) (out [][2]string) {
	if f.State == "raw" {
		return nil
	}
	seen := map[string]bool{}
	add := func(class, text string) {
		if !seen[class] {
			seen[class] = true
			out = append(out, [2]string{class, text})
		}
	}
	for _, c := range classesOf {
		for _, a := range f.Params {
			if (a.Kind == c.kind || strings.HasPrefix(a.Kind, c.kind+"_N") || c.kind == "POLYXFER_NUM_ELEM" && strings.HasPrefix(a.Kind, c.kind)) && (a.Dir != "out" || c.kind == "BUFFER") {
				add(c.class, c.text)
			}
		}
	}
	for _, a := range f.Params {
		if a.Pointer() || a.Kind == "LOGICAL" {
			add("MPI_ERR_ARG", "Another argument is wrong: NULL, or not one of the values that are allowed.")
			break
		}
	}
	if f.Chapter == "p2p" || f.Chapter == "coll" || f.Chapter == "neighbor" || f.Chapter == "mcast" || f.Chapter == "rma" {
		add("MPIX_ERR_PROC_FAILED", "A process that takes part has died.")
	}
	return out
}
