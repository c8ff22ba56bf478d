package probe

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"libspx/net/topo"
)

// A Network is the known network between some hosts.
type Network struct {
	Hosts    []string  `json:"hosts"`
	Of       []int     `json:"switch"` // of each host; -1: it could not be reached
	Switches int       `json:"switches"`
	Links    [][2]int  `json:"links"` // between switches
	How      string    `json:"how"`   // measured, or Slurm
	Measured time.Time `json:"measured"`
	Cost     Cost      `json:"cost"`

	// How sure it is which hosts share a switch, and which switches are linked: Sure, or else why
	// not. What is not sure is left out.
	GroupsAre string `json:"groups_are"`
	LinksAre  string `json:"links_are"`

	// By what: the longest round-trip time between hosts of one switch (but for some that were
	// late), and the shortest between those of different ones, in nanoseconds. 0: not measured.
	Within int64 `json:"within_ns"`
	Across int64 `json:"across_ns"`
}

// Sure marks results on which many measurements agree.
const Sure = "sure"

// Cost is what a measurement has taken.
type Cost struct {
	Pings   int     `json:"pings"`   // round-trip times, of several echoes each
	Streams int     `json:"streams"` // measurements of throughput
	Bytes   int64   `json:"bytes"`   // that flows have sent
	Left    int     `json:"left"`    // measurements left out
	Seconds float64 `json:"seconds"`
}

// mostNetworks are kept; the oldest go first.
const mostNetworks = 64

// Tree is the network in the form of net/topo.
func (n *Network) Tree() *topo.Tree { return &topo.Tree{Of: n.Of, Links: n.Links, N: n.Switches} }

// restrict is the network between the named hosts.
func (n *Network) restrict(names []string) *topo.Tree {
	number := make(map[string]int, len(n.Hosts))
	for i, h := range n.Hosts {
		number[h] = i
	}
	list := make([]int, len(names))
	for i, name := range names {
		h, ok := number[name]
		if list[i] = -1; ok {
			list[i] = h
		}
	}
	return n.Tree().Restrict(list)
}

// Between is the network between some hosts; nil: not all of them are in it.
func (n *Network) Between(names []string) *Network {
	t := n.restrict(names)
	if slices.Contains(t.Of, -1) {
		return nil
	}
	out := *n
	out.Hosts, out.Of, out.Links, out.Switches = names, t.Of, t.Links, t.N
	return &out
}

// sound reports whether the numbers are consistent.
func (n *Network) sound() bool {
	bad := func(s int) bool { return s < 0 || s >= n.Switches }
	return n.GroupsAre == Sure && len(n.Hosts) > 0 && len(n.Hosts) == len(n.Of) &&
		n.Switches <= 1<<20 && len(n.Links) < max(n.Switches, 1) &&
		!slices.ContainsFunc(n.Of, func(s int) bool { return s != -1 && bad(s) }) &&
		!slices.ContainsFunc(n.Links, func(l [2]int) bool {
			return bad(l[0]) || bad(l[1]) ||
				l[0] == l[1]
		})
}

// Text is the network as a tree of names.
func (n *Network) Text() string {
	var b strings.Builder
	if n.GroupsAre != Sure {
		return fmt.Sprintf("unsure: which hosts share a switch: %s\n", n.GroupsAre)
	}
	b.WriteString(n.Tree().Text(func(list []int) string {
		names := make([]string, len(list))
		for i, h := range list {
			names[i] = n.Hosts[h]
		}
		return strings.Join(names, " ")
	}))
	for i, s := range n.Of {
		if s < 0 {
			fmt.Fprintf(&b, "not reached: %s\n", n.Hosts[i])
		}
	}
	if n.LinksAre != Sure {
		fmt.Fprintf(&b, "unsure: which switches are linked: %s\n", n.LinksAre)
	}
	return b.String()
}

// A Cache is the file in which networks are kept: networks.json in the user's folder for such
// things (XDG_CACHE_HOME).
type Cache struct {
	Networks []*Network `json:"networks"` // the newest first
	file     string
}

// OpenCache reads the file. One that cannot be understood counts as empty.
func OpenCache() (*Cache, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	c := &Cache{file: filepath.Join(dir, "libspx", "networks.json")}
	data, err := os.ReadFile(c.file)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	if json.Unmarshal(data, c) != nil {
		c.Networks = nil
	}
	c.Networks = slices.DeleteFunc(c.Networks, func(n *Network) bool {
		return n == nil ||
			!n.sound()
	})
	return c, nil
}

// Find returns the network with all these hosts; nil: they are not in one network.
func (c *Cache) Find(names []string) *Network {
	for _, n := range c.Networks {
		if known := n.Between(names); known != nil {
			return known
		}
	}
	return nil
}

// Nearest is the network that has most of these hosts; nil: none has two of them.
func (c *Cache) Nearest(names []string) (best *Network) {
	most := 1
	for _, n := range c.Networks {
		found := 0
		for _, s := range n.restrict(names).Of {
			if s >= 0 {
				found++
			}
		}
		if found > most {
			best, most = n, found
		}
	}
	return best
}

// Add keeps a network. Networks of the same hosts, or of some of them, are dropped.
func (c *Cache) Add(n *Network) error {
	c.Networks = slices.DeleteFunc(c.Networks, func(old *Network) bool {
		return !slices.ContainsFunc(old.Hosts,
			func(h string) bool { return !slices.Contains(n.Hosts, h) })
	})
	c.Networks = slices.Insert(c.Networks, 0, n)
	c.Networks = c.Networks[:min(len(c.Networks), mostNetworks)]
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.file), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(c.file), "networks-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it has another name by then
	_, err = f.Write(append(data, '\n'))
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), c.file)
}
