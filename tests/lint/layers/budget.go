package layers

import (
	"bytes"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"libspx/internal/csource"
)

// Budget is a row of budgets.tsv: a size that must not grow.
type Budget struct {
	Name    string
	Ceiling int
	Target  string // what it is to become; empty: no target of its own
	About   string // what is counted
}

// ReadBudgets reads budgets.tsv.
func ReadBudgets(name string) (list []Budget, err error) {
	table, err := rows(name, 4)
	for _, r := range table {
		n, bad := strconv.Atoi(r[1])
		if bad != nil && r[1] != "-" {
			return nil, fmt.Errorf("%s: %s: ceiling %q is no number", name, r[0], r[1])
		}
		if r[1] == "-" {
			n = -1
		}
		list = append(list, Budget{r[0], n, r[2], r[3]})
	}
	return list, err
}

// Over says whether a size is more than the budget allows.
func (b Budget) Over(size int) bool { return b.Ceiling >= 0 && size > b.Ceiling }

// Line is the budget as a line of the table that a test prints.
func (b Budget) Line(size int, note string) string {
	ceiling := "-"
	if b.Ceiling >= 0 {
		ceiling = strconv.Itoa(b.Ceiling)
	}
	return strings.TrimRight(fmt.Sprintf("%-14s %7d %7s %7s  %s %s", b.Name, size, ceiling, b.Target, b.About, note), " ")
}

// Has says whether there is a row of that name.
func Has(list []Budget, name string) bool {
	return slices.ContainsFunc(list, func(b Budget) bool { return b.Name == name })
}

// Missing are the files of the table that are not there.
func (t *Tables) Missing(root string) (list []string) {
	for f := range t.Files {
		if _, err := os.Stat(filepath.Join(root, f)); err != nil {
			list = append(list, f)
		}
	}
	slices.Sort(list)
	return list
}

// Shrink writes budgets.tsv with ceilings lowered to the sizes; none is raised. The layers' own may be, by what others have lost, when code has moved from layer
// to layer: all of them together do not grow.
func (t *Tables) Shrink(name string, list []Budget, sizes map[string]int) error {
	allowed, have := 0, 0
	for _, b := range list {
		if t.isLayer(b.Name) {
			allowed, have = allowed+b.Ceiling, have+sizes[b.Name]
		}
	}
	var out strings.Builder
	out.WriteString(head(name))
	for _, b := range list {
		ceiling := "-"
		switch {
		case t.isLayer(b.Name) && have <= allowed:
			ceiling = strconv.Itoa(sizes[b.Name])
		case b.Ceiling >= 0:
			ceiling = strconv.Itoa(min(b.Ceiling, sizes[b.Name]))
		}
		fmt.Fprintln(&out, strings.Join([]string{b.Name, ceiling, b.Target, b.About}, "\t"))
	}
	return replace(name, []byte(out.String()))
}

func (t *Tables) isLayer(name string) bool { return t.Layers[name].Name != "" }

// Source is a C file written by hand.
type Source struct {
	Path           string
	Lines, Longest int // number of lines; characters of the longest one
}

// Sources are the C files of the library that are written by hand: sources, headers, and what is included otherwise.
func Sources(root string) (list []Source, err error) {
	names, err := csource.Files(root, ".c", ".h", ".inc")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasPrefix(path.Base(name), "zz_") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, err
		}
		s := Source{Path: name, Lines: bytes.Count(text, []byte("\n"))}
		for line := range bytes.Lines(text) {
			s.Longest = max(s.Longest, len([]rune(strings.TrimSuffix(string(line), "\n"))))
		}
		list = append(list, s)
	}
	return list, nil
}

// GoLines counts the lines written by hand of the packages that are linked into the library: capi and what it imports.
func GoLines(root, module string) (lines int, err error) {
	seen := map[string]bool{}
	var visit func(dir string) error
	visit = func(dir string) error {
		if seen[dir] {
			return nil
		}
		seen[dir] = true
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.IsDir() || path.Ext(e.Name()) != ".go" || strings.HasSuffix(e.Name(), "_test.go") {
				continue
			}
			text, err := os.ReadFile(filepath.Join(root, dir, e.Name()))
			if err != nil {
				return err
			}
			if !strings.HasPrefix(e.Name(), "zz_") {
				lines += bytes.Count(text, []byte("\n"))
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), e.Name(), text, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, spec := range parsed.Imports {
				name, _ := strconv.Unquote(spec.Path.Value)
				if below, ok := strings.CutPrefix(name, module+"/"); ok {
					if err := visit(below); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
	return lines, visit("capi")
}

// Exports are the functions of capi that C can call.
func Exports(root string) (names []string, err error) {
	list, err := fs.Glob(os.DirFS(root), "capi/*.go")
	if err != nil {
		return nil, err
	}
	for _, name := range list {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, group := range parsed.Comments {
			for _, c := range group.List {
				if export, ok := strings.CutPrefix(c.Text, "//export "); ok {
					names = append(names, strings.TrimSpace(export))
				}
			}
		}
	}
	return names, nil
}

// Sizes measures what budgets.tsv limits, by the rows' names: lines of each layer, of groups of them, and of all; the longest file and line; the largest circle.
func (t *Tables) Sizes(sources []Source, goLines int, r *Report) (sizes map[string]int, notes map[string]string) {
	sizes, notes = map[string]int{"Go": goLines}, map[string]string{}
	for _, s := range sources {
		layer := t.Files[s.Path]
		sizes[layer] += s.Lines
		for _, g := range Groups {
			if slices.Contains(g.Layers, layer) {
				sizes[g.Name] += s.Lines
			}
		}
		sizes["C"] += s.Lines
		if s.Lines > sizes["longest file"] {
			sizes["longest file"], notes["longest file"] = s.Lines, s.Path
		}
		if s.Longest > sizes["longest line"] {
			sizes["longest line"], notes["longest line"] = s.Longest, s.Path
		}
	}
	sizes["circle"], sizes["circle, folders"] = 0, 0
	for _, circle := range r.Circles {
		sizes["circle"] = max(sizes["circle"], len(circle))
		if severalFolders(circle) {
			sizes["circle, folders"] = max(sizes["circle, folders"], len(circle))
		}
	}
	return sizes, notes
}

// severalFolders: the files of one folder may share a state machine, and call each other for it; those of two folders have an order.
func severalFolders(circle []string) bool {
	return slices.ContainsFunc(circle, func(file string) bool { return path.Dir(file) != path.Dir(circle[0]) })
}

// Groups of layers that have a budget together.
var Groups = []struct {
	Name   string
	Layers []string
}{
	{"base to rma", []string{"base", "segment", "datatype", "progress", "transport", "shm", "tcp", "relay", "match", "pt2pt", "coll", "rma"}},
	{"tcp and relay", []string{"tcp", "relay"}},
}
