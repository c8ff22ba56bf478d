package main

import (
	"fmt"
	"strings"

	"libspx/api"
	"libspx/core/coll"
)

// Traced calls: for every function that may be called between MPI_Init and MPI_Finalize alone there is one of the same form that writes down the
// call, and makes it. The shim goes there when the process is traced (capi/abi/trace.h).

// mostArgs is SPX_TRACE_ARGS: what follows is not written down.
const mostArgs = 8

// tracedForm is the traced form of a function, for the file of its shim: each calls the other, so both are one unit. It is cold, to keep it out of the
// way of calls that are not traced.
func tracedForm(t *api.Tables, f *api.Function) string {
	proto := strings.Replace(f.Proto, f.Name+"(", "spx_t_"+ident(f)+"(", 1)
	return "static SPX_TRACED " + proto + "\n" + traced(t, f)
}

// beginsMPI: calls that may be made at any time, and which are the first that a trace has.
func beginsMPI(f *api.Function) bool {
	return f.Name == "MPI_Init" || f.Name == "MPI_Init_thread" || f.Name == "MPI_Session_init"
}

// tracedCall is the call of the traced form with the parameters of the shim.
func tracedCall(f *api.Function) string {
	if f.Result != "int" || f.Variadic {
		panic(f.Name + " cannot be traced: its result is no error code, or it has any number of arguments")
	}
	return "spx_t_" + ident(f) + "(" + paramNames(f) + ")"
}

func paramNames(f *api.Function) string {
	var names []string
	for _, p := range f.Params {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// traceArgs are the parameters of a function that a trace has: what is no address, and is not the communicator that the record has anyway.
func traceArgs(f *api.Function) (list []api.Param) {
	comm := commOf(f)
	for _, p := range f.Params {
		if p.Pointer() || p.CType == "..." || p.Name == comm || strings.Contains(p.Kind, "FUNCTION") || len(list) == mostArgs {
			continue
		}
		list = append(list, p)
	}
	return list
}

// commOf is the communicator that a call is made on; empty: none.
func commOf(f *api.Function) string {
	for _, p := range f.Params {
		if p.Kind == "COMMUNICATOR" && p.CType == "MPI_Comm" && p.Dir == "in" {
			return p.Name
		}
	}
	return ""
}

func traced(t *api.Tables, f *api.Function) string {
	w := &strings.Builder{}
	w.WriteString("{\n")
	args := traceArgs(f)
	if len(args) > 0 {
		var values []string
		for _, p := range args {
			value := p.Name
			if isHandleType(t, p) {
				value = "(int64_t)(intptr_t)" + value
			}
			values = append(values, value)
		}
		fmt.Fprintf(w, "  int64_t arg[] = {%s};\n", strings.Join(values, ", "))
	}
	fmt.Fprintf(w, "  spx_call call = {.fn = SPX_FN_%s", ident(f))
	if flags := traceFlags(f); flags != "" {
		w.WriteString(", .flags = " + flags)
	}
	if len(args) > 0 {
		fmt.Fprintf(w, ", .args = %d, .arg = arg", len(args))
	}
	if k, ok := coll.KindOfCall(f.Name); ok && commOf(f) != "" {
		fmt.Fprintf(w, ", .coll = SPX_COLL_%s + 1", strings.ToUpper(k.String()))
	}
	if comm := commOf(f); comm != "" {
		w.WriteString(", .comm = " + comm)
	}
	w.WriteString("};\n")
	if count, datatype := sends(f); count != "" {
		fmt.Fprintf(w, "  call.bytes = spx_call_bytes(%s, %s);\n", count, datatype)
	}
	name := f.Name
	if tw := twin(f); tw != "" {
		name = tw
	}
	fmt.Fprintf(w, "  spx_call_begin(&call);\n  return spx_call_end(&call, %s(%s));\n}\n", name, paramNames(f))
	return w.String()
}

// traceFlags tells what the trace is to know of the function: whether it is a collective that blocks, or is called again and again until something has happened.
func traceFlags(f *api.Function) string {
	name := strings.TrimSuffix(strings.TrimPrefix(f.Name, "MPI_"), "_c")
	switch {
	case (f.Chapter == "coll" || f.Chapter == "neighbor") && commOf(f) != "" && !strings.HasSuffix(name, "_init") && !immediate(name):
		return "SPX_TRACE_COLLECTIVE"
	case strings.HasPrefix(name, "Test"), name == "Iprobe", name == "Improbe", name == "Request_get_status", name == "Parrived":
		return "SPX_TRACE_POLLS"
	}
	return ""
}

// immediate: the name is that of a nonblocking function, as Ibcast.
func immediate(name string) bool {
	return len(name) > 1 && name[0] == 'I' && name[1] >= 'a' && name[1] <= 'z'
}

// sends finds the count and the datatype of the first buffer that the call sends, where they are single values.
func sends(f *api.Function) (count, datatype string) {
	for i, p := range f.Params {
		if p.Kind != "BUFFER" || p.Dir == "out" {
			continue
		}
		for _, q := range f.Params[i+1:] {
			switch {
			case q.Kind == "BUFFER" && q.Dir == "in":
				return "", ""
			case strings.HasPrefix(q.Kind, "POLYXFER_NUM_ELEM") && !q.Pointer() && count == "":
				count = q.Name
			case q.Kind == "DATATYPE" && !q.Pointer() && count != "":
				return count, q.Name
			}
		}
		return "", ""
	}
	return "", ""
}
