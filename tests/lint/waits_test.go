package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"libspx/tests/harness"
)

// The function of the data plane that runs functions of the program, and those that do not return: what the process does to end is none of Go's concern.
const runsUserCode = "spx_run_due"

var ends = []string{"spx_fatal", "spx_end_job", "spx_end_comm"}

// exceptions are functions that do not call another one which they can come to: they note it for the data plane to call, or have made sure that it is not needed.
var exceptions = map[string]string{}

// No Go frame is below a wait: functions of the program run there, which may leave it by longjmp. What a body of the engine has to wait for it asks the shim for
// (capi/runner.go, capi/callout.go).
func TestGoCallsNothingThatWaits(t *testing.T) {
	c := readCode(t)
	called := calledByGo(t)
	if len(called) < 100 || c.reach.Path("spx_wait", runsUserCode, ends...) == nil || c.reach.Path("spx_progress", runsUserCode, ends...) == nil {
		t.Fatalf("%d functions are called: is this still how Go calls C, and how C waits?", len(called))
	}
	for name := range exceptions {
		if called[name] == "" || c.reach.Path(name, runsUserCode, ends...) == nil {
			t.Errorf("%s needs no exception any more: take it out of exceptions", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(called)) {
		if path := c.reach.Path(name, runsUserCode, append([]string{exceptions[name]}, ends...)...); path != nil {
			t.Errorf("%s calls %s, which may run functions of the program below Go: %s. Have the shim call it: capi/runner.go", called[name], name, strings.Join(path, " > "))
		}
	}
}

// A function in a preamble is called from Go; that its address is taken is none.
var (
	inPreamble = regexp.MustCompile(`\b(spx_\w+)\s*\(`)
	byGo       = regexp.MustCompile(`^spx_\w+$`)
)

// calledByGo has the C functions of the library that Go code calls, by themselves or through functions of its preambles, and where.
func calledByGo(t *testing.T) map[string]string {
	t.Helper()
	called := map[string]string{}
	files, err := filepath.Glob(filepath.Join(harness.Root(), "capi/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		where := "capi/" + filepath.Base(name)
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT && g.Doc != nil && strings.Contains(g.Doc.Text(), "#include") {
				for _, m := range inPreamble.FindAllStringSubmatch(g.Doc.Text(), -1) {
					called[m[1]] = where
				}
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && byGo.MatchString(s.Sel.Name) {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "C" {
					called[s.Sel.Name] = where
				}
			}
			return true
		})
	}
	return called
}
