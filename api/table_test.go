package api

import (
	"regexp"
	"strings"
	"testing"
)

func load(t *testing.T) *Tables {
	t.Helper()
	tables, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

func TestSmallAndLargeFormsBelongTogether(t *testing.T) {
	tables := load(t)
	for _, f := range tables.Functions {
		large := tables.Large(f)
		switch f.Count {
		case "small":
			if large == nil || large.Count != "large" {
				t.Errorf("%s has no large-count form", f.Name)
			}
		case "large":
			if small := tables.Small(f); !strings.HasSuffix(f.Name, "_c") || small == nil || small.Count != "small" {
				t.Errorf("%s is a large-count form of nothing", f.Name)
			}
		case "single":
			if large != nil && large.Count == "large" {
				t.Errorf("%s is single, but there is %s", f.Name, large.Name)
			}
		default:
			t.Errorf("%s: count is %q", f.Name, f.Count)
		}
	}
}

func TestRowsAreWhole(t *testing.T) {
	tables := load(t)
	known := regexp.MustCompile(`^(array|committed|root_only|inplace|inplace_root|above_0|own_block|nullable|nonnull|any|unchecked|raw|async|fn)$`)
	for _, f := range tables.Functions {
		if f.State != "active" && f.State != "always" && f.State != "raw" {
			t.Errorf("%s: state is %q", f.Name, f.State)
		}
		if f.Chapter == "" || f.Result == "" {
			t.Errorf("%s: chapter %q, result %q", f.Name, f.Chapter, f.Result)
		}
		if f.BodyOf != "" && tables.Function("MPI_"+f.BodyOf) == nil {
			t.Errorf("%s shares the body of MPI_%s, which is not there", f.Name, f.BodyOf)
		}
		params := map[string]bool{"*": true, "size": true, "": true}
		for _, p := range f.Params {
			params[p.Name] = true
		}
		for _, p := range f.Params {
			if p.Kind == "" || p.Dir != "in" && p.Dir != "out" && p.Dir != "inout" {
				t.Errorf("%s: %s has kind %q, direction %q", f.Name, p.Name, p.Kind, p.Dir)
			}
			if p.Dir == "out" && !p.Pointer() && p.Kind != "C_BUFFER" && p.Kind != "C_BUFFER2" {
				t.Errorf("%s: %s goes out, but is no address: %s", f.Name, p.Name, p.CType)
			}
			for flag, v := range p.Flags {
				if !known.MatchString(flag) {
					t.Errorf("%s: %s has the unknown flag %q", f.Name, p.Name, flag)
				}
				if flag == "array" && !params[v] && !strings.HasPrefix(v, "MPI_MAX_") {
					t.Errorf("%s: %s is an array of %s, which is no parameter", f.Name, p.Name, v)
				}
			}
		}
	}
}

// The two forms of a function differ in the widths of counts and displacements, and in nothing else.
func TestLargeFormsDifferInCountsOnly(t *testing.T) {
	tables := load(t)
	narrow := strings.NewReplacer("MPI_Count", "int", "MPI_Aint", "int", "_function_c", "_function")
	for _, f := range tables.Functions {
		large := tables.Large(f)
		if f.Count != "small" || len(large.Params) != len(f.Params) {
			continue
		}
		for i, p := range f.Params {
			q := large.Params[i]
			if p.Name != q.Name || p.Kind != q.Kind || p.Dir != q.Dir || narrow.Replace(p.CType) != narrow.Replace(q.CType) {
				t.Errorf("%s: %s %s (%s) against %s %s (%s)", f.Name, p.CType, p.Name, p.Kind, q.CType, q.Name, q.Kind)
			}
			for flag := range p.Flags {
				if !q.Has(flag) {
					t.Errorf("%s: %s has the flag %s in one form only", f.Name, p.Name, flag)
				}
			}
		}
	}
}

func TestConstantsAreUniqueNames(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range load(t).Constants {
		if seen[c.Name] {
			t.Errorf("%s is there twice", c.Name)
		}
		seen[c.Name] = true
	}
}
