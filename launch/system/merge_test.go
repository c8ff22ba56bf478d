package system

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"libspx/cluster/layout"
	"libspx/launch/control"
	"libspx/launch/hosts"
)

// calls is the arrival of a caller whose file has this text.
func calls(t *testing.T, host, cluster, text string) *control.Arrival {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	key := filepath.Join(dir, "key")
	if err := MakeKey(key); err != nil && !os.IsExist(err) {
		t.Fatal(err)
	}
	file := host + ".toml"
	if err := os.WriteFile(file, []byte(
		"[system]\nname = \"s\"\naddress = \"h:7\"\nkey = \"key\"\n"+text), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	j := &control.Job{}
	if _, err := Make(j, s, file, cluster, nil, hosts.Self()); err != nil {
		t.Fatal(err)
	}
	return &control.Arrival{Host: host, Cluster: cluster, Whole: j.Join.Whole,
		Declared: j.Join.Declared, Offer: j.Join.Offer}
}

// runs is the system of a file, led by host "one".
func runs(t *testing.T, text string) Running {
	t.Helper()
	e := calls(t, "one", "a", text)
	l, err := layout.Decode(e.Offer.Table)
	if err != nil {
		t.Fatal(err)
	}
	return Running{Name: "s", Host: "one", Whole: e.Whole, Declared: e.Declared,
		Parts: e.Offer.Parts, Table: l}
}

// goesOn is the system after a growth.
func (r Running) goesOn(g *Growth) Running {
	l := *r.Table
	procs := make([]int, g.Procs())
	for i := range procs {
		procs[i] = 100 + i
	}
	g.Enter(&l, len(r.Parts), procs, 50, 70)
	l.Version++
	r.Parts, r.Declared, r.Table = append(r.Parts, g.Parts...), append(r.Declared, g.Declared...),
		&l
	return r
}

func described(name, program string, ranks string) string {
	return "[[cluster]]\nname = \"" + name + "\"\nprogram = \"" + program + "\"\nranks = " + ranks +
		"\n"
}

func linked(from, to, more string) string {
	return "[[link]]\nfrom = " + from + "\nto = " + to + "\n" + more
}

var base = described("a", "./a", "2") + described("b", "./b", "2") +
	linked(`"a"`, `"b"`, "iops = 2\n")

// A cluster that no file knew, with a link from one of the running system and one to another; the
// links' I/O processes come with it.
func TestMergeAdds(t *testing.T) {
	r := runs(t, base)
	e := calls(t, "two", "n", "others = [\"a\", \"b\"]\n"+described("n", "./n", "3")+
		"standbys = 1\n"+linked(`"a"`, `"n"`, "iops = 2\nchoice = \"tag\"\n")+
		linked(`["n", "a"]`, `"b"`, "name = \"more\"\n"))
	g, err := Merge(r, e)
	if err != nil {
		t.Fatal(err)
	}
	if g.Procs() != 3+1+2+1 || len(g.Parts) != 4 {
		t.Fatalf("%d processes, %+v", g.Procs(), g.Parts)
	}
	for i, want := range []struct {
		name        string
		added, with int
		awaits      []int
	}{{"cluster n", 3, 0, []int{4, 5, 6, 7, 0, 1}}, {"I/O process a-n.iop0", 3, 5, []int{4, 0}},
		{"I/O process a-n.iop1", 4, 5, []int{4, 0}},
		{"I/O process more.iop0", 5, 5, []int{4, 0, 1}}} {
		p, d := &g.Parts[i], &g.Declared[i]
		if p.Name != want.name || p.Added != want.added || p.With != want.with || !p.Away ||
			d.Cluster != "n" || d.Host != "two" || g.Programs[i].Part != 5+i ||
			!g.Programs[i].Added {
			t.Errorf("%+v, %+v, %+v, should be %+v", p, d, g.Programs[i], want)
		}
		if !reflect.DeepEqual(g.Start[i].Awaits, want.awaits) {
			t.Errorf("%s waits for %v, should for %v", p.Name, g.Start[i].Awaits, want.awaits)
		}
	}
	l := *r.Table
	seats := g.Enter(&l, len(r.Parts), []int{20, 21, 30, 31, 40, 41, 42}, 9, 12)
	l.Version++
	if _, err := l.Encode(); err != nil {
		t.Fatal(err)
	}
	if err := l.Follows(r.Table); err != nil {
		t.Error(err)
	}
	want := []layout.IOP{{Proc: 40, World: 14, Links: []int{1}, In: []int{0}, Out: []int{2},
		Heals: true, Since: 1}, {Proc: 41, World: 15, Links: []int{1}, In: []int{0}, Out: []int{2},
		Heals: true, Since: 1},
		{Proc: 42, World: 16, Links: []int{2}, In: []int{2, 0}, Out: []int{1}, Heals: true,
			Since: 1}}
	if got := l.IOPs[2:]; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, should be %+v", got, want)
	}
	if c := l.Clusters[2]; c.Name != "n" || c.World != 13 || c.Lead != 10 ||
		c.Procs.String() != "20-21,30" || c.Standbys.String() != "31" || !c.Heals || c.Since != 1 ||
		l.ChoiceFor(2, 0) != "tag" {
		t.Errorf("%+v", c)
	}
	if len(seats) != 7 || seats[3] != (Seat{5, 3, 31, 13, 9}) ||
		seats[5] != (Seat{7, 0, 41, 15, 14}) {
		t.Errorf("%+v", seats)
	}
	if again, err := Merge(r.goesOn(g), e); err != nil || len(again.Parts) != 0 {
		t.Errorf("the same file again adds %v, %v", again, err)
	}
}

// A file may describe what the running system has, if the description is the same, and more
// clusters that come later: their links' I/O processes come with them.
func TestMergeDescribed(t *testing.T) {
	r := runs(t, base)
	e := calls(t, "two", "n", base+described("n", "./n", "1")+described("m", "./m", "1")+
		linked(`"n"`, `"m"`, "")+linked(`"n"`, `"b"`, ""))
	g, err := Merge(r, e)
	if err != nil {
		t.Fatal(err)
	}
	with := map[string]string{}
	for _, d := range g.Declared {
		with[d.Name] = d.Cluster
	}
	want := map[string]string{"cluster n": "n", "cluster m": "m", "I/O process n-m.iop0": "m",
		"I/O process n-b.iop0": "n"}
	if !reflect.DeepEqual(with, want) {
		t.Errorf("%v, should be %v", with, want)
	}
	if g, err := Merge(r, calls(t, "two", "b", base)); err != nil || len(g.Parts) != 0 {
		t.Errorf("a cluster that the system awaits: %v, %v", g, err)
	}
}

// A cluster that comes may have places for processes that are started in the place of ranks, and
// keeps them in the table; but nothing is added where ranks are taken over transparently.
func TestMergeTakeover(t *testing.T) {
	const restart, transparent = "failure = { process = \"restart\", restarts = 2, places = 3 }\n",
		"takeover = \"transparent\"\nstandbys = 1\n"
	n := func(more string) string {
		return "others = [\"a\"]\n" + described("n", "./n", "2") + more + linked(`"a"`, `"n"`, "")
	}
	r := runs(t, base)
	g, err := Merge(r, calls(t, "two", "n", n(restart)))
	if err != nil {
		t.Fatal(err)
	}
	after := r.goesOn(g)
	if c := after.Table.Clusters[2]; c.Cold != 3 || len(c.Procs) != 2 || len(c.Standbys) != 3 ||
		g.Programs[0].Cold != 3 {
		t.Errorf("%+v, %+v", c, g.Programs[0])
	}
	if _, err := Merge(r, calls(t, "two", "n", n(transparent))); err == nil ||
		!strings.Contains(err.Error(), "cluster n is taken over transparently") {
		t.Error(err)
	}
	quiet := strings.Replace(base, "ranks = 2\n", "ranks = 2\n"+transparent, 1)
	r = runs(t, quiet)
	if _, err := Merge(r, calls(t, "two", "n", n(""))); err == nil ||
		!strings.Contains(err.Error(),
			"cluster n is not in the file of the system that runs, and a system in which "+
				"cluster a is taken over transparently") {
		t.Error(err)
	}
	if g, err := Merge(r, calls(t, "two", "b", quiet)); err != nil || len(g.Parts) != 0 {
		t.Errorf("a cluster that it awaits: %v, %v", g, err)
	}
	if _, err := Merge(r, calls(t, "two", "b", base)); err == nil ||
		!strings.Contains(err.Error(), "with 2 ranks and 1 standbys, taken over transparently") {
		t.Error(err)
	}
}

// What does not fit is refused, with both places.
func TestMergeRefuses(t *testing.T) {
	r := runs(t, base)
	n := described("n", "./n", "1")
	for what, c := range map[string]struct {
		cluster, text string
		want          []string
	}{
		"another program": {"b", strings.Replace(base, "./b", "./c", 1),
			[]string{"its file declares cluster b as ./c with 2 ranks",
				"(two.toml:9, host two); the system that runs has ./b with 2 ranks",
				"(one.toml:9, host one): make the two the same"}},
		"another's ranks": {"n", strings.Replace(base, "ranks = 2", "ranks = 3", 1) + n,
			[]string{"cluster a as ./a with 3 ranks", "two.toml:5, host two",
				"one.toml:5, host one", "[system] others"}},
		"its links": {"b", strings.Replace(base, "iops = 2", "iops = 3", 1),
			[]string{"I/O process a-b.iop0 as spx-iop, one of 3", "(two.toml:13, host two)",
				"one of 2", "(one.toml:13, host one)"}},
		"a link less": {"b", described("a", "./a", "2") + described("b", "./b", "2"),
			[]string{"the system that runs has I/O process a-b.iop0 (one.toml:13, host one), " +
				"which its file does not have"}},
		"messages": {"n", "messages = \"fast\"\n" + n,
			[]string{`its file declares the system as messages = "fast" and`,
				`(two.toml:1, host two); the system that runs has messages = "kept"`}},
		"no such cluster": {"n", "others = [\"c\"]\n[start]\nwait = \"none\"\n" + n +
			linked(`"c"`, `"n"`, ""),
			[]string{"link c-n of its file joins cluster c, which neither that file describes " +
				"nor the system that runs has; there are a, b, n"}},
		"waits for it": {"n", "others = [\"c\"]\n" + n,
			[]string{"cluster n of its file waits for cluster c, which the system that runs " +
				"does not have; there are a, b, n"}},
		"a link's name": {"n", "others = [\"a\", \"b\"]\n" + n +
			linked(`"a"`, `"n"`, "name = \"a-b\"\n"),
			[]string{"its file declares I/O process a-b.iop0 as spx-iop, one of 1, from a to n",
				"give the one that comes another name"}},
		"more of a link": {"n", "others = [\"a\", \"b\"]\n" + n + linked(`"a"`, `"n"`,
			"name = \"a-b\"\nprogram = \"./x\"\n"), []string{`messages = "fast"`}},
	} {
		_, err := Merge(r, calls(t, "two", c.cluster, c.text))
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, should say %q", what, err, want)
			}
		}
	}
	e := calls(t, "two", "n", "others = [\"a\"]\n"+n+linked(`"a"`, `"n"`, ""))
	for what, spoil := range map[string]func(o *control.Offer){
		"no programs":     func(o *control.Offer) { o.Programs = nil },
		"too many":        func(o *control.Offer) { o.Programs[0].Procs = 9 },
		"another part":    func(o *control.Offer) { o.Programs[1].Part = 1 },
		"no arguments":    func(o *control.Offer) { o.Programs[0].Argv = nil },
		"with nobody":     func(o *control.Offer) { o.Parts[1].With = 0 },
		"a cluster as IO": func(o *control.Offer) { o.Parts[0].Serves = true },
		"no table":        func(o *control.Offer) { o.Table = "" },
		"no starts":       func(o *control.Offer) { o.Awaits = o.Awaits[:1] },
	} {
		bad := *e
		bad.Offer.Parts, bad.Offer.Programs = append(bad.Offer.Parts[:0:0], e.Offer.Parts...),
			append(bad.Offer.Programs[:0:0], e.Offer.Programs...)
		spoil(&bad.Offer)
		if g, err := Merge(r, &bad); err == nil || !strings.Contains(err.Error(), "offers") {
			t.Errorf("%s: %v, %v", what, g, err)
		}
	}
}

// A file whose links lead to clusters of another one is for one that comes.
func TestOthersAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("s.toml", []byte("[system]\nothers = [\"a\"]\n"+
		described("n", "./n", "1")), 0o666); err != nil {
		t.Fatal(err)
	}
	s, err := Load("s.toml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Make(&control.Job{}, s, "s.toml", "", nil, hosts.Self()); err == nil ||
		!strings.Contains(err.Error(), "[system] others: another file describes a") {
		t.Error(err)
	}
}
