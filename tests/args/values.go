// Package args calls every function of the interface with each of its arguments wrong in turn, and with everything that the
// standard lets stand for nothing (MPI_STATUS_IGNORE, a NULL buffer of no elements). It owns what a right call of every
// function is (values.go, calls.go), what can be wrong with a kind of argument and which error classes the standard has for it
// (wrong.go), and the C programs that are made of them (emit.go). It knows functions from the table in api alone: a new row is
// tested by itself. It must not say how the library finds a mistake. It serves MPI-5.0, 10.3 to 10.5 and 2.8.
package args

import (
	"fmt"
	"maps"
	"strings"

	"libspx/api"
)

// A handle is a kind of handle: its C type, its null handle, the class of error that a wrong one is.
type handle struct{ ctype, null, class, other string }

var handles = map[string]handle{
	"COMMUNICATOR": {"MPI_Comm", "MPI_COMM_NULL", "MPI_ERR_COMM", "(MPI_Comm)MPI_INT"},
	"GROUP":        {"MPI_Group", "MPI_GROUP_NULL", "MPI_ERR_GROUP", "(MPI_Group)MPI_COMM_WORLD"},
	"DATATYPE":     {"MPI_Datatype", "MPI_DATATYPE_NULL", "MPI_ERR_TYPE", "(MPI_Datatype)MPI_COMM_WORLD"},
	"OPERATION":    {"MPI_Op", "MPI_OP_NULL", "MPI_ERR_OP", "(MPI_Op)MPI_INT"},
	"ERRHANDLER":   {"MPI_Errhandler", "MPI_ERRHANDLER_NULL", "MPI_ERR_ERRHANDLER", "(MPI_Errhandler)MPI_INT"},
	"INFO":         {"MPI_Info", "MPI_INFO_NULL", "MPI_ERR_INFO", "(MPI_Info)MPI_INT"},
	"REQUEST":      {"MPI_Request", "MPI_REQUEST_NULL", "MPI_ERR_REQUEST", "(MPI_Request)MPI_INT"},
	"MESSAGE":      {"MPI_Message", "MPI_MESSAGE_NULL", "MPI_ERR_REQUEST", "(MPI_Message)MPI_INT"},
	"WINDOW":       {"MPI_Win", "MPI_WIN_NULL", "MPI_ERR_WIN", "(MPI_Win)MPI_INT"},
	"FILE":         {"MPI_File", "MPI_FILE_NULL", "MPI_ERR_FILE", "(MPI_File)MPI_INT"},
	"SESSION":      {"MPI_Session", "MPI_SESSION_NULL", "MPI_ERR_SESSION", "(MPI_Session)MPI_INT"},
	"RANKSET":      {"MPIX_Rankset", "MPIX_RANKSET_NULL", "MPI_ERR_ARG", "(MPIX_Rankset)MPI_INT"},
	"CHECKPOINT":   {"MPIX_Checkpoint", "MPIX_CHECKPOINT_NULL", "MPI_ERR_ARG", "(MPIX_Checkpoint)MPI_INT"},
}

func init() {
	maps.Copy(handles, toolHandles)
	maps.Copy(right, toolRight)
}

// right has a right value for every kind of argument that goes in. ~ stands for i_, c_ or m_: an array of int, MPI_Count or MPI_Aint.
var right = map[string]string{
	"COMMUNICATOR": "comm", "GROUP": "group", "DATATYPE": "MPI_INT", "OPERATION": "MPI_SUM", "ERRHANDLER": "MPI_ERRORS_RETURN", "INFO": "info",
	"WINDOW": "win", "FILE": "file", "SESSION": "session", "MESSAGE": "MPI_MESSAGE_NO_PROC", "REQUEST": "never", "RANKSET": "set", "CHECKPOINT": "point",
	"DEST": "me", "SOURCE": "me", "ROOT": "0", "TAG": "7", "RANK": "0", "RANK_NNI": "me", "STRING": "\"text\"",
	"ERROR_CODE": "MPI_ERR_TAG", "ERROR_CLASS": "MPI_ERR_TAG", "ORDER": "MPI_ORDER_C", "LOCK_TYPE": "MPI_LOCK_SHARED", "SPLIT_TYPE": "MPI_COMM_TYPE_SHARED",
	"UPDATE_MODE": "MPI_SEEK_SET", "TYPECLASS": "MPI_TYPECLASS_INTEGER", "TYPECLASS_SIZE": "4", "THREAD_LEVEL": "MPI_THREAD_SINGLE",
	"EXTRA_STATE": "NULL", "EXTRA_STATE2": "NULL", "ATTRIBUTE_VAL": "sbuf", "ATTRIBUTE_VAL_10": "sbuf", "STATUS": "&status", "PARTITION": "0",
	"POLYNUM_BYTES_NNI": "64", "POLYDTYPE_PACK_SIZE": "64", "WINDOW_SIZE": "64", "WIN_ATTACH_SIZE": "64", "ALLOC_MEM_NUM_BYTES": "64",
	"RMA_DISPLACEMENT_NNI": "0", "POLYRMA_DISPLACEMENT": "4", "OFFSET": "0", "ASSERT": "0", "LOGICAL": "0", "KEY": "0", "COLOR": "0", "INDEX": "0",
	"KEY_INDEX": "0", "COMM_SIZE": "1", "ACCESS_MODE": "MPI_MODE_RDWR",
}

var rightArray = map[string]string{
	"POLYXFER_NUM_ELEM_NNI": "~ones", "POLYDTYPE_NUM_ELEM_NNI": "~ones", "POLYDISPLACEMENT": "~displs", "DISPLACEMENT": "~bytes",
	"POLYDISPLACEMENT_AINT_COUNT": "~bytes", "POLYDISPLACEMENT_COUNT": "~displs", "DATATYPE": "i_types", "RANK": "i_zeros", "RANK_NNI": "i_zeros",
	"STRING": "\"external32\"", "LOGICAL": "i_ones", "COORDINATE": "i_zeros", "PARTITION": "i_zeros", "COMM_SIZE": "i_ones", "DEGREE": "i_ones",
	"WEIGHT": "i_ones", "BITMAP": "bits",
}

// element is the C type of what a pointer or an array parameter points at: "const int" of "const int []".
func element(p api.Param) string {
	t := strings.TrimSpace(p.CType)
	for _, end := range []string{"[][3]", "[]", "*"} {
		if s, ok := strings.CutSuffix(t, end); ok {
			return strings.TrimSpace(s)
		}
	}
	return t
}

func plainElement(p api.Param) string {
	return strings.TrimSpace(strings.TrimPrefix(element(p), "const "))
}

// tilde replaces ~ by the prefix of the arrays of this parameter's type.
func tilde(p api.Param, v string) string {
	prefix := map[string]string{"MPI_Count": "c_", "MPI_Aint": "m_"}[plainElement(p)]
	if prefix == "" {
		prefix = "i_"
	}
	return strings.ReplaceAll(v, "~", prefix)
}

// handleAddress tells whether a parameter is the address of one handle that goes in.
func handleAddress(p api.Param) bool {
	_, ok := handles[p.Kind]
	return ok && p.Dir != "out" && p.Pointer() && !p.Array()
}

// value is the right value of a parameter; set has what a function needs instead.
func value(f *api.Function, p api.Param, set map[string]string) string {
	if v, ok := set[p.Name]; ok {
		return tilde(p, v)
	}
	switch {
	case p.Kind == "BUFFER" && p.Dir == "in":
		return "sbuf"
	case p.Kind == "BUFFER":
		return "rbuf"
	case p.Kind == "KEYVAL" && !p.Pointer():
		switch {
		case strings.HasPrefix(f.Name, "MPI_Type"):
			return "tkey"
		case strings.HasPrefix(f.Name, "MPI_Win"):
			return "wkey"
		}
		return "ckey"
	case f.Chapter == "tools" && p.Dir == "in" && toolRight[p.Kind] != "":
		return toolRight[p.Kind]
	case p.Kind == "FUNCTION" || p.Kind == "POLYFUNCTION":
		return "(" + p.CType + ")(uintptr_t)dummy"
	case p.Array() && p.Dir == "in" && rightArray[p.Kind] != "":
		return tilde(p, rightArray[p.Kind])
	case p.Dir == "out" || p.Dir == "inout" && handles[p.Kind].null == "":
		return "(void *)x_" + p.Name
	case right[p.Kind] != "":
		return right[p.Kind]
	}
	if p.Pointer() {
		return "(void *)sbuf"
	}
	return "1"
}

// variable declares the C variable a_NAME that holds the argument.
func variable(p api.Param) string {
	d := p.Decl
	name := "a_" + p.Name
	switch {
	case strings.HasSuffix(d, "[][3]"):
		return element(p) + " (*" + name + ")[3]"
	case strings.HasSuffix(d, "[]"):
		return element(p) + " *" + name
	case strings.HasSuffix(p.CType, "*"):
		return p.CType + name
	case strings.HasSuffix(p.CType, "_function"):
		return p.CType + " *" + name
	}
	return p.CType + " " + name
}

// room declares where results go.
func room(p api.Param) string {
	e := plainElement(p)
	switch {
	case p.Dir == "in" || handleAddress(p) || p.Kind == "BUFFER":
		return ""
	case e == "void" || p.Kind == "STATUS" && p.Dir == "inout":
		e = "MPI_Status"
	case e == "char":
		return "  static char x_" + p.Name + "[MPI_MAX_LIBRARY_VERSION_STRING];\n"
	}
	return fmt.Sprintf("  static %s x_%s[64];\n", e, p.Name)
}
