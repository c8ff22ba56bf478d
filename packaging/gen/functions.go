package main

import (
	"cmp"
	"fmt"
	"os"
	"sort"
	"strings"

	"libspx/api"
	"libspx/internal/manual"
)

// functionPages makes a page for every function of the tables; a form with large counts shares that of the small one.
func functionPages(files map[string]string, r release) error {
	t, err := api.Load()
	if err != nil {
		return err
	}
	words, err := summaries(t)
	if err != nil {
		return err
	}
	fortran, err := fortranInterfaces()
	if err != nil {
		return err
	}
	for _, f := range t.Functions {
		if f.Count == "large" && t.Small(f) != nil && t.Small(f) != f {
			files["share/man/man3/"+f.Name+".3"] = ".so man3/" + t.Small(f).Name + ".3\n"
			continue
		}
		p := page{tables: t, words: words, fortran: fortran, f: f, Page: manual.New(f.Name, "3", r.date, "libspx "+r.version)}
		p.write()
		files["share/man/man3/"+f.Name+".3"] = p.String()
	}
	return nil
}

// summaries says what every function does in a few words: by the table beside, or by a rule of names.
func summaries(t *api.Tables) (map[string]string, error) {
	data, err := os.ReadFile("packaging/manual/summaries.tsv")
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for n, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		name, text, ok := strings.Cut(line, "\t")
		if !ok || t.Function(name) == nil || out[name] != "" {
			return nil, fmt.Errorf("packaging/manual/summaries.tsv:%d: no such function, twice, or no text: %q", n+1, line)
		}
		out[name] = text
	}
	for _, f := range t.Functions {
		if out[f.Name] == "" && f.Count != "large" {
			if out[f.Name] = cmp.Or(byRule(f.Name, t), firstSentence(f.Note)); out[f.Name] == "" {
				return nil, fmt.Errorf("packaging/manual/summaries.tsv: says nothing of %s", f.Name)
			}
		}
	}
	return out, nil
}

// firstSentence of a note, as a name's words: small, without the period.
func firstSentence(note string) string {
	first, _, _ := strings.Cut(note, ". ")
	if first = strings.TrimSuffix(first, "."); first == "" {
		return ""
	}
	return strings.ToLower(first[:1]) + first[1:]
}

// objects are the words for the objects that names of functions begin with.
var objects = map[string]string{"Comm": "a communicator", "Win": "a window", "File": "a file", "Type": "a datatype", "Session": "a session",
	"Group": "a group", "Info": "an info object", "Message": "a message", "Op": "an operation", "Request": "a request", "Errhandler": "an error handler",
	"Status": "a status"}

// verbs are the ends of names that mean the same for every object.
var verbs = map[string]string{
	"call_errhandler":   "calls the error handler of %s",
	"create_errhandler": "makes an error handler for %s",
	"get_errhandler":    "gives the error handler of %s",
	"set_errhandler":    "sets the error handler of %s",
	"get_info":          "tells the hints of %s",
	"set_info":          "sets hints of %s",
	"get_name":          "tells the name of %s",
	"set_name":          "gives a name to %s",
	"create_keyval":     "makes a key for attributes of %s",
	"free_keyval":       "frees a key for attributes of %s",
	"get_attr":          "reads an attribute of %s",
	"set_attr":          "stores an attribute of %s",
	"delete_attr":       "removes an attribute of %s",
	"toint":             "turns the handle of %s into an integer",
	"fromint":           "turns an integer into the handle of %s",
	"c2f":               "turns %s of C into one of Fortran",
	"f2c":               "turns %s of Fortran into one of C",
	"c2f08":             "turns %s of C into one of module mpi_f08",
	"f082c":             "turns %s of module mpi_f08 into one of C",
	"f082f":             "turns %s of module mpi_f08 into one of mpif.h",
	"f2f08":             "turns %s of mpif.h into one of module mpi_f08",
	"get_source":        "tells the source in %s",
	"get_tag":           "tells the tag in %s",
	"get_error":         "tells the error in %s",
	"set_source":        "sets the source in %s",
	"set_tag":           "sets the tag in %s",
	"set_error":         "sets the error in %s",
}

// kindsOfTools are the words for what the tool interface counts and describes.
var kindsOfTools = map[string][2]string{"category": {"a category", "categories"}, "cvar": {"a control variable", "control variables"},
	"pvar": {"a performance variable", "performance variables"}, "event": {"a type of events", "types of events"}, "source": {"a source of events", "sources of events"}}

func byRule(name string, t *api.Tables) string {
	rest := strings.TrimPrefix(name, "MPI_")
	if tool, ok := strings.CutPrefix(rest, "T_"); ok {
		kind, verb, _ := strings.Cut(tool, "_")
		w := kindsOfTools[kind]
		return map[string]string{"get_num": "tells the number of " + w[1], "get_info": "describes " + w[0], "get_index": "finds " + w[0] + " by its name",
			"handle_free": "frees a handle for " + w[0]}[verb]
	}
	object, verb, _ := strings.Cut(rest, "_")
	if form := verbs[verb]; form != "" && objects[object] != "" {
		return fmt.Sprintf(form, objects[object])
	}
	if base := strings.TrimSuffix(name, "_x"); base != name && t.Function(base) != nil {
		return "is " + base + " with counts of type MPI_Count"
	}
	if base := strings.TrimSuffix(name, "_init"); base != name && t.Function(base) != nil {
		return "makes a persistent request for " + base
	}
	if base := strings.TrimSuffix(name, "_begin"); base != name && t.Function(base) != nil {
		return "begins " + base + ", which a call with _end completes"
	}
	if base := strings.TrimSuffix(name, "_end"); base != name && t.Function(base) != nil {
		return "completes what a call with _begin has begun"
	}
	if base := blocking(name, t); base != "" {
		return "begins " + base + ", without waiting"
	}
	if strings.HasPrefix(name, "MPIX_I") {
		base := "MPIX_" + strings.ToUpper(name[6:7]) + name[7:]
		if t.Function(base) != nil {
			return "begins " + base + ", without waiting"
		}
	}
	for _, object := range []string{"MPIX_Comm_"} {
		if base := object + strings.TrimPrefix(strings.TrimPrefix(name, object), "i"); strings.HasPrefix(name, object+"i") && t.Function(base) != nil {
			return "begins " + base + ", without waiting"
		}
	}
	return ""
}

// blocking is the call that waits for what name begins: MPI_Send of MPI_Isend, MPI_File_read of MPI_File_iread; "" if name is none of these.
func blocking(name string, t *api.Tables) string {
	if rest, ok := strings.CutPrefix(name, "MPI_File_i"); ok && t.Function("MPI_File_"+rest) != nil {
		return "MPI_File_" + rest
	}
	if rest, ok := strings.CutPrefix(name, "MPI_I"); ok && rest != "" {
		if base := "MPI_" + strings.ToUpper(rest[:1]) + rest[1:]; t.Function(base) != nil {
			return base
		}
	}
	return ""
}

// chapters of the standard, by the table's.
var chapters = map[string]string{
	"p2p": "3 (Point-to-Point Communication) and 4 (Partitioned Communication)", "type": "5 (Datatypes)", "coll": "6 (Collective Communication)",
	"group": "7 (Groups, Contexts, Communicators, and Caching)", "comm": "7 (Groups, Contexts, Communicators, and Caching)",
	"attr": "7 (Groups, Contexts, Communicators, and Caching)", "op": "6 (Collective Communication)",
	"topo": "8 (Virtual Topologies for MPI Processes)", "neighbor": "8 (Virtual Topologies for MPI Processes)",
	"env": "9 (MPI Environmental Management)", "error": "9 (MPI Environmental Management)", "info": "10 (The Info Object)",
	"spawn": "11 (Process Initialization, Creation, and Management)", "rma": "12 (One-Sided Communications)", "io": "14 (I/O)",
	"tools": "15 (Tool Support)", "convert": "19 (Language Bindings)",
}

// page is the page of one function.
type page struct {
	*manual.Page
	tables  *api.Tables
	words   map[string]string
	fortran map[string]string
	f       *api.Function
}

func (p *page) write() {
	f, large := p.f, p.tables.Large(p.f)
	names := []string{f.Name}
	if large != nil {
		names = append(names, large.Name)
	}
	p.Name(p.words[f.Name], names...)
	p.synopsis(large)
	p.description(large)
	p.arguments()
	p.returns()
	p.See(p.related())
	p.standards()
}

func (p *page) synopsis(large *api.Function) {
	p.Section("SYNOPSIS")
	p.Include(p.f.Header)
	for _, f := range []*api.Function{p.f, large} {
		if f == nil {
			continue
		}
		var params []string
		for _, a := range f.Params {
			params = append(params, a.Decl)
		}
		if f.Variadic {
			params = append(params, "...")
		}
		if params == nil {
			params = []string{"void"}
		}
		p.Function(f.Result, f.Name, params)
	}
	if text := p.fortran[p.f.Name]; text != "" {
		p.Paragraph()
		p.Text("In Fortran, by module mpi_f08:")
		p.Literal(text)
	}
}

func (p *page) description(large *api.Function) {
	f := p.f
	p.Section("DESCRIPTION")
	p.Raw(".Nm")
	p.Text("%s.", p.words[f.Name])
	if f.Note != "" {
		p.Text("%s", ended(f.Note))
	}
	if large != nil {
		p.Text("%s is the same with counts of type MPI_Count, for more than 2147483647 elements; in module mpi_f08 it has the same name.", large.Name)
	}
	base := blocking(f.Name, p.tables)
	switch {
	case base != "" && hasOut(f, "REQUEST"):
		p.Paragraph()
		p.Text("It returns at once. The buffers must not be used before MPI_Wait, MPI_Test or one of their like has completed the request.")
	case strings.HasSuffix(f.Name, "_init") && hasOut(f, "REQUEST"):
		p.Paragraph()
		p.Text("Nothing is communicated until MPI_Start; the request may be started again each time that it is complete, until MPI_Request_free.")
	}
	p.Paragraph()
	switch f.State {
	case "active":
		p.Text("It may be called after MPI_Init, MPI_Init_thread or MPI_Session_init, and before MPI_Finalize.")
	default:
		p.Text("It may be called at any time, also before MPI_Init and after MPI_Finalize.")
	}
	if strings.HasPrefix(f.Name, "MPI_") || strings.HasPrefix(f.Name, "MPIX_") {
		p.Text("P%s is the same function, for tools that put their own in its place.", f.Name)
	}
}

func ended(text string) string {
	if strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

func hasOut(f *api.Function, kind string) bool {
	for _, a := range f.Params {
		if a.Kind == kind && a.Dir == "out" {
			return true
		}
	}
	return false
}

func (p *page) arguments() {
	if len(p.f.Params) == 0 {
		return
	}
	p.Paragraph()
	p.Text("The arguments:")
	p.List()
	for i := range p.f.Params {
		a := &p.f.Params[i]
		p.Term("Fa", a.Name)
		p.Text("%s", argument(p.f, a))
	}
	p.EndList()
}

func (p *page) returns() {
	f := p.f
	p.Section("RETURN VALUES")
	tool := strings.HasPrefix(f.Name, "MPI_T_")
	switch {
	case f.Result != "int" || f.Chapter == "convert" && !strings.HasPrefix(f.Name, "MPI_Status_"):
		p.Text("The result itself; there are no errors.")
		return
	case tool:
		p.Text("MPI_SUCCESS, or an error of the tool interface (MPI_T_ERR_ and MPI_ERR_ codes); no error handler is called.")
		return
	}
	p.Text("MPI_SUCCESS, or an error code, whose class MPI_Error_class tells and whose text MPI_Error_string.")
	p.Text("By default an error ends the job; an error handler that returns must be set to see it (%s). In Fortran it is ierror, which module mpi_f08 lets you leave out.", handler(f))
	list := classes(f)
	if len(list) == 0 {
		return
	}
	p.Section("ERRORS")
	p.Text("What is wrong with an argument, where, and what to do is said in the error's text.")
	p.List()
	for _, c := range list {
		p.Term("Er", c[0])
		p.Text("%s", c[1])
	}
	p.EndList()
}

// handler is the call that sets the error handler that is called.
func handler(f *api.Function) string {
	for _, kind := range [][2]string{{"WINDOW", "MPI_Win_set_errhandler"}, {"FILE", "MPI_File_set_errhandler"}, {"SESSION", "MPI_Session_set_errhandler"}} {
		for _, a := range f.Params {
			if a.Kind == kind[0] {
				return kind[1]
			}
		}
	}
	return "MPI_Comm_set_errhandler"
}

// related are the other forms of the same operation, and the calls that complete it.
func (p *page) related() [][2]string {
	stem := func(name string) string {
		if base := blocking(name, p.tables); base != "" {
			name = base
		}
		name = strings.TrimSuffix(strings.TrimSuffix(name, "_init"), "_c")
		return strings.TrimSuffix(strings.TrimSuffix(name, "_begin"), "_end")
	}
	names := map[string]bool{}
	for _, g := range p.tables.Functions {
		if g.Count != "large" && g != p.f && stem(g.Name) == stem(p.f.Name) {
			names[g.Name] = true
		}
	}
	if hasOut(p.f, "REQUEST") {
		names["MPI_Wait"] = true
		if strings.HasSuffix(p.f.Name, "_init") {
			names["MPI_Start"] = true
		}
	}
	delete(names, p.f.Name)
	var out [][2]string
	for n := range names {
		out = append(out, [2]string{n, "3"})
	}
	sort.Slice(out, func(i, j int) bool { return strings.ToLower(out[i][0]) < strings.ToLower(out[j][0]) })
	return append(out, [2]string{"libspx", "7"})
}

func (p *page) standards() {
	p.Section("STANDARDS")
	f := p.f
	switch {
	case f.Header == "mpi.h" && f.Removed != "":
		p.Text("MPI-5.0, where it has been deprecated (since MPI-%s).", strings.TrimPrefix(f.Removed, "MPI-"))
	case f.Header == "mpi.h":
		p.Text("MPI-5.0, chapter %s.", chapters[f.Chapter])
	case f.Header == "mpi-legacy.h" && f.Chapter == "convert":
		p.Text("MPI-5.0, chapter %s; not a part of the standard ABI.", chapters["convert"])
	case f.Header == "mpi-legacy.h":
		p.Text("Removed from MPI; it is here for old programs.")
	default:
		p.Text("An extension of libspx, which has it in %s.", f.Header)
	}
}
