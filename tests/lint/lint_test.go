// Package lint holds the rules that every source file keeps: which packages may be imported where, formats, lengths, texts. The
// rules are the tables below; a failure names file, line and rule.
package lint

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"libspx/internal/messages"
	"libspx/tests/harness"
)

// pure are the packages that decide: state machines without goroutine, clock, randomness, socket or unsafe of their own.
var pure = []string{"core/", "ft/", "mcast/", "ckpt/", "cluster/", "sim/", "net/topo/", "net/conn/"}

// impure are the imports that they must not have, with all packages below.
var impure = []string{"net", "os", "time", "unsafe", "syscall", "C", "golang.org/x/sys",
	"libspx/capi", "libspx/shm", "libspx/net", "libspx/launch", "libspx/cmd"}

// testOnly may be imported by the tests of pure packages: files of scenarios and time limits.
var testOnly = []string{"os", "time"}

// randFunctions of math/rand are allowed in pure packages: they make or name a source that the caller seeds. The others use
// the global source.
var randFunctions = map[string]bool{"New": true, "NewPCG": true, "NewSource": true, "NewChaCha8": true, "NewZipf": true,
	"Rand": true, "Source": true, "PCG": true, "ChaCha8": true, "Zipf": true}

// layers: packages below the first must not import those below the others.
var layers = map[string][]string{
	"shm/":    {"libspx/capi", "libspx/core", "libspx/launch", "libspx/cmd"},
	"net/":    {"libspx/capi", "libspx/core", "libspx/launch", "libspx/cmd"},
	"io/":     {"libspx/capi", "libspx/shm", "libspx/net", "libspx/launch", "libspx/cmd"},
	"launch/": {"libspx/capi", "libspx/cmd"},
	"cmd/":    {"libspx/capi"},
}

const longest = 900 // lines of a file written by hand

// shorter are the folders whose files, those of their tests among them, have at most shortest lines.
var shorter = []string{"capi/", "core/", "ft/", "mcast/", "net/", "launch/"}

const shortest = 600

type file struct {
	path string // relative to the repository
	text []byte
}

func (f file) line(offset int) int { return 1 + bytes.Count(f.text[:offset], []byte("\n")) }

// generated files are made by a program and checked by comparing.
func (f file) generated() bool {
	base := path.Base(f.path)
	head := f.text[:min(len(f.text), 600)]
	return strings.HasPrefix(base, "zz_") || bytes.Contains(head, []byte("DO NOT EDIT")) || bytes.Contains(head, []byte("enerated by"))
}

func files(t *testing.T, extensions ...string) []file {
	t.Helper()
	root := harness.Root()
	var list []file
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // vanished meanwhile
		}
		rel, _ := filepath.Rel(root, p)
		if d.IsDir() {
			switch d.Name() {
			case ".git", "build", "out", "testdata":
				return fs.SkipDir
			}
			return nil
		}
		for _, ext := range extensions {
			if strings.HasSuffix(p, ext) && d.Type().IsRegular() {
				if text, err := os.ReadFile(p); err == nil {
					list = append(list, file{filepath.ToSlash(rel), text})
				}
				break
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func within(p string, dirs []string) bool {
	for _, d := range dirs {
		if strings.HasPrefix(p, d) {
			return true
		}
	}
	return false
}

func imports(name string, list []string) bool {
	for _, x := range list {
		if name == x || strings.HasPrefix(name, x+"/") {
			return true
		}
	}
	return false
}

// importErrors applies the import rules to one Go file.
func importErrors(p string, src []byte) (wrong []string) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, p, src, parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	isTest := strings.HasSuffix(p, "_test.go")
	complain := func(pos token.Pos, text string) {
		wrong = append(wrong, p+":"+strconv.Itoa(fset.Position(pos).Line)+": "+text)
	}
	for _, spec := range parsed.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		if name == "C" && !strings.HasPrefix(p, "capi/") {
			complain(spec.Pos(), "cgo belongs into capi/ alone")
		}
		if name == "unsafe" && !strings.HasPrefix(p, "capi/") && !strings.HasSuffix(p, "_unsafe.go") && !strings.HasSuffix(p, "_unsafe_test.go") {
			complain(spec.Pos(), "unsafe belongs into capi/ and into files *_unsafe.go")
		}
		if within(p, pure) && imports(name, impure) && !within(strings.TrimPrefix(name, "libspx/")+"/", pure) && !(isTest && imports(name, testOnly)) {
			complain(spec.Pos(), "a pure package must not import "+name+": time, randomness and input are arguments")
		}
		for dir, upward := range layers {
			if strings.HasPrefix(p, dir) && imports(name, upward) && !isTest {
				complain(spec.Pos(), dir+" must not import "+name+": imports point downwards")
			}
		}
	}
	if within(p, pure) {
		ast.Inspect(parsed, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "rand" && x.Obj == nil && !randFunctions[sel.Sel.Name] && importsRand(parsed) {
					complain(n.Pos(), "rand."+sel.Sel.Name+" uses the global source: take a *rand.Rand as an argument")
				}
			}
			return true
		})
	}
	return wrong
}

func importsRand(f *ast.File) bool {
	for _, spec := range f.Imports {
		if p := strings.Trim(spec.Path.Value, `"`); p == "math/rand" || p == "math/rand/v2" {
			return spec.Name == nil || spec.Name.Name == "rand"
		}
	}
	return false
}

func TestImports(t *testing.T) {
	for _, f := range files(t, ".go") {
		for _, w := range importErrors(f.path, f.text) {
			t.Error(w)
		}
	}
}

// The rules must find what they are for.
func TestImportRulesBite(t *testing.T) {
	for _, test := range []struct{ path, src string }{
		{"core/x/x.go", `package x; import "time"`},
		{"ft/x/x.go", `package x; import "os/exec"`},
		{"sim/x.go", `package x; import "libspx/shm"`},
		{"core/x/x.go", `package x; import "math/rand/v2"; var _ = rand.IntN(3)`},
		{"shm/x.go", "package x; import \"C\""},
		{"shm/x.go", `package x; import "unsafe"`},
		{"launch/x.go", `package x; import "libspx/cmd/spxrun"`},
	} {
		if len(importErrors(test.path, []byte(test.src))) == 0 {
			t.Errorf("nothing found wrong in %s: %s", test.path, test.src)
		}
	}
	for _, test := range []struct{ path, src string }{
		{"core/x/x_test.go", `package x; import "time"`},
		{"core/x/x.go", `package x; import "math/rand/v2"; func f(r *rand.Rand) { r.IntN(3) }`},
		{"shm/x_unsafe.go", `package x; import "unsafe"`},
		{"capi/x.go", "package x; import \"C\"; import \"unsafe\""},
	} {
		for _, w := range importErrors(test.path, []byte(test.src)) {
			t.Errorf("%s: %s", test.src, w)
		}
	}
}

func TestGofmt(t *testing.T) {
	for _, f := range files(t, ".go") {
		want, err := format.Source(f.text)
		if err != nil {
			t.Errorf("%s: %v", f.path, err)
		} else if !bytes.Equal(want, f.text) {
			t.Errorf("%s: gofmt would change it (make fmt)", f.path)
		}
	}
}

func TestLength(t *testing.T) {
	for _, f := range files(t, ".go", ".c", ".h", ".md", ".sh") {
		most := longest
		if within(f.path, shorter) && !strings.HasSuffix(f.path, ".md") {
			most = shortest
		}
		if n := bytes.Count(f.text, []byte("\n")); n > most && !f.generated() {
			t.Errorf("%s: %d lines; more than %d means a second noun inside: split it by what it does", f.path, n, most)
		}
	}
}

// Every package says what it is for, in one of its files that are not tests.
func TestPackageComments(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range files(t, ".go") {
		dir := path.Dir(f.path)
		parsed, err := parser.ParseFile(token.NewFileSet(), f.path, f.text, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Error(err)
			continue
		}
		documented[dir] = documented[dir] || parsed.Doc != nil
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("%s: no package comment (what it owns, what it must not do, which section it serves)", dir)
		}
	}
}

// texts that have no place in the repository.
var texts = []struct {
	pattern *regexp.Regexp
	why     string
}{
	{regexp.MustCompile(`(^|[^\w.$}])/(work|root|home)/\w`), "a path of one machine"},
	{regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`), "an open end: finish it, or write an issue"},
	{regexp.MustCompile(`^(<<<<<<<|>>>>>>>) `), "a merge conflict"},
	{regexp.MustCompile(`[ \t]+$`), "blanks at the end of the line"},
}

func TestTexts(t *testing.T) {
	for _, f := range files(t, ".go", ".c", ".cc", ".h", ".inc", ".sh", ".md", ".f90", "Makefile") {
		if f.path == "tests/lint/lint_test.go" || f.generated() {
			continue
		}
		for n, line := range strings.Split(string(f.text), "\n") {
			for _, rule := range texts {
				if rule.pattern.MatchString(line) && !(strings.HasSuffix(f.path, ".md") && strings.HasSuffix(line, "  ")) {
					t.Errorf("%s:%d: %s: %s", f.path, n+1, rule.why, strings.TrimSpace(line))
				}
			}
		}
	}
}

func TestShellScripts(t *testing.T) {
	var scripts []file
	for _, f := range append(files(t, ".sh"), noExtension(t)...) {
		if bytes.HasPrefix(f.text, []byte("#!/usr/bin/env bash")) || bytes.HasPrefix(f.text, []byte("#!/bin/bash")) {
			scripts = append(scripts, f)
		}
	}
	if len(scripts) == 0 {
		t.Fatal("no scripts found")
	}
	for _, f := range scripts {
		if out, err := exec.Command("bash", "-n", filepath.Join(harness.Root(), f.path)).CombinedOutput(); err != nil {
			t.Errorf("%s: %s", f.path, out)
		}
		if !bytes.Contains(f.text, []byte("\nset -")) {
			t.Errorf("%s: no 'set -euo pipefail'", f.path)
		}
	}
}

func noExtension(t *testing.T) (list []file) {
	for _, f := range files(t, "") {
		if path.Ext(f.path) == "" || f.path == ".ci/run" {
			list = append(list, f)
		}
	}
	return list
}

// C sources are formatted by .clang-format, except what is generated.
func TestClangFormat(t *testing.T) {
	if _, err := exec.LookPath("clang-format"); err != nil {
		t.Skip("clang-format is not installed (make deps)")
	}
	var args []string
	for _, f := range CFiles(t) {
		args = append(args, filepath.Join(harness.Root(), f.path))
	}
	out, err := exec.Command("clang-format", append([]string{"--dry-run", "--Werror", "--ferror-limit=1"}, args...)...).CombinedOutput()
	if err != nil {
		t.Errorf("clang-format would change files (make fmt):\n%s", regexp.MustCompile(`(?m)^(.*): error:.*$`).FindAllString(string(out), -1))
	}
}

// CFiles are the C sources written by hand.
func CFiles(t *testing.T) (list []file) {
	for _, f := range files(t, ".c", ".h", ".cc") {
		if !f.generated() {
			list = append(list, f)
		}
	}
	return list
}

// The page of messages is what its generator makes of the sources now.
func TestMessages(t *testing.T) {
	want, err := messages.Page(harness.Root())
	if err != nil {
		t.Fatal(err)
	}
	if have, err := os.ReadFile(filepath.Join(harness.Root(), "docs/messages.md")); err != nil || string(have) != want {
		t.Error("docs/messages.md is not what the sources say: go generate ./internal/messages")
	}
}
