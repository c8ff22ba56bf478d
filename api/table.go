// Package api is the table of the MPI interface that libspx offers: one row per function, constant and type, as facts
// taken from the MPI-5.0 standard (the ABI is its chapter 20), and the names that libspx adds.
//
// It owns the tables (*.tsv) and their reading, and says nothing about what a function does. The generator api/gen turns
// the tables into headers, shims, dispatch and symbol lists.
//
//go:generate go run ./gen
package api

import (
	"embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed *.tsv
var files embed.FS

// Tables is everything that is declared.
type Tables struct {
	Functions []*Function
	Constants []*Constant
	Types     []*Type
	byName    map[string]*Function
}

// A Function is one row of functions.tsv, legacy.tsv or extensions.tsv.
type Function struct {
	Name     string  // MPI_Send_c
	Chapter  string  // the group of calls that it belongs to, which also names the shim file
	Count    string  // "small" (has a _c form), "large" (is one) or "single"
	State    string  // when it may be called: "active" (between init and finalize), "always", "raw" (always, and its arguments are not checked)
	BodyOf   string  // base name of the function whose body it shares, if that is not its own
	Result   string  // C type of what it returns
	Proto    string  // C prototype
	Params   []Param // in the order of the C prototype
	Variadic bool
	// Fortran77 and Fortran08 tell whether mpif.h and module mpi, and module mpi_f08, have it.
	Fortran77, Fortran08 bool
	Header               string // file that declares it
	Removed              string // version of the standard that deprecated or removed it
	Note                 string // a sentence for the header
}

// A Param is one parameter of a function.
type Param struct {
	Name  string
	CType string // "const void *", "int []"
	Decl  string // as written in the prototype
	Kind  string // kind of the standard's binding tool (COMMUNICATOR, TAG ...), with DEST, SOURCE and ROOT told apart from RANK
	Dir   string // in, out, inout
	Flags map[string]string
}

// Has tells whether a flag is set; see api/README.md for what each means.
func (p Param) Has(flag string) bool { _, ok := p.Flags[flag]; return ok }

// Array tells whether the parameter is an array.
func (p Param) Array() bool { return p.Has("array") || strings.Contains(p.CType, "[") }

// Pointer tells whether the C type is an address.
func (p Param) Pointer() bool { return strings.ContainsAny(p.CType, "*[") }

// A Constant is one row of constants.tsv.
type Constant struct {
	Name, Kind, CType, Value, Header, Category, Note string
}

// A Type is one row of types.tsv.
type Type struct {
	Name, Form, Decl, Header, Note string
}

// Load reads the tables.
func Load() (*Tables, error) {
	t := &Tables{byName: map[string]*Function{}}
	for _, file := range []string{"functions.tsv", "legacy.tsv", "extensions.tsv"} {
		if err := t.loadFunctions(file); err != nil {
			return nil, err
		}
	}
	err := rows("constants.tsv", 7, func(f []string) error {
		t.Constants = append(t.Constants, &Constant{f[0], f[1], f[2], f[3], f[4], f[5], f[6]})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, rows("types.tsv", 5, func(f []string) error {
		t.Types = append(t.Types, &Type{f[0], f[1], f[2], f[3], f[4]})
		return nil
	})
}

// Function finds a function by its name, or returns nil.
func (t *Tables) Function(name string) *Function { return t.byName[name] }

// Large is the large-count form of a function, or nil.
func (t *Tables) Large(f *Function) *Function { return t.byName[f.Name+"_c"] }

// Small is the form with int counts of a function with MPI_Count, or nil.
func (t *Tables) Small(f *Function) *Function {
	return t.byName[strings.TrimSuffix(f.Name, "_c")]
}

func (t *Tables) loadFunctions(file string) error {
	return rows(file, 10, func(f []string) error {
		fn := &Function{Name: f[0], Chapter: f[1], Count: f[2], State: f[3], BodyOf: f[4], Proto: f[5], Header: headerOf(file, f[0]), Removed: f[8], Note: f[9]}
		fn.Fortran77, fn.Fortran08 = strings.Contains(f[7], "f90"), strings.Contains(f[7], "f08")
		if err := fn.parse(f[5], f[6]); err != nil {
			return fmt.Errorf("%s: %s: %w", file, fn.Name, err)
		}
		if t.byName[fn.Name] != nil {
			return fmt.Errorf("%s: %s is there twice", file, fn.Name)
		}
		t.byName[fn.Name] = fn
		t.Functions = append(t.Functions, fn)
		return nil
	})
}

func headerOf(file, name string) string {
	switch {
	case strings.HasPrefix(name, "MPIX_"):
		return "mpi-ext.h"
	case strings.HasPrefix(name, "MPISP_"):
		return "mpisp.h"
	case strings.HasPrefix(name, "ulfm_dyprc_"):
		return "ulfm_dyprc.h"
	case file == "legacy.tsv":
		return "mpi-legacy.h"
	}
	return "mpi.h"
}

var protoForm = regexp.MustCompile(`^(.*?)(\w+)\((.*)\)$`)
var declForm = regexp.MustCompile(`^(.*?)(\w+)((?:\[\d*\])*)$`)

// parse reads the C prototype and joins it with the kinds of the parameters.
func (f *Function) parse(proto, params string) error {
	m := protoForm.FindStringSubmatch(proto)
	if m == nil || m[2] != f.Name {
		return fmt.Errorf("cannot read the prototype %q", proto)
	}
	f.Result = strings.TrimSpace(m[1])
	kinds := map[string][]string{}
	for _, p := range strings.Split(params, ";") {
		part := append(strings.SplitN(p, ":", 4), "", "", "")
		kinds[part[0]] = part
	}
	if m[3] == "void" || m[3] == "" {
		return nil
	}
	for _, decl := range strings.Split(m[3], ",") {
		decl = strings.TrimSpace(decl)
		if decl == "..." {
			f.Variadic = true
			continue
		}
		d := declForm.FindStringSubmatch(decl)
		if d == nil {
			return fmt.Errorf("cannot read the parameter %q", decl)
		}
		k := kinds[d[2]]
		if k == nil {
			return fmt.Errorf("parameter %s has no kind", d[2])
		}
		f.Params = append(f.Params, Param{Name: d[2], CType: strings.TrimSpace(d[1]) + d[3], Decl: decl, Kind: k[1], Dir: k[2], Flags: flags(k[3])})
	}
	return nil
}

func flags(s string) map[string]string {
	out := map[string]string{}
	for _, f := range strings.Split(s, ",") {
		if f != "" {
			k, v, _ := strings.Cut(f, "=")
			out[k] = v
		}
	}
	return out
}

// rows calls fn with the fields of every row but the heading.
func rows(file string, columns int, fn func([]string) error) error {
	data, err := files.ReadFile(file)
	if err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")[1:] {
		f := strings.Split(line, "\t")
		if len(f) != columns {
			return fmt.Errorf("%s:%d: %d columns instead of %d", file, i+2, len(f), columns)
		}
		if err := fn(f); err != nil {
			return err
		}
	}
	return nil
}
