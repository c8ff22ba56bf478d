package lint

import (
	"go/scanner"
	"go/token"
	"path"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is how wide a line of code or comment is at most, where a tab is four.
const columns = 100

// narrow are the folders of which that is asked.
var narrow = []string{"capi/", "core/", "ft/", "mcast/", "net/", "launch/", "cluster/", "ckpt/"}

func width(line string) int {
	return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
}

// tooWide are the lines of a file that are wider, from 1. What cannot be broken is not among them:
// a long raw string, a C preamble of cgo, preformatted text of a Go comment, a directive, a line with a
// mark for linters; in C, the compiler's flags of a test.
func tooWide(f file) (list []int) {
	fixed := map[int]bool{}
	if path.Ext(f.path) == ".go" {
		fset := token.NewFileSet()
		at := fset.AddFile(f.path, -1, len(f.text))
		var s scanner.Scanner
		s.Init(at, f.text, nil, scanner.ScanComments)
		for {
			pos, tok, lit := s.Scan()
			if tok == token.EOF {
				break
			}
			first := fset.Position(pos).Line
			raw := strings.HasPrefix(lit, "`") && (strings.Contains(lit, "\n") || width(lit) > columns/2)
			if raw || strings.HasPrefix(lit, "/*") {
				for i := range 1 + strings.Count(lit, "\n") {
					fixed[first+i] = true
				}
			}
			if tok == token.COMMENT && (strings.HasPrefix(lit, "//  ") || strings.HasPrefix(lit, "//\t") ||
				strings.HasPrefix(lit, "//nolint") || !strings.HasPrefix(lit, "// ")) {
				fixed[first] = true
			}
		}
	}
	for i, line := range strings.Split(string(f.text), "\n") {
		if width(line) > columns && !fixed[i+1] && !strings.HasPrefix(line, "// flags: ") {
			list = append(list, i+1)
		}
	}
	return list
}

// Lines are narrow enough for two files beside each other.
func TestColumns(t *testing.T) {
	for _, f := range files(t, ".go", ".c", ".h") {
		in := false
		for _, dir := range narrow {
			in = in || strings.HasPrefix(f.path, dir)
		}
		if !in || f.generated() || strings.Contains(f.path, "/testdata/") {
			continue
		}
		for _, line := range tooWide(f) {
			t.Errorf("%s:%d: more than %d columns (make fmt breaks lines of C)", f.path, line, columns)
		}
	}
}

func TestTooWide(t *testing.T) {
	long := strings.Repeat("word ", 25)
	for text, want := range map[string]int{
		"package a\n\n// " + long + "\nvar b int\n":                      1,
		"package a\n\n//\t" + long + "\nvar b int\n":                     0,
		"package a\n\nvar b = `" + long + "`\n":                          0,
		"package a\n\ntype b struct {\n\tc int `d` // " + long + "\n}\n": 1,
		"package a\n\nvar b = \"" + long + "\"\n":                        1,
		"package a\n\n//spx:body " + long + "\nfunc b() {}\n":            0,
		"package a\n\nvar b = \"" + long + "\" //nolint:errcheck\n":      0,
		"package a\n\n/*\n" + long + "\n*/\nimport \"C\"\n":              0,
		"package a\n\n" + strings.Repeat("\t", 26) + "// short\nvar b\n": 1,
	} {
		if got := tooWide(file{"a.go", []byte(text)}); len(got) != want {
			t.Errorf("%q: lines %v, not %d", text, got, want)
		}
	}
	if got := tooWide(file{"a.c", []byte("/* " + long + " */\n")}); len(got) != 1 {
		t.Errorf("a.c: %v", got)
	}
}
