package args

import (
	"fmt"
	"strings"

	"libspx/api"
)

// interposer is the C text of a tool as a profiling library is (MPI-5.0, 15.2): a function in place of each MPI_X, which counts
// and calls PMPI_X. It writes a line of each function to $INTERPOSED when the process ends: its name, the calls of the
// program, and those that came from the library itself.
func interposer(functions []*api.Function) string {
	w := &strings.Builder{}
	w.WriteString(`#define _GNU_SOURCE
#include <mpi.h>
#include <mpi-ext.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const char *name;
  long program, library;
} entry;
extern entry calls[] __attribute__((visibility("hidden")));
static void *library;
static void seen(int f, void *from)
{
  Dl_info info;
  if (!library && dladdr(dlsym(RTLD_NEXT, "PMPI_Init"), &info)) library = info.dli_fbase;
  if (dladdr(from, &info) && info.dli_fbase == library)
    __atomic_fetch_add(&calls[f].library, 1, __ATOMIC_RELAXED);
  else
    __atomic_fetch_add(&calls[f].program, 1, __ATOMIC_RELAXED);
}
`)
	for i, f := range functions {
		var args []string
		for _, p := range f.Params {
			args = append(args, p.Name)
		}
		result := "return "
		if f.Result == "void" {
			result = ""
		}
		fmt.Fprintf(w, "%s\n{\n  seen(%d, __builtin_return_address(0));\n  %sP%s(%s);\n}\n", f.Proto, i, result, f.Name, strings.Join(args, ", "))
	}
	w.WriteString("entry calls[] = {\n")
	for _, f := range functions {
		fmt.Fprintf(w, "  {\"%s\", 0, 0},\n", f.Name)
	}
	w.WriteString(`  {0}};
__attribute__((destructor)) static void tell(void)
{
  FILE *out = getenv("INTERPOSED") ? fopen(getenv("INTERPOSED"), "a") : NULL;
  for (int i = 0; out && calls[i].name; i++) fprintf(out, "%s %ld %ld\n", calls[i].name, calls[i].program, calls[i].library);
  if (out) fclose(out);
}
`)
	return w.String()
}
