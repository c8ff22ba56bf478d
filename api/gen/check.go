package main

import (
	"fmt"
	"strings"

	"libspx/api"
)

// checks makes the argument checks of one shim. They follow from the kinds and flags of the parameters.
type checks struct {
	t       *api.Tables
	f       *api.Function
	tail    string // the call that follows
	objects bool   // the call takes spx_comm * etc.
	w       strings.Builder
}

// A handleKind says how a kind of handle is looked up.
type handleKind struct{ object, null string }

var handleKinds = map[string]handleKind{
	"COMMUNICATOR": {"SPX_K_COMM", "MPI_COMM_NULL"},
	"GROUP":        {"SPX_K_GROUP", "MPI_GROUP_NULL"},
	"DATATYPE":     {"SPX_K_TYPE", "MPI_DATATYPE_NULL"},
	"OPERATION":    {"SPX_K_OP", "MPI_OP_NULL"},
	"ERRHANDLER":   {"SPX_K_ERRH", "MPI_ERRHANDLER_NULL"},
	"REQUEST":      {"SPX_K_REQ", "MPI_REQUEST_NULL"},
	"MESSAGE":      {"SPX_K_MSG", "MPI_MESSAGE_NULL"},
	"INFO":         {"SPX_K_INFO", "MPI_INFO_NULL"},
	"WINDOW":       {"SPX_K_WIN", "MPI_WIN_NULL"},
	"FILE":         {"SPX_K_FILE", "MPI_FILE_NULL"},
	"SESSION":      {"SPX_K_SESSION", "MPI_SESSION_NULL"},
	"RANKSET":      {"SPX_K_RANKSET", "MPIX_RANKSET_NULL"},
	"CHECKPOINT":   {"SPX_K_CHECKPOINT", "MPIX_CHECKPOINT_NULL"},
}

// owner is the parameter whose error handler is called: the first communicator, window, file or session.
func owner(f *api.Function) *api.Param {
	for i := range f.Params {
		p := &f.Params[i]
		switch p.Kind {
		case "COMMUNICATOR", "WINDOW", "FILE", "SESSION":
			if p.Dir == "in" && !p.Pointer() && !p.Has("nullable") && !p.Has("raw") && f.State != "raw" {
				return p
			}
		}
	}
	return nil
}

// collective tells calls that all members of a communicator make together, as far as who is none could do harm: those that move data, and those that
// make a communicator, a window or a file.
func collective(f *api.Function) bool {
	if f.Chapter == "coll" || f.Chapter == "neighbor" {
		return true
	}
	for _, p := range f.Params {
		switch p.Kind {
		case "COMMUNICATOR", "WINDOW", "FILE":
			if p.Dir == "out" {
				return true
			}
		}
	}
	return false
}

// target is "kind, handle" of the object on which errors are raised.
func target(f *api.Function) string {
	if p := owner(f); p != nil && (p.Kind == "FILE" || f.Chapter != "io") {
		return handleKinds[p.Kind].object + ", " + p.Name
	}
	if f.Chapter == "io" && f.State == "active" {
		return "SPX_K_FILE, MPI_FILE_NULL"
	}
	return "0, NULL" // no object: spx_errh_of says whose handler it is
}

func (c *checks) line(format string, args ...any) { fmt.Fprintf(&c.w, "  "+format+"\n", args...) }

// check emits a condition and what to call when it does not hold.
func (c *checks) check(when, ok, bad string) {
	if when != "" {
		c.line("if (%s) SPX_CHECK(%s, %s);", when, ok, bad)
	} else {
		c.line("SPX_CHECK(%s, %s);", ok, bad)
	}
}

func (c *checks) text() string {
	if c.f.State == "raw" {
		return ""
	}
	c.handles()
	c.arguments()
	c.buffers()
	return c.declarations() + c.w.String()
}

// declarations emits what the checks and the call use: the communicator, and which part this process has in a rooted call.
func (c *checks) declarations() string {
	all := c.w.String() + c.tail
	w := &strings.Builder{}
	o := owner(c.f)
	if o != nil {
		k := handleKinds[o.Kind]
		bad := fmt.Sprintf("spx_bad_handle(%s, %s, \"%s\", %s)", target(c.f), k.object, o.Name, o.Name)
		if v := "c_" + o.Name; o.Kind == "COMMUNICATOR" && (strings.Contains(all, v) || c.root() != "" || collective(c.f)) {
			fmt.Fprintf(w, "  spx_comm *%s = (spx_comm *)spx_get(SPX_K_COMM, %s);\n  SPX_CHECK(%s, %s);\n", v, o.Name, v, bad)
			if collective(c.f) {
				fmt.Fprintf(w, "  SPX_CHECK(%s->rank >= 0, spx_bad_member(%s));\n", v, v)
			}
		} else {
			fmt.Fprintf(w, "  SPX_CHECK(spx_get(%s, %s), %s);\n", k.object, o.Name, bad)
		}
	}
	if root := c.root(); root != "" {
		fmt.Fprintf(w, "  SPX_CHECK(spx_root_ok(%s, root), spx_bad_root(%s, root));\n", root, root)
		for _, v := range []string{"at_root", "at_leaf", "takes_part"} {
			if strings.Contains(all, v) {
				fmt.Fprintf(w, "  const int %s = spx_%s(%s, root);\n", v, v, root)
			}
		}
	}
	return w.String()
}

// root is the communicator's variable when the function has a root.
func (c *checks) root() string {
	for _, p := range c.f.Params {
		if p.Kind == "ROOT" {
			return c.comm()
		}
	}
	return ""
}

// comm is the variable of the checked communicator.
func (c *checks) comm() string {
	if o := owner(c.f); o != nil && o.Kind == "COMMUNICATOR" {
		return "c_" + o.Name
	}
	return ""
}

// atRoot is the condition under which a root_only parameter is significant.
func (c *checks) atRoot(p api.Param) string {
	if p.Has("root_only") {
		return "at_root"
	}
	return ""
}

// handles emits the checks of handles other than the owner, of scalars and of addresses of handles.
func (c *checks) handles() {
	o := owner(c.f)
	for i := range c.f.Params {
		p := c.f.Params[i]
		k, ok := handleKinds[p.Kind]
		if !ok || p.Dir == "out" || p.Has("raw") || o != nil && p.Name == o.Name {
			continue
		}
		switch {
		case p.Kind == "REQUEST" && p.Array():
			c.requestArray(p)
		case p.Array():
		case p.Pointer():
			c.handleAddress(p, k)
		case p.Kind == "DATATYPE" || p.Kind == "OPERATION" || p.Kind == "COMMUNICATOR":
			c.scalarObject(p, k)
		default:
			c.check(c.atRoot(p), valid(p, k, p.Name), c.badHandle(p, k, p.Name))
		}
	}
}

func valid(p api.Param, k handleKind, value string) string {
	ok := fmt.Sprintf("spx_get(%s, %s)", k.object, value)
	if p.Has("nullable") {
		ok = value + " == " + k.null + " || " + ok
	}
	if p.Kind == "MESSAGE" {
		ok = value + " == MPI_MESSAGE_NO_PROC || " + ok
	}
	return ok
}

func (c *checks) badHandle(p api.Param, k handleKind, value string) string {
	return fmt.Sprintf("spx_bad_handle(%s, %s, \"%s\", %s)", target(c.f), k.object, p.Name, value)
}

func (c *checks) handleAddress(p api.Param, k handleKind) {
	c.check("", p.Name, c.null(p, classOf(p.Kind)))
	c.check("", valid(p, k, "*"+p.Name), c.badHandle(p, k, "*"+p.Name))
}

func (c *checks) null(p api.Param, class string) string {
	return fmt.Sprintf("spx_bad_null(%s, %s, \"%s\")", target(c.f), class, p.Name)
}

// classOf is the error class of a missing address of a handle.
func classOf(kind string) string {
	if kind == "REQUEST" {
		return "MPI_ERR_REQUEST"
	}
	return "MPI_ERR_ARG"
}

func (c *checks) requestArray(p api.Param) {
	n := p.Flags["array"]
	c.check("", n+" >= 0", fmt.Sprintf("spx_bad_count(%s, \"%s\", %s)", target(c.f), n, n))
	check := "spx_check_requests"
	if p.Has("nullable") {
		check = "spx_check_requests_or_null"
	}
	c.line("SPX_TRY(%s(%s, %s));", check, n, p.Name)
}

// scalarObject looks up a datatype, an operation, or a second communicator. The variable is made when something uses it.
func (c *checks) scalarObject(p api.Param, k handleKind) {
	when := c.significant(p)
	v := objectVar[p.Kind] + p.Name
	if p.Kind == "DATATYPE" && p.Has("committed") || c.uses(v) {
		ctype := objectTypes[p.Kind]
		get := fmt.Sprintf("(%s)spx_get(%s, %s)", ctype, k.object, p.Name)
		if when != "" {
			get = when + " ? " + get + " : NULL"
		}
		c.line("%s%s = %s;", ctype, v, get)
		ok, bad := v, c.badHandle(p, k, p.Name)
		if p.Has("committed") {
			ok, bad = "spx_committed("+v+")", fmt.Sprintf("spx_bad_type(%s, \"%s\", %s)", target(c.f), p.Name, p.Name)
		}
		if p.Has("nullable") {
			ok = p.Name + " == " + k.null + " || " + ok
		}
		if !p.Has("unchecked") {
			c.check(when, ok, bad)
		}
		return
	}
	if !p.Has("unchecked") {
		c.check(when, valid(p, k, p.Name), c.badHandle(p, k, p.Name))
	}
}

// uses tells whether the call takes a variable.
func (c *checks) uses(v string) bool { return strings.Contains(c.tail, v) }

// arguments emits the checks of everything that is neither a handle nor belongs to a buffer.
func (c *checks) arguments() {
	owned := map[string]bool{}
	for _, g := range c.groups() {
		owned[g.count.Name] = true
	}
	on := target(c.f)
	for _, p := range c.f.Params {
		switch {
		case p.Has("unchecked") || p.Has("raw"):
		case p.Kind == "DEST" && c.comm() != "":
			c.rank("dest", p)
		case p.Kind == "SOURCE" && c.comm() != "":
			c.rank("source", p)
		case p.Kind == "TAG" && p.Dir == "in":
			ok := "spx_tag_ok(" + p.Name + ")"
			if p.Has("any") {
				ok = fmt.Sprintf("spx_tag_ok(%s) || %s == MPI_ANY_TAG", p.Name, p.Name)
			}
			c.check("", ok, fmt.Sprintf("spx_bad_tag(%s, \"%s\", %s)", on, p.Name, p.Name))
		case owned[p.Name]:
		case p.Dir == "in" && p.Array() && c.lengthOf(p) != "" && p.Kind != "REQUEST" && !p.Has("root_only"):
			c.check("", fmt.Sprintf("%s <= 0 || %s", c.lengthOf(p), p.Name), c.null(p, "MPI_ERR_ARG"))
		case p.Kind == "INDEX" && p.Dir == "out" && p.Array() && c.requestCount() != "":
			c.check("", fmt.Sprintf("%s == 0 || %s", c.requestCount(), p.Name), c.null(p, "MPI_ERR_ARG"))
		case p.Kind == "STRING" && p.Dir == "out":
			c.check("", c.unlessEmpty(p)+p.Name, c.null(p, "MPI_ERR_ARG"))
		case p.Kind == "COMM_SIZE" && c.isArrayLength(p) && !p.Has("root_only"):
			c.check("", p.Name+" >= 0", fmt.Sprintf("spx_bad_negative(%s, MPI_ERR_ARG, \"%s\", %s)", on, p.Name, p.Name))
		case negative(p) != "" && !p.Pointer() && p.Dir == "in" && p.Name != c.requestCount():
			c.check(c.atRoot(p), p.Name+" >= 0", fmt.Sprintf("spx_bad_negative(%s, %s, \"%s\", %s)", on, negative(p), p.Name, p.Name))
		case p.Kind == "STRING" && p.Dir == "in" || p.Has("nonnull") || p.Kind == "STATUS" && p.Dir != "out":
			c.check(c.atRoot(p), p.Name, c.null(p, c.nullClass(p)))
		case p.Dir != "in" && p.Pointer() && !mayBeNull(p) && handleKinds[p.Kind].object == "" || p.Dir == "out" && handleKinds[p.Kind].object != "" && !p.Array():
			c.check(c.atRoot(p), p.Name, c.null(p, "MPI_ERR_ARG"))
		}
	}
}

// rank emits the check of a destination or a source. One that is no rank of the communicator may be one of a system of clusters.
func (c *checks) rank(what string, p api.Param) {
	ok, tag := what, ""
	if what == "source" && !p.Has("any") {
		ok = "dest"
	}
	for _, q := range c.f.Params {
		if q.Kind == "TAG" && (what == "dest" && tag == "" || what == "source") {
			tag = q.Name
		}
	}
	c.line("if (SPX_UNLIKELY(!spx_%s_ok(%s, %s))) SPX_TRY(spx_other_%s(&%s, &%s, \"%s\", %s));", ok, c.comm(), p.Name, what, c.comm(), p.Name, p.Name, tag)
}

// nullClass is the error class of a missing string, function or status.
func (c *checks) nullClass(p api.Param) string {
	if c.f.Chapter == "info" && p.Name == "key" {
		return "MPI_ERR_INFO_KEY"
	}
	if c.f.Chapter == "info" && p.Name == "value" {
		return "MPI_ERR_INFO_VALUE"
	}
	return "MPI_ERR_ARG"
}

// lengthOf is the name of the scalar that says how many entries an array has, or "".
func (c *checks) lengthOf(p api.Param) string {
	for _, q := range c.f.Params {
		if q.Name == p.Flags["array"] && q.Dir == "in" && !q.Pointer() {
			return q.Name
		}
	}
	return ""
}

func (c *checks) isArrayLength(p api.Param) bool {
	for _, q := range c.f.Params {
		if !p.Pointer() && q.Flags["array"] == p.Name {
			return true
		}
	}
	return false
}

// unlessEmpty is the condition under which nothing is stored in a string, so that it may be NULL: its length goes in as zero.
func (c *checks) unlessEmpty(p api.Param) string {
	for _, q := range c.f.Params {
		if (q.Kind == "STRING_LENGTH" || q.Kind == "INFO_VALUE_LENGTH") && q.Dir == "inout" {
			return "*" + q.Name + " == 0 || "
		}
	}
	return ""
}

// requestCount is the length of the array of requests, which is checked with it, or "".
func (c *checks) requestCount() string {
	for _, q := range c.f.Params {
		if q.Kind == "REQUEST" && q.Has("array") {
			return q.Flags["array"]
		}
	}
	return ""
}

// negative is the error class of a negative value of a parameter that has to be zero or more, or "".
func negative(p api.Param) string {
	if p.Name == "stride" { // of MPI_Type_vector: backwards is a direction too
		return ""
	}
	switch p.Kind {
	case "POLYXFER_NUM_ELEM_NNI", "XFER_NUM_ELEM_NNI", "POLYDTYPE_NUM_ELEM":
		return "MPI_ERR_COUNT"
	case "POLYDTYPE_NUM_ELEM_NNI":
		if strings.Contains(p.Name, "count") {
			return "MPI_ERR_COUNT"
		}
		return "MPI_ERR_ARG"
	case "NUM_DIMS":
		return "MPI_ERR_DIMS"
	case "POLYNUM_BYTES_NNI", "POLYDTYPE_PACK_SIZE", "ARRAY_LENGTH_NNI", "ARRAY_LENGTH", "DEGREE", "INFO_VALUE_LENGTH":
		return "MPI_ERR_ARG"
	}
	return ""
}

// mayBeNull lists the outgoing kinds for which the standard lets NULL stand, or for which only the body knows.
func mayBeNull(p api.Param) bool {
	switch p.Kind {
	case "BUFFER", "STATUS", "ERROR_CODE", "ARGUMENT_COUNT", "ARGUMENT_LIST", "WEIGHT", "C_BUFFER4":
		return !(p.Kind == "ERROR_CODE" && !p.Array())
	}
	return p.Array()
}
