package probe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"libspx/net/topo"
	"libspx/net/topo/picture"

	"github.com/google/go-cmp/cmp"
)

func peersOf(pattern string, addresses ...string) (list []*peer) {
	for _, a := range addresses {
		list = append(list, &peer{ready: &ready{Switch: a, Pattern: pattern}})
	}
	return list
}

func TestSlurm(t *testing.T) {
	got := fromSlurm(peersOf("switch.switch.node", "top.a.n1", "top.b.n2", "top.a.n3", "top.c.n4"))
	want := &topo.Tree{Of: []int{1, 2, 1, 3}, N: 4, Links: [][2]int{{0, 1}, {0, 2}, {0, 3}}}
	if got == nil || cmp.Diff(want.Splits(), got.Splits()) != "" {
		t.Errorf("three switches below one: %v", got)
	}
	if got := fromSlurm(peersOf("switch.switch.node", "top.a.n1", "top.a.n2")); got == nil ||
		got.N != 1 {
		t.Errorf("one switch, that above it cannot matter: %v", got)
	}
	for _, list := range [][]*peer{
		// Slurm reports no switches
		peersOf("node", "n1", "n2"),
		// one host is not Slurm's
		append(peersOf("switch.node", "a.n1"), peersOf("", "")...),
		// not switches
		peersOf("block.node", "b1.n1", "b2.n2"),
		// no tree
		peersOf("switch.switch.node", "x.a.n1", "y.a.n2", "x.b.n3", "y.b.n4", "z.a", "z.b"),
	} {
		if got := fromSlurm(list); got != nil {
			t.Errorf("%q: %v", list[0].ready.Switch, got)
		}
	}
}

func someNetwork(day int, names ...string) *Network {
	n := &Network{Hosts: names, Switches: 2, Links: [][2]int{{0, 1}}, How: "measured",
		GroupsAre: Sure, LinksAre: Sure, Measured: time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC)}
	for i := range names {
		n.Of = append(n.Of, i%2)
	}
	return n
}

func TestCache(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	open := func() *Cache {
		t.Helper()
		c, err := OpenCache()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := open(); len(c.Networks) != 0 || c.Find([]string{"a"}) != nil ||
		c.Nearest([]string{"a", "b"}) != nil {
		t.Error("it is not empty")
	}
	for _, n := range []*Network{someNetwork(1, "a", "b"), someNetwork(2, "x", "y", "z"),
		someNetwork(3, "b", "a", "c", "d")} {
		if err := open().Add(n); err != nil {
			t.Fatal(err)
		}
	}
	c := open()
	if len(c.Networks) != 2 { // the first was part of the last
		t.Fatalf("%d networks", len(c.Networks))
	}
	if n := c.Find([]string{"d", "b", "c"}); n == nil ||
		!cmp.Equal(n.Hosts, []string{"d", "b", "c"}) || n.Of[1] != n.Of[2] || n.Of[0] == n.Of[1] ||
		n.Measured.Day() != 3 {
		t.Errorf("three of four: %+v", n)
	}
	if n := c.Find([]string{"a", "x"}); n != nil {
		t.Errorf("hosts of two networks: %+v", n)
	}
	if n := c.Nearest([]string{"a", "x", "y", "q"}); n == nil || n.Hosts[0] != "x" {
		t.Errorf("nearest to a, x, y, q: %+v", n)
	}
	for _, text := range []string{"", "{", `{"networks":[null]}`,
		`{"networks":[{"hosts":["a"],"switch":[5],"switches":1}]}`,
		`{"networks":[{"hosts":["a"],"switch":[0],"switches":1,"links":[[0,0]]}]}`,
		`{"networks":[{"hosts":["a"],"switch":[0,1],"switches":-3}]}`} {
		if err := os.WriteFile(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "libspx/networks.json"),
			[]byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if c := open(); len(c.Networks) != 0 {
			t.Errorf("%s is a network: %+v", text, c.Networks[0])
		}
	}
}

func TestPicture(t *testing.T) {
	n := someNetwork(1, "<a>", "b", "c")
	svg := picture.SVG(n.Tree(), n.Hosts)
	for what, want := range map[string]int{"<svg": 1, "</svg>": 1, "&lt;a&gt;": 1, "<path": 1,
		">switch ": 2} {
		if got := strings.Count(svg, what); got != want {
			t.Errorf("%q is there %d times, not %d:\n%s", what, got, want, svg)
		}
	}
}
