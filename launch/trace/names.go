package trace

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"libspx/api"
	"libspx/launch/inspect"
)

// Calls and their arguments by name.

func callName(fn uint32) string {
	if name := inspect.CallName(fn); name != "" {
		return name
	}
	return "call " + strconv.Itoa(int(fn))
}

type tables struct {
	functions []*api.Function
	handles   map[string]map[int64]string // C type -> value -> name
	errors    map[int64]string
	chapters  map[string]string // by function
}

var known = sync.OnceValue(func() *tables {
	t := &tables{handles: map[string]map[int64]string{}, errors: map[int64]string{},
		chapters: map[string]string{}}
	all, err := api.Load()
	if err != nil {
		return t
	}
	t.functions = all.Functions
	for _, f := range all.Functions {
		t.chapters[f.Name] = f.Chapter
	}
	for _, c := range all.Constants {
		v, err := strconv.ParseInt(c.Value, 0, 64)
		if err != nil {
			continue
		}
		if c.Kind == "handle" {
			if t.handles[c.CType] == nil {
				t.handles[c.CType] = map[int64]string{}
			}
			if t.handles[c.CType][v] == "" {
				t.handles[c.CType][v] = c.Name
			}
		}
		if c.Category == "ERROR_CLASSES" && t.errors[v] == "" {
			t.errors[v] = c.Name
		}
	}
	return t
})

// Chapter is the part of MPI that a function belongs to, by its name; empty: it is not known.
func Chapter(call string) string {
	return known().chapters[call]
}

// chapter is the part of MPI that a function belongs to; empty: it is not known.
func chapter(fn uint32) string {
	if t := known(); fn >= 1 && int(fn) <= len(t.functions) {
		return t.functions[fn-1].Chapter
	}
	return ""
}

// An argument of a call, by name.
type argument struct{ name, text string }

// arguments are those of a call that the record has (api/gen/trace.go writes them down in this
// order).
func arguments(r *record) (out []argument) {
	t := known()
	if r.fn < 1 || int(r.fn) > len(t.functions) {
		return nil
	}
	f, comm := t.functions[r.fn-1], ""
	for _, p := range f.Params {
		if p.Kind == "COMMUNICATOR" && p.CType == "MPI_Comm" && p.Dir == "in" {
			comm = p.Name
			break
		}
	}
	for _, p := range f.Params {
		switch {
		case p.Name == comm && comm != "":
			if r.ctx != 0 {
				out = append(out, argument{comm, commName(r)})
			}
			continue
		case p.Pointer() || p.CType == "..." || strings.Contains(p.Kind, "FUNCTION"):
			continue
		}
		n := 0
		for _, a := range out {
			if a.name != comm {
				n++
			}
		}
		if n < r.args {
			out = append(out, argument{p.Name, t.value(p, r.arg[n])})
		}
	}
	return out
}

func (t *tables) value(p api.Param, v int64) string {
	if t.handles[p.CType] != nil {
		if name := t.handles[p.CType][v]; name != "" {
			return name
		}
		if p.CType == "MPI_Datatype" {
			return fmt.Sprintf("derived 0x%x", v)
		}
		return fmt.Sprintf("0x%x", v)
	}
	if strings.HasPrefix(p.CType, "MPI_") && p.CType != "MPI_Aint" && p.CType != "MPI_Count" &&
		p.CType != "MPI_Offset" {
		return fmt.Sprintf("0x%x", v)
	}
	switch p.Kind {
	case "DEST", "SOURCE", "ROOT", "RANK", "RANK_NNI":
		switch v {
		case -1:
			return "MPI_ANY_SOURCE"
		case -3:
			return "MPI_PROC_NULL"
		case -4:
			return "MPI_ROOT"
		}
	case "TAG":
		if v == -2 {
			return "MPI_ANY_TAG"
		}
	}
	return strconv.FormatInt(v, 10)
}

func commName(r *record) string {
	switch {
	case r.flags&cTraceWorld != 0:
		return "MPI_COMM_WORLD"
	case r.flags&cTraceSelf != 0:
		return "MPI_COMM_SELF"
	}
	return fmt.Sprintf("context 0x%x", r.ctx)
}

func errorName(code int32) string {
	if name := known().errors[int64(code)]; name != "" {
		return name
	}
	return "error " + strconv.Itoa(int(code))
}
