package args

import (
	"fmt"
	"strings"

	"libspx/api"
)

// A unit is a function with its calls; attempts[0] is the right one.
type unit struct {
	f        *api.Function
	attempts []attempt
	ranks    int
	first    int // number of its first call in its program
	c        call
	code     string
}

// survives tells whether the function returns no error code: every call counts as right if the process lives.
func survives(f *api.Function) bool {
	return f.Result != "int" || strings.HasSuffix(f.Name, "_toint") || f.Name == "MPI_Pcontrol"
}

// makeUnit makes the C function that does the calls.
func makeUnit(f *api.Function) *unit {
	c := callOf(f)
	u := &unit{f: f, c: c, ranks: c.ranks, attempts: append([]attempt{{what: "right", kind: 'v'}}, attempts(f, c)...)}
	if c.fails != "" {
		u.attempts[0].kind = 'f'
	}
	key, result := "keyval", ""
	for _, p := range f.Params {
		if p.Kind == "INFO" && p.Dir == "out" {
			result = p.Name
		}
		if p.Kind == "KEYVAL" {
			key = p.Name
		}
	}
	named := strings.NewReplacer("a_KEYVAL", "a_"+key, "x_KEYVAL", "x_"+key, "a_INFO", "a_"+result)
	w := &strings.Builder{}
	run := "run_"
	if c.inside {
		run = "called_back_"
	}
	fmt.Fprintf(w, "static int %s%s(int k)\n{\n", run, f.Name)
	for _, p := range f.Params {
		w.WriteString(room(p))
	}
	zero, nobody := -1, -1
	for i := range u.attempts {
		a := &u.attempts[i]
		if a.arg == "keyval" {
			a.arg = key
		}
		a.code = named.Replace(a.code)
		if survives(f) && i > 0 {
			a.kind, a.classes = 'r', ""
		}
		switch a.says {
		case "zero":
			zero, a.says = i, ""
		case "nobody":
			nobody, a.says = i, ""
		}
	}
	fmt.Fprintf(w, "  const int zero = k == %d, nobody = k == %d;\n  (void)zero, (void)nobody;\n", zero, nobody)
	if pre := strings.TrimSpace(c.pre); pre != "" {
		fmt.Fprintf(w, "  %s\n", named.Replace(pre))
	}
	var args []string
	for _, p := range f.Params {
		args = append(args, "a_"+p.Name)
		k, isHandle := handles[p.Kind]
		switch v := value(f, p, c.set); {
		case handleAddress(p):
			fmt.Fprintf(w, "  %s v_%s = %s, k_%s = v_%s, *a_%s = &v_%s;\n  (void)k_%s;\n", k.ctype, p.Name, v, p.Name, p.Name, p.Name, p.Name, p.Name)
		case isHandle && p.Dir == "in" && !p.Array():
			fmt.Fprintf(w, "  %s a_%s = %s, k_%s = a_%s;\n  (void)k_%s;\n", k.ctype, p.Name, v, p.Name, p.Name, p.Name)
		default:
			fmt.Fprintf(w, "  %s = %s;\n", variable(p), v)
		}
	}
	w.WriteString("  switch (k) {\n")
	for i, a := range u.attempts {
		if a.code != "" {
			fmt.Fprintf(w, "  case %d: %s break;\n", i, a.code)
		}
	}
	w.WriteString("  }\n")
	theCall := fmt.Sprintf("CALL(%s)(%s)", f.Name, strings.Join(args, ", "))
	if c.second != "" {
		theCall = fmt.Sprintf("me == 1 && what_%s[k] != 'w' ? %s : %s", f.Name, strings.Replace(theCall, f.Name, c.second, 1), theCall)
	}
	switch {
	case f.Result == "void":
		fmt.Fprintf(w, "  %s;\n  int rc = MPI_SUCCESS;\n", theCall)
	case survives(f):
		fmt.Fprintf(w, "  (void)%s;\n  int rc = MPI_SUCCESS;\n", theCall)
	default:
		fmt.Fprintf(w, "  int rc = %s;\n", theCall)
	}
	fmt.Fprintf(w, "  if (rc == MPI_SUCCESS && (what_%s[k] == 'v' || what_%s[k] == 'r' || what_%s[k] == 't' || what_%s[k] == 'a')) {\n", f.Name, f.Name, f.Name, f.Name)
	if !c.keep && !survives(f) {
		w.WriteString(releases(f))
	}
	fmt.Fprintf(w, "    %s\n  } else if (rc != MPI_SUCCESS) {\n    %s\n  }\n  return rc;\n}\n", named.Replace(c.post), named.Replace(c.undo))
	if c.inside {
		fmt.Fprintf(w, "static int run_%s(int k) { return inside(called_back_%s, k); }\n", f.Name, f.Name)
	}
	what := ""
	for _, a := range u.attempts {
		what += string(a.kind)
	}
	u.code = fmt.Sprintf("static const char what_%s[] = \"%s\";\n%s", f.Name, what, w.String())
	return u
}

// releases ends the requests and frees the objects that a right call has made.
func releases(f *api.Function) string {
	requests, rest := "", ""
	for _, p := range f.Params {
		if p.Dir != "out" || p.Array() || !p.Pointer() {
			continue
		}
		x := "x_" + p.Name
		free := map[string]string{"COMMUNICATOR": "MPI_Comm_free", "GROUP": "MPI_Group_free", "DATATYPE": "MPI_Type_free", "OPERATION": "MPI_Op_free", "ERRHANDLER": "MPI_Errhandler_free",
			"INFO": "MPI_Info_free", "WINDOW": "MPI_Win_free", "FILE": "MPI_File_close", "SESSION": "MPI_Session_finalize", "RANKSET": "MPIX_Rankset_free", "CHECKPOINT": "MPIX_Checkpoint_free"}[p.Kind]
		switch {
		case p.Kind == "REQUEST" && strings.Contains(f.Name, "_init"):
			requests += fmt.Sprintf("    start_release(%s);\n", x)
		case p.Kind == "REQUEST":
			requests += fmt.Sprintf("    release(%s);\n", x)
		case p.Kind == "KEYVAL":
			kind := "Comm"
			if s := strings.TrimPrefix(f.Name, "MPI_"); strings.HasPrefix(s, "Type") || strings.HasPrefix(s, "Win") {
				kind, _, _ = strings.Cut(s, "_")
			}
			rest += fmt.Sprintf("    MUST(MPI_%s_free_keyval(%s));\n", kind, x)
		case free != "":
			rest += fmt.Sprintf("    if (%s[0] != %s) MUST(%s(%s));\n", x, handles[p.Kind].null, free, x)
		}
	}
	return requests + rest
}

// program is the C text of some functions' calls.
func program(units []*unit) string {
	w := &strings.Builder{}
	w.WriteString("#ifndef CALL\n#define CALL(f) f\n#endif\n#include \"args.h\"\n")
	for _, u := range units {
		w.WriteString(u.code)
	}
	n := 0
	w.WriteString("static unit units[] = {\n")
	for _, u := range units {
		u.first = n
		n += len(u.attempts)
		fmt.Fprintf(w, "  {\"%s\", run_%s, what_%s, %d, %d},\n", u.f.Name, u.f.Name, u.f.Name, u.ranks, u.first)
	}
	fmt.Fprintf(w, "};\nstatic const int unit_count = %d;\n", len(units))
	return w.String()
}
