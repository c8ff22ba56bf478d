package explain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"libspx/core/coll"
)

// forced is the setting that forces the algorithm of a broadcast.
func forced() string { return "SPX_COLL_BCAST" }

// The machine's table is read as tests/tuning shows that the library reads it.
func TestTable(t *testing.T) {
	name := forced()
	for _, c := range []struct {
		what, named, home string
		crowded           bool
		want, wrong       string
	}{
		{what: "none"},
		{what: "always", home: "always SPX_COLL_BCAST fan\n", want: "fan"},
		{what: "named", named: "# SPX_COLL_BCAST no\n\n\tfree\tSPX_COLL_BCAST\tfan # yes\n",
			home: "always SPX_COLL_BCAST chain", want: "fan"},
		{what: "crowded, and it is not", home: "crowded SPX_COLL_BCAST fan\n"},
		{what: "crowded, and it is", home: "crowded SPX_COLL_BCAST fan\n", crowded: true,
			want: "fan"},
		{what: "free, and it is not", home: "free SPX_COLL_BCAST fan\n", crowded: true},
		{what: "the first of two", home: "free SPX_COLL_BCAST fan\nalways SPX_COLL_BCAST chain\n",
			want: "fan"},
		{what: "this host", home: "host here\nalways SPX_COLL_BCAST fan\n", want: "fan"},
		{what: "any host", home: "host *\nalways SPX_COLL_BCAST fan\n", want: "fan"},
		{what: "another host", home: "host there\nalways SPX_COLL_BCAST fan\n"},
		{what: "another host, named", named: "host there\nalways SPX_COLL_BCAST fan\n",
			want: "fan"},
		{what: "a line that is none", named: "free SPX_COLL_BCAST fan\nSPX_SPIN 20\n",
			wrong: "table:2: a line"},
	} {
		dir := t.TempDir()
		env := map[string]string{"HOME": dir}
		write := func(file, text string) {
			if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if c.named != "" {
			env["SPX_TUNING"] = filepath.Join(dir, "table")
			write(env["SPX_TUNING"], c.named)
		}
		if c.home != "" {
			write(filepath.Join(dir, ".config/libspx/tuning"), c.home)
		} else if c.named == "" {
			env["SPX_TUNING"] = "none"
		}
		table, err := readTable(func(v string) string { return env[v] }, "here")
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: %v", c.what, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := table.value(name, c.crowded); got != c.want {
			t.Errorf("%s: %q, not %q", c.what, got, c.want)
		}
	}
	if _, err := readTable(func(string) string { return "/nonexistent/table" },
		"here"); err == nil {
		t.Error("a table that is not there was read")
	}
}

// What cannot be is refused with its reason, and what goes before what.
func TestExplain(t *testing.T) {
	env := map[string]string{"SPX_TUNING": "none"}
	s := &Situation{Ranks: make([]Process, 6), World: 6, Procs: 6, CPUs: 8,
		Getenv: func(v string) string { return env[v] }}
	call := Call{Kind: coll.Bcast, Bytes: 100, Element: 8}
	e, err := s.Explain(call)
	if err != nil || e.Algorithm != "shared" || e.Bytes != 104 {
		t.Errorf("%+v, %v", e, err)
	}
	env[forced()] = "chain"
	if e, err = s.Explain(call); err != nil || e.Algorithm != "chain" ||
		!strings.Contains(e.Why, "in the environment") || e.Otherwise != "shared" {
		t.Errorf("%+v, %v", e, err)
	}
	env[forced()] = "osmosis"
	if _, err = s.Explain(call); err == nil || !strings.Contains(err.Error(), "binomial, fan") {
		t.Errorf("%v", err)
	}
	delete(env, forced())
	env["SPX_TOPOLOGY"] = "x"
	if _, err = s.Explain(call); err == nil || !strings.Contains(err.Error(), "SPX_TOPOLOGY=x") {
		t.Errorf("%v", err)
	}
	delete(env, "SPX_TOPOLOGY")
	if _, err = s.Pick([]int{1, 6}); err == nil {
		t.Error("rank 6 of 6")
	}
	if _, err = s.Explain(Call{Kind: coll.Scan, Bytes: 8, Element: 8, Remote: 2}); err == nil ||
		!strings.Contains(err.Error(), "intercommunicators") {
		t.Errorf("%v", err)
	}
	for k := range coll.Kinds {
		e, err := s.Explain(Call{Kind: k, Bytes: 64, Element: Element(k)})
		if err != nil {
			t.Fatal(err)
		}
		text := s.Head(Call{Kind: k, Bytes: 64}, e) + "\n" + strings.Join(Lines(e, true), "\n")
		for _, want := range []string{"MPI_" + strings.ToUpper(k.String()[:1]),
			"algorithm  " + e.Algorithm, "because    "} {
			if !strings.Contains(text, want) {
				t.Errorf("%v: no %q in\n%s", k, want, text)
			}
		}
	}
}
