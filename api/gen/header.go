package main

import (
	"fmt"
	"go/format"
	"strings"

	"libspx/api"
)

// A headerText is what a public header has around its generated part.
type headerText struct{ about, includes, before, after string }

var headerTexts = map[string]headerText{
	"mpi.h": {
		about: `mpi.h - the MPI-5.0 standard ABI (MPI-5.0, chapter 20).

A program compiled with this header runs with every library of that ABI, and the other way round. Names that the
standard has removed, and the Fortran converters, are in mpi-legacy.h, which is included unless SPX_STRICT is defined.`,
		includes: "#include <stdint.h>\n",
		after:    "#ifndef SPX_STRICT\n#include \"mpi-legacy.h\"\n#endif\n",
	},
	"mpi-legacy.h": {
		about: `mpi-legacy.h - names that MPI-3.0 and MPI-4.0 removed, and converters to and from Fortran handles (MPI-5.0, 19.3.4).

They are not part of the standard ABI: a program that uses them runs with libspx only.`,
		includes: "#include \"mpi.h\"\n",
	},
	"mpi-ext.h": {
		about: `mpi-ext.h - MPIX_ extensions of libspx: user-level failure mitigation (ULFM), checkpoints and spare processes, multicast to a set of ranks, and what layers above MPI attach to requests.

A program that uses them runs with libspx only. Constants are above MPI_ERR_LASTCODE, where the standard defines none.`,
		includes: "#include \"mpi.h\"\n",
		before:   "/* What ULFM programs test for. */\n#define OMPI_HAVE_MPI_EXT_FTMPI 1\n",
	},
	"mpisp.h": {
		about:    "mpisp.h - systems of clusters: special ranks and the worlds of an I/O processor.",
		includes: "#include \"mpi.h\"\n",
	},
	"ulfm_dyprc.h": {
		about: `ulfm_dyprc.h - changing the number of processes while the program runs, and surviving their loss.

ulfm_dyprc_setjmp and ulfm_dyprc_poll are macros: they hand on the address of mworld, which the library replaces, and
setjmp has to be called in the frame that is jumped back to. mworld is the name of a variable.`,
		includes: "#include \"mpi.h\"\n#include <setjmp.h>\n",
		after: `/* 0 on the first pass; 1 after a failure, after a change of the number of processes, and in a new process (newcomer != 0). */
#define ulfm_dyprc_setjmp(mworld, newcomer)                                                                            \
  (setjmp(*(jmp_buf *)ulfm_dyprc_point(&(mworld))) == 0 ? ulfm_dyprc_resume(&(mworld), 0, (newcomer))                  \
                                                        : ulfm_dyprc_resume(&(mworld), 1, (newcomer)))
/* Carries out commands from outside; call it regularly. */
#define ulfm_dyprc_poll(mworld) (ulfm_dyprc_poll)(&(mworld))
`,
	},
}

// headers makes the public headers.
func headers(t *api.Tables) map[string][]byte {
	out := map[string][]byte{}
	for name, text := range headerTexts {
		out["include/"+name] = header(t, name, text)
	}
	return out
}

func header(t *api.Tables, name string, text headerText) []byte {
	w := &strings.Builder{}
	guard := "SPX_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
	fmt.Fprintf(w, "/* %s\n * %s */\n", strings.ReplaceAll(strings.ReplaceAll(text.about, "\n", "\n * "), " \n", "\n"), generated)
	fmt.Fprintf(w, "#ifndef %s\n#define %s\n\n%s\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n", guard, guard, text.includes)
	if text.before != "" {
		w.WriteString(text.before + "\n")
	}
	types(w, t, name)
	constants(w, t, name)
	prototypes(w, t, name)
	w.WriteString("#ifdef __cplusplus\n}\n#endif\n")
	if text.after != "" {
		w.WriteString("\n" + text.after)
	}
	w.WriteString("#endif\n")
	return []byte(w.String())
}

func types(w *strings.Builder, t *api.Tables, header string) {
	n := 0
	for _, ty := range t.Types {
		if ty.Header != header {
			continue
		}
		n++
		fmt.Fprintf(w, "%s;", ty.Decl)
		if ty.Note != "" {
			fmt.Fprintf(w, " /* %s */", ty.Note)
		}
		w.WriteByte('\n')
	}
	if n > 0 {
		w.WriteByte('\n')
	}
}

func constants(w *strings.Builder, t *api.Tables, header string) {
	category := ""
	for _, c := range t.Constants {
		if c.Header != header {
			continue
		}
		if c.Category != category {
			category = c.Category
			fmt.Fprintf(w, "/* %s */\n", strings.ToLower(strings.ReplaceAll(category, "_", " ")))
		}
		fmt.Fprintf(w, "#define %-32s %s", c.Name, constant(c))
		if c.Note != "" && !strings.HasPrefix(c.Note, "alias of ") {
			fmt.Fprintf(w, " /* %s */", c.Note)
		}
		w.WriteByte('\n')
	}
	if category != "" {
		w.WriteByte('\n')
	}
}

// constant is the C expression of a constant: a plain number where that is possible, so that #if can test it.
func constant(c *api.Constant) string {
	if alias, ok := strings.CutPrefix(c.Note, "alias of "); ok {
		return alias
	}
	switch {
	case c.CType != "int":
		return "((" + strings.Replace(strings.Replace(c.CType, "*", " *", 1), "* *", "**", 1) + ")" + c.Value + ")"
	case strings.HasPrefix(c.Value, "-"):
		return "(" + c.Value + ")"
	}
	return c.Value
}

// sentinelsAsPointers is the prototype of a function, with weights as pointers: compilers take an argument in the place of an array
// for one that is read, and MPI_UNWEIGHTED, which is an address of nothing, is then a warning (gcc's -Wstringop-overread).
func sentinelsAsPointers(f *api.Function) string {
	proto := f.Proto
	for _, p := range f.Params {
		if p.Kind == "WEIGHT" {
			proto = strings.Replace(proto, "int "+p.Name+"[]", "int *"+p.Name, 1)
		}
	}
	return proto
}

func prototypes(w *strings.Builder, t *api.Tables, header string) {
	var twins []string
	for _, f := range t.Functions {
		if f.Header != header {
			continue
		}
		proto := sentinelsAsPointers(f)
		if f.Note != "" {
			fmt.Fprintf(w, "/* %s */\n", f.Note)
		}
		fmt.Fprintf(w, "%s;\n", proto)
		if tw := twin(f); tw != "" {
			twins = append(twins, strings.Replace(proto, f.Name+"(", tw+"(", 1))
		}
	}
	if len(twins) > 0 {
		w.WriteString("\n/* The same, for tools that put their own functions in place of the above (MPI-5.0, 15.2). */\n" + strings.Join(twins, ";\n") + ";\n")
	}
	w.WriteByte('\n')
}

// gofmt formats generated Go, which must be correct.
func gofmt(src string) []byte {
	out, err := format.Source([]byte(src))
	if err != nil {
		panic("generated Go does not parse: " + err.Error())
	}
	return out
}
