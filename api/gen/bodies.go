package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"libspx/api"
)

type place int

const (
	unwritten place = iota
	inC
	inGo
)

// A body is what a shim calls.
type body struct {
	where place
	fn    *api.Function // whose name the body has
	goFn  string        // name of the Go function
}

type bodies struct {
	t     *api.Tables
	c     map[string]bool   // identifiers of spx_c_NAME functions
	goFns map[string]string // MPI name -> Go function
}

var (
	cBody  = regexp.MustCompile(`(?m)^[A-Za-z_][\w ]*[ *]spx_c_(\w+)\([^;{\n]*(?:\{.*)?$`)
	goBody = regexp.MustCompile(`(?m)^//spx:body +(.+)\n(?://.*\n)*func +(\w+)\(`)
)

// findBodies scans the hand-written files for bodies.
func findBodies(root string, t *api.Tables) (*bodies, error) {
	b := &bodies{t: t, c: map[string]bool{}, goFns: map[string]string{}}
	idents := map[string]bool{}
	for _, f := range t.Functions {
		idents[ident(f)] = true
	}
	for _, pattern := range []string{"capi/bodies/*.c", "capi/boundary/*.c"} {
		err := scan(filepath.Join(root, pattern), func(path, text string) error {
			for _, m := range cBody.FindAllStringSubmatch(text, -1) {
				if !idents[m[1]] {
					return fmt.Errorf("%s: spx_c_%s is the body of no function in the tables", path, m[1])
				}
				b.c[m[1]] = true
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	err := scan(filepath.Join(root, "capi/*.go"), func(path, text string) error {
		if n, m := strings.Count(text, "\n//spx:body"), len(goBody.FindAllString(text, -1)); n != m {
			return fmt.Errorf("%s: %d lines //spx:body, but %d of them above a func", path, n, m)
		}
		for _, m := range goBody.FindAllStringSubmatch(text, -1) {
			for _, name := range strings.Fields(m[1]) {
				if t.Function(name) == nil {
					return fmt.Errorf("%s: //spx:body %s: no such function in the tables", path, name)
				}
				if old := b.goFns[name]; old != "" {
					return fmt.Errorf("%s: %s has two bodies, %s and %s", path, name, old, m[2])
				}
				b.goFns[name] = m[2]
			}
		}
		return nil
	})
	return b, err
}

func scan(pattern string, fn func(path, text string) error) error {
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	sort.Strings(paths)
	for _, path := range paths {
		if base := filepath.Base(path); strings.HasPrefix(base, "zz_") || strings.HasSuffix(base, "_test.go") || strings.HasSuffix(base, "_test.c") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := fn(path, string(text)); err != nil {
			return err
		}
	}
	return nil
}

// of finds the body of a function: its own, or that of its small form, or that of the function whose body it shares.
func (b *bodies) of(f *api.Function) body {
	tried := []*api.Function{f}
	if f.Count == "large" {
		tried = append(tried, b.t.Small(f))
	}
	if f.BodyOf != "" {
		tried = append(tried, b.t.Function("MPI_"+f.BodyOf))
	}
	for _, as := range tried {
		if as == nil {
			continue
		}
		if b.c[ident(as)] && len(as.Params) == len(f.Params) {
			return body{where: inC, fn: as}
		}
		if g := b.goFns[as.Name]; g != "" {
			return body{where: inGo, fn: as, goFn: g}
		}
	}
	return body{where: unwritten, fn: f}
}

// goOf is the Go body that a shim or a C body may enter: that of the function or of its small form; "" for none.
func (b *bodies) goOf(f *api.Function) string {
	if g := b.goFns[f.Name]; g != "" || f.Count != "large" {
		return g
	}
	if small := b.t.Small(f); small != nil && len(small.Params) == len(f.Params) && b.c[ident(small)] {
		return b.goFns[small.Name]
	}
	return ""
}

// ident is the part of C identifiers that stands for a function: Send for MPI_Send, X_Comm_agree for MPIX_Comm_agree.
func ident(f *api.Function) string {
	for prefix, short := range map[string]string{"MPI_": "", "MPIX_": "X_", "MPISP_": "SP_", "ulfm_": ""} {
		if rest, ok := strings.CutPrefix(f.Name, prefix); ok {
			return short + rest
		}
	}
	return f.Name
}
