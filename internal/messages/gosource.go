package messages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// constants are the constant texts of packages ("service.EnvIface") and the classes of package mpierr ("mpierr.Rank": MPI_ERR_RANK), which
// messages name.
func constants(root string) (map[string]string, error) {
	known := map[string]string{}
	classes, err := classNames(root)
	if err != nil {
		return nil, err
	}
	err = each(root, func(file string, text []byte) error {
		if !strings.HasSuffix(file, ".go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
		if err != nil {
			return err
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				for i, name := range v.Names {
					if i >= len(v.Values) {
						continue
					}
					lit, ok := v.Values[i].(*ast.BasicLit)
					if !ok {
						continue
					}
					key := f.Name.Name + "." + name.Name
					switch {
					case lit.Kind == token.STRING:
						known[key], err = strconv.Unquote(lit.Value)
					case lit.Kind == token.INT && f.Name.Name == "mpierr":
						known[key] = classes[lit.Value]
					}
					if err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
	return known, err
}

// A maker is a function that takes a text: where among its arguments the class stands, and the text with what is put into it.
type maker struct {
	class, text int // -1: it has no class
	format      bool
	in          string // the folder that it is known in; "": everywhere
}

var makers = map[string]maker{
	"mpierr.New":   {0, 1, true, ""},
	"fail":         {0, 1, true, "capi/"},
	"New":          {0, 1, true, "core/mpierr/"},
	"refuse":       {0, 1, true, "launch/agent/"},
	"ClassError":   {-1, 1, true, "core/comm/"},
	"fmt.Errorf":   {-1, 0, true, ""},
	"errors.New":   {-1, 0, false, ""},
	"complain":     {-1, 1, false, "capi/"},
	"sayOnce":      {-1, 2, false, "capi/"},
	"a.sayOnce":    {-1, 1, false, "launch/agent/"},
	"a.say":        {-1, 0, false, "launch/agent/"},
	"a.sayToAll":   {-1, 0, false, "launch/agent/"},
	"r.wrong":      {-1, 1, true, "cluster/config/"},
	"v.wrong":      {-1, 0, true, "cluster/config/"},
	"fmt.Fprintf":  {-1, 1, true, ""}, // to os.Stderr
	"fmt.Fprintln": {-1, 1, false, ""},
}

// fail of the command line takes no class.
var makersOf = map[string]map[string]maker{
	"launch/command/": {"fail": {-1, 0, true, ""}},
}

// In these packages every formatted sentence is for users.
var sentences = []string{"launch/job/", "core/diagnose/"}

type goFile struct {
	file   *ast.File
	path   string
	pkg    string
	consts map[string]string
	in     string
	found  []Text
}

func inGo(file string, text []byte, consts map[string]string) ([]Text, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	g := &goFile{file: f, path: file, pkg: f.Name.Name, consts: consts}
	for _, d := range f.Decls {
		g.in = ""
		if fn, ok := d.(*ast.FuncDecl); ok {
			g.in = fn.Name.Name
			if fn.Doc != nil {
				for _, c := range fn.Doc.List {
					if body, ok := strings.CutPrefix(c.Text, "//spx:body "); ok {
						g.in = strings.TrimSpace(body)
					}
				}
			}
		}
		ast.Inspect(d, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				g.call(call)
			}
			return true
		})
	}
	return g.found, nil
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		if x := nameOf(e.X); x != "" {
			return x + "." + e.Sel.Name
		}
		return e.Sel.Name
	}
	return ""
}

func (g *goFile) call(c *ast.CallExpr) {
	name := nameOf(c.Fun)
	m, ok := makers[name]
	if ok && m.in != "" && !strings.HasPrefix(g.path, m.in) {
		ok = false
	}
	for dir, own := range makersOf {
		if strings.HasPrefix(g.path, dir) {
			if special, there := own[name]; there {
				m, ok = special, true
			}
		}
	}
	if strings.HasPrefix(name, "fmt.Fprint") && (len(c.Args) == 0 || nameOf(c.Args[0]) != "os.Stderr") {
		ok = false
	}
	if name == "fmt.Sprintf" {
		for _, dir := range sentences {
			if strings.HasPrefix(g.path, dir) {
				m, ok = maker{-1, 0, true, ""}, true
			}
		}
	}
	if !ok || len(c.Args) <= max(m.text, m.class) {
		return
	}
	class := ""
	if m.class >= 0 {
		class = g.class(c.Args[m.class])
	}
	words := ""
	if m.format {
		words = g.formatted(c.Args[m.text], c.Args[m.text+1:])
	} else {
		for i, a := range c.Args[m.text:] {
			if i > 0 {
				words += " "
			}
			words += g.words(a)
		}
		words = strings.TrimRight(words, " ") // the last one may be empty
	}
	if strings.HasPrefix(name, "fmt.Fprint") && class == "" {
		words = strings.TrimSuffix(words, "\n")
	}
	if !telling(words) {
		return
	}
	classes := []string{class}
	if class == "" && m.class >= 0 {
		if inner, ok := c.Args[m.class].(*ast.CallExpr); ok {
			classes = append(classes[:0], g.returned(nameOf(inner.Fun))...)
		}
	}
	for _, class := range classes {
		g.found = append(g.found, Text{class, words, g.path, g.in})
	}
}

// returned are the classes that a function of the same file may return.
func (g *goFile) returned(name string) (all []string) {
	for _, d := range g.file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name != name {
			continue
		}
		ast.Inspect(fn, func(n ast.Node) bool {
			if r, ok := n.(*ast.ReturnStmt); ok && len(r.Results) == 1 {
				if c := g.class(r.Results[0]); c != "" && !slices.Contains(all, c) {
					all = append(all, c)
				}
			}
			return true
		})
	}
	if all == nil {
		all = []string{""}
	}
	return all
}

// telling is a text that has words of its own besides what is put into it.
func telling(words string) bool {
	return !strings.HasSuffix(words, ": ") && letters.MatchString(placeholder.ReplaceAllString(words, ""))
}

var (
	letters     = regexp.MustCompile(`[A-Za-z]{3}`)
	placeholder = regexp.MustCompile(`<[^<>]*>`)
	mpiClass    = regexp.MustCompile(`MPIX?_(T_)?ERR_[A-Z_]+`)
)

func (g *goFile) class(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.CallExpr: // int(mpierr.Intern)
		if len(e.Args) == 1 {
			return g.class(e.Args[0])
		}
	case *ast.SelectorExpr, *ast.Ident:
		name := nameOf(e)
		if c := mpiClass.FindString(name); c != "" {
			return c
		}
		if g.pkg == "mpierr" && !strings.Contains(name, ".") {
			name = "mpierr." + name
		}
		return g.consts[name]
	}
	return ""
}

// words is a text expression with placeholders for what is not constant.
func (g *goFile) words(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			if s, err := strconv.Unquote(e.Value); err == nil {
				return s
			}
		}
		return e.Value
	case *ast.BinaryExpr:
		return g.words(e.X) + g.words(e.Y)
	case *ast.ParenExpr:
		return g.words(e.X)
	case *ast.CallExpr:
		if nameOf(e.Fun) == "fmt.Sprintf" && len(e.Args) > 0 {
			return g.formatted(e.Args[0], e.Args[1:])
		}
	case *ast.Ident:
		if v, ok := g.consts[g.pkg+"."+e.Name]; ok {
			return v
		}
	case *ast.SelectorExpr:
		if v, ok := g.consts[nameOf(e)]; ok {
			return v
		}
	}
	return "<" + g.argument(e) + ">"
}

// argument is what stands for an expression in a placeholder.
func (g *goFile) argument(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		switch e.Name {
		case "err":
			return "reason"
		case "i", "k", "n", "s", "v":
			return map[string]string{"i": "index", "k": "index", "n": "number", "s": "text", "v": "value"}[e.Name]
		}
		return e.Name
	case *ast.SelectorExpr:
		return spaced(e.Sel.Name)
	case *ast.CallExpr:
		name := nameOf(e.Fun)
		last := name[strings.LastIndexByte(name, '.')+1:]
		switch {
		case last == "len" && len(e.Args) == 1:
			return "number of " + g.argument(e.Args[0])
		case last == "Error":
			return "reason"
		case len(e.Args) > 0 && (last == "Join" || last == "shorten" || last == "int" || last == "string" || last == "GoString" || last == "uint64" || last == "ranges" || last == "list"):
			return g.argument(e.Args[0])
		}
		return spaced(last)
	case *ast.IndexExpr:
		return g.argument(e.X)
	case *ast.StarExpr:
		return g.argument(e.X)
	case *ast.UnaryExpr:
		return g.argument(e.X)
	case *ast.BinaryExpr:
		return g.argument(e.X) + " " + e.Op.String() + " " + g.argument(e.Y)
	case *ast.ParenExpr:
		return g.argument(e.X)
	case *ast.BasicLit:
		return strings.Trim(e.Value, "\"`")
	}
	return "..."
}

var humps = regexp.MustCompile(`([a-z])([A-Z])`)

func spaced(name string) string {
	if name == strings.ToUpper(name) {
		return name
	}
	return strings.ToLower(humps.ReplaceAllString(name, "$1 $2"))
}

var verb = regexp.MustCompile(`%[-+# 0]*(\*|\d+)?(\.(\*|\d+))?(\[\d+\])?(?:hh|h|ll|l|j|z|t|L)?[a-zA-Z%]`)

func (g *goFile) formatted(format ast.Expr, args []ast.Expr) string {
	next := 0
	return verb.ReplaceAllStringFunc(g.words(format), func(v string) string {
		if v == "%%" {
			return "%"
		}
		if next >= len(args) {
			return "<...>"
		}
		a := args[next]
		next++
		name := nameOf(a)
		if value, ok := g.consts[name]; ok && value != "" {
			return value
		}
		if value, ok := g.consts[g.pkg+"."+name]; ok && value != "" {
			return value
		}
		if lit, ok := a.(*ast.BasicLit); ok && lit.Kind == token.INT {
			return lit.Value
		}
		return "<" + g.argument(a) + ">"
	})
}
